"""How much two sets of shingles share, exactly, and cheap proofs that it is too little.

A set is a run of distinct uint64 in ascending order. All tests are in whole numbers: with a threshold
of `ppm` millionths, Jaccard > threshold means `overlap * 10**6 > ppm * union`, which is the same as
`total <= reach(overlap)`, where `total` is the two sizes together.

Two proofs spare most comparisons. Sizes: the smaller set is the most that can be shared. Sketches: the
values of a set, hashed to bits, toggle them; the sketches of two sets then differ in no more bits than
the sets differ in values (the bitmap filter of Sandes, Teodoro and Melo, "Bitmap Filter: Speeding up
Exact Set Similarity Joins with Bitwise Operations", 2017, in its XOR form). Each set has a fine sketch,
and that folded to a quarter, the coarse one: all are compared by the coarse (1 ns), few by the fine.
A merge takes 0.4 to 0.9 ns for each value of both sets, making a sketch 1 ns for each value.

Functions for kernels take addresses, so that a call costs nothing.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types

from curation.text.jit import inlined
from curation.text.memory import Int, address_of, instruction, load64
from curation.text.spans import Int64s

__all__ = [
    "MILLION",
    "MOST_WORDS",
    "SPREAD",
    "Kept",
    "KeptAt",
    "Values",
    "add_kept",
    "first_kept",
    "kept_at",
    "needed",
    "new_kept",
    "overlap",
    "overlap_with",
    "reach",
    "sketch",
    "sketch_blocks",
]

MILLION = 1_000_000
SPREAD = np.uint64(0x9E3779B97F4A7C15)
"""2**64 / golden ratio: multiplying by it brings all bits of a value to bear on the high ones."""

BLOCK_WORDS = 8
"""Words of one block of a coarse sketch: 512 bits, one vector register of AVX-512."""
FOLD = 4
"""Blocks of the fine sketch that are folded to one of the coarse."""
MOST_BLOCKS = 8
MOST_WORDS = MOST_BLOCKS * BLOCK_WORDS * (1 + FOLD)
"""Words of the largest sketch, coarse and fine."""
SKETCHED_FROM = 4
"""Documents in a cluster from which sketches pay: below, most comparisons find a copy anyway."""
BITS_PER_DIFFERENCE = 4
"""Bits of a coarse sketch for each value in which two similar sets may differ. By 4, sets that differ
in twice that many values differ in 1.3 times as many bits as they may; by the fine 16, in 1.8 times."""

WORD = ir.IntType(64)
BLOCK = ir.VectorType(WORD, BLOCK_WORDS)

Values: TypeAlias = npt.NDArray[np.uint64]


@instruction
def differing_bits(typing_context: Any, one: Any, other: Any) -> Any:
    """In how many bits the 512 from one address on differ from those at the other: int64. Both are multiples of 8."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        def block(address: Any) -> Any:
            loaded = builder.load(builder.inttoptr(address, BLOCK.as_pointer()))
            loaded.align = 8
            return loaded

        def call(name: str, result: ir.Type, argument: Any) -> Any:
            known = builder.module.globals.get(name)
            function = known or ir.Function(builder.module, ir.FunctionType(result, [BLOCK]), name)
            return builder.call(function, [argument])

        differing = builder.xor(block(args[0]), block(args[1]))
        ones = call(f"llvm.ctpop.v{BLOCK_WORDS}i64", BLOCK, differing)
        return call(f"llvm.vector.reduce.add.v{BLOCK_WORDS}i64", WORD, ones)

    return types.int64(types.int64, types.int64), generate


class Kept(NamedTuple):
    """Kept documents in priority order, with room for more.

    starts, sizes, documents: int64[room]: where the set begins, its values, number of the document.
    coarse: uint64[room * blocks * 8], fine: uint64[room * blocks * 32], sketches.
    """

    starts: Int64s
    sizes: Int64s
    documents: Int64s
    coarse: Values
    fine: Values


class KeptAt(NamedTuple):
    """Addresses of the columns of `Kept` and of the values that its sets are in; blocks; threshold."""

    values: Int
    starts: Int
    sizes: Int
    coarse: Int
    fine: Int
    blocks: Int
    ppm: Int


def new_kept(room: int, blocks: int) -> Kept:
    """Room for kept documents; memory that is not used is never touched."""
    starts, sizes, documents = (np.empty(room, np.int64) for _ in range(3))
    words = blocks * BLOCK_WORDS
    return Kept(starts, sizes, documents, np.empty(room * words, np.uint64), np.empty(room * words * FOLD, np.uint64))


@inlined
def kept_at(values: Values, kept: Kept, blocks: Int, ppm: Int) -> KeptAt:
    """Where kept documents are. The arrays must live as long as this is used."""
    return KeptAt(
        address_of(values),
        address_of(kept.starts),
        address_of(kept.sizes),
        address_of(kept.coarse),
        address_of(kept.fine),
        blocks,
        ppm,
    )


@inlined
def needed(total: Int, ppm: Int) -> Int:
    """The smallest overlap by which two sets of together `total` values have Jaccard > threshold."""
    return ppm * total // (MILLION + ppm) + 1


@inlined
def reach(shared: Int, ppm: Int) -> Int:
    """The most values that two sets sharing `shared` > 0 may have together, for Jaccard > threshold."""
    return shared + (shared * MILLION - 1) // ppm


