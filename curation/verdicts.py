"""The filter contract: a step scores documents, then decides; scores know no threshold.

A **filter** judges documents one by one. `score(batch)` may be slow and may use a model; it returns
the same rows in the same order. `decide(scores)` is pure, vectorised and cheap, and is the only
place that knows thresholds: a changed threshold is decided again from the stored scores.

A **data-set step** judges by looking at all documents, in passes over shards or hash partitions with
bounded memory, and ends in the same verdict files.

Every filter goes through one law test (tests/contract/test_every_filter.py).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pydantic import BaseModel, ConfigDict

from curation.records import PARTNER_COLUMNS, ScoreColumn, reason_type

if TYPE_CHECKING:
    from pathlib import Path

    from curation.steps import StepContext

__all__ = ["STAGES", "DataSetStep", "Decision", "Filter", "Step", "StepConfig", "decide_by_rules"]

STAGES = ("dedup", "language", "quality", "safety", "tokens")
"""Stages of the pipeline between ingest and pack, in the order in which they are cheapest."""


class StepConfig(BaseModel):
    """Base of every step's configuration: frozen, unknown keys refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    limits: ClassVar[frozenset[str]] = frozenset()
    """Settings that decide no verdict, only when to raise an alarm or to stop: not part of the step's digest."""
    paths: ClassVar[frozenset[str]] = frozenset()
    """Settings that hold paths, alone, in a list or in a mapping, as `key` or `key.key`: made absolute where the config is read."""
    names_or_paths: ClassVar[frozenset[str]] = frozenset()
    """The same for settings that may hold names too: made absolute where such a file or folder is there."""

    def deciding(self) -> dict[str, Any]:
        """The settings that decide verdicts, as plain data."""
        return self.model_dump(mode="json", exclude=set(self.limits))


@dataclass(frozen=True, slots=True)
class Decision:
    """Verdicts of one batch.

    keep: bool[n], no nulls. reason: int16[n], index into the step's `reasons`, -1 where kept.
    """

    keep: npt.NDArray[np.bool_]
    reason: npt.NDArray[np.int16]

    def reason_array(self, reasons: Sequence[str]) -> pa.DictionaryArray:
        """The reasons as Arrow dictionary, null where kept."""
        indices = pa.array(self.reason, mask=self.reason < 0, type=pa.int16())
        return pa.DictionaryArray.from_arrays(indices, pa.array(list(reasons), pa.string())).cast(reason_type())


def decide_by_rules(n_rows: int, reasons: Sequence[str], hits: Mapping[str, npt.NDArray[np.bool_]]) -> Decision:
    """A decision where each rule that hits drops; if several hit, the first in `reasons` is named.

    Args:
        n_rows: rows of the batch.
        reasons: the step's closed list, in order of priority.
        hits: for each reason that can fire, bool[n_rows]. A reason that is not a key never fires.
    """
    unknown = set(hits) - set(reasons)
    assert not unknown, f"reasons {sorted(unknown)} are not declared"
    reason = np.full(n_rows, -1, np.int16)
    for index in range(len(reasons) - 1, -1, -1):
        if reasons[index] in hits:
            reason[hits[reasons[index]]] = index
    return Decision(keep=reason < 0, reason=reason)


class Step(ABC):
    """What every step declares. The name is also YAML key, module, folder and docs heading."""

    name: ClassVar[str]
    version: ClassVar[int]
    """Raised whenever the same input and config may give another result."""
    stage: ClassVar[str]
    """Where it belongs in `STAGES`; the YAML's order still decides what runs after what."""
    summary: ClassVar[str]
    """One sentence for reports and the reference."""
    needs: ClassVar[tuple[str, ...]]
    """Columns it reads: of the shard; and, for a filter, scores of earlier steps, as `step.score`.

    A score that no earlier step has made, since the config has no such step before this one, is null in all rows.
    """
    reasons: ClassVar[Mapping[str, str]]
    """`name.why` -> one sentence, in order of priority. Closed: no other reason can occur."""
    Config: ClassVar[type[StepConfig]]

    def __init__(self, config: StepConfig) -> None:
        self.config = config

    def model_checksums(self) -> Mapping[str, str]:
        """Checksums of whatever else decides the result: models, word lists. Part of the digest."""
        return {}

    def ready(self) -> None:
        """Look at whatever lies outside of config and inputs, before anything is read: it may be missing or not fit.

        Raises:
            ConfigError: the step cannot work with what is there.
        """
        self.model_checksums()

    def pinned(self, root: Path, former: StepConfig | None) -> Step:
        """The step with all settled that its settings leave open until a run starts; most leave nothing open.

        Args:
            root: folder of all runs.
            former: its settings in an earlier start of this very run: what was settled then stays. None: this is the first.

        Raises:
            ConfigError, RunError: what it needs for that is not there, or damaged.
        """
        return self

    @property
    @abstractmethod
    def score_columns(self) -> Sequence[ScoreColumn]:
        """The scores it stores, in order."""

    def thresholds(self) -> Mapping[str, Sequence[float]]:
        """For each score column the thresholds that this config applies, for the report's drawings."""
        return {}

    def off_reasons(self) -> Collection[str] | None:
        """Reasons that these settings never give, so that their silence in a report says nothing; None: it cannot tell."""
        return None

    def misses(self, before: Sequence[Step]) -> list[str]:
        """What this step needs of the steps before it in the config and does not find: one sentence each."""
        return []

    def score_config(self) -> Mapping[str, Any]:
        """The part of the config that changes scores. Everything else is a threshold."""
        return {}


