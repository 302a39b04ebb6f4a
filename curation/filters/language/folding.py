"""A cleaned line in lower case, its letters and marks only; letters are counted by script on the way.

Lower case is that of Python's `str.lower`, character by character: `Σ` is `σ` at the end of a word too, and
`İ` becomes two characters, i and U+0307, as Python has it. Joiners inside of words become blanks.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from curation.text.characters import Counts
from curation.text.decode import ascii_run, decode, kind_of, low_bits
from curation.text.jit import inlined
from curation.text.memory import Int, byte_at, bytes_in, count_bits, store_byte
from curation.text.tables import N_CODE_POINTS, CharClass, Script, two_level

__all__ = ["LOWER_BLOCKS", "LOWER_INDEX", "fold_line"]

LETTER, MARK, LATIN = int(CharClass.LETTER), int(CharClass.MARK), int(Script.LATIN)
LAST_CASED = 0x1E944
DOTTED_I, FINAL_QUOTE = 0x130, 0x2019


def _lowers() -> npt.NDArray[np.int32]:
    """int32[N_CODE_POINTS]: distance from each code point to its lower case; 0 for `İ`, whose has two."""
    lowers = np.zeros(N_CODE_POINTS, np.int32)
    codes = [code for code in range(LAST_CASED) if not 0xD800 <= code < 0xE000 and code not in (DOTTED_I, 0x3A3)]
    text = "".join(map(chr, codes))
    before, after = (np.frombuffer(t.encode("utf-32-le"), np.int32) for t in (text, text.lower()))
    lowers[before] = after - before
    lowers[0x3A3] = 0x3C3 - 0x3A3
    return lowers


LOWER_INDEX, LOWER_BLOCKS = two_level(_lowers())
"""int32[n_blocks * 64]: distance to the lower case."""


def _ascii_folds() -> npt.NDArray[np.int64]:
    """int64[128]: what an ASCII character becomes; 0 for a blank."""
    folds = np.zeros(128, np.int64)
    for character in "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ'-":
        folds[ord(character)] = ord(character.lower())
    return folds


ASCII_FOLDS = _ascii_folds()


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
def fold_line(p: Int, end: Int, limit: Int, out: Int, counts: Counts) -> Int:
    """Write the cleaned line from address `p` to `end` in folded form to address `out`; returns the address after it.

    Adds its letters to `counts` by script. At most 3 bytes are written for 2: `Ⱥ` has 2, and 3 in lower case.
    """
    o, kept = out, np.int64(0)  # `kept`: the last byte written was no blank
    while p < end:
        byte = byte_at(p)
        if byte < 0x80:
            run = max(ascii_run(p, end, limit), 1)
            if run > 1:
                counts[LATIN] += count_bits(bytes_in(p, 0x20, 0x61, 26) & low_bits(run))
            else:
                counts[LATIN] += (byte | 32) - 0x61 < 26 and (byte | 32) >= 0x61
            for i in range(run):
                fold = ASCII_FOLDS[np.uint64(byte_at(p + i))]
                is_kept = np.int64(fold != 0)
                store_byte(o, fold + (1 - is_kept) * 0x20)
                o += is_kept | kept
                kept = is_kept
            p += run
            continue
        code, length = decode(p, end)
        kind = kind_of(code)
        char_class = kind & 15
        if char_class == LETTER:
            counts[np.uint64(kind >> 8)] += 1
        if char_class in (LETTER, MARK) or code == FINAL_QUOTE:
            if code == DOTTED_I:
                store_byte(o, 0x69)
                o = _put_code(o + 1, np.int64(0x307))
            else:
                lower = _lower(code)
                if lower != code:
                    o = _put_code(o, lower)
                else:
                    for i in range(length):
                        store_byte(o + i, byte_at(p + i))
                    o += length
            kept = np.int64(1)
        else:
            store_byte(o, 0x20)
            o += kept
            kept = np.int64(0)
        p += length
    return o - 1 if o > out and kept == 0 else o
