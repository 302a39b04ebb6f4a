"""Encoded documents on disk, between encoding and packing: one part file for each shard.

A part is an Arrow file: who a document is, its ids with EOS (and BOS), and what was lost. `Parts` reads many of them
as one row of documents. Where each document lies stands in anonymous files (12 bytes a document, `Spool`), and ids are
read where they lie, straight into the block that is being packed, so memory does not grow with the corpus.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tokenization.errors import TokenFileError
from tokenization.layout import Tokens
from tokenization.packing.spool import Spool
from tokenization.tokenizer import Encoded, Tokenizer

__all__ = ["WHO", "PartWriter", "Parts", "Totals", "part_schema"]

_KEY = b"corpusmill.part"
_FORMAT = 2
_OPEN_FILES = 128
"""Part files kept open at once, by all threads together; a process may have 1,024."""
WHO = ("doc_id", "text_id", "id", "source", "language")
"""Columns that say who a document is. `language` is empty where it is not known."""

Ints = npt.NDArray[np.int64]


@dataclass(slots=True)
class Totals:
    """Sums over documents or rows."""

    tokens: int = 0
    unknown: int = 0
    characters: int = 0
    lost: int = 0


def part_schema(dtype: np.dtype[Any], fingerprint: str) -> pa.Schema:
    """Columns of a part. `ids` hold the document's tokens with its EOS."""
    fields = [
        ("doc_id", pa.binary(16)),
        ("text_id", pa.binary(16)),
        ("id", pa.string()),
        ("source", pa.string()),
        ("language", pa.string()),
        ("unknown", pa.int64()),
        ("characters", pa.int64()),
        ("lost", pa.int64()),
        ("ids", pa.list_(pa.field("token", pa.from_numpy_dtype(dtype), nullable=False))),
    ]
    card = json.dumps({"format": _FORMAT, "fingerprint": fingerprint, "dtype": dtype.name})
    return pa.schema([pa.field(name, kind, nullable=False) for name, kind in fields], metadata={_KEY: card})


class PartWriter:
    """Writes one part file, batch by batch; a context manager. Counts what it writes."""

    def __init__(self, path: Path, tokenizer: Tokenizer) -> None:
        self._schema = part_schema(tokenizer.dtype, tokenizer.fingerprint())
        self._sink = pa.OSFile(str(path), "wb")
        self._writer = pa.ipc.new_file(self._sink, self._schema)
        self.documents = self.tokens = self.unknown = self.characters = self.lost = 0

    def __enter__(self) -> PartWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._writer.close()
        self._sink.close()

    def write(self, who: pa.RecordBatch, encoded: Sequence[Encoded]) -> None:
        """Write one batch: columns `WHO`, and the ids of the same documents in order.

        Raises:
            TokenFileError: too many tokens for one Arrow list.
        """
        lengths, unknown, characters, lost, ids = (
            np.concatenate([getattr(part, name) for part in encoded])
            for name in ("lengths", "unknown", "characters", "lost", "ids")
        )
        borders = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        if borders[-1] >= 2**31:
            raise TokenFileError(
                f"{len(lengths)} documents of {borders[-1]} tokens together, the longest of {lengths.max()}: an Arrow list "
                "holds less than 2^31. Encode less at a time, or set a lower ingest.max_record_mb."
            )
        columns = [
            *(who.column(name).cast(self._schema.field(name).type) for name in WHO),
            *(pa.array(column) for column in (unknown, characters, lost)),
            pa.ListArray.from_arrays(
                pa.array(borders.astype(np.int32)), pa.array(ids), type=self._schema.field("ids").type
            ),
        ]
        self._writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=self._schema))
        self.documents += len(lengths)
        self.tokens += int(borders[-1])
        self.unknown += int(unknown.sum())
        self.characters += int(characters.sum())
        self.lost += int(lost.sum())


