"""Drift of the crawl between two re-scores, told apart from the model's progress as far as two checkpoints let us.

Two checkpoints differ: as the model learns, every distribution falls. So three things are measured:

- **progress**: the shift of the median that the groups have in common, the median of their shifts weighted by documents. It
  is taken within groups, so that a crawl with other shares of languages is no progress.
- **own shift**: what a group's median moved beyond that. The crawl's group has changed, or the model learned it faster or
  slower than others: from two re-scores of different documents nobody can tell which.
- **shape**: the population stability index between the two distributions after each one's own median was taken away.
  What only moved has none.

The index is that of credit scoring: sum (p - q) ln(p / q) over ten classes that hold a tenth of the former documents
each; below 0.1 steady, from 0.25 on strong (N. Siddiqi, Credit Risk Scorecards, 2006). By chance alone it is
(1/n + 1/m) times a chi-square number of nine degrees of freedom (B. Yurdakul, Statistical Properties of Population
Stability Index, 2018): what lies within the 99.9th percentile of that is called so, whatever its size.
The index of the shares of languages or sources says how much the crawl's composition changed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from curation.report.rescore_spread import BINS, QUANTILES, dense

__all__ = ["MIN_JUDGED", "MODERATE", "STRONG", "drift", "stability"]

Doubles = npt.NDArray[np.float64]

MODERATE, STRONG = 0.1, 0.25
CLASSES = 10
MIN_JUDGED = 100
"""Judged documents of a group, then and now, below which nothing is said. Ours, as `min_documents` of the re-score."""
_BEYOND = 3.0902
"""Standard normal number above which 0.1 % lie."""


def stability(then: Doubles, now: Doubles) -> float:
    """Population stability index of two counts by class; half a document is added to each class, so that none is empty."""
    p = (then + 0.5) / (then.sum() + 0.5 * len(then))
    q = (now + 0.5) / (now.sum() + 0.5 * len(now))
    return float(((q - p) * np.log(q / p)).sum())


def chance(classes: int, n: float, m: float) -> float:
    """What the index exceeds by chance once in a thousand, of n and m documents (Wilson and Hilferty's chi-square)."""
    free = max(classes - 1, 1)
    chi = free * (1 - 2 / (9 * free) + _BEYOND * math.sqrt(2 / (9 * free))) ** 3
    return chi * (1 / n + 1 / m)


def _classes(then: Doubles, now: Doubles) -> tuple[Doubles, Doubles]:
    """Bins joined into classes that hold a tenth of `then` each, as nearly as bins let them."""
    cumulative = np.cumsum(then) / then.sum()
    # A bin that ends on a tenth must end the class, whatever the sum's last digit.
    place = np.minimum(np.floor((cumulative - then / then.sum() / 2) * CLASSES + 1e-9).astype(np.int64), CLASSES - 1)
    used, of = np.unique(np.maximum(place, 0), return_inverse=True)
    first, second = (np.bincount(of, counts, len(used)).astype(np.float64) for counts in (then, now))
    return first, second


def drift(then: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    """Drift from the former re-score to this one.

    Args:
        then, now: their `distributions`, as `rescore_spread.spreads` gives them.

    Returns:
        progress: bits per byte by which the common median fell (null: no group can be compared), and what it was taken
        from; for language and source: `shares`, the index of their shares; and `groups`, a row for each of them, then or now.
    """
    shifts, of = _shifts(then, now, "language"), "language"
    if len(shifts) < 2 and len(_shifts(then, now, "source")) > 1:
        shifts, of = _shifts(then, now, "source"), "source"
    common = _weighted_median(shifts)
    found: dict[str, Any] = {
        "progress": None if common is None else round(-common, 6),
        "progress_of": of,
        "progress_groups": len(shifts),
    }
    for kind in ("language", "source"):
        found[kind] = _kind(then[kind], now[kind], common if len(shifts) > 1 else None)
    return found


def _middle(group: Mapping[str, Any]) -> float | None:
    quantiles: Sequence[float] = group["bits_per_byte"]["quantiles"]
    return quantiles[QUANTILES.index(50)] if quantiles else None


def _shifts(then: Mapping[str, Any], now: Mapping[str, Any], kind: str) -> list[tuple[float, int]]:
    """Shift of the median, and documents, of each group that can be compared."""
    before = {group["name"]: group for group in then[kind]["groups"]}
    found = []
    for group in now[kind]["groups"]:
        former = before.get(group["name"])
        if former is not None and min(former["judged"], group["judged"]) >= MIN_JUDGED:
            a, b = _middle(former), _middle(group)
            if a is not None and b is not None:
                found.append((b - a, int(min(former["documents"], group["documents"]))))
    return found


def _weighted_median(shifts: Sequence[tuple[float, int]]) -> float | None:
    if not shifts:
        return None
    ranked = sorted(shifts)
    half, seen = sum(n for _, n in ranked) / 2, 0
    for shift, n in ranked:
        seen += n
        if seen >= half:
            return shift
    return ranked[-1][0]


def _kind(then: Mapping[str, Any], now: Mapping[str, Any], common: float | None) -> dict[str, Any]:
    before = {group["name"]: group for group in then["groups"]}
    after = {group["name"]: group for group in now["groups"]}
    totals = [
        sum(g["documents"] for g in (*one["groups"], *([one["rest"]] if one["rest"] else []))) for one in (then, now)
    ]
    names = sorted({*before, *after}, key=lambda name: (-_documents(after, name), -_documents(before, name), name))
    counts = np.array([[_documents(before, name), _documents(after, name)] for name in names], np.float64).reshape(
        -1, 2
    )
    rests = np.array([[one["rest"]["documents"] if one["rest"] else 0 for one in (then, now)]], np.float64)
    every = np.concatenate([counts, rests]) if rests.any() else counts
    index = stability(every[:, 0], every[:, 1]) if all(totals) else None
    cut = (then["rest"] is not None, now["rest"] is not None)
    groups = [_one(name, before.get(name), after.get(name), totals, cut, common) for name in names]
    return {"shares": None if index is None else round(index, 6), "groups": groups}


def _documents(groups: Mapping[str, Any], name: str) -> int:
    return int(groups[name]["documents"]) if name in groups else 0


def _one(
    name: str, then: Any, now: Any, totals: Sequence[int], cut: tuple[bool, bool], common: float | None
) -> dict[str, Any]:
    """A group, then and now. Where only the largest were told apart, one that is missing may be among the others."""
    row: dict[str, Any] = {
        "name": name,
        "share_then": _share(then, totals[0], cut[0]),
        "share_now": _share(now, totals[1], cut[1]),
        "shift": None, "own_shift": None, "shape": None, "chance": None, "verdict": "",
    }  # fmt: skip
    if then is None or now is None:
        missing = cut[0] if then is None else cut[1]
        row["verdict"] = "not told apart" if missing else "new" if then is None else "gone"
        return row
    n, m = then["judged"], now["judged"]
    a, b = _middle(then), _middle(now)
    if min(n, m) < MIN_JUDGED or a is None or b is None:
        row["verdict"] = "too few"
        return row
    first, second = (dense(BINS["centred"], one["bits_per_byte"]["centred"]) for one in (then, now))
    # Counts may be weighted: the index is that of shares, of as many documents as were judged.
    first, second = _classes(first * n / first.sum(), second * m / second.sum())
    index, limit = stability(first, second), chance(len(first), n, m)
    row.update(
        shift=round(b - a, 6),
        own_shift=None if common is None else round(b - a - common, 6),
        shape=round(index, 6),
        chance=round(limit, 6),
        verdict=_verdict(index, limit),
    )
    return row


def _verdict(index: float, limit: float) -> str:
    if index < MODERATE:
        return "steady"
    return "chance" if index <= limit else "moderate" if index < STRONG else "strong"


def _share(group: Any, total: int, cut: bool) -> float | None:
    if group is None:
        return None if cut else 0.0
    return round(group["documents"] / total, 8) if total else 0.0
