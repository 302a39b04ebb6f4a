"""Texts as bytes and offsets, straight from Arrow memory, and parts of them as spans.

`data` holds the UTF-8 of all documents. Where the kernels look is either `offsets`, int64[n + 1], by
which document d is `data[offsets[d]:offsets[d + 1]]`, or `Spans`, by which part i is
`data[starts[i]:ends[i]]`: so that whatever counts characters of a document also counts those of a line.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curation.errors import InputError

__all__ = ["Bytes", "Int64s", "Spans", "Where", "bounds", "buffers"]

Bytes: TypeAlias = npt.NDArray[np.uint8]
Int64s: TypeAlias = npt.NDArray[np.int64]
Number = TypeVar("Number", bound=np.generic)


class Spans(NamedTuple):
    """Parts (words, lines, paragraphs) of n documents.

    starts, ends: int64[n_parts], bytes from the start of `data`. offsets: int64[n + 1]; the parts of
    document d are rows `offsets[d]:offsets[d + 1]`.
    """

    starts: Int64s
    ends: Int64s
    offsets: Int64s


Where: TypeAlias = Int64s | Spans
"""int64[n + 1] offsets of documents, or parts of documents."""


def buffers(array: pa.Array) -> tuple[Bytes, Int64s]:
    """The bytes of all texts and where each begins, without copying the text.

    Returns `data`: uint8[...], read-only, the whole Arrow buffer, and `offsets`: int64[n + 1] into it.
    A slice keeps the buffer and starts elsewhere in it. The offsets of a `string` array are copied,
    those of a `large_string` array are not. `data` keeps the Arrow memory alive.

    Raises InputError for any other type, nulls, or offsets that do not rise or leave the buffer.
    """
    if not isinstance(array, pa.Array) or array.type not in (pa.large_string(), pa.string()):
        found = array.type if isinstance(array, pa.Array) else type(array).__name__
        raise InputError(f"text kernels take an Arrow array of large_string or string, not {found}: cast it first")
    if array.null_count:
        raise InputError(
            f"text kernels take no nulls, found {array.null_count} in {len(array)} texts: fill or drop them"
        )
    _, offsets_buffer, data_buffer = array.buffers()
    kind = np.int64 if array.type == pa.large_string() else np.int32
    data = np.frombuffer(data_buffer, np.uint8) if data_buffer else np.zeros(0, np.uint8)
    if len(array) == 0:  # Arrow allows an empty array to have no offsets at all
        return _frozen(data), np.zeros(1, np.int64)
    raw = np.frombuffer(offsets_buffer, kind)[array.offset : array.offset + len(array) + 1]
    offsets: Int64s = raw.astype(np.int64, copy=False)
    bounds(data, offsets)
    return _frozen(data), offsets


def bounds(data: Bytes, where: Where) -> tuple[Bytes, Int64s, Int64s]:
    """`data`, starts and ends as kernels take them: read-only, checked.

    Raises InputError where a span ends before it starts or leaves the data, since kernels do not check.
    """
    starts, ends = (where.starts, where.ends) if isinstance(where, Spans) else (where[:-1], where[1:])
    if len(starts) and (starts.min() < 0 or ends.max() > len(data) or (starts > ends).any()):
        raise InputError(
            f"spans of text must rise and lie within its {len(data):,} bytes, found one from {starts.min():,} "
            f"to {ends.max():,} or one that ends before it starts: the Arrow file is damaged, or data and "
            "offsets are not of one array"
        )
    return _frozen(data), _frozen(starts), _frozen(ends)


def _frozen(values: npt.NDArray[Number]) -> npt.NDArray[Number]:
    """A read-only view: numba compiles writable and read-only arrays apart, and one of them is enough."""
    view = values.view()
    view.flags.writeable = False
    return view
