"""One pass over the verdicts of a run: everything that the report draws, without holding any text.

Shard after shard, step after step: counts by reason, a sketch of each score, places of sample documents. Costs about
0.2 us a document, step and score; memory is one shard's verdicts plus sketches, whatever the size of the run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from curation.errors import RunError
from curation.records import EARLIER_SUFFIX
from curation.report.groups import Groups
from curation.report.safety_pass import SafetyPass, begin_safety
from curation.report.samples import Place, Reservoir, priorities, salted, whole
from curation.report.sketch import Sketch
from curation.report.tally import Tally, hosts
from curation.shards import Shard, item_marker, open_table

__all__ = ["Border", "Collected", "StepFolder", "StepPass", "collect"]

Mask = npt.NDArray[np.bool_]
N_SCRIPT_SAMPLE = 4000
"""Documents whose letters are counted for the table of scripts."""
N_GROUPS = 5
"""The largest groups of copies, which are shown with their texts."""


@dataclass(frozen=True)
class StepFolder:
    """A step of the run as it lies on disk."""

    index: int
    name: str
    folder: Path
    card: dict[str, Any]
    """`_step.json`: summary, reasons, scores, thresholds."""
    facts: dict[str, Any] = field(default_factory=dict)
    """What the step says about itself beside its verdicts; empty of most steps, and of runs before there were facts."""


@dataclass(frozen=True, slots=True)
class _Judged:
    """The rows of one shard that a step looked at; all arrays are n long."""

    shard: int
    rows: npt.NDArray[np.int64]
    keys: npt.NDArray[np.uint64]
    keep: Mask
    reasons: npt.NDArray[np.int64]
    """Index into the step's reasons, -1 where kept."""


class Border:
    """Documents around one threshold of one score."""

    def __init__(self, score: str, threshold: float, size: int) -> None:
        self.score = score
        self.threshold = threshold
        self.size = size
        self.counts: dict[int, npt.NDArray[np.int64]] = {}
        """By reason (-1 = kept): documents below, at, above the threshold."""
        self._near: dict[tuple[int, str], Reservoir] = {}

    def add(self, judged: _Judged, values: npt.NDArray[np.float64]) -> None:
        """values: float64[n], nan where undefined."""
        distance = values - self.threshold
        for reason in np.unique(judged.reasons).tolist():
            mine = judged.reasons == reason
            sides = (distance < 0, distance == 0, distance > 0)
            counts = np.array([(side & mine).sum() for side in sides], np.int64)
            self.counts[reason] = self.counts.get(reason, np.zeros(3, np.int64)) + counts
            for side, chosen in (("low", distance <= 0), ("high", distance >= 0)):
                hit = chosen & mine
                near = self._near.setdefault((reason, side), Reservoir(self.size))
                near.offer(judged.shard, judged.rows[hit], judged.keys[hit], np.abs(distance[hit]))

    @property
    def total(self) -> npt.NDArray[np.int64]:
        """Documents below, at, above."""
        return np.asarray(sum(self.counts.values(), np.zeros(3, np.int64)))

    @property
    def scored_kept(self) -> bool:
        """Whether any kept document has this score, so that the threshold has two sides."""
        return -1 in self.counts and bool(self.counts[-1].any())

    @property
    def drops_below(self) -> bool:
        """Whether the low side is the one that is dropped: it has the smaller share of kept documents."""
        kept, total = self.counts.get(-1, np.zeros(3, np.int64)), self.total
        if not total[0] or not total[2]:
            side = 0 if total[0] else 2
            return bool((kept[side] < 0.5 * total[side]) == (side == 0))
        return bool(kept[0] / total[0] < kept[2] / total[2])

    def places(self, *, kept: bool) -> list[Place]:
        """The nearest documents on their side of the threshold.

        Of the dropped ones, those of a reason that never fires on the other side are the threshold's own;
        others are shown only if there are none.
        """
        side, other = ("low", 2) if self.drops_below != kept else ("high", 0)
        reasons = [reason for reason in self.counts if (reason < 0) == kept]
        own = [reason for reason in reasons if not self.counts[reason][other] and self.counts[reason][2 - other] > 0]
        chosen = Reservoir(self.size)
        for reason in reasons if kept or not own else own:
            chosen.merge(self._near[reason, side])
        return chosen.places


