"""Which documents are packed, how often, in which order: every kept document on one side, or left out by the mixture."""

from __future__ import annotations

import hashlib
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.token_files import letter_tokenizer, save_tokenizer
from tokenization.packing import selection as module
from tokenization.packing.mix import Mix, MixError
from tokenization.packing.parts import Parts, PartWriter
from tokenization.packing.selection import Rows, Selection
from tokenization.tokenizer import Tokenizer, load_tokenizer

N = 400


@pytest.fixture(scope="module")
def letters(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    folder = save_tokenizer(tmp_path_factory.mktemp("letters"), letter_tokenizer(), {"eos_token": "</s>"})
    return load_tokenizer(folder)


def digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()[:16]


def write_part(path: Path, letters: Tokenizer, numbers: range) -> Path:
    """Documents i of i + 1 letters (modulo 9) and a lost one; every third text is a copy; sources a, b, c; languages."""
    with PartWriter(path, letters) as writer:
        for first in range(numbers.start, numbers.stop, 90):
            rows = range(first, min(first + 90, numbers.stop))
            who = {
                "doc_id": pa.array([digest(f"doc {i}") for i in rows], pa.binary(16)),
                "text_id": pa.array([digest(f"text {i // 3}") for i in rows], pa.binary(16)),
                "id": pa.array([f"d{i}" for i in rows]),
                "source": pa.array([f"/in/{'abc'[i % 3]}.jsonl" for i in rows]),
                "language": pa.array([("en", "zh", "")[i % 7 % 3] for i in rows]),
            }
            writer.write(pa.record_batch(who), [letters.encode_documents(["x" * (i % 9 + 1) + "鱼" for i in rows])])
    return path


@pytest.fixture(scope="module")
def parts(letters: Tokenizer, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("parts")
    cuts = [0, 130, 130, N]
    return [write_part(folder / f"{n}.arrow", letters, range(a, b)) for n, (a, b) in enumerate(pairwise(cuts))]


def rows_of(side: Rows) -> list[int]:
    found = side.documents_of(0, len(side)).tolist()
    places = np.arange(len(side))[::-1]
    assert side.take(places).tolist() == found[::-1]
    return found


def test_without_a_mixture_rows_are_documents(parts: list[Path], letters: Tokenizer, tmp_path: Path) -> None:
    """Nothing is stored: row i is document i."""
    with Parts(parts, letters.fingerprint(), letters.dtype, tmp_path) as opened, Selection(opened, tmp_path) as chosen:
        (side,) = chosen.sides
        assert (side.split, side.is_plain, side.mix, chosen.left_out) == ("all", True, (), 0)
        assert rows_of(side) == list(range(N))
        assert side.totals == opened.totals
        assert list(side.windows(150)) == [(0, 0, 150), (0, 150, 300), (0, 300, 400)]


def test_copies_follow_each_other(
    parts: list[Path], letters: Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Copy 0 of all, then copy 1 of all that have one: windows end where copies do, and counts add up."""
    monkeypatch.setattr(module, "CHUNK", 37)
    mix = Mix("source", epochs=(("b*", 0), ("/in/c*", 2.5)))
    with (
        Parts(parts, letters.fingerprint(), letters.dtype, tmp_path) as opened,
        Selection(opened, tmp_path, mix=mix) as chosen,
    ):
        (side,) = chosen.sides
        rows, lengths = rows_of(side), opened.lengths.read(0, N)
        a, c = [i for i in range(N) if i % 3 == 0], [i for i in range(N) if i % 3 == 2]
        first, second, third = (rows[x:y] for x, y in pairwise(side.epochs))
        assert (first, second) == (sorted(a + c), c)
        assert set(third) < set(c)
        assert third == sorted(third)
        assert 0.35 < len(third) / len(c) < 0.65
        assert (side.split, chosen.left_out, side.documents) == ("all", N - len(a) - len(c), len(a) + len(c))
        assert [(copy, end - begin) for copy, begin, end in side.windows(1000)] == list(
            enumerate((len(first), len(second), len(third)))
        )
        assert side.totals.tokens == int(lengths[rows].sum())
        assert side.totals.lost == len(rows)
        assert [group["name"] for group in side.mix] == ["b*", "/in/c*", "*"]
        assert [group["epochs"] for group in side.mix] == [0, 2.5, 1]
        assert [group["documents"] for group in side.mix] == [0, 2 * len(c) + len(third), len(a)]
        assert sum(group["tokens"] for group in side.mix) == side.totals.tokens


@settings(max_examples=40, deadline=None)
@given(
    st.floats(0, 0.5), st.dictionaries(st.sampled_from(["a*", "*b.jsonl", "/in/c*", "*"]), st.floats(0, 3), max_size=4)
)
def test_every_document_is_on_one_side_or_left_out(share: float, epochs: dict[str, float]) -> None:
    """Any holdout and any epochs: texts never on both sides, every document once or left out by its group's epochs."""
    letters, paths, folder = _FIXED[0]
    mix = Mix("source", epochs=tuple(epochs.items())) if epochs else None
    with (
        Parts(paths, letters.fingerprint(), letters.dtype, folder) as opened,
        Selection(opened, folder, mix=mix, holdout_share=share) as chosen,
    ):
        found = [rows_of(side) for side in chosen.sides]
        texts = [{row // 3 for row in rows} for rows in found]
        assert len(found) == 1 or not texts[0] & texts[1]
        assert chosen.left_out == N - len({row for rows in found for row in rows})
        assert epochs or chosen.left_out == 0
        assert [side.split for side in chosen.sides] == (["train", "holdout"] if share else ["all"])
        for side, rows in zip(chosen.sides, found, strict=True):
            assert side.documents == len(set(rows))
            assert side.totals.tokens == int(opened.lengths.read(0, N)[rows].sum()) if rows else not side.totals.tokens
        if share:
            held = found[1]
            assert held == sorted(set(held)), "held-out documents are packed once, in order"
            assert chosen.sides[1].mix == ()


_FIXED: list[tuple[Tokenizer, list[Path], Path]] = []


@pytest.fixture(autouse=True, scope="module")
def fixed(letters: Tokenizer, parts: list[Path], tmp_path_factory: pytest.TempPathFactory) -> None:
    """What the test above needs for each of its examples."""
    _FIXED.append((letters, parts, tmp_path_factory.mktemp("spools")))


def test_a_larger_holdout_holds_a_smaller_one(parts: list[Path], letters: Tokenizer, tmp_path: Path) -> None:
    """So an evaluation set stays unseen when more is held out."""
    held = []
    for share in (0.1, 0.3, 0.3):
        with (
            Parts(parts, letters.fingerprint(), letters.dtype, tmp_path) as opened,
            Selection(opened, tmp_path, holdout_share=share) as chosen,
        ):
            held.append(rows_of(chosen.sides[1]))
    assert set(held[0]) < set(held[1])
    assert held[1] == held[2]
    assert 0.2 < len(held[1]) / N < 0.4


def test_weights_by_language(parts: list[Path], letters: Tokenizer, tmp_path: Path) -> None:
    """Shares of tokens, counted on the side of training; unknown languages need a pattern too."""
    with Parts(parts, letters.fingerprint(), letters.dtype, tmp_path) as opened:
        mix = Mix("language", weights=(("en", 2.0), ("*", 1.0)))
        with Selection(opened, tmp_path, mix=mix, holdout_share=0.2) as chosen:
            english, others = chosen.sides[0].mix
        assert english["tokens"] / others["tokens"] == pytest.approx(2, rel=0.05)
        assert (english["weight"], others["weight"]) == (2.0, 1.0)
        assert min(english["epochs"], others["epochs"]) == 1
        assert chosen.left_out == 0
        with pytest.raises(MixError, match="no pattern of weights fits language ''"):
            Selection(opened, tmp_path, mix=Mix("language", weights=(("en", 2.0), ("zh", 1.0))))


@pytest.mark.parametrize(
    "mix", [None, Mix("source", epochs=(("*", 2.5),)), Mix("source", weights=(("*", 1.0), ("y", 1.0)))]
)
def test_nothing_to_select(mix: Mix | None, letters: Tokenizer, tmp_path: Path) -> None:
    """No parts, or parts without documents: sides without rows."""
    empty = write_part(tmp_path / "empty.arrow", letters, range(0))
    for paths in ([], [empty]):
        for share in (0.0, 0.5):
            with (
                Parts(paths, letters.fingerprint(), letters.dtype, tmp_path) as opened,
                Selection(opened, tmp_path, mix=mix, holdout_share=share) as chosen,
            ):
                assert [len(side) for side in chosen.sides] == [0] * (2 if share else 1)
                assert [list(side.windows(9)) for side in chosen.sides] == [[]] * len(chosen.sides)
                assert chosen.left_out == 0
