"""Explain and what-if of filters whose score is a list of spans: terms are named with their rules, not dumped."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from curation.config import parse_config
from curation.explain import explain, explanation_lines
from curation.launch import drive, finish_run, start_run
from curation.pipeline import Pipeline
from curation.what_if import what_if
from tests.safety_fake import fake_safety

__all__ = ["fake_safety"]

LONG = "A day at the library. 昨天下雨。\n" * 100
TEXTS = [
    LONG + "ask @made_up_00 for the casino, casino jackpot 1380000 0000\n" + LONG,
    "casino casino casino",
    "上车买票",
    "plain words",
    "spam=0.7 words",
]


@pytest.fixture
def pipeline(tmp_path: Path, fake_safety: None) -> Pipeline:
    lines = [json.dumps({"id": f"d{i}", "text": text}) + "\n" for i, text in enumerate(TEXTS)]
    (tmp_path / "in.jsonl").write_text("".join(lines), "utf-8")
    config = parse_config("name: t\nsteps: [safety_terms, safety_model]\n")
    pipeline = start_run(config, [str(tmp_path / "in.jsonl")], tmp_path / "root")
    drive(pipeline, workers=1)
    finish_run(pipeline)
    return Pipeline.open(pipeline.run.folder)


def explained(pipeline: Pipeline, wanted: str) -> list[str]:
    (found,) = explain(pipeline, wanted)
    return [" ".join(line.split()) for line in explanation_lines(found)]


def test_terms_are_named_with_their_rules(pipeline: Pipeline) -> None:
    """Each once, with its first place and what stands around it, masked; scores of other categories are left out."""
    lines = explained(pipeline, "d0")
    begin = len((LONG + "ask @made_up_00 for the ").encode())
    term = f"gambling: casino (/lists/fake.tsv:3) byte {begin:,}, 2 times: ask @•••••••••• for the [casino], casino jackpot •••••••"
    assert term in lines
    assert any(line.startswith("gambling: jackpot (/lists/fake.tsv:6)") for line in lines)
    assert "gambling_hits = 3" in lines
    assert not any(line.startswith(("spam_", "matched", "and ")) for line in lines)


def test_what_was_dropped_says_by_which_score(pipeline: Pipeline) -> None:
    (line,) = [line for line in explained(pipeline, "d1") if line.startswith("gambling_peak")]
    assert line == "gambling_peak = 12 (threshold 4, 12) <- decides"


def test_without_terms_there_is_nothing_to_name(pipeline: Pipeline) -> None:
    (found,) = explain(pipeline, "d3")
    terms, model = found.verdicts
    assert (terms.terms, model.terms) == ([], None)
    assert not any("fake.tsv" in line for line in explanation_lines(found))


def test_what_if_shows_no_list_of_spans(pipeline: Pipeline) -> None:
    """Numbers that decide, in samples and in the answer as data."""
    found = what_if(pipeline, ["safety_terms.min_density=0.0001"])
    assert found.total.leave == 1
    names = {score.name for sample in found.samples for score in sample.scores}
    assert names
    assert "matched" not in names
    assert what_if(pipeline, ["safety_model.limit=0.6"]).total.leave == 1
