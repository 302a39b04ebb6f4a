"""What becomes of each document of a shard, in the run and in question: one small number a document.

Nothing is asked of a step again but `decide` and `route_of` of those whose settings differ, and only of documents of
which they have scores. A document that would now pass a step it had failed has no scores at the steps behind it: these
would have to judge it first, and that is what becomes of it. Costs a look at `keep` and `reason` of each verdict file,
and at the scores of the steps in question; memory is one shard's verdicts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curation.errors import RunError
from curation.report.samples import whole
from curation.routes import ROUTED_SUFFIX
from curation.shards import Shard, item_marker, open_table
from curation.steps import PlacedStep
from curation.verdicts import Filter, Step

__all__ = ["KEPT", "Outcome", "Outcomes", "Redecided", "redecide", "score_batch", "verdict_table"]

Mask = npt.NDArray[np.bool_]
Codes = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What becomes of a document: kept, dropped by a step, set aside for an output, or not decided yet."""

    step: str | None = None
    """That drops it, or that lets it in; None if nothing does."""
    reason: str | None = None
    route: str | None = None
    """The output that it is set aside for."""
    waiting: tuple[str, ...] = ()
    """Steps that would have to judge it first, in order."""

    @property
    def side(self) -> str:
        """kept, dropped, set aside or waiting."""
        if self.waiting:
            return "waiting"
        if self.route is not None:
            return "set aside"
        return "kept" if self.reason is None else "dropped"

    @property
    def words(self) -> str:
        """The outcome in a table."""
        if self.waiting:
            return f"would come in, not judged yet by {', '.join(self.waiting)}"
        if self.route is not None:
            return f"set aside for {self.route} ({self.reason})"
        return self.reason or "kept"


KEPT = Outcome()


class Outcomes:
    """Outcomes by number; 0 is `KEPT`."""

    def __init__(self) -> None:
        self._numbers: dict[Outcome, int] = {KEPT: 0}
        self.all: list[Outcome] = [KEPT]

    def number(self, outcome: Outcome) -> int:
        """The number of an outcome, a new one if it is new."""
        if outcome not in self._numbers:
            self._numbers[outcome] = len(self.all)
            self.all.append(outcome)
        return self._numbers[outcome]


@dataclass(frozen=True)
class Redecided:
    """One shard decided twice; all arrays are as long as the shard."""

    before: Codes
    """Outcome of each document in the run."""
    after: Codes
    """The same with other settings, as far as saved scores say it."""
    reached: Mapping[int, Mask] = field(default_factory=dict)
    """For each data-set step, by its place: which of the documents that it looked at would surely reach it again."""
    tables: Sequence[pa.Table] = ()
    """The verdict files, by place of the step."""


def redecide(
    placed: Sequence[PlacedStep], changed: Mapping[int, Filter], shard: Shard, outcomes: Outcomes
) -> Redecided:
    """Decide one shard of a finished run with other settings.

    Args:
        changed: filters with their new settings, by place.

    Raises:
        RunError: a verdict file is missing, damaged or speaks of another version of the shard.
    """
    before, after = np.zeros(shard.rows, np.int32), np.zeros(shard.rows, np.int32)
    alive = np.ones(shard.rows, np.bool_)
    names = [one.name for one in placed]
    reached: dict[int, Mask] = {}
    tables = []
    for index, one in enumerate(placed):
        table = verdict_table(one, shard)
        tables.append(table)
        looked = _mask(whole(table.column("keep")).is_valid())
        dropped = _old_drops(one, table, outcomes, before)
        # What an earlier step had dropped has no scores here: let in now, it waits for this step and all behind it.
        waits = alive & ~looked
        if waits.any():
            after[waits] = outcomes.number(Outcome(names[index - 1], waiting=tuple(names[index:])))
        alive &= looked
        if not isinstance(one.step, Filter):
            reached[index] = alive.copy()
        if index in changed:
            rows = np.flatnonzero(alive)
            codes = _decide(changed[index], table, rows, outcomes)
            after[rows] = codes
            alive[rows] = codes == 0
        else:
            after[alive & dropped] = before[alive & dropped]
            alive &= ~dropped
    return Redecided(before, after, reached, tables)


