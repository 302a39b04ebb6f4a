"""Signatures of a shard: what buckets, clusters and the order of priority need, without the text.

One file a shard. Row i speaks about the i-th living document that has a shingle; `keys` alone does not: it
holds the band keys of all documents of the file, packed with their positions and sorted, `bands` to a row,
so that a hash range of the whole corpus is one slice of each file.
Costs 64 bytes a document and 10 for each band (224 with 16 bands), and 10 to 25 us for a text of 2 kB.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curation.dedup.links import pack
from curation.dedup.minhash import Bands, band_keys, signatures
from curation.dedup.priority import Priority
from curation.dedup.sets import Shingles, sums
from curation.dedup.shingles import BY_CHARACTER, shingles_at
from curation.dedup.simhash import fingerprints
from curation.errors import RunError
from curation.shards import Shard, batches
from curation.text.spans import bounds, buffers
from curation.text.tables import UNICODE_VERSION

__all__ = ["COLUMNS", "Signing", "keys_of", "pieces", "sign_shard", "signed_table", "signing_of", "sums_fit"]

COLUMNS = ["row", "n_shingles", "shingle_sum", "simhash", "priority", "text_id", "doc_id"]
"""Of a signature file, beside what is made of the band keys."""

_PIECE_BYTES = 8 * 2**20
"""Text that is shingled at once: its shingles take up to three times as much memory."""


@dataclass(frozen=True, slots=True)
class Signing:
    """Everything that decides a document's signature. Two files can be compared only if it is the same."""

    shingle: int
    num_perm: int
    bands: int
    rows: int
    by_character: tuple[str, ...] = BY_CHARACTER
    version: int = 1
    """Raised whenever shingles, hashes or the file change."""
    unicode: str = UNICODE_VERSION

    @property
    def shape(self) -> Bands:
        """How signatures are cut."""
        return Bands(self.bands, self.rows)

    def shingles(self, texts: pa.Array, room: npt.NDArray[np.uint64] | None = None) -> Shingles:
        """Shingles of texts, as they are signed. For `room` see `shingles.shingles_at`."""
        return self.shingles_at(*bounds(*buffers(texts)), room)

    def shingles_at(
        self,
        data: npt.NDArray[np.uint8],
        starts: npt.NDArray[np.int64],
        ends: npt.NDArray[np.int64],
        room: npt.NDArray[np.uint64] | None = None,
    ) -> Shingles:
        """Shingles of the texts data[starts[i]:ends[i]], as they are signed."""
        return shingles_at(data, starts, ends, self.shingle, self.by_character, room)

    @classmethod
    def from_json(cls, text: bytes) -> Signing:
        """From the metadata of a file. Raises TypeError, KeyError or ValueError for what is not one."""
        found = json.loads(text)
        return cls(**{**found, "by_character": tuple(found["by_character"])})


def _schema(signing: Signing, n_priorities: int) -> pa.Schema:
    fields = [
        pa.field("row", pa.uint32()),
        pa.field("n_shingles", pa.uint32()),
        pa.field("shingle_sum", pa.uint64()),  # modulo 2^64: tells whether a text is the one that was signed
        pa.field("simhash", pa.uint64()),
        pa.field("priority", pa.list_(pa.uint64(), n_priorities)),
        pa.field("text_id", pa.binary(16)),
        pa.field("doc_id", pa.binary(16)),
        pa.field("marks", pa.list_(pa.uint16(), signing.bands)),  # of each band's key the highest bits, in order
        pa.field("keys", pa.list_(pa.uint64(), signing.bands)),
    ]
    return pa.schema(fields, metadata={"signing": json.dumps(asdict(signing))})


