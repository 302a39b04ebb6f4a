"""What the gate compares: figures, each a share of texts that were judged rightly.

A figure is named `family.what.detail`, such as `quality.good_kept.zh`: of the texts in question (`n`) so many (`hits`) came out
right. Whatever should be rare, such as a false alarm, is counted the other way round, so that more is always better. Means over
languages or classes, in which each counts the same, are figures too: their hits are the mean times n, and no whole number.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from curation.verdicts import Step

__all__ = ["NOTHING_CHANGED", "Changed", "Figure", "Figures", "counted", "mean_of"]

Changed = Mapping[str, Step]
"""Filters to judge with in place of the default ones, by name."""
NOTHING_CHANGED: Changed = {}


class Figure(NamedTuple):
    """Hits among a number of texts."""

    hits: float
    n: int

    @property
    def share(self) -> float:
        """1 of none: what is not there is not wrong."""
        return self.hits / self.n if self.n else 1.0


Figures = dict[str, Figure]


def counted(hits: Iterable[bool]) -> Figure:
    """Truth values, counted."""
    values = [bool(hit) for hit in hits]
    return Figure(sum(values), len(values))


def mean_of(figures: Iterable[Figure]) -> Figure:
    """The mean of their shares, each counting the same; n of all together. Of none, the empty figure."""
    ones = list(figures)
    n = sum(one.n for one in ones)
    return Figure(sum(one.share for one in ones) / len(ones) * n, n) if ones else Figure(0, 0)
