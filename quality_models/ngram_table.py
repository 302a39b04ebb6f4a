"""Static hash tables of n-grams: one slot each, found by one pilot; fingerprints in place of keys.

Keys are spread over buckets of about five. Each bucket has a number, its pilot, by which all its keys fall into
free slots: the builder tries 0, 1, 2 ... until one does, full buckets first. So a look-up reads one pilot and one
slot, a table is 98 % full, and pilots cost 3.2 bits a key. A slot holds a few bits of the hash, the fingerprint, to
tell other keys: with b bits, one of 2^b n-grams that are not in the table is taken for one that is.

For a key x, uint64, already mixed (`mixed`), with 32-bit multiply and shift in place of a division:

    bucket      = (x >> 32) * n_buckets >> 32
    slot        = (((x ^ pilots[bucket] * PILOT) * SLOT mod 2^64) >> 32) * n_slots >> 32
    fingerprint = x & (1 << bits) - 1

The kernel that looks up (curation.filters.perplexity.ngram) has the same three lines. Building takes half a second
a million keys, plus a second to compile. Method: Pibiri and Trani, "PTHash" (arXiv:2104.10402).
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numba
import numpy as np
import numpy.typing as npt

__all__ = ["FIRST", "KEYS_PER_BUCKET", "MULTIPLIER", "PILOT", "SLOT", "Placed", "extended", "mixed", "place"]

UInt64s: TypeAlias = npt.NDArray[np.uint64]

MULTIPLIER = 0x9E3779B97F4A7C15
"""An n-gram's hash is that of its first n - 1 characters times this, plus the number of the last, plus 1."""
FIRST = 0xD6E8FEB86659FD93
PILOT = 0xC2B2AE3D27D4EB4F
SLOT = 0xFF51AFD7ED558CCD
KEYS_PER_BUCKET = 5
LOADS = (0.98, 0.93, 0.85, 0.7, 0.5)
MOST_PILOTS = 1 << 16


class Placed(NamedTuple):
    """slots: int64[n], where each key lies; pilots: uint16[n_buckets]; n_slots."""

    slots: npt.NDArray[np.int64]
    pilots: npt.NDArray[np.uint16]
    n_slots: int


def extended(hashes: UInt64s, last: npt.NDArray[np.int64]) -> UInt64s:
    """Hashes of n-grams from those of what stands before their last characters, and the numbers of these."""
    return hashes * np.uint64(MULTIPLIER) + last.astype(np.uint64) + np.uint64(1)


def mixed(hashes: UInt64s) -> UInt64s:
    """Every bit of the result depends on every bit of a hash."""
    x = (hashes ^ hashes >> np.uint64(32)) * np.uint64(FIRST)
    return x ^ x >> np.uint64(29)


def place(keys: UInt64s) -> Placed:
    """A slot of its own for each of n keys (uint64[n], mixed).

    Raises ValueError where two keys are equal, which with 64 bits one set of a million in ten million has.
    """
    if len(np.unique(keys)) != len(keys):
        raise ValueError(f"expected {len(keys):,} different hashes of n-grams, found two that are equal")
    n_buckets = len(keys) // KEYS_PER_BUCKET + 1
    buckets = ((keys >> np.uint64(32)) * np.uint64(n_buckets) >> np.uint64(32)).astype(np.int64)
    by_bucket = np.argsort(buckets, kind="stable")
    counts = np.bincount(buckets, minlength=n_buckets)
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    largest_first = np.argsort(-counts, kind="stable")
    for load in LOADS:
        n_slots = int(len(keys) / load) + 1
        pilots, slots = np.zeros(n_buckets, np.uint16), np.zeros(len(keys), np.int64)
        if _search(keys[by_bucket], starts, largest_first, n_slots, pilots, slots):
            found = np.empty(len(keys), np.int64)
            found[by_bucket] = slots
            return Placed(found, pilots, n_slots)
    raise ValueError(f"expected to place {len(keys):,} n-grams with {MOST_PILOTS:,} pilots, found none that fit")


@numba.njit(nogil=True)  # type: ignore[untyped-decorator]
def _search(
    keys: UInt64s,
    starts: npt.NDArray[np.int64],
    largest_first: npt.NDArray[np.int64],
    n_slots: int,
    pilots: npt.NDArray[np.uint16],
    slots: npt.NDArray[np.int64],
) -> bool:
    """Fills `pilots` and `slots` (of `keys`, which lie by bucket); False where a bucket fits nowhere."""
    taken = np.zeros(n_slots, np.bool_)
    half, size = np.uint64(32), np.uint64(n_slots)
    for bucket in largest_first:
        first, end = starts[bucket], starts[bucket + 1]
        if first == end:
            break
        placed = False
        for pilot in range(MOST_PILOTS):
            turn = np.uint64(pilot) * np.uint64(PILOT)
            n = first
            while n < end:
                slot = np.int64(((keys[n] ^ turn) * np.uint64(SLOT) >> half) * size >> half)
                if taken[slot]:
                    break
                taken[slot] = True
                slots[n] = slot
                n += 1
            if n == end:
                pilots[bucket] = pilot
                placed = True
                break
            for i in range(first, n):
                taken[slots[i]] = False
        if not placed:
            return False
    return True