def sign_shard(shard: Shard, alive: npt.NDArray[np.bool_], signing: Signing, priority: Priority) -> pa.Table:
    """Sign the living documents of a shard.

    Args:
        alive: bool[rows of the shard].
        priority: gives each document its place in the order in which copies are kept.
    """
    columns: list[pa.RecordBatch] = []
    keys = [np.zeros((0, signing.bands), np.uint64)]
    room = _room()
    for rows, batch in pieces(shard, alive, ["text", "text_id", "doc_id", *priority.needs]):
        found = signing.shingles(batch.column("text"), room)
        counts = np.diff(found.offsets)
        signed = np.flatnonzero(counts)
        keys.append(band_keys(signatures(found, signing.num_perm), signing.bands, signing.rows)[signed])
        values = [
            pa.array(rows.astype(np.uint32)),
            pa.array(counts.astype(np.uint32)),
            pa.array(sums(found)),
            pa.array(fingerprints(found)),
            _lists(priority.of(batch, rows)),
            batch.column("text_id"),
            batch.column("doc_id"),
        ]
        columns.append(pa.RecordBatch.from_arrays(values, names=COLUMNS).take(pa.array(signed)))
    return signed_table(columns, np.concatenate(keys), signing, priority.width)


@cache
def _room() -> npt.NDArray[np.uint64]:
    """Where the shingles of one piece after the other lie. No more of it is touched, and takes memory, than is used."""
    return np.empty(2 * _PIECE_BYTES, np.uint64)


def signed_table(
    columns: Sequence[pa.RecordBatch], keys: npt.NDArray[np.uint64], signing: Signing, n_priorities: int
) -> pa.Table:
    """The table of a signature file from its columns and the band keys uint64[n, bands] of its documents."""
    schema = _schema(signing, n_priorities)
    plain = pa.schema([field for field in schema if field.name in COLUMNS])
    table = pa.Table.from_batches([batch.cast(plain) for batch in columns], schema=plain).combine_chunks()
    marks = (keys >> np.uint64(48)).astype(np.uint16)
    table = table.append_column(schema.field("marks"), _lists(marks))
    table = table.append_column(schema.field("keys"), _lists(pack(keys).reshape(-1, signing.bands)))
    return table.cast(schema).replace_schema_metadata(schema.metadata)


def keys_of(table: pa.Table) -> npt.NDArray[np.uint64]:
    """The packed and sorted band keys of a signature file: uint64[n * bands]."""
    parts: list[npt.NDArray[np.uint64]] = [chunk.flatten().to_numpy() for chunk in table.column("keys").chunks]
    if len(parts) == 1:
        return parts[0]
    return np.concatenate(parts) if parts else np.zeros(0, np.uint64)


def signing_of(table: pa.Table, where: object) -> Signing:
    """How the documents of a file were signed.

    Raises:
        RunError: the file holds no signatures.
    """
    try:
        return Signing.from_json((table.schema.metadata or {})[b"signing"])
    except (KeyError, TypeError, ValueError):
        raise RunError(f"{where} holds no signatures that this version can read. Make them anew.") from None


def pieces(
    shard: Shard, alive: npt.NDArray[np.bool_], columns: Sequence[str]
) -> Iterator[tuple[npt.NDArray[np.int64], pa.RecordBatch]]:
    """Living documents of a shard with their rows, some megabytes of text at a time."""
    for start, batch in batches(shard, list(dict.fromkeys(columns))):
        mask = alive[start : start + batch.num_rows]
        if not mask.all():
            batch = batch.filter(pa.array(mask))
        rows = start + np.flatnonzero(mask)
        step = max(1, batch.num_rows * _PIECE_BYTES // max(batch.column(0).nbytes, 1))
        for i in range(0, batch.num_rows, step):
            yield rows[i : i + step], batch.slice(i, step)


def _lists(values: npt.NDArray[np.generic]) -> pa.Array:
    """An array of n rows and c columns as lists of fixed size."""
    return pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), values.shape[1])


def sums_fit(found: Shingles, expected: npt.NDArray[np.uint64], where: object) -> None:
    """Refuse texts that are not those which were signed: the sums of their shingles differ.

    Raises:
        RunError: the shard was changed since.
    """
    if not np.array_equal(sums(found), expected):
        raise RunError(f"{where} does not hold the texts that were signed: it was changed. Start a new run.")
