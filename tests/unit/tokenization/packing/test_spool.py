"""Rows of numbers in an anonymous file: what was appended is read, in any order, and nothing stays behind."""

from __future__ import annotations

import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokenization.packing import spool as module
from tokenization.packing.spool import Spool

FOLDER = Path(tempfile.gettempdir())


@settings(max_examples=100, deadline=None)
@given(st.lists(st.lists(st.integers(-(2**31), 2**31 - 1), max_size=9), max_size=6), st.data())
def test_what_is_appended_is_read(groups: list[list[int]], data: st.DataObject) -> None:
    """Any groups, any range, any places; empty ones too."""
    with closing(Spool(FOLDER, np.int32)) as spool, pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_SMALL", data.draw(st.sampled_from([0, 2**30])))
        for group in groups:
            spool.append(np.array(group, np.int64))
        expected = np.array([number for group in groups for number in group], np.int64)
        assert len(spool) == len(expected)
        a, b = sorted(data.draw(st.tuples(*[st.integers(0, len(expected))] * 2)))
        assert np.array_equal(spool.read(a, b), expected[a:b])
        places = data.draw(st.lists(st.integers(0, len(expected) - 1))) if len(expected) else []
        assert np.array_equal(spool.take(np.array(places, np.int64)), expected[np.array(places, np.int64)])


def test_groups_of_numbers(tmp_path: Path) -> None:
    """Three numbers that lie together are read together."""
    spool, numbers = Spool(tmp_path, np.int64, 3), np.arange(30).reshape(10, 3)
    spool.append(numbers[:4])
    spool.append(numbers[4:])
    assert len(spool) == 10
    assert np.array_equal(spool.read(2, 7), numbers[2:7])
    assert np.array_equal(spool.take(np.array([9, 0, 9])), numbers[[9, 0, 9]])
    assert spool.take(np.zeros(0, np.int64)).shape == spool.read(3, 3).shape == (0, 3)
    spool.close()


@pytest.mark.parametrize("small", [0, 2**30])
def test_rows_are_read_in_threads(small: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Place by place or mapped, by several threads at once: the same numbers, and none from outside."""
    monkeypatch.setattr(module, "_SMALL", small)
    spool, numbers = Spool(tmp_path, np.int64), np.random.default_rng(0).integers(0, 2**60, 100_000)
    spool.append(numbers)
    places = [np.random.default_rng(i).integers(0, len(numbers), 5_000) for i in range(8)]
    with ThreadPoolExecutor(4) as pool:
        taken = list(pool.map(spool.take, places))
    assert all(np.array_equal(found, numbers[where]) for found, where in zip(taken, places, strict=True))
    with pytest.raises(IndexError):
        spool.take(np.array([0, len(numbers)]))
    spool.close()


def test_the_file_has_no_name(tmp_path: Path) -> None:
    """A killed process leaves nothing in the folder."""
    spool = Spool(tmp_path, np.int32)
    spool.append(np.arange(1000))
    assert list(tmp_path.iterdir()) == []
    spool.close()


def test_numbers_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    """No number wraps around; no range outside the row is read."""
    spool = Spool(tmp_path, np.int32)
    with pytest.raises(OverflowError, match="numbers 0 to 2147483648 do not fit int32"):
        spool.append(np.array([2**31, 0]))
    spool.append(np.array([2**31 - 1, -(2**31)]))
    for begin, end in ((0, 3), (-1, 1), (2, 1)):
        with pytest.raises(IndexError, match="not inside a row of 2 numbers"):
            spool.read(begin, end)
    spool.close()
