"""`corpusmill judge`: every step's verdict on every document, as if each step stood alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import orjson

from curation.pipeline import Pipeline
from curation.run import publish
from curation.shards import Shard, batches, item_marker, open_table

__all__ = ["judgements", "write_judgements"]

_ROWS = 1000
"""Verdicts that are objects at once, of each step."""


def judgements(pipeline: Pipeline) -> Iterator[dict[str, Any]]:
    """For each document, in run order: `{"id", "keep", "reason", "steps": {name: {"keep", "reason", scores...}}}`.

    `keep` is true if every step keeps; `reason` is that of the first step that drops.
    """
    for shard in pipeline.shards:
        verdicts = [_verdict_rows(placed.folder, shard) for placed in pipeline.placed]
        for _, batch in batches(shard, ["id"]):
            for doc_id in batch.column("id").to_pylist():
                yield _one(doc_id, {p.name: next(v) for p, v in zip(pipeline.placed, verdicts, strict=True)})


def _one(doc_id: str, steps: dict[str, dict[str, Any]]) -> dict[str, Any]:
    reasons: Sequence[str | None] = [verdict["reason"] for verdict in steps.values() if verdict["keep"] is False]
    return {"id": doc_id, "keep": not reasons, "reason": reasons[0] if reasons else None, "steps": steps}


def _verdict_rows(folder: Path, shard: Shard) -> Iterator[dict[str, Any]]:
    """Rows of a verdict file. A few at a time: a score may be a list of many ranges, and as objects they are large."""
    marker = item_marker(folder, shard.name)
    table = open_table(folder / f"{shard.name}.arrow", marker["verdict_sha256"], shard.rows).read_all()
    for start in range(0, table.num_rows, _ROWS):
        for row in table.slice(start, _ROWS).to_pylist():
            yield {name: value.hex() if isinstance(value, bytes) else value for name, value in row.items()}


def write_judgements(pipeline: Pipeline, output: Path) -> int:
    """Write the judgements as jsonl, atomically; returns how many there are."""
    count = 0
    with publish(output) as temporary, temporary.open("wb") as stream:
        for judgement in judgements(pipeline):
            stream.write(orjson.dumps(judgement, option=orjson.OPT_APPEND_NEWLINE))
            count += 1
    return count
