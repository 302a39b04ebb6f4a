"""Percentiles of bits per character from counts, in memory that does not grow with the documents.

A histogram of 64,000 bins of a thousandth of a bit: percentiles are right to that, whatever the order of documents.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

__all__ = ["BITS_STEP", "BitsHistogram"]

BITS_STEP = 0.001
"""How far apart two values must be to be told apart."""
MOST_BITS = 64
"""Above what any model says of a character on the average; what is beyond counts as this."""
DIGITS = 3
LAST = round(MOST_BITS / BITS_STEP)


class BitsHistogram:
    """How many documents have how many bits per character."""

    def __init__(self) -> None:
        self.counts = np.zeros(LAST + 1, np.int64)

    @property
    def documents(self) -> int:
        return int(self.counts.sum())

    def add(self, bits: npt.NDArray[np.float64]) -> None:
        """Count documents; bits are finite."""
        places = np.clip(np.rint(bits / BITS_STEP), 0, LAST).astype(np.int64)
        self.counts += np.bincount(places, minlength=len(self.counts))

    def merge(self, other: BitsHistogram) -> None:
        """Count what another one has counted."""
        self.counts += other.counts

    def percentiles(self, wanted: Iterable[float]) -> list[float]:
        """The smallest value that at least so many percent of the documents do not exceed; needs one document at least."""
        reached = np.cumsum(self.counts)
        assert reached[-1] > 0, "a percentile of nothing"
        ranks = np.ceil(np.round(np.array(list(wanted)) / 100 * reached[-1], 6)).clip(min=1)
        found: list[float] = np.round(np.searchsorted(reached, ranks) * BITS_STEP, DIGITS).tolist()
        return found
