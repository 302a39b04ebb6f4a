"""Long rows of numbers that live in an anonymous file instead of memory: appended once, then read in any order.

The file has no name, so a killed process leaves nothing behind; its pages are the page cache's, which gives them
up under pressure. Costs no memory that grows: `read` copies what it is asked for, `take` reads place by place
(1.5 us each), or maps the file while it is small. Appending and reading run at the speed of memory while the cache holds the file.
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

_SMALL = 32 << 20
"""Bytes of a row that is mapped: the whole of it is no burden."""


class Spool:
    """One row of numbers of one type, or of groups of as many numbers. Arrays are [n] or [n, width].

    `append` all, then read: what was taken from cannot be appended to.
    """

    def __init__(self, folder: Path, dtype: npt.DTypeLike, width: int = 1) -> None:
        """An empty row.

        Args:
            folder: where the file lies, without a name; it must exist.
            width: numbers of a group. They lie together, so a group costs as much as a number.

        Raises:
            OSError: the file cannot be made.
        """
        self.dtype = np.dtype(dtype)
        self._shape: tuple[int, ...] = (width,) if width > 1 else ()
        self._bytes = self.dtype.itemsize * width
        self._file = tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115 - closed by `close`
        self._map: mmap.mmap | None = None
        self._lock = threading.Lock()
        self._length = 0

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
        bounds, kept = np.iinfo(self.dtype), np.ascontiguousarray(values, self.dtype)
        if not bounds.min <= values.min() <= values.max() <= bounds.max:
            raise OverflowError(f"numbers {values.min()} to {values.max()} do not fit {self.dtype}")
        view = kept.reshape(-1).view(np.uint8).data
        while len(view):
            view = view[self._file.write(view) :]
        self._length += len(kept)

    def read(self, begin: int, end: int) -> npt.NDArray[Any]:
        """Numbers begin .. end, as an array of their own."""
        if not 0 <= begin <= end <= self._length:
            raise IndexError(f"{begin} to {end} is not inside a row of {self._length} numbers")
        out = np.empty((end - begin, *self._shape), self.dtype)
        view, place = out.reshape(-1).view(np.uint8).data, begin * self._bytes
        while len(view):
            n_bytes = os.preadv(self._file.fileno(), [view], place)
            if not n_bytes:
                raise OSError(f"{len(view)} bytes of an anonymous file are not there any more")
            view, place = view[n_bytes:], place + n_bytes
        return out

    def take(self, places: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        """The numbers at some places, in any order. Safe in threads."""
        if not len(places):
            return np.empty((0, *self._shape), self.dtype)
        if len(self) * self._bytes > _SMALL:
            return self._read_each(places)
        with self._lock:
            if self._map is None:
                self._map = mmap.mmap(self._file.fileno(), 0, prot=mmap.PROT_READ)
        mapped: npt.NDArray[Any] = np.frombuffer(self._map, self.dtype).reshape(-1, *self._shape)
        return mapped[places]

    def _read_each(self, places: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        """One read for each place: 1.5 us. Mapped, each would keep 64 kB and more of the file in memory."""
        if not 0 <= places.min() <= places.max() < len(self):
            raise IndexError(f"{places.min()} to {places.max()} are not all inside a row of {len(self)} numbers")
        taken = np.empty((len(places), *self._shape), self.dtype)
        view, size, descriptor = taken.reshape(-1).view(np.uint8).data, self._bytes, self._file.fileno()
        for number, place in enumerate((places * size).tolist()):
            if os.preadv(descriptor, [view[number * size : (number + 1) * size]], place) != size:
                raise OSError(f"{size} bytes of an anonymous file are not there any more")
        return taken

    def close(self) -> None:
        """Let the file go. Nothing can be read any more."""
        if self._map is not None:
            self._map.close()
        self._file.close()
