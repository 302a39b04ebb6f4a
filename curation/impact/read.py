"""Both sides as they lie on disk, made into one table: a row a document of the sample, with its outcome on either side.

Of other code nothing is asked but the files of its run, in the form that every version writes them: the funnel, `_step.json`,
`_done.json`, the items' markers and the verdict files. Costs a look at each verdict, about 1 us a document and step, and for
tokens 0.1 s a MB of text the first time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from curation.errors import InputError, RunError
from curation.impact.classes import length_classes
from curation.impact.facts import (
    DOCUMENTS_SCHEMA,
    KEPT,
    NOT_JUDGED,
    Comparison,
    Outcome,
    SampleFacts,
    SideFacts,
    StepFacts,
)
from curation.impact.inputs import Sample
from curation.impact.seeds import cost_of, own_steps, step_folder
from curation.impact.sides import Side
from curation.impact.tokens import Counted
from curation.run import Run, read_json
from curation.shards import Shard, item_marker, open_table, shards_of

__all__ = ["compare_sides", "side_facts"]

Codes = npt.NDArray[np.int16]
_COLUMNS = ("doc_id", "id", "source", "text", "meta")


def compare_sides(
    base: Side, new: Side, folders: tuple[Path, Path], sample: Sample, tokens: Counted, notes: Sequence[str] = ()
) -> Comparison:
    """Read what both sides have judged.

    Args:
        folders: the finished runs of base and new.
        tokens: how many tokens each document has.

    Raises:
        InputError: the sides have no document in common.
        RunError: a file of a run is missing or damaged.
    """
    before, after = side_facts(base, folders[0]), side_facts(new, folders[1])
    outcomes = _Outcomes()
    old, now = _Judged(before, outcomes), _Judged(after, outcomes)
    rows = [_shard_rows(index, shard, now, old, tokens) for index, shard in enumerate(now.shards)]
    table = pa.concat_tables([DOCUMENTS_SCHEMA.empty_table(), *rows]).combine_chunks()
    table, told = _common(table, old)
    facts = SampleFacts(
        sample.name,
        sample.sha256,
        sample.about,
        table.num_rows,
        sum(read_json(folders[1] / "shards" / "_done.json")["quarantined"].values()),
        sample.population,
        tuple(Path(one).name for one in sample.files),
    )
    same = (
        ["Both sides are the same: same code of what judges, same settings, lists and models, so nothing can move."]
        if folders[0] == folders[1]
        else []
    )
    return Comparison(
        before,
        after,
        facts,
        table,
        tuple(outcomes.all),
        tokens.name,
        (*same, *notes, *told, *_step_notes(before, after)),
    )


class _Outcomes:
    """Outcomes by number; 0 is KEPT."""

    def __init__(self) -> None:
        self.all = [KEPT]
        self._numbers = {KEPT: 0}

    def number(self, outcome: Outcome) -> int:
        if outcome not in self._numbers:
            self._numbers[outcome] = len(self.all)
            self.all.append(outcome)
        return self._numbers[outcome]


class _Judged:
    """The verdicts of one side, shard by shard."""

    def __init__(self, side: SideFacts, outcomes: _Outcomes) -> None:
        self.side = side
        self.run = Run(side.run_folder)
        self.shards = shards_of(self.run)
        self.by_name = {shard.name: shard for shard in self.shards}
        self._outcomes = outcomes
        self._places: dict[bytes, tuple[Codes, Any]] | None = None

    def of(self, shard: Shard) -> tuple[Codes, pa.Array]:
        """Outcome of each document of a shard, and its language as the step `language` names it, null where it did not look."""
        codes = np.zeros(shard.rows, np.int16)
        languages = pa.nulls(shard.rows, pa.string())
        for step in self.side.steps:
            marker = item_marker(step.folder, shard.name)
            table = open_table(step.folder / f"{shard.name}.arrow", marker["verdict_sha256"], shard.rows).read_all()
            reasons = _whole(table.column("reason"))
            if isinstance(reasons.type, pa.DictionaryType):
                reasons = reasons.dictionary_decode()
            coded = reasons.dictionary_encode()
            numbers = [self._outcomes.number(Outcome(step.name, reason)) for reason in coded.dictionary.to_pylist()]
            indices = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
            codes = np.where((codes == 0) & (indices >= 0), np.array([*numbers, 0], np.int16)[indices], codes)
            if step.name == "language" and "language" in table.column_names:
                languages = _whole(table.column("language")).cast(pa.string())
        return codes.astype(np.int16), languages

    def place(self, ids: pa.Array) -> tuple[Codes, pa.Array]:
        """The same for documents by their doc_id, of whatever shard: -1 for those that this side does not have."""
        codes, languages, known = [np.zeros(0, np.int16)], [pa.array([], pa.string())], [pa.array([], pa.binary(16))]
        for shard in self.shards:
            its, spoken = self.of(shard)
            codes.append(its)
            languages.append(spoken)
            known.append(_column(shard, "doc_id"))
        at = pc.index_in(ids, pa.concat_arrays(known)).fill_null(-1).to_numpy(zero_copy_only=False)
        found = np.append(np.concatenate(codes), np.int16(-1))[at]
        return found, pa.concat_arrays([*languages, pa.nulls(1, pa.string())]).take(
            pa.array(at % (sum(map(len, codes)) + 1))
        )


def _shard_rows(index: int, shard: Shard, new: _Judged, base: _Judged, tokens: Counted) -> pa.Table:
    """The documents of one shard of the new side."""
    columns = {name: _column(shard, name) for name in _COLUMNS}
    after, spoken = new.of(shard)
    same = base.by_name.get(shard.name)
    before, once = base.of(same) if same is not None and same.sha256 == shard.sha256 else base.place(columns["doc_id"])
    characters = pc.utf8_length(columns["text"]).cast(pa.int64())
    meta = [_Meta(one) for one in columns["meta"].to_pylist()]
    sources = [Path(one).name for one in columns["source"].cast(pa.string()).to_pylist()]
    arrays = {
        "doc_id": columns["doc_id"],
        "shard": pa.array(np.full(shard.rows, index, np.int32)),
        "row": pa.array(np.arange(shard.rows, dtype=np.int64)),
        "id": columns["id"],
        "source": pa.array([one.source or name for one, name in zip(meta, sources, strict=True)], pa.string()),
        "language": pc.fill_null(pc.coalesce(spoken, once), NOT_JUDGED),
        "length": length_classes(characters.to_numpy(zero_copy_only=False)),
        "label": pa.array([one.label for one in meta], pa.string()),
        "characters": characters,
        "tokens": pa.array(tokens.of(columns["doc_id"]), pa.int64()),
        "stratum": pa.array([one.stratum for one in meta], pa.int32()),
        "weight": pa.array([one.weight for one in meta], pa.float64()),
        "before": pa.array(before, pa.int16()),
        "after": pa.array(after, pa.int16()),
    }
    return pa.Table.from_arrays([arrays[name] for name in DOCUMENTS_SCHEMA.names], schema=DOCUMENTS_SCHEMA)


class _Meta:
    """What a record says about itself beside its text: a label, and what it was drawn from and stands for."""

    __slots__ = ("label", "source", "stratum", "weight")

    def __init__(self, text: str | None) -> None:
        found = _mapping(text)
        drawn = found.get("sample")
        drawn = drawn if isinstance(drawn, dict) else {}
        quality, source = found.get("quality"), drawn.get("source")
        stratum, weight = drawn.get("stratum"), drawn.get("weight")
        self.label = quality if isinstance(quality, str) and quality else None
        self.source = source if isinstance(source, str) and source else None
        self.stratum = stratum if isinstance(stratum, int) and 0 <= stratum < 2**31 else 0
        self.weight = float(weight) if isinstance(weight, int | float) and 0 < weight < float("inf") else 1.0


def _mapping(text: str | None) -> dict[str, Any]:
    try:
        found = orjson.loads(text) if text else {}
    except orjson.JSONDecodeError:
        return {}
    return found if isinstance(found, dict) else {}


def _common(table: pa.Table, base: _Judged) -> tuple[pa.Table, list[str]]:
    """The documents that both sides have. Where their ingest differs some may be of one side alone: told, not counted."""
    there = pc.greater_equal(table.column("before"), 0)
    both = table.filter(there)
    only_new = table.num_rows - both.num_rows
    only_base = sum(shard.rows for shard in base.shards) - both.num_rows
    if not only_new and not only_base:
        return table, []
    note = (
        f"The two versions of ingest make different documents of the sample: {only_new:,} are of the new side alone and "
        f"{only_base:,} of the base alone. They stand in no table here; compare the two runs' shards."
    )
    if not both.num_rows:
        raise InputError(
            "the two sides have no document in common: their settings or code of ingest make other documents of the sample "
            f"({only_base:,} before, {only_new:,} now). Compare two configs whose `ingest` is the same."
        )
    return both, [note]


def _step_notes(base: SideFacts, new: SideFacts) -> list[str]:
    """What one side has and the other lacks."""
    old, now = [step.name for step in base.steps], [step.name for step in new.steps]
    notes = [f"The step `{name}` is new." for name in now if name not in old]
    notes += [f"The step `{name}` is gone." for name in old if name not in now]
    if [name for name in old if name in now] != [name for name in now if name in old]:
        notes.append(f"The steps stand in another order: before {', '.join(old)}; now {', '.join(now)}.")
    return notes


def side_facts(side: Side, folder: Path) -> SideFacts:
    """A side and its steps, from its run.

    Raises:
        RunError: a file is missing or damaged.
    """
    steps = tuple(_step_facts(folder, line, side.code.steps.get(line["name"], "")) for line in own_steps(folder))
    text = (folder / "config.yaml").read_text(encoding="utf-8")
    return SideFacts(side.label, side.commit, text, folder, steps)


def _step_facts(run: Path, line: Mapping[str, Any], code: str) -> StepFacts:
    folder = step_folder(run, line)
    card, done = read_json(folder / "_step.json"), read_json(folder / "_done.json")
    cost = cost_of(run, line)
    try:
        return StepFacts(
            name=card["name"],
            place=line["place"],
            version=int(card["version"]),
            folder=folder,
            config=card["config"],
            reasons=card["reasons"],
            thresholds=card.get("thresholds", {}),
            units={score["name"]: score["unit"] for score in card.get("scores", [])},
            digest=card["digest"],
            score_digest=card["score_digest"],
            code=code,
            docs_in=done["docs_in"],
            docs_kept=done["docs_kept"],
            dropped=done["dropped"],
            hits=_hits(card["name"], done.get("facts", {})),
            seconds=cost.seconds,
            scored=cost.scored,
            peak_rss_mb=cost.peak_rss_mb,
            cpu_seconds=cost.cpu_seconds,
        )
    except (KeyError, TypeError) as error:
        raise RunError(f"{folder} is of a version that this one cannot read: {error!r}. Choose a newer base.") from None


def _hits(name: str, facts: Mapping[str, Any]) -> dict[str, int] | None:
    from curation.report.usual_sources import hits_of

    return hits_of(name, facts)


def _column(shard: Shard, name: str) -> pa.Array:
    return _whole(open_table(shard.path, shard.sha256, shard.rows).read_all().column(name))


def _whole(column: pa.ChunkedArray) -> pa.Array:
    if isinstance(column.type, pa.DictionaryType):
        column = column.cast(column.type.value_type)
    return pa.concat_arrays([pa.array([], column.type), *column.chunks])
