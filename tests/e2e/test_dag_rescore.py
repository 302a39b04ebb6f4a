"""The DAG `rescore`, run by Airflow in this process: nothing due, several at once, half-written, approval, events."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from curation.blacklist import Blacklist
from curation.run import read_json
from tests import airflow_env
from tests.rescore_loops import Loop, texts, toy_model, write_texts

pytest.importorskip("torch", reason="torch is not installed: `make torch`")
pytest.importorskip("transformers", reason="transformers is not installed: `make setup`")
pytestmark = [pytest.mark.airflow, *[pytest.mark.filterwarnings(rule) for rule in airflow_env.QUIET]]

Trial = Callable[..., "Outcome"]
_moments = iter(range(10**6))


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return toy_model(tmp_path_factory.mktemp("lm"))


@pytest.fixture
def loop(tmp_path: Path) -> Loop:
    (tmp_path / "training").mkdir()
    return Loop(tmp_path)


class Outcome:
    """A finished DAG run."""

    def __init__(self, dag_run: Any) -> None:
        self.state = str(dag_run.state)
        instances = {
            ti.task_id if ti.map_index < 0 else f"{ti.task_id}[{ti.map_index}]": ti
            for ti in dag_run.get_task_instances()
        }
        self.states = {name: str(ti.state) for name, ti in instances.items()}
        self.tries = {name: ti.try_number for name, ti in instances.items() if ti.start_date is not None}

    def failed(self) -> list[str]:
        return sorted(name for name, state in self.states.items() if state == "failed")


@pytest.fixture
def trial(loop: Loop, monkeypatch: pytest.MonkeyPatch) -> Trial:
    """Runs the DAG once, each time as another DAG run, with the settings of the loop."""
    airflow_env.database()
    nap = time.sleep

    def short_nap(seconds: float) -> None:
        caller = sys._getframe(1).f_code.co_filename
        nap(0.02 if caller.endswith("sdk/definitions/dag.py") else seconds)

    monkeypatch.setattr(time, "sleep", short_nap)
    monkeypatch.setattr("os.fsync", lambda descriptor: None)

    def run(settings: dict[str, Any] | None = None) -> Outcome:
        dag = airflow_env.read_rescore()
        for task in dag.tasks:
            if hasattr(task, "retry_delay"):
                task.retry_delay = timedelta(0)
        moment = datetime(2026, 5, 20, tzinfo=timezone.utc) + timedelta(minutes=10 * next(_moments))
        conf = {} if settings is None else {"settings": str(loop.settings_file(**settings))}
        return Outcome(dag.test(run_after=moment, logical_date=moment, run_conf=conf))

    return run


def test_without_settings_or_anything_due_everything_is_skipped(
    trial: Trial, loop: Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Green both times; only the first tasks ran."""
    monkeypatch.delenv("CORPUSMILL_RESCORE", raising=False)
    done = trial()
    assert done.state == "success"
    assert {name for name, state in done.states.items() if state != "skipped"} == {"take_reports"}
    done = trial({})
    assert done.state == "success"
    assert {name for name, state in done.states.items() if state != "skipped"} == {"take_reports", "due"}
    monkeypatch.setenv("CORPUSMILL_RESCORE", str(loop.settings_file()))
    assert trial().states["due"] == "success"


def test_two_thresholds_at_once_and_again_nothing(trial: Trial, loop: Loop, model: Path) -> None:
    """The first judges every run, the second one what is new: nothing. Another DAG run finds nothing due."""
    loop.add_run("a", texts(100))
    loop.add_run("b", texts(60, 1))
    attempt = loop.attempt()
    for n in (1, 2):
        attempt.append(1000 * n + 5, n, f"c{n}", sha256=loop.checkpoint(f"c{n}", model))
    done = trial({})
    assert (done.state, done.failed()) == ("success", [])
    assert {done.states[name] for name in ("pin[0]", "pin[1]", "score.chunks[0]", "publish", "gate")} == {"success"}
    assert {done.states[name] for name in ("ingest", "choose.approval")} == {"skipped"}
    assert (loop.done(1000)["state"], loop.done(1000)["version"]) == ("published", 1)
    assert loop.done(1000)["counts"]["entries"] == len(Blacklist.open(str(loop.root / "blacklist"))) == 8
    assert loop.done(2000)["state"] == "no_documents"
    assert [path.name for path in (loop.folder_of(1000) / "_model").iterdir()] == ["pinned.json"]
    assert {path.name for path in (loop.folder_of(1000) / "report").iterdir()} >= {"report.html", "facts.json"}
    assert trial({}).states["pin"] == "skipped"


