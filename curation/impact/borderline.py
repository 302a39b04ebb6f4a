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
from curation.impact.side_rows import SideRows
from curation.report.samples import Place, Reservoir, priorities, salted, whole
from curation.verdicts import Filter
from curation.what_if_outcomes import score_batch
from curation.what_if_samples import score_of_reason

__all__ = ["Borderline", "changed_steps", "find_borderline"]

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


def changed_steps(comparison: Comparison) -> list[StepFacts]:
    """Steps of the new side that the base has, too, but with another version, other settings, models, limits or code."""
    found = []
    for step in comparison.new.steps:
        old = comparison.base.step(step.name)
        if old is not None and (old.version, old.code, dict(old.config), old.thresholds, old.score_digest) != (
            step.version, step.code, dict(step.config), step.thresholds, step.score_digest,
        ):  # fmt: skip
            found.append(step)
    return found


def find_borderline(comparison: Comparison, sides: tuple[SideRows, SideRows]) -> dict[str, dict[int, Borderline]]:
    """Rows of the table of documents by `kept` and `dropped`, each nearest first, with what they are near to."""
    held: dict[str, list[tuple[tuple[str, str], Reservoir]]] = {"kept": [], "dropped": []}
    near: dict[tuple[str, Place], Borderline] = {}
    base, new = sides
    for step in changed_steps(comparison):
        old = comparison.base.step(step.name)
        assert old is not None
        for score in _scores(old, step):
            reservoirs = {side: Reservoir(N_BORDER) for side in held}
            for index in range(len(new.shards)):
                if base.stands_at((index, 0)):
                    _offer(comparison, sides, (old, step), score, index, reservoirs, near)
            for side, reservoir in reservoirs.items():
                held[side].append(((step.name, score), reservoir))
    return {side: _chosen(comparison, reservoirs, near) for side, reservoirs in held.items()}


def _scores(old: StepFacts, new: StepFacts) -> list[str]:
    """Scores with limits that differ; where none does, all with limits."""
    limited = [name for name in new.units if new.thresholds.get(name) or old.thresholds.get(name)]
    moved = [name for name in limited if list(old.thresholds.get(name, ())) != list(new.thresholds.get(name, ()))]
    return moved or limited


def _offer(
    comparison: Comparison, sides: tuple[SideRows, SideRows], steps: tuple[StepFacts, StepFacts], score: str, index: int,
    reservoirs: Mapping[str, Reservoir], near: dict[tuple[str, Place], Borderline],
) -> None:  # fmt: skip
    """Offer the documents of one shard that both sides looked at and that stay where they are."""
    tables = [side.table(step, index) for side, step in zip(sides, steps, strict=True)]
    here = _of_shard(comparison, index)
    looked = [whole(table.column("keep")).is_valid().to_numpy(zero_copy_only=False) for table in tables]
    rows = here.column("row").to_numpy()
    both = looked[0][rows] & looked[1][rows]
    here, rows, table = here.filter(pa.array(both)), rows[both], tables[1]
    values = _values(table, score, rows)
    limits = [_limits(side, step, score, index, rows) for side, step in zip(sides, steps, strict=True)]
    stacked = np.concatenate(limits)  # float64[all limits of both sides, n]
    if not len(stacked) or not len(rows):
        return
    distances = np.abs(stacked - values)
    distances = np.where(np.isnan(distances), np.inf, distances)
    nearest = distances.argmin(axis=0)
    distance = distances[nearest, np.arange(len(rows))]
    same = (here.column("before").to_numpy() == here.column("after").to_numpy()) & np.isfinite(distance)
    keys = salted(priorities(whole(here.column("doc_id"))), f"{steps[1].name}.{score}")
    keep = whole(table.column("keep")).take(pa.array(rows)).to_numpy(zero_copy_only=False)
    masks = {
        "kept": same & (here.column("after").to_numpy() == 0) & keep,
        "dropped": same & _dropped_for(sides[1], steps[1], score, table, rows),
    }
    for side, mask in masks.items():
        at = np.flatnonzero(mask)
        reservoirs[side].offer(index, rows[at], keys[at], distance[at])
        for place in reservoirs[side].places:
            if place[0] == index and (score, place) not in near:
                i = int(np.searchsorted(rows, place[1]))
                near[score, place] = Borderline(steps[1].name, score, float(stacked[nearest[i], i]), float(values[i]))


def _of_shard(comparison: Comparison, index: int) -> pa.Table:
    """The documents of a shard, which follow each other in the table."""
    shards = comparison.documents.column("shard").to_numpy()
    first, end = (int(np.searchsorted(shards, index, side=side)) for side in ("left", "right"))
    return comparison.documents.slice(first, end - first).select(["row", "doc_id", "before", "after"])


def _values(table: pa.Table, score: str, rows: Rows) -> Doubles:
    """A score of some rows: float64[n], nan where it is null."""
    if score not in table.column_names:
        return np.full(len(rows), np.nan)
    column = whole(table.column(score)).take(pa.array(rows))
    return np.asarray(column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), np.float64)


def _limits(side: SideRows, step: StepFacts, score: str, index: int, rows: Rows) -> Doubles:
    """Limits that apply: float64[limits, n], nan where one does not."""
    known = side.object_of(step)
    if isinstance(known, Filter):
        by_row = known.limits_of(score_batch(known, side.table(step, index), rows))
        if score in by_row:
            return np.asarray(by_row[score], np.float64)[None, :]
    limits = [float(limit) for limit in step.thresholds.get(score, ())]
    return np.repeat(np.array(limits, np.float64)[:, None], len(rows), axis=1)


def _dropped_for(side: SideRows, step: StepFacts, score: str, table: pa.Table, rows: Rows) -> npt.NDArray[np.bool_]:
    """Which documents the step drops for this score: bool[n]; for any score where the reason names none."""
    known, names = side.object_of(step), list(step.units)
    reasons = whole(table.column("reason")).take(pa.array(rows))
    fits = [score_of_reason(known, str(reason), names) in (score, None) for reason in reasons.dictionary.to_pylist()]
    codes = reasons.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return np.append(np.array(fits, np.bool_), False)[codes]  # type: ignore[no-any-return]


def _chosen(
    comparison: Comparison,
    reservoirs: Sequence[tuple[tuple[str, str], Reservoir]],
    near: Mapping[tuple[str, Place], Borderline],
) -> dict[int, Borderline]:
    """At most `N_BORDER` rows, one of each score in turn."""
    shards = comparison.documents.column("shard").to_numpy()
    place_of_row = comparison.documents.column("row").to_numpy()
    found: dict[int, Borderline] = {}
    for turn in range(N_BORDER):
        for (_, score), reservoir in reservoirs:
            if turn >= len(reservoir.places) or len(found) >= N_BORDER:
                continue
            place = reservoir.places[turn]
            first, end = (int(np.searchsorted(shards, place[0], side=side)) for side in ("left", "right"))
            row = first + int(np.searchsorted(place_of_row[first:end], place[1]))
            found.setdefault(row, near[score, place])
    return found
