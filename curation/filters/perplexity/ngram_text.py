"""Texts as the n-gram models read them: normalised characters.

Normalisation 1, by which all models of ours were trained:

- NFKC, then simple case folding; what NFKC has no form for (soft hyphen, variation selectors) vanishes;
- a decimal digit of any script is `0`: numbers are known by their length, not their value;
- a run of blanks (the zero-width space too), tabs, line breaks and other separators is one blank, at the ends of a text
  none: how a text is laid out is no matter of language;
- everything else, control characters and bytes that are no UTF-8 (U+FFFD) too, stays what it is.

A text is put through by a kernel at 300 MB/s; where characters must be put together or marks in order, which few texts
need, the kernel gives up on it and Python normalises it before (curation.text.normal).
"""

from __future__ import annotations

import sys
import unicodedata
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from curation.text.decode import decode
from curation.text.jit import inlined, kernel
from curation.text.memory import Int, address_of, byte_at
from curation.text.normal import (
    FORM_BLOCKS,
    FORM_INDEX,
    POOL,
    SEVERAL,
    UNSETTLED,
    VALUE_AT,
    form_of,
    is_settled,
    normalise,
    order_of,
    parts,
)
from curation.text.spans import Bytes, Int64s, bounds
from curation.text.tables import KIND_BLOCKS, KIND_INDEX, CharClass, two_level

__all__ = ["BLANK", "BLOCK", "NORMALISATION", "Codes", "next_symbols", "normal_characters"]

NORMALISATION = 1
BLANK = 32
BLOCK = 2048
"""Characters that are normalised at a time."""
MOST_OF_ONE = 18
"""Characters that NFKC makes of one, at most."""
CLOSER = 1
"""Of a character that may have several characters as its form, or must be looked at with its neighbours."""

Codes: TypeAlias = npt.NDArray[np.uint32]


def _symbols() -> npt.NDArray[np.int64]:
    """int64[code points]: how far it is to what each becomes by itself, shifted left, and whether it is CLOSER."""
    forms = FORM_BLOCKS.reshape(-1, 64)[FORM_INDEX].reshape(-1)
    codes = np.arange(len(forms))
    several = forms & SEVERAL != 0
    single = np.where(several, codes, codes + (forms >> VALUE_AT))
    classes = (KIND_BLOCKS.reshape(-1, 64)[KIND_INDEX].reshape(-1) & 15).astype(np.int64)
    blank = (classes == CharClass.SPACE) | (classes == CharClass.NEWLINE)
    blank[[9, 10, 11, 12, 13, 28, 29, 30, 31, 0x85]] = True
    plain = codes.copy()
    plain[blank] = BLANK
    numbers = np.flatnonzero(classes == CharClass.NUMBER)
    plain[[code for code in numbers.tolist() if unicodedata.decimal(chr(code), None) is not None]] = ord("0")
    closer = several | (forms & UNSETTLED != 0)
    found: npt.NDArray[np.int64] = ((plain[single] - codes) << 1) + closer
    return found


SYMBOL_INDEX, _blocks = two_level(_symbols())
SYMBOL_BLOCKS: npt.NDArray[np.int32] = _blocks.astype(np.int32)
del _blocks
ASCII: npt.NDArray[np.int32] = np.arange(128, dtype=np.int32) + (
    SYMBOL_BLOCKS.reshape(-1, 64)[SYMBOL_INDEX[:2]].reshape(-1) >> 1
).astype(np.int32)
"""int32[128]: what each becomes; none is CLOSER."""


@inlined
def _symbol_of(code: Int) -> tuple[Int, Int]:
    """What a character becomes by itself, and CLOSER or 0."""
    block = np.int64(SYMBOL_INDEX[np.uint64(code >> 6)])
    found = np.int64(SYMBOL_BLOCKS[np.uint64(block << 6 | code & 63)])
    return code + (found >> 1), found & CLOSER


