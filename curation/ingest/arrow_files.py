"""Inputs as Arrow's readers want them: a local file by its own means, any other store through fsspec.

Arrow turns whatever goes wrong in a file into its own errors; here a fault of the store is kept apart, since it
must never put a sound file into the quarantine.
"""

from __future__ import annotations

import io
import os
from typing import Any

import pyarrow as pa

from curation.errors import RunError
from curation.ingest.streams import local_path, open_source

__all__ = ["READ_AHEAD", "open_for_arrow"]

READ_AHEAD = 1 << 20
"""Bytes asked of a store at once."""


class _StoreFile(io.RawIOBase):
    """A remote input for Arrow: a fault of the store stays apart from a fault of the bytes."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self._source = source
        self._stream = open_source(source)

    def readinto(self, buffer: Any) -> int:
        try:
            block = self._stream.read(len(buffer))
        except Exception as error:  # stores raise what they like
            raise RunError(
                f"{self._source} could not be read: {type(error).__name__}: {error}. "
                "If the store is well again, run the same command again: it goes on where it stopped."
            ) from error
        buffer[: len(block)] = block
        return len(block)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return self._stream.seek(offset, whence)

    def tell(self) -> int:
        return self._stream.tell()

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def close(self) -> None:
        if not self.closed:
            self._stream.close()
        super().close()


def open_for_arrow(source: str, *, mapped: bool) -> Any:
    """What Arrow reads: a local file, or ranges of a remote one. Closed by the caller.

    Args:
        mapped: map the local file into memory, so that a batch of any size costs only the pages that are touched.
    """
    path = local_path(source)
    if path is None:
        return pa.PythonFile(io.BufferedReader(_StoreFile(source), READ_AHEAD), mode="r")
    if not str(path).isascii() and os.fsencode(path) != str(path).encode("utf-8", "replace"):
        return pa.PythonFile(path.open("rb"), mode="r")  # Arrow opens no name that is not UTF-8
    return pa.memory_map(str(path)) if mapped and path.stat().st_size else pa.OSFile(str(path))
