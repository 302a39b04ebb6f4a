"""Groups of copies: how many of each size, the largest ones, and which of their members are shown.

A group is counted where its kept document stands; one whose kept document stands in an earlier run is counted
by its dropped ones, all of which know its size. Costs 0.1 us a document for each step that finds copies.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curation.errors import RunError
from curation.report.samples import Keys, Place, Reservoir, Rows, priorities, whole
from curation.shards import Shard, open_table

__all__ = ["Groups", "find_members", "size_classes"]


class Groups:
    """Sizes of all groups of a step, and the largest `size` groups by the key of their kept document."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._held: dict[int, tuple[int, Place | None]] = {}
        self._here: dict[int, int] = {}
        self._copies_of_earlier: dict[int, int] = {}

    def add_kept(self, shard: int, rows: Rows, keys: Keys, sizes: npt.NDArray[np.int64]) -> None:
        """Groups by their kept documents in this run; keys: uint64[n] of their doc_ids (`priorities`)."""
        _count(self._here, sizes)
        for i in self._largest(keys, sizes):
            self._held[int(keys[i])] = int(sizes[i]), (shard, int(rows[i]))
        self._forget()

    def add_copies_of_earlier(self, kept_doc_ids: pa.FixedSizeBinaryArray, sizes: npt.NDArray[np.int64]) -> None:
        """Dropped documents whose kept document stands in an earlier run, with the sizes of their groups."""
        _count(self._copies_of_earlier, sizes)
        keys, first = np.unique(priorities(kept_doc_ids), return_index=True)
        for i in self._largest(keys, sizes[first]):
            self._held[int(keys[i])] = int(sizes[first[i]]), None
        self._forget()

    def _largest(self, keys: Keys, sizes: npt.NDArray[np.int64]) -> list[int]:
        order: list[int] = np.lexsort((keys, -sizes))[: self.size].tolist()
        return order

    def _forget(self) -> None:
        self._held = dict(self._ranked()[: self.size])

    def _ranked(self) -> list[tuple[int, tuple[int, Place | None]]]:
        return sorted(self._held.items(), key=lambda item: (-item[1][0], item[0]))

    @property
    def largest(self) -> Mapping[int, tuple[int, Place | None]]:
        """By key of the kept document: size of the group, and its place if it stands in this run; largest first."""
        return dict(self._ranked())

    @property
    def places(self) -> list[Place]:
        """Kept documents of the largest groups, so far as they stand in this run."""
        return [place for _, place in self.largest.values() if place is not None]

    @property
    def sizes(self) -> dict[int, int]:
        """Number of groups of each size. A group of k around an earlier document has k - 1 copies here."""
        found = dict(self._here)
        for size, copies in self._copies_of_earlier.items():
            found[size] = found.get(size, 0) + -(-copies // max(size - 1, 1))
        return found


def _count(into: dict[int, int], sizes: npt.NDArray[np.int64]) -> None:
    values, counts = np.unique(sizes, return_counts=True)
    for value, count in zip(values.tolist(), counts.tolist(), strict=True):
        into[value] = into.get(value, 0) + count


def find_members(folder: Path, shards: Sequence[Shard], wanted: Collection[int], size: int) -> dict[int, list[Place]]:
    """The `size` dropped members of each wanted group that are least like their kept document, then by doc_id.

    If these are copies, all are. A file that cannot be opened is passed over: the pass over the verdicts has named it.

    Args:
        folder: of the step.
        wanted: keys of kept documents.
    """
    found = {key: Reservoir(size) for key in wanted}
    keys_wanted = np.array(sorted(wanted), np.uint64)
    for index, shard in enumerate(shards if wanted else ()):
        try:
            table = open_table(folder / f"{shard.name}.arrow", rows=shard.rows).read_all()
            doc_ids = open_table(shard.path, rows=shard.rows).read_all().column("doc_id")
        except RunError:
            continue
        partner = whole(table.column("kept_doc_id"))
        rows = np.flatnonzero(partner.is_valid().to_numpy(zero_copy_only=False))
        keys = priorities(partner)[rows] if len(rows) else keys_wanted[:0]
        hit = np.isin(keys, keys_wanted)
        if not hit.any():
            continue
        rows, keys = rows[hit], keys[hit]
        similarity = table.column("similarity").take(pa.array(rows)).to_numpy().astype(np.float64)
        own = priorities(whole(doc_ids))[rows]
        for key in np.unique(keys).tolist():
            mine = keys == np.uint64(key)
            found[key].offer(index, rows[mine], own[mine], similarity[mine])
    return {key: reservoir.places for key, reservoir in found.items()}


def size_classes(sizes: Mapping[int, int]) -> list[tuple[str, int]]:
    """Groups by size: 2, 3, 4, 5 to 8, 9 to 16 ..."""
    classes: list[tuple[str, int]] = []
    low, high = 2, 2
    while sizes and low <= max(sizes):
        n = sum(count for size, count in sizes.items() if low <= size <= high)
        classes.append((str(low) if low == high else f"{low:,} to {high:,}", n))
        low = high + 1
        high = low if low <= 4 else 2 * high
    return classes
