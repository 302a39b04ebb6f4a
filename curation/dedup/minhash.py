"""MinHash signatures of documents, and their bands: which pairs are worth an exact look.

A signature holds, for each of `num_perm` permutations of the 32-bit numbers, the smallest number that
a document's shingles are sent to. Two documents agree in one place with probability J, their Jaccard
similarity. A band is `rows` places together; documents that agree in a whole band become candidates,
which happens with probability 1 - (1 - J^rows)^bands. Nothing is decided here: candidates are compared
exactly later, so a low curve loses copies and a high one only costs time.

The values equal those of datasketch 2.0 (scheme affine32, seed 1) bit for bit, so signatures can be
exchanged with its objects: a shingle's low 32 bits pass MurmurHash3's finaliser (Appleby, public domain)
once, and permutation k is `a[k] * h + b[k]` modulo 2^32 with an odd a[k]: a bijection, so that sets of
any size keep their distinct values. The sum stays within 32 bits on purpose; wider or narrower products
would be other permutations.

Cost on one core with AVX-512 (Zen 4), 128 permutations: 4 ns a shingle, which is what its multipliers allow. The
innermost loop runs over shingles and holds 64 permutations, their constants and minima, in registers.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types
from numba.core import cgutils

from curation.errors import ConfigError, InputError
from curation.text.jit import inlined, kernel
from curation.text.memory import Int, address_of, instruction

if TYPE_CHECKING:
    from curation.dedup.sets import Shingles

__all__ = [
    "EMPTY",
    "Bands",
    "band_keys",
    "candidate_probability",
    "checked",
    "choose_bands",
    "permutations",
    "signatures",
]

UInt32s: TypeAlias = npt.NDArray[np.uint32]
UInt64s: TypeAlias = npt.NDArray[np.uint64]
Int64s: TypeAlias = npt.NDArray[np.int64]
Float64s: TypeAlias = npt.NDArray[np.float64]

EMPTY = np.uint32(0xFFFFFFFF)
"""Every place of the signature of a document without shingles. Such documents agree in all bands: leave them out."""

SEED = 1  # datasketch's default
MOST_PERMUTATIONS = 4096
CHUNK = 4096
"""Shingles that are finalised before they are permuted: 16 KiB, which stay in the first-level cache."""

NUMBERS = ir.IntType(32)
VECTOR = ir.VectorType(NUMBERS, 16)
VECTORS = 4
WIDTH = 16 * VECTORS
"""Permutations that one pass over a chunk takes."""

SALT = np.uint64(0x9E3779B97F4A7C15)
MIX_1, MIX_2 = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53)


class Bands(NamedTuple):
    """How a signature is cut: `bands` times `rows` places, the rest unused."""

    bands: int
    rows: int


# ---------------------------------------------------------------- signatures


def signatures(found: Shingles, num_perm: int) -> UInt32s:
    """MinHash signature of each document: uint32[n, num_perm].

    `found` may hold a shingle once or many times, in any order: the signature is of the set.
    A document without shingles has `EMPTY` in every place, as an empty MinHash of datasketch does.

    Raises ConfigError unless 1 <= num_perm <= 4096, InputError for shingles that are not what they should be.
    """
    if not 1 <= num_perm <= MOST_PERMUTATIONS:
        raise ConfigError(f"num_perm must be 1 to {MOST_PERMUTATIONS}, not {num_perm}: 128 is usual")
    values, offsets = checked(found.values, found.offsets)
    a, b = permutations(num_perm)
    padding = -num_perm % WIDTH
    out = np.empty((len(offsets) - 1, num_perm), np.uint32)
    minima, mixed = np.empty(num_perm + padding, np.uint32), np.empty(CHUNK, np.uint32)
    _signatures(values, offsets, np.pad(a, (0, padding)), np.pad(b, (0, padding)), minima, mixed, out)
    return out


def checked(values: UInt64s, offsets: Int64s) -> tuple[UInt64s, Int64s]:
    """The same arrays, proved to be what a kernel may read without looking: contiguous, of their types, in bounds.

    Raises InputError otherwise.
    """
    if values.dtype != np.uint64 or offsets.dtype != np.int64 or values.ndim != 1 or offsets.ndim != 1:
        raise InputError(
            f"shingles are values uint64[m] and offsets int64[n + 1], not {values.dtype}{list(values.shape)} "
            f"and {offsets.dtype}{list(offsets.shape)}: make them with curation.dedup.shingles"
        )
    if len(offsets) == 0 or offsets[0] < 0 or offsets[-1] > len(values) or np.any(offsets[1:] < offsets[:-1]):
        raise InputError(f"offsets of shingles must rise from 0 on to at most {len(values)}, the number of values")
    return np.ascontiguousarray(values), np.ascontiguousarray(offsets)


@cache
def permutations(num_perm: int) -> tuple[UInt32s, UInt32s]:
    """Factors (odd) and summands of the first `num_perm` permutations, as datasketch 2.0 draws them: uint32[num_perm].

    They depend on `num_perm` also, since all factors are drawn before the first summand. NumPy has promised
    never to change what its RandomState draws.
    """
    source = np.random.RandomState(SEED)
    a = source.randint(0, 1 << 31, num_perm, dtype=np.uint32) * np.uint32(2) + np.uint32(1)
    b = source.randint(0, 1 << 32, num_perm, dtype=np.uint32)
    a.flags.writeable = b.flags.writeable = False
    return a, b


def _vector(builder: Any, address: Any, index: int) -> Any:
    """Pointer to the 16 numbers that come `index` vectors after an address."""
    return builder.gep(builder.inttoptr(address, VECTOR.as_pointer()), [NUMBERS(index)])


def _everywhere(builder: Any, value: Any) -> Any:
    one = builder.insert_element(ir.Constant(VECTOR, ir.Undefined), value, NUMBERS(0))
    return builder.shuffle_vector(one, ir.Constant(VECTOR, ir.Undefined), ir.Constant(VECTOR, None))


@instruction
def _lower(typing_context: Any, hashes: Any, n: Any, a: Any, b: Any, minima: Any) -> Any:
    """Lower `WIDTH` minima to the least a * h + b of n hashes. All but n are addresses of uint32 numbers.

    Written for LLVM because its vectoriser would put shingles into the lanes, of which most documents have
    few, and would end each permutation by a reduction. Here the lanes are permutations.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        hashes, n, a, b, minima = args
        factors, summands, least = [], [], []
        for i in range(VECTORS):
            factors.append(builder.load(_vector(builder, a, i), align=4))
            summands.append(builder.load(_vector(builder, b, i), align=4))
            least.append(cgutils.alloca_once_value(builder, builder.load(_vector(builder, minima, i), align=4)))
        first = builder.inttoptr(hashes, NUMBERS.as_pointer())
        with cgutils.for_range(builder, n) as loop:
            h = _everywhere(builder, builder.load(builder.gep(first, [loop.index]), align=4))
            for factor, summand, slot in zip(factors, summands, least, strict=True):
                value, old = builder.add(builder.mul(factor, h), summand), builder.load(slot)
                builder.store(builder.select(builder.icmp_unsigned("<", value, old), value, old), slot)
        for i, slot in enumerate(least):
            builder.store(builder.load(slot), _vector(builder, minima, i), align=4)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64, types.int64, types.int64), generate


