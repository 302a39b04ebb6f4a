"""Numbers of a sheet: never nothing for something, digits enough to compare, and drawings that keep within their borders."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.impact.counting.figure_types import Estimate
from curation.report.impact_charts import difference, moves, scale_of
from curation.report.impact_numbers import (
    at_most,
    interval,
    limits_words,
    percent,
    score_words,
    short_amount,
    signed,
    times,
)

NBSP = "\u00a0"


@pytest.mark.parametrize(
    ("share", "words"),
    [
        (0.0, "0 %"), (1.0, "100 %"), (0.0312, "3.12 %"), (0.1241, "12.4 %"), (0.005, "0.50 %"), (0.02, "2 %"),
        (0.00031, "0.031 %"), (0.0000431, "0.0043 %"), (0.0000000001, "< 0.0001 %"), (2.861, "286.1 %"), (23.456, "2,346 %"),
        (-0.0312, "−3.12 %"), (math.inf, "∞ %"),
    ],
)  # fmt: skip
def test_shares(share: float, words: str) -> None:
    """Two digits and more of what is small."""
    assert percent(share).replace(NBSP, " ") == words


@given(st.floats(min_value=1e-12, max_value=100))
def test_something_is_never_nothing(share: float) -> None:
    """However small."""
    assert percent(share) != percent(0)
    assert signed(share).startswith(("+", "<"))


@pytest.mark.parametrize(
    ("low", "high", "words"), [(0.022, 0.042, "2.20 to 4.20 %"), (0.5, 0.5, "50 %"), (-0.02, 0.01, "−2 to 1 %")]
)
def test_intervals(low: float, high: float, words: str) -> None:
    """Both ends, or one number of what is exact."""
    assert interval(Estimate((low + high) / 2, low, high)).replace(NBSP, " ") == words


@pytest.mark.parametrize(
    ("number", "words"),
    [(0, "0"), (999, "999"), (12_345, "12.3 k"), (2.5e12, "2.50 T"), (-3e9, "−3.00 B"), (123e6, "123 M")],
)
def test_short_amounts(number: float, words: str) -> None:
    """Three digits, powers of a thousand."""
    assert short_amount(number).replace(NBSP, " ") == words


@pytest.mark.parametrize(("factor", "words"), [(1.3, "× 1.30"), (24, "× 24.0"), (420, "× 420"), (math.inf, "× ∞")])
def test_times(factor: float, words: str) -> None:
    """Digits as it is large."""
    assert times(factor) == words


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ((16.0,), (16.0,), "limit 16"), ((16.0,), (50.0,), "limit 16 → 50"), ((), (0.2,), "limit 0.2"), ((), (), ""),
        ((16.0, 1e6), (30.0, 1e6), "limit 16 → 30"), ((1.0, 2.0), (3.0,), "limit 1, 2 → 3"),
    ],
)  # fmt: skip
def test_limits(before: tuple[float, ...], after: tuple[float, ...], words: str) -> None:
    """Those that differ, each once where none does."""
    assert limits_words(before, after, "") == words


def test_scores() -> None:
    """Told apart from the limit beside them; what is no number in words."""
    assert score_words(15.9996, [16.0], "") != "16"
    assert [score_words(one, [], "") for one in (None, True, "und", math.nan, b"\x01")] == [
        "not judged",
        "yes",
        "und",
        "undefined",
        "01",
    ]
    assert len(score_words("x" * 999, [], "")) < 200
    shares = [{"language": f"l{i}", "share": 0.2} for i in range(6)]
    assert score_words(shares, [], "share").replace(NBSP, " ") == "l0 20 %, l1 20 %, l2 20 %, l3 20 % and 2 more"


def _estimate(three: list[float]) -> Estimate:
    low, value, high = sorted(three)
    return Estimate(value, low, high)


ESTIMATES = st.lists(st.floats(min_value=0, max_value=5), min_size=3, max_size=3).map(_estimate)


@given(st.lists(st.tuples(ESTIMATES, ESTIMATES), min_size=1, max_size=5))
def test_drawings_keep_within_their_borders(rows: list[tuple[Estimate, Estimate]]) -> None:
    """Whatever the shares, also where an interval goes far beyond the scale."""
    scale = scale_of([one for one, _ in rows], [one for _, one in rows])
    for out, come in rows:
        for picture in (moves(scale, out, come, "a<b"), difference(1.0, out, "a<b")):
            places = [float(x) for x in re.findall(r"[MHx]=?\"?(-?\d+\.\d+)", picture)]
            assert all(-0.5 <= place <= 220.5 for place in places), picture
            assert "nan" not in picture
            assert "inf" not in picture
            assert "a&lt;b" in picture


def test_nothing_is_drawn_as_nothing() -> None:
    """Where neither side moves there is a line and no bar, and words for who cannot see it."""
    none = Estimate(0.0, 0.0, 0.3)
    picture = moves(scale_of([none], [none]), none, None, "eng")
    assert "whisker" not in picture
    assert 'aria-label="eng: leaves 0 %' in picture
    assert difference(1.0, None, "x") == ""


def test_an_end_that_says_nothing_is_no_number() -> None:
    """Of a handful of documents an interval may end at thousands of per cent: that says that they are too few."""
    assert interval(Estimate(0.5, 0.1, 40.0)) == "10 % or more: too few documents to say".replace(" %", f"{NBSP}%")
    assert at_most(Estimate(0.0, 0.0, 40.0)) == "too few documents to say"
    assert at_most(Estimate(0.0, 0.0, 0.01)) == f"at most 1{NBSP}%"
