"""The whole DAG, run by Airflow in this process on small inputs: right, wrong, empty, again."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from curation.config import load_config
from curation.errors import LawError, RunError
from curation.export import export_kept
from curation.launch import drive, finish_run, start_run
from curation.pipeline import Pipeline
from curation.run import Run, read_json
from tests import airflow_env
from tests.e2e.conftest import write_corpus
from tests.parity_variants import small, twin

pytestmark = [pytest.mark.airflow, *[pytest.mark.filterwarnings(rule) for rule in airflow_env.QUIET]]

SMALL = ["ingest.slice_mb=1", "ingest.shard_mb=1"]
Trial = Callable[..., "Outcome"]


class Outcome:
    """A finished DAG run with what lies on disk."""

    def __init__(self, dag_run: Any, root: Path) -> None:
        self.state = str(dag_run.state)
        self.dag_run_id = dag_run.run_id
        instances = dag_run.get_task_instances()
        self.states = {
            ti.task_id if ti.map_index < 0 else f"{ti.task_id}[{ti.map_index}]": str(ti.state) for ti in instances
        }
        self.labels = {ti.rendered_map_index for ti in instances if ti.map_index >= 0}
        self.tries = {ti.task_id: ti.try_number for ti in instances if ti.start_date is not None}
        folders = sorted((root / "runs").glob("*")) if (root / "runs").is_dir() else []
        self.folder = folders[0] if folders else None
        assert len(folders) <= 1

    @property
    def run(self) -> Run:
        assert self.folder is not None
        return Run(self.folder)

    def failed(self) -> list[str]:
        return sorted(name for name, state in self.states.items() if state == "failed")


@pytest.fixture
def trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Trial:
    """Runs the DAG once, by default at a fixed time, so that a second call is the same DAG run again."""
    airflow_env.database()
    nap = time.sleep

    def short_nap(seconds: float) -> None:
        """`dag.test()` naps for a second whenever nothing can run, also when it only has skips to pass on."""
        caller = sys._getframe(1).f_code.co_filename
        nap(0.02 if caller.endswith("sdk/definitions/dag.py") else seconds)

    monkeypatch.setattr(time, "sleep", short_nap)
    monkeypatch.setenv("CORPUSMILL_ROOT", str(tmp_path / "root"))

    def run(inputs: Path, **params: Any) -> Outcome:
        # Read anew each time: `dag.test()` leaves the parameters of a run behind in the DAG.
        dag = airflow_env.read_curate()
        for task in dag.tasks:
            if hasattr(task, "retry_delay"):
                task.retry_delay = timedelta(0)
        moment = datetime(2026, 5, 20, 14, 23, tzinfo=timezone.utc)
        conf = {"input": [str(inputs)], "config": "demo", **params}
        return Outcome(dag.test(run_after=moment, logical_date=moment, run_conf=conf), tmp_path / "root")

    return run


def kept(folder: Path) -> list[str]:
    out = folder / "kept.jsonl"
    export_kept(Pipeline.open(folder), out)
    return sorted(out.read_text(encoding="utf-8").splitlines())


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three megabytes in two files."""
    folder = tmp_path_factory.mktemp("large")
    for number in range(2):
        write_corpus(folder / f"{number}.jsonl", 800, seed=number)
    return folder


def test_a_large_run_in_chunks_keeps_what_the_command_line_keeps(trial: Trial, large: Path, tmp_path: Path) -> None:
    """Mapped tasks in every stage, with labels; green; the same kept documents and numbers, with or without pack."""
    done = trial(large, chunk_mb=1, overrides=[*SMALL, "pack="], name="big")
    assert done.state == "success"
    assert done.folder is not None
    assert {"dedup.pass_1[0]", "dedup.pass_1[1]", "language.pass_1[1]", "quality.pass_1[1]"} <= done.states.keys()
    assert done.states["quality.pass_2"] == done.states["language.pass_2"] == done.states["safety.pass_2"] == "skipped"
    assert {
        "ingest.read 0-0",
        "exact.scatter 0-0",
        "near.sign 0-0",
        "language 0-0",
        "html_noise+length+rules+perplexity 1-1",
        "safety_terms+safety_model 1-1",
    } <= done.labels
    assert sum(label.startswith("near.verify ") for label in done.labels) > 1
    pipeline = start_run(load_config("demo", [*SMALL, "pack="]), [str(large)], tmp_path / "by-command-line")
    drive(pipeline, workers=1)
    finish_run(pipeline)
    assert kept(done.folder) == kept(pipeline.run.folder)
    left, right = (read_json(folder / "report" / "funnel.json") for folder in (done.folder, pipeline.run.folder))
    keys = ("name", "docs_in", "docs_kept", "dropped", "bytes_in", "bytes_kept")
    assert [[step[key] for key in keys] for step in left["steps"]] == [[s[key] for key in keys] for s in right["steps"]]
    assert done.states["pack.check"] == "skipped"
    assert done.folder.name.startswith("big-20260520-142300-")
    assert done.run.info["engine"] == {"engine": "airflow", "dag_id": "curate", "dag_run_id": done.dag_run_id}


