"""Scores that are words and lists go through every file and page as numbers do: null, cut, taken over, read by a person."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from curation.config import parse_config
from curation.explain import explain, explanation_lines
from curation.judgements import judgements
from curation.launch import drive, finish_run, start_run
from curation.pipeline import Pipeline
from curation.run import read_json
from curation.shards import open_table
from tests.fakes import Second, WatchedConfig, make_run, run_steps
from tests.language_fake import FakeLanguage, FakeLanguageConfig, fake_language

__all__ = ["fake_language"]

TEXTS = [
    "eng_Latn:0.9 a line\neng_Latn:0.8 and one more",
    "jpn_Jpan:0.98 日本\njpn_Jpan:0.9 日本\nzho_Hans:0.9 中国",
    "12345",
    "zho_Hans:0.7 中国\n\nzho_Hans:0.7 中国",
    "",
    "zho_Hans:0.5 中国\njpn_Jpan:0.5 日本\neng_Latn:0.5 it",
    "deu_Latn:0.4 ein Satz",
]


def test_scores_come_back_as_they_were(tmp_path: Path) -> None:
    """Words, lists, empty lists and nulls; a document that an earlier step dropped has none of them."""
    run = make_run(tmp_path, [TEXTS[:4], TEXTS[4:], []])
    judged = run_steps(run, [Second(WatchedConfig()), FakeLanguage(FakeLanguageConfig())])
    dropped = {i for i, text in enumerate(TEXTS) if len(text) % 2}
    assert dropped
    rows = judged.verdicts("language")
    for i, (text, row) in enumerate(zip(TEXTS, rows, strict=True)):
        if i in dropped:
            assert set(row.values()) == {None}, text
        else:
            assert row["keep"] is True
            assert row["language"] in text or row["language"] == "und"
            assert row["spans"][-1]["end"] == text.count("\n") + 1
            assert sum(item["share"] for item in row["shares"]) == pytest.approx(1 if row["shares"] else 0)
    assert rows[4]["confidence"] is None
    assert rows[4]["shares"] == []


@pytest.mark.parametrize("batch_rows", [1, 2, 1000])
def test_the_file_does_not_depend_on_how_the_shard_is_cut(tmp_path: Path, batch_rows: int) -> None:
    """Byte for byte, but for the step's digest in it, which names the shard file; the same when scores are taken over."""
    found = []
    for name, rows in (("whole", 1000), ("cut", batch_rows)):
        run = make_run(tmp_path / name, [TEXTS], batch_rows=rows)
        for config in (FakeLanguageConfig(mixed="drop"), FakeLanguageConfig()):
            judged = run_steps(run, [FakeLanguage(config)])
        found.append(content(judged.folder("language") / "00000.arrow"))
    run = make_run(tmp_path / "fresh", [TEXTS])
    judged = run_steps(run, [FakeLanguage(FakeLanguageConfig())])
    found.append(content(judged.folder("language") / "00000.arrow"))
    assert found[0] == found[1] == found[2]


def content(path: Path) -> bytes:
    """A verdict file without the metadata."""
    sink = pa.BufferOutputStream()
    table = open_table(path).read_all().replace_schema_metadata(None)
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write(table)
    return bytes(sink.getvalue())


def test_a_changed_threshold_takes_lists_over(tmp_path: Path) -> None:
    """Nothing is scored again, but what the step before had dropped until now; scores are those of a fresh run."""
    run = make_run(tmp_path, [TEXTS])
    run_steps(run, [Second(WatchedConfig()), FakeLanguage(FakeLanguageConfig())])
    FakeLanguage.scored.clear()
    again = run_steps(run, [Second(WatchedConfig()), FakeLanguage(FakeLanguageConfig(min_confidence=0.6))])
    assert FakeLanguage.scored == []
    alone = run_steps(run, [FakeLanguage(FakeLanguageConfig(min_confidence=0.6))])
    assert FakeLanguage.scored == [text for text in TEXTS if len(text) % 2]
    fresh = run_steps(make_run(tmp_path / "b", [TEXTS]), [FakeLanguage(FakeLanguageConfig(min_confidence=0.6))])
    assert alone.verdicts("language") == fresh.verdicts("language")
    assert "language.low_confidence" in {row["reason"] for row in alone.verdicts("language")}
    assert again.verdicts("language") != alone.verdicts("language")


