"""Byte-pair merges over characters, compiled: what SentencePiece models need, which have no pre-tokeniser.

Text is cut wherever no token joins the two letters on both sides: a merge only ever makes a token, so none crosses
such a border, and the pieces can be merged one by one with the same result. A piece is a word with its blank, or most
often a single Chinese character. A piece of one letter is one token; longer ones are looked up by all their bytes
among those seen before, and merged if they are not there: by search for the best pair if short, with a heap if long.

Costs: 40 to 90 MB/s of new text on one core, 65 to 120 MB/s once its words were seen; at most n log n for n letters
without a border. The pieces seen before take 16 MB, for ever. It is compiled once, in 5 to 10 s (`kernels`).

The result is that of merging the pair of lowest rank first, the leftmost of equal ones, until none is left
(Sennrich et al., arXiv 1508.07909), as `tokenizers` and SentencePiece do it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tokenization.engines.kernels import Int, at, inlined, kernel, load64, store64

__all__ = ["NO_PAIR", "Tables", "encode", "fill"]

NO_PAIR = np.uint64(2**64 - 1)
"""Key of an empty slot among the pairs."""
NEVER = 2**62
"""Above every rank: of a pair that does not merge."""
KEY_BYTES, MOST_IDS, ENTRY = 32, 7, 8
"""Pieces that are remembered: at most so many bytes and ids; an entry is a cache line of 8 words."""
SHORT = 64
"""Letters up to which the best pair is searched for, instead of being kept in a heap."""
HANDFUL = 128
"""Pieces that are cut before they are looked up: their places stay in the first-level cache."""
PLACE_BITS = 40
"""Of a heap's entry, for the place; the other 23 hold the rank."""
GOLDEN = np.uint64(0x9E3779B97F4A7C15)


class Tables(NamedTuple):
    """A vocabulary, as the kernel reads it.

    letters: uint16[0x110000]     number of each character that is a token, from 1; 0: written as bytes
    letter_ids: uint32[n + 1]     id of each letter
    byte_ids: uint32[256]         id of each byte
    joins: uint64[2**k]           bit set (`_join_bit`) of pairs of letters that stand side by side in some token
    pairs: uint64[2**m]           hash table (`_pair_slot`) of the merges, two words each: left id << 32 | right id, or
                                  NO_PAIR, and rank << 32 | id that they become
    mergeable: uint64[2**j]       bit set (`_pair_bit`) of the pairs that merge
    seen: uint64[8 * entries]     pieces with their ids: 32 bytes, 7 ids, and in the last half word length << 8 | ids
    """

    letters: npt.NDArray[np.uint16]
    letter_ids: npt.NDArray[np.uint32]
    byte_ids: npt.NDArray[np.uint32]
    joins: npt.NDArray[np.uint64]
    pairs: npt.NDArray[np.uint64]
    mergeable: npt.NDArray[np.uint64]
    seen: npt.NDArray[np.uint64]


@inlined
def _join_bit(left: Int, right: Int, n_words: Int) -> Int:
    """Bit of a pair of letters among 64 * n_words. Two pairs may share it: that cuts less than could be cut."""
    mixed = (np.uint64(left) * np.uint64(0xD6E8FEB86659FD93) + np.uint64(right)) * GOLDEN
    return np.int64((mixed >> np.uint64(32)) & np.uint64(n_words * 64 - 1))


@inlined
def _pair_slot(key: Int, n_words: Int) -> Int:
    """Where to look for a pair first; then every two words after it."""
    return np.int64(((key ^ (key >> np.uint64(29))) * GOLDEN >> np.uint64(32)) & np.uint64(n_words - 2))


@inlined
def _pair_bit(key: Int, n_words: Int) -> Int:
    """Bit of a pair among 64 * n_words: not set for most pairs that do not merge, which need not be looked for then."""
    return np.int64(((key ^ (key >> np.uint64(31))) * GOLDEN >> np.uint64(40)) & np.uint64(64 * n_words - 1))