@inlined
def _finalise(values: UInt64s, start: Int, n: Int, mixed: UInt32s) -> None:
    """MurmurHash3's 32-bit finaliser of the low halves of n values from `start` on."""
    for i in range(n):
        h = np.uint32(values[np.uint64(start + i)])
        h = np.uint32((h ^ h >> np.uint32(16)) * np.uint32(0x85EBCA6B))
        h = np.uint32((h ^ h >> np.uint32(13)) * np.uint32(0xC2B2AE35))
        mixed[np.uint64(i)] = h ^ h >> np.uint32(16)


@kernel
def _signatures(
    values: UInt64s, offsets: Int64s, a: UInt32s, b: UInt32s, minima: UInt32s, mixed: UInt32s, out: UInt32s
) -> None:
    for row in range(len(offsets) - 1):
        minima[:] = EMPTY
        start, stop = offsets[row], offsets[row + 1]
        while start < stop:
            n = min(CHUNK, stop - start)
            _finalise(values, start, n, mixed)
            for k in range(0, len(a), WIDTH):
                _lower(address_of(mixed), n, address_of(a) + 4 * k, address_of(b) + 4 * k, address_of(minima) + 4 * k)
            start += n
        for k in range(out.shape[1]):
            out[row, k] = minima[k]


# ---------------------------------------------------------------- bands