class Parts:
    """Part files as one row of documents, in the order given. A context manager: it keeps files open.

    lengths: Spool of int32, one a document: its tokens with EOS.
    totals: over all documents.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        fingerprint: str,
        dtype: np.dtype[Any],
        folder: Path,
        *,
        checksums: Sequence[str] | None = None,
        threads: int = 1,
    ) -> None:
        """Index the parts.

        Args:
            folder: on a disk with room for 12 bytes a document.
            checksums: SHA-256 of each part in hex. Given, the parts are checked first, and a part that is replaced
                later is refused only if it is another one.
            threads: how many threads call `gather`.

        Raises:
            TokenFileError: a part is missing, unreadable, or was made by another tokenizer.
            OSError: the disk is full.
        """
        self.paths = list(paths)
        self.dtype = dtype
        self.totals = Totals()
        self._checksums = checksums
        self._limit = max(1, _OPEN_FILES // threads)
        self._idle: list[_OpenParts] = []
        self._current: tuple[int, pa.ipc.RecordBatchFileReader, pa.NativeFile] | None = None
        self._batches: list[tuple[int, int]] = []  # part, number in it
        self._identities: list[tuple[int, ...]] = []
        rows: list[int] = []
        self.lengths, self._places = Spool(folder, np.int32), Spool(folder, np.int64)
        try:
            for number in range(len(self.paths)):
                rows += self._index(number, fingerprint)
        except BaseException:
            self.close()
            raise
        self._batch_first = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.array(rows, np.int64))])
        self._batch_part = np.array([part for part, _ in self._batches], np.int64)

    def __enter__(self) -> Parts:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __len__(self) -> int:
        return len(self.lengths)

    def close(self) -> None:
        """Close all files."""
        for files in self._idle:
            files.close()
        self._idle.clear()
        if self._current is not None:
            self._current[2].close()
            self._current = None
        self.lengths.close()
        self._places.close()

    def gather(self, document: Ints, start: Ints, length: Ints, position: Ints, out: Tokens) -> None:
        """Copy pieces of documents into `out` (flat): tokens start .. start + length of each to `position`.

        Safe in threads, each with an `out` of its own.

        Raises:
            TokenFileError: a part file became shorter meanwhile, or is another one.
        """
        if not len(document):
            return
        size = self.dtype.itemsize
        source = self._places.take(document) + start * size
        part = self._batch_part[np.searchsorted(self._batch_first, document, side="right") - 1]
        begin, end = position * size, (position + length) * size
        # In the order of the parts, so that each is opened once and read forwards.
        order = np.lexsort((source, part))
        part, source, begin, end = part[order], source[order], begin[order], end[order]
        # Neighbours in the part that stay neighbours in the block are read at once.
        joined = (
            (part[1:] == part[:-1]) & (source[1:] - source[:-1] == begin[1:] - begin[:-1]) & (begin[1:] == end[:-1])
        )
        heads, tails = np.concatenate([[True], ~joined]), np.concatenate([~joined, [True]])
        part, source, begin, end = part[heads], source[heads], begin[heads], end[tails]
        view = out.reshape(-1).view(np.uint8).data
        try:
            files = self._idle.pop()
        except IndexError:
            files = _OpenParts(self, self._limit)
        try:
            edges = [0, *(np.flatnonzero(np.diff(part)) + 1).tolist(), len(part)]
            for first, last in pairwise(edges):
                number = int(part[first])
                descriptor, here = files.descriptor(number), slice(first, last)
                places = zip(source[here].tolist(), begin[here].tolist(), end[here].tolist(), strict=True)
                for offset, a, b in places:
                    if os.preadv(descriptor, [view[a:b]], offset) != b - a:
                        raise TokenFileError(f"{self.paths[number]} is cut: {b - a} bytes at {offset} are not there.")
        finally:
            self._idle.append(files)

    def who(self, documents: Ints, columns: Sequence[str] = WHO) -> pa.Table:
        """Columns of some documents, in ascending order. Consecutive calls read each part once."""
        names = list(columns)
        batches = [self._who_batch(0).slice(0, 0).select(names)] if self._batches else []
        index = np.searchsorted(self._batch_first, documents, side="right") - 1
        borders = np.flatnonzero(np.diff(index, prepend=-1, append=len(self._batches)))
        for a, b in zip(borders[:-1].tolist(), borders[1:].tolist(), strict=True):
            number = int(index[a])
            inside = documents[a:b] - self._batch_first[number]
            batch = self._who_batch(number).select(names)
            whole = len(inside) == inside[-1] - inside[0] + 1
            batches.append(batch.slice(inside[0], len(inside)) if whole else batch.take(pa.array(inside)))
        schema = pa.schema([part_schema(self.dtype, "").field(name) for name in names])
        return pa.Table.from_batches(batches).cast(schema) if batches else schema.empty_table()

    def batches(self) -> Iterator[tuple[int, pa.RecordBatch]]:
        """All columns but the ids, batch by batch, each with the number of its first document."""
        for number, first in enumerate(self._batch_first[:-1].tolist()):
            yield first, self._who_batch(number)

    def check_unchanged(self) -> None:
        """Whether the parts are still those that were indexed.

        Raises:
            TokenFileError: one is not.
        """
        for number in range(len(self.paths)):
            os.close(self._open(number))

    def _index(self, number: int, fingerprint: str) -> list[int]:
        """Note where the documents of one part lie; the rows of its batches."""
        path = self.paths[number]
        self._identities.append(_identity(path))
        if self._checksums is not None and _sha256(path) != self._checksums[number]:
            raise TokenFileError(f"{path} is not the part that was written (SHA-256 differs).")
        reader, base = _open_part(path, fingerprint)
        rows = []
        for index in range(reader.num_record_batches):
            batch = reader.get_batch(index)
            ids = batch.column("ids")
            borders = ids.offsets.to_numpy().astype(np.int64)
            self.lengths.append(np.diff(borders))
            self._places.append(_address(ids.values) - base + borders[:-1] * self.dtype.itemsize)
            self.totals.tokens += int(borders[-1] - borders[0])
            self.totals.unknown += int(batch.column("unknown").to_numpy().sum())
            self.totals.characters += int(batch.column("characters").to_numpy().sum())
            self.totals.lost += int(batch.column("lost").to_numpy().sum())
            self._batches.append((number, index))
            rows.append(batch.num_rows)
        return rows

    def _who_batch(self, number: int) -> pa.RecordBatch:
        """One batch without its ids: read, not mapped, so that a file cut meanwhile is an error and no crash."""
        part, index = self._batches[number]
        try:
            if self._current is None or self._current[0] != part:
                if self._current is not None:
                    self._current[2].close()
                fields = part_schema(self.dtype, "").names[:-1]
                options = pa.ipc.IpcReadOptions(included_fields=list(range(len(fields))))
                source = pa.OSFile(str(self.paths[part]))
                self._current = (part, pa.ipc.open_file(source, options=options), source)
            return self._current[1].get_batch(index)
        except (OSError, pa.ArrowInvalid) as error:
            raise TokenFileError(f"part {self.paths[part]} was cut or replaced meanwhile: {error}.") from error

    def _open(self, number: int) -> int:
        """A descriptor of a part that is still the one that was indexed."""
        path = self.paths[number]
        try:
            descriptor = os.open(path, os.O_RDONLY)
        except OSError as error:
            raise TokenFileError(f"part {path} cannot be opened any more: {error.strerror}.") from error
        known = self._identities[number]
        if _stat(os.fstat(descriptor)) != known:
            # Another try of the same task may have put the same bytes in place.
            if self._checksums is None or _sha256(path) != self._checksums[number]:
                os.close(descriptor)
                raise TokenFileError(f"part {path} was changed or replaced while it was packed.")
            self._identities[number] = _stat(os.fstat(descriptor))
        return descriptor


class _OpenParts:
    """Descriptors of a few parts, for one thread at a time; the one opened first is closed first."""

    def __init__(self, parts: Parts, limit: int) -> None:
        self._parts, self._limit = parts, limit
        self._open: dict[int, int] = {}

    def descriptor(self, number: int) -> int:
        found = self._open.get(number)
        if found is None:
            if len(self._open) >= self._limit:
                os.close(self._open.pop(next(iter(self._open))))
            found = self._open[number] = self._parts._open(number)
        return found

    def close(self) -> None:
        while self._open:
            os.close(self._open.popitem()[1])


def _stat(found: os.stat_result) -> tuple[int, ...]:
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)


def _identity(path: Path) -> tuple[int, ...]:
    try:
        return _stat(path.stat())
    except OSError as error:
        raise TokenFileError(f"part {path} is missing or damaged: {error.strerror}.") from error


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _open_part(path: Path, fingerprint: str) -> tuple[pa.ipc.RecordBatchFileReader, int]:
    """Map a part: (reader, address of its first byte)."""
    try:
        source = pa.memory_map(str(path))
        base = int(source.read_buffer(1).address)
        reader = pa.ipc.open_file(source)
    except (OSError, pa.ArrowInvalid) as error:
        raise TokenFileError(f"part {path} is missing or damaged: {error}.") from error
    card = json.loads((reader.schema.metadata or {}).get(_KEY, b"{}"))
    if card.get("format") not in (None, _FORMAT):
        raise TokenFileError(f"part {path} has format {card['format']}; this version packs {_FORMAT}. Encode it again.")
    if card.get("fingerprint") != fingerprint:
        raise TokenFileError(
            f"part {path} was encoded by tokenizer {str(card.get('fingerprint'))[:16]}, "
            f"but {fingerprint[:16]} packs it. Encode it again."
        )
    return reader, base


def _address(values: pa.Array) -> int:
    buffer = values.buffers()[1]
    return int(buffer.address) if buffer is not None else 0
