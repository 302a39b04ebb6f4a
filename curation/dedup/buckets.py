"""From signatures to links: one item takes one range of the hashes over all parts of the corpus.

Items are of two kinds. A MinHash item takes the band keys of its range from each signature file (one slice,
since they lie sorted) and links the documents that share one. A SimHash item takes the fingerprints whose
blocks of one table fall into its range, and links those at a small Hamming distance.
Documents of earlier runs take part if they were kept; a link between two of them is of no use.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curation.dedup import hamming, simhash
from curation.dedup.clusters import Clusters, by_item
from curation.dedup.exact import hash_range
from curation.dedup.links import bits_of, false_links, links_of_keys, repack, slice_of, window
from curation.dedup.parts import Part, firsts
from curation.dedup.sign import keys_of

__all__ = ["Plan", "cluster_table", "links_of_item", "plan"]

Numbers = npt.NDArray[np.uint32]

_BYTES_PER_KEY = 32
"""Peak memory of a MinHash item for each band key: keys as read, sorted, and its links."""
_BYTES_PER_FINGERPRINT = 64
"""Peak memory of a SimHash item for each fingerprint of its range."""

_FALSE_LINKS = 0.01
"""Links between unlike documents to expect for each document, at most: at one for each, clusters would run together."""

_LINKS = pa.schema([("a", pa.uint32()), ("b", pa.uint32())])
_CLUSTERS = pa.schema(
    [
        ("item", pa.uint32()),  # of `verify`
        ("number", pa.uint32()),
        ("first", pa.bool_()),  # a cluster begins here
    ]
)


@dataclass(frozen=True, slots=True)
class Plan:
    """How the hashes of a corpus are cut into items."""

    minhash_ranges: int
    simhash_ranges: int
    """Of each table."""
    blocks: int
    tables: int
    distance: int | None

    @property
    def n_items(self) -> int:
        return self.minhash_ranges + self.simhash_ranges * self.tables


def plan(documents: int, bands: int, distance: int | None, memory_mb: int) -> Plan:
    """Cut the hashes so that every item fits into half of the memory, and false links stay rare."""
    room = memory_mb * 2**20 // 2
    minhash_ranges = max(1, -(-documents * bands * _BYTES_PER_KEY // room))
    # A narrower range leaves room for more bits of the keys (links.window): 2 ranges, 1 bit.
    spare = 64 - bits_of(documents)
    while false_links(documents, bands, spare + minhash_ranges.bit_length() - 1) > documents * _FALSE_LINKS:
        minhash_ranges *= 2
    if distance is None:
        return Plan(minhash_ranges, 0, 0, 0, None)
    blocks, tables = hamming.plan_tables(documents, distance)
    return Plan(minhash_ranges, max(1, -(-documents * _BYTES_PER_FINGERPRINT // room)), blocks, tables, distance)


def links_of_item(item: int, cut: Plan, parts: Sequence[Part], n_new: int) -> pa.Table:
    """The links of one item: pairs of document numbers.

    Args:
        n_new: parts that belong to this run; the rest are of earlier runs.
    """
    numbers = firsts(parts)
    if item < cut.minhash_ranges:
        a, b = _minhash_links(item, cut.minhash_ranges, parts, numbers)
        kind = "minhash"
    else:
        table, part_of_table = divmod(item - cut.minhash_ranges, cut.simhash_ranges)
        a, b = _simhash_links(table, part_of_table, cut, parts, numbers)
        kind = "simhash"
    useful = (a < numbers[n_new]) | (b < numbers[n_new])
    columns = [pa.array(a[useful]), pa.array(b[useful])]
    return pa.table(columns, schema=_LINKS.with_metadata({"kind": kind}))


def _minhash_links(
    item: int, n_items: int, parts: Sequence[Part], numbers: npt.NDArray[np.int64]
) -> tuple[Numbers, Numbers]:
    low, high = hash_range(item, n_items)
    number_bits = bits_of(int(numbers[-1]))
    # Every file gives up as many bits as its documents need; what is compared is what the largest file has left.
    within = window(low, high, max(bits_of(part.n) for part in parts), number_bits)
    words = [np.zeros(0, np.uint64)]
    for part, first in zip(parts, numbers, strict=False):
        bits = bits_of(part.n)
        packed = slice_of(keys_of(part.table), low, high)
        if part.kept is not None:
            packed = packed[part.kept[(packed & np.uint64((1 << bits) - 1)).astype(np.int64)]]
        words.append(repack(packed, bits, number_bits, int(first), within=within))
    return links_of_keys(np.concatenate(words), number_bits)


def _simhash_links(
    table: int, item: int, cut: Plan, parts: Sequence[Part], numbers: npt.NDArray[np.int64]
) -> tuple[Numbers, Numbers]:
    assert cut.distance is not None
    low, high = hash_range(item, cut.simhash_ranges)
    found, places = [np.zeros(0, np.uint64)], [np.zeros(0, np.uint32)]
    for part, first in zip(parts, numbers, strict=False):
        fingerprints = part.column("simhash").to_numpy()
        key = hamming.table_key(fingerprints, table, cut.blocks, cut.distance)
        chosen = (key >= np.uint64(low)) & (key <= np.uint64(high - 1))
        chosen &= part.column("n_shingles").to_numpy() >= simhash.MIN_SHINGLES
        if part.kept is not None:
            chosen &= part.kept
        where = np.flatnonzero(chosen)
        found.append(fingerprints[where])
        places.append((where + first).astype(np.uint32))
    return hamming.links(np.concatenate(found), np.concatenate(places), cut.distance, table, cut.blocks)


def cluster_table(clusters: Clusters, items: npt.NDArray[np.int32]) -> pa.Table:
    """Members of all clusters by item of `verify`: `items` has that of each cluster."""
    columns = by_item(clusters, items)
    return pa.table([pa.array(column) for column in columns], schema=_CLUSTERS)
