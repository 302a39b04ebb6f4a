"""Explain: finds a document without hashing the whole run, and shows none from a damaged file."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import curation.shards
from curation.config import parse_config
from curation.errors import ConfigError, RunError
from curation.explain import explain, explanation_lines
from curation.ids import text_id
from curation.launch import drive, start_run
from curation.pipeline import Pipeline
from tests.e2e.conftest import write_corpus

CONFIG = "name: t\nsteps: [length]\n"


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> Pipeline:
    """A run of several shards; nobody changes it."""
    tmp_path = tmp_path_factory.mktemp("explain")
    config = parse_config(CONFIG, overrides=["ingest.slice_mb=1", "ingest.shard_mb=1"])
    write_corpus(tmp_path / "a.jsonl", 2500)
    pipeline = start_run(config, [str(tmp_path / "a.jsonl")], tmp_path / "root")
    drive(pipeline, workers=1)
    assert len(pipeline.shards) >= 2
    return Pipeline.open(pipeline.run.folder)


def test_only_the_shard_that_holds_the_document_is_hashed(pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> None:
    """All others are read for their ids alone."""
    hashed: list[str] = []
    real = curation.shards.file_sha256
    monkeypatch.setattr(curation.shards, "_verified", set())
    monkeypatch.setattr(curation.shards, "file_sha256", lambda path: hashed.append(str(path)) or real(path))
    (found,) = explain(pipeline, "d2400")
    shard = pipeline.run.shard_path(found.document["shard"])
    assert shard != pipeline.shards[0].path
    assert [path for path in hashed if "/shards/" in path] == [str(shard)]
    with pytest.raises(ConfigError, match="no document"):
        explain(pipeline, "nosuch")


def test_a_document_is_found_by_what_a_blacklist_shows_of_it(tmp_path: Path) -> None:
    """Its text_id, which copies share, and its URL; the URL of another page is none."""
    rows = [{"id": f"d{n}", "text": "one and the same text", "url": f"https://a.example/{n}"} for n in range(2)]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    pipeline = start_run(parse_config("name: t\nsteps: [exact]\n"), [str(tmp_path / "a.jsonl")], tmp_path / "root")
    drive(pipeline, workers=1)
    pipeline = Pipeline.open(pipeline.run.folder)
    both = explain(pipeline, text_id(rows[0]["text"]).hex())
    assert [one.document["id"] for one in both] == ["d0", "d1"]
    assert [one.document["id"] for one in explain(pipeline, "https://a.example/1")] == ["d1"]
    with pytest.raises(ConfigError, match="no document"):
        explain(pipeline, "https://a.example/2")


def test_a_document_of_a_damaged_shard_is_not_shown(pipeline: Pipeline, tmp_path: Path) -> None:
    """One bit of the text turned: the file is refused, though its ids can be read."""
    shutil.copytree(pipeline.run.folder.parent.parent, tmp_path / "root")
    pipeline = Pipeline.open(tmp_path / "root" / "runs" / pipeline.run.run_id)
    path = pipeline.shards[0].path
    data = bytearray(path.read_bytes())
    place = len(data) // 2
    data[place] ^= 1
    path.chmod(0o644)
    path.write_bytes(data)
    with pytest.raises(RunError, match="not the file that was written"):
        explain(pipeline, "d0")


@pytest.mark.parametrize(
    "wanted", ["", ":", ":1", "a.jsonl:", "a.jsonl:²", f"a.jsonl:{'9' * 30}", "a:-1", "\udcff", "\x00"]
)
def test_what_names_nothing_is_one_message(pipeline: Pipeline, wanted: str) -> None:
    """No number too long, no digit of another kind, no byte that is no UTF-8 ends in anything else."""
    with pytest.raises(ConfigError, match="no document"):
        explain(pipeline, wanted)


def test_wide_blanks_and_letters_of_every_script_stay_as_they_are(pipeline: Pipeline) -> None:
    """Only what could command a terminal or deceive a reader is escaped."""
    (found,) = explain(pipeline, "d0")
    found.document["text"] = "漢字\u3000かな\u00a0ไทย e\u0301 \U0001f600\x1b[1m\u202e\u2028"
    line = list(explanation_lines(found))[-1]
    assert "漢字\u3000かな\u00a0ไทย e\u0301 \U0001f600\\u001b[1m\\u202e\\u2028" in line


def test_the_limit_is_that_of_the_document(tmp_path: Path) -> None:
    """Where limits differ by language, the one that applied stands beside the score, and the score that decided is marked."""
    menu = "今天好热啊\n我刚下班\n有人一起打游戏吗\n昨天的比赛太精彩了\n明天再说吧\n那就这样\n"
    (tmp_path / "a.jsonl").write_text(json.dumps({"id": "menu", "text": menu}) + "\n", encoding="utf-8")
    config = parse_config("name: t\nsteps: [rules]\n", overrides=['rules.languages={"und_Hani":{"loose_lines":0.21}}'])
    pipeline = start_run(config, [str(tmp_path / "a.jsonl")], tmp_path / "root")
    drive(pipeline, workers=1)

    (found,) = explain(Pipeline.open(pipeline.run.folder), "menu")

    (verdict,) = found.verdicts
    assert verdict.thresholds["loose_lines"] == pytest.approx([0.21])
    assert (verdict.reason, verdict.decided_by) == ("rules.loose_lines", "loose_lines")
    lines = list(explanation_lines(found))
    assert sum("loose_lines = 1" in line and line.endswith("(threshold 0.21)  <- decides") for line in lines) == 1
    assert len(lines) < 60
    assert any("scores without a limit" in line for line in lines)
