"""Rules of quality: what a text is measured by, and the limits that a preset sets, by language and script.

Every measure is always computed, all of them from shared parts (words, lines, hashes: `parts`), so another preset or
limit is decided from stored scores. Words, ends of sentences and stop words are those of the text's own script; limits
are those of its label: what a step `language` before this one named, or else its main script.

A measure that is undefined for a text (mean word length in scripts without blanks, stop words of a language without a
list) is null, and its rules do not apply. So a text without words breaks only rules that ask for a least amount, of
which `massive` has none: `length` says what becomes of it.

Limits of `massive`: measured on labelled text, see docs/decisions/0008-quality-rules.md; those of the other presets:
their authors'. Words that speak for junk stand in tables beside the module.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
import numpy.ma as ma
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from curation.filters.labels import LANGUAGE_COLUMN, working_labels
from curation.filters.rules import (
    contacts,
    disguise,
    encoding,
    line_runs,
    line_shapes,
    phrases,
    repeated_lines,
    repetition,
    signs,
    stop_words,
    words,
)
from curation.filters.rules.config import RulesConfig, RulesSettings, limits_of
from curation.filters.rules.limits import FOLDER, Layers, limit_for, limits_by_row
from curation.filters.rules.parts import parts_of
from curation.filters.rules.rule import BY_NAME, RULES
from curation.records import ScoreColumn
from curation.verdicts import Decision, Filter, StepConfig, decide_by_rules
from quality_models.language_models import checksum

__all__ = ["MEASURES", "Rules"]

MEASURES: tuple[ModuleType, ...] = (
    words,
    signs,
    line_shapes,
    line_runs,
    repeated_lines,
    repetition,
    encoding,
    disguise,
    phrases,
    contacts,
)
"""Modules of measures; each has `COLUMNS` and `measure(parts)`."""

LABEL = ScoreColumn(
    "language", pa.string(), "label", "label that chooses the limits: of its language, or of its script"
)
COLUMNS: tuple[ScoreColumn, ...] = (
    LABEL,
    *(column for module in (*MEASURES, stop_words) for column in module.COLUMNS),
)

Floats = npt.NDArray[np.float32]
Mask = npt.NDArray[np.bool_]


class Rules(Filter):
    """Drops a text on the first of many rules that it breaks."""

    name: ClassVar[str] = "rules"
    version: ClassVar[int] = 1
    stage: ClassVar[str] = "quality"
    summary: ClassVar[str] = "Drops texts that break a rule of quality, by limits of their own language and script."
    needs: ClassVar[tuple[str, ...]] = ("text", LANGUAGE_COLUMN)
    reasons: ClassVar[Mapping[str, str]] = {f"rules.{rule.name}": rule.sentence for rule in RULES}
    Config: ClassVar[type[StepConfig]] = RulesConfig
    config: RulesSettings

    @property
    def score_columns(self) -> Sequence[ScoreColumn]:
        return COLUMNS

    def model_checksums(self) -> Mapping[str, str]:
        """Checksums of the lists of words: other lists give other scores."""
        return {name: checksum(FOLDER / name) for name in ("phrases.tsv", "stop_words.tsv")}

    @cached_property
    def limits(self) -> Layers:
        """Limits of the config by rule; rules that are off are left out."""
        return limits_of(self.config)

    def thresholds(self) -> Mapping[str, Sequence[float]]:
        """Limits for text of a language that has none of its own."""
        found: dict[str, list[float]] = {}
        for name, layers in self.limits.items():
            limit = limit_for(layers, "und")
            if limit is not None:
                found.setdefault(BY_NAME[name].measure, []).append(limit)
        return {measure: sorted(limits) for measure, limits in found.items()}

    def score(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        parts = parts_of(batch.column("text"))
        labels = working_labels(batch, parts.letters)
        columns: dict[str, pa.Array] = {LABEL.name: labels}
        for found in (*(module.measure(parts) for module in MEASURES), stop_words.measure(parts, labels)):
            for name, values in found.items():
                columns[name] = pa.array(ma.getdata(values), mask=ma.getmaskarray(values))
        arrays = [columns[column.name].cast(column.type) for column in COLUMNS]
        return pa.RecordBatch.from_arrays(arrays, names=[column.name for column in COLUMNS])

    def hits(self, scores: pa.RecordBatch) -> dict[str, Mask]:
        """For each rule that is on for any of n documents, which of them it drops: bool[n] by `rules.NAME`."""
        found = {}
        for name, limits in limits_by_row(self.limits, scores.column(LABEL.name)).items():
            rule = BY_NAME[name]
            values = _floats(scores, rule.measure)
            # nan, of a measure or of a limit, is on neither side.
            found[f"rules.{name}"] = values > limits if rule.side == "max" else values < limits
        return found

    def decide(self, scores: pa.RecordBatch) -> Decision:
        """The first rule in the order of the table that a document breaks is its reason."""
        return decide_by_rules(scores.num_rows, list(self.reasons), self.hits(scores))

    def facts(self, tables: Iterator[pa.Table]) -> dict[str, Any]:
        """Documents that were judged, and how many each rule that is on drops, whatever other rules say of them."""
        judged, counts = 0, dict.fromkeys(self.limits, 0)
        for table in tables:
            for batch in table.filter(pc.is_valid(table.column("keep"))).to_batches():
                judged += batch.num_rows
                for reason, mask in self.hits(batch).items():
                    counts[reason.removeprefix("rules.")] += int(mask.sum())
        return {"documents": judged, "hits": counts}

    def score_of(self, reason: str) -> str:
        """The score column by which a reason decides."""
        return BY_NAME[reason.removeprefix("rules.")].measure

    def limits_of(self, scores: pa.RecordBatch) -> Mapping[str, npt.NDArray[np.float64]]:
        """The limit of each document by score column: float64[n], nan where none applies.

        Of a measure with a rule on both sides the limit that is nearer to the document's value.
        """
        found: dict[str, npt.NDArray[np.float64]] = {}
        for name, limits in limits_by_row(self.limits, scores.column(LABEL.name)).items():
            measure = BY_NAME[name].measure
            new = limits.astype(np.float64)
            if (old := found.get(measure)) is not None:
                values = _floats(scores, measure)
                keep_old = np.isnan(new) | (np.abs(values - old) <= np.abs(values - new))
                new = np.where(keep_old, old, new)
            found[measure] = new
        # A rule that applies to none of these documents: else its general limit would be shown beside them.
        for measure in self.thresholds().keys() - found.keys():
            found[measure] = np.full(scores.num_rows, np.nan)
        return found


def _floats(scores: pa.RecordBatch, name: str) -> Floats:
    """A score column: float32[n_rows], nan where it is null."""
    # Counts above 2^24 are rounded: a checked cast refuses them, and a text may have one word of 20 million letters.
    values: Floats = scores.column(name).cast(pa.float32(), safe=False).to_numpy(zero_copy_only=False)
    return values
