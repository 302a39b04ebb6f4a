"""Counts of a comparison, and when a share in a sample is over its limit."""

from __future__ import annotations

import random

import pytest

from tokenization.parity.tally import Tally


def tally_of(pairs: list[tuple[int, int]]) -> Tally:
    tally = Tally(0)
    tally._pairs["unknown"] = pairs
    return tally


@pytest.mark.parametrize(
    ("pairs", "complete", "expected"),
    [
        ([], True, False),
        ([(0, 0)], True, False),
        ([(1, 1000)], True, False),
        ([(2, 1000)], True, True),
        ([(2, 1000)], False, True),
        ([(0, 1000)] * 99 + [(150, 1000)], True, True),
        ([(0, 1000)] * 99 + [(150, 1000)], False, False),
        ([(2, 1000)] * 100, False, True),
    ],
)
def test_a_limit(pairs: list[tuple[int, int]], complete: bool, expected: bool) -> None:
    """Exactly the limit is not over it; of a sample, one bad document among a hundred proves nothing."""
    assert tally_of(pairs).is_over("unknown", 0.001, complete=complete) is expected


def test_a_good_corpus_is_not_stopped_by_its_sample() -> None:
    """Of 200 samples from a corpus at half its limit, none is over it beyond doubt; at four times the limit most are."""
    dice = random.Random(1)

    def over(share: float) -> int:
        found = 0
        for _ in range(200):
            pairs = [(sum(dice.random() < share for _ in range(50)), 50) for _ in range(100)]
            found += tally_of(pairs).is_over("unknown", 0.002, complete=False)
        return found

    assert over(0.001) == 0
    assert over(0.008) > 100
