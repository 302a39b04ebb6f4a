"""A plan on disk is the plan that was made: window by window, sequence by sequence, in any order, of any size."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.packing_windows import plan_windows
from tokenization.packing import plan as packing
from tokenization.packing.plan import Plan, Strategy
from tokenization.packing.plan_file import PlanFile

some_lengths = st.lists(st.integers(1, 90), max_size=50)


def pieces_of(plan: Plan) -> list[list[tuple[int, int, int]]]:
    """(document, start, length) of the pieces of each sequence."""
    columns = [column.tolist() for column in (plan.document, plan.start, plan.length)]
    pieces = list(zip(*columns, strict=True))
    return [pieces[a:b] for a, b in zip(plan.first_piece[:-1], plan.first_piece[1:], strict=True)]


@settings(max_examples=100, deadline=None)
@given(some_lengths, st.integers(1, 30), st.sampled_from(["best_fit", "concat"]), st.integers(1, 20), st.data())
def test_what_is_appended_comes_back(
    lengths: list[int], seq_len: int, strategy: Strategy, window: int, data: st.DataObject
) -> None:
    """Windows equal, neighbours equal, any choice of sequences equal, counts right."""
    with (
        pytest.MonkeyPatch.context() as patch,
        tempfile.TemporaryDirectory() as folder,
        PlanFile(Path(folder), seq_len, len(lengths)) as planned,
    ):
        patch.setattr(packing, "WINDOW_DOCUMENTS", window)
        windows = list(plan_windows(lengths, seq_len, strategy))
        for copy, (first, plan) in enumerate(windows):
            planned.append(copy, first, plan)
        found = list(planned.windows())
        whole: list[list[tuple[int, int, int]]] = []
        for copy, ((first, plan), back) in enumerate(zip(windows, found, strict=True)):
            assert (back.copy, back.first_row, back.plan.lead) == (copy, first, plan.lead)
            assert back.first_sequence == len(whole) - (1 if plan.lead else 0)
            assert (back.plan.n_documents, pieces_of(back.plan)) == (plan.n_documents, pieces_of(plan))
            moved = [[(d + first, s, n) for d, s, n in sequence] for sequence in pieces_of(plan)]
            if plan.lead:
                whole[-1] += moved.pop(0)
            whole += moved
        assert (planned.n_sequences, planned.n_pieces) == (len(whole), sum(map(len, whole)))
        assert planned.cut_documents == len({d for sequence in whole for d, start, _ in sequence if start})
        if whole:
            a, b = sorted(data.draw(st.tuples(*[st.integers(0, len(whole))] * 2)))
            assert pieces_of(planned.sequences(a, b)) == whole[a:b] or a == b
            chosen = data.draw(st.lists(st.integers(0, len(whole) - 1)))
            assert pieces_of(planned.take(np.array(chosen, np.int64))) == [whole[i] for i in chosen]


@pytest.mark.parametrize("strategy", ["best_fit", "concat"])
@pytest.mark.parametrize("n_rows", [60, 2**31])
def test_more_tokens_than_31_bits_count(strategy: Strategy, n_rows: int, tmp_path: Path) -> None:
    """6 billion tokens by their lengths alone: every place is right, and rows may need 64 bits themselves."""
    lengths, seq_len = np.full(60, 100_000_001), 2**16
    first_row = n_rows - 60
    with PlanFile(tmp_path, seq_len, n_rows) as planned:
        for first, plan in plan_windows(lengths, seq_len, strategy):
            planned.append(0, first + first_row, plan)
        assert planned.n_sequences * seq_len > 2**32
        (window,) = planned.windows()
        places, last = window.plan.places(), planned.sequences(planned.n_sequences - 1, planned.n_sequences)
        assert int(last.document.max()) == n_rows - 1
        assert int(places.last_sequence.max()) == planned.n_sequences - 1
        assert window.plan.n_tokens == 6_000_000_060
