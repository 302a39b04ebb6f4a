"""Numbers for readers: never rounded to something untrue."""

from __future__ import annotations

import pytest

from curation.report.numbers import NBSP, count, duration, noun, share, short, value


@pytest.mark.parametrize(
    ("part", "whole", "expected"),
    [
        (0, 10, "0 %"),
        (10, 10, "100 %"),
        (1, 10**6, "< 0.1 %"),
        (10**6 - 1, 10**6, "> 99.9 %"),
        (1, 3, "33.3 %"),
        (0, 0, "-"),
    ],
)
def test_shares(part: int, whole: int, expected: str) -> None:
    """Something is never 0 %, and not everything is never 100 %."""
    assert share(part, whole).replace(NBSP, " ") == expected


@pytest.mark.parametrize(
    ("number", "unit", "expected"),
    [(0.123, "share", "12.3 %"), (1, "share", "100 %"), (0.0012, "share", "0.12 %"), (1234, "words", "1,234"),
     (3.14159, "", "3.142"), (98765.4, "", "98,765")],
)  # fmt: skip
def test_values(number: float, unit: str, expected: str) -> None:
    assert value(number, unit).replace(NBSP, " ") == expected


@pytest.mark.parametrize(
    ("number", "expected"), [(0, "0"), (0.5, "0.5"), (999, "999"), (1000, "1k"), (2.5e6, "2.5M"), (3e9, "3G")]
)
def test_axis_labels(number: float, expected: str) -> None:
    assert short(number) == expected


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (0, "0 s"),
        (0.001, "< 0.01 s"),
        (0.42, "0.42 s"),
        (12.3, "12 s"),
        (200, "3 min 20 s"),
        (7500, "2 h 05 min"),
        (float("nan"), "-"),
    ],
)
def test_durations(seconds: float, expected: str) -> None:
    assert duration(seconds) == expected


def test_one_and_many() -> None:
    assert (noun(1, "line"), noun(1200, "line"), noun(2, "is", "are"), count(1e6)) == (
        "1 line",
        "1,200 lines",
        "2 are",
        "1,000,000",
    )
