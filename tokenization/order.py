"""Which sequence of which file stands at which place of a training: a function of the place and a seed, in O(1).

Without weights the files are one: places 0 .. n - 1 are epoch 0, a permutation of all their sequences, the next n places
are epoch 1, and so on. With weights each file has its own epochs, and places are dealt to the files in exact proportion:
a binary tree over the files, where each node sends round(place * share) of its places to the left. So at any place, in
any batch, a file has had its share to within half a sequence a level of the tree. Nothing is drawn, and nothing is kept.

Rows may be left out from a place on (`without`): the rest keeps its order, and each file its share.

Costs 60 us for a batch of 64, whatever the files hold, 5 us where batches are read in order. All counts are exact to 2**62 sequences.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from tokenization.shuffle import Permutation
from tokenization.thin import Thinned

__all__ = ["Ahead", "Order", "whole_weights"]

Numbers = npt.NDArray[np.int64]
LARGEST_SUM = 2**31
"""Of weights as whole numbers: products with them stay within 63 bits."""
AHEAD = 1024
"""Places worked out at once where they are read in order: NumPy's own time is then that of one batch in sixteen."""


def whole_weights(weights: Sequence[float]) -> tuple[int, ...]:
    """The same proportions in whole numbers, exact for decimal fractions, else to a billionth of the whole.

    Raises:
        ValueError: a weight is not a number above 0.
    """
    for number, weight in enumerate(weights):
        if not (math.isfinite(weight) and weight > 0):
            raise ValueError(f"weights[{number}] is {weight}: expected a number above 0. Leave out a file instead")
    exact = [Fraction(weight).limit_denominator(10**6) for weight in weights]
    common = math.lcm(*(fraction.denominator for fraction in exact))
    wholes = [int(fraction * common) for fraction in exact]
    divisor = math.gcd(*wholes)
    wholes = [whole // max(1, divisor) for whole in wholes]
    if min(wholes) > 0 and sum(wholes) < LARGEST_SUM:
        return tuple(wholes)
    total = math.fsum(weights)
    return tuple(max(1, round(weight / total * 2**30)) for weight in weights)


class Order:
    """The endless order of all sequences of some files."""

    def __init__(
        self, sizes: Sequence[int], *, seed: int, shuffle: bool = True, weights: Sequence[int] | None = None
    ) -> None:
        """Define an order.

        Args:
            sizes: sequences of each file, at least one in all; with weights, at least one in each.
            seed: any whole number; without shuffle it decides nothing.
            shuffle: False keeps the order of each file, in every epoch.
            weights: whole numbers above 0, of a sum below 2**31, for each file.
        """
        self.sizes, self.seed, self.shuffle = tuple(sizes), seed, shuffle
        self.weights = None if weights is None else tuple(weights)
        self.total = sum(sizes)
        self._firsts = np.array([0, *accumulate(sizes)], np.int64)
        self._thinned: tuple[Thinned | None, ...] = (None,) * (1 if weights is None else len(sizes))
        """Of each line that is permuted by itself, all files together or each file; None: nothing is left out of it."""

    def without(self, masks: Sequence[tuple[int, Sequence[Numbers]]]) -> Order:
        """This order, with rows left out.

        Args:
            masks: pairs of a place of the new order, ascending, and for each file the rows, ascending, that are left out
                from there on, beside those of the pairs before. With weights each file's own order is thinned, and what
                place is whose stays as it was; without, the one order of all files is.

        Raises:
            ValueError: nothing is left of a file with a weight, or of all files.
        """
        starts = [(self._own(place), rows if self.weights else [self._joined(rows)]) for place, rows in masks]
        thinned: list[Thinned | None] = []
        for number in range(len(self._thinned)):
            own = [(places[number], rows[number]) for places, rows in starts if len(rows[number])]
            thinned.append(Thinned(*self._line(number), self.shuffle, own) if own else None)
        order = Order(self.sizes, seed=self.seed, shuffle=self.shuffle, weights=self.weights)
        order._thinned = tuple(thinned)
        return order

    def left_of(self, places: int) -> int:
        """How many of the first `places` sequences are left, had nothing been left out: those of the end of an epoch."""
        return sum(
            own if thinned is None else thinned.left_before(own)
            for own, thinned in zip(self._own(places), self._thinned, strict=True)
        )

    def whole(self, place: int) -> int:
        """How many sequences would have been read before a place, had nothing been left out."""
        return sum(
            own if thinned is None else thinned.whole(np.array([own], np.int64)).item()
            for own, thinned in zip(self._own(place), self._thinned, strict=True)
        )

    def places(self, first: int, last: int) -> tuple[Numbers, Numbers]:
        """What stands at places first .. last - 1: (number of the file, row in it), int64[last - first] each."""
        at = np.arange(first, last, dtype=np.int64)
        if self.weights is None:
            rows = self._permuted(0, at)
            if len(self.sizes) == 1:
                return np.zeros(len(rows), np.int64), rows
            files = np.searchsorted(self._firsts, rows, side="right") - 1
            return files, rows - self._firsts[files]
        files, rows = np.zeros_like(at), np.empty_like(at)
        self._deal(0, len(self.sizes), at, np.arange(len(at)), files, rows)
        return files, rows

    def _deal(self, low: int, high: int, at: Numbers, where: Numbers, files: Numbers, rows: Numbers) -> None:
        """Fill `files` and `rows` at `where` with files low .. high - 1, whose own places are `at`."""
        assert self.weights is not None
        if high - low == 1:
            files[where] = low
            rows[where] = self._permuted(low, at)
            return
        middle = (low + high) // 2
        left, both = sum(self.weights[low:middle]), sum(self.weights[low:high])
        before = _share(at, left, both)
        goes_left = _share(at + 1, left, both) > before
        goes_right = ~goes_left
        if goes_left.any():
            self._deal(low, middle, before[goes_left], where[goes_left], files, rows)
        if goes_right.any():
            self._deal(middle, high, (at - before)[goes_right], where[goes_right], files, rows)

    def _own(self, place: int) -> list[int]:
        """How many of the places before one belong to each line."""
        if self.weights is None:
            return [place]
        found: list[int] = []
        waiting = [(0, len(self.sizes), np.array([place], np.int64))]
        while waiting:
            low, high, at = waiting.pop()
            if high - low == 1:
                found.append(at.item())
                continue
            middle = (low + high) // 2
            left = _share(at, sum(self.weights[low:middle]), sum(self.weights[low:high]))
            waiting += [(middle, high, at - left), (low, middle, left)]  # the left one is taken first
        return found

    def _joined(self, rows: Sequence[Numbers]) -> Numbers:
        """Rows of each file as rows of all files together."""
        return np.concatenate([own + first for own, first in zip(rows, self._firsts, strict=False)])

    def _line(self, number: int) -> tuple[int, int]:
        """Rows and seed of a line."""
        if self.weights is None:
            return self.total, self.seed
        key = f"corpusmill file 1 {self.seed} {number}".encode("ascii")
        return self.sizes[number], int.from_bytes(hashlib.sha256(key).digest()[:8], "little")

    def _permuted(self, number: int, at: Numbers) -> Numbers:
        """Row at each of some ascending places of the endless order of a line."""
        thinned = self._thinned[number]
        if thinned is not None and len(at):
            at = thinned.whole(at)
        n, seed = self._line(number)
        epochs = at // n
        within = at - epochs * n
        if not self.shuffle or not len(at):
            return within
        first, last = int(epochs[0]), int(epochs[-1])
        if first == last:
            return Permutation(n, seed, first).many(within)
        rows = np.empty_like(at)
        for epoch in range(first, last + 1):
            chosen = epochs == epoch
            rows[chosen] = Permutation(n, seed, epoch).many(within[chosen])
        return rows


class Ahead:
    """An order that is read from front to back, by one thread: the same places, worked out some at a time."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self._first = self._last = 0
        self._files = self._rows = np.zeros(0, np.int64)

    def places(self, first: int, last: int) -> tuple[Numbers, Numbers]:
        """As `Order.places`, in new arrays."""
        if not self._first <= first <= last <= self._last:
            self._first, self._last = first, max(last, first + AHEAD)
            self._files, self._rows = self._order.places(self._first, self._last)
        wanted = slice(first - self._first, last - self._first)
        return self._files[wanted].copy(), self._rows[wanted].copy()


def _share(at: Numbers, part: int, whole: int) -> Numbers:
    """round(at * part / whole) without a product above 63 bits."""
    times = at // whole
    return times * part + ((at - times * whole) * part + whole // 2) // whole
