"""Strata of a sample: how documents are told apart, how many of each are drawn, and which: those with the smallest keys.

A stratum is language x source x length class x outcome. The smallest ones are put together until there is room for `LEAST`
documents of each in half of the sample; then every stratum gets `LEAST`, or all it has, and what is left goes by the square
root of sizes: so a rare language or reason is seen, and a large one still has most documents. A key is a hash, so which
documents are drawn depends on neither the order of files nor the number of workers. Memory: 24 bytes a document that may
still be drawn, of which a stratum has as many as the sample at most.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["LEAST", "OTHERS", "Drawn", "Reservoir", "Stratum", "allotted", "chosen", "combined"]

LEAST = 5
"""Documents of each stratum, where it has so many; together at most half of the sample."""
OTHERS = "others"
"""Stands for what was put together."""
_LOSES = ("source", "length", "language")
_ITEM = np.dtype([("key", np.uint64), ("shard", np.int32), ("row", np.int64)])


class Stratum(NamedTuple):
    """What documents of a stratum have in common."""

    language: str
    source: str
    length: str
    outcome: str

    @property
    def name(self) -> str:
        """In a sample's `sample.json`."""
        source = "other sources" if self.source == OTHERS else self.source
        length = "other lengths" if self.length == OTHERS else f"{self.length} characters"
        return f"{'other languages' if self.language == OTHERS else self.language}, {source}, {length}, {self.outcome}"


@dataclass
class Reservoir:
    """The documents of a stratum with the smallest keys, and how many it has in all."""

    most: int
    population: int = 0
    _parts: list[npt.NDArray[np.void]] = field(default_factory=list)
    _held: int = 0

    def add(self, keys: npt.NDArray[np.uint64], shard: int, rows: npt.NDArray[np.int64]) -> None:
        """Add documents of a shard."""
        part = np.empty(len(keys), _ITEM)
        part["key"], part["shard"], part["row"] = keys, shard, rows
        self._take(part, len(keys))

    def merge(self, other: Reservoir) -> None:
        """Add all documents of another stratum."""
        self._take(other.items(), other.population)

    def items(self) -> npt.NDArray[np.void]:
        """The documents held, smallest key first; equal keys by place."""
        found = np.concatenate(self._parts) if self._parts else np.empty(0, _ITEM)
        return np.sort(found, order=("key", "shard", "row"))[: self.most]

    def _take(self, part: npt.NDArray[np.void], population: int) -> None:
        self.population += population
        self._parts.append(
            part if len(part) <= self.most else np.sort(part, order=("key", "shard", "row"))[: self.most]
        )
        self._held += len(self._parts[-1])
        if self._held > 4 * self.most:
            self._parts = [self.items()]
            self._held = len(self._parts[0])


@dataclass(frozen=True, slots=True)
class Drawn:
    """A document of the sample."""

    shard: int
    row: int
    stratum: int


def combined(found: Mapping[Stratum, Reservoir], documents: int) -> dict[Stratum, Reservoir]:
    """Put the smallest strata together until half of `documents` suffice for LEAST of each.

    The smallest one loses its source, then its length class, then its language, until it meets another that lost the same.
    Outcomes stay apart. Reservoirs that are put together are changed.
    """
    strata = dict(found)
    waiting = [(reservoir.population, stratum) for stratum, reservoir in strata.items()]
    heapq.heapify(waiting)
    while waiting and 2 * len(strata) * LEAST > documents:
        population, stratum = heapq.heappop(waiting)
        part = next((part for part in _LOSES if getattr(stratum, part) != OTHERS), None)
        if part is None or stratum not in strata or strata[stratum].population != population:
            continue  # as wide as it may be, or put together since
        wider, reservoir = stratum._replace(**{part: OTHERS}), strata.pop(stratum)
        if wider in strata:
            strata[wider].merge(reservoir)
        else:
            strata[wider] = reservoir
        heapq.heappush(waiting, (strata[wider].population, wider))
    return strata


def allotted(populations: Sequence[int], documents: int) -> list[int]:
    """How many documents of each stratum are drawn: `documents` in all, or all there are.

    Args:
        populations: documents of each stratum, at least one.
    """
    sizes = np.array(populations, np.int64)
    if sizes.sum() <= documents:
        return [int(size) for size in sizes]
    least = min(LEAST, documents // len(sizes))
    count = np.minimum(sizes, least)
    roots = np.sqrt(sizes)
    # Whoever has no more to give leaves the rest to the others, so this comes to an end.
    while (left := documents - int(count.sum())) > 0:
        open_ = count < sizes
        wanted = left * roots * open_ / (roots * open_).sum()
        more = np.minimum(np.floor(wanted).astype(np.int64), sizes - count)
        if not more.any():
            order = np.lexsort((np.arange(len(sizes)), -wanted))
            more[order[open_[order]][:left]] = 1
        count += more
    return [int(one) for one in count]


def chosen(strata: Iterable[Reservoir], counts: Iterable[int]) -> list[Drawn]:
    """The documents drawn, in the run's order."""
    drawn = [
        Drawn(int(item["shard"]), int(item["row"]), number)
        for number, (reservoir, count) in enumerate(zip(strata, counts, strict=True))
        for item in reservoir.items()[:count]
    ]
    return sorted(drawn, key=lambda one: (one.shard, one.row))
