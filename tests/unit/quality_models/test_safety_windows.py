"""Windows of whole documents: every token in one of them, in order, with the special tokens around."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quality_models.lm_tokens import read_tokenizer
from quality_models.safety_windows import WindowSizes, cut, specials_of
from tests.safety_tiny import VOCABULARY, write_tokenizer


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("tokenizer")
    write_tokenizer(made)
    return made


@given(st.lists(st.integers(0, 90), max_size=4), st.integers(3, 14), st.integers(1, 12), st.integers(1, 6))
@settings(max_examples=60, deadline=None)
def test_all_is_read_that_may_be(folder: Path, lengths: list[int], room: int, stride: int, most: int) -> None:
    """Neighbours overlap or touch, the first begins at the first token, the last ends with the last; no more than allowed."""
    tokenizer = read_tokenizer(folder / "tokenizer.json")
    sizes = WindowSizes(room + 2, min(stride, room), most)
    texts = [("abc" * n)[:n] for n in lengths]

    found = cut(tokenizer, specials_of(tokenizer), texts, sizes, normalised=False)

    assert found.total.tolist() == lengths
    for number, (text, n) in enumerate(zip(texts, lengths, strict=True)):
        mine = np.flatnonzero(found.text == number)
        assert len(mine) <= most
        if n == 0:
            assert not len(mine)
            continue
        # A token is a letter, and a letter a byte.
        begin, end = found.begin[mine], found.end[mine]
        assert begin[0] == 0
        assert most < 2 or end[-1] == n
        covered = np.zeros(n, bool)
        for row, first, stop in zip(mine, begin, end, strict=True):
            covered[first:stop] = True
            ids = found.ids[row]
            assert (ids[0], ids[-1], len(ids)) == (0, 2, stop - first + 2 if stop - first else 3)
            assert [VOCABULARY[token].removeprefix("##") for token in ids[1:-1]] == list(text[first:stop])
        assert found.read[number] == covered.sum()
        needed = 1 + max(0, -(-(n - room) // sizes.stride))
        assert covered.all() or needed > most


def test_specials_are_the_tokenizers_own(folder: Path) -> None:
    """And a text that writes their names gets none of them."""
    tokenizer = read_tokenizer(folder / "tokenizer.json")
    specials = specials_of(tokenizer)
    assert (specials.before.tolist(), specials.after.tolist()) == ([0], [2])

    found = cut(tokenizer, specials, ["[SEP]"], WindowSizes(), normalised=False)
    assert 2 not in found.ids[0][1:-1]
