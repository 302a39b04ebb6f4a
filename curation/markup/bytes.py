"""Bytes, names and look-ups: small functions that the markup kernels inline."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from curation.markup.words import Table
from curation.text.jit import inlined
from curation.text.spans import Bytes

__all__ = [
    "Int",
    "Kinds",
    "fill",
    "is_blank",
    "is_digit",
    "is_letter",
    "is_name",
    "knows",
    "lower",
    "name_key",
    "skip_blanks",
]

Kinds: TypeAlias = npt.NDArray[np.uint8]
"""uint8[n]: what each byte of a text belongs to."""

Int: TypeAlias = Any
"""An int64 in compiled code, for which Python's type checker has no one name."""

NEWLINE = 10


@inlined
def is_blank(byte: Int) -> bool:
    """ASCII blanks and line ends."""
    return bool(byte == 32 or 9 <= byte <= 13)


@inlined
def is_letter(byte: Int) -> bool:
    """ASCII letters."""
    return bool(97 <= (byte | 32) <= 122)


@inlined
def is_digit(byte: Int) -> bool:
    """ASCII digits."""
    return bool(48 <= byte <= 57)


@inlined
def is_name(byte: Int) -> bool:
    """Bytes of a tag's or attribute's name: letters, digits, `-`, `:`, `_`."""
    return is_letter(byte) or is_digit(byte) or byte == 45 or byte == 58 or byte == 95


@inlined
def lower(byte: Int) -> Int:
    """ASCII lower case."""
    return byte + 32 if 65 <= byte <= 90 else byte


@inlined
def skip_blanks(data: Bytes, i: Int, end: Int) -> Int:
    """The first byte from `i` that is no blank and no line end, or `end`."""
    while i < end and is_blank(data[i]):
        i += 1
    return i


@inlined
def name_key(data: Bytes, start: Int, end: Int, fold: bool) -> np.uint64:
    """The name `data[start:end]` as the tables hold it, in lower case if `fold`."""
    key = np.uint64(0)
    for i in range(start, min(end, start + 7)):
        byte = lower(data[i]) if fold else data[i]
        key = key << np.uint64(8) | np.uint64(byte)
    return key << np.uint64(8) | np.uint64(min(end - start, 255))


@inlined
def knows(table: Table, key: np.uint64) -> bool:
    """Whether a table holds a name."""
    low, high = 0, len(table)
    while low < high:
        middle = (low + high) >> 1
        if table[middle] < key:
            low = middle + 1
        else:
            high = middle
    return low < len(table) and table[low] == key


@inlined
def fill(kinds: Kinds, start: Int, end: Int, kind: Int) -> None:
    """Mark bytes [start, end)."""
    for i in range(start, end):
        kinds[i] = kind
