"""Parts of the corpus that near-duplicates are looked for in: the shards of this run, and what earlier runs kept.

Documents are numbered through all parts, those of this run first. Only documents with a shingle have a number.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curation.dedup.sets import Shingles, joined
from curation.dedup.sign import Signing, sums_fit
from curation.errors import RunError
from curation.shards import Shard, text_places
from curation.steps import StepContext

__all__ = ["Part", "ShardPart", "firsts", "signed_shingles"]


class Part(ABC):
    """Signed documents of one file."""

    kept: npt.NDArray[np.bool_] | None = None
    """Of an earlier run: which of them it kept, bool[n]. None for this run's, which are yet to be judged."""

    @property
    @abstractmethod
    def table(self) -> pa.Table:
        """The signature file, as `sign.sign_shard` makes it."""

    @abstractmethod
    def shingles(self, positions: npt.NDArray[np.int64]) -> Shingles:
        """Shingles of the documents at these rows of `table`, which ascend: each once, or as often as it occurs."""

    @property
    def n(self) -> int:
        """Documents."""
        return int(self.table.num_rows)

    def column(self, name: str, positions: npt.NDArray[np.int64] | None = None) -> pa.Array:
        """A column of the signature file, or some rows of it; any but `keys`."""
        found = self.table.column(name)
        if positions is not None:
            found = found.take(pa.array(positions))
        return found.chunk(0) if found.num_chunks == 1 else found.combine_chunks()


class ShardPart(Part):
    """The signed documents of a shard of this run."""

    def __init__(self, index: int, context: StepContext, signing: Signing) -> None:
        self.shard = context.shards[index]
        self._index = index
        self._context = context
        self._signing = signing

    @cached_property
    def table(self) -> pa.Table:
        return self._context.open_item("sign", self._index)

    @property
    def n(self) -> int:
        return self._context.item_rows("sign", self._index)  # to number documents, files need not be opened

    def shingles(self, positions: npt.NDArray[np.int64]) -> Shingles:
        return signed_shingles(self.shard, self, positions, self._signing)


def signed_shingles(shard: Shard, part: Part, positions: npt.NDArray[np.int64], signing: Signing) -> Shingles:
    """Shingles of some documents, each as often as it occurs, from their texts in a shard.

    The shard's checksum was checked when it was signed, and hashing it again in every worker would cost more than
    the few texts that are read. Instead the shingles of each text must add up to the sum that was signed.

    Raises:
        RunError: the shard is gone, or does not hold the texts that were signed.
    """
    rows = part.column("row", positions).to_numpy().astype(np.int64)
    pieces = [signing.shingles_at(*places) for places in text_places(shard, rows)]
    found = joined(pieces)
    sums_fit(found, part.column("shingle_sum", positions).to_numpy(), shard.path)
    return found


def firsts(parts: Sequence[Part]) -> npt.NDArray[np.int64]:
    """Number of the first document of each part, and of all documents: int64[parts + 1].

    Raises:
        RunError: there are more documents than numbers.
    """
    numbers = np.concatenate([[0], np.cumsum([part.n for part in parts], dtype=np.int64)])
    if numbers[-1] >= 2**32:
        raise RunError(
            f"near-duplicates of {numbers[-1]:,} documents were asked for; at most 2^32 can be numbered. "
            "Run the inputs in several runs, each with `against` the ones before."
        )
    return numbers
