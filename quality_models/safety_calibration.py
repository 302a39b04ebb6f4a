"""Probabilities out of a classifier's logits, and thresholds that keep promises. NumPy alone.

- Platt's scaling for each label: p = sigmoid(a * logit + b), fitted on the development part by Newton's method with his smoothed
  targets (Platt, Probabilistic Outputs for Support Vector Machines, 1999; Lin, Lin and Weng, 2007, for the steps).
- `precise`: the lowest threshold from which on the wanted share of what it flags is right.
- `quiet`: thresholds at which all labels together flag at most the wanted share of harmless windows or documents. Each label
  may flag as many as the others do; how many is searched for, so that what two labels flag together counts once.

Average precision: the mean of the precision at each hit, texts of equal score counted together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = [
    "FEWEST", "Measured", "Thresholds", "average_precision", "fit_platt", "mean_average_precision", "measured", "precise",
    "quiet", "thresholds_of",
]  # fmt: skip

Floats = npt.NDArray[np.floating]

FEWEST = 10
"""Texts above a threshold: of fewer no share is worth a promise."""

LANGUAGE_HITS, LANGUAGE_OTHERS = 50, 100
"""Rows of the development part, with and without a label, from which on a language gets a threshold of its own for it."""

NEVER = 1.0
LEAST = 0.5
"""No threshold is lower: what is more likely harmless is not flagged, though a few such would not spoil the precision."""


class Measured(NamedTuple):
    """What a threshold does to rows; nan where it is not defined."""

    rows: int
    hits: int
    """Rows that have the label."""
    precision: float
    recall: float
    f1: float
    average_precision: float


class Thresholds(NamedTuple):
    """By label; `languages` by language and label."""

    default: dict[str, float]
    long: dict[str, float]
    languages: dict[str, dict[str, float]]
    notes: list[str]
    """What could not be promised."""


def average_precision(scores: Floats, hits: Floats) -> float:
    """Area under precision over recall; nan where there is no hit. Both are [texts]; a hit is 1, else 0."""
    total = float(hits.sum())
    if total == 0:
        return float("nan")
    order = np.argsort(-scores, kind="stable")
    last, found = _steps(scores[order], hits[order])
    recall = found / total
    precision = found / (last + 1)
    return float(np.sum(np.diff(recall, prepend=0.0) * precision))


def mean_average_precision(scores: Floats, hits: Floats) -> float:
    """Mean over the labels that have hits; both are [texts, labels]. 0 where none has."""
    each = [average_precision(scores[:, at], hits[:, at]) for at in range(scores.shape[1])]
    there = [value for value in each if value == value]
    return float(np.mean(there)) if there else 0.0


def _steps(falling: Floats, hits: Floats) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Last place of each run of equal scores, and the hits up to there."""
    last = np.append(np.flatnonzero(np.diff(falling)), len(falling) - 1)
    return last, np.cumsum(hits, dtype=np.float64)[last]


def measured(probabilities: Floats, hits: Floats, threshold: float) -> Measured:
    """Of one label; both are [texts]."""
    flagged, there = probabilities >= threshold, hits > 0
    right = int((flagged & there).sum())
    precision = right / int(flagged.sum()) if flagged.any() else float("nan")
    recall = right / int(there.sum()) if there.any() else float("nan")
    f1 = 2 * right / int(flagged.sum() + there.sum()) if flagged.any() or there.any() else float("nan")
    return Measured(len(hits), int(there.sum()), precision, recall, f1, average_precision(probabilities, hits))


def fit_platt(logits: Floats, hits: Floats, rounds: int = 100) -> tuple[float, float]:
    """a and b of one label; both inputs are [texts]. a is above 0; without hits or without others (1, 0)."""
    x, positive = logits.astype(np.float64), hits > 0
    n_hits, n_others = int(positive.sum()), int((~positive).sum())
    if not n_hits or not n_others:
        return 1.0, 0.0
    target = np.where(positive, (n_hits + 1) / (n_hits + 2), 1 / (n_others + 2))
    design = np.stack([x, np.ones_like(x)], 1)
    found = np.array([1.0, 0.0])
    best = _cross_entropy(design @ found, target)
    for _ in range(rounds):
        p = 0.5 + 0.5 * np.tanh(design @ found / 2)
        slope = design.T @ (p - target)
        curve = (design * (p * (1 - p))[:, None]).T @ design + 1e-9 * np.eye(2)
        step = np.linalg.solve(curve, slope)
        size = 1.0
        while size > 1e-8 and _cross_entropy(design @ (found - size * step), target) > best:
            size /= 2
        found = found - size * step
        now = _cross_entropy(design @ found, target)
        if best - now < 1e-9 * max(best, 1):
            break
        best = now
    return (float(found[0]), float(found[1])) if found[0] > 1e-3 else (1.0, 0.0)


