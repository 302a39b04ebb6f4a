"""The shard runner: verdicts of several consecutive steps over one shard, in one pass over its text.

The text is mapped once and each filter sees only the living rows of each batch; what a step writes is
a verdict file as long as the shard, with nulls for rows that an earlier step had dropped.
Scores that an earlier config already computed are taken over, so that a changed threshold only decides.
Costs beside the filters themselves: about 1 us a document and step, plus one hash of the shard.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from curation.errors import CorpusmillError, RunError
from curation.records import verdict_schema
from curation.run import Run, file_sha256, peak_memory, read_json, write_json
from curation.shards import Shard, alive_mask, batches, item_marker, open_table, write_table
from curation.steps import PlacedStep, context_of, earlier_score
from curation.verdicts import DataSetStep, Decision, Filter

__all__ = ["done_item", "judge_shard", "write_step_card"]

Mask = npt.NDArray[np.bool_]


def write_step_card(placed: PlacedStep) -> None:
    """Write `_step.json`: what the folder holds, so that a later config can find its scores."""
    path = placed.folder / "_step.json"
    step = placed.step
    card = {
        "name": step.name,
        "version": step.version,
        "summary": step.summary,
        "config": step.config.model_dump(mode="json"),
        "reasons": dict(step.reasons),
        "scores": [{"name": s.name, "unit": s.unit, "what": s.what} for s in step.score_columns],
        "thresholds": {name: list(values) for name, values in step.thresholds().items()},
        "models": dict(placed.models),
        "digest": placed.digest,
        "score_digest": placed.score_digest,
    }
    if not path.exists():
        write_json(path, card)


def done_item(folder: Path, shard: Shard) -> dict[str, Any] | None:
    """The marker of a shard's verdict file if it stands, fits the shard and the file is intact; else None."""
    path = folder / "_items" / f"{shard.name}.json"
    if not path.exists():
        return None
    marker: dict[str, Any] = read_json(path)
    if marker["shard_sha256"] != shard.sha256:
        return None
    try:
        open_table(folder / f"{shard.name}.arrow", marker["verdict_sha256"], shard.rows)
    except RunError:
        return None
    return marker


def judge_shard(
    run: Run, placed: Sequence[PlacedStep], shard_index: int, shards: Sequence[Shard], memory_mb: int
) -> dict[str, Any]:
    """Write the verdict files of `placed`, in order, for one shard. Skips those that are done.

    Returns:
        `{"item": shard name, "steps": {name: docs kept}, "reused": bool}`

    Raises:
        RunError: the shard or an earlier verdict is missing, damaged or foreign.
    """
    shard = shards[shard_index]
    kept: dict[str, int] = {}
    reused = True
    for step in placed:
        marker = done_item(step.folder, shard)
        if marker is None:
            reused = False
            write_step_card(step)
            marker = _judge_one(run, step, shard_index, shards, memory_mb)
        kept[step.name] = marker["kept"]
    return {"item": shard.name, "steps": kept, "reused": reused}


def _judge_one(
    run: Run, placed: PlacedStep, shard_index: int, shards: Sequence[Shard], memory_mb: int
) -> dict[str, Any]:
    shard = shards[shard_index]
    step = placed.step
    with peak_memory() as used:
        alive = alive_mask(placed.previous, shard)
        try:
            if isinstance(step, DataSetStep):
                decision, scores = step.verdicts(shard_index, context_of(run, placed, shards, memory_mb))
                scored = int(alive.sum())
            else:
                assert isinstance(step, Filter)
                scores, scored = _scores(run, placed, step, shard, alive)
                decision = step.decide(scores)
        except CorpusmillError:
            raise
        except Exception as error:
            error.add_note(f"while step {step.name} judged shard {shard.name} of run {run.run_id}")
            raise
        table = _verdict_table(placed, alive, decision, scores, run.run_id)
        path = placed.folder / f"{shard.name}.arrow"
        write_table(path, table)
    marker = {
        "rows": shard.rows,
        **_counts(shard, alive, decision, list(step.reasons)),
        "scored": scored,
        "shard_sha256": shard.sha256,
        "verdict_sha256": file_sha256(path),
        **used,
    }
    write_json(placed.folder / "_items" / f"{shard.name}.json", marker)
    return marker


def _verdict_table(
    placed: PlacedStep, alive: Mask, decision: Decision, scores: pa.RecordBatch, run_id: str
) -> pa.RecordBatch:
    """Spread the verdicts of the living rows over all rows of the shard."""
    step = placed.step
    n_alive = int(alive.sum())
    if len(decision.keep) != n_alive or scores.num_rows != n_alive:
        raise AssertionError(
            f"step {step.name} returned {len(decision.keep)} verdicts and {scores.num_rows} scores for {n_alive} documents"
        )
    rows = pa.array(np.cumsum(alive) - 1, mask=~alive, type=pa.int64())
    columns = [pa.array(decision.keep).take(rows), decision.reason_array(list(step.reasons)).take(rows)]
    columns += [scores.column(score.name).take(rows) for score in step.score_columns]
    metadata = {"run_id": run_id, "step": step.name, "digest": placed.digest}
    return pa.RecordBatch.from_arrays(columns, schema=verdict_schema(step.score_columns, metadata))