def test_a_half_written_checkpoint_is_waited_for_and_stops_no_other(trial: Trial, loop: Loop, model: Path) -> None:
    """The run is red; the other threshold judges what there is; when the checkpoint is whole, the next run does the rest."""
    loop.add_run("a", texts(100))
    attempt = loop.attempt()
    sums = [loop.checkpoint(f"c{n}", model) for n in (1, 2)]
    weights = loop.training / "c1" / "model.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole[: len(whole) // 2])
    attempt.append(1005, 1, "c1", sha256=sums[0])
    done = trial({})
    assert (done.state, done.failed()) == ("failed", ["gate", "pin[0]"])
    assert done.tries["pin[0]"] == 3
    assert "is not whole" in read_json(loop.folder_of(1000) / "problem.json")["error"]
    crawl = {"runs": ["a"], "input": ["new"], "config": "crawl.yaml"}
    (loop.folder / "crawl.yaml").write_text("steps: [{length: {min_units: 3}}]\n", encoding="utf-8")
    write_texts(loop.folder / "new" / "1.jsonl", texts(60, 1))
    attempt.append(2005, 2, "c2", sha256=sums[1])
    done = trial({"crawl": crawl})
    assert (done.state, done.failed()) == ("failed", ["gate", "pin[0]"])
    assert loop.done(2000)["state"] == "published"
    write_texts(loop.folder / "new" / "2.jsonl", texts(60, 2))
    weights.write_bytes(whole)
    done = trial({"crawl": crawl})
    assert (done.state, done.failed()) == ("success", [])
    # Nothing was new to it when the other had begun, so what came later is for the next one.
    assert loop.done(1000)["state"] == "no_documents"


def test_settings_that_do_not_fit_turn_the_gate_red_alone(trial: Trial, loop: Loop, model: Path) -> None:
    """Every plan is green, nothing is tried again, and the word names the key; the next run goes on with the mended file."""
    loop.add_run("a", texts(100))
    loop.attempt().append(1005, 1, "c1", sha256=loop.checkpoint("c1", model))
    done = trial({"score": {"window": 512, "dtype": "float32", "device": "cpu"}})
    assert (done.state, done.failed()) == ("failed", ["gate"])
    assert {done.states[name] for name in ("count.plan", "score.plan", "choose.propose", "publish")} == {"success"}
    assert done.tries["choose.propose"] == 1
    problem = read_json(loop.folder_of(1000) / "problem.json")
    assert problem["error"].startswith("window: expected at most 256")
    assert trial({}).state == "success"
    assert loop.done(1000)["state"] == "published"


def _answer(option: str, seen: list[str]) -> threading.Thread:
    """Answers the question of a DAG run as the API does, as soon as it is asked."""

    def act() -> None:
        from airflow.models.hitl import HITLDetail
        from airflow.models.taskinstance import TaskInstance
        from airflow.models.trigger import handle_event_submit
        from airflow.triggers.base import TriggerEvent
        from airflow.utils.session import create_session

        until = time.monotonic() + 60
        while time.monotonic() < until:
            with create_session() as session:
                for detail in session.query(HITLDetail).filter(HITLDetail.responded_at.is_(None)).all():
                    instance = session.get(TaskInstance, detail.ti_id)
                    if instance is None or instance.state != "awaiting_input":
                        continue
                    seen.extend([detail.subject, detail.body])
                    detail.responded_by = {"id": "7", "name": "ada"}
                    detail.responded_at = datetime.now(timezone.utc)
                    detail.chosen_options, detail.params_input = [option], {}
                    session.add(detail)
                    payload = TriggerEvent(detail.as_resume_event_payload())
                    handle_event_submit(payload, task_instance=instance, session=session)
                    return
            time.sleep(0.05)

    thread = threading.Thread(target=act, daemon=True)
    thread.start()
    return thread


