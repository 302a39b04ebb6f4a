"""Draw a sample from a finished run, on which changes of filters are judged (`corpusmill sample`).

Stratified by language, source, length and outcome (`curation.sampling.strata`): of 100 million documents the 2,000 that are drawn
hold every reason and rare language, and each carries the number of documents that it stands for, so figures are told for the
whole run. Costs one pass over the texts, for their length, and over the verdicts, then a read of the chosen documents.

What `exact` and `near` dropped would come back if its partner were not in the sample. So the kept document that each of
them names is added: it stands for none but itself (`COMPANION`), and changes no figure.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import zstandard

from curation.errors import ConfigError, RunError
from curation.export import check_done
from curation.impact.classes import length_classes
from curation.pipeline import Pipeline
from curation.report.samples import find_documents, priorities, rows_at, salted, whole
from curation.run import read_json
from curation.sampling.strata import LEAST, OTHERS, Drawn, Reservoir, Stratum, allotted, chosen, combined
from curation.shards import Shard, batches
from curation.steps import PlacedStep
from curation.what_if_outcomes import verdict_table

__all__ = ["COMPANION", "DOCUMENTS", "DrawnSample", "draw_sample"]

DOCUMENTS = 2000
COMPANION = 1e-9
"""Weight of a document that is in the sample only because another is its copy: next to nothing."""
MOST_SOURCES, MOST_LANGUAGES = 20, 40
"""The others are put together."""
FILE_BYTES = 64 << 20
"""Text of a file of the sample, about."""
_NO_STEP, _NOT_LOOKED_AT = "any language", "not judged"
_KEPT = "kept"
_COLUMNS = ("id", "url", "text", "meta")


@dataclass(frozen=True)
class DrawnSample:
    """What was drawn."""

    folder: Path
    population: int
    """Documents of the run."""
    documents: int
    """Of the sample, with companions."""
    companions: int
    strata: tuple[tuple[Stratum, int, int], ...]
    """With the number of documents that were drawn, and of those there are."""


def draw_sample(pipeline: Pipeline, output: Path, documents: int = DOCUMENTS, seed: int = 0) -> DrawnSample:
    """Draw `documents` documents into the folder `output`; an earlier sample there is replaced once the new one is whole.

    Args:
        seed: another one draws other documents.

    Raises:
        ConfigError: `output` holds something else than a sample, or `documents` is too small for the steps of the run.
        RunError: the run is not done, holds no documents, is damaged, or the folder cannot be written.
    """
    check_done(pipeline)
    _check_output(output)
    outcomes = [_KEPT, *(f"dropped by {placed.name}" for placed in pipeline.placed)]
    fewest = 2 * LEAST * len(outcomes)
    if documents < fewest:
        raise ConfigError(
            f"--documents {documents}: expected at least {fewest}, {2 * LEAST} for each outcome of this run."
        )
    found = _strata(pipeline, outcomes, documents, f"impact sample {seed}")
    if not found:
        raise RunError(f"run {pipeline.run.run_id} holds no documents: there is nothing to draw from.")
    strata = dict(sorted(combined(found, documents).items()))
    populations = [reservoir.population for reservoir in strata.values()]
    counts = allotted(populations, documents)
    drawn = chosen(strata.values(), counts)
    companions = _companions(pipeline, drawn, len(strata))
    made = DrawnSample(
        output, sum(populations), len(drawn) + len(companions), len(companions), tuple(zip(strata, counts, populations, strict=True))
    )  # fmt: skip
    weights = [population / count for population, count in zip(populations, counts, strict=True)] + [COMPANION]
    _write(pipeline, made, sorted([*drawn, *companions], key=lambda one: (one.shard, one.row)), weights)
    return made


# -- strata -----------------------------------------------------------------------------------------


def _strata(pipeline: Pipeline, outcomes: Sequence[str], most: int, salt: str) -> dict[Stratum, Reservoir]:
    """One pass over the run: each stratum with its candidates."""
    source_names = source_groups(_sources(pipeline))
    language_step = next((placed for placed in pipeline.placed if placed.name == "language"), None)
    common = _common_languages(pipeline.shards, language_step)
    found: dict[Stratum, Reservoir] = {}
    for index, shard in enumerate(pipeline.shards):
        languages, dropped_by = _verdicts(pipeline.placed, shard, language_step, common)
        for start, batch in batches(shard, ["doc_id", "source", "text"]):
            if not batch.num_rows:
                continue
            rows = np.arange(start, start + batch.num_rows, dtype=np.int64)
            lengths = length_classes(
                pc.utf8_length(batch.column("text")).cast(pa.int64()).to_numpy(zero_copy_only=False)
            )
            source = batch.column("source")
            names = pa.array([source_names[one] for one in source.dictionary.to_pylist()], pa.string())
            table = pa.table(
                {
                    "language": languages.slice(start, batch.num_rows),
                    "source": names.take(source.indices),
                    "length": lengths,
                    "outcome": pa.array(dropped_by[rows]),
                    "row": pa.array(rows),
                    "key": pa.array(salted(priorities(batch.column("doc_id")), salt)),
                }
            )
            groups = table.group_by(["language", "source", "length", "outcome"]).aggregate(
                [("row", "list"), ("key", "list")]
            )
            for group in groups.to_batches():
                _add(found, group, index, outcomes, most)
    return found


def _add(
    found: dict[Stratum, Reservoir], group: pa.RecordBatch, shard: int, outcomes: Sequence[str], most: int
) -> None:
    """Add the documents of a batch, grouped by stratum."""
    facts = group.select(["language", "source", "length", "outcome"]).to_pylist()
    for fact, rows, keys in zip(facts, group.column("row_list"), group.column("key_list"), strict=True):
        stratum = Stratum(fact["language"], fact["source"], fact["length"], outcomes[fact["outcome"]])
        reservoir = found.setdefault(stratum, Reservoir(most))
        reservoir.add(keys.values.to_numpy(), shard, rows.values.to_numpy())


def _verdicts(
    placed: Sequence[PlacedStep], shard: Shard, language_step: PlacedStep | None, common: frozenset[str]
) -> tuple[pa.Array, npt.NDArray[np.int32]]:
    """Language of each document, and the number of its outcome: 0 kept, else 1 + the place of the step that drops it."""
    dropped_by = np.zeros(shard.rows, np.int32)
    languages = pa.array([_NO_STEP if language_step is None else _NOT_LOOKED_AT] * shard.rows, pa.string())
    for place, one in enumerate(placed, start=1):
        table = verdict_table(one, shard)
        keep = whole(table.column("keep")).fill_null(True).to_numpy(zero_copy_only=False).astype(np.bool_)
        dropped_by[(dropped_by == 0) & ~keep] = place
        if one is language_step:
            spoken = whole(table.column("language").cast(pa.string()))
            shown = pc.if_else(pc.is_in(spoken, pa.array(sorted(common), pa.string())), spoken, pa.scalar(OTHERS))
            languages = pc.fill_null(pc.if_else(pc.is_valid(spoken), shown, None), _NOT_LOOKED_AT)
    return languages, dropped_by


def _common_languages(shards: Sequence[Shard], step: PlacedStep | None) -> frozenset[str]:
    """The most frequent labels of a run; a look at one column."""
    counts: Counter[str] = Counter()
    if step is not None:
        for shard in shards:
            found = pc.value_counts(whole(verdict_table(step, shard).column("language").cast(pa.string())))
            counts.update({one["values"]: one["counts"] for one in found.to_pylist() if one["values"] is not None})
    ranked = sorted(counts, key=lambda label: (-counts[label], label))
    return frozenset(ranked[:MOST_LANGUAGES])


# -- sources ----------------------------------------------------------------------------------------


def _sources(pipeline: Pipeline) -> dict[str, int]:
    """Documents by input."""
    inputs = read_json(pipeline.run.folder / "inputs.json")
    return {one["source"]: int(one["lines_good"]) for one in inputs}


def source_groups(documents: Mapping[str, int]) -> dict[str, str]:
    """A name for each input: the folder below the one that holds all, else the file's name, its numbers left out.

    So the 90,000 files of a crawl are one source and not 90,000. Beyond `MOST_SOURCES` names the smallest are `others`.

    Args:
        documents: by path or URL.
    """
    parts = {source: PurePosixPath(unquote(source) if "://" in source else source).parts for source in documents}
    shared = _shared([one[:-1] for one in parts.values()])
    names = {}
    for source, one in parts.items():
        below = one[shared:]
        names[source] = below[0] if len(below) > 1 else re.sub(r"\d+", "#", below[0])
    counts: Counter[str] = Counter()
    for source, name in names.items():
        counts[name] += documents[source]
    ranked = sorted(counts, key=lambda name: (-counts[name], name))
    if len(ranked) <= MOST_SOURCES:
        return names
    few = set(ranked[:MOST_SOURCES])
    return {source: name if name in few else OTHERS for source, name in names.items()}


def _shared(folders: Sequence[tuple[str, ...]]) -> int:
    """How many parts all folders begin with."""
    shortest = min(map(len, folders), default=0)
    return next((depth for depth in range(shortest) if len({one[depth] for one in folders}) > 1), shortest)


# -- companions -------------------------------------------------------------------------------------


def _companions(pipeline: Pipeline, drawn: Sequence[Drawn], stratum: int) -> list[Drawn]:
    """The kept documents of this run of which drawn ones are copies, but those that are drawn themselves."""
    by_shard: dict[int, list[int]] = {}
    for one in drawn:
        by_shard.setdefault(one.shard, []).append(one.row)
    wanted: set[bytes] = set()
    for placed in pipeline.placed:
        for shard, rows in by_shard.items():
            table = verdict_table(placed, pipeline.shards[shard])
            if "kept_doc_id" in table.column_names:
                looked = table.select(["keep", "kept_doc_id"]).take(pa.array(rows))
                wanted.update(
                    row["kept_doc_id"] for row in looked.to_pylist() if row["keep"] is False and row["kept_doc_id"]
                )
    there = {(one.shard, one.row) for one in drawn}
    places = sorted(set(find_documents(pipeline.shards, wanted).values()) - there)
    return [Drawn(shard, row, stratum) for shard, row in places]


# -- files ------------------------------------------------------------------------------------------


def _check_output(output: Path) -> None:
    """Only an empty folder, or one that holds a sample and nothing else, is written into."""
    if output.exists() and not output.is_dir():
        raise ConfigError(f"--output {output}: expected a folder, found a file.")
    strange = (
        [one.name for one in output.iterdir() if not re.fullmatch(r"sample\.json|sample-\d+\.jsonl\.zst", one.name)]
        if output.exists()
        else []
    )
    if strange:
        raise ConfigError(
            f"--output {output} holds {sorted(strange)[0]}, which is no part of a sample: name another folder."
        )


def _write(pipeline: Pipeline, made: DrawnSample, drawn: Sequence[Drawn], weights: Sequence[float]) -> None:
    """Write the folder under another name, then put it in its place."""
    output = made.folder.resolve()  # `.` has no name
    temporary = output.with_name(f".{output.name}.{os.getpid()}.tmp")
    try:
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir(parents=True)
        for number, lines in enumerate(_cut(_lines(pipeline, drawn, weights))):
            packed = zstandard.ZstdCompressor(level=10, write_checksum=True).compress(b"".join(lines))
            (temporary / f"sample-{number:04d}.jsonl.zst").write_bytes(packed)
        (temporary / "sample.json").write_bytes(
            json.dumps(_card(pipeline, made), ensure_ascii=False, indent=1).encode() + b"\n"
        )
        _put(temporary, output)
    except OSError as error:
        raise RunError(
            f"the sample could not be written to {output}: {error.strerror or error}. Free some space, or name another folder."
        ) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _put(temporary: Path, output: Path) -> None:
    """Move a whole sample to where it belongs. A folder that is there stays the same one: it may be where the user's shell is.

    The card goes first and comes last, so what is cut off in between has none.
    """
    if not output.exists():
        temporary.rename(output)
        return
    for old in sorted(output.iterdir(), key=lambda path: path.name != "sample.json"):
        old.unlink()
    for new in sorted(temporary.iterdir(), key=lambda path: path.name == "sample.json"):
        new.rename(output / new.name)


def _lines(pipeline: Pipeline, drawn: Sequence[Drawn], weights: Sequence[float]) -> Iterator[bytes]:
    """A JSON line for each document, in the run's order."""
    strata = {(one.shard, one.row): one.stratum for one in drawn}
    names = source_groups(_sources(pipeline))
    rows: list[tuple[int, bytes]] = []
    shard = -1
    for place, batch, row in rows_at(pipeline.shards, strata):
        if place[0] != shard:
            yield from (line for _, line in sorted(rows))
            shard, rows = place[0], []
        rows.append((place[1], _line(batch, row, strata[place], weights, names)))
    yield from (line for _, line in sorted(rows))