def verdict_table(placed: PlacedStep, shard: Shard) -> pa.Table:
    """The verdict file of a step, mapped and checked.

    Raises:
        RunError: it is missing, damaged or speaks of another version of the shard.
    """
    marker = item_marker(placed.folder, shard.name)
    table = open_table(placed.folder / f"{shard.name}.arrow", marker["verdict_sha256"], shard.rows).read_all()
    if marker["shard_sha256"] != shard.sha256:
        raise RunError(
            f"{placed.folder / shard.name}.arrow speaks about another version of shard {shard.name}: "
            f"delete {placed.folder} and run the same command again."
        )
    return table


def score_batch(step: Step, table: pa.Table, rows: npt.NDArray[np.int64]) -> pa.RecordBatch:
    """The step's scores of some rows of its verdict file.

    Raises:
        RunError: it holds other scores than this version of the step.
    """
    names = [score.name for score in step.score_columns]
    missing = [name for name in names if name not in table.column_names]
    if missing:
        raise RunError(
            f"the verdict files of step {step.name} hold no score {missing[0]!r}: they were written by another version of "
            "the step. Run it anew with --new."
        )
    chosen = table.select(names)
    if len(rows) < table.num_rows:
        chosen = chosen.take(pa.array(rows))
    return pa.RecordBatch.from_arrays([whole(column) for column in chosen.columns], names=names)


def _old_drops(placed: PlacedStep, table: pa.Table, outcomes: Outcomes, before: Codes) -> Mask:
    """Put the outcome of each document that the step dropped into `before`; returns which they are."""
    reason = whole(table.column("reason"))
    numbers = _numbers(placed.step, reason.dictionary.to_pylist(), outcomes)
    codes = reason.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    dropped: Mask = codes >= 0
    if dropped.any():
        before[dropped] = numbers[codes[dropped]]
        routed = np.flatnonzero(dropped & np.isin(codes, _routed(placed.step, reason.dictionary.to_pylist())))
        if len(routed):
            assert isinstance(placed.step, Filter)
            before[routed] = _routes(placed.step, score_batch(placed.step, table, routed), outcomes)
    return dropped


def _decide(step: Filter, table: pa.Table, rows: npt.NDArray[np.int64], outcomes: Outcomes) -> Codes:
    """What the step says with its new settings of some rows: int32[n], the numbers of their outcomes."""
    scores = score_batch(step, table, rows)
    decision = step.decide(scores)
    reasons = list(step.reasons)
    codes = np.append(_numbers(step, reasons, outcomes), np.int32(0))[decision.reason]
    routed = np.flatnonzero(np.isin(decision.reason, _routed(step, reasons)))
    if len(routed):
        codes[routed] = _routes(step, scores.take(pa.array(routed)), outcomes)
    return np.asarray(codes, np.int32)


def _numbers(step: Step, reasons: Sequence[str], outcomes: Outcomes) -> Codes:
    return np.array([outcomes.number(Outcome(step.name, reason)) for reason in reasons], np.int32)


def _routed(step: Step, reasons: Sequence[str]) -> list[int]:
    """Place of the reason that says that a document is set aside, if the step has one."""
    name = f"{step.name}{ROUTED_SUFFIX}"
    return [place for place, reason in enumerate(reasons) if reason == name and isinstance(step, Filter)]


def _routes(step: Filter, scores: pa.RecordBatch, outcomes: Outcomes) -> Codes:
    reason = f"{step.name}{ROUTED_SUFFIX}"
    return np.array([outcomes.number(Outcome(step.name, reason, route)) for route in step.route_of(scores)], np.int32)


def _mask(values: pa.Array) -> Mask:
    found: Mask = values.to_numpy(zero_copy_only=False).astype(np.bool_)
    return found
