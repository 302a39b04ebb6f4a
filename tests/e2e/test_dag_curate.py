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
from curation.export import export_kept
from curation.launch import drive, finish_run, start_run
from curation.pipeline import Pipeline
from curation.run import Run, read_json
from tests import airflow_env
from tests.e2e.conftest import write_corpus

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
    """Mapped tasks in every stage, with labels; green; the same kept documents, tokens and numbers."""
    done = trial(large, chunk_mb=1, overrides=SMALL, name="big")
    assert done.state == "success"
    assert done.folder is not None
    assert {"dedup.pass_1[0]", "dedup.pass_1[1]", "quality.pass_1[1]", "pack.encode[1]"} <= done.states.keys()
    assert done.states["dedup.pass_4"] == done.states["language.plan"] == "skipped"
    assert {"ingest.read 0-0", "exact.scatter 0-0", "html_noise+length 1-1"} <= done.labels
    pipeline = start_run(load_config("demo", SMALL), [str(large)], tmp_path / "by-command-line")
    drive(pipeline, workers=1)
    finish_run(pipeline)
    assert kept(done.folder) == kept(pipeline.run.folder)
    left, right = (read_json(folder / "report" / "funnel.json") for folder in (done.folder, pipeline.run.folder))
    assert left["packed"] == right["packed"]
    assert done.folder.name.startswith("big-20260520-142300-")
    assert done.run.info["engine"] == {"engine": "airflow", "dag_id": "curate", "dag_run_id": done.dag_run_id}


def test_a_small_run_does_each_stage_in_one_task_and_again_nothing(trial: Trial, corpus: tuple[Path, Any]) -> None:
    """The same DAG run once more finds its folder and does nothing twice; XComs stay below 2 kB."""
    first = trial(corpus[0])
    assert first.state == "success"
    assert first.states["dedup.whole"] == "success"
    assert first.states["dedup.pass_1"] == first.states["safety.check"] == "skipped"
    assert first.folder is not None
    before = {path: path.stat().st_mtime_ns for path in first.folder.rglob("*.arrow")}
    xcoms = _xcoms(first.dag_run_id)
    assert max(len(json.dumps(value)) for value in xcoms.values()) < 2000
    assert str(first.folder) not in json.dumps(xcoms), "only relative paths travel between tasks"
    _check_announcement(first)
    again = trial(corpus[0])
    assert again.state == "success"
    assert again.folder == first.folder
    assert {path: path.stat().st_mtime_ns for path in first.folder.rglob("*.arrow")} == before


def _xcoms(dag_run_id: str) -> dict[str, Any]:
    from airflow.models.xcom import XComModel
    from airflow.utils.session import create_session

    with create_session() as session:
        rows = session.query(XComModel).filter(XComModel.run_id == dag_run_id).all()
        return {f"{row.task_id}[{row.map_index}].{row.key}": XComModel.deserialize_value(row) for row in rows}


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


@pytest.mark.parametrize(
    "params",
    [{"overrides": ["length.min_wordz=3"]}, {"input": ["/no/such/file.jsonl"]}],
)
def test_a_wrong_parameter_fails_at_once(trial: Trial, tmp_path: Path, params: dict[str, Any]) -> None:
    """One try, nothing else runs, the run is red and no folder is left behind."""
    done = trial(tmp_path, **params)
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


def test_a_task_that_dies_is_tried_again_and_goes_on(
    trial: Trial, corpus: tuple[Path, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A RunError once: a second try, a green run, and the error in the run's own logs."""
    from curation import tasks
    from curation.errors import RunError

    real, calls = tasks.whole, []

    def dies_once(folder: Path, stage: str, **more: Any) -> Any:
        calls.append(stage)
        if len(calls) == 1:
            raise RunError("the disk went away")
        return real(folder, stage, **more)

    monkeypatch.setattr(tasks, "whole", dies_once)
    done = trial(corpus[0], overrides=["pack="])
    assert done.state == "success"
    assert calls[:2] == ["dedup", "dedup"]
    assert done.tries["dedup.whole"] == 2
    trace = read_json(done.run.folder / "logs" / "tasks" / "dedup.whole.1.json")
    assert trace["error"] == "the disk went away"


def test_a_chunk_that_always_fails_is_named(trial: Trial, large: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run ends red, the other chunks are done, and run.json names the chunk and its error."""
    from curation import tasks
    from curation.errors import LawError

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
