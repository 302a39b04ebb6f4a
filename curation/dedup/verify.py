"""The truth about a cluster of candidates: exact shingle sets, and the greedy choice in order of priority.

Everything before only proposes. Here each text of a cluster is read once more, and of any two documents of it
with Jaccard > t at most one stays: in order of priority, a document is dropped if a kept one before it has
Jaccard > t with it, and names the first such. So the kept ones are independent, each dropped one has a kept
partner, and chains (A ~ B ~ C, where A and C share nothing) cannot form.

Memory is that of the sets of the texts read at once (8 bytes a shingle, three times), and 200 bytes for each
member. A cluster whose sets are larger than that is compared block by block (`choose.choose_in_blocks`), with
the same result.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curation.dedup.choose import choose, choose_in_blocks
from curation.dedup.parts import Part, firsts
from curation.dedup.sets import Shingles, distinct, joined
from curation.dedup.simhash import MIN_SHINGLES

__all__ = ["BOTH", "FOUND_BY", "GROUPS", "MINHASH", "NEITHER", "SIMHASH", "Found", "Verifier"]

Int64s = npt.NDArray[np.int64]

FOUND_BY = ("neither", "simhash", "minhash", "both")
"""Which signatures of a dropped document and its kept partner agree; `neither`: a third document joined the two."""
NEITHER, SIMHASH, MINHASH, BOTH = range(4)

GROUPS = pa.schema(
    [
        ("part", pa.uint32()),  # shard
        ("row", pa.uint32()),
        ("keep", pa.bool_()),
        ("earlier", pa.bool_()),  # the kept partner is of an earlier run
        ("kept_doc_id", pa.binary(16)),
        ("similarity", pa.float32()),
        ("group_size", pa.int32()),
        ("found_by", pa.int8()),
    ]
)
"""What an item of `verify` publishes: this run's documents in groups of two or more, by shard and row."""


class Found(NamedTuple):
    """What is known of the members of some clusters, in order of priority inside each."""

    number: npt.NDArray[np.uint32]
    starts: Int64s
    """Borders of the clusters: int64[c + 1]."""
    n_fixed: Int64s
    """Members of each cluster that earlier runs kept; they come first: int64[c]."""
    weight: Int64s
    """Shingles of each member: int64[n]."""
    simhash: npt.NDArray[np.uint64]
    part: Int64s
    position: Int64s


