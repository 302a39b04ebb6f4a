"""Counting characters by class and by script, per document or per part of one."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curation.text.decode import decode, kind_of
from curation.text.jit import kernel
from curation.text.spans import Bytes, Int64s, Where, bounds, buffers
from curation.text.tables import CharClass, Script

__all__ = ["char_length", "class_counts", "count_chars", "script_counts"]

N_CLASSES = len(CharClass)
N_SCRIPTS = len(Script)
LETTER = int(CharClass.LETTER)


def count_chars(data: Bytes, where: Where) -> Int64s:
    """Characters (code points) of each text: int64[n]."""
    return _count_chars(*bounds(data, where))


def char_length(array: pa.Array) -> Int64s:
    """Characters (code points) of each text of an Arrow string array: int64[n]."""
    return count_chars(*buffers(array))


def class_counts(data: Bytes, where: Where) -> npt.NDArray[np.int32]:
    """Characters of each class: int32[n, len(CharClass)]."""
    return _class_counts(*bounds(data, where))


def script_counts(data: Bytes, where: Where) -> npt.NDArray[np.int32]:
    """Letters of each script: int32[n, len(Script)]."""
    return _script_counts(*bounds(data, where))


@kernel
def _count_chars(data: Bytes, starts: Int64s, ends: Int64s) -> Int64s:
    counts = np.zeros(len(starts), np.int64)
    for row in range(len(starts)):
        i, end = starts[row], ends[row]
        n = 0
        while i < end:
            i += decode(data, i, end)[1]
            n += 1
        counts[row] = n
    return counts


@kernel
def _class_counts(data: Bytes, starts: Int64s, ends: Int64s) -> npt.NDArray[np.int32]:
    counts = np.zeros((len(starts), N_CLASSES), np.int32)
    for row in range(len(starts)):
        i, end = starts[row], ends[row]
        while i < end:
            code, length = decode(data, i, end)
            counts[row, kind_of(code) & 15] += 1
            i += length
    return counts


@kernel
def _script_counts(data: Bytes, starts: Int64s, ends: Int64s) -> npt.NDArray[np.int32]:
    counts = np.zeros((len(starts), N_SCRIPTS), np.int32)
    for row in range(len(starts)):
        i, end = starts[row], ends[row]
        while i < end:
            code, length = decode(data, i, end)
            kind = kind_of(code)
            if kind & 15 == LETTER:
                counts[row, kind >> 8] += 1
            i += length
    return counts
