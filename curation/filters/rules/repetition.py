"""Repeated words and runs of words: how much of a text they cover.

An n-gram is n words in a row, under simple case folding, whatever stands between them, line ends included.

    top_Ngram        of the n-grams that occur most often (at least twice), the one whose occurrences cover most:
                     characters of the words in them / characters of all words
    top_word         the same for single words
    duplicate_Ngram  characters of the words that lie in an occurrence of an n-gram which is not its first
                     / characters of all words

Each character counts once, however many occurrences it lies in, so that a share is never above 1. In scripts without
blanks an n-gram is n letters, so that good text repeats more of its 5-grams: limits are to be set by language.

Sources: Gopher (Rae et al. 2021, table A1), which says just that, for all but top_word, which is ours: on half of the
labelled crawl text every page of keyword stuffing has .11 or more, 99 of 100 good English and Chinese documents have .10
or less. Peers differ: datatrove divides by all characters, skips n words after a hit, so that what it finds depends on
where the first one began, and lets the top n-gram's occurrences overlap (a text of one word scores 2); dolma counts first
occurrences too.

An n-gram can only repeat where both its (n-1)-grams do; and before any is looked up exactly, n-grams are tallied by
some bits of their hash, one byte each, which sorts out nearly all that occur once, and all that are not the most
frequent. Costs about 3 ns a byte: 0.5 of Hindi, 6 of Chinese; at worst, where all repeats, 50. Linear. Needs up to
60 bytes of memory a word of the longest document.
"""

from __future__ import annotations

from typing import Any

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
    ScoreColumn("top_word", pa.float32(), "share", "characters in the most frequent word"),
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


def measure(parts: Parts) -> dict[str, npt.NDArray[np.float32]]:
    """Shares of each document, float32[n]; 0 where it has no words."""
    n = len(parts.offsets) - 1
    shares = np.zeros((n, len(COLUMNS)), np.float32)
    _repetition(parts.hashes, parts.word_chars, parts.words.offsets, parts.word_sums, shares)
    return {column.name: shares[:, i] for i, column in enumerate(COLUMNS)}


@inlined
def _power(n: Int) -> Int:
    """Exponent of the first power of two that is not below `n`."""
    bits = 4
    while 1 << bits < n:
        bits += 1
    return bits


@inlined
def _tally(keys: Hashes, n: Int, tallies: npt.NDArray[np.uint8]) -> tuple[Int, Int]:
    """Count keys by their highest bits, up to 255: no key occurs more often than its tally says. Exponent, largest tally.

    `tallies`: uint8, room for the first power of two that is not below 2 `n`.
    """
    bits = _power(2 * n)
    tallies[: 1 << bits] = 0
    at, shift, largest = address_of(tallies), np.uint64(64 - bits), 0
    for i in range(n):
        p = at + np.int64(keys[i] * K >> shift)
        tally = byte_at(p)
        tally += tally < 255
        store_byte(p, tally)
        largest = max(largest, tally)
    return bits, largest


@inlined
def _select(
    places: Int32s,
    keys: Hashes,
    n: Int,
    tallied: tuple[Any, Int],
    least: Int,
    to: tuple[Int32s, Hashes],
    rare: Int,
    rest: tuple[Int32s, Hashes],
) -> tuple[Int, Int]:
    """Copy places and keys of at least one tally to one place, and of another to another; returns how many each."""
    at, shift = address_of(tallied[0]), np.uint64(64 - tallied[1])
    some, more = np.uint64(0), np.uint64(0)
    for i in range(n):
        place, key = places[i], keys[i]
        tally = byte_at(at + np.int64(key * K >> shift))
        to[0][some], to[1][some] = place, key
        some += np.uint64(tally >= least)
        rest[0][more], rest[1][more] = place, key
        more += np.uint64(tally >= rare)
    return np.int64(some), np.int64(more)


@inlined
def _neighbours(places: Int32s, keys: Hashes, n: Int, length: Int, hashes: Hashes) -> Int:
    """From n-grams that may repeat to the (n+1)-grams that may: where the next place may too. Returns how many."""
    left = np.uint64(0)
    for i in range(n - 1):
        place = places[i]
        keys[left] = keys[i] * K ^ hashes[np.uint64(place + length)]
        places[left] = place
        left += np.uint64(places[i + 1] == place + 1)
    return np.int64(left)


@inlined
def _number(keys: Hashes, n: Int, ids: Int32s, class_keys: Hashes, classes: Int32s, sizes: Int32s) -> Int:
    """Give equal keys one number: `classes[i]` of `keys[i]`, negative (~number) where it is the first.

    `sizes` and `class_keys` of each class are filled; returns how many there are. `ids` is an open hash table with room for
    the first power of two that is not below 2 `n`; keys are kept by class, since classes are few and so stay in cache.
    """
    bits = _power(2 * n)
    mask, shift = (np.uint64(1) << np.uint64(bits)) - np.uint64(1), np.uint64(64 - bits)
    ids[: 1 << bits] = -1
    n_classes = 0
    for i in range(n):
        key = keys[i]
        slot = key * K >> shift
        number = ids[slot]
        while number >= 0 and class_keys[np.uint64(number)] != key:
            slot = slot + np.uint64(1) & mask
            number = ids[slot]
        if number < 0:
            ids[slot] = n_classes
            class_keys[n_classes], sizes[n_classes] = key, 1
            classes[i] = ~n_classes
            n_classes += 1
        else:
            sizes[np.uint64(number)] += 1
            classes[i] = number
    return n_classes