@inlined
def _value(left: Int, right: Int, tables: Tables) -> Int:
    """Rank and result of a pair, or NEVER."""
    key = np.uint64(left) << np.uint64(32) | np.uint64(right)
    pairs, bit = tables.pairs, _pair_bit(key, len(tables.mergeable))
    if not (at(tables.mergeable, bit >> 6) >> np.uint64(bit & 63)) & np.uint64(1):
        return NEVER
    slot = _pair_slot(key, len(pairs))
    while at(pairs, slot) != key:
        if at(pairs, slot) == NO_PAIR:
            return NEVER
        slot = (slot + 2) & (len(pairs) - 1)
    return np.int64(at(pairs, slot + 1))


@inlined
def _character(data: Any, p: Int) -> Int:
    """The character at p, its code point << 3 | its bytes; the text is valid UTF-8."""
    first = np.int64(at(data, p))
    if first < 0x80:
        return first << 3 | 1
    second = np.int64(at(data, p + 1)) & 0x3F
    if first < 0xE0:
        return ((first & 0x1F) << 6 | second) << 3 | 2
    third = np.int64(at(data, p + 2)) & 0x3F
    if first < 0xF0:
        return ((first & 0x0F) << 12 | second << 6 | third) << 3 | 3
    return ((first & 0x07) << 18 | second << 12 | third << 6 | (np.int64(at(data, p + 3)) & 0x3F)) << 3 | 4


@inlined
def _merge_short(ids: Any, values: Any, n: Int, tables: Tables) -> Int:
    """Merge n <= SHORT ids in place; returns how many are left."""
    for i in range(n - 1):
        values[i] = _value(ids[i], ids[i + 1], tables)
    while n > 1:
        best, at = values[0], 0
        for i in range(1, n - 1):
            if values[i] < best:
                best, at = values[i], i
        if best == NEVER:
            break
        n -= 1
        ids[at] = best & 0xFFFFFFFF
        for i in range(at + 1, n):
            ids[i] = ids[i + 1]
            values[i - 1] = values[i]
        if at > 0:
            values[at - 1] = _value(ids[at - 1], ids[at], tables)
        if at < n - 1:
            values[at] = _value(ids[at], ids[at + 1], tables)
    return n


@inlined
def _sift_up(heap: Any, place: Int) -> None:
    entry = heap[place]
    while place > 0 and heap[(place - 1) >> 1] > entry:
        heap[place] = heap[(place - 1) >> 1]
        place = (place - 1) >> 1
    heap[place] = entry


@inlined
def _sift_down(heap: Any, place: Int, size: Int) -> None:
    entry = heap[place]
    child = 2 * place + 1
    while child < size:
        if child + 1 < size and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= entry:
            break
        heap[place] = heap[child]
        place, child = child, 2 * child + 1
    heap[place] = entry


@inlined
def _push(heap: Any, size: Int, ids: Any, place: Int, right: Int, tables: Tables) -> Int:
    """Put the pair that begins at a place into the heap if it merges; returns the heap's size."""
    value = _value(ids[place], ids[right], tables)
    if value == NEVER:
        return size
    heap[size] = (value >> 32) << PLACE_BITS | place
    _sift_up(heap, size)
    return size + 1