@dataclass
class StepPass:
    """What the pass found out about one step."""

    step: StepFolder
    kept: Reservoir
    dropped: dict[str, Reservoir]
    counts: dict[str, int]
    """Documents by reason, counted from the verdict files."""
    sketches: dict[str, Sketch] = field(default_factory=dict)
    labels: dict[str, Tally] = field(default_factory=dict)
    """Scores that are words (a language, a class) or lists of them: in and kept by this step."""
    listed: set[str] = field(default_factory=set)
    """Which of them are lists: a document counts for each word in it."""
    borders: list[Border] = field(default_factory=list)
    groups: Groups | None = None
    """Groups of copies; steps that find copies only."""
    safety: SafetyPass | None = None
    """What was found by category; steps that look for unsafe text only."""
    docs_in: int = 0
    docs_kept: int = 0
    n_shards: int = 0
    not_drawn: set[str] = field(default_factory=set)
    seconds: list[tuple[str, float, float]] = field(default_factory=list)
    """Shard, seconds, peak MB."""


@dataclass
class Collected:
    """Everything that the pass over the run found."""

    steps: list[StepPass]
    sources: Tally
    hosts: Tally
    text_bytes: Sketch
    scripts: Reservoir
    """A sample of all documents, kept or not."""
    survivors: set[Place] = field(default_factory=set)
    """Which of `scripts` were kept by every step."""
    problems: list[str] = field(default_factory=list)


def collect(shards: Sequence[Shard], steps: Sequence[StepFolder]) -> Collected:
    """Pass once over all shards and their verdicts. What is missing or damaged is named in `problems`."""
    size = 4 if sum(len(step.card["reasons"]) for step in steps) <= 60 else 2
    found = Collected([_begin(step, size) for step in steps], Tally(), Tally(), Sketch(), Reservoir(N_SCRIPT_SAMPLE))
    candidates: dict[Place, bool] = {}
    for index, shard in enumerate(shards):
        try:
            reader = open_table(shard.path, rows=shard.rows)
        except RunError as error:
            found.problems.append(str(error))
            continue
        columns = _columns(reader)
        keys = priorities(columns["doc_id"])
        alive = _judge_pass(found, index, shard, keys)
        found.sources.add(columns["source"], alive)
        found.hosts.add(hosts(columns["url"]), alive)
        found.text_bytes.add(columns["n_bytes"], alive)
        found.scripts.offer(index, np.arange(shard.rows), salted(keys, "scripts"))
        held = {row for shard_index, row in found.scripts.places if shard_index == index}
        candidates.update({(index, row): bool(alive[row]) for row in held})
    found.survivors = {place for place in found.scripts.places if candidates[place]}
    return found


def _begin(step: StepFolder, size: int) -> StepPass:
    reasons = step.card["reasons"]
    names = {score["name"] for score in step.card["scores"]}
    found = StepPass(step, Reservoir(size), {reason: Reservoir(size) for reason in reasons}, dict.fromkeys(reasons, 0))
    found.safety = begin_safety(step.name, step.card)
    # Such a step has dozens of limits; its samples are chosen by category instead.
    for score, thresholds in step.card["thresholds"].items() if found.safety is None else ():
        found.borders += [Border(score, float(value), max(size - 1, 2)) for value in thresholds]
    if {"kept_doc_id", "group_size"} <= names:
        found.groups = Groups(N_GROUPS)
    return found


def _columns(reader: pa.ipc.RecordBatchFileReader) -> dict[str, Any]:
    """What the pass needs of a shard: doc_id, source, url and the bytes of each text. The text is not touched."""
    table = pa.Table.from_batches([reader.get_batch(i) for i in range(reader.num_record_batches)], reader.schema)
    lengths = pc.binary_length(table.column("text")).combine_chunks()
    return {
        **{name: whole(table.column(name)) for name in ("doc_id", "source", "url")},
        "n_bytes": lengths.to_numpy(zero_copy_only=False).astype(np.float64),
    }