@inlined
def next_symbols(p: Int, end: Int, last: Int, order: Int, checked: bool, out: Codes) -> tuple[Int, Int, Int, Int, Int]:
    """The next normalised characters of the text up to address `end`, to `out`, which holds BLOCK.

    Returns how many were written (-1: the text must be normalised before; not so unless `checked`), how many characters
    of the text these are, and new p, last and order: the last character of class 0, and the combining class of the
    last one. To begin with, last and order are 0. A blank is written with what follows it, so none ends a text.
    """
    n, read = 0, 0
    while p < end and n <= BLOCK - 2 * MOST_OF_ONE:
        code = byte_at(p)
        if code < 0x80:
            p += 1
            symbol, closer = np.int64(ASCII[np.uint64(code)]), 0
        else:
            code, length = decode(p, end)
            p += length
            symbol, closer = _symbol_of(code)
        read += 1
        if closer == 0:
            order = 0
            if symbol == BLANK:
                last = BLANK if last != 0 else 0
                continue
            n = _put(out, n, symbol, last)
            last = max(code, 1)  # 0 is the begin; a NUL is to its neighbours what U+0001 is
            continue
        form = form_of(code)
        if checked and not is_settled(form, form_of(last), order):
            return -1, read, p, last, order
        first, stop = (0, 1) if form & SEVERAL == 0 else parts(form)
        for at in range(first, stop):
            part = POOL[np.uint64(at)] if form & SEVERAL else code
            own = form_of(part)
            if checked and not is_settled(own, form_of(last), order):
                return -1, read, p, last, order
            order = order_of(own)
            symbol, _ = _symbol_of(part)
            if symbol == BLANK:
                last = BLANK if last != 0 else 0
            else:
                n = _put(out, n, symbol, last)
                last = part if order == 0 or last in (0, BLANK) else last
    return n, read, p, last, order


@inlined
def _put(out: Codes, n: Int, symbol: Int, last: Int) -> Int:
    """Write a character after the blank, if any, that stood before it; returns how many are written then."""
    if last == BLANK:
        out[np.uint64(n)] = BLANK
        n += 1
    out[np.uint64(n)] = symbol
    return n + 1


@kernel
def _normal(data: Bytes, starts: Int64s, ends: Int64s, checked: bool, out: Codes, counts: Int64s) -> None:
    """The characters of each span, one after the other, to `out`; counts: int64[spans], -1: to be normalised before."""
    base = address_of(data)
    block = np.empty(BLOCK, np.uint32)
    at = 0
    for row in range(len(starts)):
        p, end, last, order = base + starts[row], base + ends[row], 0, 0
        first = at
        counts[row] = 0
        while p < end:
            n, _, p, last, order = next_symbols(p, end, last, order, checked, block)
            if n < 0:
                counts[row] = -1
                break
            for i in range(n):
                out[at + i] = block[i]
            at += n
        at = first if counts[row] < 0 else at
        counts[row] = at - first if counts[row] == 0 else -1


def normal_characters(data: Bytes, offsets: Int64s) -> tuple[Codes, Int64s]:
    """The normalised characters of each text: codes uint32[m], offsets int64[n + 1] into them.

    data, offsets: as `curation.text.buffers` gives them.
    """
    checked = bounds(data, offsets)
    settled, counts = _normalised(*checked, True)
    if (counts >= 0).all():
        return settled, np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    pieces: list[Codes] = []
    lengths = counts.copy()
    at = 0
    for row, count in enumerate(counts.tolist()):
        if count >= 0:
            pieces.append(settled[at : at + count])
            at += count
        else:
            raw = data[offsets[row] : offsets[row + 1]].tobytes()
            pieces.append(_normalised(*normal_bytes(raw), False)[0])
            lengths[row] = len(pieces[-1])
    return np.concatenate(pieces), np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])


def normal_bytes(raw: bytes) -> tuple[Bytes, Int64s, Int64s]:
    """A text in NFKC, as one span."""
    data = np.frombuffer(normalise(raw.decode("utf-8", "replace")).encode(), np.uint8)
    return bounds(data, np.array([0, len(data)], np.int64))


def _normalised(data: Bytes, starts: Int64s, ends: Int64s, checked: bool) -> tuple[Codes, Int64s]:
    """What `_normal` finds. NFKC makes 4 characters of 3 bytes at most where it has no more letters than bytes."""
    room = int((ends - starts).sum()) * 2 + MOST_OF_ONE
    out, counts = np.empty(room, np.uint32), np.empty(len(starts), np.int64)
    _normal(data, starts, ends, checked, out, counts)
    return out[: int(counts[counts > 0].sum())], counts


if sys.byteorder != "little":  # what every machine is that numba and Arrow run on
    raise RuntimeError("expected a little-endian machine, found a big-endian one")
