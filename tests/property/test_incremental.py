"""A crawl that comes in batches against its definition: what was kept before stays, new copies go."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from unittest.mock import patch

from hypothesis import example, given, settings
from hypothesis import strategies as st

from curation.dedup.index_file import export_signatures
from curation.pipeline import Pipeline
from tests.near_runs import (
    begun,
    by_definition,
    corpus,
    documents_of,
    dropped_by,
    finish,
    kept_of,
    near_run,
    verdicts_of,
)

SEEDS = st.integers(0, 2**32)


def in_shards(texts: Sequence[str], n: int) -> list[Sequence[str]]:
    """The texts in n shards of about the same size."""
    marks = [len(texts) * i // n for i in range(n + 1)]
    return [texts[a:b] for a, b in pairwise(marks)]


def files_of(pipeline: Pipeline) -> dict[str, str]:
    """Checksums of all that a run wrote about its steps."""
    folder = pipeline.run.steps
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def index_of(pipeline: Pipeline, folder: Path, num_perm: int | None = None) -> Path:
    path = folder / f"{pipeline.run.run_id}.index"
    export_signatures(pipeline, path, num_perm)
    return path


@settings(max_examples=7, deadline=None)
@given(seed=SEEDS, share=st.floats(0, 1), n_shards=st.integers(1, 3))
@example(seed=1, share=0.7, n_shards=2)
@example(seed=2, share=0.0, n_shards=1)
@example(seed=3, share=1.0, n_shards=1)
def test_a_new_crawl_against_an_earlier_one(seed: int, share: float, n_shards: int) -> None:
    """Against the run and against its index, any cut: the new verdicts are the definition's, the old ones untouched."""
    texts = corpus(seed, 50)
    cut = round(share * len(texts))
    with tempfile.TemporaryDirectory() as folder, patch("os.fsync"):
        root = Path(folder)
        first = near_run(root, "a", in_shards(texts[:cut], n_shards))
        assert dropped_by(first) == by_definition(documents_of(first), [])
        before = files_of(first)
        index = index_of(first, root, num_perm=32 if seed % 2 else None)

        runs = [
            near_run(root, name, in_shards(texts[cut:], 2), against=[path])
            for name, path in (("b", first.run.folder), ("c", index))
        ]

        expected = by_definition(documents_of(runs[0]), kept_of(first))
        assert dropped_by(runs[0]) == expected
        assert verdicts_of(runs[1]) == verdicts_of(runs[0])
        assert files_of(first) == before


@settings(max_examples=4, deadline=None)
@given(seed=SEEDS, marks=st.tuples(st.integers(0, 60), st.integers(0, 60)).map(sorted))
@example(seed=4, marks=[20, 40])
def test_three_batches_one_after_another(seed: int, marks: list[int]) -> None:
    """Each against all before it, as runs or as indexes: of the whole, no two kept ones are near, and none is missing (B088)."""
    texts = corpus(seed, 60)
    one, two = marks
    with tempfile.TemporaryDirectory() as folder, patch("os.fsync"):
        root = Path(folder)
        a = near_run(root, "a", [texts[:one]])
        b = near_run(root, "b", [texts[one:two]], against=[a.run.folder])
        c = near_run(root, "c", [texts[two:]], against=[a.run.folder, b.run.folder])
        mixed = near_run(root, "m", [texts[two:]], against=[b.run.folder, index_of(a, root)])

        assert dropped_by(b) == by_definition(documents_of(b), kept_of(a))
        assert dropped_by(c) == by_definition(documents_of(c), [*kept_of(a), *kept_of(b)])
        assert verdicts_of(mixed) == verdicts_of(c)
        everything = [*kept_of(a), *kept_of(b), *kept_of(c)]
        assert by_definition(everything, []) == {}, "two kept documents are near-duplicates"


@settings(max_examples=2, deadline=None)
@given(seed=SEEDS)
def test_a_killed_or_repeated_item_changes_nothing(seed: int) -> None:
    """Items done twice, lost with and without their marker, each by a process that opens the run anew."""
    texts = corpus(seed, 40)
    with tempfile.TemporaryDirectory() as folder, patch("os.fsync"):
        root = Path(folder)
        index = index_of(near_run(root, "a", [texts[:25]]), root)
        whole = near_run(root, "b", in_shards(texts[25:], 2), against=[index])
        other = begun(root, "c", in_shards(texts[25:], 2), against=[index])
        for work in other.passes("dedup"):
            for item in range(work.n_items):
                for _ in range(2):
                    Pipeline.open(other.run.folder).run_item(work.name, item)
            name = work.name.partition(".")[2]
            for path in sorted(other.run.work.glob(f"*/{name}/00000.arrow")) if name else []:
                path.unlink()
            markers = sorted(other.run.work.glob(f"*/{name}/_items/00001.json")) if name else []
            for path in markers:
                path.unlink()
            for item in range(work.n_items):
                Pipeline.open(other.run.folder).run_item(work.name, item)
        finish(Pipeline.open(other.run.folder))

        # Names of runs stand in the metadata of the files, so rows are compared.
        assert verdicts_of(other) == verdicts_of(whole)
        shutil.rmtree(other.placed[0].folder)
        finish(Pipeline.open(other.run.folder))
        assert verdicts_of(other) == verdicts_of(whole)