def _judge_pass(found: Collected, index: int, shard: Shard, keys: npt.NDArray[np.uint64]) -> Mask:
    """Add one shard's verdicts of every step; returns which rows every step has kept: bool[rows]."""
    alive = np.ones(shard.rows, np.bool_)
    for step in found.steps:
        folder = step.step.folder
        if not (folder / "_items" / f"{shard.name}.json").exists():
            break
        try:
            marker = item_marker(folder, shard.name)
            table = open_table(folder / f"{shard.name}.arrow", marker["verdict_sha256"], shard.rows).read_all()
        except RunError as error:
            found.problems.append(str(error))
            break
        keep = whole(table.column("keep"))
        looked = keep.is_valid().to_numpy(zero_copy_only=False).astype(np.bool_)
        kept = keep.fill_null(False).to_numpy(zero_copy_only=False).astype(np.bool_)
        alive &= kept
        step.n_shards += 1
        step.seconds.append((shard.name, float(marker["seconds"]), float(marker["peak_rss_mb"])))
        rows = np.flatnonzero(looked)
        _add_verdicts(step, index, table, rows, kept[rows], keys[rows])
    return alive


def _add_verdicts(
    found: StepPass, shard: int, table: pa.Table, rows: npt.NDArray[np.int64], keep: Mask, keys: npt.NDArray[np.uint64]
) -> None:
    """Verdicts of the rows that a step looked at: reasons, scores, samples."""
    found.docs_in += len(rows)
    found.docs_kept += int(keep.sum())
    found.kept.offer(shard, rows[keep], salted(keys[keep], found.step.name))
    looked = table if len(rows) == table.num_rows else table.take(pa.array(rows))
    reason = whole(looked.column("reason"))
    codes = reason.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    for code, name in enumerate(reason.dictionary.to_pylist()):
        hit = codes == code
        if hit.any():
            found.counts[name] = found.counts.get(name, 0) + int(hit.sum())
            found.dropped.setdefault(name, Reservoir(found.kept.size)).offer(shard, rows[hit], salted(keys[hit], name))
    judged = _Judged(shard, rows, keys, keep, codes)
    for name in looked.column_names[2:]:
        if found.safety is None or name not in found.safety.not_counted:
            _add_score(found, name, whole(looked.column(name)), judged)
    if found.safety is not None:
        found.safety.add(shard, rows, keys, keep, codes, reason.dictionary.to_pylist(), looked)
    if found.groups is not None:
        _add_groups(found.groups, looked, judged, reason.dictionary.to_pylist())


def _add_score(found: StepPass, name: str, column: pa.Array, judged: _Judged) -> None:
    kind = column.type
    if pa.types.is_fixed_size_binary(kind):
        return  # kept_doc_id: shown beside the samples
    if (
        pa.types.is_boolean(kind)
        or pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_dictionary(kind)
    ):
        words = column.cast(pa.string()) if pa.types.is_boolean(kind) else column
        found.labels.setdefault(name, Tally()).add(words, judged.keep)
        return
    if (labels := _label_of_items(kind)) is not None:
        items = pc.struct_field(pc.list_flatten(column), labels)
        found.listed.add(name)
        found.labels.setdefault(name, Tally()).add_items(items, pc.list_parent_indices(column), judged.keep)
        return
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        found.not_drawn.add(name)
        return
    values = column.cast(pa.float64(), safe=False).fill_null(float("nan")).to_numpy(zero_copy_only=False)
    found.sketches.setdefault(name, Sketch()).add(values, judged.keep)
    for border in found.borders:
        if border.score == name:
            border.add(judged, values)


def _label_of_items(kind: pa.DataType) -> str | None:
    """Name of the label in a list of `{label, share}`, as the languages of a document with their shares; else None."""
    if not pa.types.is_list(kind) or not pa.types.is_struct(kind.value_type):
        return None
    fields = [kind.value_type.field(i) for i in range(kind.value_type.num_fields)]
    is_share = len(fields) == 2 and pa.types.is_string(fields[0].type) and pa.types.is_floating(fields[1].type)
    return str(fields[0].name) if is_share else None


def _add_groups(groups: Groups, looked: pa.Table, judged: _Judged, reasons: Sequence[str]) -> None:
    """A group is counted where its kept document stands, or by its copies if that is in an earlier run."""
    sizes = whole(looked.column("group_size")).fill_null(1).to_numpy(zero_copy_only=False).astype(np.int64)
    head = judged.keep & (sizes > 1)
    groups.add_kept(judged.shard, judged.rows[head], judged.keys[head], sizes[head])
    of_earlier = [code for code, name in enumerate(reasons) if name.endswith(EARLIER_SUFFIX)]
    copies = np.flatnonzero(np.isin(judged.reasons, of_earlier) & (sizes > 1))
    if len(copies):
        groups.add_copies_of_earlier(whole(looked.column("kept_doc_id")).take(pa.array(copies)), sizes[copies])
