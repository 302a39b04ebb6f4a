"""The kernel of `langdetect`: sums of log probabilities over the sequences of 1 to 3 characters of a line.

Everything is read by address: numba counts references to an array at each call of a function that takes it,
which alone would make this four times slower.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from curation.filters.language.float_rows import prefetch
from curation.filters.language.int_rows import WIDTH, add_long_row, add_row, add_short_row, add_to, clear_row
from curation.text.decode import decode, fold_of, low_bits
from curation.text.jit import inlined, kernel
from curation.text.memory import Int, address_of, byte_at, bytes_in, load32, load64, store64, trailing_zeros
from curation.text.spans import Bytes, Int64s
from quality_models.langdetect_profiles import BLANK, FLOOR

__all__ = [
    "CAPITAL",
    "COUNTED",
    "COUNT_AT",
    "DENSE",
    "FIRST",
    "GOES_ON",
    "LETTER_AT",
    "PAIRS_AT",
    "SCALE",
    "Tables",
    "fill",
    "sum_lines",
]

LOG_FLOOR = float(np.log(FLOOR))

SCALE = 4096
"""Steps of 1 in a log probability: the largest above the floor, log(1 / FLOOR) = 9.9, takes 16 bits."""

COUNTED = WIDTH - 1
"""Column of a row of sums with the number of sequences; before it the languages, and some that stay 0."""

CODE, PAIR = (1 << 21) - 1, (1 << 42) - 1
CAPITAL = 1 << 21
LETTER_AT = 22
"""From this bit of a character on, 5 bits: its row in the table of compositions, or 0."""
PAIRS_AT = 32

FIRST = (1 << 24) - 1
COUNT_AT, COUNT = 24, 0x7F
DENSE = COUNT
"""In place of the number of pairs: a whole row."""
GOES_ON = 1 << 31

MARKS = 0xCC
"""The first UTF-8 byte of U+0300 to U+033F, where the marks are that make one letter with the one before."""

KEPT = 24
"""Bytes of the longest word that is kept."""
UNCACHED = 0xE3
"""The lowest first byte of Han, kana and Hangul, whose runs rarely come twice."""
BUSY = np.uint64(1)
CLOSED = np.uint64(2)

AT_ONCE = WIDTH // 2
"""Characters of a word that are read before their sequences are added: they take the room of a row."""

MANY = 1 << 15
"""Sequences after which sums go into larger numbers: 52,000 of the largest fit into an int32. A power of 2."""

MIX = np.uint64(0x9E3779B97F4A7C15)
MIX_2 = np.uint64(0xC2B2AE3D27D4EB4F)
MIX_3 = np.uint64(0x165667B19E3779F9)

Words: TypeAlias = npt.NDArray[np.uint64]
Counts: TypeAlias = npt.NDArray[np.int32]
Floats: TypeAlias = npt.NDArray[np.float32]


class Tables(NamedTuple):
    """What the kernel reads. `values` of a sequence say where its languages are: first | how many << COUNT_AT.

    blocks, chars: a two-level table; int64: code | CAPITAL | letter << LETTER_AT | values << PAIRS_AT of the
    character alone. slots: int64[2^k, 2], a hash table with linear steps: a packed sequence of 2 or 3 (0: free),
    and its values, with GOES_ON where a longer one begins with it. pairs: language << 16 | what the sequence
    adds to it. rows: the same for sequences of many languages, where first is the row, and how many is DENSE.
    composed: the marks, then for each letter what they make of it. shift: 64 - k. n_marks: columns of composed.
    """

    blocks: npt.NDArray[np.uint32]
    chars: Int64s
    slots: Int64s
    pairs: npt.NDArray[np.uint32]
    rows: npt.NDArray[np.uint16]
    composed: Int64s
    shift: np.uint64
    n_marks: int


Places: TypeAlias = tuple[Int, Int, Int, Int, Int, Int, Int, Int]
BLOCKS, CHARS, SLOTS, PAIRS, ROWS, COMPOSED, SHIFT, N_MARKS = range(8)
"""In compiled code: addresses of the arrays of `Tables`, and its last two."""

Cache: TypeAlias = tuple[Int, Int, Int, Int, Int]
"""Addresses of the keys of words, of their sums, and of room for those of one word; how many words - 1; and the address
of room for AT_ONCE characters."""

Sums: TypeAlias = Int
"""Address of int32[2, WIDTH] that are to be added: from whole rows, and from pairs. In one row, each vector
would have to wait until the single numbers before it have left the store buffer."""


@inlined
def _slot(gram: Int, shift: Int) -> Int:
    return np.uint64(gram) * MIX >> shift


@kernel
def fill(slots: Int64s, grams: Int64s, values: Int64s, shift: np.uint64) -> None:
    """Put sequences into an empty hash table that has room for them: int64[2^k, 2], k = 64 - shift."""
    for i in range(len(grams)):
        at = _slot(grams[i], shift)
        while slots[at, 0] != 0:
            at = (at + np.uint64(1)) & np.uint64(len(slots) - 1)
        slots[at, 0] = grams[i]
        slots[at, 1] = values[i]


@inlined
def _values(gram: Int, places: Places) -> Int:
    """Where the pairs of a sequence of 2 or 3 are; 0 if no language knows it."""
    slots = places[SLOTS]
    mask = ~np.uint64(0) >> places[SHIFT]
    at = _slot(gram, places[SHIFT])
    while True:
        address = slots + np.int64(at << np.uint64(4))
        key = np.int64(load64(address))
        if key == gram:
            return np.int64(load64(address + 8))
        if key == 0:
            return 0
        at = (at + np.uint64(1)) & mask


@inlined
def _add(values: Int, places: Places, sums: Sums) -> None:
    """Add a sequence to its languages, and count it if there are any."""
    first, count = values & FIRST, values >> COUNT_AT & COUNT
    if count == DENSE:
        add_short_row(sums, places[ROWS] + 2 * WIDTH * first)
    elif count:
        for address in range(places[PAIRS] + 4 * first, places[PAIRS] + 4 * (first + count), 4):
            pair = load32(address)
            add_to(sums + 4 * (WIDTH + (pair >> 16)), pair & 0xFFFF)
        add_to(sums + 4 * (WIDTH + COUNTED), 1)


@inlined
def _char(code: Int, places: Places) -> Int:
    block = load32(places[BLOCKS] + (code >> 6 << 2))
    return np.int64(load64(places[CHARS] + ((block << 6 | code & 63) << 3)))


@inlined
def _read(p: Int, end: Int, places: Places) -> tuple[Int, Int, Int]:
    """The character at address `p`, with a mark that makes one letter with it: code, its entry, and bytes."""
    code, length = decode(p, end)
    char = _char(code, places)
    letter = char >> LETTER_AT & 0x1F
    if letter and p + length < end and byte_at(p + length) == MARKS:
        mark, more = decode(p + length, end)
        for column in range(places[N_MARKS]):
            if np.int64(load64(places[COMPOSED] + 8 * column)) == mark:
                code = np.int64(load64(places[COMPOSED] + 8 * (letter * places[N_MARKS] + column)))
                return code, _char(code, places), length + more
    return code, char, length


@inlined
def _word_end(p: Int, end: Int, limit: Int, places: Places) -> tuple[Int, Int]:
    """Where the word that begins at `p` ends, and whether it has two capitals side by side."""
    capital, loud = False, False
    while p < end:
        if p + 64 <= limit and byte_at(p) < 0x80:
            run = min(trailing_zeros(~bytes_in(p, 0x20, 0x61, 26)), end - p)
            if run == 0:
                break
            if p + run < end and byte_at(p + run) == MARKS:
                run -= 1  # the last letter and the mark may be one
            if run > 0:
                capitals = bytes_in(p, 0, 0x41, 26) & low_bits(run)
                loud |= capitals & capitals >> np.uint64(1) != 0 or (capital and capitals & np.uint64(1) != 0)
                capital = capitals >> np.uint64(run - 1) != 0
                p += run
                continue
        char, length = _read(p, end, places)[1:]
        if char & CODE == BLANK:
            break
        loud |= capital and char & CAPITAL != 0
        capital = char & CAPITAL != 0
        p += length
    return p, loud


@inlined
def _carry(sums: Sums, totals: Int) -> None:
    """Move what was summed so far into larger numbers."""
    for row in (sums, sums + 4 * WIDTH):
        add_long_row(totals, row)
        clear_row(row)


@inlined
def _are_many(sums: Sums) -> Int:
    return (load32(sums + 4 * COUNTED) | load32(sums + 4 * (WIDTH + COUNTED))) >= MANY


@inlined
def _read_some(p: Int, stop: Int, closed: bool, loud: bool, before: Int, places: Places, chars: Int) -> tuple[Int, Int]:
    """Put up to AT_ONCE of the next characters of a word at the address `chars`: how many, and where to read on.

    A blank that closes the word counts as one. Where sequences that end with each may be found is asked for at once:
    it lies in slow memory, and is there when all have been read. before: the two characters before, packed.
    """
    n = 0
    while n < AT_ONCE and p < stop + closed:
        char, length = np.int64(BLANK), 1
        if p < stop:
            code, char, length = _read(p, stop, places)
            if loud and char & CAPITAL:
                char = _char(code + fold_of(code), places)
        three = before << 21 | char & CODE
        before = three & PAIR
        for gram in (before, three):
            prefetch(places[SLOTS] + np.int64(_slot(gram, places[SHIFT]) << np.uint64(4)))
        store64(chars + 8 * n, np.uint64(char))
        p += length
        n += 1
    return n, p


@inlined
def _sum_word(p: Int, stop: Int, closed: bool, loud: bool, places: Places, sums: Sums, totals: Int, chars: Int) -> None:
    """Add all sequences of the word from `p` to `stop` to `sums`; what would be too much goes on into `totals`.

    A word begins with a blank, and ends with one if it is `closed`.
    """
    before, goes_on = np.int64(BLANK), False
    while p < stop + closed:
        n, p = _read_some(p, stop, closed, loud, before, places, chars)
        for i in range(n):
            char = np.int64(load64(chars + 8 * i))
            _add(char >> PAIRS_AT, places, sums)
            three = before << 21 | char & CODE
            before = three & PAIR
            if goes_on:
                _add(_values(three, places), places, sums)
            values = _values(before, places)
            _add(values, places, sums)
            goes_on = values & GOES_ON != 0
        if _are_many(sums):
            _carry(sums, totals)


@inlined
def _word_bytes(p: Int, stop: Int, limit: Int) -> Int:
    """Up to 8 bytes from `p`, zeros above them; a word has no zero byte."""
    if p >= stop:
        return np.uint64(0)
    if p + 8 <= limit:
        word = load64(p)
        return word if stop - p >= 8 else word & (np.uint64(1) << np.uint64(8 * (stop - p))) - np.uint64(1)
    word = np.uint64(0)
    for i in range(min(stop - p, 8)):
        word |= np.uint64(byte_at(p + i)) << np.uint64(8 * i)
    return word


@inlined
def _place_of(p: Int, stop: Int, limit: Int, closed: bool, cache: Cache) -> tuple[Int, Int]:
    """Address of the one row where the sums of a word of up to KEPT bytes may be, and whether they are there.

    If not, the place is now that of this word, whose sums the caller has to write.
    """
    keys, kept, mask = cache[0], cache[1], cache[3]
    a, b, c = _word_bytes(p, stop, limit), _word_bytes(p + 8, stop, limit), _word_bytes(p + 16, stop, limit)
    d = BUSY | (CLOSED if closed else np.uint64(0))
    mixed = ((a * MIX ^ b) * MIX_2 ^ c) * MIX_3 + d
    at = np.int64((mixed ^ mixed >> np.uint64(32)) & mask)
    key = keys + 32 * at
    if load64(key) == a and load64(key + 8) == b and load64(key + 16) == c and load64(key + 24) == d:
        return kept + 4 * WIDTH * at, True
    for i, word in enumerate((a, b, c, d)):
        store64(key + 8 * i, word)
    return kept + 4 * WIDTH * at, False


@inlined
def _next_letter(p: Int, end: Int, places: Places) -> Int:
    """Address of the next character that is no blank, or `end`."""
    while p < end:
        byte = byte_at(p)
        if byte < 0x80:
            if 0 <= (byte | 0x20) - 0x61 < 26:
                break
            p += 1
        else:
            char, length = _read(p, end, places)[1:]
            if char & CODE != BLANK:
                break
            p += length
    return p


@inlined
def _sum_line(p: Int, end: Int, limit: Int, places: Places, cache: Cache, sums: Sums, totals: Int) -> None:
    """Add all sequences of a line to `sums`; what would be too many goes on into `totals`."""
    fresh, chars = cache[2], cache[4]
    p = _next_letter(p, end, places)
    while p < end:
        stop, loud = _word_end(p, end, limit, places)
        short, is_kept, row = stop - p <= KEPT and byte_at(p) < UNCACHED, False, 0
        if short:
            row, is_kept = _place_of(p, stop, limit, stop < end, cache)
        if not is_kept:
            _sum_word(p, stop, stop < end, loud, places, fresh if short else sums, totals, chars)
        if short:
            if not is_kept:
                clear_row(row)
                for address in (fresh, fresh + 4 * WIDTH):
                    add_row(row, address)
                    clear_row(address)
            add_row(sums, row)
            if _are_many(sums):
                _carry(sums, totals)
        p = _next_letter(stop, end, places)


@kernel
def sum_lines(
    data: Bytes, starts: Int64s, ends: Int64s, tables: Tables, keys: Words, kept: Counts, n_labels: int
) -> tuple[Floats, Counts]:
    """What `Langdetect.log_likelihoods` returns.

    keys: uint64[4 * 2^k], and kept: int32[(2^k + 5) * WIDTH], the cache of words, at first zeros, and behind it room
    for the sums of a word and of a line and for characters.
    """
    base, limit = address_of(data), address_of(data) + len(data)
    blocks, chars, slots = address_of(tables.blocks), address_of(tables.chars), address_of(tables.slots)
    pairs, rows, composed = address_of(tables.pairs), address_of(tables.rows), address_of(tables.composed)
    places = (blocks, chars, slots, pairs, rows, composed, tables.shift, tables.n_marks)
    fresh = address_of(kept) + WIDTH * len(keys)
    sums = fresh + 8 * WIDTH
    cache = (address_of(keys), address_of(kept), fresh, np.uint64(len(keys) // 4 - 1), fresh + 16 * WIDTH)
    likelihoods, counts = np.empty((len(starts), n_labels), np.float32), np.empty(len(starts), np.int32)
    totals = np.empty(WIDTH, np.int64)
    for address in range(fresh, fresh + 16 * WIDTH, 4 * WIDTH):
        clear_row(address)
    for line in range(len(starts)):
        totals[:] = 0
        _sum_line(base + starts[line], base + ends[line], limit, places, cache, sums, address_of(totals))
        _carry(sums, address_of(totals))
        counts[line] = totals[COUNTED]
        floor = totals[COUNTED] * LOG_FLOOR
        for i in range(n_labels):
            likelihoods[line, i] = floor + totals[i] * (1 / SCALE)
    return likelihoods, counts
