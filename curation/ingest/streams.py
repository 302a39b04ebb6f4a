"""One slice of an input as decompressed bytes, in blocks of bounded size, with every fault named and placed.

Plain bytes are read from the slice's start on, gzip and zstd files as a whole. gzip (ISA-L) and zstd come out at
about 0.5 GB/s of decompressed bytes. Memory: a few MB, plus the window that a zstd frame asks for: 8 MB as a rule,
2 GiB at most.

The rule for damage: every byte that was decoded before the fault is delivered, and the file is marked.
A fault is often noticed only some bytes after it happened, so the last records before it may be wrong
though they parse; whoever wants none of them takes the list of damaged files and leaves those out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from curation.ingest.forms import HEAD_BYTES, compression_of, named_compression
from curation.ingest.members import read_gzip, read_zstd
from curation.ingest.record import Damage, Slice, SliceReport
from curation.ingest.stored import BLOCK_BYTES, Stored, blaming, local_path, mark, open_as_planned, open_source

__all__ = ["Stored", "local_path", "mark", "open_source", "open_stream"]

_AFTER_END_BYTES = 65_536
"""Beyond a slice's end only the rest of one record is wanted."""


def open_stream(part: Slice, report: SliceReport) -> Iterator[bytes | Damage]:
    """The decompressed bytes of a slice in blocks, and a Damage at each place where the stream is broken.

    A plain slice that starts inside the file begins with the byte before its start, so that the reader can
    see whether a line begins there, and goes on beyond its end until the reader stops. `report.sha256` covers
    exactly the slice's stored bytes and stands once they have been delivered.

    Raises:
        InputError: the file is gone, may not be read, or has another size than planned.
        RunError: the store failed; a retry may help.
    """
    if part.start > 0 or part.end < part.size:
        return _plain_slice(part, report)
    return _whole_file(part, report)


def _whole_file(part: Slice, report: SliceReport) -> Iterator[bytes | Damage]:
    with Stored(part, report) as stored:
        stored.fill(HEAD_BYTES)
        compression = compression_of(stored.buffer[:HEAD_BYTES], part.source)
        if part.size == 0:
            report.notes["empty_file"] = 1
            if named_compression(part.source) != "none":
                yield mark(report, "truncated_stream", 0, "the file has 0 bytes: not even the head of a stream")
        if compression == "gzip":
            yield from read_gzip(stored, report)
        elif compression == "zstd":
            yield from read_zstd(stored, report)
        else:
            while block := stored.take(BLOCK_BYTES):
                yield block
        stored.drain()


def _plain_slice(part: Slice, report: SliceReport) -> Iterator[bytes | Damage]:
    with open_as_planned(part) as stream:
        hashed = hashlib.sha256()
        offset = max(part.start - 1, 0)
        with blaming(part.source, offset):
            stream.seek(offset)
        while True:
            wanted = min(BLOCK_BYTES, part.end - offset) if offset < part.end else _AFTER_END_BYTES
            with blaming(part.source, offset):
                block = stream.read(wanted)
            if not block:
                return
            if offset < part.end:
                hashed.update(block[1:] if offset < part.start else block)
                report.sha256 = hashed.hexdigest() if offset + len(block) >= part.end else ""
            offset += len(block)
            yield block
