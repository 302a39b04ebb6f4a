"""The words of a line, their n-grams, and the mean of all their rows: what a fastText model makes of a text.

Words of up to 32 bytes are looked up in a cache that holds the sum of a word's rows, under the word's own bytes:
nothing depends on what is in it. Longer ones, such as a line of Chinese, are summed up anew, in linear time.
Hashes and splitting are those of the fastText library (its Dictionary).
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from curation.filters.language.float_rows import add_rows
from curation.text.jit import inlined
from curation.text.memory import Int, address_of, byte_at
from curation.text.spans import Bytes, Int64s

__all__ = ["LONGEST_CACHED", "Cache", "Tables", "hash_of", "read_line"]

Floats: TypeAlias = npt.NDArray[np.float32]
Int32s: TypeAlias = npt.NDArray[np.int32]

LONGEST_CACHED = 32
HASH_START = np.uint32(2166136261)
HASH_PRIME = np.uint32(16777619)
SPREAD = np.uint32(2654435769)
WORD_NGRAM_PRIME = np.uint64(116049371)
LABEL = np.frombuffer(b"__label__", np.uint8)
END_OF_LINE = np.frombuffer(b"</s>", np.uint8)


class Tables(NamedTuple):
    """A model as the kernels read it.

    slots: int32[2^k], the dictionary as a hash table, -1 for empty. ngram_rows: int32[bucket], the input row of
    each n-gram or -1; empty if all have one. left, right: int32[2 n_labels - 1], children of each node of the tree of
    labels; leaves come first, the root last. slack: by how much a product can grow below a node. end_row:
    of `</s>`, -1 for none.
    """

    entries: Bytes
    starts: Int64s
    ends: Int64s
    slots: Int32s
    ngram_rows: Int32s
    left: Int32s
    right: Int32s
    slack: float
    kind: int
    dim: int
    n_words: int
    n_labels: int
    min_n: int
    max_n: int
    word_ngrams: int
    bucket: int
    end_row: int


class Cache(NamedTuple):
    """Sums of the rows of words, and room to work in.

    Slot s holds the word `keys[s, :lengths[s]]`, which has `features[s]` rows with the sum `vectors[s]`; -1 features
    means a label, which is no part of the text. The slot after the last is for words that are too long, the
    one after it for the n-grams of words.
    """

    keys: npt.NDArray[np.uint8]
    lengths: Int32s
    features: Int32s
    vectors: Floats
    rows: Int64s
    pending: Int64s
    runs: npt.NDArray[np.uint64]
    hidden: Floats
    logits: Floats
    nodes: Int32s
    scores: npt.NDArray[np.float64]


@inlined
def _step(h: Int, byte: Int) -> Int:
    """One byte of FNV-1a as fastText has it: bytes are signed."""
    return np.uint32((h ^ np.uint32(np.int8(byte))) * HASH_PRIME)


@inlined
def _is_blank(byte: Int) -> bool:
    return byte <= 32 and (byte == 32 or (9 <= byte <= 13) or byte == 0)


@inlined
def _continues(byte: Int) -> bool:
    """Whether a byte goes on with the character before it."""
    return byte & 0xC0 == 0x80


@inlined
def _same(p: Int, expected: Bytes, start: Int, length: Int) -> bool:
    """Whether the `length` bytes at an address are those of an array from `start` on."""
    index = 0
    while index < length and byte_at(p + index) == expected[start + index]:
        index += 1
    return index == length


@inlined
def _find(t: Tables, p: Int, length: Int, h: Int) -> Int:
    """Index of a word or label in the dictionary, or -1."""
    mask = len(t.slots) - 1
    slot = np.int64(h) & mask
    while t.slots[slot] >= 0:
        found = np.int64(t.slots[slot])
        if t.ends[found] - t.starts[found] == length and _same(p, t.entries, t.starts[found], length):
            return found
        slot = (slot + 1) & mask
    return np.int64(-1)


@inlined
def _ngram_row(t: Tables, number: Int) -> Int:
    """Input row of an n-gram, or -1."""
    return np.int64(t.ngram_rows[number]) if len(t.ngram_rows) else np.int64(t.n_words + number)


@inlined
def _ngrams_from(t: Tables, p: Int, stop: Int, h: Int, n: Int, rows: Int64s, n_rows: Int) -> Int:
    """Append the rows of the n-grams whose first n characters are hashed in h, and whose next one is at p."""
    while n < t.max_n and p <= stop:
        if p < stop:
            h = _step(h, byte_at(p))
            p += 1
            while p < stop and _continues(byte_at(p)):
                h = _step(h, byte_at(p))
                p += 1
        else:
            h = _step(h, ord(">"))
            p += 1
        n += 1
        if n >= t.min_n:
            row = _ngram_row(t, np.int64(h % np.uint32(t.bucket)))
            rows[n_rows] = row
            n_rows += row >= 0
    return n_rows


@inlined
def _sum_word(t: Tables, matrix: Int, p: Int, length: Int, h: Int, rows: Int64s, target: Int) -> Int:
    """Add the rows of a word and of its n-grams to a vector; how many, or -1 for a label."""
    found = _find(t, p, length, h)
    if found >= t.n_words or (found < 0 and length >= len(LABEL) and _same(p, LABEL, 0, len(LABEL))):
        return np.int64(-1)
    stop = p + length
    rows[0] = found
    n_rows = np.int64(found >= 0)
    total = np.int64(0)
    h = _step(HASH_START, ord("<"))
    while p < stop and _continues(byte_at(p)):
        h = _step(h, byte_at(p))
        p += 1
    n_rows = _ngrams_from(t, p, stop, h, 1, rows, n_rows)
    while p < stop and t.max_n > 0:
        if n_rows + t.max_n > len(rows):
            add_rows(target, matrix, t.dim, rows, n_rows)
            total += n_rows
            n_rows = np.int64(0)
        n_rows = _ngrams_from(t, p, stop, HASH_START, 0, rows, n_rows)
        p += 1
        while p < stop and _continues(byte_at(p)):
            p += 1
    add_rows(target, matrix, t.dim, rows, n_rows)
    return total + n_rows


@inlined
def _slot_of(t: Tables, c: Cache, matrix: Int, p: Int, length: Int, h: Int, n_pending: Int) -> tuple[Int, Int]:
    """The slot that holds a word, filled if need be, and the pending slots, which filling one sums up first."""
    n_slots = len(c.lengths) - 1
    slot = np.int64(n_slots)
    if length <= LONGEST_CACHED:
        slot = np.int64((np.uint64(np.uint32(h * SPREAD)) * np.uint64(n_slots)) >> np.uint64(32))
        if c.lengths[slot] == length and _same(p, c.keys, slot * LONGEST_CACHED, length):
            return slot, n_pending
        c.lengths[slot] = length
        for index in range(length):
            c.keys[slot * LONGEST_CACHED + index] = byte_at(p + index)
    vectors = address_of(c.vectors)
    add_rows(address_of(c.hidden), vectors, t.dim, c.pending, n_pending)
    c.vectors[slot * t.dim : (slot + 1) * t.dim] = 0
    c.features[slot] = _sum_word(t, matrix, p, length, h, c.rows, vectors + 4 * slot * t.dim)
    return slot, np.int64(0)


@inlined
def _add_word_ngrams(t: Tables, c: Cache, matrix: Int, n_before: Int, h: Int) -> Int:
    """Add the rows of all n-grams of words that end with this one, the word after `n_before` others; how many.

    Their sum lies in the last of the vectors. runs[i % (word_ngrams - 1)]: hash of what began with word i.
    """
    n_runs = t.word_ngrams - 1
    value = np.uint64(np.int64(np.int32(h)))
    target = address_of(c.vectors) + 4 * len(c.lengths) * t.dim
    n_rows = 0
    for back in range(1, min(n_before, n_runs) + 1):
        index = (n_before - back) % n_runs
        c.runs[index] = c.runs[index] * WORD_NGRAM_PRIME + value
        row = _ngram_row(t, np.int64(c.runs[index] % np.uint64(t.bucket)))
        if row >= 0:
            c.rows[0] = row
            add_rows(target, matrix, t.dim, c.rows, 1)
            n_rows += 1
    c.runs[n_before % n_runs] = value
    return n_rows


@inlined
def hash_of(data: Bytes, start: Int, end: Int) -> Int:
    """fastText's hash of bytes: uint32."""
    h = HASH_START
    for index in range(start, end):
        h = _step(h, data[index])
    return h


