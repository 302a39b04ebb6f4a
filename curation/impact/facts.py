"""What is known of a change once both sides have judged the sample: plain data, read from disk, of whatever version wrote it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

__all__ = ["DOCUMENTS_SCHEMA", "KEPT", "NOT_JUDGED", "Comparison", "Outcome", "SampleFacts", "SideFacts", "StepFacts"]

NOT_JUDGED = "not judged"
"""Stands for the language of a document that neither side's step `language` looked at."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a document fares on one side: kept, or dropped by a step for a reason. What is set aside counts as dropped."""

    step: str | None = None
    reason: str | None = None
    """`step.why`"""


KEPT = Outcome()


@dataclass(frozen=True)
class StepFacts:
    """One step on one side, from its `_step.json`, its `_done.json` and its items' markers."""

    name: str
    place: int
    """0-based position in the side's config."""
    version: int
    folder: Path
    config: Mapping[str, Any]
    reasons: Mapping[str, str]
    """`name.why` -> one sentence"""
    thresholds: Mapping[str, Sequence[float]]
    """Score -> limits that apply."""
    units: Mapping[str, str]
    """Score -> unit, in the step's order."""
    digest: str
    score_digest: str
    code: str
    """Digest of the sources that the step's verdicts depend on."""
    docs_in: int
    docs_kept: int
    dropped: Mapping[str, int]
    hits: Mapping[str, int] | None
    """Documents that break each rule whatever other rules say, by reason; None of a step that does not count them."""
    seconds: float
    scored: int | None
    """Documents whose scores were computed in these seconds; the rest was taken over. None: the version does not say."""
    peak_rss_mb: float
    cpu_seconds: float | None = None
    """Processor seconds of all threads; None where it is not known."""


@dataclass(frozen=True)
class SideFacts:
    """One side."""

    label: str
    """As the user would name it: `main (1a2b3c4)`, `web`, `mine.yaml`, `working tree`."""
    commit: str | None
    """The full commit id of its code, if it is that of a revision."""
    config_text: str
    """The resolved config as YAML."""
    run_folder: Path
    steps: tuple[StepFacts, ...]

    def step(self, name: str) -> StepFacts | None:
        return next((step for step in self.steps if step.name == name), None)


@dataclass(frozen=True)
class SampleFacts:
    """The sample that both sides judged."""

    name: str
    sha256: str
    """Over names and contents of its files."""
    about: str
    """Where it comes from, one sentence."""
    documents: int
    quarantined: int
    population: int | None = None
    """Documents of the corpus that it was drawn from; None: not drawn, so weights are 1."""
    files: tuple[str, ...] = ()


DOCUMENTS_SCHEMA = pa.schema(
    [
        pa.field("doc_id", pa.binary(16), nullable=False),
        pa.field("shard", pa.int32(), nullable=False),
        pa.field("row", pa.int64(), nullable=False),
        pa.field("id", pa.string(), nullable=False),
        pa.field("source", pa.string(), nullable=False),  # file name; of a drawn sample the source it was drawn from
        pa.field("language", pa.string(), nullable=False),  # as the new side names it, else the base, else NOT_JUDGED
        pa.field("length", pa.string(), nullable=False),  # class by characters, see curation.impact.classes
        pa.field("label", pa.string(), nullable=True),  # good, junk ...: the record's own field `quality`
        pa.field("characters", pa.int64(), nullable=False),
        pa.field("tokens", pa.int64(), nullable=False),  # of the new side's tokenizer, the default one without `pack`
        pa.field("stratum", pa.int32(), nullable=False),  # 0 where the sample has none
        pa.field("weight", pa.float64(), nullable=False),  # documents of the corpus that it stands for; 1 if not drawn
        pa.field("before", pa.int16(), nullable=False),  # number of an outcome
        pa.field("after", pa.int16(), nullable=False),
    ]
)


@dataclass(frozen=True)
class Comparison:
    """Both sides on one sample."""

    base: SideFacts
    new: SideFacts
    sample: SampleFacts
    documents: pa.Table
    """DOCUMENTS_SCHEMA, one row a document, in the order of shards and rows; shards are those of `new.run_folder`."""
    outcomes: tuple[Outcome, ...]
    """By number; number 0 is KEPT."""
    tokenizer: str
    notes: tuple[str, ...] = ()
    """What a reader must know: dependencies that differ, a tokenizer that differs, steps that one side lacks."""
