"""Encoded documents on disk, between encoding and packing: one part file for each shard.

A part is an Arrow file: who a document is, its ids with EOS, and what was lost. `Parts` reads many of them
as one row of documents. It holds 28 bytes for each document; ids are read where they lie, straight into the
block that is being packed, so neither memory nor the resident share of mapped files grows with the corpus.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tokenization.errors import TokenFileError
from tokenization.layout import Tokens
from tokenization.tokenizer import Encoded, Tokenizer

__all__ = ["PartWriter", "Parts", "part_schema"]

_KEY = b"corpusmill.part"
_OPEN_FILES = 128
"""Part files kept open at once; a process may have 1,024."""

Ints = npt.NDArray[np.int64]


def part_schema(dtype: np.dtype[Any], fingerprint: str) -> pa.Schema:
    """Columns of a part. `ids` hold the document's tokens with its EOS."""
    fields = [
        ("doc_id", pa.binary(16)),
        ("id", pa.string()),
        ("source", pa.string()),
        ("unknown", pa.int64()),
        ("characters", pa.int64()),
        ("lost", pa.int64()),
        ("ids", pa.list_(pa.field("token", pa.from_numpy_dtype(dtype), nullable=False))),
    ]
    card = json.dumps({"format": 1, "fingerprint": fingerprint, "dtype": dtype.name})
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
        """Write one batch: columns doc_id, id and source, and the ids of the same documents in order."""
        lengths, unknown, characters, lost, ids = (
            np.concatenate([getattr(part, name) for part in encoded])
            for name in ("lengths", "unknown", "characters", "lost", "ids")
        )
        borders = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        if borders[-1] >= 2**31:
            raise TokenFileError(
                f"a batch of {borders[-1]} tokens is too long for an Arrow list: encode less at a time."
            )
        columns = [
            *(who.column(name).cast(self._schema.field(name).type) for name in ("doc_id", "id", "source")),
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

    lengths: int64[n_documents], tokens of each with its EOS.
    """

    def __init__(self, paths: Sequence[Path], fingerprint: str, dtype: np.dtype[Any]) -> None:
        """Index the parts.

        Raises:
            TokenFileError: a part is missing, unreadable, or was made by another tokenizer.
        """
        self.paths = list(paths)
        self.dtype = dtype
        self.unknown = self.characters = self.lost = 0
        lengths: list[Ints] = [np.zeros(0, np.int64)]
        places: list[Ints] = [np.zeros(0, np.int64)]
        batch_rows: list[tuple[int, int, int]] = []  # part, batch, documents
        for number, path in enumerate(self.paths):
            reader, base = _open_part(path, fingerprint)
            for index in range(reader.num_record_batches):
                batch = reader.get_batch(index)
                ids = batch.column("ids")
                borders = ids.offsets.to_numpy().astype(np.int64)
                lengths.append(np.diff(borders))
                places.append(_address(ids.values) - base + borders[:-1] * dtype.itemsize)
                batch_rows.append((number, index, batch.num_rows))
                self.unknown += int(batch.column("unknown").to_numpy().sum())
                self.characters += int(batch.column("characters").to_numpy().sum())
                self.lost += int(batch.column("lost").to_numpy().sum())
        self.lengths = np.concatenate(lengths)
        self._places = np.concatenate(places)
        self._batches = batch_rows
        rows = np.array([n for _, _, n in batch_rows], np.int64)
        self._batch_first = np.concatenate([np.zeros(1, np.int64), np.cumsum(rows)])
        self._part = np.repeat(np.array([part for part, _, _ in batch_rows], np.int32), rows)
        self._open: dict[int, int] = {}
        self._current: tuple[int, pa.ipc.RecordBatchFileReader] | None = None

    def __enter__(self) -> Parts:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for descriptor in self._open.values():
            os.close(descriptor)
        self._open.clear()
        self._current = None

    def __len__(self) -> int:
        return len(self.lengths)

    def gather(self, document: Ints, start: Ints, length: Ints, position: Ints, out: Tokens) -> None:
        """Copy pieces of documents into `out` (flat): tokens start .. start + length of each to `position`.

        Raises:
            TokenFileError: a part file became shorter meanwhile.
        """
        size = self.dtype.itemsize
        source = self._places[document] + start * size
        part = self._part[document]
        begin, end = position * size, (position + length) * size
        # Neighbours in the part that stay neighbours in the block are read at once.
        if len(document):
            joined = (
                (part[1:] == part[:-1]) & (source[1:] == source[:-1] + length[:-1] * size) & (begin[1:] == end[:-1])
            )
            heads = np.concatenate([[True], ~joined])
            tails = np.concatenate([~joined, [True]])
            part, source, begin, end = part[heads], source[heads], begin[heads], end[tails]
        view = out.reshape(-1).view(np.uint8).data
        for number, offset, a, b in zip(part.tolist(), source.tolist(), begin.tolist(), end.tolist(), strict=True):
            descriptor = self._open.get(number)
            if descriptor is None:
                descriptor = self._open_descriptor(number)
            if os.preadv(descriptor, [view[a:b]], offset) != b - a:
                raise TokenFileError(f"{self.paths[number]} is cut: {b - a} bytes at {offset} are not all there.")

    def rows(self, first: int, last: int) -> pa.Table:
        """doc_id, id and source of documents first .. last. Consecutive calls read each part once."""
        batches = []
        index = int(np.searchsorted(self._batch_first, first, side="right")) - 1
        while first < last:
            part, batch_number, _ = self._batches[index]
            begin, end = int(self._batch_first[index]), min(last, int(self._batch_first[index + 1]))
            batch = self._reader(part).get_batch(batch_number).select(["doc_id", "id", "source"])
            batches.append(batch.slice(first - begin, end - first))
            first = end
            index += 1
        return pa.Table.from_batches(batches)

    def _reader(self, part: int) -> pa.ipc.RecordBatchFileReader:
        if self._current is None or self._current[0] != part:
            self._current = (part, pa.ipc.open_file(pa.memory_map(str(self.paths[part]))))
        return self._current[1]

    def _open_descriptor(self, part: int) -> int:
        if len(self._open) >= _OPEN_FILES:
            oldest = next(iter(self._open))
            os.close(self._open.pop(oldest))
        self._open[part] = os.open(self.paths[part], os.O_RDONLY)
        return self._open[part]


def _open_part(path: Path, fingerprint: str) -> tuple[pa.ipc.RecordBatchFileReader, int]:
    """Map a part: (reader, address of its first byte)."""
    try:
        source = pa.memory_map(str(path))
        base = int(source.read_buffer(1).address)
        reader = pa.ipc.open_file(source)
    except (OSError, pa.ArrowInvalid) as error:
        raise TokenFileError(f"part {path} is missing or damaged: {error}.") from error
    card = json.loads((reader.schema.metadata or {}).get(_KEY, b"{}"))
    if card.get("fingerprint") != fingerprint:
        raise TokenFileError(
            f"part {path} was encoded by tokenizer {str(card.get('fingerprint'))[:16]}, "
            f"but {fingerprint[:16]} packs it. Encode it again."
        )
    return reader, base


def _address(values: pa.Array) -> int:
    buffer = values.buffers()[1]
    return int(buffer.address) if buffer is not None else 0
