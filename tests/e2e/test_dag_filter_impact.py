"""The DAG `filter_impact`, run by Airflow in this process: within bounds, beyond them, and with a question that cannot be asked."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from curation.cli import main
from curation.run import read_json
from tests import airflow_env

pytestmark = [pytest.mark.airflow, *[pytest.mark.filterwarnings(rule) for rule in airflow_env.QUIET]]

CONFIG = "name: mine\nsteps: [exact, length: {min_units: 3}]\nimpact: {max_kept_change: 0.1}\n"
Trial = Callable[..., "Outcome"]
_moments = iter(range(10**6))


class Outcome:
    """A finished DAG run with its sheet."""

    def __init__(self, dag_run: Any, root: Path) -> None:
        from curation.report.airflow_plugin import find_sheet

        self.state = str(dag_run.state)
        self.run_id = dag_run.run_id
        instances = {ti.task_id: ti for ti in dag_run.get_task_instances()}
        self.states = {name: str(ti.state) for name, ti in instances.items()}
        self.tries = {name: ti.try_number for name, ti in instances.items() if ti.start_date is not None}
        self.sheet, self.why = find_sheet(root, "filter_impact", dag_run.run_id)

    def failed(self) -> list[str]:
        return sorted(name for name, state in self.states.items() if state == "failed")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "root"


@pytest.fixture
def trial(tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> Trial:
    """Runs the DAG once, each time as another DAG run, by default a config against itself."""
    airflow_env.database()
    nap = time.sleep

    def short_nap(seconds: float) -> None:
        caller = sys._getframe(1).f_code.co_filename
        nap(0.02 if caller.endswith("sdk/definitions/dag.py") else seconds)

    monkeypatch.setattr(time, "sleep", short_nap)
    monkeypatch.setenv("CORPUSMILL_ROOT", str(root))
    config = tmp_path / "mine.yaml"
    config.write_text(CONFIG, encoding="utf-8")
    (tmp_path / "sample").mkdir()
    lines = [json.dumps({"id": f"d{n}", "text": f"{n} " + "word " * n}) for n in range(1, 41)]
    (tmp_path / "sample" / "a.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")

    def run(**params: Any) -> Outcome:
        dag = airflow_env.read_impact()
        for task in dag.tasks:
            task.retry_delay = timedelta(0)
        moment = datetime(2026, 5, 20, tzinfo=timezone.utc) + timedelta(minutes=next(_moments))
        conf = {"config": str(config), "base": str(config), "sample": str(tmp_path / "sample"), **params}
        return Outcome(dag.test(run_after=moment, logical_date=moment, run_conf=conf), root)

    return run


def test_the_colour_is_that_of_the_bounds_and_the_sheet_stands_anyway(trial: Trial, root: Path, tmp_path: Path) -> None:
    """Green within them; red beyond, after one try; each DAG run has its own sheet, with the numbers of the command line."""
    green = trial(overrides=["length.min_units=4"])
    assert (green.state, set(green.states.values())) == ("success", {"success"})
    assert green.sheet is not None
    red = trial(overrides=["length.min_units=15"], corpus="3Bdocuments")
    assert (red.state, red.failed(), red.tries["bounds"]) == ("failed", ["bounds"], 1)
    assert red.sheet is not None
    assert red.sheet != green.sheet
    told = read_json(red.sheet.with_name("sheet.json"))
    assert [one["key"] for one in told["broken"]] == ["impact.max_kept_change"]
    assert told["figures"]["extrapolation"]["corpus"] == {"size": 3e9, "measure": "documents"}
    config = str(tmp_path / "mine.yaml")
    asked = ["impact", config, "--base", config, "--set", "length.min_units=15", "--sample", str(tmp_path / "sample")]
    assert main([*asked, "--root", str(root), "--output", str(tmp_path / "by-hand"), "--quiet"]) == 1
    by_hand = read_json(tmp_path / "by-hand" / "sheet.json")
    assert by_hand["figures"]["totals"] == told["figures"]["totals"]
    assert len(list((root / "impact" / "runs").iterdir())) == 3, "what was judged alike was judged twice"


def test_a_lost_worker_is_tried_again(trial: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    """A RunError gets a second try, which finds what the first one did."""
    from curation import impact_tasks
    from curation.errors import RunError

    real, calls = impact_tasks.judge, []

    def dies_once(folder: Path, which: str) -> dict[str, int]:
        calls.append(which)
        done = real(folder, which)
        if len(calls) == 1:
            raise RunError("the disk went away")
        return done

    monkeypatch.setattr(impact_tasks, "judge", dies_once)
    done = trial()
    assert (done.state, calls) == ("success", ["new", "new", "base"])
    assert done.tries["judge_new"] == 2


@pytest.mark.parametrize(
    "wrong", [{"base": "no-such-revision"}, {"overrides": ["length.min_wordz=3"]}, {"sample": "relative"}]
)
def test_a_wrong_question_fails_at_once(trial: Trial, wrong: dict[str, Any]) -> None:
    """One try, nothing is judged, the run is red, and the tab says that there is nothing."""
    done = trial(**wrong)
    assert (done.state, done.failed(), done.tries["start"]) == ("failed", ["start"], 1)
    assert done.states["bounds"] == "upstream_failed"
    assert "Nothing under the root" in done.why
