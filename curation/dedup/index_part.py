"""A signature index as parts of the corpus: groups of its batches, with the band keys that a config asks for.

An index stores signatures, not band keys, so that it serves any threshold; with another number of permutations
the signatures are made anew of the shingles, 1 us for 300 of them. Everything else is read from the mapped file.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curation.dedup.index_file import Index
from curation.dedup.minhash import band_keys, signatures
from curation.dedup.parts import Part
from curation.dedup.sets import Shingles
from curation.dedup.sign import COLUMNS, Signing, signed_table

__all__ = ["IndexPart", "index_parts"]

_PART_DOCUMENTS = 50_000
"""Of an index that are a part together: 10 MB of band keys."""


class IndexPart(Part):
    """Consecutive batches of a signature index."""

    def __init__(self, index: Index, batches: range, signing: Signing) -> None:
        self._index = index
        self._batches = batches
        self._signing = signing
        self._borders = np.concatenate([[0], np.cumsum([index.rows[number] for number in batches], dtype=np.int64)])
        self.kept = np.ones(self.n, np.bool_)

    @property
    def n(self) -> int:
        return int(self._borders[-1])

    @property
    def table(self) -> pa.Table:
        return _signed(self)

    def sign(self) -> pa.Table:
        """The signature file, as a run's would be: 0.6 us a document with 16 bands, most of it to sort the keys."""
        batches = [self._documents(i) for i in range(len(self._batches))]
        keys = [np.zeros((0, self._signing.bands), np.uint64)]
        for number, batch in zip(self._batches, batches, strict=True):
            keys.append(band_keys(self._signatures(number, batch), *self._signing.shape))
        return signed_table([batch.select(COLUMNS) for batch in batches], np.concatenate(keys), self._signing, 1)

    def column(self, name: str, positions: npt.NDArray[np.int64] | None = None) -> pa.Array:
        if name == "marks":
            return super().column(name, positions)
        if positions is None:
            return pa.concat_arrays([self._documents(i).column(name) for i in range(len(self._batches))])
        found = [pa.array([], self._documents(0).schema.field(name).type)]
        for i, inside in self._split(positions):
            found.append(self._documents(i).column(name).take(pa.array(inside)))
        return pa.concat_arrays(found)

    def _documents(self, i: int) -> pa.RecordBatch:
        """Batch i of the part, with the columns that a signature file has besides."""
        batch = self._index.documents(self._batches[i])
        rows = np.arange(self._borders[i], self._borders[i + 1], dtype=np.uint32)
        # Earlier documents stay in any case, so they have no order of priority.
        priority = pa.FixedSizeListArray.from_arrays(pa.array(np.zeros(len(rows), np.uint64)), 1)
        no_sum = pa.array(np.zeros(len(rows), np.uint64))  # of texts, which an index does not have
        names = [*batch.schema.names, "row", "priority", "shingle_sum"]
        return pa.RecordBatch.from_arrays([*batch.columns, pa.array(rows), priority, no_sum], names=names)

    def _split(self, positions: npt.NDArray[np.int64]) -> Iterator[tuple[int, npt.NDArray[np.int64]]]:
        """For each batch of the part that has some of the positions: its place in the part, and its rows."""
        cuts = np.searchsorted(positions, self._borders)
        for i in range(len(self._batches)):
            if cuts[i + 1] > cuts[i]:
                yield i, positions[cuts[i] : cuts[i + 1]] - self._borders[i]

    def _signatures(self, number: int, batch: pa.RecordBatch) -> npt.NDArray[np.uint32]:
        """The stored ones, or others made of the shingles: with another number of permutations all are different."""
        n = self._signing.num_perm
        if n == self._index.signing.num_perm:
            stored: npt.NDArray[np.uint32] = batch.column("signature").flatten().to_numpy().reshape(-1, n)
            return stored
        return signatures(self._index.sets(number, np.arange(batch.num_rows)), n)

    def shingles(self, positions: npt.NDArray[np.int64]) -> Shingles:
        values, lengths = [np.zeros(0, np.uint64)], [np.zeros(1, np.int64)]
        for i, inside in self._split(positions):
            found = self._index.sets(self._batches[i], inside)
            values.append(found.values)
            lengths.append(np.diff(found.offsets))
        return Shingles(np.concatenate(values), np.cumsum(np.concatenate(lengths)))


@lru_cache(maxsize=1)
def _signed(part: IndexPart) -> pa.Table:
    """The signature file of a part, kept until another one is asked for: all of them may be too much."""
    return part.sign()


def index_parts(index: Index, signing: Signing) -> Iterator[IndexPart]:
    first = documents = 0
    for number, rows in enumerate(index.rows):
        if number > first and documents + rows > _PART_DOCUMENTS:
            yield IndexPart(index, range(first, number), signing)
            first, documents = number, 0
        documents += rows
    if documents:
        yield IndexPart(index, range(first, len(index.rows)), signing)
