"""What is judged before the sample is, so that its seconds hold no compiling and no loading."""

from __future__ import annotations

from pathlib import Path

import orjson

from curation.impact.warm import DOCUMENTS, warm_steps, write_warm_documents
from curation.shards import shards_of
from tests.fakes import make_run


def test_steps_whose_scores_are_saved_stay_cold_unless_they_are_read() -> None:
    """In the config's order."""
    reads = {"perplexity": ["language"], "safety": ["language", "terms"], "terms": ["length"]}
    names = ["exact", "language", "length", "perplexity", "terms", "safety"]
    assert warm_steps(names, set(), reads) == names
    assert warm_steps(names, set(names), reads) == []
    assert warm_steps(names, set(names) - {"perplexity"}, reads) == ["language", "perplexity"]
    assert warm_steps(names, set(names) - {"safety"}, reads) == ["language", "length", "terms", "safety"]
    assert warm_steps(["safety"], set(), reads) == ["safety"]


def test_the_documents_are_spread_over_the_sample(tmp_path: Path) -> None:
    """Bounded in number and length, and with copies; of few documents all."""
    texts = [f"{n} " + "word " * 3000 for n in range(500)]
    shards = shards_of(make_run(tmp_path / "many", [texts[:100], texts[100:]]))
    write_warm_documents(shards, tmp_path / "many.jsonl")
    rows = [orjson.loads(line) for line in (tmp_path / "many.jsonl").read_bytes().splitlines()]
    firsts = [int(row["text"].split()[0]) for row in rows]
    assert (min(firsts), max(firsts)) == (0, 499)
    assert DOCUMENTS <= len(rows) <= DOCUMENTS + 4
    assert max(len(row["text"]) for row in rows) <= 5_000
    assert len(rows) > len({row["text"] for row in rows})
    few = shards_of(make_run(tmp_path / "few", [[], ["one"]]))
    write_warm_documents(few, tmp_path / "few.jsonl")
    assert {orjson.loads(line)["text"] for line in (tmp_path / "few.jsonl").read_bytes().splitlines()} >= {"one"}


def test_of_no_documents_there_are_none(tmp_path: Path) -> None:
    """And what is there is not made twice."""
    write_warm_documents(shards_of(make_run(tmp_path / "none", [[]])), tmp_path / "none.jsonl")
    assert (tmp_path / "none.jsonl").read_bytes() == b""
    (tmp_path / "none.jsonl").write_text("kept")
    write_warm_documents(shards_of(make_run(tmp_path / "some", [["a"]])), tmp_path / "none.jsonl")
    assert (tmp_path / "none.jsonl").read_text() == "kept"
