"""Samples are a function of the documents: not of shards, order, or how often one asks."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.report.samples import Reservoir, priorities, salted


@given(
    st.lists(st.tuples(st.integers(0, 2**64 - 1), st.integers(0, 3)), max_size=120, unique_by=lambda pair: pair[0]),
    st.integers(1, 9),
    st.integers(1, 40),
)
def test_a_reservoir_holds_the_best(offers: list[tuple[int, int]], size: int, cut: int) -> None:
    """Of everything offered, in whatever pieces, the nearest, then those with the smallest key."""
    reservoir = Reservoir(size)
    for start in range(0, len(offers), cut):
        part = offers[start : start + cut]
        rows = np.arange(start, start + len(part))
        reservoir.offer(0, rows, np.array([k for k, _ in part], np.uint64), np.array([d for _, d in part], np.float64))
    expected = sorted(range(len(offers)), key=lambda i: (offers[i][1], offers[i][0]))[:size]
    assert reservoir.places == [(0, i) for i in expected]
    assert reservoir.offered == len(offers)


def test_priorities_are_the_first_bytes() -> None:
    """Big-endian, of a slice too."""
    ids = pa.array([bytes([i]) * 16 for i in range(5)], pa.binary(16))
    assert priorities(ids.slice(2, 2)).tolist() == [0x0202020202020202, 0x0303030303030303]
    assert priorities(ids.slice(0, 0)).tolist() == []


@pytest.mark.parametrize("salt", ["", "length.too_short", "汉"])
def test_salting_loses_nothing_and_orders_anew(salt: str) -> None:
    """Distinct keys stay distinct; another salt gives another order."""
    keys = np.arange(1000, dtype=np.uint64) << np.uint64(20)
    mixed = salted(keys, salt)
    assert len(np.unique(mixed)) == 1000
    assert not np.array_equal(np.argsort(mixed), np.argsort(salted(keys, salt + "x")))
