"""Parquet and Arrow IPC (file and stream) into documents, block by block, in bounded memory.

A block is a parquet row group or an Arrow record batch. It is read in pieces of at most 512 rows and
about 16 MB, so that no more than a piece lives as Python objects; what has to be unpacked whole is a parquet
page (1 MB as a rule) or a compressed Arrow batch. Costs about 6 us for a 2 kB row with four columns (parquet, snappy, hash
of the file included), 4 us from Arrow.

Arrow does not check that a string column holds UTF-8: it is checked here, row by row where a piece fails.
Rows that a damaged block hides are no records (they were never seen): one `bad_row_group` that speaks about
the file says which rows, and `notes["rows_lost"]` counts them where the number is known. So
`records` = documents + damages that do not speak about the whole file, always.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from curation.errors import RunError
from curation.ingest.arrow_files import READ_AHEAD, open_for_arrow
from curation.ingest.cells import BadCell, as_bytes, dump_json, holds_text, id_cells, json_cells, text_cells
from curation.ingest.config import IngestConfig
from curation.ingest.record import Damage, Document, Slice, SliceReport
from curation.ingest.streams import Stored

__all__ = ["read_columnar"]

PIECE_ROWS = 512
PIECE_BYTES = 16 << 20
"""Arrow bytes of a piece; as Python objects at most about four times as much (one astral character in a text)."""


@dataclass(frozen=True, slots=True)
class _Piece:
    """Rows of one block, with the number of the first one in the file (0-based)."""

    first_row: int
    batch: pa.RecordBatch


@dataclass(frozen=True, slots=True)
class _Lost:
    """Rows or columns that cannot be read; `rows` is None where the file does not say how many."""

    reason: str
    rows: int | None
    detail: str


def read_columnar(slice_: Slice, config: IngestConfig, report: SliceReport) -> Iterator[Document | Damage]:
    """Read a parquet or Arrow file.

    A record's `line` is its 1-based row, `row` its 0-based one. `meta` holds the other columns as a JSON
    object: nulls are left out, NaN is null, times are ISO 8601 (in UTC where they have a zone), bytes are
    text where they are UTF-8 and base64 elsewhere.

    Raises:
        InputError: the file is gone, may not be read, or has another size than planned.
        RunError: the store or the device failed; a retry may help.
    """
    with Stored(slice_, report) as stored:
        stored.drain()
    blocks = _parquet_blocks if slice_.kind == "parquet" else _arrow_blocks
    with closing(blocks(slice_.source, config)) as parts:
        for part in parts:
            if isinstance(part, _Lost):
                yield _file_damage(part, report)
            else:
                yield from _rows(part, config, report)


def _file_damage(lost: _Lost, report: SliceReport) -> Damage:
    if lost.reason not in report.damaged:
        report.damaged.append(lost.reason)
    if lost.rows:
        report.notes["rows_lost"] = report.notes.get("rows_lost", 0) + lost.rows
    return Damage(lost.reason, None, None, b"", lost.detail, whole_file=True)


# -- judging ------------------------------------------------------------------------------------

_DAMAGE_ERRORS = (pa.ArrowException, OSError, ValueError)
"""What Arrow raises for damaged bytes: an OSError without an errno for pages that do not decompress."""


def _words(error: Exception, source: str) -> str:
    """What Arrow says of damaged bytes, on one line.

    Raises:
        RunError: the device failed, which is no property of the file.
    """
    if isinstance(error, OSError) and error.errno is not None:
        raise RunError(
            f"{source} could not be read: {error}. If the device is well, run the same command again."
        ) from error
    return " ".join(str(error).split())[:500]


def _check(batch: pa.RecordBatch) -> None:
    """Make sure that no offset, length or dictionary index points nowhere: touching that would crash Arrow."""
    for column in batch.columns:
        as_bytes(column).validate(full=True)


def _readable_schema(schema: pa.Schema) -> pa.Schema:
    """The schema, once its columns' names are known to be UTF-8.

    Raises:
        UnicodeDecodeError: a name is damaged.
    """
    "".join(schema.names)
    return schema


def _unusable_column(schema: pa.Schema, config: IngestConfig, rows: int | None) -> _Lost | None:
    """Why the text column cannot be used, if it cannot."""
    found = [i for i, name in enumerate(schema.names) if name == config.text_column]
    columns = ", ".join(schema.names[:50])
    which = f"The file has: {columns}. Set ingest.text_column to the one with the text."
    if not found:
        return _Lost("unknown_column", rows, f"There is no column {config.text_column!r}. {which}")
    if len(found) > 1:
        return _Lost("duplicate_key", rows, f"{len(found)} columns are named {config.text_column!r}. {which}")
    kind = schema.field(found[0]).type
    if not holds_text(kind):
        detail = f"Column {config.text_column!r} has type {kind}; expected string or binary. {which}"
        return _Lost("wrong_text_type", rows, detail)
    return None


# -- parquet --------------------------------------------------------------------------------------


def _parquet_blocks(source: str, config: IngestConfig) -> Generator[_Piece | _Lost, None, None]:
    with open_for_arrow(source, mapped=False) as stored:
        try:
            file = pq.ParquetFile(stored, pre_buffer=False, buffer_size=READ_AHEAD, page_checksum_verification=True)
            schema, n_groups = _readable_schema(file.schema_arrow), file.metadata.num_row_groups
            sizes = [file.metadata.row_group(number).num_rows for number in range(n_groups)]
        except _DAMAGE_ERRORS as error:
            yield _Lost("bad_file", None, f"not a readable parquet file: {_words(error, source)}")
            return
        unusable = _unusable_column(schema, config, sum(sizes))
        if unusable is not None:
            yield unusable
            return
        first_row = 0
        for number, size in enumerate(sizes):
            yield from _RowGroup(file, number, first_row, size, source).parts(config.text_column)
            first_row += size


class _RowGroup:
    """One row group, read to its end or to its damage, then once more without the damaged columns."""

    def __init__(self, file: pq.ParquetFile, number: int, first_row: int, size: int, source: str) -> None:
        self.file, self.number, self.first_row, self.size, self.source = file, number, first_row, size, source
        self.done = 0
        """Rows that were delivered."""
        self.fault = ""
        """What Arrow said of the row after those."""

    def parts(self, text_column: str) -> Iterator[_Piece | _Lost]:
        """Pieces of the group, and what is lost of it."""
        yield from self._pieces(None)
        if self.done == self.size:
            return
        where = f"row group {self.number} (rows {self.first_row + 1} to {self.first_row + self.size})"
        names = self.file.schema_arrow.names
        sound = [name for name in names if self._is_sound(name)]
        if text_column in sound and len(sound) < len(names):
            broken = ", ".join(name for name in names if name not in sound)
            at = self.first_row + self.done + 1
            yield _Lost("bad_row_group", None, f"{where}: from row {at} on without column {broken}: {self.fault}")
            yield from self._pieces(sound)
        lost = self.size - self.done
        if lost:
            at = self.first_row + self.done + 1
            fault = self.fault or "its pages hold fewer rows than the footer says"
            yield _Lost("bad_row_group", lost, f"{where}: lost {lost} rows from row {at} on: {fault}")

    def _batches(self, columns: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
        meta = self.file.metadata.row_group(self.number)
        rows = max(1, min(PIECE_ROWS, PIECE_BYTES * self.size // max(1, meta.total_byte_size)))
        batches: Iterator[pa.RecordBatch] = self.file.iter_batches(
            rows, row_groups=[self.number], columns=columns, use_threads=False
        )
        return batches

    def _pieces(self, columns: Sequence[str] | None) -> Iterator[_Piece]:
        """Pieces from row `done` on, up to the end or to damage."""
        skip = self.done
        try:
            batches = self._batches(columns)
            while (batch := next(batches, None)) is not None:
                fresh = batch.slice(min(skip, batch.num_rows))
                skip -= batch.num_rows - fresh.num_rows
                _check(fresh)
                if fresh.num_rows:
                    yield _Piece(self.first_row + self.done, fresh)
                    self.done += fresh.num_rows
        except _DAMAGE_ERRORS as error:
            self.fault = _words(error, self.source)

    def _is_sound(self, name: str) -> bool:
        try:
            for batch in self._batches([name]):
                _check(batch)
        except _DAMAGE_ERRORS as error:
            _words(error, self.source)
            return False
        return True


# -- Arrow IPC ------------------------------------------------------------------------------------


def _arrow_blocks(source: str, config: IngestConfig) -> Generator[_Piece | _Lost, None, None]:
    with open_for_arrow(source, mapped=True) as stored:
        is_file = stored.read(6) == b"ARROW1"
        stored.seek(0)
        try:
            reader = pa.ipc.open_file(stored) if is_file else pa.ipc.open_stream(stored)
            schema = _readable_schema(reader.schema)
        except _DAMAGE_ERRORS as error:
            yield _Lost("bad_file", None, f"not a readable Arrow file or stream: {_words(error, source)}")
            return
        unusable = _unusable_column(schema, config, None)
        if unusable is not None:
            yield unusable
            return
        first_row = 0
        for batch in _file_batches(reader, source) if is_file else _stream_batches(reader, source):
            if isinstance(batch, _Lost):
                yield batch
                continue
            if config.text_column not in batch.schema.names:
                yield _Lost(
                    "bad_row_group", batch.num_rows, f"{batch.num_rows} rows from row {first_row + 1} on have no text"
                )
            else:
                for start, piece in _cut(batch):
                    yield _Piece(first_row + start, piece)
            first_row += batch.num_rows


def _file_batches(reader: Any, source: str) -> Iterator[Any]:
    """Record batches of an Arrow file; each stands alone, so that a damaged one costs only itself."""
    for number in range(reader.num_record_batches):
        try:
            batch = reader.get_batch(number)
        except _DAMAGE_ERRORS as error:
            yield _Lost("bad_row_group", None, f"record batch {number} is lost: {_words(error, source)}")
            continue
        yield from _sound_columns(batch, number)


def _stream_batches(reader: Any, source: str) -> Iterator[Any]:
    """Record batches of an Arrow stream; after a damaged message nothing says where the next begins."""
    number = 0
    while True:
        try:
            batch = reader.read_next_batch()
        except StopIteration:
            return
        except _DAMAGE_ERRORS as error:
            what = _words(error, source)
            yield _Lost("corrupt_stream", None, f"everything from record batch {number} on is lost: {what}")
            return
        yield from _sound_columns(batch, number)
        number += 1


def _sound_columns(batch: pa.RecordBatch, number: int) -> Iterator[pa.RecordBatch | _Lost]:
    """The batch without columns that are damaged."""
    broken: dict[int, str] = {}
    for i in range(batch.num_columns):
        try:
            _check(batch.select([i]))
        except _DAMAGE_ERRORS as error:
            broken[i] = " ".join(str(error).split())[:300]
    if broken:
        names = ", ".join(batch.schema.names[i] for i in broken)
        what = next(iter(broken.values()))
        yield _Lost("bad_row_group", None, f"record batch {number}: column {names} is damaged: {what}")
        batch = batch.select([i for i in range(batch.num_columns) if i not in broken])
    yield batch


def _cut(batch: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
    rows = max(1, min(PIECE_ROWS, PIECE_BYTES * batch.num_rows // max(1, batch.nbytes)))
    for start in range(0, batch.num_rows, rows):
        yield start, batch.slice(start, rows)


# -- rows -----------------------------------------------------------------------------------------


def _rows(piece: _Piece, config: IngestConfig, report: SliceReport) -> Iterator[Document | Damage]:
    """One Document or Damage for each row of a piece."""
    batch = piece.batch
    report.records += batch.num_rows
    max_bytes = int(config.max_record_mb * 2**20)
    raw_bytes = config.quarantine_raw_kb << 10
    names = batch.schema.names
    places = [names.index(name) if name in names else None for name in (config.id_column, config.url_column)]
    ids, urls = (id_cells(batch.column(i)) if i is not None else [None] * batch.num_rows for i in places)
    texts = text_cells(batch.column(names.index(config.text_column)), max_bytes, raw_bytes)
    metas = _metas(batch, {names.index(config.text_column), *places}, report)
    for i, (cell, meta) in enumerate(zip(texts, metas, strict=True)):
        row = piece.first_row + i
        if not isinstance(cell, str):
            yield _bad_row(cell, row, ids[i])
        elif not cell or cell.isspace():
            yield Damage("empty_text", row + 1, None, cell.encode(), _named(ids[i]))
        elif meta is not None and len(meta) > max_bytes - len(cell):
            detail = f"{len(cell)} characters of text and {len(meta)} of other columns, allowed are {max_bytes}"
            yield Damage("too_long", row + 1, None, cell[:raw_bytes].encode()[:raw_bytes], detail, len(cell.encode()))
        else:
            yield Document(cell, row + 1, None, ids[i], urls[i], meta, row)


def _named(id_: str | None) -> str:
    return "" if id_ is None else f"id {id_[:200]}"


def _bad_row(cell: BadCell | None, row: int, id_: str | None) -> Damage:
    if cell is None:
        return Damage("null_text", row + 1, None, b"", _named(id_))
    detail = "; ".join(part for part in (_named(id_), cell.detail) if part)
    length = cell.raw_length if cell.raw_length > len(cell.raw) else None
    return Damage(cell.reason, row + 1, None, cell.raw, detail, length)


def _metas(batch: pa.RecordBatch, taken: set[int | None], report: SliceReport) -> Iterator[str | None]:
    """The other columns of each row as one JSON object; None where all are null. A second x in column 7 is `x#7`."""
    columns: dict[str, list[Any]] = {}
    for i, name in enumerate(batch.schema.names):
        if i not in taken:
            name = f"{name}#{i}" if name in columns else name
            columns[name], given_up = json_cells(batch.column(i))
            if given_up:
                report.notes["meta_values_unreadable"] = report.notes.get("meta_values_unreadable", 0) + given_up
    for row in range(batch.num_rows):
        values = {name: cells[row] for name, cells in columns.items() if cells[row] is not None}
        yield dump_json(values) if values else None