def _line(batch: pa.RecordBatch, row: int, stratum: int, weights: Sequence[float], names: Mapping[str, str]) -> bytes:
    cells = {name: batch.column(name)[row].as_py() for name in _COLUMNS}
    record: dict[str, Any] = {name: cells[name] for name in ("id", "url", "text") if cells[name] is not None}
    quality = _quality(cells["meta"])
    if quality is not None:
        record["quality"] = quality
    record["sample"] = {
        "stratum": stratum,
        "weight": weights[stratum],
        "source": names[batch.column("source")[row].as_py()],
    }
    return orjson.dumps(record) + b"\n"


def _quality(meta: str | None) -> str | None:
    """A record's own label."""
    try:
        found = orjson.loads(meta) if meta else {}
    except orjson.JSONDecodeError:
        return None
    quality = found.get("quality") if isinstance(found, dict) else None
    return quality if isinstance(quality, str) else None


def _cut(lines: Iterator[bytes]) -> Iterator[list[bytes]]:
    """The lines of each file."""
    part: list[bytes] = []
    size = 0
    for line in lines:
        part.append(line)
        size += len(line)
        if size >= FILE_BYTES:
            yield part
            part, size = [], 0
    if part:
        yield part


def _card(pipeline: Pipeline, made: DrawnSample) -> dict[str, Any]:
    """What `sample.json` says."""
    run_id = pipeline.run.run_id
    drawn = f"{made.documents - made.companions:,} of the {made.population:,} documents of run {run_id}"
    strata = [
        {"stratum": number, "name": stratum.name, "sampled": count, "population": population}
        for number, (stratum, count, population) in enumerate(made.strata)
    ]
    if made.companions:
        name = "kept documents of which others are copies"
        strata.append({"stratum": len(strata), "name": name, "sampled": made.companions, "population": 0})
    return {
        "name": f"sample of {run_id}",
        "about": f"{drawn}, by language, source, length and outcome",
        "population": made.population,
        "documents": made.documents,
        "strata": strata,
    }
