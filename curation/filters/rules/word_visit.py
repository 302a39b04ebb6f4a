"""One visit to the words of a batch: where they are, what they hash to, their sizes and kinds, and the letters by script.

The hash is this package's own, cheaper than XXH64 and equal in purpose: of ASCII words up to 8 bytes and of single
characters no two share one, of others two in 2^64. It is of the word under simple case folding ("The" = "the").
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np
import numpy.typing as npt

from curation.filters.length import LETTERS_PER_UNIT
from curation.text.decode import decode
from curation.text.jit import inlined, kernel
from curation.text.memory import Int, address_of, byte_at, count_bits, load64
from curation.text.spans import Bytes, Int64s
from curation.text.tables import (
    FOLD_BLOCKS,
    FOLD_INDEX,
    KIND_BLOCKS,
    KIND_INDEX,
    CharClass,
    Role,
    Script,
    two_level,
)
from curation.text.words import HANDFUL, some_words

__all__ = ["UNITS", "WordKind", "visit_words"]

N_SCRIPTS = len(Script)
LATIN, CYRILLIC = int(Script.LATIN), int(Script.CYRILLIC)


class WordKind(IntEnum):
    """Every word is one of these."""

    NUMBER = 0
    """No letter: digits, with or without joiners."""
    LETTER = 1
    """One letter of a script with blanks between words, and nothing else but, in Latin, Greek and Cyrillic, marks.

    Elsewhere a mark is a vowel, and a letter with one a word: में, है, के."""
    WORD = 2
    """Any other word of such a script."""
    HAN = 3
    """One ideograph (Han, Yi)."""
    KANA = 4
    """One letter of kana or Bopomofo."""
    THAI = 5
    """One letter of another unspaced script."""
    OTHER = 6
    """One letter of a dead unspaced script, such as Tangut, that `length` counts as a word."""


UNITS = np.ones(len(WordKind))
"""float64[n_kinds]: what a word of each kind says, in words of English, as the filter `length` has it."""
UNITS[WordKind.HAN] = 1 / LETTERS_PER_UNIT[Script.HAN]
UNITS[WordKind.KANA] = 1 / LETTERS_PER_UNIT[Script.KATAKANA]
UNITS[WordKind.THAI] = 1 / LETTERS_PER_UNIT[Script.THAI]

KIND_OF_SCRIPT = np.full(N_SCRIPTS, int(WordKind.OTHER), np.uint8)
for _script, _letters in LETTERS_PER_UNIT.items():
    KIND_OF_SCRIPT[_script] = 3 + list(UNITS[3:6]).index(1 / _letters)


def _facts() -> npt.NDArray[np.int32]:
    """int32[n_code_points]: distance to the folded character << 9 | script << 3 | unspaced << 2 | silent << 1 | letter."""
    codes = np.arange(0x110000)
    kinds = KIND_BLOCKS[KIND_INDEX[codes >> 6].astype(np.int64) << 6 | codes & 63].astype(np.int64)
    folds = FOLD_BLOCKS[FOLD_INDEX[codes >> 6].astype(np.int64) << 6 | codes & 63].astype(np.int64)
    classes, roles = kinds & 15, kinds >> 4 & 15
    letters = (classes == CharClass.LETTER).astype(np.int64)
    silent = np.isin(roles, (Role.MARK, Role.IGNORABLE)).astype(np.int64)
    unspaced = (roles == Role.UNSPACED).astype(np.int64)
    facts: npt.NDArray[np.int32] = (folds << 9 | kinds >> 8 << 3 | unspaced << 2 | silent << 1 | letters).astype(
        np.int32
    )
    return facts


FACT_INDEX, FACT_BLOCKS = two_level(_facts())

K1, K2 = np.uint64(0x9E3779B185EBCA87), np.uint64(0xC2B2AE3D27D4EB4F)
ASCII_SEED, OTHER_SEED = np.uint64(0x27D4EB2F165667C5), np.uint64(0x165667B19E3779F9)
EVERY_HIGH_BIT = np.uint64(0x8080808080808080)
UP_TO_A, UP_TO_BEYOND_Z = np.uint64(0x3F3F3F3F3F3F3F3F), np.uint64(0x2525252525252525)
UP_TO_SMALL_A, UP_TO_BEYOND_SMALL_Z = np.uint64(0x1F1F1F1F1F1F1F1F), np.uint64(0x0505050505050505)


@inlined
def _mix(x: Int) -> Int:
    """Spread the bits of a uint64; one to one."""
    x *= K1
    x ^= x >> np.uint64(32)
    x *= K2
    return x ^ x >> np.uint64(29)


@inlined
def _next_bytes(p: Int, n: Int, limit: Int) -> Int:
    """Up to 8 bytes from `p`, zeros above the n-th: uint64. The data may be read up to `limit`."""
    if p + 8 <= limit:
        word = load64(p)
        return word if n >= 8 else word & (np.uint64(1) << np.uint64(8 * n)) - np.uint64(1)
    word = np.uint64(0)
    for i in range(min(n, 8)):
        word |= np.uint64(byte_at(p + i)) << np.uint64(8 * i)
    return word


@inlined
def _ascii_hash(p: Int, stop: Int, limit: Int) -> tuple[Int, Int, Int]:
    """Hash, letters, and whether all of the word is ASCII (else the other two mean nothing)."""
    h, letters, seen = ASCII_SEED, 0, np.uint64(0)
    while p < stop:
        word = _next_bytes(p, stop - p, limit)
        seen |= word
        capitals = (word + UP_TO_A) & ~(word + UP_TO_BEYOND_Z) & EVERY_HIGH_BIT
        word |= capitals >> np.uint64(2)
        letters += count_bits((word + UP_TO_SMALL_A) & ~(word + UP_TO_BEYOND_SMALL_Z) & EVERY_HIGH_BIT)
        h = _mix(h ^ word)
        p += 8
    return h, letters, seen & EVERY_HIGH_BIT == 0


@inlined
def _fact_of(code: Int) -> Int:
    block = np.int64(FACT_INDEX[np.uint64(code >> 6)])
    return np.int64(FACT_BLOCKS[np.uint64(block << 6 | code & 63)])


@inlined
def _folded_ascii_hash(p: Int, stop: Int) -> Int:
    """The hash of a word that folding makes ASCII: the Kelvin sign and the long s do."""
    h, word, n = ASCII_SEED, np.uint64(0), 0
    while p < stop:
        code, length = decode(p, stop)
        word |= np.uint64(code + (_fact_of(code) >> 9)) << np.uint64(8 * (n & 7))
        n += 1
        if n & 7 == 0:
            h, word = _mix(h ^ word), np.uint64(0)
        p += length
    return _mix(h ^ word) if n & 7 != 0 else h


@inlined
def _other_hash(p: Int, stop: Int, limit: Int, letters_by_script: npt.NDArray[np.int32]) -> tuple[Int, Int, Int]:
    """Hash, characters and kind of a word that is not all ASCII; adds its letters by script."""
    code, length = decode(p, limit)
    fact = _fact_of(code)
    script = fact >> 3 & 63
    folded = code + (fact >> 9)
    h = (OTHER_SEED ^ np.uint64(folded)) * K1
    h ^= h >> np.uint64(29)
    if fact & 4 and p + length == stop:  # what Chinese and Japanese are made of
        letters_by_script[np.uint64(script)] += 1
        return _mix(h), 1, np.int64(KIND_OF_SCRIPT[np.uint64(script)])
    first, first_fact = p, fact
    chars, letters, silent, highest, of_script = 1, fact & 1, fact >> 1 & 1, folded, fact & 1
    p += length
    while p < stop:
        code, length = decode(p, limit)
        fact = _fact_of(code)
        folded = code + (fact >> 9)
        highest = max(highest, folded)
        h = (h ^ np.uint64(folded)) * K1
        h ^= h >> np.uint64(29)
        silent += fact >> 1 & 1
        chars += 1
        p += length
        if fact & 1:
            letters += 1
            if fact >> 3 & 63 != script:
                letters_by_script[np.uint64(script)] += of_script
                script, of_script = fact >> 3 & 63, 0
            of_script += 1
    letters_by_script[np.uint64(script)] += of_script
    h = _mix(h) if highest >= 0x80 else _folded_ascii_hash(first, stop)
    fact = first_fact
    if fact & 4:
        return h, chars, np.int64(KIND_OF_SCRIPT[np.uint64(fact >> 3 & 63)])
    if letters == 0:
        return h, chars, 0
    has_accents = fact >> 3 & 63 <= CYRILLIC
    return h, chars, 1 if letters == 1 and (chars == 1 or (has_accents and chars - silent == 1)) else 2


@kernel
def visit_words(
    data: Bytes,
    starts: Int64s,
    ends: Int64s,
    out_starts: Int64s,
    out_ends: Int64s,
    out_hashes: npt.NDArray[np.uint64],
    out_chars: npt.NDArray[np.int32],
    out_kinds: npt.NDArray[np.uint8],
    offsets: Int64s,
    letters: npt.NDArray[np.int32],
) -> None:
    """Fill the arrays; `offsets` int64[n + 1], `letters` int32[n, n_scripts] zeroed, the others with room for all words."""
    base, limit = address_of(data), address_of(data) + len(data)
    word_starts, word_stops = np.empty(HANDFUL, np.int64), np.empty(HANDFUL, np.int64)
    n = np.uint64(0)
    for row in range(len(starts)):
        p, end = base + starts[row], base + ends[row]
        by_script = letters[row]
        latin = 0
        while p < end:
            found, p = some_words(p, end, limit, word_starts, word_stops)
            for i in range(found):
                q, stop = word_starts[i], word_stops[i]
                out_starts[n], out_ends[n] = q - base, stop - base
                if byte_at(q) < 0x80:
                    h, n_letters, is_ascii = _ascii_hash(q, stop, limit)
                else:
                    h, n_letters, is_ascii = ASCII_SEED, 0, False
                if is_ascii:
                    latin += n_letters
                    out_hashes[n] = h
                    out_chars[n] = stop - q
                    out_kinds[n] = (n_letters > 0) + np.int64(n_letters > 0 and stop - q > 1)
                else:
                    h, chars, kind = _other_hash(q, stop, limit, by_script)
                    out_hashes[n], out_chars[n], out_kinds[n] = h, chars, kind
                n += np.uint64(1)
        by_script[LATIN] += latin
        offsets[row + 1] = n