@inlined
def _cover(place: Int, covered: Int, length: Int, chars: Int32s) -> tuple[Int, Int]:
    """Characters of the words of an n-gram from word `covered` on, and the word after them."""
    total: Int = 0
    word: Int = np.uint64(max(place, covered))
    end = np.uint64(place + length)
    while word < end:
        total += np.int64(chars[word])
        word += np.uint64(1)
    return total, np.int64(word)


@inlined
def _sift(
    places: Int32s, keys: Hashes, n: Int, tallied: tuple[Any, Int], most: Int, room: Any
) -> tuple[Int, Int, Int, Int]:
    """Keep the n-grams that may repeat, and number those that may be the most frequent, which have a tally of `most`.

    Where none of these occurs as often as its tally says (several share it), all that may occur as often as the most
    frequent of them are numbered. Returns how many are kept, are numbered, classes there are, and the highest count.
    """
    some_places, some_keys, ids, class_keys, classes, sizes, _ = room
    some, left = _select(places, keys, n, tallied, most, (some_places, some_keys), 2, (places, keys))
    n_classes = _number(some_keys, some, ids, class_keys, classes, sizes)
    highest: Int = 1
    for one in range(n_classes):
        highest = max(highest, np.int64(sizes[one]))
    if highest < most:
        least = max(highest, 2)
        some, _ = _select(places, keys, left, tallied, least, (some_places, some_keys), 2, (places, keys))
        n_classes = _number(some_keys, some, ids, class_keys, classes, sizes)
        for one in range(n_classes):
            highest = max(highest, np.int64(sizes[one]))
    return left, some, n_classes, highest


@inlined
def _top(some: Int, n_classes: Int, highest: Int, length: Int, chars: Int32s, room: Any) -> Int:
    """Characters that the most frequent n-gram covers; of several the one that covers most. 0 where none repeats."""
    places, _, _, _, classes, sizes, work = room
    if highest < 2:
        return 0
    for one in range(n_classes):
        work[2 * one], work[2 * one + 1] = 0, -1
    best: Int = 0
    for i in range(some):
        number: Int = np.int64(classes[i])
        number = np.uint64(max(number, ~number))
        if sizes[number] == highest:
            total, word = _cover(places[i], work[number * np.uint64(2) + np.uint64(1)], length, chars)
            work[number * np.uint64(2)] += total
            work[number * np.uint64(2) + np.uint64(1)] = word
            best = max(best, np.int64(work[number * np.uint64(2)]))
    return best


@inlined
def _duplicate(places: Int32s, classes: Int32s, n: Int, length: Int, chars: Int32s) -> Int:
    """Characters in n-grams that occurred before."""
    covered, total = 0, 0
    for i in range(n):
        if classes[i] >= 0:
            more, covered = _cover(places[i], covered, length, chars)
            total += more
    return total


@inlined
def _longer(places: Int32s, classes: Int32s, n: Int, sizes: Int32s, keys: Hashes) -> Int:
    """From n-grams to the (n+1)-grams that may repeat: where it and its neighbour do. Returns how many.

    Their places and keys are written over the old ones; the key is the pair of classes, so it is exact.
    """
    left, before = np.uint64(0), np.uint64(0)
    before_place: Int = -2
    for i in range(n):
        number: Int = np.int64(classes[i])
        place = np.int64(places[i])
        number = np.uint64(max(number, ~number))
        repeats = sizes[number] > 1
        keys[left] = before << np.uint64(32) | number
        places[left] = before_place
        left += np.uint64(repeats and before_place == place - 1)
        before = number
        before_place = place if repeats else -2
    return np.int64(left)


@kernel
def _repetition(
    hashes: Hashes, chars: Int32s, offsets: Int64s, totals: Int64s, shares: npt.NDArray[np.float32]
) -> None:
    longest = 1
    for row in range(len(offsets) - 1):
        longest = max(longest, offsets[row + 1] - offsets[row])
    # Room that is not used is never touched, so costs no memory.
    tallies, ids = np.empty(1 << _power(2 * longest), np.uint8), np.empty(1 << _power(2 * longest), np.int32)
    places, keys, class_keys = np.empty(longest, np.int32), np.empty(longest, np.uint64), np.empty(longest, np.uint64)
    some_places, some_keys = np.empty(longest, np.int32), np.empty(longest, np.uint64)
    classes, sizes, work = np.empty(longest, np.int32), np.empty(longest, np.int32), np.empty(2 * longest, np.int32)
    room = some_places, some_keys, ids, class_keys, classes, sizes, work
    for row in range(len(offsets) - 1):
        first, m = offsets[row], offsets[row + 1] - offsets[row]
        mine, sizes_of_words = hashes[first : first + m], chars[first : first + m]
        n = m
        for i in range(m):
            places[i], keys[i] = i, mine[i]
        for length in range(1, DUPLICATE[0] + 1):
            bits, largest = _tally(keys, n, tallies)
            if largest < 2:
                n = 0
                break
            if length == DUPLICATE[0]:
                n, _ = _select(places, keys, n, (tallies, bits), 2, (places, keys), 2, (some_places, some_keys))
                break
            n, some, n_classes, highest = _sift(places, keys, n, (tallies, bits), largest, room)
            found = _top(some, n_classes, highest, length, sizes_of_words, room)
            shares[row, length - 1] = found / totals[row, 0]
            n = _neighbours(places, keys, n, length, mine)
        for length in range(DUPLICATE[0], LONGEST + 1):
            if n < 2:
                break
            _number(keys, n, ids, class_keys, classes, sizes)
            shares[row, length - 1] = _duplicate(places, classes, n, length, sizes_of_words) / totals[row, 0]
            n = _longer(places, classes, n, sizes, keys)
