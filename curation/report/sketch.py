"""The distribution of a score, streamed: a few thousand counters whatever the number of documents.

Values are counted by their float32 with the last 11 bits of the mantissa cut off: 0.024 % relative width, exact for
whole numbers up to 4,096 and for zero. Counters are exact and order does not matter, so any cut into shards
gives the same sketch. Costs about 0.1 us a value and at most 16 bytes for each distinct counter. The idea of
relative-error buckets is that of DDSketch (Masson, Rim and Lee, 2019), here without a logarithm.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["Bars", "Sketch"]

_CUT_BITS = 11
MAX_BARS = 64
Counts = npt.NDArray[np.int64]
Values = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Bars:
    """A histogram ready to draw: bar i spans edges[i] to edges[i + 1]; what lies outside is counted apart."""

    edges: Values
    """float64[n + 1]"""
    counts: Counts
    """int64[2, n]: dropped, kept."""
    below: tuple[int, int]
    """Dropped, kept below the first edge (on a logarithmic axis: zero and negative values)."""
    above: tuple[int, int]
    log: bool


class Sketch:
    """Counts of a score's values, kept and dropped documents apart."""

    def __init__(self) -> None:
        self._codes = np.zeros(0, np.int32)
        self._counts = np.zeros((2, 0), np.int64)
        self.minimum = np.inf
        self.maximum = -np.inf
        self.undefined = np.zeros(2, np.int64)
        """Dropped, kept documents without this score (null)."""
        self.whole = True
        """Whether every value is a whole number."""

    def add(self, values: Values, keep: npt.NDArray[np.bool_]) -> None:
        """Count values: float64[n]; nan and infinite ones are undefined."""
        finite = np.isfinite(values)
        self.undefined += np.bincount(keep[~finite], minlength=2)
        values, keep = values[finite], keep[finite]
        if not len(values):
            return
        self.minimum = min(self.minimum, float(values.min()))
        self.maximum = max(self.maximum, float(values.max()))
        self.whole = self.whole and bool((values == np.floor(values)).all())
        codes, place = np.unique(_encode(values), return_inverse=True)
        counts = np.stack([np.bincount(place[keep == side], minlength=len(codes)) for side in (False, True)])
        self._merge(codes, counts.astype(np.int64))

    def _merge(self, codes: npt.NDArray[np.int32], counts: Counts) -> None:
        both = np.concatenate([self._codes, codes])
        self._codes, place = np.unique(both, return_inverse=True)
        merged = np.zeros((2, len(self._codes)), np.int64)
        # Codes are distinct on either side, so no place is added to twice at once.
        merged[:, place[: self._counts.shape[1]]] += self._counts
        merged[:, place[self._counts.shape[1] :]] += counts
        self._counts = merged

    @property
    def total(self) -> int:
        return int(self._counts.sum())

    @property
    def by_side(self) -> tuple[int, int]:
        """Dropped, kept documents that have the score."""
        dropped, kept = self._counts.sum(axis=1)
        return int(dropped), int(kept)

    def quantile(self, share: float) -> float:
        """The value below or at which `share` of the documents lie; nan if there are none."""
        if not self.total:
            return float("nan")
        cumulative = np.cumsum(self._counts.sum(axis=0))
        return float(_decode(self._codes)[np.searchsorted(cumulative, share * cumulative[-1])])

    def count_below(self, value: float) -> int:
        """Documents whose value is less than `value`."""
        return int(self._counts[:, _decode(self._codes) < value].sum())

    def bars(self, thresholds: list[float]) -> Bars:
        """Bars over the bulk of the values and all thresholds, on a linear or logarithmic axis."""
        values = _decode(self._codes)
        if not len(values):
            return Bars(np.array([0.0, 1.0]), np.zeros((2, 1), np.int64), (0, 0), (0, 0), log=False)
        log = self._is_logarithmic()
        edges = _log_edges(*self._range(thresholds, log), whole=self.whole) if log else self._linear_edges(thresholds)
        # A value at an edge may have lost its last bits: it belongs above the edge all the same.
        bar = np.searchsorted(edges, values + np.abs(values) * 2.0**-12, side="right") - 1
        inside = (bar >= 0) & (bar < len(edges) - 1)
        n_bars = len(edges) - 1
        counts = np.stack([np.bincount(bar[inside], side[inside], n_bars) for side in self._counts]).astype(np.int64)
        below, above = self._counts[:, bar < 0].sum(axis=1), self._counts[:, bar >= n_bars].sum(axis=1)
        return Bars(edges, counts, (int(below[0]), int(below[1])), (int(above[0]), int(above[1])), log)

    def _is_logarithmic(self) -> bool:
        """A wide, positive, skewed distribution is drawn on a logarithmic axis."""
        if self.minimum < 0 or self.maximum <= 0:
            return False
        middle, high = self.quantile(0.5), self.quantile(0.99)
        return high > 8 * middle and high > (2 if middle > 0 else 100)

    def _range(self, thresholds: list[float], log: bool) -> tuple[float, float]:
        low, high = self.quantile(0.001), self.quantile(0.999)
        if log:
            positive = _decode(self._codes)
            low = max(low, float(positive[positive > 0][0]))
            thresholds = [t for t in thresholds if t > 0]
        # A threshold far outside of the values would squeeze them into one bar: it is named, not drawn.
        span = max(high - low, abs(high) * 0.01, 1e-9)
        reach = (low / 1000, high * 1000) if log else (low - 1.5 * span, high + 1.5 * span)
        near = [t for t in thresholds if reach[0] <= t <= reach[1]]
        return min([low, *near]), max([high, *near])

    def _linear_edges(self, thresholds: list[float]) -> Values:
        low, high = self._range(thresholds, log=False)
        smallest = 1.0 if self.whole else 0.0
        step = _nice_step(max(high - low, smallest, abs(high) * 1e-6, 1e-12) / (MAX_BARS - 4), smallest)
        first, last = np.floor(low / step + 1e-9), np.floor(high / step + 1e-9) + 1
        if self.minimum >= 0:
            first = max(first, 0.0)
        return np.asarray(np.arange(first, last + 1) * step)


