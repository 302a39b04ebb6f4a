"""Exact deduplication: of all documents with the same `text_id`, the first in run order is kept.

Run order is (source path, place in it), so the kept set depends neither on the order of the
arguments nor on chunks and workers. Two texts are the same if they are equal after the normalisation
of `ids.normalise`: Unicode NFC, line ends, outer blanks.

Two passes. `scatter` writes, for each shard, its living rows sorted by text_id. `resolve` takes one
range of the hash at a time from all of those files and finds the groups; copies inside one shard
travel as one head, so even a text that fills half of the corpus stays within memory.
Costs about 28 bytes of disk and 2 us a document; memory is bounded by the number of hash ranges.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curation.shards import alive_mask, batches, write_table
from curation.steps import StepContext
from curation.verdicts import DataSetStep, Decision, StepConfig

__all__ = ["Exact", "ExactConfig", "hash_range"]

_BYTES_PER_DOCUMENT = 120
"""Peak memory of `resolve` for each head: keys, places, sort order and temporaries."""

_MEMBERS = pa.schema([("high", pa.uint64()), ("low", pa.uint64()), ("row", pa.uint32()), ("doc_id", pa.binary(16))])
_GROUPS = pa.schema(
    [
        ("shard", pa.uint32()),
        ("position", pa.uint64()),  # of the head in the shard's scatter file
        ("count", pa.uint32()),  # members of the group in this shard
        ("keeps", pa.bool_()),  # the head itself is the kept document
        ("kept_doc_id", pa.binary(16)),
        ("group_size", pa.int32()),
    ]
)


class ExactConfig(StepConfig):
    """Exact deduplication has no settings: equality has no threshold."""


class Exact(DataSetStep):
    """Keeps one of each group of documents with the same normalised text."""

    name: ClassVar[str] = "exact"
    version: ClassVar[int] = 1
    stage: ClassVar[str] = "dedup"
    summary: ClassVar[str] = "Drops documents whose normalised text stood earlier in the run."
    needs: ClassVar[tuple[str, ...]] = ("text_id", "doc_id")
    reasons: ClassVar[Mapping[str, str]] = {
        "exact.duplicate": "the same text (NFC, line ends, outer blanks) is kept elsewhere"
    }
    Config: ClassVar[type[StepConfig]] = ExactConfig
    passes: ClassVar[tuple[str, ...]] = ("scatter", "resolve")

    def n_items(self, pass_name: str, context: StepContext) -> int:
        if pass_name == "scatter":
            return len(context.shards)
        if not context.shards:
            return 0
        rows = sum(shard.rows for shard in context.shards)
        return max(1, -(-rows * _BYTES_PER_DOCUMENT // (context.memory_mb * 2**20 // 2)))

    def run_item(self, pass_name: str, item: int, context: StepContext) -> None:
        table = _scatter(item, context) if pass_name == "scatter" else self._resolve(item, context)
        write_table(context.item_path(pass_name, item), table, durable=False)

    def _resolve(self, item: int, context: StepContext) -> pa.Table:
        """Groups of one hash range over all shards: heads of every group of two or more documents."""
        low, high = hash_range(item, self.n_items("resolve", context))
        heads = [_heads(context.open_item("scatter", s), s, low, high) for s in range(len(context.shards))]
        keys_high, keys_low, shard, position, count, doc_id = (
            np.concatenate(part) for part in zip(*heads, strict=True)
        )
        order = np.lexsort((position, shard, keys_low, keys_high))
        keys_high, keys_low = keys_high[order], keys_low[order]
        first = _starts(keys_high, keys_low)
        group = np.cumsum(first) - 1
        sizes = np.bincount(group, weights=count[order]).astype(np.int64) if len(group) else np.zeros(0, np.int64)
        multiple = sizes[group] > 1 if len(group) else np.zeros(0, np.bool_)
        kept = doc_id[order][np.flatnonzero(first)][group] if len(group) else doc_id
        # Sorted by shard, so that the verdicts of one shard read one slice.
        by_shard = np.flatnonzero(multiple)[np.argsort(shard[order][multiple], kind="stable")]
        return pa.table(
            [
                pa.array(shard[order][by_shard]),
                pa.array(position[order][by_shard]),
                pa.array(count[order][by_shard]),
                pa.array(first[by_shard]),
                _as_binary(kept[by_shard]),
                pa.array(sizes[group][by_shard].astype(np.int32) if len(group) else np.zeros(0, np.int32)),
            ],
            schema=_GROUPS,
        )

    def verdicts(self, shard: int, context: StepContext) -> tuple[Decision, pa.RecordBatch]:
        """Expand the groups that touch one shard to its rows."""
        alive = alive_mask(context.previous, context.shards[shard])
        n_rows = len(alive)
        dropped = np.zeros(n_rows, np.bool_)
        group_size = np.ones(n_rows, np.int32)
        partner = np.zeros(n_rows, "V16")
        rows = context.open_item("scatter", shard).column("row").to_numpy()
        for item in range(self.n_items("resolve", context)):
            groups = context.open_item("resolve", item)
            slot = groups.column("shard").to_numpy()
            begin, end = np.searchsorted(slot, [shard, shard + 1])
            part = groups.slice(begin, end - begin)
            counts = part.column("count").to_numpy().astype(np.int64)
            heads = part.column("position").to_numpy().astype(np.int64)
            members = rows[_ranges(heads, counts)]
            dropped[members] = True
            group_size[members] = np.repeat(part.column("group_size").to_numpy(), counts)
            partner[members] = np.repeat(_from_binary(part.column("kept_doc_id")), counts)
            dropped[rows[heads[part.column("keeps").to_numpy().astype(np.bool_)]]] = False
        dropped, group_size, partner = dropped[alive], group_size[alive], partner[alive]
        decision = Decision(keep=~dropped, reason=np.where(dropped, 0, -1).astype(np.int16))
        similarity = pa.array(np.ones(len(dropped), np.float32), mask=~dropped)
        columns = [_as_binary(partner, ~dropped), similarity, pa.array(group_size)]
        names = [score.name for score in self.score_columns]
        return decision, pa.RecordBatch.from_arrays(columns, names=names)


def _scatter(item: int, context: StepContext) -> pa.Table:
    """Living rows of one shard, sorted by text_id and then by row."""
    shard = context.shards[item]
    alive = alive_mask(context.previous, shard)
    text_ids, doc_ids = [np.zeros(0, "V16")], [np.zeros(0, "V16")]
    for _, batch in batches(shard, ["text_id", "doc_id"]):
        text_ids.append(_from_binary(batch.column("text_id")))
        doc_ids.append(_from_binary(batch.column("doc_id")))
    rows = np.flatnonzero(alive)
    keys = np.concatenate(text_ids)[rows].view(">u8").reshape(-1, 2).astype(np.uint64)
    order = np.lexsort((rows, keys[:, 1], keys[:, 0]))
    columns = [
        pa.array(keys[order, 0]),
        pa.array(keys[order, 1]),
        pa.array(rows[order].astype(np.uint32)),
        _as_binary(np.concatenate(doc_ids)[rows][order]),
    ]
    return pa.table(columns, schema=_MEMBERS)


def hash_range(item: int, n_items: int) -> tuple[int, int]:
    """[low, high) of the 64-bit hashes that one of `n_items` items takes."""
    return (item << 64) // n_items, ((item + 1) << 64) // n_items


def _heads(members: pa.Table, shard: int, low: int, high: int) -> tuple[npt.NDArray[np.generic], ...]:
    """First member of each text in one shard's hash range: keys, shard, position, count, doc_id."""
    keys_high = _numpy(members, "high", np.uint64)
    begin = int(np.searchsorted(keys_high, np.uint64(low)))
    end = len(keys_high) if high >= 1 << 64 else int(np.searchsorted(keys_high, np.uint64(high)))
    keys_high = keys_high[begin:end]
    keys_low = _numpy(members, "low", np.uint64)[begin:end]
    starts = np.flatnonzero(_starts(keys_high, keys_low))
    count = np.diff(np.append(starts, len(keys_high))).astype(np.uint32)
    doc_id = _from_binary(members.column("doc_id").slice(begin, end - begin))[starts]
    place = (starts + begin).astype(np.uint64)
    return keys_high[starts], keys_low[starts], np.full(len(starts), shard, np.uint32), place, count, doc_id


