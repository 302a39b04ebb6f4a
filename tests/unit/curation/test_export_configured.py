"""The export that a config asks for: there when the run is done, done once, anew when verdicts or files changed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import curation.export_split
from curation import tasks
from curation.config import parse_config
from curation.errors import ConfigError, RunError
from curation.export import export_kept
from curation.launch import drive, finish_run, start_run
from curation.pipeline import Pipeline
from tests.language_fake import FakeLanguage, fake_language

__all__ = ["fake_language"]

CONFIG = "name: t\nsteps: [{language: {min_confidence: 0.1}}]\nexport: {pattern: 'kept-{language}.jsonl'}\n"


@pytest.fixture
def pipeline(tmp_path: Path, fake_language: type[FakeLanguage]) -> Pipeline:
    """Driven to the end, not finished."""
    return driven(tmp_path)


def driven(folder: Path, *overrides: str, run_id: str | None = None) -> Pipeline:
    rows = [{"text": f"{name}:{sure} text"} for name in ("eng_Latn", "zho_Hans") for sure in (0.3, 0.6, 0.9)]
    if not (folder / "in.jsonl").exists():
        (folder / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    config = parse_config(CONFIG, overrides=overrides)
    pipeline = start_run(config, [str(folder / "in.jsonl")], folder / "root", run_id=run_id)
    drive(pipeline, workers=1)
    return pipeline


def exported(pipeline: Pipeline) -> dict[str, tuple[int, int]]:
    """Documents and time of change of each file."""
    files = (pipeline.run.folder / "export").glob("*.jsonl")
    return {path.name: (len(path.read_bytes().splitlines()), path.stat().st_mtime_ns) for path in files}


def test_it_is_there_when_the_run_is_done_and_written_once(pipeline: Pipeline) -> None:
    """Finishing again touches nothing; a lost file brings all of them back."""
    finish_run(pipeline)
    first = exported(pipeline)
    assert {name: n for name, (n, _) in first.items()} == {"kept-eng_Latn.jsonl": 3, "kept-zho_Hans.jsonl": 3}
    finish_run(Pipeline.open(pipeline.run.folder))
    assert exported(pipeline) == first
    (pipeline.run.folder / "export/kept-eng_Latn.jsonl").write_text("", encoding="utf-8")
    finish_run(Pipeline.open(pipeline.run.folder))
    assert {name: n for name, (n, _) in exported(pipeline).items()} == {name: n for name, (n, _) in first.items()}


def test_the_last_task_of_the_dag_writes_it(pipeline: Pipeline) -> None:
    """No hand command: the task `report` ends a run as the command line does."""
    tasks.report(pipeline.run.folder, [])
    assert len(exported(pipeline)) == 2
    assert tasks.gate(pipeline.run.folder, [])["kept"] == 6


def test_other_verdicts_replace_it_and_another_name_is_the_same_run(pipeline: Pipeline, tmp_path: Path) -> None:
    """A changed threshold decides anew and exports anew; another pattern is no other job."""
    finish_run(pipeline)
    again = driven(tmp_path, "language.min_confidence=0.5", run_id=pipeline.run.run_id)
    finish_run(again)
    assert {name: n for name, (n, _) in exported(again).items()} == {"kept-eng_Latn.jsonl": 2, "kept-zho_Hans.jsonl": 2}
    renamed = driven(tmp_path, "language.min_confidence=0.5", "export.pattern='{language}.jsonl'")
    assert renamed.run.run_id == pipeline.run.run_id
    finish_run(renamed)
    assert set(exported(renamed)) == {"eng_Latn.jsonl", "zho_Hans.jsonl"}


def test_a_run_whose_export_fails_is_failed(pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the reason in run.json; the next try succeeds."""
    real = curation.export_split.write_json

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(curation.export_split, "write_json", full)
    with pytest.raises(RunError, match="No space left"):
        finish_run(pipeline)
    assert pipeline.run.info["state"] == "failed"
    assert "No space left" in pipeline.run.info["error"]
    assert not (pipeline.run.folder / "export").exists()
    monkeypatch.setattr(curation.export_split, "write_json", real)
    finish_run(pipeline)
    assert pipeline.run.info["state"] == "done"
    assert export_kept(pipeline, pipeline.run.folder / "all.jsonl") == 6


@pytest.mark.parametrize(
    "pattern",
    [
        "kept.jsonl",
        "{language}",
        "{language}.csv",
        "a/{language}.jsonl",
        "{language}{language}.jsonl",
        "_{language}.jsonl",
    ],
)
def test_a_pattern_that_is_no_file_name_is_refused(fake_language: type[FakeLanguage], pattern: str) -> None:
    """By its key."""
    with pytest.raises(ConfigError, match=r"export\.pattern: expected the name of a file"):
        parse_config(CONFIG, overrides=[f"export.pattern='{pattern}'"])


def test_an_export_without_the_step_is_refused() -> None:
    """Before anything is read."""
    with pytest.raises(ConfigError, match="no step `language`"):
        parse_config("steps: [length]\nexport: {}\n")
