"""SimHash fingerprints: near-exact copies have fingerprints that differ in few bits.

A fingerprint has 64 bits. Bit b is set if more than half of a document's shingles, each occurrence counted,
have bit b in their hash: Charikar, "Similarity Estimation Techniques from Rounding Algorithms" (2002), with
each tie, and so each bit of a document without shingles, decided as 0, as the package simhash 2.1 does. Given
the same hashes the values are equal to that package's, for any length: it overflows at 256 equal features of
one weight, here counters are as wide as need be. `curation.dedup.hamming` finds the close ones.

What the distance says was measured on 31,500 real documents with 6,044 pairs above Jaccard 0.9. Expected of two
sets is 64 / pi * arccos(2J / (1 + J)) bits, whatever their size, and that is what was found:

    pairs with Jaccard    0.8-0.9   0.9-0.95   0.95-0.999   > 0.999
    number                  2,779      1,970        2,780     1,294
    median distance             8          5            3         0
    share within 3           0.07       0.25         0.65      1.00
    share within 7           0.49       0.80         0.98      1.00

So 3 finds nearly exact copies alone: 59 % of all pairs above 0.9, and 93 % of the pairs within 3 are above 0.9 (all but
one in 3,837 above 0.5). At 7 it is 93 % and 73 %, with more tables. Finding the rest is the work of MinHash.
`MIN_SHINGLES` has the measure of short documents.

Cost on one core: 0.7 ns a shingle, since 64 counters are held as bit planes: a few operations add to all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from curation.dedup.minhash import checked
from curation.text.jit import inlined, kernel
from curation.text.memory import Int

if TYPE_CHECKING:
    from curation.dedup.sets import Shingles

__all__ = ["MIN_SHINGLES", "fingerprints"]

UInt64s: TypeAlias = npt.NDArray[np.uint64]
Int64s: TypeAlias = npt.NDArray[np.int64]

BITS = 64
MIN_SHINGLES = 64
"""Documents with fewer shingles must be kept out of `hamming.links`: they go by MinHash alone.

One changed word or character alters five shingles of n, and so about 64 / pi * arccos(1 - 5 / n) bits: 8 where n is
64, more than any distance that may be asked for. Four of five pairs of shorter documents above Jaccard 0.9 (154 of
193) have equal sets, and so equal MinHash signatures, too. Measured, by shingles of the shorter document:

    shingles                  16-31   32-63   64-127   128-255   256-1023   1024-
    pairs at 0.9 < J < 0.999     10      29      153       368      1,827   2,363
    share within 3             0.30    0.17     0.31      0.28       0.45    0.56
    of J <= 0.95 within 3      0.25    0.12     0.21      0.22       0.28    0.23
"""


def fingerprints(found: Shingles) -> UInt64s:
    """SimHash of each document: uint64[n]. Each occurrence of a shingle counts 1.

    A document without shingles has 0, which says nothing: it must not be compared (see `MIN_SHINGLES`).

    Raises InputError for shingles that are not what they should be.
    """
    values, offsets = checked(found.values, found.offsets)
    return _fingerprints(values, offsets, np.empty(BITS, np.uint64), np.empty(16, np.uint64))


@inlined
def _add(a: Int, b: Int, c: Int) -> tuple[Int, Int]:
    """Sum and carry of three bits in each of 64 places."""
    half = a ^ b
    return half ^ c, a & b | half & c


@inlined
def _add_four(words: UInt64s, i: Int, ones: Int, twos: Int) -> tuple[Int, Int, Int]:
    """Add 4 words, from place i on, to 64 counters of 2 bits held as two planes: new planes, and the carry."""
    ones, carry = _add(ones, words[i], words[i + np.uint64(1)])
    ones, other = _add(ones, words[i + np.uint64(2)], words[i + np.uint64(3)])
    twos, carry = _add(twos, carry, other)
    return ones, twos, carry


@inlined
def _add_eight(words: UInt64s, i: Int, ones: Int, twos: Int, fours: Int) -> tuple[Int, Int, Int, Int]:
    ones, twos, carry = _add_four(words, i, ones, twos)
    ones, twos, other = _add_four(words, i + np.uint64(4), ones, twos)
    fours, carry = _add(fours, carry, other)
    return ones, twos, fours, carry


@inlined
def _above(planes: UInt64s, n_planes: Int, bound: Int) -> Int:
    """Which of the 64 counters are greater than a bound: compared from the highest plane down."""
    above, equal = np.uint64(0), ~np.uint64(0)
    for k in range(n_planes - 1, -1, -1):
        plane = planes[np.uint64(k)]
        if bound >> np.int64(k) & 1:
            equal &= plane
        else:
            above |= equal & plane
            equal &= ~plane
    return above


@kernel
def _fingerprints(values: UInt64s, offsets: Int64s, planes: UInt64s, rest: UInt64s) -> UInt64s:
    """A tree of carry-save adders (Harley and Seal; Warren, "Hacker's Delight", 5-1) adds 16 words to four planes.

    planes: uint64[64], bit b of plane k is bit k of counter b. rest: uint64[16]. Both are scratch.
    """
    out = np.empty(len(offsets) - 1, np.uint64)
    for row in range(len(offsets) - 1):
        i, stop = offsets[row], offsets[row + 1]
        n, n_planes = stop - i, 4
        ones = twos = fours = eights = np.uint64(0)
        while i < stop:
            words, place = values, np.uint64(i)
            if stop - i < 16:  # zeros add nothing
                for k in range(16):
                    rest[k] = values[np.uint64(i + k)] if i + k < stop else np.uint64(0)
                words, place = rest, np.uint64(0)
            ones, twos, fours, carry = _add_eight(words, place, ones, twos, fours)
            ones, twos, fours, other = _add_eight(words, place + np.uint64(8), ones, twos, fours)
            eights, carry = _add(eights, carry, other)
            i += 16
            k = 4
            while carry != 0:
                if k == n_planes:
                    planes[k] = 0
                    n_planes += 1
                planes[k], carry = planes[k] ^ carry, planes[k] & carry
                k += 1
        planes[0], planes[1], planes[2], planes[3] = ones, twos, fours, eights
        # "More than half" in whole numbers, n odd or even; the bound may need more planes than any counter has.
        bound = n >> 1
        out[row] = _above(planes, n_planes, bound) if bound >> n_planes == 0 else np.uint64(0)
    return out