def _cross_entropy(z: npt.NDArray[np.float64], target: npt.NDArray[np.float64]) -> float:
    return float(np.sum(np.logaddexp(0, z) - target * z))


def precise(probabilities: Floats, hits: Floats, precision: float) -> float:
    """Lowest threshold at which `precision` of what is flagged are hits, among FEWEST or more; NEVER where there is none."""
    if not len(hits):
        return NEVER
    order = np.argsort(-probabilities, kind="stable")
    last, found = _steps(probabilities[order], hits[order])
    enough = np.flatnonzero((found >= precision * (last + 1)) & (last + 1 >= FEWEST))
    if not len(enough):
        return NEVER
    at = int(last[enough[-1]])
    above = float(probabilities[order[at]])
    below = float(probabilities[order[at + 1]]) if at + 1 < len(order) else above
    return _between(below, above)


def _between(below: float, above: float) -> float:
    """In the middle, so that a probability that is rounded otherwise falls on the same side; over `below` in any case."""
    middle = (below + above) / 2
    return middle if below < middle <= above else above


def quiet(probabilities: Floats, share: float) -> npt.NDArray[np.float64]:
    """float64[labels]: thresholds at which at most `share` of the harmless texts [texts, labels] are flagged by any label."""
    n, labels = probabilities.shape
    if n == 0:
        return np.zeros(labels)
    falling = -np.sort(-probabilities.astype(np.float64), axis=0)

    def limits(allowed: int) -> npt.NDArray[np.float64]:
        """Each label flags `allowed` texts at most: those over the next one."""
        if allowed >= n:
            return np.zeros(labels)
        over = np.nextafter(falling[allowed].astype(np.float32), np.float32(2)).astype(np.float64)
        least: npt.NDArray[np.float64] = np.minimum(over, NEVER)
        return least

    low, high = 0, n
    while low < high:  # the most that each may flag
        middle = (low + high + 1) // 2
        flagged = (probabilities >= limits(middle)).any(axis=1).sum()
        low, high = (middle, high) if flagged <= share * n else (low, middle - 1)
    return limits(low)


def thresholds_of(
    labels: Sequence[str],
    probabilities: Floats,
    hits: Floats,
    languages: Sequence[str],
    *,
    precision: float,
    share: float,
    windows: Floats,
    documents: Floats,
) -> Thresholds:
    """Thresholds that keep both promises, the stricter one each.

    `probabilities` and `hits` [texts, labels] and `languages` (empty: not known) are of the development part.
    `windows` [windows, labels] and `documents` [documents, labels] (the greatest of each document's windows) are of
    harmless text and may be empty.
    """
    notes: list[str] = []
    calm, calm_long = quiet(windows, share), quiet(documents, share)
    default: dict[str, float] = {}
    long: dict[str, float] = {}
    by_language: dict[str, dict[str, float]] = {}
    for at, label in enumerate(labels):
        wanted = precise(probabilities[:, at], hits[:, at], precision)
        if wanted == NEVER:
            notes.append(
                f"{label}: no threshold reaches a precision of {precision:g} on the development part; it is off"
            )
        default[label] = max(wanted, float(calm[at]), LEAST)
        long[label] = max(default[label], float(calm_long[at]))
        for language in sorted(set(languages) - {""}):
            of = np.array([one == language for one in languages])
            if hits[of, at].sum() < LANGUAGE_HITS or (1 - hits[of, at]).sum() < LANGUAGE_OTHERS:
                continue
            own = max(precise(probabilities[of, at], hits[of, at], precision), float(calm[at]), LEAST)
            by_language.setdefault(language, {})[label] = own
    return Thresholds(default, long, by_language, notes)


def measures(
    labels: Sequence[str], probabilities: Floats, hits: Floats, languages: Sequence[str], limits: Mapping[str, float]
) -> dict[str, dict[str, Measured]]:
    """Of each language (`all` among them) and label; labels without a hit in a language are left out there."""
    found: dict[str, dict[str, Measured]] = {}
    for language in ["all", *sorted(set(languages))]:
        of = np.array([language in ("all", one) for one in languages], np.bool_)
        for at, label in enumerate(labels):
            if hits[of, at].any():
                one = measured(probabilities[of, at], hits[of, at], limits[label])
                found.setdefault(language, {})[label] = one
    return found