@inlined
def overlap(p: Int, n: Int, q: Int, m: Int, least: Int) -> Int:
    """Values shared by the set of n at address `p` and that of m at `q`, or -1 if fewer than `least`.

    Merges from both ends at once, without branches: two chains of dependent steps run side by side.
    A step passes one value, or a shared one in both, so steps and values passed tell what was shared.
    """
    if n < least or m < least:
        return np.int64(-1)
    p_end, q_end = p + 8 * n, q + 8 * m
    behind = p_end + q_end - p - q  # bytes of the values not passed
    allowed = n + m - 2 * least  # values of either set that the other may lack
    steps = np.int64(0)
    while p + 256 <= p_end and q + 256 <= q_end:
        for _ in range(16):
            x, y, v, w = load64(p), load64(q), load64(p_end - 8), load64(q_end - 8)
            p += np.int64(x <= y) << 3
            q += np.int64(y <= x) << 3
            p_end -= np.int64(v >= w) << 3
            q_end -= np.int64(w >= v) << 3
        steps += 32
        if 2 * steps - (behind - (p_end + q_end - p - q) >> 3) > allowed:
            return np.int64(-1)
    while p < p_end and q < q_end:
        x, y = load64(p), load64(q)
        p += np.int64(x <= y) << 3
        q += np.int64(y <= x) << 3
        steps += 1
    shared = (behind - (p_end + q_end - p - q) >> 3) - steps
    return shared if shared >= least else np.int64(-1)


@inlined
def sketch_blocks(n_documents: Int, n_values: Int, ppm: Int) -> Int:
    """Blocks of 512 bits of coarse sketches for the documents of a cluster: 0 (no sketches) to 8."""
    if n_documents < SKETCHED_FROM:
        return 0
    allowed = 2 * n_values * (MILLION - ppm) // (n_documents * (MILLION + ppm))
    return max(1, min(MOST_BLOCKS, -(-BITS_PER_DIFFERENCE * allowed // (64 * BLOCK_WORDS))))


@inlined
def sketch(p: Int, n: Int, blocks: Int, out: Values) -> None:
    """Sketches of the set of n at address `p`: coarse to `out[:blocks * 8]`, fine to the `blocks * 32` behind."""
    if blocks == 0:
        return
    words = np.uint64(blocks * BLOCK_WORDS)
    out[: blocks * BLOCK_WORDS * (1 + FOLD)] = 0
    n_bits = words * np.uint64(64 * FOLD)
    for i in range(n):  # each value toggles the bit it hashes to
        bit = (load64(p + 8 * i) * SPREAD >> np.uint64(32)) * n_bits >> np.uint64(32)
        out[words + (bit >> np.uint64(6))] ^= np.uint64(1) << (bit & np.uint64(63))
    for fold in range(FOLD):
        for w in range(words):
            out[w] ^= out[words * np.uint64(fold + 1) + w]


@inlined
def add_kept(kept: Kept, k: Int, document: Int, start: Int, size: Int, blocks: Int, mine: Values) -> None:
    """Make a document the kept one number k; `mine` are its sketches."""
    kept.starts[k] = start
    kept.sizes[k] = size
    kept.documents[k] = document
    words = blocks * BLOCK_WORDS
    for w in range(words):
        kept.coarse[k * words + w] = mine[w]
    for w in range(words * FOLD):
        kept.fine[k * words * FOLD + w] = mine[words + w]


@inlined
def _allowed(total: Int, ppm: Int) -> Int:
    """No fewer than the values in which two sets of together `total` may differ, for Jaccard > threshold.

    Those are fewer than total * (1 - t) / (1 + t). 1 more covers the rounding.
    """
    return np.int64(total * ((MILLION - ppm) / (MILLION + ppm))) + 1


@inlined
def _may_be_close(mine: Int, other: Int, n_blocks: Int, allowed: Int) -> Int:
    """Whether two sketches of `n_blocks` * 512 bits, at these addresses, differ in `allowed` bits or fewer."""
    differing = np.int64(0)
    for _ in range(n_blocks):
        differing += differing_bits(mine, other)
        if differing > allowed:
            return False
        mine += 8 * BLOCK_WORDS
        other += 8 * BLOCK_WORDS
    return True


@inlined
def overlap_with(p: Int, size: Int, mine: Int, at: KeptAt, k: Int) -> Int:
    """Values that the set of `size` at address `p`, with sketches at `mine`, shares with the kept document number k.

    -1 where Jaccard is not above the threshold.
    """
    other_size = np.int64(load64(at.sizes + 8 * k))
    total = size + other_size
    allowed = _allowed(total, at.ppm)
    width = 8 * BLOCK_WORDS * at.blocks
    if not _may_be_close(mine, at.coarse + width * k, at.blocks, allowed):
        return np.int64(-1)
    if not _may_be_close(mine + width, at.fine + FOLD * width * k, FOLD * at.blocks, allowed):
        return np.int64(-1)
    other = at.values + 8 * np.int64(load64(at.starts + 8 * k))
    return overlap(p, size, other, other_size, needed(total, at.ppm))


@inlined
def first_kept(p: Int, size: Int, mine: Int, at: KeptAt, n_kept: Int) -> tuple[Int, Int]:
    """The first kept document with Jaccard > threshold and the values shared with it, or (-1, -1): looks at all."""
    low, high = at.ppm * size // MILLION + 1, (size * MILLION - 1) // at.ppm
    most, width = _allowed(size + high, at.ppm), 8 * BLOCK_WORDS * at.blocks
    for k in range(np.int64(0), n_kept):
        if width > 0 and differing_bits(mine, at.coarse + width * k) > most:
            continue  # as nearly all do, where many are kept
        if low <= np.int64(load64(at.sizes + 8 * k)) <= high:
            shared = overlap_with(p, size, mine, at, k)
            if shared > 0:
                return k, shared
    return np.int64(-1), np.int64(-1)
