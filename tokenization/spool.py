"""Long rows of numbers that live in an anonymous file instead of memory: appended once, then read in any order.

The file has no name, so a killed process leaves nothing behind; its pages are the page cache's, which gives them
up under pressure. Costs no memory that grows: `read` copies what it is asked for, `take` maps the file and lets its
pages go again. Appending and reading run at the speed of memory while the cache holds the file.
"""

from __future__ import annotations

import mmap
import os
import tempfile
import threading
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Spool"]

_TOUCHED = 1 << 14
"""Places taken before the pages that they mapped are let go: at most 64 MB where each lies on 4 kB of its own."""


class Spool:
    """One row of numbers of one type. `append` it whole, then read it: what is read cannot be appended to."""

    def __init__(self, folder: Path, dtype: npt.DTypeLike) -> None:
        """An empty row.

        Args:
            folder: where the file lies, without a name; it must exist.

        Raises:
            OSError: the file cannot be made.
        """
        self.dtype = np.dtype(dtype)
        self._file = tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115 - closed by `close`
        self._map: mmap.mmap | None = None
        self._lock = threading.Lock()
        self._length = self._touched = 0

    def __len__(self) -> int:
        return self._length

    def append(self, values: npt.NDArray[Any]) -> None:
        """Add numbers at the end.

        Raises:
            OverflowError: a number does not fit the type of the row.
            OSError: the disk is full.
        """
        if not len(values):
            return
        kept = np.ascontiguousarray(values, self.dtype)
        if (kept[[values.argmin(), values.argmax()]] != [values.min(), values.max()]).any():
            raise OverflowError(f"numbers {values.min()} to {values.max()} do not fit {self.dtype}")
        view = kept.view(np.uint8).data
        while len(view):
            view = view[self._file.write(view) :]
        self._length += len(kept)

    def read(self, begin: int, end: int) -> npt.NDArray[Any]:
        """Numbers begin .. end, as an array of their own."""
        if not 0 <= begin <= end <= self._length:
            raise IndexError(f"{begin} to {end} is not inside a row of {self._length} numbers")
        out = np.empty(end - begin, self.dtype)
        view, place = out.view(np.uint8).data, begin * self.dtype.itemsize
        while len(view):
            n_bytes = os.preadv(self._file.fileno(), [view], place)
            if not n_bytes:
                raise OSError(f"{len(view)} bytes of an anonymous file are not there any more")
            view, place = view[n_bytes:], place + n_bytes
        return out

    def take(self, places: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        """The numbers at some places, in any order. Safe in threads."""
        if not len(places):
            return np.empty(0, self.dtype)
        with self._lock:
            if self._map is None:
                self._map = mmap.mmap(self._file.fileno(), 0, prot=mmap.PROT_READ)
            self._touched += len(places)
            full = self._touched >= _TOUCHED
            self._touched = 0 if full else self._touched
        taken: npt.NDArray[Any] = np.frombuffer(self._map, self.dtype)[places]
        if full:
            self._map.madvise(mmap.MADV_DONTNEED)
        return taken

    def close(self) -> None:
        """Let the file go. Nothing can be read any more."""
        if self._map is not None:
            self._map.close()
        self._file.close()
