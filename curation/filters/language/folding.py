"""A cleaned line in lower case, its letters and marks only; letters are counted by script on the way.

Lower case is that of Python's `str.lower`, character by character: `Σ` is `σ` at the end of a word too, and
`İ` becomes two characters, i and U+0307, as Python has it. Joiners inside of words become blanks.
"""

from __future__ import annotations

import unicodedata

import numpy as np
import numpy.typing as npt

from curation.filters.language.blocks import copy, fold64
from curation.filters.language.tokens import LETTERS, STOPS, UNFIT, UNSPACED
from curation.text.characters import Counts
from curation.text.decode import ascii_run, decode, kind_of, low_bits
from curation.text.jit import inlined
from curation.text.memory import Int, byte_at, bytes_in, count_bits, store_byte, trailing_zeros
from curation.text.normal import FORM_BLOCKS, FORM_INDEX, SEVERAL, VALUE_AT
from curation.text.spans import Int64s
from curation.text.tables import N_CODE_POINTS, CharClass, Role, Script, two_level

__all__ = ["LOWER_BLOCKS", "LOWER_INDEX", "fold_line"]

LETTER, MARK, LATIN = int(CharClass.LETTER), int(CharClass.MARK), int(Script.LATIN)
LAST_CASED = 0x1E944
NOT_NFC = 1 << 24
UNSPACED_LETTER = LETTER | int(Role.UNSPACED) << 4
DOTTED_I, APOSTROPHE, FIRST_COMPATIBLE = 0x130, 0x2019, 0xF900
STOP_SIGNS = np.array([ord(sign) for sign in "…。！？；，、．｡､؟،؛۔।॥։።፣፤፧၊။។៕།༎"], np.int64)
"""Ends of sentences and of their parts, outside of ASCII."""


def _lowers() -> npt.NDArray[np.int32]:
    """int32[N_CODE_POINTS]: distance from each code point to its lower case; 0 for `İ`, whose has two."""
    lowers = np.zeros(N_CODE_POINTS, np.int32)
    codes = [code for code in range(LAST_CASED) if not 0xD800 <= code < 0xE000 and code not in (DOTTED_I, 0x3A3)]
    text = "".join(map(chr, codes))
    before, after = (np.frombuffer(t.encode("utf-32-le"), np.int32) for t in (text, text.lower()))
    lowers[before] = after - before
    lowers[0x3A3] = 0x3C3 - 0x3A3
    changing = [code for code in _compatible() if not unicodedata.is_normalized("NFC", chr(code))]
    lowers[changing] = NOT_NFC
    return lowers


def _compatible() -> list[int]:
    """Code points that any normal form changes, and those that case folding does."""
    forms = FORM_BLOCKS.reshape(-1, 64)[FORM_INDEX].reshape(-1)
    return [int(code) for code in np.flatnonzero((forms >> VALUE_AT != 0) | (forms & SEVERAL != 0))]


LOWER_INDEX, LOWER_BLOCKS = two_level(_lowers())
"""int32[n_blocks * 64]: distance to the lower case; NOT_NFC where NFC makes another character of it."""


@inlined
def _lower(code: Int) -> Int:
    block = np.int64(LOWER_INDEX[np.uint64(code >> 6)])
    return code + np.int64(LOWER_BLOCKS[np.uint64(block << 6 | code & 63)])


@inlined
def _put_code(o: Int, code: Int) -> Int:
    """Write a character as UTF-8 to address `o`; returns the address after it."""
    if code < 0x80:
        store_byte(o, code)
        return o + 1
    if code < 0x800:
        store_byte(o, 0xC0 | code >> 6)
    else:
        if code < 0x10000:
            store_byte(o, 0xE0 | code >> 12)
        else:
            store_byte(o, 0xF0 | code >> 18)
            store_byte(o + 1, 0x80 | code >> 12 & 0x3F)
            o += 1
        store_byte(o + 1, 0x80 | code >> 6 & 0x3F)
        o += 1
    store_byte(o + 1, 0x80 | code & 0x3F)
    return o + 2