@kernel
def _merge_long(ids: Any, n: Int, tables: Tables) -> Int:
    """Merge n ids in place; returns how many are left. 36 bytes of memory an id while it runs."""
    after, before = np.arange(1, n + 1), np.arange(-1, n - 1)
    heap = np.empty(3 * n, np.int64)
    size = 0
    for i in range(n - 1):
        value = _value(ids[i], ids[i + 1], tables)
        if value != NEVER:
            heap[size] = (value >> 32) << PLACE_BITS | i
            size += 1
    for i in range(size // 2 - 1, -1, -1):
        _sift_down(heap, i, size)
    while size > 0:
        top = heap[0]
        size -= 1
        heap[0] = heap[size]
        _sift_down(heap, 0, size)
        at = top & ((1 << PLACE_BITS) - 1)
        right = after[at]
        if right >= n or ids[at] < 0:
            continue
        value = _value(ids[at], ids[right], tables)
        if value >> 32 != top >> PLACE_BITS or value == NEVER:
            continue  # one of the two has become part of another token
        ids[at], ids[right] = value & 0xFFFFFFFF, -1
        after[at] = after[right]
        if after[at] < n:
            before[after[at]] = at
            size = _push(heap, size, ids, at, after[at], tables)
        if before[at] >= 0:
            size = _push(heap, size, ids, before[at], at, tables)
    kept = 0
    for i in range(n):
        if ids[i] >= 0:
            ids[kept] = ids[i]
            kept += 1
    return kept


@inlined
def _word(data: Any, p: Int, n: Int) -> Int:
    """The first n bytes from p on, 1 to 8, the others zero."""
    return load64(data, p) & (~np.uint64(0) >> np.uint64(64 - 8 * min(n, 8)))


@inlined
def _merged(data: Any, p: Int, end: Int, n: Int, tables: Tables, out: Any, o: Int, ids: Any, values: Any) -> Int:
    """Write the ids of the piece of n letters in data[p:end] to out[o:]; returns how many."""
    if n > SHORT:
        ids = np.empty(n, np.int64)
    for i in range(n):
        character = _character(data, p)
        p += character & 7
        ids[i] = tables.letter_ids[tables.letters[character >> 3]]
    n = _merge_long(ids, n, tables) if n > SHORT else _merge_short(ids, values, n, tables)
    for i in range(n):
        out[o + i] = ids[i]
    return n


@inlined
def _cut(data: Any, p: Int, end: Int, tables: Tables, split_at: Int, pieces: Any) -> Int:
    """Cut text from p on into pieces, at most HANDFUL; returns how many.

    pieces: int64[3 * HANDFUL + 3], is given where each begins, its letters, and the number of its first letter; a
    character that is written as bytes has no letters. After the last one stands where it ends.
    """
    k, n = 0, 0
    before: Int = 0
    pieces[0] = p
    while p < end and k < HANDFUL:
        character = _character(data, p)
        letter = np.int64(at(tables.letters, character >> 3))
        bit = _join_bit(before, letter, len(tables.joins))
        joined = (at(tables.joins, bit >> 6) >> np.uint64(bit & 63)) & np.uint64(1)
        if n > 0 and (letter == 0 or letter == split_at or not joined):
            pieces[3 * k + 1] = n
            k, n = k + 1, 0
            pieces[3 * k] = p
            continue
        p += character & 7
        if letter == 0:
            pieces[3 * k + 1] = 0
            k += 1
            pieces[3 * k] = p
        else:
            if n == 0:
                pieces[3 * k + 2] = letter
            n += 1
            before = letter
    if n > 0:
        pieces[3 * k + 1] = n
        k += 1
        pieces[3 * k] = p
    return k


@inlined
def _hash(a: Int, b: Int, c: Int, d: Int, length: Int) -> Int:
    """Of the bytes of a piece, in four words, and their number."""
    mixed = (a ^ (b * GOLDEN)) * np.uint64(0xD6E8FEB86659FD93) + (c ^ (d * GOLDEN)) * np.uint64(0xA0761D6478BD642F)
    return (mixed ^ (mixed >> np.uint64(32)) ^ np.uint64(length)) * GOLDEN


@inlined
def _holds(seen: Any, e: Int, a: Int, b: Int, c: Int, d: Int, length: Int) -> Int:
    """Whether an entry is that of these bytes, by comparing all of them."""
    differ = (at(seen, e) ^ a) | (at(seen, e + 1) ^ b) | (at(seen, e + 2) ^ c) | (at(seen, e + 3) ^ d)
    return (differ | ((at(seen, e + 7) >> np.uint64(40)) ^ np.uint64(length))) == 0


@inlined
def _remember(seen: Any, e: Int, a: Int, b: Int, c: Int, d: Int, length: Int, out: Any, o: Int, count: Int) -> None:
    """Put a piece into an entry; what was there moves to the neighbour, and drives out what was there."""
    for i in range(ENTRY):
        seen[(e ^ ENTRY) + i] = seen[e + i]
    seen[e], seen[e + 1], seen[e + 2], seen[e + 3] = a, b, c, d
    seen[e + 4], seen[e + 5], seen[e + 6] = load64(out, o), load64(out, o + 2), load64(out, o + 4)
    seen[e + 7] = np.uint64(out[o + 6]) | np.uint64(length << 40 | count << 32)


@inlined
def _write(data: Any, pieces: Any, k: Int, tables: Tables, out: Any, o: Int, ids: Any, values: Any) -> Int:
    """Write the ids of the first k pieces to out[o:]; returns where they end."""
    seen = tables.seen
    for i in range(k):
        p, end, n = at(pieces, 3 * i), at(pieces, 3 * i + 3), at(pieces, 3 * i + 1)
        if n == 1:
            out[o] = at(tables.letter_ids, at(pieces, 3 * i + 2))
            o += 1
            continue
        if n == 0:
            for place in range(p, end):
                out[o] = tables.byte_ids[data[place]]
                o += 1
            continue
        length = end - p
        if length > KEY_BYTES:
            o += _merged(data, p, end, n, tables, out, o, ids, values)
            continue
        a, b, c, d = _word(data, p, length), np.uint64(0), np.uint64(0), np.uint64(0)
        if length > 8:
            b = _word(data, p + 8, length - 8)
            if length > 16:
                c = _word(data, p + 16, length - 16)
                if length > 24:
                    d = _word(data, p + 24, length - 24)
        first = np.int64((_hash(a, b, c, d, length) >> np.uint64(37)) & np.uint64(len(seen) - ENTRY))
        e = first
        if not _holds(seen, e, a, b, c, d, length):
            e ^= ENTRY
            if not _holds(seen, e, a, b, c, d, length):
                count = _merged(data, p, end, n, tables, out, o, ids, values)
                if count <= MOST_IDS:
                    _remember(seen, first, a, b, c, d, length, out, o, count)
                o += count
                continue
        store64(out, o, at(seen, e + 4))
        store64(out, o + 2, at(seen, e + 5))
        store64(out, o + 4, at(seen, e + 6))
        store64(out, o + 6, at(seen, e + 7))
        o += np.int64((at(seen, e + 7) >> np.uint64(32)) & np.uint64(0xFF))
    return o


@kernel
def fill(tables: Tables, neighbours: Any, pairs: Any, values: Any) -> None:
    """Fill joins and pairs, which are empty.

    Args:
        neighbours: int64[n, 2], letters that stand side by side in a token.
        pairs: uint64[n], left id << 32 | right id, each once.
        values: int64[n], rank << 32 | id that it becomes.
    """
    for i in range(len(neighbours)):
        bit = _join_bit(neighbours[i, 0], neighbours[i, 1], len(tables.joins))
        tables.joins[bit >> 6] |= np.uint64(1) << np.uint64(bit & 63)
    for i in range(len(pairs)):
        bit = _pair_bit(pairs[i], len(tables.mergeable))
        tables.mergeable[bit >> 6] |= np.uint64(1) << np.uint64(bit & 63)
        slot = _pair_slot(pairs[i], len(tables.pairs))
        while tables.pairs[slot] != NO_PAIR:
            slot = (slot + 2) & (len(tables.pairs) - 1)
        tables.pairs[slot], tables.pairs[slot + 1] = pairs[i], np.uint64(values[i])


@kernel
def encode(data: Any, borders: Any, tables: Tables, split_at: Int, out: Any, lengths: Any) -> Int:
    """Ids of some texts; returns how many in all.

    Args:
        data: uint8[n_bytes + SLACK], the texts' UTF-8 one after the other.
        borders: int64[n_texts + 1], where each text begins and ends.
        split_at: letter before which text is always cut, 0 for none.
        out: uint32[n_bytes + SLACK], is given the ids.
        lengths: int64[n_texts], is given the ids of each text.
    """
    ids, values = np.empty(SHORT, np.int64), np.empty(SHORT, np.int64)
    pieces = np.empty(3 * HANDFUL + 3, np.int64)
    o = 0
    for text in range(len(lengths)):
        first = o
        p, end = borders[text], borders[text + 1]
        while p < end:
            k = _cut(data, p, end, tables, split_at, pieces)
            o = _write(data, pieces, k, tables, out, o, ids, values)
            p = pieces[3 * k]
        lengths[text] = o - first
    return o
