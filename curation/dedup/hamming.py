"""Which of many 64-bit fingerprints differ in few bits, without comparing all pairs.

Close means a Hamming distance of at most k. As Manku, Jain and Das Sarma, "Detecting Near-Duplicates for Web
Crawling" (2007): cut the 64 bits into b > k blocks; two fingerprints that differ in k bits agree in b - k
blocks at least. One table for each choice of b - k blocks: documents that agree there share a bucket, and are
compared in it. More blocks mean more tables, but longer keys and so smaller buckets. Nothing is missed,
but in buckets of more than `WINDOW` distinct fingerprints.

Cost on one core with AVX-512: 100 ns for a document in a table, mostly sorting, and 0.1 ns for a pair in a bucket.
A table takes 28 to 32 bytes a document at its peak, beside what is passed in.
"""

from __future__ import annotations

from functools import cache
from itertools import combinations
from math import comb
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types
from numba.core import cgutils

from curation.errors import ConfigError, InputError
from curation.text.jit import inlined, kernel
from curation.text.memory import Int, address_of, instruction, trailing_zeros

__all__ = ["MAX_DISTANCE", "WINDOW", "links", "plan_tables", "table_key"]

UInt32s: TypeAlias = npt.NDArray[np.uint32]
UInt64s: TypeAlias = npt.NDArray[np.uint64]

BITS = 64
MAX_DISTANCE = 7

WINDOW = 32768
"""Distinct fingerprints of one bucket that each is compared with, at most: those that follow it in the order of the
remaining bits. A bucket of d distinct fingerprints costs at most d * WINDOW comparisons. Buckets up to WINDOW + 1
are complete; beyond, what is missed is left to MinHash. A bucket is never cut, so this is independent of hash ranges."""

MAX_TABLES = 400
SORT_COST, COMPARE_COST = 100.0, 0.2
"""Of a document in a table, and of a pair that random fingerprints would have in its buckets: nanoseconds, and only their
ratio counts. Real documents have 1.3 times as many pairs (measured on 31,500 with keys of 16 bits)."""
STEP = 16
"""Fingerprints that one is compared with at a time, by a few vector instructions."""
KEYS = ir.VectorType(ir.IntType(64), STEP)


# ---------------------------------------------------------------- tables


@cache
def plan_tables(n_documents: int, distance: int) -> tuple[int, int]:
    """Blocks and number of tables that are cheapest for a number of documents.

    At distance 3: 4 blocks and 4 tables (keys of 16 bits), from 100 million documents on 5 and 10 (25 bits), from 34
    billion on 6 and 20 (32 bits). The pairs in buckets grow with the square of the documents, the cost of one more
    block does not; so there is a number from which on it pays, and the whole stays nearly linear.
    What is found does not depend on the plan.

    Raises ConfigError unless 0 <= distance <= 7.
    """
    _check_distance(distance)
    best: tuple[float, int] | None = None
    for blocks in range(distance + 1, BITS + 1):
        n_tables = comb(blocks, distance)
        if n_tables > MAX_TABLES:
            break
        pairs = n_documents * n_documents / 2.0 ** (_key_bits(blocks, distance) + 1)
        cost = n_tables * (n_documents * SORT_COST + pairs * COMPARE_COST)
        if best is None or cost < best[0]:
            best = cost, blocks
        if distance == 0:
            break  # one block is the whole fingerprint
    assert best is not None
    return best[1], comb(best[1], distance)


def _check_distance(distance: int) -> None:
    if not 0 <= distance <= MAX_DISTANCE:
        raise ConfigError(f"the SimHash distance must be 0 to {MAX_DISTANCE} bits, not {distance}: 3 is usual")


