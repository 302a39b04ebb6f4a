"""An index of kept documents that finds, exactly, those whose Jaccard with another set may exceed a threshold.

The prefix filter: under any one total order of values, two sets that share `least` values share one among
the first `size - least + 1` of each. Here rare values come first, so lists are short, and a value that only
one set has is neither indexed nor looked up. The rest of the positional filter (Xiao, Wang, Lin and Yu,
"Efficient Similarity Joins for Near Duplicate Detection", 2008) is part of the key: an entry says up to which
size a partner can profit from it (its `most`, from what remains of its set behind it), and values that
many sets share have one list for each narrow class of `most`. So in 20,000 pages of one template the lists
of the template's own shingles, behind the rare ones of each page, are never touched. Where the lists of a
document are longer than the documents kept, it is compared with all of them by sketch instead (1 ns each).

Values are ordered by (count, value), with counts from a table of hashed counters: values that share a
counter count too high, alike in all sets, so the order stays total and the result exact.

Memory: 16 bytes an entry (8 for it, 8 for its bucket), at most `(1 - t) * size + 1` entries a document;
counters 4 bytes a value, 64 MiB at most; 16 bytes of scratch for each document that may be kept.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from curation.dedup.overlap import (
    MILLION,
    MOST_WORDS,
    SPREAD,
    Kept,
    KeptAt,
    Values,
    add_kept,
    first_kept,
    kept_at,
    overlap_with,
    reach,
    sketch,
)
from curation.text.jit import inlined, kernel
from curation.text.memory import Int, address_of, load64
from curation.text.spans import Int64s

__all__ = ["Index", "Lookup", "build_index", "new_lookup", "resolve"]

CLASSED_FROM = 16
"""Documents with a value from which its list is split: looking up many classes must pay."""
MOST_COUNTERS = 1 << 24
LARGEST = (1 << 32) - 1
CLASSES = 32
"""Classes of size that a lookup may span, about: as fine as a few dozen lookups a value allow."""
CLASS_SPREAD = np.uint64(0xD6E8FEB86659FD93)
HALF = np.uint64(32)
LOW = np.uint64(LARGEST)

Uint32s = npt.NDArray[np.uint32]


class Index(NamedTuple):
    """Which kept documents have which rare values.

    counters: uint32[slots], sets with a value of that hash. starts: uint32[buckets + 1] into entries.
    ends: uint32[buckets], where the list of a bucket ends so far. entries: uint64[n], the number of a
    kept document in the high half, ascending in each list, and its `most` in the low half.
    class_bits: bits of a size, after the first, that tell its class.
    rare: smallest count of a value that two of the sets in question may share.
    """

    counters: Uint32s
    starts: Uint32s
    ends: Uint32s
    entries: Values
    class_bits: int
    rare: int


class Lookup(NamedTuple):
    """Scratch memory for lookups.

    order: uint64[largest set]. seen: int64[room for kept], the last document compared with each, plus 1.
    starts, ends, most: int64[m], lists to look through.
    """

    order: Values
    seen: Int64s
    starts: Int64s
    ends: Int64s
    most: Int64s


def new_lookup(largest: int, n_kept: int, patience: int) -> Lookup:
    """Scratch for sets of up to `largest` values and `n_kept` kept ones; see `resolve` for `patience`."""
    lists = (np.empty(patience * n_kept + 1, np.int64) for _ in range(3))
    return Lookup(np.empty(largest, np.uint64), np.zeros(n_kept, np.int64), *lists)


def build_index(values: Values, offsets: Int64s, chosen: Int64s, ppm: int, *, rare: int) -> Index:
    """An index with room for the documents `chosen`, none of them entered yet.

    Args:
        values, offsets: the sets.
        chosen: int64[m], those that may be entered, and whose values are counted.
        ppm: threshold in millionths, 1 to 999,999.
        rare: 2 if only these documents are looked up, 1 if others are too.
    """
    n_values = int((offsets[chosen + 1] - offsets[chosen]).sum())
    counters = np.zeros(max(1, min(n_values, MOST_COUNTERS)), np.uint32)
    octaves = 2 * np.log2(MILLION / ppm)  # between the smallest partner and the largest `most` of one
    class_bits = int(np.clip(np.floor(np.log2(CLASSES / octaves)), 0, 12))
    nothing = Index(counters, np.zeros(2, np.uint32), np.zeros(1, np.uint32), np.empty(0, np.uint64), class_bits, rare)
    largest = int((offsets[chosen + 1] - offsets[chosen]).max(initial=0))
    order = np.empty(largest, np.uint64)
    _count_values(values, offsets, chosen, counters)
    n_entries = _count_entries(values, offsets, chosen, nothing, ppm, order, np.empty(0, np.uint32))
    assert n_entries <= LARGEST, "sets of more than 2**38 bytes in one cluster: compare them in blocks"
    starts = np.zeros(max(1, n_entries) + 1, np.uint32)
    _count_entries(values, offsets, chosen, nothing, ppm, order, starts[1:])
    np.cumsum(starts, out=starts)
    return nothing._replace(starts=starts, ends=starts[:-1].copy(), entries=np.empty(n_entries, np.uint64))


@inlined
def _count_of(value: Int, counters: Uint32s) -> Int:
    return counters[(value * SPREAD >> HALF) * np.uint64(len(counters)) >> HALF]


@kernel
def _count_values(values: Values, offsets: Int64s, chosen: Int64s, counters: Uint32s) -> None:
    slots = np.uint64(len(counters))
    for d in chosen:
        for i in range(np.uint64(offsets[d]), np.uint64(offsets[d + 1])):
            counters[(values[i] * SPREAD >> HALF) * slots >> HALF] += np.uint32(1)


@kernel
def _count_entries(
    values: Values, offsets: Int64s, chosen: Int64s, index: Index, ppm: Int, order: Values, counts: Uint32s
) -> Int:
    """Entries of all documents together; where `counts` has room, also of each bucket."""
    n_entries = np.int64(0)
    buckets = np.uint64(len(counts))
    for d in chosen:
        p, size = address_of(values) + 8 * offsets[d], offsets[d + 1] - offsets[d]
        first, n = _prefix(p, size, index, ppm, order)
        n_entries += n
        if buckets > 0:
            for e in range(n):
                counts[_entry(p, size, first + e, order[e], index.class_bits, ppm, buckets)[0]] += np.uint32(1)
    return n_entries


@inlined
def _sift(heap: Values, hole: Int, n: Int, item: Int) -> None:
    """Put an item into a heap (largest first) of n, in place of the one at `hole` and below."""
    while 2 * hole + 1 < n:
        child = 2 * hole + 1
        if child + 1 < n and heap[child + 1] > heap[child]:
            child += 1
        if heap[child] <= item:
            break
        heap[hole] = heap[child]
        hole = child
    heap[hole] = item


@inlined
def _prefix(p: Int, size: Int, index: Index, ppm: Int, order: Values) -> tuple[Int, Int]:
    """The values of a set by which a similar one must be found, rarest first, to `order[:n]`.

    Each is (its count << 32 | its place in the set), so that equal counts stand in order of value.
    Values of no other set come before them and are left out: returns how many those are, and n.
    """
    n = np.int64(0)
    for i in range(np.int64(0), size):
        count = np.uint64(_count_of(load64(p + 8 * i), index.counters))
        order[np.uint64(n)] = count << HALF | np.uint64(i)
        n += np.int64(count >= index.rare)
    alone = size - n
    wanted = min(n, max(0, size - ppm * size // MILLION - alone))
    for hole in range(wanted // 2 - 1, -1, -1):
        _sift(order, hole, wanted, order[hole])
    if wanted > 0:
        for i in range(wanted, n):
            if order[i] < order[0]:
                _sift(order, np.int64(0), wanted, order[i])
    for last in range(wanted - 1, 0, -1):  # heap sort
        item = order[last]
        order[last] = order[0]
        _sift(order, np.int64(0), last, item)
    return alone, wanted


@inlined
def _class_of(size: Int, class_bits: Int) -> Int:
    """Class of a size: its bit length and the `class_bits` bits after the first, from its form as a float."""
    return np.float64(size).view(np.int64) >> np.int64(52 - class_bits)


@inlined
def _bucket(value: Int, size_class: Int, buckets: Int) -> Int:
    return ((value + np.uint64(size_class) * CLASS_SPREAD) * SPREAD >> HALF) * buckets >> HALF


@inlined
def _entry(p: Int, size: Int, place: Int, item: Int, class_bits: Int, ppm: Int, buckets: Int) -> tuple[Int, Int]:
    """Bucket and `most` of the value that stands at `place` in the order of its set."""
    most = min(reach(size - place, ppm) - size, LARGEST)
    size_class = _class_of(most, class_bits) if item >> HALF >= CLASSED_FROM else np.int64(0)
    return _bucket(load64(p + 8 * np.int64(item & LOW)), size_class, buckets), most


@inlined
def _enter(p: Int, size: Int, first: Int, n: Int, index: Index, ppm: Int, order: Values, k: Int) -> None:
    """Enter the kept document number k, whose prefix stands in `order[:n]`."""
    buckets = np.uint64(len(index.ends))
    for e in range(n):
        bucket, most = _entry(p, size, first + e, order[e], index.class_bits, ppm, buckets)
        index.entries[np.uint64(index.ends[bucket])] = np.uint64(k) << HALF | np.uint64(most)
        index.ends[bucket] += np.uint32(1)


@inlined
def _lists(p: Int, size: Int, first: Int, n: Int, index: Index, ppm: Int, lookup: Lookup, budget: Int) -> Int:
    """Find the lists in which a similar document must stand: how many, or -1 if they are longer than the budget."""
    buckets = np.uint64(len(index.ends))
    n_lists = spent = np.int64(0)
    for e in range(n):
        item = lookup.order[e]
        value = load64(p + 8 * np.int64(item & LOW))
        largest = reach(size - first - e, ppm) - size  # size of a partner that can profit from this value
        lowest = highest = np.int64(0)
        if item >> HALF >= CLASSED_FROM:
            lowest = _class_of(size, index.class_bits)
            highest = _class_of(min(reach(largest, ppm) - largest, LARGEST), index.class_bits)
        for size_class in range(lowest, highest + 1):
            bucket = _bucket(value, size_class, buckets)
            begin, end = np.int64(index.starts[bucket]), np.int64(index.ends[bucket])
            spent += 1 + end - begin
            if spent > budget:
                return np.int64(-1)
            if end > begin:
                lookup.starts[n_lists], lookup.ends[n_lists], lookup.most[n_lists] = begin, end, largest
                n_lists += 1
    return n_lists


@inlined
def _first_listed(
    p: Int, size: Int, document: Int, mine: Int, at: KeptAt, entries: Values, lookup: Lookup, n_lists: Int
) -> tuple[Int, Int]:
    """The first kept document on the lists found with Jaccard > threshold and the values shared, or (-1, -1)."""
    best, best_shared = np.int64(-1), np.int64(-1)
    end = np.int64(LARGEST)
    for i in range(n_lists):
        largest = lookup.most[i]
        for q in range(np.uint64(lookup.starts[i]), np.uint64(lookup.ends[i])):
            k = np.int64(entries[q] >> HALF)
            if k >= end:
                break
            if np.int64(entries[q] & LOW) < size or lookup.seen[np.uint64(k)] == document + 1:
                continue
            if np.int64(load64(at.sizes + 8 * k)) > largest:
                continue
            lookup.seen[np.uint64(k)] = document + 1
            shared = overlap_with(p, size, mine, at, k)
            if shared > 0:
                best, best_shared, end = k, shared, k
    return best, best_shared


@kernel
def resolve(
    values: Values,
    offsets: Int64s,
    chosen: Int64s,
    n_fixed: Int,
    kept_values: Values,
    kept: Kept,
    n_kept: Int,
    index: Index,
    lookup: Lookup,
    blocks: Int,
    ppm: Int,
    patience: Int,
    keeps: bool,
    partner: Int64s,
    similarity: npt.NDArray[np.float32],
) -> Int:
    """Find for each chosen document, in order, the first kept one with Jaccard > threshold. Returns the kept ones.

    The first `n_fixed` are kept without looking. If `keeps`, a document without a partner becomes a kept
    one itself; then `kept_values` must be `values`. Where the lists of a document hold more than `patience`
    entries for each kept document, it is compared with every kept document.
    """
    mine = np.empty(MOST_WORDS, np.uint64)
    at = kept_at(kept_values, kept, blocks, ppm)
    for c in range(len(chosen)):
        d = chosen[c]
        start, size = offsets[d], offsets[d + 1] - offsets[d]
        p = address_of(values) + 8 * start
        sketch(p, size, blocks, mine)
        first, n = _prefix(p, size, index, ppm, lookup.order)
        k = shared = np.int64(-1)
        if c >= n_fixed:
            n_lists = _lists(p, size, first, n, index, ppm, lookup, patience * n_kept)
            if n_lists < 0:
                k, shared = first_kept(p, size, address_of(mine), at, n_kept)
            else:
                k, shared = _first_listed(p, size, d, address_of(mine), at, index.entries, lookup, n_lists)
        if k >= 0:
            partner[d] = kept.documents[k]
            similarity[d] = shared / (size + kept.sizes[k] - shared)
        elif keeps:
            add_kept(kept, n_kept, d, start, size, blocks, mine)
            _enter(p, size, first, n, index, ppm, lookup.order, n_kept)
            n_kept += 1
    return n_kept
