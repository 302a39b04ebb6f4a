"""Sample documents of a report: chosen by a hash of their identity, read by their place.

The same run gives the same samples, in whatever order its shards are read and however it was cut into shards:
of all candidates those with the smallest key are taken, and the key comes from `doc_id`. A reservoir holds a
handful of places (shard, row), never a text; the texts are read at the end, a few hundred bytes each.
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curation.errors import RunError
from curation.report.compare import COMPARED_BYTES
from curation.report.excerpt import Excerpt, take
from curation.shards import Shard, open_table

__all__ = [
    "Place",
    "Reservoir",
    "Sampled",
    "find_documents",
    "priorities",
    "read_samples",
    "rows_at",
    "salted",
    "whole",
]

Rows = npt.NDArray[np.int64]
Keys = npt.NDArray[np.uint64]
Place = tuple[int, int]
"""Index of the shard, row in it."""

_COLUMNS = ("doc_id", "id", "source", "url", "line", "byte_offset", "text")


@dataclass(frozen=True, slots=True)
class Sampled:
    """A document as the report shows it."""

    doc_id: str
    id: str
    source: str
    url: str | None
    line: int
    byte_offset: int | None
    text: Excerpt
    head: bytes = b""
    """The first `COMPARED_BYTES` of the text, if it is to be compared with another."""


class Reservoir:
    """The `size` documents with the smallest (distance, key) of all that were offered."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.offered = 0
        self._held: list[tuple[float, int, Place]] = []

    def offer(self, shard: int, rows: Rows, keys: Keys, distances: npt.NDArray[np.float64] | None = None) -> None:
        """Offer rows of a shard. keys: uint64[n]; distances: float64[n], smaller is better, all equal if None."""
        self.offered += len(rows)
        if not len(rows):
            return
        far = np.zeros(len(rows)) if distances is None else distances
        if len(rows) > self.size:
            near = far <= np.partition(far, self.size - 1)[self.size - 1]
            rows, keys, far = rows[near], keys[near], far[near]
        if len(rows) > 4 * self.size:
            # Many at the same distance: only those with small keys can win, but keep all that are nearer.
            limit = np.partition(keys, self.size - 1)[self.size - 1]
            near = (far < far.max()) | (keys <= limit)
            rows, keys, far = rows[near], keys[near], far[near]
        order = np.lexsort((keys, far))[: self.size]
        fresh = [(float(far[i]), int(keys[i]), (shard, int(rows[i]))) for i in order]
        self._held = sorted(self._held + fresh)[: self.size]

    def merge(self, other: Reservoir) -> None:
        """Take over what another reservoir holds."""
        self.offered += other.offered
        self._held = sorted(self._held + other._held)[: self.size]

    @property
    def places(self) -> list[Place]:
        """Places of the chosen documents, best first."""
        return [place for _, _, place in self._held]


def whole(column: pa.ChunkedArray) -> pa.Array:
    """A column of a table as one array."""
    if pa.types.is_dictionary(column.type):
        column = column.unify_dictionaries()
    found = column.combine_chunks()
    return found.chunk(0) if isinstance(found, pa.ChunkedArray) and found.num_chunks == 1 else found


def priorities(doc_ids: pa.FixedSizeBinaryArray) -> Keys:
    """A key for each document: the first 8 bytes of its doc_id, which is a cryptographic hash. uint64[n]."""
    data = np.frombuffer(doc_ids.buffers()[1], np.uint8)[16 * doc_ids.offset : 16 * (doc_ids.offset + len(doc_ids))]
    return np.ascontiguousarray(data.reshape(-1, 16)[:, :8]).view(">u8").reshape(-1).astype(np.uint64)


def salted(keys: Keys, salt: str) -> Keys:
    """Other keys from the same ones, so that not every list shows the same documents (splitmix64's finaliser)."""
    seed = np.uint64(zlib.crc32(salt.encode()) * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF)
    mixed = keys ^ seed
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(mixed ^ (mixed >> np.uint64(31)))


def read_samples(
    shards: Sequence[Shard], places: Iterable[Place], compared: Container[Place] = ()
) -> dict[Place, Sampled]:
    """Read documents at their places, one shard at a time; of each text only the beginning is touched.

    Args:
        compared: of these more is read, to find where they differ from another.
    """
    return {
        place: _sampled(batch, row, COMPARED_BYTES if place in compared else 0)
        for place, batch, row in rows_at(shards, places)
    }


def rows_at(shards: Sequence[Shard], places: Iterable[Place]) -> Iterator[tuple[Place, pa.RecordBatch, int]]:
    """Each place once, with the mapped batch that holds it and its row in there; shard after shard."""
    by_shard: dict[int, list[int]] = defaultdict(list)
    for shard, row in set(places):
        by_shard[shard].append(row)
    for shard, rows in sorted(by_shard.items()):
        reader = open_table(shards[shard].path, rows=shards[shard].rows)
        start = 0
        for i in range(reader.num_record_batches):
            batch = reader.get_batch(i)
            for row in rows:
                if start <= row < start + batch.num_rows:
                    yield (shard, row), batch, row - start
            start += batch.num_rows


def _sampled(batch: pa.RecordBatch, row: int, head_bytes: int) -> Sampled:
    cells: dict[str, Any] = {name: batch.column(name)[row] for name in _COLUMNS}
    text = memoryview(cells["text"].as_buffer())
    return Sampled(
        doc_id=cells["doc_id"].as_py().hex(),
        id=_short(cells["id"]),
        source=cells["source"].as_py(),
        url=_short(cells["url"]) if cells["url"].is_valid else None,
        line=cells["line"].as_py(),
        byte_offset=cells["byte_offset"].as_py(),
        text=take(text),
        head=bytes(text[:head_bytes]),
    )


def _short(cell: pa.StringScalar) -> str:
    """An id or address, cut and masked."""
    excerpt = take(memoryview(cell.as_buffer()), 120)
    return excerpt.text + ("..." if excerpt.cut else "")


def find_documents(shards: Sequence[Shard], wanted: Iterable[bytes]) -> dict[bytes, Place]:
    """Where the documents with these doc_ids stand. Reads 16 bytes a document, nothing if none is wanted.

    A shard that cannot be opened is passed over: the pass over the verdicts has named it already.
    """
    sought = sorted(set(wanted))
    found: dict[bytes, Place] = {}
    if not sought:
        return found
    heads = np.array(sorted({int.from_bytes(doc_id[:8], "big") for doc_id in sought}), np.uint64)
    known = set(sought)
    for index, shard in enumerate(shards):
        try:
            reader = open_table(shard.path, rows=shard.rows)
        except RunError:
            continue
        start = 0
        for i in range(reader.num_record_batches):
            doc_ids = reader.get_batch(i).column("doc_id")
            keys = priorities(doc_ids)
            slot = np.minimum(np.searchsorted(heads, keys), len(heads) - 1)
            for row in np.flatnonzero(heads[slot] == keys).tolist():
                doc_id = doc_ids[row].as_py()
                if doc_id in known:
                    found[doc_id] = (index, start + row)
            start += len(doc_ids)
            if len(found) == len(known):
                return found
    return found
