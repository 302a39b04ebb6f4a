"""The documents of a comparison, summed up by all that a sheet tells them apart by: a cell a combination.

A million documents of a drawn sample become some ten thousand cells, and each of the thousands of intervals of a sheet costs a
look at these (some 50 us for two thousand documents). Documents are taken in the order of their ids, and outcomes in that of
their names, so that no number depends on the order of shards.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from curation.errors import InputError
from curation.impact.counting.figure_types import MEASURES
from curation.impact.facts import KEPT, Outcome

__all__ = ["Cells", "cells_of"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

KEYS = ("stratum", "before", "after", "language", "source", "length", "label")


@dataclass(frozen=True)
class Cells:
    """`n` cells. Arrays by measure have the order of MEASURES; weights are documents of the corpus."""

    keys: dict[str, Ints]
    """By name of KEYS codes[n]: `before` and `after` are places in `outcomes`, the others places in `names`; -1 is null."""
    names: dict[str, Sequence[str]]
    """Of languages, sources, lengths and labels, sorted."""
    counts: Ints
    """[3, n]: documents, characters, tokens"""
    amounts: Floats
    """[3, n]: the same by weights"""
    squares: Floats
    """[3, 3, n]: sums of weight squared times one measure times another"""
    heaviest: Floats
    """[n]: largest weight of a document"""
    strata: Ints
    """[n]: place of the stratum, where those of a single document are one together"""
    stratum_sizes: Floats
    """Documents by place of stratum"""
    weighted: bool
    """Whether weights or strata differ"""
    outcomes: Sequence[Outcome]
    """KEPT first, the others by name"""

    def __len__(self) -> int:
        return len(self.heaviest)

    def only(self, rows: Mask) -> Cells:
        """Some of the cells. Their strata are those of the whole sample: how many of one lie within is chance as well."""
        return replace(
            self,
            keys={key: values[rows] for key, values in self.keys.items()},
            counts=self.counts[:, rows],
            amounts=self.amounts[:, rows],
            squares=self.squares[:, :, rows],
            heaviest=self.heaviest[rows],
            strata=self.strata[rows],
        )

    def where(self, key: str, name: str) -> Mask:
        """Cells of one language, source, length or label."""
        names = list(self.names[key])
        found: Mask = self.keys[key] == (names.index(name) if name in names else -2)
        return found

    @property
    def all(self) -> Mask:
        return np.ones(len(self), np.bool_)

    def kept(self, side: str) -> Mask:
        """Cells that are kept on a side, `before` or `after`."""
        return self._with(side, lambda outcome: outcome == KEPT)

    def dropped_by(self, side: str, step: str) -> Mask:
        """Cells that a step drops on a side."""
        return self._with(side, lambda outcome: outcome.step == step)

    def dropped_for(self, side: str, reason: str) -> Mask:
        """Cells that are dropped for a reason on a side."""
        return self._with(side, lambda outcome: outcome.reason == reason)

    def _with(self, side: str, holds: Callable[[Outcome], bool]) -> Mask:
        fitting = np.array([holds(outcome) for outcome in self.outcomes], np.bool_)
        found: Mask = fitting[self.keys[side]]
        return found


def cells_of(documents: pa.Table, outcomes: Sequence[Outcome]) -> Cells:
    """Sum up the documents of a comparison (DOCUMENTS_SCHEMA).

    Args:
        outcomes: by number.

    Raises:
        InputError: a weight is not a positive finite number, a length is negative, an outcome has no number.
    """
    documents = documents.sort_by("doc_id")
    keys: dict[str, Ints] = {}
    names: dict[str, Sequence[str]] = {}
    for key in KEYS:
        column = documents.column(key)
        if pa.types.is_integer(column.type):
            keys[key] = column.to_numpy().astype(np.int64)
        else:
            names[key] = sorted(pc.unique(column.drop_null()).to_pylist())
            places = pc.index_in(column, value_set=pa.array(names[key], column.type))
            keys[key] = places.fill_null(-1).to_numpy().astype(np.int64)
    weights = documents.column("weight").to_numpy().astype(np.float64)
    lengths = [documents.column(name).to_numpy() for name in MEASURES[1:]]
    measures = np.stack([np.ones(len(weights), np.int64), *lengths]).astype(np.int64)
    _check(documents, weights, measures, keys, len(outcomes))
    known = sorted(set(outcomes), key=lambda one: (one != KEPT, one.step or "", one.reason or ""))
    places = np.array([known.index(outcome) for outcome in outcomes], np.int64)
    keys |= {side: places[keys[side]] for side in ("before", "after")}
    return _summed(keys, names, weights, measures, known)


def _summed(
    keys: dict[str, Ints],
    names: dict[str, Sequence[str]],
    weights: Floats,
    measures: Ints,
    outcomes: Sequence[Outcome],
) -> Cells:
    first, place = _combinations(keys)
    n = len(first)
    weighed = weights * measures
    counts = np.zeros((len(MEASURES), n), np.int64)
    for measure, values in enumerate(measures):
        np.add.at(counts[measure], place, values)  # in whole numbers: bincount would round beyond 2^53
    amounts = np.stack([np.bincount(place, row, n) for row in weighed]).astype(np.float64)
    squares = np.array([[np.bincount(place, a * b, n) for b in weighed] for a in weighed], np.float64)
    heaviest = np.zeros(n)
    np.maximum.at(heaviest, place, weights)
    cell_keys = {key: values[first] for key, values in keys.items()}
    strata, sizes = _strata(cell_keys["stratum"], counts[0])
    weighted = bool(len(weights)) and (len(sizes) > 1 or bool((weights != 1).any()))
    return Cells(cell_keys, names, counts, amounts, squares, heaviest, strata, sizes, weighted, outcomes)


def _combinations(keys: dict[str, Ints]) -> tuple[Ints, Ints]:
    """The first document of each combination of keys, and the combination of each document."""
    code = np.zeros(len(keys["stratum"]), np.int64)
    for values in keys.values():
        # Made dense after each key, so that the product cannot overflow.
        _, dense = np.unique(values, return_inverse=True)
        _, code = np.unique(code * (int(dense.max(initial=0)) + 1) + dense, return_inverse=True)
    _, first, place = np.unique(code, return_index=True, return_inverse=True)
    return first, place


def _strata(stratum: Ints, documents: Ints) -> tuple[Ints, Floats]:
    """Place of each cell's stratum, and documents by place.

    One document says nothing of how much its stratum varies: all strata of one are taken as one stratum.
    """
    _, place = np.unique(stratum, return_inverse=True)
    sizes = np.bincount(place, documents)
    lone = sizes == 1
    if lone.sum() > 1:
        target = np.where(lone, int(np.flatnonzero(lone)[0]), np.arange(len(sizes)))
        _, place = np.unique(target[place], return_inverse=True)
        sizes = np.bincount(place, documents)
    return place, sizes.astype(np.float64)


def _check(documents: pa.Table, weights: Floats, measures: Ints, keys: dict[str, Ints], outcomes: int) -> None:
    wrong = {
        "weight": (~np.isfinite(weights) | (weights <= 0), "a positive finite number"),
        "characters": (measures[1] < 0, "0 or more"),
        "tokens": (measures[2] < 0, "0 or more"),
        "before": ((keys["before"] < 0) | (keys["before"] >= outcomes), f"the number of one of {outcomes} outcomes"),
        "after": ((keys["after"] < 0) | (keys["after"] >= outcomes), f"the number of one of {outcomes} outcomes"),
    }
    for name, (bad, expected) in wrong.items():
        if bad.any():
            row = int(np.flatnonzero(bad)[0])
            raise InputError(
                f"document {documents.column('id')[row].as_py()!r} of the sample: {name} is "
                f"{documents.column(name)[row].as_py()}, expected {expected}. Draw the sample anew, or correct its field."
            )
