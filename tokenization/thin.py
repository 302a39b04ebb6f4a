"""An endless order with some of its rows left out: which place of the whole order follows at each place of the rest.

From a place on, the rows of a mask are passed over, and what is left keeps its order. Nothing is walked through: in one
epoch, where the masked rows stand is a sorted array, so the r-th row that is left stands at r plus the number of masked
ones before it, which is one binary search. All epochs leave out as many, so an epoch is one division.

Costs, for K masked rows of a line, 30 ns and 8 bytes each once an epoch (the last two are kept), and 0.1 us a place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tokenization.shuffle import Permutation

__all__ = ["Thinned"]

Numbers = npt.NDArray[np.int64]
_KEPT = 2
"""Epochs whose masked places are kept: a batch may lie in two."""


class _Part(NamedTuple):
    """What holds from a place of the rest on."""

    first: int
    """The place."""
    at: int
    """Where it stands in the whole order, if nothing more were left out."""
    masked: Numbers
    """Rows that are left out, ascending."""
    shift: int
    """What is left of the whole order before `first`, if these rows had been left out from its beginning, less `first`."""


class Thinned:
    """The endless order of n rows, a permutation an epoch, with rows left out from some places on."""

    def __init__(self, n: int, seed: int, shuffle: bool, masks: Sequence[tuple[int, Numbers]]) -> None:
        """Define it.

        Args:
            n, seed, shuffle: of the whole order.
            masks: pairs of a place of this order, ascending, and rows of range(n), ascending, that are left out from
                there on, beside those of the pairs before.

        Raises:
            ValueError: nothing is left.
        """
        self.n, self.seed, self.shuffle = n, seed, shuffle
        self._parts: tuple[_Part, ...] = ()
        self._cache: tuple[tuple[tuple[int, int], Numbers], ...] = ()
        for first, rows in masks:
            before = self._parts[-1].masked if self._parts else rows[:0]
            masked = _union(before, rows)
            if len(masked) >= n:
                raise ValueError(f"all {n} rows are left out: nothing remains")
            at = self.whole(np.array([first], np.int64)).item()
            if self._parts and self._parts[-1].first == first:
                self._parts = self._parts[:-1]
            self._cache = ()
            self._parts = (*self._parts, _Part(first, at, masked, 0))
            shift = self._left_before(len(self._parts) - 1, at) - first
            self._parts = (*self._parts[:-1], _Part(first, at, masked, shift))

    def whole(self, places: Numbers) -> Numbers:
        """The place in the whole order of each of some ascending places of this one: int64[n]."""
        found = places.copy()
        for number, part in enumerate(self._parts):
            after = self._parts[number + 1].first if number + 1 < len(self._parts) else None
            low = int(np.searchsorted(places, part.first))
            high = len(places) if after is None else int(np.searchsorted(places, after))
            if low < high:
                found[low:high] = self._select(number, places[low:high] + part.shift)
        return found

    def left_before(self, place: int) -> int:
        """How many places of this order lie before a place of the whole one."""
        for number in reversed(range(len(self._parts))):
            if self._parts[number].at <= place:
                return self._left_before(number, place) - self._parts[number].shift
        return place

    def _select(self, number: int, ranks: Numbers) -> Numbers:
        """Where the rows of some ascending ranks stand, if those of a part had always been left out."""
        left = self.n - len(self._parts[number].masked)
        epochs = ranks // left
        within = ranks - epochs * left
        found = epochs * self.n + within
        first, last = int(epochs[0]), int(epochs[-1])
        borders = [0, *np.searchsorted(epochs, np.arange(first + 1, last + 1)).tolist(), len(ranks)]
        for epoch, low, high in zip(range(first, last + 1), borders, borders[1:], strict=False):
            found[low:high] += np.searchsorted(self._keys(number, epoch), within[low:high], side="right")
        return found

    def _left_before(self, number: int, place: int) -> int:
        """Rows before a place of the whole order, if those of a part had always been left out."""
        masked = self._parts[number].masked
        epoch, within = divmod(place, self.n)
        keys = self._keys(number, epoch)
        gone = int(np.searchsorted(keys + np.arange(len(keys)), within))
        return epoch * (self.n - len(masked)) + within - gone

    def _keys(self, number: int, epoch: int) -> Numbers:
        """For each masked row, in the order of an epoch, how many rows are left before it: int64[K], ascending."""
        for name, keys in self._cache:
            if name == (number, epoch):
                return keys
        masked = self._parts[number].masked
        if self.shuffle:
            masked = Permutation(self.n, self.seed, epoch).inverse_many(masked)
            masked.sort()
        keys = masked - np.arange(len(masked))
        # One assignment: another thread sees the old cache or the new one.
        self._cache = (((number, epoch), keys), *self._cache[: _KEPT - 1])
        return keys

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_cache": ()}


def _union(one: Numbers, other: Numbers) -> Numbers:
    """Both, ascending, each row once. Not np.union1d, whose first call imports numpy.ma."""
    both = np.sort(np.concatenate([one, other]))
    return both[np.append(True, both[1:] != both[:-1])] if len(both) else both
