"""Runs with a near step, made from lists of texts, and what such a run must keep by the slow definition."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import yaml

from curation.dedup.sets import distinct
from curation.dedup.shingles import shingles
from curation.ids import text_id
from curation.pipeline import Pipeline
from curation.run import Run
from curation.shards import open_table, read_column
from tests.fakes import SOURCE, write_shards

SETTINGS: dict[str, Any] = {"threshold": 0.8, "num_perm": 256, "recall": 0.999999}
"""Candidates of less than the usual number are missed: once in a million pairs at the threshold."""

WORDS = [f"w{n}" for n in range(3000)]


def near_run(
    root: Path,
    run_id: str,
    shards: Sequence[Sequence[str]],
    **settings: Any,
) -> Pipeline:
    """A run that is done, with near as its first step, and others `then`: takes what `begun` does."""
    pipeline = begun(root, run_id, shards, **settings)
    finish(pipeline)
    return pipeline


def begun(
    root: Path,
    run_id: str,
    shards: Sequence[Sequence[str]],
    *,
    against: Iterable[Path] = (),
    then: Sequence[dict[str, Any]] = (),
    **settings: Any,
) -> Pipeline:
    """A run of which only ingest is done."""
    near = {**SETTINGS, **settings, "against": [str(path) for path in against]}
    config = yaml.safe_dump({"name": run_id, "steps": [{"near": near}, *then]})
    run = Run.create(root, run_id=run_id, config_text=config, config_digest="0" * 8, inputs=[SOURCE])
    write_shards(run, shards)
    return Pipeline.open(run.folder)


def finish(pipeline: Pipeline) -> None:
    """Do what is left of a run."""
    for stage in pipeline.stages()[1:]:
        for work in pipeline.passes(stage):
            for item in range(work.n_items):
                pipeline.run_item(work.name, item)
        pipeline.close(stage)
    pipeline.run.update(state="done")


def verdicts_of(pipeline: Pipeline) -> list[dict[str, Any]]:
    """The verdict rows of the last step, in document order."""
    folder = pipeline.placed[-1].folder
    rows: list[dict[str, Any]] = []
    for shard in pipeline.shards:
        rows += open_table(folder / f"{shard.name}.arrow").read_all().to_pylist()
    return rows


@dataclass(frozen=True)
class Document:
    """What the definition needs to know of one."""

    doc_id: bytes
    text: str
    shingles: frozenset[int]

    @property
    def rank(self) -> tuple[int, bytes, bytes]:
        """The longest first, then by text_id and doc_id."""
        return -len(self.text), text_id(self.text), self.doc_id


def documents_of(pipeline: Pipeline) -> list[Document]:
    """All documents of a run, in order."""
    texts = [text for shard in pipeline.shards for text in read_column(shard, "text").to_pylist()]
    ids = [one for shard in pipeline.shards for one in read_column(shard, "doc_id").to_pylist()]
    found = distinct(shingles(pa.array(texts, pa.large_string())))
    sets = [
        frozenset(found.values[begin:end].tolist())
        for begin, end in zip(found.offsets, found.offsets[1:], strict=False)
    ]
    return [Document(*one) for one in zip(ids, texts, sets, strict=True)]


def kept_of(pipeline: Pipeline) -> list[Document]:
    """The documents that a run kept."""
    rows = verdicts_of(pipeline)
    return [one for one, row in zip(documents_of(pipeline), rows, strict=True) if row["keep"]]


def by_definition(
    new: Sequence[Document], earlier: Sequence[Document], ppm: int = 800_000
) -> dict[int, tuple[bytes, bool]]:
    """Of each document that is to be dropped, by its place: the kept one's doc_id, and whether that is an earlier one."""
    kept = [(one, True) for one in sorted(earlier, key=lambda one: one.rank[1:]) if one.shingles]
    dropped = {}
    for place in sorted(range(len(new)), key=lambda place: new[place].rank):
        mine = new[place].shingles
        partner = next((pair for pair in kept if _is_near(mine, pair[0].shingles, ppm)), None)
        if partner is not None:
            dropped[place] = (partner[0].doc_id, partner[1])
        elif mine:
            kept.append((new[place], False))
    return dropped


def _is_near(a: frozenset[int], b: frozenset[int], ppm: int) -> bool:
    both = len(a & b)
    return both * 10**6 > ppm * (len(a) + len(b) - both)


def dropped_by(pipeline: Pipeline) -> dict[int, tuple[bytes, bool]]:
    """What a run dropped, in the form of `by_definition`."""
    return {
        place: (row["kept_doc_id"], row["reason"] == "near.duplicate_of_earlier")
        for place, row in enumerate(verdicts_of(pipeline))
        if not row["keep"]
    }


def corpus(seed: int, n: int) -> list[str]:
    """Texts with copies of copies: exact, near, at the threshold and beyond; some empty, some of a word or two."""
    rng = random.Random(seed)
    texts: list[list[str]] = []
    for _ in range(n):
        kind = rng.random()
        if kind < 0.55 and texts:
            text = list(rng.choice(texts))
            for _ in range(rng.choice([0, 1, 1, 1, 2, 3])):
                where = rng.choice([0, rng.randrange(len(text) + 1), len(text)])
                text[where : where + rng.randrange(2)] = rng.choices(WORDS, k=rng.randrange(2))
        elif kind < 0.65:
            text = rng.choices(WORDS[:3], k=rng.randrange(3))
        else:
            text = rng.choices(WORDS, k=rng.randint(30, 110))
        texts.append(text)
    return [" ".join(text) for text in texts]
