"""Sharing out items: each once, in order, evenly, in few chunks."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.chunks import MAX_CHUNKS, WHOLE, cut, items_of


@given(st.lists(st.floats(0, 1e9), max_size=5000), st.floats(1, 1e9))
def test_chunks_hold_each_item_once_in_order_and_are_few(weights: list[float], chunk_bytes: float) -> None:
    """A cut of the items into at most 64 runs of neighbours, whose list fits an XCom of 2 kB."""
    chunks = cut(weights, chunk_bytes)
    items = [item for chunk in chunks for item in items_of(chunk, len(weights))]
    assert items == list(range(len(weights)))
    assert len(chunks) <= MAX_CHUNKS
    assert len(json.dumps(chunks)) < 2000


@pytest.mark.parametrize(
    ("total", "n_chunks"),
    [(0, 1), (1, 1), (10, 1), (11, 2), (80, 8), (81, 9), (120, 9), (121, 10), (2320, 64), (9999, 64)],
)
def test_chunks_grow_before_they_become_many(total: int, n_chunks: int) -> None:
    """One for each 10 up to eight, one for each 40 from there on, never more than 64."""
    assert len(cut([1.0] * total, 10)) == (n_chunks if total else 0)


def test_chunks_are_of_about_equal_weight() -> None:
    """No chunk is heavier than its share and the heaviest item together."""
    weights = [float(1 + (7 * n) % 13) for n in range(1000)]
    chunks = cut(weights, 100)
    sums = [sum(weights[item] for item in items_of(chunk, 1000)) for chunk in chunks]
    assert len(chunks) == 24
    assert max(sums) <= sum(weights) / len(chunks) + 13


def test_all_is_every_item_and_a_chunk_never_reaches_beyond_the_pass() -> None:
    """A pass may have fewer items than when it was planned: what is no longer there is not done."""
    assert list(items_of(WHOLE, 3)) == [0, 1, 2]
    assert list(items_of("1-5", 3)) == [1, 2]
    assert list(items_of(WHOLE, 0)) == []
