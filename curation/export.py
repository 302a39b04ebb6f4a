"""The kept documents as a file: jsonl (plain, .gz, .zst) or parquet, in run order, streamed.

Costs the memory of one batch (about 8 MB of text), whatever the size of the run.
"""

from __future__ import annotations

import contextlib
import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

from curation.errors import ConfigError, RunError
from curation.pipeline import Pipeline
from curation.run import publish
from curation.shards import alive_mask, batches

__all__ = ["COLUMNS", "check_done", "export_kept", "kept_batches"]

COLUMNS = ("id", "url", "text", "source", "line", "meta", "doc_id")
"""What is exported, in this order. `doc_id` is written in hex."""

FORMATS = (".jsonl", ".jsonl.gz", ".jsonl.zst", ".parquet")


def kept_batches(pipeline: Pipeline, columns: tuple[str, ...] = COLUMNS) -> Iterator[pa.RecordBatch]:
    """Batches of the documents that every step kept, in run order.

    Raises:
        RunError: the last step is not done.
    """
    check_done(pipeline)
    last = pipeline.placed[-1].folder if pipeline.placed else None
    for shard in pipeline.shards:
        alive = alive_mask(last, shard)
        if not alive.any():
            continue
        for start, batch in batches(shard, columns):
            keep = alive[start : start + batch.num_rows]
            if keep.any():
                yield batch.filter(pa.array(keep))


def check_done(pipeline: Pipeline) -> None:
    """Refuse a run of which it is not decided yet what it keeps.

    Raises:
        RunError: ingest or a step has no marker.
    """
    run = pipeline.run
    missing = [] if (run.shards / "_done.json").exists() else ["ingest"]
    if not missing:
        missing = [placed.name for placed in pipeline.placed if not (placed.folder / "_done.json").exists()]
    if missing:
        raise RunError(
            f"run {run.run_id} is not done: {missing[0]} has no marker, so what it keeps is not decided "
            f"(state: {run.info.get('state')}). Run the command that began it again; it goes on where it stopped."
        )


def export_kept(pipeline: Pipeline, output: Path) -> int:
    """Write the kept documents to `output`, atomically; returns how many there are.

    Raises:
        ConfigError: the file's name has no known ending.
        RunError: the run is not done, or damaged.
    """
    if not output.name.endswith(FORMATS):
        raise ConfigError(f"--output {output}: expected a name that ends in {', '.join(FORMATS)}.")
    check_done(pipeline)
    with publish(output) as temporary:
        if output.name.endswith(".parquet"):
            return _write_parquet(pipeline, temporary)
        return _write_jsonl(pipeline, temporary, output.suffix)


def _write_parquet(pipeline: Pipeline, path: Path) -> int:
    kinds = {"text": pa.large_string(), "line": pa.int64()}
    schema = pa.schema([(name, kinds.get(name, pa.string())) for name in COLUMNS])
    count = 0
    with pq.ParquetWriter(path, schema, compression="zstd", write_page_checksum=True) as writer:
        for batch in kept_batches(pipeline):
            doc_id = pa.array([value.hex() for value in batch.column("doc_id").to_pylist()], pa.string())
            columns = [batch.column(name).cast(schema.field(name).type) for name in COLUMNS[:-1]]
            writer.write_batch(pa.RecordBatch.from_arrays([*columns, doc_id], schema=schema))
            count += batch.num_rows
    return count


def _write_jsonl(pipeline: Pipeline, path: Path, suffix: str) -> int:
    count = 0
    with _compressed(path, suffix) as stream:
        for batch in kept_batches(pipeline):
            for row in batch.to_pylist():
                stream.write(orjson.dumps(json_row(row), option=orjson.OPT_APPEND_NEWLINE))
            count += batch.num_rows
    return count


def json_row(row: dict[str, Any]) -> dict[str, Any]:
    """A row as JSON: doc_id in hex, meta as the object it was, absent fields left out."""
    row = {key: value for key, value in row.items() if value is not None}
    row["doc_id"] = row["doc_id"].hex()
    if "meta" in row:
        row["meta"] = orjson.Fragment(row["meta"])
    return row


@contextlib.contextmanager
def _compressed(path: Path, suffix: str) -> Iterator[IO[bytes]]:
    with path.open("wb") as raw:
        if suffix == ".gz":
            # No name and no time in the header: the same documents give the same bytes.
            with gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0) as stream:
                yield stream  # type: ignore[misc]
        elif suffix == ".zst":
            with zstandard.ZstdCompressor(level=6, write_checksum=True).stream_writer(raw, closefd=False) as stream:
                yield stream
        else:
            yield raw
