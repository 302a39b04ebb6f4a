"""Documents that stay where they are, but are near to a limit of a changed filter: what a slightly other limit would move.

One pass over the verdict files of the filters whose settings, limits or code differ; memory is one shard's scores. Distances
are taken to the limits of both sides, document by document where the filter can say which apply to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curation.impact.facts import Comparison, StepFacts
from curation.impact.shown.side_rows import SideRows, changed_steps
from curation.report.samples import Place, Reservoir, priorities, salted, whole
from curation.what_if_outcomes import score_batch
from curation.what_if_samples import score_of_reason

__all__ = ["Borderline", "find_borderline"]

N_BORDER = 6
"""Borderline documents that are kept, and that are dropped."""

Doubles = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Borderline:
    """What a document is near to."""

    step: str
    score: str
    limit: float
    """Of either side, the nearer one."""
    value: float


def find_borderline(comparison: Comparison, sides: tuple[SideRows, SideRows]) -> dict[str, dict[int, Borderline]]:
    """Rows of the table of documents by `kept` and `dropped`, each nearest first, with what they are near to."""
    held: dict[str, list[tuple[str, Reservoir]]] = {"kept": [], "dropped": []}
    near: dict[tuple[str, Place], Borderline] = {}
    for step in changed_steps(comparison):
        old = comparison.base.step(step.name)
        assert old is not None
        scores = _scores(old, step)
        reservoirs = {(side, score): Reservoir(N_BORDER) for side in held for score in scores}
        for index in range(len(sides[1].shards)):
            if sides[0].stands_at((index, 0)):
                shard = _Shard(comparison, sides, (old, step), index)
                for score in scores:
                    shard.offer(score, {side: reservoirs[side, score] for side in held}, near)
        for (side, score), reservoir in reservoirs.items():
            held[side].append((f"{step.name}.{score}", reservoir))
    return {side: _chosen(comparison, reservoirs, near) for side, reservoirs in held.items()}


def _scores(old: StepFacts, new: StepFacts) -> list[str]:
    """Scores with limits that differ; where none does, all with limits."""
    limited = [name for name in new.units if new.thresholds.get(name) or old.thresholds.get(name)]
    moved = [name for name in limited if list(old.thresholds.get(name, ())) != list(new.thresholds.get(name, ()))]
    return moved or limited


class _Shard:
    """The documents of one shard that both sides looked at."""

    def __init__(
        self,
        comparison: Comparison,
        sides: tuple[SideRows, SideRows],
        steps: tuple[StepFacts, StepFacts],
        index: int,
    ) -> None:
        tables = [side.table(step, index) for side, step in zip(sides, steps, strict=True)]
        here = _of_shard(comparison, index)
        looked = [whole(table.column("keep")).is_valid().to_numpy(zero_copy_only=False) for table in tables]
        rows = here.column("row").to_numpy()
        both = looked[0][rows] & looked[1][rows]
        here, self._rows = here.filter(pa.array(both)), rows[both]
        self._index, self._steps, self._table = index, steps, tables[1].take(pa.array(self._rows))
        self._keys = priorities(whole(here.column("doc_id")))
        before, after = (here.column(side).to_numpy() for side in ("before", "after"))
        keep = whole(self._table.column("keep")).to_numpy(zero_copy_only=False)
        self._stays = {"kept": (before == after) & (after == 0) & keep, "dropped": before == after}
        self._by_row = [
            known.limits_of(score_batch(known, table, self._rows))
            if (known := side.limits_by_row(step)) is not None
            else {}
            for side, step, table in zip(sides, steps, tables, strict=True)
        ]
        self._known = sides[1].object_of(steps[1])

    def offer(self, score: str, reservoirs: Mapping[str, Reservoir], near: dict[tuple[str, Place], Borderline]) -> None:
        """Offer those that stay where they are by their distance to the nearest limit of a score."""
        limits = np.concatenate([self._limits(side, score) for side in (0, 1)])  # float64[all limits of both sides, n]
        if not len(limits) or not len(self._rows):
            return
        values = _values(self._table, score)
        distances = np.abs(limits - values)
        distances = np.where(np.isnan(distances), np.inf, distances)
        nearest = distances.argmin(axis=0)
        distance = distances[nearest, np.arange(len(values))]
        keys = salted(self._keys, f"{self._steps[1].name}.{score}")
        for side, reservoir in reservoirs.items():
            mask = self._stays[side] & np.isfinite(distance)
            at = np.flatnonzero(mask if side == "kept" else mask & self._dropped_for(score))
            reservoir.offer(self._index, self._rows[at], keys[at], distance[at])
            for place in reservoir.places:
                if place[0] == self._index:
                    i = int(np.searchsorted(self._rows, place[1]))
                    name = self._steps[1].name
                    near[f"{name}.{score}", place] = Borderline(
                        name, score, float(limits[nearest[i], i]), float(values[i])
                    )

    def _limits(self, side: int, score: str) -> Doubles:
        """Limits of a side that apply: float64[limits, n], nan where one does not."""
        if score in self._by_row[side]:
            return np.asarray(self._by_row[side][score], np.float64)[None, :]
        limits = [float(limit) for limit in self._steps[side].thresholds.get(score, ())]
        return np.repeat(np.array(limits, np.float64)[:, None], len(self._rows), axis=1)

    def _dropped_for(self, score: str) -> npt.NDArray[np.bool_]:
        """Which documents the step drops for a score: bool[n]; for any where the reason names none."""
        reasons = whole(self._table.column("reason"))
        names = list(self._steps[1].units)
        told = [score_of_reason(self._known, str(reason), names) for reason in reasons.dictionary.to_pylist()]
        fits = np.append(np.array([one in (score, None) for one in told], np.bool_), False)
        found: npt.NDArray[np.bool_] = fits[reasons.indices.fill_null(-1).to_numpy(zero_copy_only=False)]
        return found


def _of_shard(comparison: Comparison, index: int) -> pa.Table:
    """The documents of a shard, which follow each other in the table."""
    shards = comparison.documents.column("shard").to_numpy()
    first, end = (int(np.searchsorted(shards, index, side=side)) for side in ("left", "right"))
    return comparison.documents.slice(first, end - first).select(["row", "doc_id", "before", "after"])


def _values(table: pa.Table, score: str) -> Doubles:
    """A score: float64[n], nan where it is null."""
    if score not in table.column_names:
        return np.full(table.num_rows, np.nan)
    column = whole(table.column(score)).cast(pa.float64(), safe=False)
    return np.asarray(column.to_numpy(zero_copy_only=False), np.float64)


def _chosen(
    comparison: Comparison,
    reservoirs: Sequence[tuple[str, Reservoir]],
    near: Mapping[tuple[str, Place], Borderline],
) -> dict[int, Borderline]:
    """At most `N_BORDER` rows, one of each score in turn."""
    shards = comparison.documents.column("shard").to_numpy()
    place_of_row = comparison.documents.column("row").to_numpy()
    found: dict[int, Borderline] = {}
    for turn in range(N_BORDER):
        for name, reservoir in reservoirs:
            if turn >= len(reservoir.places) or len(found) >= N_BORDER:
                continue
            place = reservoir.places[turn]
            first, end = (int(np.searchsorted(shards, place[0], side=side)) for side in ("left", "right"))
            row = first + int(np.searchsorted(place_of_row[first:end], place[1]))
            found.setdefault(row, near[name, place])
    return found