def _key_bits(blocks: int, distance: int) -> int:
    """Bits of the shortest key of a plan."""
    widths = sorted(BITS * (i + 1) // blocks - BITS * i // blocks for i in range(blocks))
    return sum(widths[: blocks - distance])


@cache
def _layout(table: int, blocks: int, distance: int) -> tuple[UInt64s, UInt64s, int]:
    """Where the blocks of a table begin (from the lowest bit), shared ones first, their widths, and bits of the shared.

    Raises ConfigError if there is no such table.
    """
    _check_distance(distance)
    if not distance < blocks <= BITS or not 0 <= table < comb(blocks, distance):
        raise ConfigError(
            f"table {table} of {blocks} blocks does not exist at distance {distance}: "
            f"blocks are {distance + 1} to {BITS}, and tables as many as plan_tables says"
        )
    borders = [BITS * i // blocks for i in range(blocks + 1)]
    shared = next(choice for i, choice in enumerate(combinations(range(blocks), blocks - distance)) if i == table)
    order = [*shared, *(i for i in range(blocks) if i not in shared)]
    widths = [borders[i + 1] - borders[i] for i in order]
    starts = np.array([borders[i] for i in order], np.uint64)
    return starts, np.array(widths, np.uint64), sum(widths[: len(shared)])


@kernel
def _arrange(fingerprints: UInt64s, starts: UInt64s, widths: UInt64s) -> UInt64s:
    """Put some blocks of each fingerprint side by side, the first highest: uint64[m], in the low bits."""
    out = np.empty(len(fingerprints), np.uint64)
    for i in range(len(fingerprints)):
        arranged = np.uint64(0)
        for k in range(len(starts)):
            block = fingerprints[i] >> starts[k] & (np.uint64(1) << widths[k]) - np.uint64(1)
            arranged = arranged << widths[k] | block
        out[i] = arranged
    return out


def _arranged(
    fingerprints: UInt64s, table: int, blocks: int, distance: int, *, only_shared: bool
) -> tuple[UInt64s, int]:
    starts, widths, shared_bits = _layout(table, blocks, distance)
    fingerprints = np.ascontiguousarray(fingerprints, np.uint64)
    if blocks == 1:  # a shift by 64 is not defined
        return fingerprints, shared_bits
    n = blocks - distance if only_shared else blocks
    return _arrange(fingerprints, starts[:n], widths[:n]), shared_bits


def table_key(fingerprints: UInt64s, table: int, blocks: int, distance: int) -> UInt64s:
    """The blocks of one table, in the high bits, zeros below: uint64[m]. Equal keys share a bucket.

    Any range of keys holds whole buckets, wherever its borders are.

    Raises ConfigError if there is no such table.
    """
    shared, bits = _arranged(fingerprints, table, blocks, distance, only_shared=True)
    return shared << np.uint64(BITS - bits) if bits < BITS else shared.copy()


# ---------------------------------------------------------------- links


def links(fingerprints: UInt64s, numbers: UInt32s, distance: int, table: int, blocks: int) -> tuple[UInt32s, UInt32s]:
    """Links between documents that share a bucket of one table and differ in at most `distance` bits.

    Args:
        fingerprints: uint64[m], of all documents in some buckets of the table.
        numbers: uint32[m], the documents' numbers, each once, in any order.

    Returns two arrays uint32[l], the smaller number in the first, sorted: a function of the set of documents,
    not of their order. A bucket of k documents gives k - 1 links at most: a link is left out where others join its
    ends already. Equal fingerprints are a star around the smallest number, given by table 0 alone since they share
    the bucket in each. Over all tables, the links join two documents exactly if a chain of close pairs does, but
    for buckets beyond `WINDOW`.

    Raises ConfigError if there is no such table, InputError unless each fingerprint has a number.
    """
    if fingerprints.ndim != 1 or fingerprints.shape != numbers.shape:
        raise InputError(f"each fingerprint needs a number, found {fingerprints.shape} and {numbers.shape}")
    arranged, bits = _arranged(fingerprints, table, blocks, distance, only_shared=False)
    order = np.argsort(arranged)
    # Chunks of STEP are read whole, so room for one more; what lies there is never taken for a pair.
    keys, centres = np.zeros(len(order) + STEP, np.uint64), numbers[order].astype(np.uint32, copy=False)
    np.take(arranged, order, out=keys[: len(order)], mode="clip")  # any other mode would make a copy first
    del arranged, order
    a, b = np.empty(len(centres), np.uint32), np.empty(len(centres), np.uint32)
    n, n_links = _stars(keys, centres, a, b)
    if table > 0:
        n_links = 0
    shared = np.uint64((1 << BITS) - (1 << BITS - bits))
    n_links = _compare(keys, n, centres, np.arange(n, dtype=np.uint32), shared, distance, a, b, n_links)
    packed = a[:n_links].astype(np.uint64) << np.uint64(32) | b[:n_links]
    del a, b
    packed.sort()
    return (packed >> np.uint64(32)).astype(np.uint32), packed.astype(np.uint32)


@kernel
def _stars(keys: UInt64s, numbers: UInt32s, a: UInt32s, b: UInt32s) -> tuple[int, int]:
    """Links from the smallest number of each key to its others; then each key and that number once, in their place.

    Returns how many keys there are, and how many links.
    """
    n = n_links = i = 0
    while i < len(numbers):
        key, centre, stop = keys[i], numbers[i], i + 1
        while stop < len(numbers) and keys[stop] == key:
            centre = min(centre, numbers[stop])
            stop += 1
        for j in range(i, stop):
            if numbers[j] != centre:
                a[n_links], b[n_links] = centre, numbers[j]
                n_links += 1
        keys[n], numbers[n] = key, centre
        n += 1
        i = stop
    return n, n_links


@inlined
def _root(parents: UInt32s, i: Int) -> Int:
    while parents[np.uint64(i)] != i:
        parents[np.uint64(i)] = parents[np.uint64(parents[np.uint64(i)])]
        i = np.int64(parents[np.uint64(i)])
    return i


@instruction
def _close(typing_context: Any, address: Any, key: Any, distance: Any) -> Any:
    """Which of `STEP` keys from an address on are close to a key: uint64, bit i for key i."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        address, key, distance = args

        def everywhere(value: Any) -> Any:
            one = builder.insert_element(ir.Constant(KEYS, ir.Undefined), value, ir.IntType(32)(0))
            zeros = ir.Constant(ir.VectorType(ir.IntType(32), STEP), None)
            return builder.shuffle_vector(one, ir.Constant(KEYS, ir.Undefined), zeros)

        keys = builder.load(builder.inttoptr(address, KEYS.as_pointer()), align=8)
        name = f"llvm.ctpop.v{STEP}i64"
        ones_of = cgutils.get_or_insert_function(builder.module, ir.FunctionType(KEYS, [KEYS]), name)
        apart = builder.call(ones_of, [builder.xor(keys, everywhere(key))])
        close = builder.icmp_unsigned("<=", apart, everywhere(distance))
        return builder.zext(builder.bitcast(close, ir.IntType(STEP)), ir.IntType(64))

    return types.uint64(types.int64, types.uint64, types.int64), generate


@kernel
def _compare(
    keys: UInt64s,
    n: int,
    centres: UInt32s,
    parents: UInt32s,
    shared: np.uint64,
    distance: int,
    a: UInt32s,
    b: UInt32s,
    n_links: int,
) -> int:
    """Links between close ones of n distinct sorted keys that agree in the `shared` bits: how many there are now.

    keys: uint64[n + STEP]. parents: uint32[n], a forest, at first of single trees.
    """
    start = np.int64(0)
    while start < n:
        stop = start + 1
        while stop < n and (keys[np.uint64(stop)] ^ keys[np.uint64(start)]) & shared == 0:
            stop += 1
        trees = stop - start
        for i in range(start, stop):
            if trees == 1:
                break  # all are joined already
            key = keys[np.uint64(i)]
            end = stop if stop < i + 1 + WINDOW else i + 1 + WINDOW
            for chunk in range(i + 1, end, STEP):
                close = _close(address_of(keys) + 8 * chunk, key, distance)
                while close != 0:
                    j = chunk + trailing_zeros(close)
                    close &= close - np.uint64(1)
                    if j >= end:
                        break  # of the next bucket
                    one, two = _root(parents, i), _root(parents, j)
                    if one != two:
                        parents[np.uint64(max(one, two))] = min(one, two)
                        a[n_links], b[n_links] = min(centres[i], centres[j]), max(centres[i], centres[j])
                        n_links += 1
                        trees -= 1
        start = stop
    return n_links