@inlined
def _is_stop(code: Int) -> bool:
    found = False
    for sign in STOP_SIGNS:
        found |= sign == code
    return found


@inlined
def _ascii_stops(p: Int, run: Int) -> bool:
    """Whether one of `, . ! ? ;` is among the next bytes."""
    found = bytes_in(p, 2, 0x2E, 1) | bytes_in(p, 0, 0x21, 1) | bytes_in(p, 4, 0x3F, 1)
    return bool(found & low_bits(run) != 0)


@inlined
def _fold_ascii(p: Int, run: Int, o: Int, kept: bool) -> tuple[Int, bool]:
    """Fold `run` <= 64 ASCII bytes from address `p` to `o`, 64 bytes at once between those that go.

    `kept`: the last byte written is no blank. Returns the new `o` and `kept`.
    """
    one, mask = np.uint64(1), low_bits(run)
    blanks = ~(bytes_in(p, 0x20, 0x61, 26) | bytes_in(p, 0, 0x27, 1) | bytes_in(p, 0, 0x2D, 1)) & mask
    gone = blanks & (blanks << one | np.uint64(not kept))
    done = 0
    while gone:
        at = trailing_zeros(gone)
        if at > done:
            fold64(p + done, o)
            o += at - done
        done = at + 1
        gone &= gone - one
    if run > done:
        fold64(p + done, o)
        o += run - done
    return o, blanks >> np.uint64(run - 1) == 0


@inlined
def _fold_other(p: Int, code: Int, lower: Int, length: Int, o: Int, limit: Int) -> Int:
    """Write a letter or mark outside of ASCII in lower case to address `o`; returns the address after it."""
    if code == DOTTED_I:
        store_byte(o, 0x69)
        return _put_code(o + 1, np.int64(0x307))
    return _put_code(o, lower) if lower != code and lower < NOT_NFC else copy(p, length, o, limit)


@inlined
def fold_line(p: Int, end: Int, limit: Int, out: Int, settled: bool, counts: Counts, facts: Int64s) -> Int:
    """Write the cleaned line from address `p` to `end` in folded form to address `out`; returns the address after it, or UNFIT.

    64 bytes before `limit` may be read after `end`. Adds its letters to `counts` by script, and to `facts`. At
    most 3 bytes are written for 2: `Ⱥ` has 2, and 3 in lower case.
    """
    o, kept, latin, others, unspaced, stops = out, False, 0, 0, 0, False
    while p < end:
        byte = byte_at(p)
        if byte < 0x80:
            run = ascii_run(p, end, limit)
            latin += count_bits(bytes_in(p, 0x20, 0x61, 26) & low_bits(run))
            stops |= _ascii_stops(p, run)
            o, kept = _fold_ascii(p, run, o, kept)
            p += run
            continue
        code, length = decode(p, end)
        kind = kind_of(code)
        char_class = kind & 15
        if kind & 0xFF == UNSPACED_LETTER and (settled or code < FIRST_COMPATIBLE):
            counts[np.uint64(kind >> 8)] += 1
            others += 1
            unspaced += 1
            o, kept = copy(p, length, o, limit), True
            p += length
            continue
        lower = _lower(code)
        if not settled and lower >= NOT_NFC:
            return np.int64(UNFIT)
        if char_class in (LETTER, MARK) or code == APOSTROPHE:
            if char_class == LETTER:
                counts[np.uint64(kind >> 8)] += 1
                others += 1
                unspaced += kind & 0xFF == UNSPACED_LETTER
            o, kept = _fold_other(p, code, lower, length, o, limit), True
        else:
            stops |= _is_stop(code)
            store_byte(o, 0x20)
            o += kept
            kept = False
        p += length
    counts[LATIN] += latin
    facts[LETTERS] = latin + others
    facts[UNSPACED] = unspaced
    facts[STOPS] = stops
    return o - 1 if o > out and not kept else o
