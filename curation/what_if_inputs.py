"""Data-set steps in question: would `exact` or `near` look at other documents than they did?

Then saved verdicts do not say what they would find, and only a run does. What can be said: how many documents would leave
or enter before the step, and how many were dropped for one that would be gone. Costs, beside the pass that decides, a
second look at such a step's verdict files, and only where a kept document with copies would be gone; memory is 1 bit a
document and step, and 16 bytes for each such kept document.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from curation.report.samples import whole
from curation.shards import Shard, open_table
from curation.steps import PlacedStep
from curation.what_if_outcomes import Outcomes, Redecided, verdict_table

__all__ = ["ChangedInput", "InputWatch", "doc_ids"]

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class ChangedInput:
    """A data-set step that would look at other documents than it did."""

    step: str
    leave: int
    """Documents that it looked at and that would be dropped before it."""
    enter: int
    """Documents that it did not look at and that would surely reach it."""
    may_enter: int
    """Documents that would reach it if filters that have not judged them yet let them."""
    orphans: int
    """Documents that it dropped for one that would be gone, and that would still reach it: it may keep some of them."""


@dataclass
class _Seen:
    """What is known of one data-set step."""

    reached: list[npt.NDArray[np.uint8]] = field(default_factory=list)
    """For each shard which documents would surely reach it again, a bit each."""
    heads: list[pa.Array] = field(default_factory=list)
    """doc_id of kept documents with copies that would be gone before it."""
    leave: int = 0
    enter: int = 0
    may_enter: int = 0


class InputWatch:
    """Adds up, shard after shard in their order, what changes before each data-set step."""

    def __init__(self, placed: Sequence[PlacedStep]) -> None:
        self._placed = placed
        self._seen: dict[int, _Seen] = {}

    def add(self, shard: Shard, found: Redecided, outcomes: Outcomes) -> None:
        """Add one shard."""
        for index, reached in found.reached.items():
            seen = self._seen.setdefault(index, _Seen())
            seen.reached.append(np.packbits(reached))
            table, name = found.tables[index], self._placed[index].name
            looked = _mask(whole(table.column("keep")).is_valid())
            first = np.array([outcome.waiting[:1] == (name,) for outcome in outcomes.all], np.bool_)
            later = np.array([name in outcome.waiting[1:] for outcome in outcomes.all], np.bool_)
            gone = looked & ~reached
            seen.leave += int(gone.sum())
            seen.enter += int(first[found.after].sum())
            seen.may_enter += int(later[found.after].sum())
            heads = np.flatnonzero(gone & _has_copies(table))
            if len(heads):
                seen.heads.append(doc_ids(shard, heads))

    def changed(self, shards: Sequence[Shard]) -> Iterator[ChangedInput]:
        """The steps whose input changes."""
        for index, seen in sorted(self._seen.items()):
            if seen.leave or seen.enter or seen.may_enter:
                placed = self._placed[index]
                orphans = _orphans(placed, seen, shards) if seen.heads else 0
                yield ChangedInput(placed.name, seen.leave, seen.enter, seen.may_enter, orphans)


def doc_ids(shard: Shard, rows: npt.NDArray[np.int64]) -> pa.FixedSizeBinaryArray:
    """doc_id of some rows of a shard, without a look at its texts."""
    reader = open_table(shard.path, None, shard.rows)
    parts = [reader.get_batch(i).column("doc_id") for i in range(reader.num_record_batches)]
    return whole(pa.chunked_array(parts, pa.binary(16)).take(pa.array(rows)))


def _has_copies(table: pa.Table) -> Mask:
    """Kept documents for which others were dropped."""
    if "group_size" not in table.column_names:
        return np.zeros(table.num_rows, np.bool_)
    sizes = whole(table.column("group_size")).fill_null(1).to_numpy(zero_copy_only=False)
    return np.asarray(_mask(whole(table.column("keep")).fill_null(False)) & (sizes > 1), np.bool_)


def _orphans(placed: PlacedStep, seen: _Seen, shards: Sequence[Shard]) -> int:
    """Documents that would reach the step again and that it had dropped for one that is gone."""
    gone = whole(pa.chunked_array(seen.heads, pa.binary(16)))
    count = 0
    for shard, bits in zip(shards, seen.reached, strict=True):
        table = verdict_table(placed, shard)
        reached = np.unpackbits(bits, count=shard.rows).astype(np.bool_)
        copies = np.flatnonzero(reached & ~_mask(whole(table.column("keep")).fill_null(True)))
        if len(copies):
            count += int(pc.sum(pc.is_in(whole(table.column("kept_doc_id").take(pa.array(copies))), gone)).as_py() or 0)
    return count


def _mask(values: pa.Array) -> Mask:
    return np.array(values.to_numpy(zero_copy_only=False), np.bool_)
