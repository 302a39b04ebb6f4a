"""The words of a line, their n-grams, and the mean of all their rows: what a fastText model makes of a text.

Words of up to 48 bytes are looked up in a cache that holds the sum of a word's rows, under the word's own bytes:
nothing depends on what is in it. Longer ones, such as a line of Chinese, are summed up anew, in linear time.
Hashes and splitting are those of the fastText library (its Dictionary).
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from curation.filters.language.float_rows import add_rows, clear_row, divide_row, prefetch
from curation.filters.language.ngram_hashes import (
    HASH_PRIME,
    HASH_START,
    begin_char,
    continue_char,
    remainder,
)
from curation.text.jit import inlined
from curation.text.memory import Int, address_of, byte_at, count_bits, load32, load64, store64, store_byte
from curation.text.spans import Bytes, Int64s

__all__ = ["CACHE_LINE", "RECORD_HEAD", "Memory", "Tables", "Work", "hash_of", "memory_of", "read_line", "same_bytes"]

Floats: TypeAlias = npt.NDArray[np.float32]
UInt32s: TypeAlias = npt.NDArray[np.uint32]

SPREAD = np.uint32(2654435769)
WORD_NGRAM_PRIME = np.uint64(116049371)
LABEL = b"__label__"
END_OF_LINE = b"</s>"
MARKS = np.frombuffer(LABEL + END_OF_LINE, np.uint8)
RECORD_HEAD = 64
LONGEST_CACHED = RECORD_HEAD - 16
CACHE_LINE = 64


class Tables(NamedTuple):
    """A model as the kernels read it.

    entries, starts, ends: the dictionary, as in FastTextModel. slots: uint32[2^k], the same as a hash table of
    index + 1, 0 for empty. kept: uint64[2 (bucket // 64 + 1)], pairs of 64 bits, whether each n-gram has a row, and the
    row of the first of them that has; empty if all have one. end_row: the row of `</s>`, -1 for none.
    """

    entries: Bytes
    starts: Int64s
    ends: Int64s
    slots: UInt32s
    kept: npt.NDArray[np.uint64]
    marks: Bytes
    dim: int
    n_words: int
    min_n: int
    max_n: int
    word_ngrams: int
    bucket: int
    reciprocal: np.uint64
    end_row: int


class Work(NamedTuple):
    """The cache and room to work in, for one call at a time.

    records: uint8[n_slots + 1, 64 + 4 dim]. Each is of one word: int64 length in bytes, 0 for an empty slot; int64
    number of its rows, -1 for a label, which is no part of a text; its bytes; the sum of its rows, float32[dim]. The
    last is for words that are too long for the cache. rows, pending: int64[k], addresses of rows to sum up. words:
    int64[4 k], the next words of a line: where each begins, its length, its hash, and the place of its record.
    runs: int64[word_ngrams], hashes of the latest words. hidden: float32[2, dim], the line; then its word n-grams.
    hashes: uint32[16], as begin_char has them.
    """

    records: Bytes
    rows: Int64s
    pending: Int64s
    words: Int64s
    runs: Int64s
    hidden: Floats
    hashes: UInt32s


class Memory(NamedTuple):
    """Where everything lies: addresses and numbers alone, since numba counts references to arrays at each use."""

    entries: int
    starts: int
    ends: int
    slots: int
    slot_mask: int
    kept: int
    pruned: bool
    label: int
    end_of_line: int
    matrix: int
    dim: int
    n_words: int
    min_n: int
    max_n: int
    word_ngrams: int
    bucket: int
    reciprocal: np.uint64
    end_row: int
    records: int
    n_slots: int
    rows: int
    pending: int
    words: int
    n_room: int
    runs: int
    hidden: int
    hashes: int


@inlined
def memory_of(t: Tables, w: Work, matrix: int) -> Memory:
    """Addresses of a model's tables, of its input matrix, and of the room to work in."""
    return Memory(
        address_of(t.entries),
        address_of(t.starts),
        address_of(t.ends),
        address_of(t.slots),
        len(t.slots) - 1,
        address_of(t.kept),
        len(t.kept) > 0,
        address_of(t.marks),
        address_of(t.marks) + len(LABEL),
        matrix,
        t.dim,
        t.n_words,
        t.min_n,
        t.max_n,
        t.word_ngrams,
        t.bucket,
        t.reciprocal,
        t.end_row,
        address_of(w.records),
        len(w.records) // (RECORD_HEAD + 4 * t.dim) - 1,
        address_of(w.rows),
        address_of(w.pending),
        address_of(w.words),
        len(w.rows),
        address_of(w.runs),
        address_of(w.hidden),
        address_of(w.hashes),
    )


@inlined
def _step(h: Int, byte: Int) -> Int:
    """One byte of FNV-1a as fastText has it: bytes are signed."""
    return np.uint32((h ^ np.uint32(np.int8(byte))) * np.uint32(HASH_PRIME))


@inlined
def hash_of(p: Int, end: Int) -> Int:
    """fastText's hash of the bytes between two addresses: uint32."""
    h = np.uint32(HASH_START)
    while p < end:
        h = _step(h, byte_at(p))
        p += 1
    return h


@inlined
def _is_blank(byte: Int) -> Int:
    return byte <= 32 and (byte == 32 or (9 <= byte <= 13) or byte == 0)


@inlined
def same_bytes(p: Int, q: Int, length: Int) -> Int:
    """Whether `length` bytes at two addresses are the same."""
    index = 0
    while index < length and byte_at(p + index) == byte_at(q + index):
        index += 1
    return index == length


@inlined
def _find(m: Memory, p: Int, length: Int, h: Int) -> Int:
    """Index of a word or label in the dictionary, or -1."""
    slot = np.int64(h) & m.slot_mask
    entry = load32(m.slots + 4 * slot) - 1
    while entry >= 0:
        start = np.int64(load64(m.starts + 8 * entry))
        if np.int64(load64(m.ends + 8 * entry)) - start == length and same_bytes(p, m.entries + start, length):
            break
        slot = (slot + 1) & m.slot_mask
        entry = load32(m.slots + 4 * slot) - 1
    return entry


@inlined
def _append_ngram(m: Memory, number: Int, n_rows: Int) -> Int:
    """Append the row of an n-gram to `rows`, if it has one: how many there are now."""
    row, known = m.n_words + number, np.int64(1)
    if m.pruned:
        pair = m.kept + (number >> 6 << 4)
        bits = load64(pair) << np.uint64(63 - (number & 63))  # its own bit comes to the top, higher ones fall out
        row = np.int64(load64(pair + 8)) + count_bits(bits) - 1
        known = np.int64(bits >> np.uint64(63))
    address = m.matrix + 4 * row * m.dim
    store64(m.rows + 8 * n_rows, address)
    prefetch(address if known else m.hidden)
    return n_rows + known


@inlined
def _read_char(m: Memory, p: Int, stop: Int) -> Int:
    """Hash the bytes from an address on that continue a character: where the next character begins."""
    while p < stop and byte_at(p) & 0xC0 == 0x80:
        continue_char(m.hashes, byte_at(p))
        p += 1
    return p


@inlined
def _append_ngrams(m: Memory, shortest: Int, longest: Int, n_rows: Int) -> Int:
    """Append the rows of the n-grams that end with the character just read: how many there are now."""
    for n in range(shortest, longest + 1):
        number = remainder(load32(m.hashes + 4 * (n - 1)), m.bucket, m.reciprocal)
        n_rows = _append_ngram(m, number, n_rows)
    return n_rows


@inlined
def _sum_word(m: Memory, p: Int, length: Int, h: Int, target: Int) -> Int:
    """Add the rows of a word and of its n-grams to a row; how many, or -1 for a label."""
    found = _find(m, p, length, h)
    if found >= m.n_words or (found < 0 and length >= len(LABEL) and same_bytes(p, m.label, len(LABEL))):
        return np.int64(-1)
    store64(m.rows, m.matrix + 4 * found * m.dim)
    n_rows = np.int64(found >= 0)
    total = np.int64(0)
    if m.max_n > 0:
        stop = p + length
        begin_char(m.hashes, ord("<"))
        p = _read_char(m, p, stop)  # a text that begins amid a character: its bytes go with the mark
        n_chars: Int = np.int64(1)
        while p < stop:
            begin_char(m.hashes, byte_at(p))
            p = _read_char(m, p + 1, stop)
            n_chars = min(n_chars + 1, m.max_n)
            n_rows = _append_ngrams(m, m.min_n, n_chars, n_rows)
            if n_rows + m.max_n > m.n_room:
                add_rows(target, m.dim, m.rows, n_rows)
                total += n_rows
                n_rows = np.int64(0)
        begin_char(m.hashes, ord(">"))
        n_rows = _append_ngrams(m, max(m.min_n, 2), min(n_chars + 1, m.max_n), n_rows)
    add_rows(target, m.dim, m.rows, n_rows)
    return total + n_rows


@inlined
def _slot_of(m: Memory, length: Int, h: Int) -> Int:
    """Address of the record where a word may be; that of long words is the last, which belongs to none."""
    slot = np.int64((np.uint64(np.uint32(h * SPREAD)) * np.uint64(m.n_slots)) >> np.uint64(32))
    if length > LONGEST_CACHED:
        slot = np.int64(m.n_slots)
    return m.records + slot * (RECORD_HEAD + 4 * m.dim)


@inlined
def _fill_record(m: Memory, record: Int, p: Int, length: Int, h: Int) -> None:
    """Make a record that of a word. Nothing may be pending that lies there."""
    clear_row(record + RECORD_HEAD, m.dim)
    store64(record, length)
    store64(record + 8, _sum_word(m, p, length, h, record + RECORD_HEAD))
    for index in range(min(length, LONGEST_CACHED)):
        store_byte(record + 16 + index, byte_at(p + index))


@inlined
def _add_word_ngrams(m: Memory, n_before: Int, h: Int) -> Int:
    """Add the rows of all n-grams of words that end with this one, the word after `n_before` others; how many.

    Their sum lies behind the line's. Of what began with word i the hash is runs[i % (word_ngrams - 1)].
    """
    n_runs = m.word_ngrams - 1
    value = np.uint64(np.int64(np.int32(h)))
    n_rows = np.int64(0)
    for back in range(1, min(n_before, n_runs) + 1):
        run = m.runs + 8 * ((n_before - back) % n_runs)
        longer = np.uint64(load64(run) * WORD_NGRAM_PRIME + value)
        store64(run, np.int64(longer))
        n_rows = _append_ngram(m, np.int64(longer % np.uint64(m.bucket)), n_rows)
    add_rows(m.hidden + 4 * m.dim, m.dim, m.rows, n_rows)
    store64(m.runs + 8 * (n_before % n_runs), np.int64(value))
    return n_rows


@inlined
def _next_word(p: Int, end: Int) -> tuple[Int, Int, Int]:
    """Where the next word begins and ends, and its hash; an empty one at the end of the line."""
    while p < end and _is_blank(byte_at(p)):
        p += 1
    start = p
    h = np.uint32(HASH_START)
    while p < end and not _is_blank(byte_at(p)):
        h = _step(h, byte_at(p))
        p += 1
    return start, p, h


@inlined
def _scan(m: Memory, p: Int, end: Int) -> tuple[Int, Int]:
    """Find up to `n_room` words: how many there are, with `words` holding where each is, and where to read on.

    What will be looked up is asked for at once: it lies in slow memory, and is there when all words are found.
    """
    n_words = np.int64(0)
    while n_words < m.n_room:
        start, p, h = _next_word(p, end)
        length = p - start
        if length == 0 or (length == len(END_OF_LINE) and same_bytes(start, m.end_of_line, length)):
            p = end
            break
        record = _slot_of(m, length, h)
        for at in range(0, RECORD_HEAD + 4 * m.dim, CACHE_LINE):
            prefetch(record + at)
        word = m.words + 32 * n_words
        store64(word, start)
        store64(word + 8, length)
        store64(word + 16, np.int64(h))
        store64(word + 24, record)
        n_words += 1
    return n_words, p


@inlined
def _add_words(m: Memory, n_words: Int, n_before: Int) -> tuple[Int, Int]:
    """Add the rows of words that `_scan` found to `hidden`: how many rows, and how many words have any."""
    n_rows = n_pending = np.int64(0)
    n_known = n_before
    for index in range(n_words):
        word = m.words + 32 * index
        start, length = np.int64(load64(word)), np.int64(load64(word + 8))
        h, record = np.uint32(load64(word + 16)), np.int64(load64(word + 24))
        kept = length <= LONGEST_CACHED and np.int64(load64(record)) == length
        if not kept or not same_bytes(start, record + 16, length):
            add_rows(m.hidden, m.dim, m.pending, n_pending)
            n_pending = np.int64(0)
            _fill_record(m, record, start, length, h)
        n_found = np.int64(load64(record + 8))
        if n_found < 0:
            continue
        n_rows += n_found
        store64(m.pending + 8 * n_pending, record + RECORD_HEAD)
        n_pending += 1
        if m.word_ngrams > 1:
            n_rows += _add_word_ngrams(m, n_known, h)
        n_known += 1
    add_rows(m.hidden, m.dim, m.pending, n_pending)
    return n_rows, n_known


@inlined
def read_line(m: Memory, p: Int, end: Int) -> Int:
    """Put the mean of the rows of the line between two addresses into `hidden`; how many rows there were.

    As in the library, a line ends with the word `</s>`, and nothing after one in the text itself is read.
    """
    clear_row(m.hidden, 2 * m.dim)
    n_rows = n_known = np.int64(0)
    while p < end:
        n_words, p = _scan(m, p, end)
        n_more, n_known = _add_words(m, n_words, n_known)
        n_rows += n_more
    if m.word_ngrams > 1:
        n_rows += _add_word_ngrams(m, n_known, hash_of(m.end_of_line, m.end_of_line + len(END_OF_LINE)))
        store64(m.pending, m.hidden + 4 * m.dim)
        add_rows(m.hidden, m.dim, m.pending, 1)
    if m.end_row >= 0:
        store64(m.pending, m.matrix + 4 * m.end_row * m.dim)
        add_rows(m.hidden, m.dim, m.pending, 1)
        n_rows += 1
    if n_rows > 0:
        divide_row(m.hidden, m.dim, n_rows)
    return n_rows
