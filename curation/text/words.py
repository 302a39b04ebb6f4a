"""Where words begin and end, and what they hash to, in every script.

A word is a run of letters, marks and digits, with single joiners inside (don't, l'eau, 1,234.5), or,
in scripts written without blanks between words, one character with its marks. docs/reference/text.md
has the rules with examples. ASCII is taken 64 bytes at a time, anything else by character.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from curation.text.decode import ascii_run, decode, kind_of, low_bits
from curation.text.hashing import xxh64, xxh64_folded
from curation.text.jit import inlined, kernel
from curation.text.memory import Int, address_of, byte_at, bytes_in, trailing_zeros
from curation.text.spans import Bytes, Int64s, Spans, Where, bounds
from curation.text.tables import CharClass, Role, Script

__all__ = ["HANDFUL", "WordHashes", "count_words", "some_words", "word_hashes", "word_spans", "words_in"]

BREAK, LETTER, DIGIT, UNSPACED = int(Role.BREAK), int(Role.LETTER), int(Role.DIGIT), int(Role.UNSPACED)
MARK, JOINER = int(Role.MARK), int(Role.JOINER)
NUMBER_JOINER, HEBREW_JOINER = int(Role.NUMBER_JOINER), int(Role.HEBREW_JOINER)
HEBREW = int(Script.HEBREW)
ASCII_LETTER = int(CharClass.LETTER | Role.LETTER << 4 | Script.LATIN << 8)
ASCII_DIGIT = int(CharClass.NUMBER | Role.DIGIT << 4 | Script.COMMON << 8)

HANDFUL = 128
"""Words found before they are used: their places stay in the first-level cache."""

Hashes: TypeAlias = npt.NDArray[np.uint64]
Number = TypeVar("Number", bound=np.generic)


class WordHashes(NamedTuple):
    """Hashes of the words of n documents.

    values: uint64[n_words]. offsets: int64[n + 1]; the words of document d are
    `values[offsets[d]:offsets[d + 1]]`, in reading order.
    """

    values: Hashes
    offsets: Int64s


def count_words(data: Bytes, where: Where) -> Int64s:
    """Words of each text: int64[n]."""
    return _count_words(*bounds(data, where))


def word_spans(data: Bytes, where: Where) -> Spans:
    """Where the words of each text are: starts, ends int64[n_words], offsets int64[n + 1]."""
    checked = bounds(data, where)
    starts, ends = (np.empty(_most_words(*checked), np.int64) for _ in range(2))
    offsets = np.zeros(len(checked[1]) + 1, np.int64)
    _fill_spans(*checked, starts, ends, offsets)
    return Spans(_cut(starts, offsets), _cut(ends, offsets), offsets)


def word_hashes(data: Bytes, where: Where, *, seed: int = 0, folded: bool = False) -> WordHashes:
    """XXH64 of each word of each text: values uint64[n_words], offsets int64[n + 1].

    A word hashes to XXH64 with `seed` of its UTF-8 bytes as they stand, or, if `folded`, of its UTF-8
    under simple case folding, so that "The" equals "the". Nothing else is folded: no NFKC, no accents,
    no full folding ("ß" is not "ss").
    """
    checked = bounds(data, where)
    values = np.empty(_most_words(*checked), np.uint64)
    offsets = np.zeros(len(checked[1]) + 1, np.int64)
    longest = int((checked[2] - checked[1]).max(initial=0)) if folded else 0
    scratch = np.empty(longest * 3 // 2, np.uint8)  # folding makes 3 bytes of 2 at most
    _fill_hashes(*checked, values, offsets, np.uint64(seed), folded, scratch)
    return WordHashes(_cut(values, offsets), offsets)


def _most_words(data: Bytes, starts: Int64s, ends: Int64s) -> int:
    """No text has more words than half its bytes. Room that is not used is never touched, so costs no memory."""
    return int((ends - starts + 1).sum()) // 2


def _cut(values: npt.NDArray[Number], offsets: Int64s) -> npt.NDArray[Number]:
    """Give back the room that was not used."""
    values.resize(offsets[-1], refcheck=False)
    return values


@inlined
def some_words(p: Int, end: Int, limit: Int, starts: Int64s, stops: Int64s) -> tuple[Int, Int]:
    """Addresses of the next words from `p` to `end`: how many were written, and where to go on.

    Called until it goes on at `end`. `starts` and `stops` have room for `HANDFUL` words. A handful that
    is full ends before a word that is open, which is then read again: so no state is carried over.
    The data may be read up to `limit`.
    """
    n = 0
    stop = p  # after the last letter, digit or mark of the open word, which begins at starts[n]
    before = 0  # kind of its last letter or digit; 0 if no word is open
    joiner = 0  # role of the joiner after that, if any
    while p < end:
        if n > HANDFUL - 40:
            return n, starts[np.uint64(n)] if before != 0 else p
        run = ascii_run(p, end, limit) if joiner == 0 and byte_at(p) < 0x80 else 0
        if run > 1:
            if before >> 4 & 15 == UNSPACED:
                n, before = _close(stops, n, stop), 0
            p, stop, before, n = _ascii_words(p, run, stop, before, starts, stops, n)
            if p == end:
                break
        code, length = decode(p, end)
        kind = kind_of(code)
        role = kind >> 4 & 15
        if role == UNSPACED:
            n = _close(stops, n, stop) if before != 0 else n
            starts[np.uint64(n)] = p
            stop, before, joiner = p + length, kind, 0
        elif role in (LETTER, DIGIT):
            if before != 0 and not _goes_on(before, joiner, kind):
                n, before = _close(stops, n, stop), 0
            if before == 0:
                starts[np.uint64(n)] = p
            stop, before, joiner = p + length, kind, 0
        elif before != 0:
            if role == MARK:
                stop = p + length if joiner == 0 else stop
            elif role >= JOINER and joiner == 0:
                joiner = role
            elif role == BREAK or role >= JOINER:
                n, before, joiner = _close(stops, n, stop), 0, 0
        p += length
    return _close(stops, n, stop) if before != 0 else n, end


@inlined
def _close(stops: Int64s, n: Int, stop: Int) -> Int:
    stops[np.uint64(n)] = stop
    return n + 1


@inlined
def _goes_on(before: Int, joiner: Int, kind: Int) -> Int:
    """Whether a letter or digit goes on with the word whose last one was `before`."""
    was, role = before >> 4 & 15, kind >> 4 & 15
    if was == UNSPACED:
        return False
    if joiner == NUMBER_JOINER:
        return was == DIGIT and role == DIGIT
    if joiner == HEBREW_JOINER:
        return before >> 8 == HEBREW and kind >> 8 == HEBREW
    return True


@inlined
def _ascii_words(
    p: Int, run: Int, stop: Int, before: Int, starts: Int64s, stops: Int64s, n: Int
) -> tuple[Int, Int, Int, Int]:
    """Words of up to 64 ASCII bytes: new p, stop, before, n.

    One bit stands for one byte. The last byte is left over if it may be a joiner: what follows decides.
    """
    one = np.uint64(1)
    mask = low_bits(run)
    digits = bytes_in(p, 0, 0x30, 10) & mask
    solid = bytes_in(p, 0x20, 0x61, 26) & mask | digits
    joiners = (bytes_in(p, 0, 0x27, 1) | bytes_in(p, 0, 0x5F, 1)) & mask
    points = (bytes_in(p, 0, 0x2C, 1) | bytes_in(p, 0, 0x2E, 1)) & mask
    doubt = (joiners | points | bytes_in(p, 0, 0x22, 1)) >> np.uint64(run - 1) & one
    run -= np.int64(doubt)
    inside = np.uint64(before != 0)
    was_digit = np.uint64(before >> 4 & 15 == DIGIT)
    joined = joiners & (solid << one | inside) & solid >> one
    joined |= points & (digits << one | was_digit) & digits >> one
    word = solid | joined
    before_word = word << one | inside
    _put(word & ~before_word, p, starts, n + np.int64(inside))
    ended = before_word & ~word & mask & ~(doubt << np.uint64(run))
    n_ended = _put(ended, p, stops, n)
    if ended & inside:  # the open word ended where this run begins, or before, if characters to ignore follow it
        stops[np.uint64(n)] = stop
    last = np.uint64(run - 1)
    kind = ASCII_DIGIT if digits >> last & one else ASCII_LETTER
    before = kind if word >> last & one else 0
    return p + run, p + run, before, n + n_ended


@inlined
def _put(mask: Int, p: Int, places: Int64s, n: Int) -> Int:
    """Write the address of each one of a mask from `places[n]` on; returns how many."""
    first = n
    while mask != 0:
        places[np.uint64(n)] = p + trailing_zeros(mask)
        mask &= mask - np.uint64(1)
        n += 1
    return n - first


@inlined
def words_in(p: Int, end: Int, limit: Int, places: tuple[Int64s, Int64s]) -> Int:
    """Words from address `p` to `end`. `places` are two arrays with room for a handful."""
    n = 0
    while p < end:
        found, p = some_words(p, end, limit, places[0], places[1])
        n += found
    return n


@kernel
def _count_words(data: Bytes, starts: Int64s, ends: Int64s) -> Int64s:
    base, limit = address_of(data), address_of(data) + len(data)
    places = np.empty(HANDFUL, np.int64), np.empty(HANDFUL, np.int64)
    counts = np.empty(len(starts), np.int64)
    for row in range(len(starts)):
        counts[row] = words_in(base + starts[row], base + ends[row], limit, places)
    return counts


@kernel
def _fill_spans(
    data: Bytes, starts: Int64s, ends: Int64s, out_starts: Int64s, out_ends: Int64s, offsets: Int64s
) -> None:
    base, limit = address_of(data), address_of(data) + len(data)
    word_starts, word_stops = np.empty(HANDFUL, np.int64), np.empty(HANDFUL, np.int64)
    n = 0
    for row in range(len(starts)):
        p, end = base + starts[row], base + ends[row]
        while p < end:
            found, p = some_words(p, end, limit, word_starts, word_stops)
            for i in range(found):
                out_starts[np.uint64(n)] = word_starts[i] - base
                out_ends[np.uint64(n)] = word_stops[i] - base
                n += 1
        offsets[row + 1] = n


@kernel
def _fill_hashes(
    data: Bytes,
    starts: Int64s,
    ends: Int64s,
    out: Hashes,
    offsets: Int64s,
    seed: np.uint64,
    folded: bool,
    scratch: Bytes,
) -> None:
    base, limit = address_of(data), address_of(data) + len(data)
    word_starts, word_stops = np.empty(HANDFUL, np.int64), np.empty(HANDFUL, np.int64)
    n = 0
    for row in range(len(starts)):
        p, end = base + starts[row], base + ends[row]
        while p < end:
            found, p = some_words(p, end, limit, word_starts, word_stops)
            for i in range(found):
                if folded:
                    out[np.uint64(n + i)] = xxh64_folded(word_starts[i], word_stops[i], limit, seed, scratch)
                else:
                    out[np.uint64(n + i)] = xxh64(word_starts[i], word_stops[i], limit, seed)
            n += found
        offsets[row + 1] = n
