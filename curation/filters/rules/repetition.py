"""Repeated runs of words: how much of a text its most frequent 2-, 3- and 4-gram covers, and its repeated 5- to 10-grams.

An n-gram is n words in a row, under simple case folding, whatever stands between them, line ends included.

    top_Ngram        of the n-grams that occur most often (at least twice), the one whose occurrences cover most:
                     characters of the words in them / characters of all words
    duplicate_Ngram  characters of the words that lie in an occurrence of an n-gram which is not its first
                     / characters of all words

Each character counts once, however many occurrences it lies in, so that a share is never above 1.
Source: Gopher (Rae et al. 2021, table A1), which says just that. Peers differ: datatrove divides by all characters,
skips n words after a hit, so that what it finds depends on where the first one began, and lets the
top n-gram's occurrences overlap (a text of one word scores 2); dolma counts first occurrences too.

Where nothing repeats, nothing is looked up: an n-gram can only repeat where both its (n-1)-grams do, and
2-grams are sorted out with one byte each before any is looked up exactly. Costs about 2 ns a byte; linear.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curation.filters.rules.parts import Hashes, Int32s, Parts
from curation.records import ScoreColumn
from curation.text.jit import inlined, kernel
from curation.text.memory import Int, address_of, byte_at, store_byte
from curation.text.spans import Int64s

__all__ = ["COLUMNS", "measure"]

TOP = (2, 3, 4)
DUPLICATE = (5, 6, 7, 8, 9, 10)
LONGEST = DUPLICATE[-1]

COLUMNS = (
    *(
        ScoreColumn(f"top_{n}gram", pa.float32(), "share", f"characters in the most frequent run of {n} words")
        for n in TOP
    ),
    *(
        ScoreColumn(
            f"duplicate_{n}gram", pa.float32(), "share", f"characters in runs of {n} words that occurred before"
        )
        for n in DUPLICATE
    ),
)

K = np.uint64(0x9E3779B97F4A7C15)
EMPTY = np.uint64(0)


def measure(parts: Parts) -> dict[str, npt.NDArray[np.float32]]:
    """Shares of each document, float32[n]; 0 where it has no words."""
    n = len(parts.offsets) - 1
    shares = np.zeros((n, len(COLUMNS)), np.float32)
    _repetition(parts.hashes, parts.word_chars, parts.words.offsets, shares)
    return {column.name: shares[:, i] for i, column in enumerate(COLUMNS)}


@inlined
def _pair(hashes: Hashes, i: Int) -> Int:
    """Hash of the 2-gram at word `i`."""
    return (hashes[np.uint64(i)] * K) ^ hashes[np.uint64(i + 1)]


@inlined
def _power(n: Int) -> Int:
    """Exponent of the first power of two that is not below `n`."""
    bits = 4
    while 1 << bits < n:
        bits += 1
    return bits


@inlined
def _sift_pairs(hashes: Hashes, m: Int, seen: npt.NDArray[np.uint8], places: Int32s, keys: Hashes) -> Int:
    """Places and hashes of the 2-grams that may occur more than once, in order; returns how many.

    `seen`: uint8, room for a byte for each of 4 to 8 times `m`.
    """
    bits = _power(4 * m)
    seen[: 1 << bits] = 0
    at, shift = address_of(seen), np.uint64(64 - bits)
    for i in range(m - 1):
        p = at + np.int64(_pair(hashes, i) * K >> shift)
        store_byte(p, 1 + (byte_at(p) != 0))
    n = np.uint64(0)
    for i in range(m - 1):
        key = _pair(hashes, i)
        places[n] = i
        keys[n] = key
        n += np.uint64(byte_at(at + np.int64(key * K >> shift)) == 2)
    return np.int64(n)


@inlined
def _number(keys: Hashes, n: Int, table: Hashes, ids: Int32s, classes: Int32s, sizes: Int32s) -> Int:
    """Give equal keys one number: `classes[i]` of `keys[i]`, `sizes` of each; returns how many there are.

    `table` and `ids` have room for the first power of two that is not below 2 `n`.
    """
    bits = _power(2 * n)
    mask, shift = (np.uint64(1) << np.uint64(bits)) - np.uint64(1), np.uint64(64 - bits)
    ids[: 1 << bits] = -1
    n_classes = 0
    for i in range(n):
        key = keys[i]
        slot = key * K >> shift
        while ids[slot] >= 0 and table[slot] != key:
            slot = slot + np.uint64(1) & mask
        if ids[slot] < 0:
            table[slot], ids[slot] = key, n_classes
            sizes[n_classes] = 0
            n_classes += 1
        number = ids[slot]
        classes[i] = number
        sizes[number] += 1
    return n_classes


@inlined
def _keep_repeated(places: Int32s, classes: Int32s, n: Int, sizes: Int32s) -> Int:
    """Drop what occurs once; returns how many are left."""
    left = np.uint64(0)
    for i in range(n):
        places[left], classes[left] = places[i], classes[i]
        left += np.uint64(sizes[classes[i]] > 1)
    return np.int64(left)


@inlined
def _top_chars(
    places: Int32s, classes: Int32s, n: Int, length: Int, chars: Int32s, sizes: Int32s, n_classes: Int, work: Int32s
) -> Int:
    """Characters that the most frequent n-gram covers; of several the one that covers most.

    `work`: int32, room for twice the classes.
    """
    most = 0
    for number in range(n_classes):
        most = max(most, sizes[number])
        work[2 * number], work[2 * number + 1] = 0, -1
    best = 0
    for i in range(n):
        number = classes[i]
        if sizes[number] == most:
            word = max(places[i], work[2 * number + 1])
            while word < places[i] + length:
                work[2 * number] += chars[word]
                word += 1
            work[2 * number + 1] = word
            best = max(best, work[2 * number])
    return best


@inlined
def _duplicate_chars(
    places: Int32s, classes: Int32s, n: Int, length: Int, chars: Int32s, n_classes: Int, work: Int32s
) -> Int:
    """Characters in n-grams that occurred before. `work`: int32, room for the classes."""
    work[:n_classes] = 0
    covered, total = 0, 0
    for i in range(n):
        if work[classes[i]] == 0:
            work[classes[i]] = 1
            continue
        word = max(places[i], covered)
        while word < places[i] + length:
            total += chars[word]
            word += 1
        covered = word
    return total


@inlined
def _longer(places: Int32s, classes: Int32s, n: Int, keys: Hashes) -> Int:
    """From n-grams that repeat to the (n+1)-grams that may: those whose next place repeats too. Returns how many."""
    left = np.uint64(0)
    for i in range(n - 1):
        keys[left] = np.uint64(classes[i]) << np.uint64(32) | np.uint64(classes[i + 1])
        places[left] = places[i]
        left += np.uint64(places[i + 1] == places[i] + 1)
    return np.int64(left)


@kernel
def _repetition(hashes: Hashes, chars: Int32s, offsets: Int64s, shares: npt.NDArray[np.float32]) -> None:
    longest = 1
    for row in range(len(offsets) - 1):
        longest = max(longest, offsets[row + 1] - offsets[row])
    seen = np.empty(1 << _power(4 * longest), np.uint8)
    places, keys = np.empty(longest, np.int32), np.empty(longest, np.uint64)
    classes, sizes, work = np.empty(longest, np.int32), np.empty(longest, np.int32), np.empty(2 * longest, np.int32)
    table, ids = np.empty(16, np.uint64), np.empty(16, np.int32)
    for row in range(len(offsets) - 1):
        first, m = offsets[row], offsets[row + 1] - offsets[row]
        mine, sizes_of_words = hashes[first : first + m], chars[first : first + m]
        total = 0
        for i in range(m):
            total += sizes_of_words[i]
        n = _sift_pairs(mine, m, seen, places, keys) if m > 1 else 0
        for length in range(2, LONGEST + 1):
            if n < 2:
                break
            if 1 << _power(2 * n) > len(table):
                table, ids = np.empty(1 << _power(2 * n), np.uint64), np.empty(1 << _power(2 * n), np.int32)
            n_classes = _number(keys, n, table, ids, classes, sizes)
            n = _keep_repeated(places, classes, n, sizes)
            if n == 0:
                break
            if length < DUPLICATE[0]:
                found = _top_chars(places, classes, n, length, sizes_of_words, sizes, n_classes, work)
            else:
                found = _duplicate_chars(places, classes, n, length, sizes_of_words, n_classes, work)
            shares[row, length - 2] = found / total
            n = _longer(places, classes, n, keys)
