"""Plans: no token lost or doubled, no document cut that fits, exactly best-fit decreasing."""

from __future__ import annotations

import bisect

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.packing_windows import plan_windows
from tokenization.packing import plan as packing
from tokenization.packing.plan import Plan, Strategy, plan_packing

STRATEGIES: tuple[Strategy, ...] = ("best_fit", "concat")
some_lengths = st.lists(st.integers(1, 90), max_size=60)
any_strategy = st.sampled_from(STRATEGIES)


def fills(plan: Plan) -> list[int]:
    """Tokens in each sequence."""
    return [int(plan.length[a:b].sum()) for a, b in zip(plan.first_piece, plan.first_piece[1:], strict=False)]


def best_fit_one_by_one(lengths: list[int], seq_len: int) -> list[int]:
    """The textbook's best-fit decreasing: each item into the fullest bin that has room. Fills, sorted."""
    free: list[int] = []
    for length in sorted(lengths, reverse=True):
        index = bisect.bisect_left(free, length)
        space = free.pop(index) if index < len(free) else seq_len
        bisect.insort(free, space - length)
    return sorted(seq_len - space for space in free)


@settings(max_examples=150, deadline=None)
@given(some_lengths, st.integers(1, 40), any_strategy)
def test_every_token_has_one_place(lengths: list[int], seq_len: int, strategy: Strategy) -> None:
    """Pieces of a document are its tokens in order, without gap or overlap; no sequence is too full or empty."""
    plan = plan_packing(lengths, seq_len, strategy)
    assert plan.n_tokens == sum(lengths)
    assert all(0 < fill <= seq_len for fill in fills(plan))
    order = np.lexsort((plan.start, plan.document))
    covered = [0] * len(lengths)
    for document, start, length in zip(plan.document[order], plan.start[order], plan.length[order], strict=True):
        assert start == covered[document]
        assert length > 0
        covered[document] += int(length)
    assert covered == lengths


