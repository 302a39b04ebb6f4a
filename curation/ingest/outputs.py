"""Writers of shards and quarantine: whole files or none, the same bytes for the same input.

A shard is an uncompressed Arrow IPC file in record batches of about 8 MB. Costs about
5 ns a byte of text, half of it for identities (NFC check, SHA-256), a third for writing and hashing the file.
Memory: one batch of documents as Python objects and as Arrow columns, about 40 MB.
"""

from __future__ import annotations

import base64
import contextlib
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

import numpy as np
import orjson
import pyarrow as pa

from curation.ids import doc_id, text_id
from curation.ingest.record import Damage, Document
from curation.records import SHARD_SCHEMA
from curation.run import file_sha256, publish

__all__ = ["QuarantineWriter", "ShardWriter"]

BATCH_BYTES = 8 * 2**20
BATCH_ROWS = 16_384
"""Of very short documents a batch holds this many, so that their Python objects stay small."""


class ShardWriter:
    """Cuts the documents of one part into shards named `PPPPP-SSS`.

    A context manager: left before `finish`, its open shard leaves nothing behind.
    """

    def __init__(self, folder: Path, part: int, sources: Sequence[str], shard_bytes: int) -> None:
        self.folder = folder
        self.part = part
        self.sources = list(sources)
        self.shard_bytes = shard_bytes
        self.written: list[dict[str, Any]] = []
        """Of each shard: name, rows, text_bytes, file_bytes, sha256."""
        self._dictionary = pa.array(self.sources, pa.string())
        self._source = 0
        self._documents: list[Document] = []
        self._encoded: list[bytes] = []
        self._source_of: list[int] = []
        self._batch_bytes = 0
        self._shard_rows = 0
        self._shard_text = 0
        self._shard_weight = 0
        self._stack = contextlib.ExitStack()
        self._writer: Any = None
        self._name = ""

    def __enter__(self) -> ShardWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert kind is not None or self._writer is None, "finish was not called"
        self._stack.__exit__(kind, error, trace)

    def finish(self) -> None:
        """Publish the last shard."""
        self._close_shard()

    def begin_source(self, index: int) -> None:
        """The documents that follow come from `sources[index]`."""
        self._source = index

    def add(self, document: Document) -> None:
        """Take a document; now and then a batch or a shard is written."""
        encoded = document.text.encode()
        # Other fields count too: a shard of short texts with huge meta would be no smaller for its readers.
        weight = len(encoded) + len(document.meta or "")
        if self._shard_weight + weight > self.shard_bytes and self._shard_weight:
            self._close_shard()
        elif self._batch_bytes + weight > BATCH_BYTES or len(self._documents) >= BATCH_ROWS:
            self._write_batch()
        self._documents.append(document)
        self._encoded.append(encoded)
        self._source_of.append(self._source)
        self._batch_bytes += weight
        self._shard_weight += weight
        self._shard_text += len(encoded)

    def _open_shard(self) -> None:
        self._name = f"{self.part:05d}-{len(self.written):03d}"
        temporary = self._stack.enter_context(publish(self.folder / f"{self._name}.arrow"))
        sink = self._stack.enter_context(pa.OSFile(str(temporary), "wb"))
        schema = SHARD_SCHEMA.with_metadata({"part": str(self.part), "shard": self._name})
        self._writer = self._stack.enter_context(pa.ipc.new_file(sink, schema))

    def _write_batch(self) -> None:
        if not self._documents:
            return
        if self._writer is None:
            self._open_shard()
        self._writer.write_batch(self._batch())
        self._shard_rows += len(self._documents)
        self._documents, self._encoded, self._source_of, self._batch_bytes = [], [], [], 0

    def _batch(self) -> pa.RecordBatch:
        documents, sources = self._documents, self.sources
        text_ids = [text_id(document.text, own) for document, own in zip(documents, self._encoded, strict=True)]
        doc_ids = [
            doc_id(sources[source], document.byte_offset or 0, document.row, content)
            for document, source, content in zip(documents, self._source_of, text_ids, strict=True)
        ]
        ids = [document.id or own.hex() for document, own in zip(documents, doc_ids, strict=True)]
        offsets = np.zeros(len(documents) + 1, np.int64)
        np.cumsum([len(own) for own in self._encoded], out=offsets[1:])
        # Joined here, since Arrow would grow its buffer step by step; str.encode made valid UTF-8, so no check is due.
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(b"".join(self._encoded))]
        columns = [
            pa.array(doc_ids, pa.binary(16)),
            pa.array(text_ids, pa.binary(16)),
            pa.array(ids, pa.string()),
            pa.DictionaryArray.from_arrays(pa.array(self._source_of, pa.int32()), self._dictionary),
            pa.array([document.url for document in documents], pa.string()),
            pa.array([document.line for document in documents], pa.int64()),
            pa.array([document.byte_offset for document in documents], pa.int64()),
            pa.Array.from_buffers(pa.large_string(), len(documents), buffers),
            pa.array([document.meta for document in documents], pa.string()),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=SHARD_SCHEMA)

    def _close_shard(self) -> None:
        self._write_batch()
        if self._writer is None:
            return
        # Ends the Arrow file, closes it, then publishes it.
        self._stack.close()
        path = self.folder / f"{self._name}.arrow"
        self.written.append(
            {
                "name": self._name,
                "rows": self._shard_rows,
                "text_bytes": self._shard_text,
                "file_bytes": path.stat().st_size,
                "sha256": file_sha256(path),
            }
        )
        self._writer = None
        self._shard_rows = self._shard_text = self._shard_weight = 0


class QuarantineWriter:
    """One JSON object a line for each record or file that could not be read; no file where there is none.

    A context manager: on an error it leaves nothing behind.
    """

    def __init__(self, path: Path, kept_bytes: int) -> None:
        self.path = path
        self.kept_bytes = kept_bytes
        self._stack = contextlib.ExitStack()
        self._stream: BinaryIO | None = None

    def __enter__(self) -> QuarantineWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)
        if kind is None and self._stream is None:
            self.path.unlink(missing_ok=True)

    def add(self, source: str, damage: Damage) -> None:
        """Write one entry."""
        if self._stream is None:
            temporary = self._stack.enter_context(publish(self.path))
            self._stream = self._stack.enter_context(temporary.open("wb"))
        raw = damage.raw[: self.kept_bytes]
        length = damage.raw_length or len(damage.raw)
        entry = {
            "file": source,
            "line": damage.line,
            "byte_offset": damage.byte_offset,
            "reason": damage.reason,
            "whole_file": damage.whole_file,
            "detail": damage.detail,
            **_as_json(raw, cut=length > len(raw)),
            "raw_length": length,
        }
        self._stream.write(orjson.dumps(entry, option=orjson.OPT_APPEND_NEWLINE))


def _as_json(raw: bytes, *, cut: bool) -> dict[str, str]:
    """Bytes as `raw` where they are text, else as `raw_base64`."""
    try:
        return {"raw": raw.decode()}
    except UnicodeDecodeError as error:
        # The cut may have gone through a character.
        if cut and error.end == len(raw) and error.reason == "unexpected end of data":
            return {"raw": raw[: error.start].decode()}
        return {"raw_base64": base64.b64encode(raw).decode("ascii")}