@pytest.mark.parametrize(("option", "state", "version"), [("Approve", "published", 1), ("Reject", "rejected", None)])
def test_a_person_is_asked(trial: Trial, loop: Loop, model: Path, option: str, state: str, version: int | None) -> None:
    """The question shows samples letter by letter, templates and markup included; the answer decides and is written down."""
    hostile = [f"<img src=x> [a](http://b) {{{{ 7 * 7 }}}} \x1b[2J\n# {n} " + "QZ~%$ " * 60 for n in range(3)]
    loop.add_run("a", [*texts(100), *hostile])
    loop.attempt().append(1005, 1, "c1", sha256=loop.checkpoint("c1", model))
    seen: list[str] = []
    thread = _answer(option, seen)
    done = trial({"approval": True})
    thread.join()
    assert (done.state, done.failed()) == ("success", [])
    subject, body = seen
    assert subject.startswith("Blacklist ")
    assert "{{ 7 * 7 }}" in body
    assert "\x1b" not in body
    assert all(line.startswith("    ") for line in body.split("\n"))
    decision = read_json(loop.folder_of(1000) / "decision.json")
    assert (decision["decision"], decision["who"]) == ({"Approve": "approved", "Reject": "rejected"}[option], "ada")
    assert (loop.done(1000)["state"], loop.done(1000)["version"]) == (state, version)


def test_fresh_files_are_read_by_the_threshold_itself(trial: Trial, loop: Loop, model: Path) -> None:
    """New files in a folder are enough: each becomes part of one run of one threshold, mapped in the DAG."""
    config = loop.folder / "crawl.yaml"
    config.write_text("steps: [{length: {min_units: 3}}]\n", encoding="utf-8")
    crawl = {"runs": [], "input": ["new"], "config": "crawl.yaml"}
    write_texts(loop.folder / "new" / "1.jsonl", texts(60))
    attempt = loop.attempt()
    attempt.append(1005, 1, "c1", sha256=loop.checkpoint("c1", model))
    done = trial({"crawl": crawl})
    assert (done.state, done.states["ingest[0]"]) == ("success", "success")
    write_texts(loop.folder / "new" / "2.jsonl", texts(60, 1))
    attempt.append(2005, 2, "c2", sha256=loop.checkpoint("c2", model))
    assert trial({"crawl": crawl}).state == "success"
    assert [loop.done(n)["counts"]["documents"] for n in (1000, 2000)] == [60, 60]
    runs = sorted(path.name for path in (loop.root / "runs").iterdir())
    assert [name.rpartition("-")[2] for name in runs] == [f"{n:016d}" for n in (1000, 2000)]


def test_events_that_repeat_or_are_wrong_harm_nothing(trial: Trial, loop: Loop, model: Path) -> None:
    """What events tell comes into the ledger once; a wrong one and another training's are passed over; it is scored once."""
    pytest.importorskip("curation.rescore.reports")
    airflow_env.read_rescore()
    loop.add_run("a", texts(100))
    attempt = loop.attempt()
    told = {
        "training_run": "toy", "tokens_seen": 1005, "step": 1, "checkpoint": "c1",
        "checkpoint_sha256": loop.checkpoint("c1", model),
    }  # fmt: skip
    trial({})  # the asset is known from here on
    _post([told, told, {**told, "training_run": "other"}, {**told, "tokens_seen": "many"}, {"x": 1}])
    done = trial({})
    assert (done.state, loop.done(1000)["state"]) == ("success", "published")
    assert attempt.id
    _post([told])
    assert trial({}).states["pin"] == "skipped"
    lines = (loop.training / "progress.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["tokens_seen"] for line in lines].count(1005) == 1


def _post(extras: list[Any]) -> None:
    """Events of the asset, as the API stores them."""
    from airflow.models.asset import AssetEvent, AssetModel
    from airflow.utils.session import create_session

    with create_session() as session:
        asset = session.query(AssetModel).filter(AssetModel.name == "corpusmill_progress").one()
        session.add_all(AssetEvent(asset_id=asset.id, extra=extra) for extra in extras)
