"""Shares, rates and differences of a stratified sample, with 95 % intervals that hold for few and for no changes too.

A share is Wilson's (1927) where documents are drawn alike. Where weights or lengths differ it is Wilson's with the number of
documents that would vary as much: the variance of the ratio is linearised (Taylor) and taken within strata, as in Cochran,
Sampling Techniques, 6.13, and Korn and Graubard 1998; strata are taken as given, and no correction is made for a corpus that
was drawn to a large part, since the next crawl is what a reader wants to know of. A variance that is estimated from few
changes may be far too small, from none it is 0. So one more change is counted with the weight of a heavy document, as Fay and
Feuer 1997 do for rates: with no change among n documents alike the upper bound is 3.84 / (n + 3.84).

A rate has a numerator that is no part of its denominator (what comes in, of what was kept): the same with Poisson's variance.
A difference of two shares has the bounds of both, put together by their distances (MOVER, Zou and Donner 2008), with the
correlation of both. How often each interval holds the truth is simulated in tests/unit/curation/impact/counting/test_intervals.py.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from curation.impact.counting.cells import Cells
from curation.impact.counting.figure_types import MEASURES, Estimate, Part
from curation.wilson import wilson

__all__ = ["SIGMAS", "Ratios"]

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.bool_] | npt.NDArray[np.float64] | npt.NDArray[np.int64]
Could = Rows | tuple[Rows, ...]

SIGMAS = 1.959963984540054
"""Half the width of a 95 % interval of a normal distribution."""
SQUARE = SIGMAS * SIGMAS


@dataclass(frozen=True)
class _Ratio:
    """A ratio of two sums over cells, and what it varies by."""

    top: Floats
    bottom: Floats
    measure: int
    of: int
    value: float
    numerator: float
    denominator: float


@dataclass(frozen=True)
class Ratios:
    """Ratios over the cells of a sample. `top` and `bottom` say how often each cell counts: masks, or whole numbers."""

    cells: Cells

    def part(self, top: Rows, bottom: Rows | None, measure: str = "documents", *, could: Rows | None = None) -> Part:
        """Some of the sample, and its share of `bottom` in the same measure.

        Args:
            could: `top` is no part of `bottom`, so its share is a rate; see there.
        """
        place = MEASURES.index(measure)
        chosen = np.asarray(top, np.int64)
        count = int((self.cells.counts[place] * chosen).sum())
        amount = float((self.cells.amounts[place] * chosen).sum()) if self.cells.weighted else float(count)
        share = None
        if bottom is not None:
            share = self.share(top, bottom, measure) if could is None else self.rate(top, bottom, measure, could=could)
        return Part(count, amount, share)

    def share(self, top: Rows, bottom: Rows, measure: str = "documents") -> Estimate | None:
        """Share of `bottom` that is `top`, which lies in it; None of nothing."""
        ratio = self._ratio(top, bottom, measure, measure)
        if ratio is None:
            return None
        if ratio.measure == 0 and not self.cells.weighted:
            low, high = wilson(round(ratio.numerator), round(ratio.denominator), SIGMAS)
            return Estimate(ratio.value, low, high)
        one_more = self._heavy(ratio, bottom)
        spread = ratio.numerator * (1 - ratio.value)  # of whole documents that weigh 1
        weight = (self._cross(ratio, ratio) + one_more**2) / (spread + one_more)
        # As many documents alike vary as much; no more information than there is in one document, and never none.
        alike = max(ratio.denominator / weight, np.finfo(np.float64).tiny)
        low, high = wilson(ratio.value * alike, alike, SIGMAS)
        return Estimate(ratio.value, min(low, ratio.value), max(high, ratio.value))

    def rate(
        self, top: Rows, bottom: Rows, measure: str = "documents", *, could: Could, of: str | None = None
    ) -> Estimate | None:
        """Sum of `top` by sum of `bottom`, which may be in another measure; None by nothing.

        Args:
            could: all that `top` might be, in one part or in several that differ in kind: one more change may weigh what
                a document of any of these does, even where there is none.
            of: measure of `bottom`.
        """
        ratio = self._ratio(top, bottom, measure, of or measure)
        if ratio is None:
            return None
        one_more = self._heavy(ratio, could)
        weight = (self._cross(ratio, ratio) + one_more**2) / (ratio.numerator + one_more)
        half = SQUARE * weight / ratio.denominator / 2
        reach = math.sqrt(2 * half * ratio.value + half * half)
        low, high = ratio.value + half - reach, ratio.value + half + reach
        return Estimate(ratio.value, min(max(0.0, low), ratio.value), max(high, ratio.value))

    def difference(
        self, plus: Rows, minus: Rows, bottom: Rows, measure: str = "documents", *, could: Rows | None = None
    ) -> Estimate | None:
        """Ratio of `plus` less ratio of `minus`, both by `bottom`; no document is in both.

        Args:
            could: `plus` is no part of `bottom`, as `minus` is, so it is a rate; see there.
        """
        more = self.share(plus, bottom, measure) if could is None else self.rate(plus, bottom, measure, could=could)
        less = self.share(minus, bottom, measure)
        both = self._ratio(plus, bottom, measure, measure), self._ratio(minus, bottom, measure, measure)
        if more is None or less is None or both[0] is None or both[1] is None:
            return None
        spreads = self._cross(both[0], both[0]) * self._cross(both[1], both[1])
        together = self._cross(both[0], both[1]) / math.sqrt(spreads) if spreads > 0 else 0.0
        together = min(1.0, max(-1.0, together))
        value = more.value - less.value
        # What is lost is a part of `bottom`: no more than all of it can be.
        below = _distance(more.value - more.low, less.high - less.value, together)
        above = _distance(more.high - more.value, less.value - less.low, together)
        return Estimate(value, max(value - below, min(value, -1.0)), value + above)

    def _ratio(self, top: Rows, bottom: Rows, measure: str, of: str) -> _Ratio | None:
        first, second = MEASURES.index(measure), MEASURES.index(of)
        above, under = np.asarray(top, np.float64), np.asarray(bottom, np.float64)
        denominator = float((self.cells.amounts[second] * under).sum())
        if not denominator > 0:
            return None
        numerator = float((self.cells.amounts[first] * above).sum())
        return _Ratio(above, under, first, second, numerator / denominator, numerator, denominator)

    def _cross(self, one: _Ratio, other: _Ratio) -> float:
        """Covariance of the numerators of two ratios of the same measures, each less its ratio times its denominator."""
        cells, a, b = self.cells, one.measure, one.of
        products = one.top * other.top * cells.squares[a, a] + one.value * other.value * (
            one.bottom * other.bottom * cells.squares[b, b]
        )
        products -= (other.value * one.top * other.bottom + one.value * one.bottom * other.top) * cells.squares[a, b]
        sums = [ratio.top * cells.amounts[a] - ratio.value * ratio.bottom * cells.amounts[b] for ratio in (one, other)]
        n = cells.stratum_sizes
        product, first, second = (np.bincount(cells.strata, values, len(n)) for values in (products, *sums))
        lone = n < 2  # a single one in all of the sample: as if its stratum's mean were 0
        within = product - np.where(lone, 0.0, first * second / n)
        found = float((within * np.where(lone, 1.0, n / np.maximum(n - 1, 1))).sum())
        return max(found, 0.0) if one is other else found

    def _heavy(self, ratio: _Ratio, could: Could) -> float:
        """What one more change may weigh: the heaviest document of those in question; of characters or tokens as much as
        the document that a character lies in, on average, since the longest document of all would say nothing."""
        parts = [np.asarray(part) != 0 for part in (could if isinstance(could, tuple) else (could,))]
        return max(
            self._weight(part, ratio.measure)
            for part in ([part for part in parts if part.any()] or [ratio.bottom != 0])
        )

    def _weight(self, rows: npt.NDArray[np.bool_], measure: int) -> float:
        amount = float(self.cells.amounts[measure][rows].sum())
        if measure == 0 or not amount:
            return float(self.cells.heaviest[rows].max())
        return float(self.cells.squares[measure, measure][rows].sum()) / amount


def _distance(one: float, other: float, together: float) -> float:
    """Of the end of the interval of a difference from its value."""
    return math.sqrt(max(0.0, one * one + other * other - 2 * together * one * other))
