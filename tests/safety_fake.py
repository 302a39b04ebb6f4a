"""Stand-ins for the filters `safety_terms` and `safety_model`, with their columns: what they say can be worked out by head.

Terms are found as they are written. A weight counts wholly at each place; a density is the weight for each 10 characters,
a peak the whole weight. The model gives a label the probability that stands in the text as `label=0.9`, the largest if there
are several, whose place is the worst window; a text with `#` is not read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest

from curation.records import ScoreColumn
from curation.safety_facts import cascade_facts, term_facts
from curation.steps import STEPS, step_class
from curation.verdicts import Decision, Filter, StepConfig, decide_by_rules
from quality_models.safety_labels import CATEGORIES, CATEGORY_NAMES

TERMS: dict[str, tuple[str, int]] = {
    "casino": ("gambling", 4),
    "赌场": ("gambling", 4),
    "bonus": ("gambling", 1),
    "jackpot": ("gambling", 2),
    "加微信": ("spam", 2),
    "上车": ("spam", 1),
    "telegram": ("spam", 1),
    "沙发": ("filler", 1),
    "pills": ("drugs", 2),
}
_LABEL = re.compile(rf"({'|'.join(CATEGORY_NAMES)})=(0\.\d+|1)")


class FakeTermsConfig(StepConfig):
    """The limits of all categories."""

    min_peak: float = 4.0
    min_density: float = 1.0
    dense_peak: float = 12.0


class FakeTerms(Filter):
    """Drops by weight and density."""

    name: ClassVar[str] = "safety_terms"
    version: ClassVar[int] = 1
    stage: ClassVar[str] = "safety"
    summary: ClassVar[str] = "Drops documents in which terms of unsafe text stand close together."
    needs: ClassVar[tuple[str, ...]] = ("text",)
    reasons: ClassVar[Mapping[str, str]] = {f"safety_terms.{name}": what for name, what in CATEGORIES.items()}
    Config: ClassVar[type[StepConfig]] = FakeTermsConfig
    config: FakeTermsConfig

    @property
    def score_columns(self) -> Sequence[ScoreColumn]:
        columns = []
        for name in CATEGORY_NAMES:
            columns.append(ScoreColumn(f"{name}_hits", pa.int32(), "terms", f"terms of {name}"))
            for what in ("weight", "density", "peak"):
                columns.append(ScoreColumn(f"{name}_{what}", pa.float32(), "weight", f"{what} of {name}"))
        columns += [ScoreColumn(name, pa.int32(), name, name) for name in ("hits", "units")]
        return [*columns, ScoreColumn("matched", pa.string(), "spans", "where terms stand")]

    def thresholds(self) -> Mapping[str, Sequence[float]]:
        of_peak, of_density = [self.config.min_peak, self.config.dense_peak], [self.config.min_density]
        return {f"{name}_peak": of_peak for name in CATEGORY_NAMES} | {
            f"{name}_density": of_density for name in CATEGORY_NAMES
        }

    def score(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        rows = [_term_scores(text) for text in batch.column("text").to_pylist()]
        schema = pa.schema([(column.name, column.type) for column in self.score_columns])
        return pa.RecordBatch.from_pylist(rows, schema=schema)

    def decide(self, scores: pa.RecordBatch) -> Decision:
        hits = {}
        for name in CATEGORY_NAMES:
            peak, density = (scores.column(f"{name}_{what}").to_numpy() for what in ("peak", "density"))
            dense = (density >= self.config.min_density) | (peak >= self.config.dense_peak)
            hits[f"safety_terms.{name}"] = (peak >= self.config.min_peak) & dense
        return decide_by_rules(scores.num_rows, list(self.reasons), hits)

    def score_of(self, reason: str) -> str | None:
        return f"{reason.partition('.')[2]}_peak"

    def facts(self, tables: Iterator[pa.Table]) -> dict[str, Any]:
        return term_facts(tables)


def _term_scores(text: str) -> dict[str, Any]:
    spans = []
    for line, (term, (category, weight)) in enumerate(TERMS.items(), 3):
        for match in re.finditer(term, text):
            begin, end = (len(text[:place].encode()) for place in match.span())
            spans.append((-weight, begin, [category, term, begin, end, f"/lists/fake.tsv:{line}"]))
    row: dict[str, Any] = {"hits": len(spans), "units": len(text)}
    for name in CATEGORY_NAMES:
        weights = [-weight for weight, _, span in spans if span[0] == name]
        total = float(sum(weights))
        row |= {f"{name}_hits": len(weights), f"{name}_weight": total, f"{name}_peak": total}
        row[f"{name}_density"] = 10 * total / max(len(text), 1)
    spans.sort()
    return {**row, "matched": json.dumps([span for *_, span in spans], ensure_ascii=False) if spans else None}


class FakeModelConfig(StepConfig):
    """One limit for all labels."""

    limit: float = 0.8


class FakeModel(Filter):
    """Drops by probability."""

    name: ClassVar[str] = "safety_model"
    version: ClassVar[int] = 1
    stage: ClassVar[str] = "safety"
    summary: ClassVar[str] = "Drops documents that a model finds unsafe."
    needs: ClassVar[tuple[str, ...]] = ("text",)
    reasons: ClassVar[Mapping[str, str]] = {f"safety_model.{name}": what for name, what in CATEGORIES.items()}
    Config: ClassVar[type[StepConfig]] = FakeModelConfig
    config: FakeModelConfig

    @property
    def score_columns(self) -> Sequence[ScoreColumn]:
        labels = [ScoreColumn(name, pa.float32(), "share", f"probability of {name}") for name in CATEGORY_NAMES]
        return [*labels, *(ScoreColumn(f"worst_{end}", pa.int64(), "bytes", end) for end in ("begin", "end"))]

    def thresholds(self) -> Mapping[str, Sequence[float]]:
        return {name: [self.config.limit] for name in CATEGORY_NAMES}

    def score(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        rows = [_model_scores(text) for text in batch.column("text").to_pylist()]
        schema = pa.schema([(column.name, column.type) for column in self.score_columns])
        return pa.RecordBatch.from_pylist(rows, schema=schema)

    def decide(self, scores: pa.RecordBatch) -> Decision:
        found = {name: scores.column(name).to_numpy(zero_copy_only=False) for name in CATEGORY_NAMES}
        hits = {
            f"safety_model.{name}": np.nan_to_num(values, nan=0.0) >= self.config.limit
            for name, values in found.items()
        }
        return decide_by_rules(scores.num_rows, list(self.reasons), hits)

    def facts(self, tables: Iterator[pa.Table]) -> dict[str, Any]:
        unread = sum(t.column("gambling").null_count - t.column("keep").null_count for t in tables)
        return {"cascade": cascade_facts(200, 3, unread)}


def _model_scores(text: str) -> dict[str, Any]:
    if "#" in text:
        return {}
    found = [(float(match[2]), match[1], match.start()) for match in _LABEL.finditer(text)]
    row: dict[str, Any] = dict.fromkeys(CATEGORY_NAMES, 0.01)
    for p, name, _ in found:
        row[name] = max(row[name], p)
    place = max(found)[2] if found else 0
    begin = len(text[:place].encode())
    return {**row, "worst_begin": begin, "worst_end": min(begin + 200, len(text.encode()))}


@contextmanager
def fake_filters() -> Iterator[None]:
    """The stand-ins are what a config means by `safety_terms` and `safety_model`, in this process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(STEPS, "safety_terms", "tests.safety_fake:FakeTerms")
        patch.setitem(STEPS, "safety_model", "tests.safety_fake:FakeModel")
        step_class.cache_clear()
        yield
    step_class.cache_clear()


@pytest.fixture
def fake_safety() -> Iterator[None]:
    """`fake_filters` for one test."""
    with fake_filters():
        yield