@settings(max_examples=150, deadline=None)
@given(some_lengths, st.integers(1, 40))
def test_best_fit_is_best_fit_decreasing(lengths: list[int], seq_len: int) -> None:
    """By length counts the bins are as full as one by one, and a document is cut only if it must be."""
    plan = plan_packing(lengths, seq_len)
    pieces = [min(seq_len, n - start) for n in lengths for start in range(0, n, seq_len)]
    assert sorted(fills(plan)) == best_fit_one_by_one(pieces, seq_len)
    assert np.bincount(plan.document, minlength=len(lengths)).tolist() == [-(-n // seq_len) for n in lengths]


@settings(max_examples=100, deadline=None)
@given(some_lengths, st.integers(1, 40))
def test_concatenation_is_one_stream(lengths: list[int], seq_len: int) -> None:
    """Every sequence but the last is full, and documents follow each other."""
    plan = plan_packing(lengths, seq_len, "concat")
    assert all(fill == seq_len for fill in fills(plan)[:-1])
    assert plan.document.tolist() == sorted(plan.document.tolist())
    assert plan.n_sequences == -(-sum(lengths) // seq_len)


@settings(max_examples=150, deadline=None)
@given(some_lengths, st.integers(1, 40), any_strategy)
def test_places_find_every_piece(lengths: list[int], seq_len: int, strategy: Strategy) -> None:
    """First piece, last piece, and whole sequences between them: the rule in `Places`."""
    plan = plan_packing(lengths, seq_len, strategy)
    places, offsets = plan.places(), plan.offsets()
    sequence = np.repeat(np.arange(plan.n_sequences), np.diff(plan.first_piece))
    for document in range(len(lengths)):
        mine = np.flatnonzero(plan.document == document)
        mine = mine[np.argsort(plan.start[mine])]
        assert places.pieces[document] == len(mine)
        first = int(places.sequence[document])
        expected = [(first + j, 0) for j in range(len(mine))]
        expected[0] = (first, int(places.offset[document]))
        expected[-1] = (int(places.last_sequence[document]), int(places.last_offset[document]))
        assert [(int(sequence[k]), int(offsets[k])) for k in mine] == expected


@settings(max_examples=100, deadline=None)
@given(some_lengths, st.integers(1, 40))
def test_the_file_follows_the_input(lengths: list[int], seq_len: int) -> None:
    """Sequences are ordered by their first document, documents in them by row."""
    plan = plan_packing(lengths, seq_len)
    heads = plan.document[plan.first_piece[:-1]].tolist()
    assert heads == sorted(heads)
    for a, b in zip(plan.first_piece, plan.first_piece[1:], strict=False):
        assert plan.document[a:b].tolist() == sorted(plan.document[a:b].tolist())


@pytest.mark.parametrize(
    ("lengths", "seq_len", "strategy", "expected"),
    [
        ([], 8, "best_fit", []),
        ([], 8, "concat", []),
        ([8], 8, "best_fit", [8]),
        ([24], 8, "best_fit", [8, 8, 8]),
        ([25], 8, "best_fit", [8, 8, 8, 1]),
        ([4, 1, 3], 8, "best_fit", [8]),
        ([87], 8, "concat", [8] * 10 + [7]),
        ([1] * 20, 8, "best_fit", [8, 8, 4]),
        ([5, 5, 5, 3, 3, 3], 8, "best_fit", [8, 8, 8]),
        ([1, 1, 1], 1, "best_fit", [1, 1, 1]),
    ],
)
def test_known_plans(lengths: list[int], seq_len: int, strategy: Strategy, expected: list[int]) -> None:
    """Small cases by hand: empty, exact, too long, and what only fits together."""
    assert fills(plan_packing(lengths, seq_len, strategy)) == expected


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_totals_above_two_billion(strategy: Strategy) -> None:
    """Offsets and counts are 64 bits wide: 30 documents of 100M tokens each."""
    plan = plan_packing([100_000_001] * 30, 2**16, strategy)
    assert plan.n_tokens == 3_000_000_030
    assert int(plan.places().last_sequence.max()) * 2**16 > 2**31


def test_web_like_lengths_waste_almost_nothing() -> None:
    """200,000 log-normal documents: less than 0.1 % padding, and none cut that fits."""
    lengths = np.maximum(1, np.random.default_rng(3).lognormal(np.log(500), 1.1, 200_000)).astype(np.int64)
    plan = plan_packing(lengths, 2048)
    assert 1 - plan.n_tokens / (plan.n_sequences * 2048) < 0.001
    assert (plan.places().pieces == -(-lengths // 2048)).all()


@pytest.mark.parametrize("seq_len", [65_535, 65_536, 100_000])
def test_sequences_longer_than_16_bits(seq_len: int) -> None:
    """The radix sort of small integers gives way to 64 bits where it must."""
    lengths = np.random.default_rng(1).integers(1, 2 * seq_len, 300)
    plan = plan_packing(lengths, seq_len)
    pieces = [min(seq_len, n - start) for n in lengths.tolist() for start in range(0, n, seq_len)]
    assert sorted(fills(plan)) == best_fit_one_by_one(pieces, seq_len)


@settings(max_examples=100, deadline=None)
@given(some_lengths, st.integers(1, 20), st.integers(1, 20))
def test_windows_cover_all_documents_in_order(lengths: list[int], window: int, pieces: int) -> None:
    """Each window is the plan of its documents alone, and has no more pieces than it may."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packing, "WINDOW_DOCUMENTS", window)
        patch.setattr(packing, "WINDOW_PIECES", pieces)
        windows = list(plan_windows(lengths, 16))
    reached = 0
    for first, plan in windows:
        assert first == reached
        expected = plan_packing(lengths[first : first + plan.n_documents], 16)
        assert plan.document.tolist() == expected.document.tolist()
        assert plan.n_documents == 1 or len(plan.length) <= pieces
        reached += plan.n_documents
    assert reached == len(lengths)


@settings(max_examples=100, deadline=None)
@given(some_lengths, st.integers(1, 20), st.integers(1, 40))
def test_concatenation_goes_on_over_windows(lengths: list[int], window: int, seq_len: int) -> None:
    """Windows of concatenation together are the plan of all documents: the first sequence of one is the last of another."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packing, "WINDOW_DOCUMENTS", window)
        windows = list(plan_windows(lengths, seq_len, "concat"))
    whole = plan_packing(lengths, seq_len, "concat")
    sequences = 0
    found: list[tuple[int, int, int, int, int]] = []
    for first, plan in windows:
        base = sequences - (1 if plan.lead else 0)
        sequence = np.repeat(np.arange(plan.n_sequences), np.diff(plan.first_piece)) + base
        columns = (plan.document + first, plan.start, plan.length, sequence, plan.offsets())
        found += list(zip(*(column.tolist() for column in columns), strict=True))
        sequences = base + plan.n_sequences
    sequence = np.repeat(np.arange(whole.n_sequences), np.diff(whole.first_piece))
    columns = (whole.document, whole.start, whole.length, sequence, whole.offsets())
    assert found == list(zip(*(column.tolist() for column in columns), strict=True))
    assert sequences == whole.n_sequences


@pytest.mark.parametrize(
    ("lengths", "seq_len", "strategy", "message"),
    [
        ([3, 0], 8, "best_fit", "at least 1"),
        ([[3]], 8, "best_fit", "one row"),
        ([3], 0, "best_fit", "seq_len must be at least 1, found 0"),
        ([3], 8, "first_fit", "unknown packing strategy 'first_fit'"),
    ],
)
def test_wrong_requests_are_named(lengths: list[int], seq_len: int, strategy: Strategy, message: str) -> None:
    """Errors say what was expected and found."""
    with pytest.raises(ValueError, match=message):
        plan_packing(lengths, seq_len, strategy)