class Filter(Step):
    """A step that judges documents one by one."""

    @abstractmethod
    def score(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Score columns of a batch with the columns in `needs`: same rows, same order.

        `text` is large_string without nulls; the batch may be empty and may be a slice.
        A score that is undefined is null, never nan.
        """

    @abstractmethod
    def decide(self, scores: pa.RecordBatch) -> Decision:
        """Verdicts from score columns alone. Null scores get a reason or a stated policy."""

    def limits_of(self, scores: pa.RecordBatch) -> Mapping[str, npt.NDArray[np.float64]]:
        """For scores whose limit differs from document to document, the one that applies: float64[n_rows], nan where none does.

        Scores that are no key have the limits of `thresholds`.
        """
        return {}

    def score_of(self, reason: str) -> str | None:
        """The score that a reason is about; None where its name says so (`length.too_short` is not, `rules.links` is)."""
        return None

    def facts(self, tables: Iterator[pa.Table]) -> dict[str, Any]:
        """What the report says about the step beside its verdicts: plain data, as `DataSetStep.facts` gives it.

        Called when all verdicts stand.

        Args:
            tables: the step's verdict files in order, one table each; rows it did not look at have no `keep`.
        """
        return {}

    def route_of(self, scores: pa.RecordBatch) -> list[str | None]:
        """The named output that each document is set aside for; None where it is set aside for none.

        Asked of documents that `decide` dropped with the reason `NAME.routed`, with the same scores, and only of them; each
        must get a name. Pure, as `decide` is. The names stand in the config, as `route:NAME`. A step that sets nothing aside
        leaves this as it is.
        """
        return [None] * scores.num_rows


class DataSetStep(Step):
    """A step that judges by looking at all documents, in passes with bounded memory.

    `passes` names the work before the verdicts. For each pass, `n_items` says how many independent
    items it has, and `run_item` does one: it reads shards or the files of an earlier pass in
    `context.folder` and publishes its result there atomically. An item is a function of its inputs,
    may run twice at once, and is skipped by the runner once its marker stands.
    """

    passes: ClassVar[tuple[str, ...]]
    lasting: ClassVar[tuple[str, ...]] = ()
    """Passes whose files stay in the step's folder when it is closed; those of the others are deleted."""

    @property
    def score_columns(self) -> Sequence[ScoreColumn]:
        return PARTNER_COLUMNS

    @abstractmethod
    def n_items(self, pass_name: str, context: StepContext) -> int:
        """Number of independent items of a pass. A function of the shards and config only."""

    @abstractmethod
    def run_item(self, pass_name: str, item: int, context: StepContext) -> None:
        """Do one item of a pass."""

    @abstractmethod
    def verdicts(self, shard: int, context: StepContext) -> tuple[Decision, pa.RecordBatch]:
        """Decision and score columns for the living rows of one shard, in row order."""

    def preflight(self, context: StepContext) -> dict[str, Any]:
        """What the passes will need, estimated before the first: kept beside their files; `summary` is logged.

        Raises:
            RunError: it cannot work with the memory or the disk that there is.
        """
        return {}

    def facts(self, context: StepContext) -> dict[str, Any]:
        """What the report says about the step beside its verdicts: plain data, read from the files of the passes.

        Called when all verdicts stand. `alarms`, if it is there, is a list of sentences that a reader must see.

        Raises:
            RunError: the verdicts are such that the run should stop for a look.
        """
        return {}
