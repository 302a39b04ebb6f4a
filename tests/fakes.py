"""Runs made on disk from lists of texts, as ingest would leave them, and steps that can be watched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from curation.close import close_step
from curation.ids import doc_id, text_id
from curation.judge import judge_shard
from curation.records import SHARD_SCHEMA, ScoreColumn
from curation.run import Run, file_sha256, write_json
from curation.shards import Shard, alive_mask, open_table, read_column, shards_of
from curation.steps import PlacedStep, StepContext, context_of, earlier_score, place_steps
from curation.verdicts import DataSetStep, Decision, Filter, Step, StepConfig, decide_by_rules

SOURCE = "memory:texts"


def shard_table(texts: Sequence[str], first_row: int = 0, source: str = SOURCE) -> pa.Table:
    """Documents as a table of SHARD_SCHEMA; `first_row` is the place of the first one in the input."""
    contents = [text_id(text) for text in texts]
    rows = range(first_row, first_row + len(texts))
    ids = [doc_id(source, row, 0, content) for row, content in zip(rows, contents, strict=True)]
    columns = {
        "doc_id": ids,
        "text_id": contents,
        "id": [f"d{row}" for row in rows],
        "source": pa.DictionaryArray.from_arrays(pa.array([0] * len(texts), pa.int32()), pa.array([source])),
        "url": [None] * len(texts),
        "line": [row + 1 for row in rows],
        "byte_offset": list(rows),
        "text": list(texts),
        "meta": [None] * len(texts),
    }
    arrays = [
        columns[name] if isinstance(columns[name], pa.Array) else pa.array(columns[name], SHARD_SCHEMA.field(name).type)
        for name in SHARD_SCHEMA.names
    ]
    return pa.Table.from_arrays(arrays, schema=SHARD_SCHEMA)


def batch_for(
    step: Filter,
    texts: Sequence[str],
    labels: Sequence[str | None] | None = None,
    urls: Sequence[str | None] | None = None,
) -> pa.RecordBatch:
    """The batch that a filter is given, as the shard runner makes it.

    Args:
        labels: what the step `language` said of each text; None: no such step stands before this one.
        urls: of each text; None: they have none.
    """
    table = shard_table(texts)
    if urls is not None:
        place = table.schema.get_field_index("url")
        table = table.set_column(place, table.schema.field(place), pa.array(urls, table.schema.field(place).type))
    columns: list[pa.Array] = []
    for need in step.needs:
        if (asked := earlier_score(need)) is None:
            columns.append(pa.concat_arrays([pa.array([], table.schema.field(need).type), *table.column(need).chunks]))
        elif need == "language.language" and labels is not None:
            columns.append(pa.array(labels, asked[1]))
        else:
            columns.append(pa.nulls(len(texts), asked[1]))
    return pa.RecordBatch.from_arrays(columns, list(step.needs))


def write_shards(run: Run, shards: Sequence[Sequence[str]], batch_rows: int = 1000) -> None:
    """Write shard files of `batch_rows` rows a batch, and the marker of ingest."""
    described: list[dict[str, Any]] = []
    first_row = 0
    for number, texts in enumerate(shards):
        path = run.shard_path(f"{number:05d}")
        path.parent.mkdir(parents=True, exist_ok=True)
        with pa.ipc.new_file(str(path), SHARD_SCHEMA) as writer:
            writer.write_table(shard_table(texts, first_row), max_chunksize=batch_rows)
        first_row += len(texts)
        described.append(
            {
                "name": path.stem,
                "rows": len(texts),
                "text_bytes": sum(len(text.encode()) for text in texts),
                "file_bytes": path.stat().st_size,
                "sha256": file_sha256(path),
            }
        )
    totals = {"files": 1, "bytes": sum(s["text_bytes"] for s in described), "lines": first_row, "documents": first_row}
    write_json(
        run.shards / "_done.json", {**totals, "quarantined": {}, "blank_lines": 0, "shards": described, "seconds": 0.0}
    )


def make_run(root: Path, shards: Sequence[Sequence[str]], *, run_id: str = "test-run", batch_rows: int = 1000) -> Run:
    """A run whose ingest is closed, with these texts in these shards."""
    run = Run.create(root, run_id=run_id, config_text="", config_digest="0" * 8, inputs=[SOURCE])
    write_shards(run, shards, batch_rows)
    return run


@dataclass(frozen=True)
class Judged:
    """A run with the steps that were run over it."""

    run: Run
    shards: list[Shard]
    placed: list[PlacedStep]

    def folder(self, step: str) -> Path:
        """Where a step's verdicts lie."""
        return next(placed.folder for placed in self.placed if placed.name == step)

    def verdicts(self, step: str) -> list[dict[str, Any]]:
        """The verdict rows of a step over all shards, in document order."""
        rows: list[dict[str, Any]] = []
        for shard in self.shards:
            rows += open_table(self.folder(step) / f"{shard.name}.arrow").read_all().to_pylist()
        return rows

    def kept(self, step: str) -> list[int]:
        """Places of the documents that a step kept, in document order."""
        return [place for place, row in enumerate(self.verdicts(step)) if row["keep"]]


