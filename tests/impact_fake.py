"""Comparisons of two real runs on disk: the same documents, judged by two lists of real steps, without command or engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import yaml

from curation.config import parse_config
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
from curation.report.usual_sources import hits_of
from curation.run import read_json
from curation.shards import open_table
from curation.steps import PlacedStep
from tests.fakes import Judged, make_run, run_steps


@dataclass(frozen=True)
class Told:
    """A document, and what its comparison says of it beside verdicts."""

    text: str
    language: str = NOT_JUDGED
    source: str = "crawl.jsonl"
    label: str | None = None
    stratum: int = 0
    weight: float = 1.0
    id: str = ""


def config_text(steps: Mapping[str, Mapping[str, Any]] | Sequence[str], name: str = "fake") -> str:
    """A resolved config with these steps."""
    settings = steps if isinstance(steps, Mapping) else {step: {} for step in steps}
    return parse_config(
        yaml.safe_dump({"name": name, "steps": [{step: dict(own)} for step, own in settings.items()]})
    ).to_yaml()


def compare_runs(
    root: Path,
    documents: Sequence[Told],
    base: Mapping[str, Mapping[str, Any]] | Sequence[str],
    new: Mapping[str, Mapping[str, Any]] | Sequence[str],
    *,
    shard_rows: int = 1000,
    population: int | None = None,
    commit: str | None = None,
    base_shard_rows: int | None = None,
) -> Comparison:
    """Judge the documents on both sides, each in a run of its own below root.

    Args:
        commit: as if other code had judged the base: digests of its steps differ, and its objects are not asked.
        base_shard_rows: as if the base's code had cut its shards otherwise.
    """
    sides, verdicts = [], []
    for name, steps, rows in (("base", base, base_shard_rows or shard_rows), ("new", new, shard_rows)):
        text = config_text(steps)
        shards = [[one.text for one in documents[i : i + rows]] for i in range(0, len(documents), rows)]
        judged = run_steps(make_run(root, shards, run_id=f"impact-{name}"), parse_config(text).steps)
        is_other = commit is not None and name == "base"
        side = SideFacts(
            label="main (1a2b3c4)" if is_other else "fake" if name == "base" else "working tree",
            commit=commit if is_other else None,
            config_text=text,
            run_folder=judged.run.folder,
            steps=tuple(_step_facts(one, "f00d" if is_other else "c0de") for one in judged.placed),
        )
        sides.append(side)
        verdicts.append(_outcomes(judged))
    return _comparison(sides, verdicts, documents, shard_rows, population)


def _step_facts(placed: PlacedStep, code: str) -> StepFacts:
    card, done = read_json(placed.folder / "_step.json"), read_json(placed.folder / "_done.json")
    markers = [read_json(path) for path in sorted((placed.folder / "_items").glob("*.json"))]
    return StepFacts(
        name=placed.name,
        place=placed.index,
        version=card["version"],
        folder=placed.folder,
        config=card["config"],
        reasons=card["reasons"],
        thresholds=card["thresholds"],
        units={score["name"]: score["unit"] for score in card["scores"]},
        digest=card["digest"],
        score_digest=card["score_digest"],
        code=f"{code}-{placed.name}",
        docs_in=done["docs_in"],
        docs_kept=done["docs_kept"],
        dropped=done["dropped"],
        hits=hits_of(placed.name, done.get("facts", {})),
        seconds=sum(marker["seconds"] for marker in markers),
        scored=done["docs_in"],
        peak_rss_mb=max((marker["peak_rss_mb"] for marker in markers), default=0.0),
    )


def _outcomes(judged: Judged) -> list[Outcome]:
    """What becomes of each document, in order."""
    found: list[Outcome] = []
    for shard in judged.shards:
        here = [KEPT] * shard.rows
        for placed in judged.placed:
            rows = open_table(placed.folder / f"{shard.name}.arrow").read_all().select(["keep", "reason"]).to_pylist()
            for place, row in enumerate(rows):
                if row["keep"] is False:
                    here[place] = Outcome(placed.name, row["reason"])
        found += here
    return found


def _comparison(
    sides: Sequence[SideFacts],
    verdicts: Sequence[Sequence[Outcome]],
    documents: Sequence[Told],
    shard_rows: int,
    population: int | None,
) -> Comparison:
    numbers: dict[Outcome, int] = {KEPT: 0}
    for outcome in [*verdicts[0], *verdicts[1]]:
        numbers.setdefault(outcome, len(numbers))
    shards = [path.stem for path in sorted((sides[1].run_folder / "shards").glob("*.arrow"))]
    ids = [
        row["doc_id"]
        for name in shards
        for row in open_table(sides[1].run_folder / "shards" / f"{name}.arrow")
        .read_all()
        .select(["doc_id"])
        .to_pylist()
    ]
    lengths = length_classes(np.array([len(one.text) for one in documents], np.int64)).to_pylist()
    rows = [
        {
            "doc_id": ids[place],
            "shard": place // shard_rows,
            "row": place % shard_rows,
            "id": one.id or f"d{place}",
            "source": one.source,
            "language": one.language,
            "length": lengths[place],
            "label": one.label,
            "characters": len(one.text),
            "tokens": max(1, len(one.text) // 4),
            "stratum": one.stratum,
            "weight": one.weight,
            "before": numbers[verdicts[0][place]],
            "after": numbers[verdicts[1][place]],
        }
        for place, one in enumerate(documents)
    ]
    sample = SampleFacts(
        name="made", sha256="5a" * 32, about="made by hand for tests", documents=len(documents), quarantined=0,
        population=population, files=("made.jsonl",),
    )  # fmt: skip
    return Comparison(
        base=sides[0],
        new=sides[1],
        sample=sample,
        documents=pa.Table.from_pylist(rows, schema=DOCUMENTS_SCHEMA),
        outcomes=tuple(numbers),
        tokenizer="corpusmill/default",
    )


def with_commit(comparison: Comparison, commit: str) -> Comparison:
    """The same, as if other code had judged the base."""
    steps = tuple(replace(step, code=f"f00d-{step.name}") for step in comparison.base.steps)
    return replace(comparison, base=replace(comparison.base, commit=commit, label=f"main ({commit[:7]})", steps=steps))