def _encode(values: Values) -> npt.NDArray[np.int32]:
    """A signed whole number for each value, in the same order, equal for values that are counted together."""
    limit = np.finfo(np.float32).max
    bits = np.clip(values, -limit, limit).astype(np.float32).view(np.int32)
    magnitude = (bits & np.int32(0x7FFFFFFF)) >> _CUT_BITS
    return np.where(bits < 0, -magnitude, magnitude).astype(np.int32)


def _decode(codes: npt.NDArray[np.int32]) -> Values:
    """The value nearest to zero that has each code."""
    magnitude = (np.abs(codes) << _CUT_BITS).astype(np.int32).view(np.float32).astype(np.float64)
    return np.where(codes < 0, -magnitude, magnitude)


def _nice_step(rough: float, smallest: float) -> float:
    """1, 2 or 5 times a power of ten, at least `rough`."""
    power = 10.0 ** np.floor(np.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * (1 - 1e-9))
    return float(max(step, smallest))


def _log_edges(low: float, high: float, *, whole: bool) -> Values:
    """Ten, five or two bars a decade; whole numbers get edges that are whole, so that no bar is empty by its place."""
    first, last = np.floor(np.log10(low)), np.log10(high)
    per_decade = next((n for n in (10, 5, 2) if (last - first) * n <= MAX_BARS), 1)
    edges = 10.0 ** (np.arange(np.floor((last - first) * per_decade) + 2) / per_decade + first)
    if whole:
        edges = np.unique(np.ceil(edges - 1e-6))
    begin = max(int(np.searchsorted(edges, low * (1 + 1e-9), side="right")) - 1, 0)
    return np.asarray(edges[begin:] if len(edges) - begin > 1 else np.array([edges[-1], edges[-1] * 10]))
