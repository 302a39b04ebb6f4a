"""Reading shards and the verdicts beside them, guarded by row counts and checksums.

Shards are memory-mapped: opening costs a hash of the file (about 40 ms for 64 MB), and columns are
zero-copy views of the page cache.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from curation.errors import RunError
from curation.run import Run, file_sha256, publish

__all__ = [
    "Shard",
    "alive_mask",
    "batches",
    "groups_by_bytes",
    "item_marker",
    "open_table",
    "read_column",
    "shards_of",
    "text_places",
    "write_table",
]


@dataclass(frozen=True, slots=True)
class Shard:
    """One file of documents, as the marker of ingest describes it."""

    name: str
    path: Path
    rows: int
    text_bytes: int
    sha256: str


def shards_of(run: Run) -> list[Shard]:
    """All shards of a run in document order."""
    return [
        Shard(s["name"], run.shard_path(s["name"]), int(s["rows"]), int(s["text_bytes"]), s["sha256"])
        for s in run.ingested()["shards"]
    ]


_verified: set[tuple[str, int, int, str]] = set()


def _verify(path: Path, sha256: str) -> None:
    """Hash a file once per process and version; refuse it if it is not what its marker says."""
    try:
        status = path.stat()
    except FileNotFoundError:
        raise RunError(f"{path} is missing. Run the same command again: it will be made anew.") from None
    key = (str(path), status.st_size, status.st_mtime_ns, sha256)
    if key in _verified:
        return
    found = file_sha256(path)
    if found != sha256:
        raise RunError(
            f"{path} is not the file that was written: expected SHA-256 {sha256[:16]}..., found {found[:16]}.... "
            "It is damaged or belongs to another run. Delete it and run the same command again."
        )
    _verified.add(key)


def open_table(path: Path, sha256: str | None = None, rows: int | None = None) -> pa.ipc.RecordBatchFileReader:
    """Map an Arrow file of a run after checking it.

    Raises:
        RunError: missing, damaged, or not `rows` rows long.
    """
    if sha256 is not None:
        _verify(path, sha256)
    try:
        reader = pa.ipc.open_file(pa.memory_map(str(path)))
    except (pa.ArrowInvalid, OSError) as error:
        raise RunError(
            f"{path} cannot be read as an Arrow file: {error}. Delete it and run the command again."
        ) from error
    if rows is not None:
        found = sum(reader.get_batch(i).num_rows for i in range(reader.num_record_batches))
        if found != rows:
            raise RunError(f"{path} holds {found} rows where {rows} were expected: it belongs to another run.")
    return reader


def batches(shard: Shard, columns: Sequence[str]) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Batches of a shard with the row number at which each begins."""
    reader = open_table(shard.path, shard.sha256, shard.rows)
    start = 0
    for i in range(reader.num_record_batches):
        batch = reader.get_batch(i)
        yield start, batch.select(list(columns))
        start += batch.num_rows


def read_column(shard: Shard, column: str) -> pa.ChunkedArray:
    """One column of a shard, mapped."""
    parts = [batch.column(0) for _, batch in batches(shard, [column])]
    return pa.chunked_array(parts, type=parts[0].type) if parts else pa.chunked_array([], type=pa.null())


def text_places(
    shard: Shard, rows: npt.NDArray[np.int64]
) -> Iterator[tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
    """Where the texts of some rows, ascending, lie: bytes of a batch, and starts and ends in it, batch by batch.

    Nothing is copied, and the file's checksum is not looked at: only the pages of those texts are read. The caller has
    to know by other means that they are what they were; this only never points outside of the file.

    Raises:
        RunError: the file is missing, cut, damaged where it was looked at, or has another number of rows.
    """
    try:
        starts = _batch_starts(shard, shard.path.stat().st_mtime_ns)
        reader = open_table(shard.path)  # anew each time: pages that stay mapped would count as this process's memory
        borders = np.searchsorted(rows, starts)
        for i in np.flatnonzero(np.diff(borders)).tolist():
            yield _places(reader.get_batch(i).column("text"), rows[borders[i] : borders[i + 1]] - starts[i])
    except FileNotFoundError:
        raise RunError(f"{shard.path} is missing. Run the same command again: it will be made anew.") from None
    except (pa.ArrowInvalid, OSError) as error:
        raise RunError(f"{shard.path} is damaged: {error}. Delete it and run the same command again.") from error


@lru_cache(maxsize=65_536)
def _batch_starts(shard: Shard, modified: int) -> npt.NDArray[np.int64]:
    """The row at which each batch of a shard begins, and the rows of all: to look costs more than a few texts."""
    reader = open_table(shard.path, None, shard.rows)
    rows = [reader.get_batch(i).num_rows for i in range(reader.num_record_batches)]
    return np.concatenate([[0], np.cumsum(rows, dtype=np.int64)])


def _places(
    texts: pa.Array, rows: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    _, offsets, data = texts.buffers()
    content = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
    borders = np.frombuffer(offsets, np.int64, len(texts) + 1, texts.offset * 8)
    starts, ends = borders[rows], borders[rows + 1]
    if (starts < 0).any() or (starts > ends).any() or int(ends.max(initial=0)) > len(content):
        raise pa.ArrowInvalid("a text lies outside of the file")
    return content, starts, ends


def alive_mask(folder: Path | None, shard: Shard) -> npt.NDArray[np.bool_]:
    """Which rows of a shard are still kept after the step in `folder`: bool[rows]. None = before any step."""
    if folder is None:
        return np.ones(shard.rows, np.bool_)
    marker = item_marker(folder, shard.name)
    reader = open_table(folder / f"{shard.name}.arrow", marker["verdict_sha256"], shard.rows)
    if marker["shard_sha256"] != shard.sha256:
        raise RunError(
            f"{folder / shard.name}.arrow speaks about another version of shard {shard.name}: delete {folder}."
        )
    keep = [reader.get_batch(i).column("keep") for i in range(reader.num_record_batches)]
    if not keep:
        return np.zeros(0, np.bool_)
    return np.concatenate([k.fill_null(False).to_numpy(zero_copy_only=False) for k in keep]).astype(np.bool_)


def item_marker(folder: Path, name: str) -> dict[str, Any]:
    """The marker of one item in a step's folder.

    Raises:
        RunError: the item is not done.
    """
    from curation.run import read_json

    marker: dict[str, Any] = read_json(folder / "_items" / f"{name}.json")
    return marker


def write_table(path: Path, table: pa.Table | pa.RecordBatch, *, durable: bool = True) -> None:
    """Publish an Arrow file atomically. `durable`: see `run.publish`."""
    with (
        publish(path, durable=durable) as temporary,
        pa.OSFile(str(temporary), "wb") as sink,
        pa.ipc.new_file(sink, table.schema) as writer,
    ):
        writer.write(table)


def groups_by_bytes(texts: pa.Array, n_bytes: int) -> Iterator[tuple[int, int]]:
    """Ranges of rows with about `n_bytes` of text each; at least one row."""
    ends: npt.NDArray[np.int64] = np.cumsum(pc.binary_length(texts).to_numpy(zero_copy_only=False).astype(np.int64))
    begin = 0
    while begin < len(ends):
        before = int(ends[begin - 1]) if begin else 0
        end = max(begin + 1, int(np.searchsorted(ends, before + n_bytes, side="right")))
        yield begin, end
        begin = end
