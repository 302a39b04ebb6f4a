"""The stored bytes of an input: opened wherever they lie, read once, hashed on the way, with a look ahead.

Costs 0.7 ns a byte for SHA-256. Memory: what the caller looks ahead. Faults of a file that is gone or changed are
the user's to mend; those of a disk or store are `RunError`, since a retry may help.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, cast
from urllib.parse import unquote

from curation.errors import CorpusmillError, InputError, RunError
from curation.ingest.forms import HEAD_BYTES
from curation.ingest.record import Damage, Slice, SliceReport

__all__ = ["BLOCK_BYTES", "Stored", "blaming", "local_path", "mark", "open_as_planned", "open_source"]

BLOCK_BYTES = 2**20
"""Bytes of a plain block. Bigger blocks fall out of the processor's cache."""


def local_path(source: str) -> Path | None:
    """The path of a source on this machine, None if it is a URL of another kind."""
    if source.startswith("file://"):
        literal = source.removeprefix("file://")
        return (
            Path(literal) if Path(literal).exists() else Path(os.fsdecode(unquote(literal, errors="surrogateescape")))
        )
    return None if "://" in source else Path(source)


@contextlib.contextmanager
def blaming(source: str, offset: int = 0) -> Iterator[None]:
    """Say which input failed where. The faults of a store come in exceptions of any class."""
    try:
        yield
    except (CorpusmillError, MemoryError):
        raise
    except FileNotFoundError as error:
        raise InputError(
            f"{source} was there when the run was planned and is gone. Put it back, or start a new run."
        ) from error
    except PermissionError as error:
        raise InputError(f"{source} may not be read by this user. Change its rights, or leave it out.") from error
    except Exception as error:
        raise RunError(
            f"{source} could not be read at byte {offset:,}: {type(error).__name__}: {error}. "
            "Once the disk or store is well again, run the same command again: it goes on where it stopped."
        ) from error


def open_source(source: str) -> BinaryIO:
    """Open an input for reading and seeking: a local path or any URL that fsspec knows.

    Raises:
        InputError: there is no such file, or it may not be read.
        RunError: the store failed; a retry may help.
    """
    with blaming(source):
        path = local_path(source)
        if path is not None:
            return path.open("rb", buffering=0)
        import fsspec

        return cast(BinaryIO, fsspec.open(source, "rb").open())


def open_as_planned(part: Slice) -> BinaryIO:
    stream = open_source(part.source)
    with blaming(part.source):
        found = stream.seek(0, os.SEEK_END)
        stream.seek(0)
    if found != part.size:
        stream.close()
        raise InputError(
            f"{part.source} has changed since the run was planned: expected {part.size:,} bytes, found {found:,}. "
            "Start a new run over the new file."
        )
    return stream


class Stored:
    """The stored bytes of one input, read once from front to back, hashed, with a look ahead.

    `buffer` holds bytes that were read and not taken; `offset` is the place of its first byte.
    """

    def __init__(self, part: Slice, report: SliceReport) -> None:
        self.source = part.source
        self.size = part.size
        self.buffer = b""
        self.offset = 0
        self._report = report
        self._hash = hashlib.sha256()
        self._stream = open_as_planned(part)

    def __enter__(self) -> Stored:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()

    def _read(self, n_bytes: int) -> bytes:
        with blaming(self.source, self.offset + len(self.buffer)):
            block = self._stream.read(n_bytes)
        self._hash.update(block)
        if not block:
            self._report.sha256 = self._hash.hexdigest()
        return block

    def fill(self, n_bytes: int) -> bool:
        """Look ahead until `n_bytes` are buffered. False where the file ends before."""
        while len(self.buffer) < n_bytes:
            block = self._read(max(n_bytes - len(self.buffer), HEAD_BYTES))
            if not block:
                return False
            self.buffer += block
        return True

    def take(self, n_bytes: int) -> bytes:
        """The next bytes, at most `n_bytes`; fewer only at the end of the file."""
        self.fill(n_bytes)
        taken, self.buffer = self.buffer[:n_bytes], self.buffer[n_bytes:]
        self.offset += len(taken)
        return taken

    def drain(self) -> None:
        """Read to the end, so that the hash covers the whole file."""
        while self.take(BLOCK_BYTES):
            pass

    def give_back(self, unused: bytes) -> None:
        """Return bytes that were taken last and not used."""
        self.buffer = unused + self.buffer
        self.offset -= len(unused)

    def go_back(self, offset: int) -> None:
        """Return to an earlier place; the bytes from there on are read again and held."""
        if offset < self.offset:
            self.give_back(b"".join(self.reread(offset, self.offset)))

    def skip_to(self, magic: bytes, accept: Callable[[bytes], bool]) -> int:
        """Skip to the next place where `magic` stands and `accept` likes the bytes from there on.

        Returns:
            Bytes skipped; the buffer is empty if there was no such place.
        """
        start = self.offset
        while self.fill(len(magic)):
            place = self.buffer.find(magic)
            if place < 0:
                self.take(len(self.buffer) - len(magic) + 1)
                continue
            self.take(place)
            self.fill(HEAD_BYTES)
            if accept(self.buffer[:HEAD_BYTES]):
                return self.offset - start
            self.take(1)
        self.take(len(self.buffer))
        return self.offset - start

    def reread(self, start: int, end: int) -> Iterator[bytes]:
        """The stored bytes [start, end) once more, from a second handle, not hashed."""
        with open_source(self.source) as again:
            again.seek(start)
            while start < end:
                with blaming(self.source, start):
                    block = again.read(min(HEAD_BYTES, end - start))
                if not block:
                    return
                start += len(block)
                yield block


def mark(report: SliceReport, reason: str, offset: int, detail: str, raw: bytes = b"") -> Damage:
    """Mark the file as damaged and describe the place: `offset` counts stored bytes."""
    report.damaged.append(reason)
    detail = f"{detail} (stored byte {offset:,})"
    return Damage(reason, line=None, byte_offset=offset, raw=raw, detail=detail, whole_file=True)
