"""Verdict rows of one side at the places of documents, and what its steps would say of limits and scores.

Everything is read from what lies on disk, so that a side of older code needs nothing of it. Step objects, which know the
limit of a single document and the score of a reason, are made of a side's config only where its code is this one.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import pyarrow as pa

from curation.config import parse_config
from curation.errors import ConfigError
from curation.impact.facts import Comparison, SideFacts, StepFacts
from curation.report.samples import Place, find_documents
from curation.run import Run, read_json
from curation.shards import Shard, item_marker, open_table, shards_of
from curation.verdicts import Filter, Step

__all__ = ["SideRows", "both_sides", "changed_steps"]


_LIMITS_IN_A_MODEL = frozenset({"safety_model"})
"""Steps whose `limits_of` opens a model, for seconds: their cards hold the limits of all languages."""


class SideRows:
    """One side."""

    def __init__(
        self,
        side: SideFacts,
        shards_of_new: tuple[Shard, ...],
        known_code: Mapping[str, str] | None,
        changed: frozenset[str],
    ) -> None:
        """A side.

        Args:
            shards_of_new: in which places are given.
            known_code: for a side of a revision the code digests of this code's steps by name; None: it is this code.
            changed: names of the steps that differ between the sides.
        """
        self.side = side
        self._changed = changed
        self.shards: tuple[Shard, ...] = tuple(shards_of(Run(side.run_folder)))
        self._same = [mine.sha256 == its.sha256 for mine, its in zip(self.shards, shards_of_new, strict=False)]
        self._known_code = known_code
        self._tables: dict[tuple[str, int], pa.Table] = {}
        self._moved: dict[bytes, Place] = {}

    @cached_property
    def _steps(self) -> Mapping[str, Step]:
        try:
            return {step.name: step for step in parse_config(self.side.config_text, self.side.label).steps}
        except ConfigError:
            if self._known_code is None:
                raise
            return {}  # a config of older code: its cards on disk say what can be said

    def object_of(self, step: StepFacts) -> Step | None:
        """The step as an object of this code; None if other code judged."""
        if self._known_code is not None and self._known_code.get(step.name) != step.code:
            return None
        found = self._steps.get(step.name)
        return found if found is not None and found.version == step.version else None

    def limits_by_row(self, step: StepFacts) -> Filter | None:
        """The step, if it can be asked for the limits of single documents without opening a model for nothing.

        Of those that keep their limits in a model the card says enough where nothing of the step was changed.
        """
        known = self.object_of(step)
        if not isinstance(known, Filter) or (step.name in _LIMITS_IN_A_MODEL and step.name not in self._changed):
            return None
        return known

    def seek(self, places: Mapping[Place, bytes]) -> None:
        """Look for documents that stand elsewhere on this side, by their doc_ids; done once for all that are asked of it."""
        wanted = [doc_id for place, doc_id in places.items() if not self.stands_at(place)]
        self._moved.update(find_documents(self.shards, wanted))

    def stands_at(self, place: Place) -> bool:
        """Whether this side has the very shard of a place."""
        return place[0] < len(self._same) and self._same[place[0]]

    def place_of(self, place: Place, doc_id: bytes) -> Place | None:
        """Where a document stands on this side; None if nowhere."""
        return place if self.stands_at(place) else self._moved.get(doc_id)

    def table(self, step: StepFacts, index: int) -> pa.Table:
        """The verdict file of a shard, mapped and checked.

        Raises:
            RunError: it is missing or damaged.
        """
        key = (step.folder.name, index)
        if key not in self._tables:
            shard = self.shards[index]
            marker = item_marker(step.folder, shard.name)
            path = step.folder / f"{shard.name}.arrow"
            self._tables[key] = open_table(path, marker["verdict_sha256"], shard.rows).read_all()
        return self._tables[key]

    def row(self, step: StepFacts, place: Place | None) -> dict[str, Any] | None:
        """What a step says of a document; None if it had not looked at it."""
        if place is None:
            return None
        table = self.table(step, place[0])
        if not table.column("keep")[place[1]].is_valid:
            return None
        found: dict[str, Any] = table.slice(place[1], 1).to_pylist()[0]
        return found


def both_sides(comparison: Comparison) -> tuple[SideRows, SideRows]:
    """Base and new."""
    shards = tuple(shards_of(Run(comparison.new.run_folder)))
    code = {step.name: step.code for step in comparison.new.steps}
    known = None if comparison.base.commit is None else code
    changed = frozenset(step.name for step in changed_steps(comparison))
    return SideRows(comparison.base, shards, known, changed), SideRows(comparison.new, shards, None, changed)


def changed_steps(comparison: Comparison) -> list[StepFacts]:
    """Steps of the new side that the base has, too, but with another version, other settings, limits, lists, models or code.

    One that only reads other scores of a step before it is not changed.

    Raises:
        RunError: a step's card is missing or damaged.
    """
    found = []
    for step in comparison.new.steps:
        old = comparison.base.step(step.name)
        if old is not None and _identity(old) != _identity(step):
            found.append(step)
    return found


def _identity(step: StepFacts) -> tuple[Any, ...]:
    models = read_json(step.folder / "_step.json").get("models", {})
    limits = {name: list(values) for name, values in step.thresholds.items()}
    return step.version, step.code, dict(step.config), limits, models
