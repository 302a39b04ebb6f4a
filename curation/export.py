"""Documents of a finished run as files: jsonl (plain, .gz, .zst) or parquet, in run order, streamed.

What is written are the kept documents, or those that were set aside for a named output.
Costs the memory of one batch (about 8 MB of text) and of one row group, whatever the size of the run.
"""

from __future__ import annotations

import contextlib
import gzip
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, TypeAlias

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

from curation.errors import ConfigError, RunError
from curation.export_config import FORMATS
from curation.pipeline import Pipeline
from curation.routes import check_route, routed_mask
from curation.run import publish
from curation.shards import Shard, alive_mask, batches

__all__ = [
    "COLUMNS",
    "Selection",
    "check_done",
    "check_format",
    "export_kept",
    "export_selected",
    "kept_batches",
    "selection",
    "writing",
]

COLUMNS = ("id", "url", "text", "source", "line", "meta", "doc_id")
"""What is exported, in this order. `doc_id` is written in hex."""

ROW_GROUP_BYTES = 4 << 20
"""Text of a row group of parquet, at least; but the last one."""

Selection: TypeAlias = Callable[[Shard], npt.NDArray[np.bool_]]
"""Which documents of a shard are meant: bool[rows]."""
Write: TypeAlias = Callable[[pa.RecordBatch], None]


def selection(pipeline: Pipeline, route: str | None = None) -> Selection:
    """The documents that every step kept; or those that are set aside for the output `route`.

    Raises:
        ConfigError: the run's config knows no such output.
        RunError: the run is not done.
    """
    check_done(pipeline)
    if route is not None:
        check_route(route, pipeline.placed, pipeline.run.run_id)
        return lambda shard: routed_mask(pipeline.placed, shard, route)
    last = pipeline.placed[-1].folder if pipeline.placed else None
    return lambda shard: alive_mask(last, shard)


def kept_batches(pipeline: Pipeline, columns: tuple[str, ...] = COLUMNS) -> Iterator[pa.RecordBatch]:
    """Batches of the documents that every step kept, in run order.

    Raises:
        RunError: the last step is not done.
    """
    yield from _batches(pipeline, selection(pipeline), columns)


def _batches(pipeline: Pipeline, chosen: Selection, columns: tuple[str, ...] = COLUMNS) -> Iterator[pa.RecordBatch]:
    for shard in pipeline.shards:
        rows = chosen(shard)
        if not rows.any():
            continue
        for start, batch in batches(shard, columns):
            here = rows[start : start + batch.num_rows]
            if here.any():
                yield batch.filter(pa.array(here))


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
    check_format(output)
    return export_selected(pipeline, output, selection(pipeline))


def export_selected(pipeline: Pipeline, output: Path, chosen: Selection) -> int:
    """Write the chosen documents to `output`, atomically; returns how many there are. Raises: see `export_kept`."""
    check_format(output)
    count = 0
    with publish(output) as temporary, writing(temporary, output.name) as write:
        for batch in _batches(pipeline, chosen):
            write(batch)
            count += batch.num_rows
    return count


def check_format(output: Path) -> None:
    """Refuse a file whose name has no known ending.

    Raises:
        ConfigError: names the known ones.
    """
    if not output.name.endswith(FORMATS):
        raise ConfigError(f"--output {output}: expected a name that ends in {', '.join(FORMATS)}.")


@contextlib.contextmanager
def writing(path: Path, name: str) -> Iterator[Write]:
    """A function that appends batches with `COLUMNS` to a new file at `path`, in the format that `name` ends in."""
    if name.endswith(".parquet"):
        with _ParquetFile(path) as file:
            yield file.write
        return
    with _compressed(path, Path(name).suffix) as stream:

        def write(batch: pa.RecordBatch) -> None:
            for row in batch.to_pylist():
                stream.write(orjson.dumps(json_row(row), option=orjson.OPT_APPEND_NEWLINE))

        yield write


_KINDS = {"text": pa.large_string(), "line": pa.int64()}
_SCHEMA = pa.schema([(name, _KINDS.get(name, pa.string())) for name in COLUMNS])


class _ParquetFile:
    """Gathers batches into row groups: a file for a rare language gets a few documents of each shard."""

    def __init__(self, path: Path) -> None:
        self._writer = pq.ParquetWriter(path, _SCHEMA, compression="zstd", write_page_checksum=True)
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_bytes = 0

    def __enter__(self) -> _ParquetFile:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self._flush()
        finally:
            self._writer.close()

    def write(self, batch: pa.RecordBatch) -> None:
        doc_id = pa.array([value.hex() for value in batch.column("doc_id").to_pylist()], pa.string())
        columns = [batch.column(name).cast(_SCHEMA.field(name).type) for name in COLUMNS[:-1]]
        self._waiting.append(pa.RecordBatch.from_arrays([*columns, doc_id], schema=_SCHEMA))
        self._waiting_bytes += self._waiting[-1].nbytes
        if self._waiting_bytes >= ROW_GROUP_BYTES:
            self._flush()

    def _flush(self) -> None:
        if self._waiting:
            table = pa.Table.from_batches(self._waiting, _SCHEMA)
            self._writer.write_table(table, row_group_size=table.num_rows)
        self._waiting, self._waiting_bytes = [], 0


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