def test_a_small_run_survives_a_dying_task_and_does_nothing_twice(
    trial: Trial, corpus: tuple[Path, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stage is one task; a RunError gets a second try; the same DAG run once more finds its folder and all of it done."""
    from curation import tasks

    real, calls = tasks.whole, []

    def dies_once(folder: Path, stage: str, **more: Any) -> Any:
        calls.append(stage)
        if len(calls) == 1:
            raise RunError("the disk went away")
        return real(folder, stage, **more)

    monkeypatch.setattr(tasks, "whole", dies_once)
    first = trial(corpus[0])
    assert first.state == "success"
    assert calls == ["dedup", "dedup", "language", "quality", "safety"]
    assert first.tries["dedup.whole"] == 2
    assert first.states["dedup.pass_1"] == first.states["safety.pass_1"] == "skipped"
    trace = read_json(first.run.folder / "logs" / "tasks" / "dedup.whole.1.json")
    assert trace["error"] == "the disk went away"
    _check_announcement(first)
    _check_xcoms(first)
    before = {path: path.stat().st_mtime_ns for path in first.run.folder.rglob("*.arrow")}
    again = trial(corpus[0])
    assert again.state == "success"
    assert again.folder == first.folder
    assert {path: path.stat().st_mtime_ns for path in again.run.folder.rglob("*.arrow")} == before


def _check_xcoms(done: Outcome) -> None:
    """What travels between tasks: less than 2 kB each, and only relative paths."""
    from airflow.models.xcom import XComModel
    from airflow.utils.session import create_session

    with create_session() as session:
        rows = session.query(XComModel).filter(XComModel.run_id == done.dag_run_id).all()
        values = [json.dumps(XComModel.deserialize_value(row)) for row in rows]
    assert len(values) > 10
    assert max(map(len, values)) < 2000
    assert str(done.folder) not in "".join(values)


def _check_announcement(done: Outcome) -> None:
    """The asset event says which run, where its token file lies, how many tokens, and the digest."""
    from airflow.models.asset import AssetEvent
    from airflow.utils.session import create_session

    with create_session() as session:
        events = session.query(AssetEvent).order_by(AssetEvent.id.desc()).all()
        extra = events[0].extra
    assert events[0].source_run_id == done.dag_run_id
    packed = read_json(done.run.pack / "_done.json")
    assert extra["run_id"] == done.run.run_id
    assert extra["tokens"] == packed["packed"]["tokens"] > 0
    assert extra["digest"] == packed["digest"]
    assert (done.run.folder.parents[1] / extra["path"]).is_file()


def test_a_wrong_parameter_fails_at_once(trial: Trial, tmp_path: Path) -> None:
    """One try, nothing else runs, the run is red and no folder is left behind."""
    done = trial(tmp_path, overrides=["length.min_wordz=3"])
    assert done.state == "failed"
    assert done.failed() == ["gate", "start"]
    assert done.tries["start"] == 1
    assert done.states["report"] == "skipped"
    assert done.states["ingest.plan"] == done.states["pack.check"] == "upstream_failed"
    assert done.folder is None


def test_too_much_quarantine_fails_the_run_with_a_report(trial: Trial, tmp_path: Path) -> None:
    """ingest.close fails after one try; the report is written, run.json says why, the gate is red."""
    inputs = tmp_path / "in"
    inputs.mkdir()
    (inputs / "bad.jsonl").write_text('{"text": "good enough"}\n{"text": \n{"text": \n', encoding="utf-8")
    done = trial(inputs)
    assert done.state == "failed"
    assert done.failed() == ["gate", "ingest.close"]
    assert done.tries["ingest.close"] == 1
    assert done.states["report"] == "success"
    assert done.states["dedup.plan"] == "upstream_failed"
    assert done.run.info["state"] == "failed"
    assert "max_quarantine_share" in done.run.info["error"]
    assert (done.run.report / "report.html").is_file()


def test_no_documents_end_in_a_report_of_zeros(trial: Trial, tmp_path: Path) -> None:
    """An empty file and an empty folder are no failure and no silence: every stage runs, the token file is there."""
    inputs = tmp_path / "in"
    inputs.mkdir()
    done = trial(inputs)
    assert done.state == "success"
    assert done.states["ingest.read"] == "skipped"
    assert done.states["ingest.close"] == done.states["pack.assemble"] == done.states["gate"] == "success"
    funnel = read_json(done.run.report / "funnel.json")
    assert funnel["documents"] == funnel["kept"] == funnel["packed"]["documents"] == 0


def test_nothing_is_encoded_with_another_tokenizer_than_the_trainers(trial: Trial, tmp_path: Path) -> None:
    """One document differs: parity fails after one try and names it; nothing is encoded, the report is written, the gate is red."""
    ours, theirs = small(tmp_path / "ours")[0], twin(tmp_path / "theirs", "added")
    text = "She may use <tool> for that, and goes on with the work of the day until the evening comes. " * 3
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.jsonl").write_text(json.dumps({"id": "tool", "text": text}) + "\n", encoding="utf-8")
    config = tmp_path / "mine.yaml"
    steps = "steps: [exact, length]\n"
    config.write_text(f"{steps}pack: {{tokenizer: {ours}, trainer: {theirs}, engine: stock}}\n", encoding="utf-8")

    done = trial(tmp_path / "in", config=str(config))

    assert done.state == "failed"
    assert done.failed() == ["gate", "pack.parity"]
    assert done.tries["pack.parity"] == 1, "a ConfigError is not tried again"
    for name in ("plan", "encode", "assemble", "check"):
        assert done.states[f"pack.{name}"] == "upstream_failed"
    assert done.states["report"] == "success"
    assert done.run.info["state"] == "failed"
    assert "pack.parity: pack.trainer: " in done.run.info["error"]
    assert "document tool: " in done.run.info["error"]
    assert "document tool: " in (done.run.report / "report.html").read_text(encoding="utf-8")
    assert [path.name for path in done.run.pack.iterdir()] == ["parity.json"]


def test_several_lengths_and_a_holdout(trial: Trial, corpus: tuple[Path, Any], tmp_path: Path) -> None:
    """The same tasks write every file, and the counts of all documents are those of the funnel."""
    ours = small(tmp_path / "ours")[0]
    config = tmp_path / "mine.yaml"
    pack = f"{{tokenizer: {ours}, trainer: {ours}, engine: stock, seq_len: [128, 512], holdout_share: 0.2}}"
    config.write_text(f"steps: [exact, length]\npack: {pack}\n", encoding="utf-8")

    done = trial(corpus[0], config=str(config), overrides=["ingest.max_quarantine_share=0.2"])

    assert done.state == "success", done.failed()
    assert done.states["pack.parity"] == done.states["pack.encode[0]"] == "success"
    files = {str(path.relative_to(done.run.pack)) for path in done.run.pack.rglob("tokens.arrow")}
    assert files == {"tokens.arrow", "holdout/tokens.arrow", "512/tokens.arrow", "512/holdout/tokens.arrow"}
    funnel = read_json(done.run.report / "funnel.json")
    assert funnel["packed"]["documents"] == funnel["kept"] > funnel["packed"]["holdout_documents"] > 0
    _check_announcement(done)


def test_a_chunk_that_always_fails_is_named(trial: Trial, large: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run ends red, the other chunks are done, and run.json names the chunk and its error."""
    from curation import tasks

    real = tasks.work

    def breaks(folder: Path, stage: str, passes: Any, chunk: str) -> Any:
        if stage == "dedup" and chunk.startswith("1"):
            raise LawError("a document was lost")
        return real(folder, stage, passes, chunk)

    monkeypatch.setattr(tasks, "work", breaks)
    done = trial(large, chunk_mb=1, overrides=[*SMALL, "pack="])
    assert done.state == "failed"
    assert done.failed() == ["dedup.pass_1[1]", "gate"]
    assert done.states["dedup.pass_1[0]"] == done.states["report"] == "success"
    assert done.run.info["error"] == "dedup.pass_1_1 (exact.scatter 1-2): a document was lost"