def test_what_is_set_aside_is_counted_when_the_step_is_closed(tmp_path: Path) -> None:
    """By output, those without a document too; a step that sets nothing aside says nothing."""
    run = make_run(tmp_path, [TEXTS[:3], TEXTS[3:]])
    config = FakeLanguageConfig(
        mixed="route:mixed", no_language="route:none", wanted=("eng_Latn", "jpn_Jpan"), min_confidence=0.6
    )
    judged = run_steps(run, [FakeLanguage(config)])
    assert read_json(judged.folder("language") / "_done.json")["facts"] == {"set_aside": {"mixed": 1, "none": 2}}
    other = run_steps(run, [FakeLanguage(FakeLanguageConfig())])
    assert read_json(other.folder("language") / "_done.json")["facts"] == {}


@pytest.fixture
def pipeline(tmp_path: Path, fake_language: type[FakeLanguage]) -> Pipeline:
    """A finished run over TEXTS."""
    import json

    source = tmp_path / "in.jsonl"
    texts = [text for text in TEXTS if text]
    source.write_text("".join(json.dumps({"id": f"d{i}", "text": t}) + "\n" for i, t in enumerate(texts)), "utf-8")
    config = parse_config("name: t\nsteps: [{language: {mixed: 'route:mixed', min_confidence: 0.6}}]\n")
    pipeline = start_run(config, [str(source)], tmp_path / "root")
    drive(pipeline, workers=1)
    finish_run(pipeline)
    return Pipeline.open(pipeline.run.folder)


def explained(pipeline: Pipeline, wanted: str) -> str:
    (found,) = explain(pipeline, wanted)
    return "\n".join(" ".join(line.split()) for line in explanation_lines(found))


def test_explain_is_read_with_pleasure(pipeline: Pipeline) -> None:
    """One line for a language, its confidence and its class; shares in percent; lines as people count them; the output."""
    text = explained(pipeline, "d1")
    assert "language dropped language.routed" in text
    assert "\nset aside for mixed\n" in text
    assert "\nlanguage jpn_Jpan 0.98 (threshold 0.6, mixed)\n" in text
    assert "\nfasttext jpn_Jpan 0.98\n" in text
    assert "\nshares jpn_Jpan 66.7 %, zho_Hans 33.3 %\n" in text
    assert "\nspans lines 0-1 jpn_Jpan, 2 zho_Hans\n" in text
    text = explained(pipeline, "d2")
    assert "set aside" not in text
    assert "\nlanguage und (no-language)\n" in text
    assert "\nshares none\n" in text
    assert "\nspans lines 0 und\n" in text


def test_judgements_hold_lists_as_json(pipeline: Pipeline) -> None:
    """Whatever the number of rows that are objects at once."""
    found = list(judgements(pipeline))
    assert [row["id"] for row in found] == [f"d{i}" for i in range(6)]
    step: dict[str, Any] = found[1]["steps"]["language"]
    assert step["spans"] == [
        {"language": "jpn_Jpan", "first": 0, "end": 2},
        {"language": "zho_Hans", "first": 2, "end": 3},
    ]


def test_the_report_shows_languages_and_what_is_set_aside(pipeline: Pipeline) -> None:
    """A table of labels, one of shares, samples with lists, and the command that writes what was set aside."""
    page = (pipeline.run.report / "report.html").read_text(encoding="utf-8")
    assert "set aside for mixed" in page
    assert "corpusmill export RUN --route mixed --output FILE" in page
    assert "lines 0-1 jpn_Jpan, 2 zho_Hans" in page
    assert "66.7\u00a0%" in page
    assert "shares: share of each language, largest first (a document counts for each of them)" in page
    assert page.count("<caption>language: language of most lines</caption>") == 2  # of the step, and beside the scripts
    assert page.count("<caption>class: how it was found</caption>") == 1
    assert "not drawn: spans" in page
    assert "by-language/{language}.jsonl.zst" in page
