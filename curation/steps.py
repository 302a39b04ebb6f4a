"""From the config's list of steps to step objects, their digests and their folders.

The digest of a step names everything that decides its verdicts: name, version, config, model
checksums and the digest of the step before it. Same folder = same result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa

from curation.dedup import DATA_SET_STEPS
from curation.errors import ConfigError, nearest
from curation.filters import FILTERS
from curation.ids import digest8
from curation.run import Run, read_json
from curation.shards import Shard, open_table, shards_of
from curation.verdicts import STAGES, Step

__all__ = [
    "STEPS",
    "PlacedStep",
    "StepContext",
    "context_of",
    "earlier_score",
    "place_steps",
    "stage_of_each",
    "step_class",
]

STEPS: dict[str, str] = {**DATA_SET_STEPS, **FILTERS}
"""Every step by name: the import path of its class."""


@cache
def step_class(name: str) -> type[Step]:
    """The class of a step.

    Raises:
        ConfigError: there is no such step; the message names the nearest one.
    """
    if name not in STEPS:
        raise ConfigError(f"unknown step {name!r}{nearest(name, STEPS)}. Known steps: {', '.join(sorted(STEPS))}.")
    module, _, attribute = STEPS[name].partition(":")
    found: type[Step] = getattr(import_module(module), attribute)
    assert found.name == name, f"{STEPS[name]} calls itself {found.name!r}"
    return found


def earlier_score(need: str) -> tuple[str, pa.DataType] | None:
    """What an entry of `Filter.needs` asks of an earlier step: that step's name and the type of the score.

    Returns:
        None for a column of the shard, which has no dot in its name.

    Raises:
        ConfigError: there is no such step, or it has no such score.
    """
    name, dot, score = need.partition(".")
    if not dot:
        return None
    kind = step_class(name)
    types = {column.name: column.type for column in kind(kind.Config()).score_columns}
    if score not in types:
        raise ConfigError(f"step {name!r} has no score {score!r}{nearest(score, types)}. It has: {', '.join(types)}.")
    return name, types[score]


@dataclass(frozen=True)
class PlacedStep:
    """A step in its place in a run."""

    index: int
    """0-based position in the config's list."""
    step: Step
    digest: str
    score_digest: str
    """Digest of what decides the scores: equal for two configs that differ in thresholds only."""
    folder: Path
    previous: Path | None
    """Folder of the step before, whose kept documents this one looks at. None: all documents."""
    earlier: Mapping[str, Path] = field(default_factory=dict)
    """Folders of all steps before this one, by name."""
    models: Mapping[str, str] = field(default_factory=dict)
    """Checksums of whatever else decides the result."""

    @property
    def name(self) -> str:
        return self.step.name


@dataclass(frozen=True)
class StepContext:
    """What a data-set step is given: the shards, who is alive, and a folder for the files of its passes."""

    shards: Sequence[Shard]
    previous: Path | None
    """Folder of the step before; see `shards.alive_mask`."""
    folder: Path
    memory_mb: int
    earlier: Mapping[str, Path] = field(default_factory=dict)
    """Folders of all steps before this one, by name: their scores may be read."""

    def item_path(self, pass_name: str, item: int) -> Path:
        """Where an item of a pass is published."""
        return self.folder / pass_name / f"{item:05d}.arrow"

    def item_marker_path(self, pass_name: str, item: int) -> Path:
        return self.folder / pass_name / "_items" / f"{item:05d}.json"

    def item_rows(self, pass_name: str, item: int) -> int:
        """Rows of what an item published, by its marker.

        Raises:
            RunError: the item is not done.
        """
        return int(read_json(self.item_marker_path(pass_name, item))["rows"])

    def open_item(self, pass_name: str, item: int) -> pa.Table:
        """Map what an item published, after checking it against its marker.

        Raises:
            RunError: the item is not done, or damaged.
        """
        marker = read_json(self.item_marker_path(pass_name, item))
        return open_table(self.item_path(pass_name, item), marker["sha256"]).read_all()


def context_of(run: Run, placed: PlacedStep, shards: Sequence[Shard], memory_mb: int) -> StepContext:
    """The context of a data-set step. What its passes write depends on the memory they may use, so the folder names it."""
    folder = run.work / f"{placed.folder.name}-{memory_mb}mb"
    return StepContext(shards, placed.previous, folder, memory_mb, placed.earlier)


def place_steps(run: Run, steps: Sequence[Step], *, judge_all: bool = False) -> list[PlacedStep]:
    """Give each step its digest and folder, chained from the digest of the shards.

    Args:
        judge_all: every step looks at every document, as if it stood alone (`corpusmill judge`).
    """
    shards = digest8([[s.name, s.sha256] for s in shards_of(run)])
    previous_digest, previous = shards, None
    placed: list[PlacedStep] = []
    for index, step in enumerate(steps):
        reads = _reads(step, placed)
        models = _models(run, index, step, previous_digest, reads)
        digest = _digest(step, models, previous_digest, reads)
        scored = {**_identity(step, models, reads), "config": dict(step.score_config()), "shards": shards}
        score_digest = digest8(scored)
        folder = run.steps / f"{index + 1:02d}-{step.name}-{digest}"
        earlier = {before.name: before.folder for before in placed}
        placed.append(PlacedStep(index, step, digest, score_digest, folder, previous, earlier, models))
        if not judge_all:
            previous_digest, previous = digest, folder
    return placed


def _reads(step: Step, before: Sequence[PlacedStep]) -> dict[str, str]:
    """Of the steps whose scores this one reads, those that stand before it: name -> score digest."""
    needed = {need.partition(".")[0] for need in step.needs if "." in need}
    return {placed.name: placed.score_digest for placed in before if placed.name in needed}


def _identity(step: Step, models: Mapping[str, str], reads: Mapping[str, str]) -> dict[str, Any]:
    identity = {"name": step.name, "version": step.version, "models": dict(models)}
    return {**identity, "reads": dict(reads)} if reads else identity


def _digest(step: Step, models: Mapping[str, str], previous: str, reads: Mapping[str, str]) -> str:
    return digest8({**_identity(step, models, reads), "config": step.config.deciding(), "previous": previous})


def _models(run: Run, index: int, step: Step, previous: str, reads: Mapping[str, str]) -> dict[str, str]:
    """Checksums of what else decides the result; where it is gone, those with which this very step was closed.

    A run that is done can then be explained, exported and reported without the earlier runs it was compared with.
    """
    try:
        return dict(step.model_checksums())
    except ConfigError:
        for card in sorted(run.steps.glob(f"{index + 1:02d}-{step.name}-*/_step.json")):
            told = read_json(card)
            closed = (card.parent / "_done.json").exists()
            if closed and told["digest"] == _digest(step, told.get("models", {}), previous, reads):
                return dict(told["models"])
        raise


def stage_of_each(steps: Sequence[Step]) -> list[str]:
    """The stage in which each step runs: its own, or a later one if the YAML puts it after that.

    The YAML's order always holds; stages only group steps for the engine and the reader.
    """
    stages, reached = [], 0
    for step in steps:
        reached = max(reached, STAGES.index(step.stage))
        stages.append(STAGES[reached])
    return stages
