"""Counting characters by class and by script, per document or per part of one.

ASCII is counted 64 bytes at a time, anything else by character.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curation.text.decode import ascii_run, decode, kind_of, low_bits
from curation.text.jit import inlined, kernel
from curation.text.memory import Int, address_of, byte_at, bytes_in, count_bits
from curation.text.spans import Bytes, Int64s, Where, bounds, buffers
from curation.text.tables import UNSPACED_SCRIPTS, CharClass, Script

__all__ = ["char_length", "chars_in", "class_counts", "count_chars", "letters_in", "script_counts", "unspaced_share"]

Counts: TypeAlias = npt.NDArray[np.int32]

N_CLASSES = len(CharClass)
N_SCRIPTS = len(Script)
LETTER, NUMBER, PUNCTUATION = int(CharClass.LETTER), int(CharClass.NUMBER), int(CharClass.PUNCTUATION)
SYMBOL, SPACE, NEWLINE = int(CharClass.SYMBOL), int(CharClass.SPACE), int(CharClass.NEWLINE)
CONTROL = int(CharClass.CONTROL)
LATIN = int(Script.LATIN)


def count_chars(data: Bytes, where: Where) -> Int64s:
    """Characters (code points) of each text: int64[n]."""
    return _count_chars(*bounds(data, where))


def char_length(array: pa.Array) -> Int64s:
    """Characters (code points) of each text of an Arrow string array: int64[n]."""
    return count_chars(*buffers(array))


def class_counts(data: Bytes, where: Where) -> Counts:
    """Characters of each class: int32[n, len(CharClass)]. Each row sums to the text's characters."""
    return _class_counts(*bounds(data, where))


def script_counts(data: Bytes, where: Where) -> Counts:
    """Letters of each script: int32[n, len(Script)]. Each row sums to the text's letters."""
    return _script_counts(*bounds(data, where))


def unspaced_share(letters: Counts) -> npt.NDArray[np.float64]:
    """Share of letters in scripts written without blanks between words, from `script_counts`: float64[n].

    0 where there are no letters.
    """
    total: Int64s = letters.sum(axis=1)
    unspaced: Int64s = letters[:, UNSPACED_SCRIPTS].sum(axis=1)
    return np.divide(unspaced, np.maximum(total, 1), dtype=np.float64)


@inlined
def chars_in(p: Int, end: Int, limit: Int) -> Int:
    """Characters from address `p` to `end`; the data may be read up to `limit`."""
    n = 0
    while p < end:
        run = ascii_run(p, end, limit) if byte_at(p) < 0x80 else 0
        if run == 0:
            run = decode(p, end)[1]
            n += 1
        else:
            n += run
        p += run
    return n


@inlined
def letters_in(p: Int, end: Int, limit: Int, counts: Counts) -> Int:
    """Add the letters from address `p` to `end` to `counts` by script; returns the number of characters."""
    n = 0
    while p < end:
        run = ascii_run(p, end, limit) if byte_at(p) < 0x80 else 0
        if run > 1:
            counts[LATIN] += count_bits(bytes_in(p, 0x20, 0x61, 26) & low_bits(run))
            p += run
            n += run
        else:
            code, length = decode(p, end)
            kind = kind_of(code)
            if kind & 15 == LETTER:
                counts[np.uint64(kind >> 8)] += 1
            p += length
            n += 1
    return n


@inlined
def classes_in(p: Int, end: Int, limit: Int, counts: Counts) -> None:
    """Add the characters from address `p` to `end` to `counts` by class."""
    while p < end:
        run = ascii_run(p, end, limit) if byte_at(p) < 0x80 else 0
        if run > 1:
            _ascii_classes(p, low_bits(run), run, counts)
            p += run
        else:
            code, length = decode(p, end)
            counts[np.uint64(kind_of(code) & 15)] += 1
            p += length


@inlined
def _ascii_classes(p: Int, mask: Int, run: Int, counts: Counts) -> None:
    letters = count_bits(bytes_in(p, 0x20, 0x61, 26) & mask)
    numbers = count_bits(bytes_in(p, 0, 0x30, 10) & mask)
    newlines = bytes_in(p, 0, 0x0A, 1) & mask
    whites = bytes_in(p, 0, 0x09, 5) & mask
    invisible = (bytes_in(p, 0, 0x00, 0x20) | bytes_in(p, 0, 0x7F, 1)) & mask
    spaces = count_bits(bytes_in(p, 0, 0x20, 1) & mask | whites & ~newlines)
    # $ + < = > ^ ` | ~
    symbols = bytes_in(p, 0, 0x24, 1) | bytes_in(p, 0, 0x2B, 1) | bytes_in(p, 0, 0x3C, 3)
    symbols |= bytes_in(p, 0, 0x5E, 1) | bytes_in(p, 0, 0x60, 1) | bytes_in(p, 2, 0x7E, 1)
    n_symbols, n_newlines = count_bits(symbols & mask), count_bits(newlines)
    controls = count_bits(invisible & ~whites)
    counts[LETTER] += letters
    counts[NUMBER] += numbers
    counts[SPACE] += spaces
    counts[NEWLINE] += n_newlines
    counts[SYMBOL] += n_symbols
    counts[CONTROL] += controls
    counts[PUNCTUATION] += run - letters - numbers - spaces - n_newlines - n_symbols - controls


@kernel
def _count_chars(data: Bytes, starts: Int64s, ends: Int64s) -> Int64s:
    base, limit = address_of(data), address_of(data) + len(data)
    counts = np.empty(len(starts), np.int64)
    for row in range(len(starts)):
        counts[row] = chars_in(base + starts[row], base + ends[row], limit)
    return counts


@kernel
def _class_counts(data: Bytes, starts: Int64s, ends: Int64s) -> Counts:
    base, limit = address_of(data), address_of(data) + len(data)
    counts = np.zeros((len(starts), N_CLASSES), np.int32)
    for row in range(len(starts)):
        classes_in(base + starts[row], base + ends[row], limit, counts[row])
    return counts


@kernel
def _script_counts(data: Bytes, starts: Int64s, ends: Int64s) -> Counts:
    base, limit = address_of(data), address_of(data) + len(data)
    counts = np.zeros((len(starts), N_SCRIPTS), np.int32)
    for row in range(len(starts)):
        letters_in(base + starts[row], base + ends[row], limit, counts[row])
    return counts
