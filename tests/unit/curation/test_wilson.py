"""Wilson's interval: published values, and its laws at every small count, where roundings show."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.wilson import wilson


@pytest.mark.parametrize(
    ("hits", "n", "low", "high"),
    [
        (0, 0, 0.0, 1.0),
        (0, 10, 0.0, 0.2775),
        (5, 10, 0.2366, 0.7634),
        (10, 10, 0.7225, 1.0),
        (1, 1000, 0.000177, 0.005642),
    ],
)
def test_published_values(hits: int, n: int, low: float, high: float) -> None:
    """Wilson 1927, without the correction for continuity, 95 %."""
    assert wilson(hits, n, 1.96) == pytest.approx((low, high), abs=2e-4)


@pytest.mark.parametrize("sigmas", [1.0, 1.96, 3.0])
def test_bounds_hold_the_share_at_every_small_count(sigmas: float) -> None:
    """0 of 11 once had a lower bound of 2e-17, above its own share."""
    for n in range(1, 200):
        for hits in range(n + 1):
            low, high = wilson(hits, n, sigmas)
            assert 0 <= low <= hits / n <= high <= 1


@given(st.integers(0, 10_000), st.integers(1, 10_000))
def test_bounds_come_closer_with_more(n: int, more: int) -> None:
    """0 <= low <= share <= high <= 1, and a hundred times as many draws narrow them."""
    draws = n + more
    low, high = wilson(n, draws, 3.0)
    assert 0 <= low <= n / draws <= high <= 1
    nearer = wilson(100 * n, 100 * draws, 3.0)
    assert nearer[1] - nearer[0] < high - low


def test_bounds_cover_as_often_as_they_say() -> None:
    """Three sigma: of 2,000 samples of a known share all but a few lie within."""
    rng = random.Random(3)
    outside = 0
    for _ in range(2000):
        low, high = wilson(sum(rng.random() < 0.02 for _ in range(300)), 300, 3.0)
        outside += not low <= 0.02 <= high
    assert outside <= 20
