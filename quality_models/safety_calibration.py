"""Measures of a classifier's scores, and thresholds that keep promises.

Average precision: the mean of the precision at each hit, texts of equal score counted together. NumPy alone.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["average_precision", "mean_average_precision"]


def average_precision(scores: npt.NDArray[np.floating], hits: npt.NDArray[np.floating]) -> float:
    """Area under precision over recall; nan where there is no hit. Both are [texts]; a hit is 1, else 0."""
    total = float(hits.sum())
    if total == 0:
        return float("nan")
    order = np.argsort(-scores, kind="stable")
    sorted_scores, found = scores[order], np.cumsum(hits[order])
    last = np.append(np.flatnonzero(np.diff(sorted_scores)), len(scores) - 1)
    recall = found[last] / total
    precision = found[last] / (last + 1)
    return float(np.sum(np.diff(recall, prepend=0.0) * precision))


def mean_average_precision(scores: npt.NDArray[np.floating], hits: npt.NDArray[np.floating]) -> float:
    """Mean over the labels that have hits; both are [texts, labels]. 0 where none has."""
    each = [average_precision(scores[:, at], hits[:, at]) for at in range(scores.shape[1])]
    there = [value for value in each if value == value]
    return float(np.mean(there)) if there else 0.0