def band_keys(signatures: UInt32s, bands: int, rows: int) -> UInt64s:
    """A key for each band of each signature: uint64[n, bands].

    Two documents have the same key in a band if they agree in all its rows; otherwise with probability 2^-64.
    Each band has its own salt, so keys of different bands never mean each other; all bits are mixed, so any of
    them may serve as a hash range. Documents without shingles agree everywhere: leave them out.

    Raises ConfigError if a signature has fewer places than bands * rows.
    """
    if bands < 1 or rows < 1 or signatures.ndim != 2 or signatures.shape[1] < bands * rows:
        raise ConfigError(
            f"{bands} bands of {rows} rows need signatures of {bands * rows} permutations or more, "
            f"not of shape {list(signatures.shape)}: lower the bands or raise num_perm"
        )
    return _band_keys(np.ascontiguousarray(signatures, np.uint32), bands, rows)


@kernel
def _band_keys(signatures: UInt32s, bands: int, rows: int) -> UInt64s:
    out = np.empty((len(signatures), bands), np.uint64)
    for i in range(len(signatures)):
        for band in range(bands):
            h = np.uint64(band + 1) * SALT
            for row in range(band * rows, (band + 1) * rows):
                h = (h ^ np.uint64(signatures[i, row])) * MIX_1  # every step is a bijection of h
                h ^= h >> np.uint64(32)
            h = (h ^ h >> np.uint64(29)) * MIX_2
            out[i, band] = h ^ h >> np.uint64(32)
    return out


def candidate_probability(jaccard: npt.ArrayLike, bands: int, rows: int) -> Float64s:
    """Probability that two documents agree in a band or more: 1 - (1 - J^rows)^bands for each J, float64."""
    with np.errstate(divide="ignore"):  # J = 1: log(0), and the power is 0 as it should be
        agree = np.asarray(jaccard, np.float64) ** rows
        return np.asarray(-np.expm1(bands * np.log1p(-agree)))


def choose_bands(threshold: float, num_perm: int, recall: float = 0.999) -> Bands:
    """The most rows by which a pair AT the threshold still becomes a candidate with probability `recall`.

    More rows mean fewer false candidates, so the most that keep the promise are the best; bands are as many as
    `num_perm` gives. At 0.9 with 128 permutations that is 16 bands of 8 rows: 0.9999 at 0.9, 0.95 at 0.8.

    The usual automatic choice (RedPajama, datasketch) instead balances false candidates against lost pairs, both
    averaged over all similarities as if each were as frequent. At 0.9 this gives 5 bands of 25 rows, which
    find a pair at 0.9 with probability 1 - (1 - 0.9^25)^5 = 0.31 and one at 0.95 with 0.80: two thirds of the
    copies at the threshold are lost, and no later check can bring them back. A false candidate, on the other hand,
    costs one exact comparison. So here the lost pairs are bounded, and the false ones are paid for.

    Raises ConfigError if the threshold is not in (0, 1], recall not in (0, 1), or no number of rows will do.
    """
    if not 0 < threshold <= 1 or not 0 < recall < 1:
        raise ConfigError(f"threshold must be in (0, 1] and recall in (0, 1), not {threshold} and {recall}")
    if not 1 <= num_perm <= MOST_PERMUTATIONS:
        raise ConfigError(f"num_perm must be 1 to {MOST_PERMUTATIONS}, not {num_perm}: 128 is usual")
    for rows in range(num_perm, 0, -1):
        if candidate_probability(threshold, num_perm // rows, rows) >= recall:
            return Bands(num_perm // rows, rows)
    best = float(candidate_probability(threshold, num_perm, 1))
    raise ConfigError(
        f"{num_perm} permutations find a pair at Jaccard {threshold} with probability {best:.7g} at most, "
        f"asked for was {recall}: raise num_perm or the threshold"
    )