@inlined
def _next_word(p: Int, end: Int) -> tuple[Int, Int, Int]:
    """Where the next word begins and ends, and its hash; an empty one at the end of the line."""
    while p < end and _is_blank(byte_at(p)):
        p += 1
    start = p
    h = HASH_START
    while p < end and not _is_blank(byte_at(p)):
        h = _step(h, byte_at(p))
        p += 1
    return start, p, h


@inlined
def read_line(t: Tables, c: Cache, matrix: Int, p: Int, end: Int) -> Int:
    """Put the mean of the rows of the line between two addresses into `hidden`; how many rows there were.

    As in the library, a line ends with the word `</s>`, and nothing after one in the text itself is read.
    """
    c.hidden[:] = 0
    grams = len(c.lengths) * t.dim
    c.vectors[grams:] = 0
    hidden, vectors = address_of(c.hidden), address_of(c.vectors)
    n_rows = n_pending = n_words = np.int64(0)
    while True:
        start, p, h = _next_word(p, end)
        length = p - start
        if length == 0 or (length == len(END_OF_LINE) and _same(start, END_OF_LINE, 0, length)):
            break
        slot, n_pending = _slot_of(t, c, matrix, start, length, h, n_pending)
        if c.features[slot] < 0:
            continue
        n_rows += c.features[slot]
        c.pending[n_pending] = slot
        n_pending += 1
        if n_pending == len(c.pending):
            add_rows(hidden, vectors, t.dim, c.pending, n_pending)
            n_pending = np.int64(0)
        if t.word_ngrams > 1:
            n_rows += _add_word_ngrams(t, c, matrix, n_words, h)
        n_words += 1
    add_rows(hidden, vectors, t.dim, c.pending, n_pending)
    if t.word_ngrams > 1:
        n_rows += _add_word_ngrams(t, c, matrix, n_words, hash_of(END_OF_LINE, 0, len(END_OF_LINE)))
        c.pending[0] = len(c.lengths)
        add_rows(hidden, vectors, t.dim, c.pending, 1)
    if t.end_row >= 0:
        c.pending[0] = t.end_row
        add_rows(hidden, matrix, t.dim, c.pending, 1)
        n_rows += 1
    if n_rows > 0:
        c.hidden[:] /= np.float32(n_rows)
    return n_rows
