"""Numbers as a reader wants them: grouped digits, honest shares, short axis labels, durations."""

from __future__ import annotations

import math
from collections.abc import Sequence

NBSP = "\N{NO-BREAK SPACE}"

__all__ = ["count", "duration", "noun", "share", "short", "value", "value_beside"]


def count(number: float) -> str:
    """`12,345`."""
    return f"{number:,.0f}"


def noun(number: int, singular: str, plural: str | None = None) -> str:
    """`1 document`, `2 documents`."""
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


def share(part: float, whole: float) -> str:
    """`11.9 %`; never rounds to nothing or to everything: `< 0.1 %`, `> 99.9 %`."""
    if not whole:
        return "-"
    percent = 100 * part / whole
    if 0 < percent < 0.1:
        return f"<{NBSP}0.1{NBSP}%"
    if 99.9 < percent < 100:
        return f">{NBSP}99.9{NBSP}%"
    return f"{percent:.0f}{NBSP}%" if percent in (0, 100) else f"{percent:.1f}{NBSP}%"


def value(number: float, unit: str = "") -> str:
    """A score with its unit: shares as percent, whole numbers grouped, others with four digits."""
    if unit == "share":
        percent = 100 * number
        text = f"{percent:.{1 if abs(percent) >= 1 else 2}f}".rstrip("0").rstrip(".")
        return f"{text}{NBSP}%"
    if float(number).is_integer() and abs(number) < 1e15:
        return f"{number:,.0f}"
    return f"{number:,.0f}" if abs(number) >= 10_000 else f"{number:.4g}"


def value_beside(number: float, limits: Sequence[float], unit: str = "") -> str:
    """The same, with as many digits as it takes to tell it from each limit that it is not equal to."""
    text = value(number, unit)
    if not any(value(limit, unit) == text and limit != number for limit in limits):
        return text
    shown, sign = (100 * number, f"{NBSP}%") if unit == "share" else (number, "")
    for digits in range(2, 9):
        text = f"{shown:.{digits}f}"
        if all(
            f"{100 * limit if unit == 'share' else limit:.{digits}f}" != text for limit in limits if limit != number
        ):
            break
    return text + sign


def short(number: float, unit: str = "") -> str:
    """A label at an axis: `20 %`, `500`, `2k`, `1.5M`."""
    if unit == "share":
        return f"{100 * number:.6g}{NBSP}%"
    magnitude = abs(number)
    for limit, suffix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if magnitude >= limit:
            return f"{number / limit:.3g}{suffix}"
    return f"{number:.4g}"


def duration(seconds: float) -> str:
    """`0.42 s`, `12 s`, `3 min 20 s`, `2 h 05 min`."""
    if not math.isfinite(seconds):
        return "-"
    if seconds < 9.95:
        return f"{seconds:.2g} s" if seconds >= 0.01 else "< 0.01 s" if seconds else "0 s"
    whole = round(seconds)
    if whole < 120:
        return f"{whole} s"
    if whole < 7200:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