def _starts(high: npt.NDArray[np.uint64], low: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
    """True where a new key begins in sorted keys."""
    start = np.ones(len(high), np.bool_)
    start[1:] = (high[1:] != high[:-1]) | (low[1:] != low[:-1])
    return start


def _ranges(starts: npt.NDArray[np.int64], counts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Concatenation of start, start + 1, ... start + count - 1 for each pair: ([5, 9], [2, 1]) -> [5, 6, 9]."""
    before = np.cumsum(counts) - counts
    return np.repeat(starts - before, counts) + np.arange(int(counts.sum()))


def _numpy(table: pa.Table, column: str, dtype: type[np.uint64]) -> npt.NDArray[np.uint64]:
    found = table.column(column)
    return found.to_numpy() if found.num_chunks else np.zeros(0, dtype)


def _from_binary(column: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.void]:
    """A fixed 16-byte column without nulls as V16[n]."""
    if isinstance(column, pa.ChunkedArray):
        parts = [_from_binary(chunk) for chunk in column.chunks]
        return np.concatenate(parts) if parts else np.zeros(0, "V16")
    if len(column) == 0:
        return np.zeros(0, "V16")
    data = np.frombuffer(column.buffers()[1], np.uint8)
    return data[column.offset * 16 : (column.offset + len(column)) * 16].view("V16")


def _as_binary(values: npt.NDArray[np.void], null: npt.NDArray[np.bool_] | None = None) -> pa.Array:
    """V16[n] as a fixed 16-byte column, null where `null` is true."""
    validity = None
    if null is not None:
        validity = pa.py_buffer(np.packbits(~null, bitorder="little").tobytes())
    return pa.Array.from_buffers(
        pa.binary(16), len(values), [validity, pa.py_buffer(np.ascontiguousarray(values).tobytes())]
    )