def _counts(shard: Shard, alive: Mask, decision: Decision, reasons: Sequence[str]) -> dict[str, Any]:
    """What this shard adds to the funnel."""
    lengths = _text_bytes(shard)[alive]
    by_reason = np.bincount(decision.reason[decision.reason >= 0], minlength=len(reasons))
    return {
        "docs_in": int(alive.sum()),
        "kept": int(decision.keep.sum()),
        "dropped": {reason: int(n) for reason, n in zip(reasons, by_reason, strict=True) if n},
        "bytes_in": int(lengths.sum()),
        "bytes_kept": int(lengths[decision.keep].sum()),
    }


def _text_bytes(shard: Shard) -> npt.NDArray[np.int64]:
    parts = [pc.binary_length(batch.column(0)).to_numpy(zero_copy_only=False) for _, batch in batches(shard, ["text"])]
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)


def _scores(run: Run, placed: PlacedStep, step: Filter, shard: Shard, alive: Mask) -> tuple[pa.RecordBatch, int]:
    """Scores of the living rows: taken over where an earlier config of this step has them, else computed.

    Returns:
        The scores, and how many documents they were computed of.
    """
    schema = pa.schema([(score.name, score.type) for score in step.score_columns])
    known = _earlier_scores(run, placed, shard)
    missing = alive.copy() if known is None else alive & ~known[0]
    fresh = pa.Table.from_batches(_score_rows(placed, step, shard, missing, schema), schema=schema)
    if known is None:
        return _one_batch(fresh, schema), fresh.num_rows
    # Rows of `both` are the earlier file's rows followed by the fresh ones; pick each living row from its place.
    both = pa.concat_tables([known[1], fresh])
    place = np.where(missing, shard.rows + np.cumsum(missing) - 1, np.arange(shard.rows))
    return _one_batch(both.take(pa.array(place[alive])), schema), fresh.num_rows


def _one_batch(table: pa.Table, schema: pa.Schema) -> pa.RecordBatch:
    columns = [pa.concat_arrays(c.chunks) if c.num_chunks else pa.array([], c.type) for c in table.columns]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _score_rows(
    placed: PlacedStep, step: Filter, shard: Shard, rows: Mask, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Score the chosen rows of a shard batch by batch."""
    if not rows.any():
        return
    earlier = _scores_of_earlier_steps(placed, step, shard)
    for start, batch in batches(shard, [need for need in step.needs if need not in earlier]):
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        columns |= {need: column.slice(start, batch.num_rows) for need, column in earlier.items()}
        batch = pa.RecordBatch.from_arrays([columns[need] for need in step.needs], list(step.needs))
        chosen = rows[start : start + batch.num_rows]
        if not chosen.any():
            continue
        if not chosen.all():
            batch = batch.filter(pa.array(chosen))
        scores = step.score(batch)
        if scores.num_rows != batch.num_rows:
            raise AssertionError(
                f"step {step.name} returned {scores.num_rows} score rows for {batch.num_rows} documents"
            )
        yield pa.RecordBatch.from_arrays([scores.column(name) for name in schema.names], schema=schema)


def _scores_of_earlier_steps(placed: PlacedStep, step: Filter, shard: Shard) -> dict[str, pa.Array]:
    """The scores of earlier steps that a filter needs, each as long as the shard: `step.score` -> column.

    Raises:
        RunError: the earlier step's file is missing, damaged or foreign.
    """
    columns: dict[str, pa.Array] = {}
    for need in step.needs:
        if (asked := earlier_score(need)) is None:
            continue
        name, kind = asked
        folder = placed.earlier.get(name)
        if folder is None:
            columns[need] = pa.nulls(shard.rows, kind)
            continue
        marker = item_marker(folder, shard.name)
        path = folder / f"{shard.name}.arrow"
        if marker["shard_sha256"] != shard.sha256:
            raise RunError(f"{path} speaks about another version of shard {shard.name}: delete {folder}.")
        table = open_table(path, marker["verdict_sha256"], shard.rows).read_all()
        columns[need] = pa.concat_arrays([pa.array([], kind), *table.column(need.partition(".")[2]).chunks])
    return columns


def _earlier_scores(run: Run, placed: PlacedStep, shard: Shard) -> tuple[Mask, pa.Table] | None:
    """Score columns of this step under another config with the same scores: (rows that have them, table)."""
    names = [score.name for score in placed.step.score_columns]
    for card_path in sorted(run.steps.glob(f"*-{placed.name}-*/_step.json")):
        folder = card_path.parent
        if folder == placed.folder or read_json(card_path).get("score_digest") != placed.score_digest:
            continue
        marker = done_item(folder, shard)
        if marker is None:
            continue
        table = open_table(folder / f"{shard.name}.arrow", marker["verdict_sha256"], shard.rows).read_all()
        return table.column("keep").is_valid().to_numpy().astype(np.bool_), table.select(names)
    return None