def run_passes(run: Run, placed: PlacedStep, shards: Sequence[Shard], memory_mb: int = 500) -> StepContext:
    """Do every item of every pass of a data-set step, with its marker, as the pipeline does."""
    assert isinstance(placed.step, DataSetStep)
    context = context_of(run, placed, shards, memory_mb)
    for name in placed.step.passes:
        for item in range(placed.step.n_items(name, context)):
            placed.step.run_item(name, item, context)
            path = context.item_path(name, item)
            marker = {"sha256": file_sha256(path), "rows": open_table(path).read_all().num_rows}
            write_json(context.item_marker_path(name, item), marker)
    return context


def run_steps(run: Run, steps: Sequence[Step], *, close: bool = True, judge_all: bool = False) -> Judged:
    """Do every pass of every step, in this process."""
    shards = shards_of(run)
    judged = Judged(run, shards, place_steps(run, steps, judge_all=judge_all))
    for placed in judged.placed:
        if isinstance(placed.step, DataSetStep):
            run_passes(run, placed, shards)
        for index in range(len(shards)):
            judge_shard(run, [placed], index, shards, 500)
        if close:
            close_step(placed, shards)
    return judged


class WatchedConfig(StepConfig):
    """Two thresholds, and one setting that changes scores."""

    max_chars: int = 20
    least_chars: int = 1
    factor: int = 1


@dataclass
class Calls:
    """What a watched filter was asked to do."""

    scored: list[str] = field(default_factory=list)
    decided: int = 0


class Watched(Filter):
    """Drops texts that are too long or too short, and remembers what it was asked."""

    name: ClassVar[str] = "watched"
    version: ClassVar[int] = 1
    stage: ClassVar[str] = "quality"
    summary: ClassVar[str] = "Drops long and short texts."
    needs: ClassVar[tuple[str, ...]] = ("text",)
    reasons: ClassVar[Mapping[str, str]] = {
        "watched.too_short": "it has less than least_chars characters",
        "watched.too_long": "it has more than max_chars characters",
    }
    Config: ClassVar[type[StepConfig]] = WatchedConfig
    config: WatchedConfig

    def __init__(self, config: StepConfig) -> None:
        super().__init__(config)
        self.calls = Calls()

    @property
    def score_columns(self) -> Sequence[ScoreColumn]:
        return (ScoreColumn("length", pa.int64(), "characters", "length of the text, times the factor"),)

    def thresholds(self) -> Mapping[str, Sequence[float]]:
        return {"length": [self.config.least_chars, self.config.max_chars]}

    def score_config(self) -> Mapping[str, Any]:
        return {"factor": self.config.factor}

    def score(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        self.calls.scored += batch.column("text").to_pylist()
        lengths = pc.multiply(pc.cast(pc.utf8_length(batch.column("text")), pa.int64()), self.config.factor)
        return pa.RecordBatch.from_arrays([lengths], names=["length"])

    def decide(self, scores: pa.RecordBatch) -> Decision:
        self.calls.decided += 1
        length = scores.column("length").to_numpy(zero_copy_only=False)
        hits = {
            "watched.too_short": length < self.config.least_chars,
            "watched.too_long": length > self.config.max_chars,
        }
        return decide_by_rules(scores.num_rows, list(self.reasons), hits)


class Second(Watched):
    """The same under another name, to stand behind it."""

    name: ClassVar[str] = "second"
    reasons: ClassVar[Mapping[str, str]] = {"second.odd": "its length is odd"}

    def decide(self, scores: pa.RecordBatch) -> Decision:
        odd = scores.column("length").to_numpy(zero_copy_only=False) % 2 == 1
        return decide_by_rules(scores.num_rows, list(self.reasons), {"second.odd": odd})


class BeginsWithK(DataSetStep):
    """A data-set step without passes: keeps the documents whose text begins with `k`."""

    name: ClassVar[str] = "begins_with_k"
    version: ClassVar[int] = 1
    stage: ClassVar[str] = "dedup"
    summary: ClassVar[str] = "Keeps texts that begin with k."
    needs: ClassVar[tuple[str, ...]] = ("text",)
    reasons: ClassVar[Mapping[str, str]] = {"begins_with_k.other": "it begins with another letter"}
    Config: ClassVar[type[StepConfig]] = StepConfig
    passes: ClassVar[tuple[str, ...]] = ()

    def n_items(self, pass_name: str, context: Any) -> int:
        return 0

    def run_item(self, pass_name: str, item: int, context: Any) -> None:
        raise AssertionError("there are no passes")

    def verdicts(self, shard: int, context: Any) -> tuple[Decision, pa.RecordBatch]:
        alive = alive_mask(context.previous, context.shards[shard])
        texts = [t for t, a in zip(read_column(context.shards[shard], "text").to_pylist(), alive, strict=True) if a]
        keep = np.array([text.startswith("k") for text in texts], np.bool_)
        columns = [pa.nulls(len(texts), score.type) for score in self.score_columns]
        scores = pa.RecordBatch.from_arrays(columns, names=[score.name for score in self.score_columns])
        return Decision(keep, np.where(keep, -1, 0).astype(np.int16)), scores
