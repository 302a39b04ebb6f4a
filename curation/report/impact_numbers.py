"""Numbers of a change-impact sheet: small shares with digits enough to compare them with a bound, and their intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from curation.impact.counting.figure_types import Estimate, Part
from curation.report.numbers import NBSP, value, value_beside
from curation.score_words import list_words

__all__ = ["amount", "at_most", "interval", "limits_words", "percent", "score_words", "short_amount", "signed", "times"]

MINUS = "\N{MINUS SIGN}"
_MAX_VALUE = 120
_MAX_ITEMS = 4


def percent(share: float) -> str:
    """`3.12 %`, `12.4 %`, `0.031 %`, `0 %`: two digits at least of what is not nothing, and never nothing for something."""
    return f"{_digits(100 * share)}{NBSP}%"


def _digits(number: float) -> str:
    if number == 0 or not math.isfinite(number):
        return "0" if number == 0 else "\N{INFINITY}"
    size = abs(number)
    if size < 0.0001:
        return f"{'<' if number > 0 else '>'}{NBSP}{MINUS if number < 0 else ''}0.0001"
    digits = 0 if size >= 999.5 else 1 if size >= 9.995 else 2 if size >= 0.0995 else 3 if size >= 0.00995 else 4
    text = f"{size:,.{digits}f}"
    text = text.rstrip("0").rstrip(".") if "." in text and float(text.replace(",", "")) == round(size) else text
    return f"{MINUS if number < 0 else ''}{text}"


_NO_BOUND = 10.0
"""An upper end from which on the sample says no more than that it is too small: a thousand per cent of something."""


def interval(estimate: Estimate) -> str:
    """`2.2 to 4.2 %`; one number if both ends are the same, as of what was not drawn but counted."""
    if estimate.high > _NO_BOUND and estimate.value < _NO_BOUND:
        return f"{_digits(100 * estimate.low)}{NBSP}% or more: too few documents to say"
    low, high = (_digits(100 * end) for end in (estimate.low, estimate.high))
    return f"{low} to {high}{NBSP}%" if low != high else f"{low}{NBSP}%"


def at_most(estimate: Estimate) -> str:
    """`at most 0.35 %` of what was not seen at all."""
    return f"at most {percent(estimate.high)}" if estimate.high <= _NO_BOUND else "too few documents to say"


def signed(share: float) -> str:
    """`+0.31 %`, `-2.4 %` with a true minus, `±0 %`."""
    text = percent(share)
    return f"+{text}" if share > 0 else text if share < 0 else f"±{text}"


def amount(part: Part, *, weighted: bool) -> str:
    """A number of the sample; of one that was drawn what it stands for in its corpus."""
    return f"{part.amount:,.0f}" if weighted else f"{part.count:,}"


def short_amount(number: float) -> str:
    """`12.3 M`, `4.1 T`: three digits, powers of 1,000."""
    size = abs(number)
    for limit, suffix in ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k")):
        if size >= limit:
            scaled = number / limit
            return (
                f"{scaled:.{0 if abs(scaled) >= 99.95 else 1 if abs(scaled) >= 9.995 else 2}f}{NBSP}{suffix}".replace(
                    "-", MINUS
                )
            )
    return f"{number:,.0f}".replace("-", MINUS)


def times(factor: float) -> str:
    """`× 1.30`, `× 24`."""
    if not math.isfinite(factor):
        return "× \N{INFINITY}"
    return f"× {factor:,.0f}" if factor >= 99.5 else f"× {factor:.1f}" if factor >= 9.95 else f"× {factor:.2f}"


def score_words(found: Any, limits: Sequence[float], unit: str) -> str:
    """A score as people read it, with digits enough to tell it from its limits."""
    if found is None:
        return "not judged"
    if isinstance(found, bool):
        return "yes" if found else "no"
    if isinstance(found, int | float):
        return value_beside(found, limits, unit) if math.isfinite(found) else "undefined"
    if isinstance(found, list):
        return list_words(found, _MAX_ITEMS)
    text = found.hex() if isinstance(found, bytes) else str(found)
    return text if len(text) <= _MAX_VALUE else f"{text[:_MAX_VALUE]} ..."


def limits_words(before: Sequence[float], after: Sequence[float], unit: str) -> str:
    """`limit 16`, `limit 16 → 50`; of several limits those that differ; nothing where none applies."""
    if list(before) == list(after) or not after or not before:
        both = after or before
        return f"limit {_limits(both, unit)}" if both else ""
    if len(before) == len(after):
        pairs = [pair for pair in zip(before, after, strict=True) if pair[0] != pair[1]]
        before, after = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    return f"limit {_limits(before, unit)} → {_limits(after, unit)}"


def _limits(limits: Sequence[float], unit: str) -> str:
    return ", ".join(value(limit, unit) for limit in limits) or "none"