@dataclass(frozen=True)
class Verifier:
    """Decides clusters of candidates of a corpus."""

    parts: Sequence[Part]
    n_new: int
    """Parts of this run: its shards; those after them are of earlier runs."""
    threshold_ppm: int
    bands: int
    distance: int | None
    """Hamming distance up to which SimHash makes candidates."""
    max_values: int
    """Shingles held at once."""

    def groups(self, numbers: npt.NDArray[np.uint32], starts: Int64s) -> pa.Table:
        """Decide clusters: the documents of this run that are in groups of two or more.

        Args:
            numbers: members, cluster after cluster.
            starts: borders of the clusters in `numbers`: int64[c + 1].
        """
        members = self._in_order(numbers, starts)
        partner = np.full(len(numbers), -1, np.int64)
        similarity = np.ones(len(numbers), np.float32)
        for low, high in self._batches(members):
            begin, end = int(members.starts[low]), int(members.starts[high])
            if high - low == 1 and members.weight[begin:end].sum() > self.max_values:
                found, close = self._in_blocks(members, begin, end, int(members.n_fixed[low]))
            else:
                sets = self._sets(members, np.arange(begin, end))
                borders = members.starts[low : high + 1] - begin
                found, close = choose(sets, borders, members.n_fixed[low:high], self.threshold_ppm)
            partner[begin:end] = np.where(found >= 0, found + begin, -1)
            similarity[begin:end] = close
        return self._table(members, partner, similarity)

    def _in_order(self, numbers: npt.NDArray[np.uint32], starts: Int64s) -> Found:
        """Gather what the signature files say, and put each cluster into order of priority."""
        borders = firsts(self.parts)
        part = np.searchsorted(borders, numbers, side="right") - 1
        position = numbers.astype(np.int64) - borders[part]
        cluster = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        weight, simhash = np.zeros(len(numbers), np.int64), np.zeros(len(numbers), np.uint64)
        width = self.parts[0].table.schema.field("priority").type.list_size
        rank = np.zeros((len(numbers), width + 4), np.uint64)
        for index, places in _by_part(part, position):
            one, where = self.parts[index], position[places]
            weight[places] = one.column("n_shingles", where).to_numpy()
            simhash[places] = one.column("simhash", where).to_numpy()
            if index < self.n_new:  # earlier documents stay in any case: their order only names the partner
                rank[places, :width] = one.column("priority", where).flatten().to_numpy().reshape(-1, width)
            for column, name in ((width, "text_id"), (width + 2, "doc_id")):
                rank[places, column : column + 2] = _words(one.column(name, where))
        order = np.lexsort([*(rank[:, c] for c in range(width + 3, -1, -1)), part < self.n_new, cluster])
        fixed = np.bincount(cluster[part >= self.n_new], minlength=len(starts) - 1)
        return Found(numbers[order], starts, fixed, weight[order], simhash[order], part[order], position[order])

    def _batches(self, members: Found) -> Iterator[tuple[int, int]]:
        """Ranges of clusters whose sets fit into memory together; a cluster that does not fit stands alone."""
        until = np.concatenate([[0], np.cumsum(members.weight)])[members.starts]
        low = 0
        while low < len(members.starts) - 1:
            high = int(np.searchsorted(until, until[low] + self.max_values, side="right")) - 1
            high = max(high, low + 1)
            yield low, high
            low = high

    def _in_blocks(self, members: Found, begin: int, end: int, n_fixed: int) -> tuple[Int64s, npt.NDArray[np.float32]]:
        def read(places: Int64s) -> Shingles:
            return self._sets(members, places + begin)

        return choose_in_blocks(read, members.weight[begin:end], n_fixed, self.threshold_ppm, self.max_values)

    def _sets(self, members: Found, places: Int64s) -> Shingles:
        """Distinct shingles of some members, in the order of `places`."""
        found: list[Shingles] = []
        order: list[Int64s] = []
        for index, chosen in _by_part(members.part[places], members.position[places]):
            found.append(self.parts[index].shingles(members.position[places[chosen]]))
            order.append(chosen)
        read = np.concatenate([np.zeros(0, np.int64), *order])  # places in the order in which they were read
        return distinct(joined(found), np.argsort(read))

    def _table(self, members: Found, partner: Int64s, similarity: npt.NDArray[np.float32]) -> pa.Table:
        keeper = np.where(partner >= 0, partner, np.arange(len(partner)))
        size = np.bincount(keeper, minlength=len(partner))[keeper].astype(np.int32)
        rows = np.flatnonzero((size > 1) & (members.part < self.n_new))
        rows = rows[np.lexsort((members.position[rows], members.part[rows]))]
        dropped = partner[rows] >= 0
        found_by = np.zeros(len(rows), np.int8)
        found_by[dropped] = self._found_by(members, rows[dropped], partner[rows[dropped]])
        doc_ids, in_shard = np.zeros(len(rows), "V16"), np.zeros(len(rows), np.uint32)
        for index, places in _by_part(members.part[keeper[rows]], members.position[keeper[rows]]):
            ids = self.parts[index].column("doc_id", members.position[keeper[rows[places]]])
            doc_ids[places] = np.frombuffer(ids.buffers()[1], "V16", len(ids), ids.offset * 16)
        for index, places in _by_part(members.part[rows], members.position[rows]):
            in_shard[places] = self.parts[index].column("row", members.position[rows[places]]).to_numpy()
        columns = [
            members.part[rows].astype(np.uint32),
            in_shard,
            ~dropped,
            members.part[keeper[rows]] >= self.n_new,
            pa.FixedSizeBinaryArray.from_buffers(pa.binary(16), len(rows), [None, pa.py_buffer(doc_ids.tobytes())]),
            similarity[rows],
            size[rows],
            found_by,
        ]
        return pa.table([pa.array(column) for column in columns], schema=GROUPS)

    def _found_by(self, members: Found, rows: Int64s, partners: Int64s) -> npt.NDArray[np.int8]:
        """Which signatures of dropped documents and their kept partners agree: index into FOUND_BY."""
        found = np.zeros(len(rows), np.int8)
        if self.distance is not None:
            apart = np.bitwise_count(members.simhash[rows] ^ members.simhash[partners])
            long = np.minimum(members.weight[rows], members.weight[partners]) >= MIN_SHINGLES
            found[(apart <= self.distance) & long] |= SIMHASH
        same = self._marks(members, rows) == self._marks(members, partners)
        found[same.any(axis=1)] |= MINHASH
        return found

    def _marks(self, members: Found, places: Int64s) -> npt.NDArray[np.uint16]:
        """The band marks of some members: two documents that share a band have the same mark there, few others do."""
        marks = np.zeros((len(places), self.bands), np.uint16)
        for index, chosen in _by_part(members.part[places], members.position[places]):
            column = self.parts[index].column("marks", members.position[places[chosen]])
            marks[chosen] = column.flatten().to_numpy().reshape(-1, self.bands)
        return marks


def _by_part(part: Int64s, position: Int64s) -> Iterator[tuple[int, Int64s]]:
    """For each part that occurs: its index, and where its documents stand, by ascending position in it."""
    order = np.lexsort((position, part))
    borders = np.flatnonzero(np.diff(part[order], prepend=-1))
    for begin, end in pairwise([*borders, len(order)]):  # of no documents: no part
        yield int(part[order[begin]]), order[begin:end]


def _words(ids: pa.Array) -> npt.NDArray[np.uint64]:
    """16-byte ids as two numbers in the same order: uint64[n, 2]."""
    data = np.frombuffer(ids.buffers()[1], ">u8", 2 * len(ids), ids.offset * 16)
    return data.reshape(-1, 2).astype(np.uint64)
