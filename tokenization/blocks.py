"""Where the arrays of a token file's blocks lie, and two ways to get them: through a memory map, or by reading.

`Mapped` hands out views and gathers rows straight from the map. `Copied` reads every range with `pread`: for network
file systems, where a map can stall; and where a failing disk shall be an error, not a signal that kills the process.
Both give the same numbers. Safe with threads and after a fork: neither keeps a position in the file.

Costs 40 bytes a block, and 60 us when a block is first touched.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tokenization.errors import TokenFileError
from tokenization.seal import Region

__all__ = ["BlockPlace", "Copied", "Mapped", "Source", "place_of_block"]

Array = npt.NDArray[Any]
Numbers = npt.NDArray[np.int64]


class Source(Protocol):
    """Bytes of an open file as arrays. Starts are counted in items from the beginning of the file."""

    def array(self, dtype: np.dtype[Any], start: int, count: int) -> Array:
        """`count` items from `start`, read-only."""

    def rows(self, dtype: np.dtype[Any], starts: Numbers, count: int) -> Array:
        """[n, count]: `count` items from each of n starts, in a new array."""

    def runs(self, dtype: np.dtype[Any], starts: Numbers, counts: Numbers) -> Array:
        """Runs of items, one behind the other, in a new array."""

    def message(self, head: Region, body: Region) -> pa.Buffer:
        """The Arrow message of a block. Its head is there; the body may be zeros."""

    def release(self) -> None:
        """Give back the memory of the pages that were read."""


class Mapped:
    """A file through a read-only memory map: pages belong to the page cache, and nothing is copied until asked."""

    def __init__(self, descriptor: int, size: int) -> None:
        """Map an open file of `size` bytes.

        Raises:
            ValueError: the file is shorter.
        """
        self._map = mmap.mmap(descriptor, size, access=mmap.ACCESS_READ)
        self._buffer = pa.py_buffer(self._map)
        self._views: dict[tuple[str, int], Array] = {}
        """By character of the type, whose hash is there already, and items of a row; 0 for the items themselves."""

    def array(self, dtype: np.dtype[Any], start: int, count: int) -> Array:
        return np.frombuffer(self._map, dtype, count, start * dtype.itemsize)

    def rows(self, dtype: np.dtype[Any], starts: Numbers, count: int) -> Array:
        windows = self._views.get((dtype.char, count))
        if windows is None:
            items = self._items(dtype)
            # Every place of the file where a row could begin, as one array of overlapping rows: a gather is one index.
            shape, strides = (max(0, len(items) - count + 1), count), (dtype.itemsize, dtype.itemsize)
            windows = np.lib.stride_tricks.as_strided(items, shape, strides, writeable=False)
            self._views[dtype.char, count] = windows
        found: Array = windows[starts]
        return found

    def runs(self, dtype: np.dtype[Any], starts: Numbers, counts: Numbers) -> Array:
        before = np.cumsum(counts) - counts
        places = np.arange(int(counts.sum())) + np.repeat(starts - before, counts)
        found: Array = self._items(dtype)[places]
        return found

    def message(self, head: Region, body: Region) -> pa.Buffer:
        return self._buffer.slice(head.start, body.end - head.start)

    def release(self) -> None:
        """Views stay valid: their pages come back from the page cache when they are touched again."""
        if hasattr(mmap, "MADV_DONTNEED"):
            self._map.madvise(mmap.MADV_DONTNEED)

    def _items(self, dtype: np.dtype[Any]) -> Array:
        """The whole file as items."""
        items = self._views.get((dtype.char, 0))
        if items is None:
            items = np.frombuffer(self._map, dtype, len(self._map) // dtype.itemsize)
            self._views[dtype.char, 0] = items
        return items


class Copied:
    """A file by positioned reads: each call returns new memory, and an error of the disk is an OSError."""

    def __init__(self, descriptor: int, path: Path) -> None:
        self._descriptor, self._path = descriptor, path

    def array(self, dtype: np.dtype[Any], start: int, count: int) -> Array:
        found = np.empty(count, dtype)
        self._fill(found, start * dtype.itemsize)
        found.flags.writeable = False
        return found

    def rows(self, dtype: np.dtype[Any], starts: Numbers, count: int) -> Array:
        found = np.empty((len(starts), count), dtype)
        if found.size:
            # Rows that lie side by side are read at once.
            breaks = np.flatnonzero(np.diff(starts) != count) + 1
            firsts = [0, *breaks.tolist()]
            for first, last in zip(firsts, [*firsts[1:], len(starts)], strict=True):
                self._fill(found[first:last].reshape(-1), int(starts[first]) * dtype.itemsize)
        return found

    def runs(self, dtype: np.dtype[Any], starts: Numbers, counts: Numbers) -> Array:
        found = np.empty(int(counts.sum()), dtype)
        end = 0
        for start, count in zip(starts.tolist(), counts.tolist(), strict=True):
            self._fill(found[end : end + count], start * dtype.itemsize)
            end += count
        return found

    def message(self, head: Region, body: Region) -> pa.Buffer:
        # Arrow wants the whole message in one buffer, but looks into the head only: the rest is untouched, unpaid memory.
        blank = mmap.mmap(-1, body.end - head.start, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        blank.write(os.pread(self._descriptor, head.end - head.start, head.start))
        return pa.py_buffer(blank)

    def release(self) -> None:
        """Nothing is kept."""

    def _fill(self, out: Array, start: int) -> None:
        """Read an array from byte `start` on."""
        view = out.data.cast("B")
        done = 0
        while done < len(view):
            n_read = os.preadv(self._descriptor, [view[done:]], start + done)
            if not n_read:
                raise TokenFileError(
                    f"{self._path}: ends at byte {start + done}, {len(view) - done} bytes before what was asked: "
                    "it was cut while it was open. Copy it again from where it was whole, or pack again."
                )
            done += n_read


class BlockPlace(NamedTuple):
    """Where the arrays of one block begin, in bytes of the file."""

    tokens: int
    first_piece: int
    lengths: int
    rows: int
    n_pieces: int
    n_sequences: int


def place_of_block(
    message: Callable[[Region, Region], pa.Buffer], head: Region, body: Region, schema: pa.Schema
) -> BlockPlace:
    """Where the arrays of a block lie, from its head alone, whose checksum must have been checked.

    Raises:
        TokenFileError: the arrays are not in the file as they are, say because they are compressed.
    """
    buffer = message(head, body)
    try:
        batch = pa.ipc.read_record_batch(pa.ipc.read_message(buffer), schema)
    except (pa.ArrowException, OSError) as error:
        raise TokenFileError(f"{body.name} cannot be read as an Arrow block: {error}. Pack again.") from error
    tokens, lengths, rows = batch.columns
    n_sequences, n_pieces, n_tokens = (
        batch.num_rows,
        len(lengths.values),
        batch.num_rows * schema.field(0).type.list_size,
    )
    starts = []
    # Arrow checks neither that an array is as long as its head says, nor that its memory is in the file.
    for array, data, wanted in (
        (tokens.values, tokens.values.buffers()[1], n_tokens),
        (None, lengths.buffers()[1], n_sequences + 1),
        (lengths.values, lengths.values.buffers()[1], n_pieces),
        (rows.values, rows.values.buffers()[1], n_pieces),
    ):
        kind = pa.int32() if array is None else array.type
        start = head.start + data.address - buffer.address if data is not None else -1
        if not body.start <= start <= start + wanted * kind.byte_width <= body.end:
            raise TokenFileError(
                f"{body.name}: its arrays do not lie in it as they are: they may be compressed. Pack again."
            )
        if len(data) < wanted * kind.byte_width or (array is not None and len(array) < wanted):
            raise TokenFileError(
                f"{body.name}: an array is shorter than the {wanted} items it should have. Pack again."
            )
        starts.append(start)
    return BlockPlace(starts[0], starts[1], starts[2], starts[3], n_pieces, n_sequences)
