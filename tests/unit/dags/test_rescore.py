"""The DAG of the re-score as Airflow reads it: when it runs, how it is wired, what every task says of itself."""

from __future__ import annotations

from typing import Any

import pytest

from tests import airflow_env

pytestmark = [pytest.mark.airflow, *[pytest.mark.filterwarnings(rule) for rule in airflow_env.QUIET]]

ORDER = [
    "take_reports", "due", "pin", "begin", "ingest", "count.plan", "count.chunks", "score.plan", "score.chunks",
    "choose.propose", "choose.ask", "choose.approval", "choose.decide", "publish", "report", "gate",
]  # fmt: skip


@pytest.fixture(scope="module")
def dag() -> Any:
    return airflow_env.read_rescore()


def test_it_runs_by_the_clock_or_an_event_one_run_at_a_time(dag: Any) -> None:
    """Every ten minutes, or for an event of the asset; what was missed is not made up for: each run does all that is due."""
    assert dag.schedule.timetable.expression == "*/10 * * * *"
    assert [asset.name for asset in dag.schedule.asset_condition.objects] == ["corpusmill_progress"]
    assert (dag.max_active_runs, dag.catchup) == (1, False)
    assert [asset.name for asset in dag.get_task("take_reports").inlets] == ["corpusmill_progress"]


def test_it_is_one_chain_whose_end_is_the_gate(dag: Any) -> None:
    """Each step follows the one before."""
    assert [task.task_id for task in dag.topological_sort()] == ORDER
    assert [task.task_id for task in dag.leaves] == ["gate"]
    assert {task.task_id for task in dag.tasks if len(task.downstream_task_ids) > 1} <= {"count.plan", "score.plan"}


def test_a_failing_step_stops_no_other_threshold(dag: Any) -> None:
    """What is not mapped runs whatever happened before; what is mapped follows the list that it is mapped over."""
    rules = {task.task_id: task.trigger_rule for task in dag.tasks}
    mapped = {"pin", "ingest", "count.chunks", "score.chunks", "choose.approval"}
    assert {name for name, rule in rules.items() if rule != "all_done"} == mapped | {"take_reports"}
    assert {task.task_id for task in dag.tasks if task.pool == "cpu"} == mapped - {"choose.approval"}


def test_every_task_has_retries_a_policy_an_owner_and_a_text(dag: Any) -> None:
    """Two more tries, none for wrong settings, and a text that says what the task does."""
    for task in dag.tasks:
        assert task.doc_md, task.task_id
        assert task.owner == "corpusmill"
        assert task.retries == 2, task.task_id
        assert task.retry_policy is not None
    assert len(dag.doc_md) > 500
    assert set(dag.tags) == {"corpusmill", "rescore"}


def test_what_a_person_is_shown_is_no_template(dag: Any) -> None:
    """It quotes the crawl: nothing of it is rendered."""
    assert list(dag.get_task("choose.approval").operator_class.template_fields) == []


def test_no_settings_is_a_value_of_the_form(dag: Any) -> None:
    """Then the environment names the file."""
    assert dag.params.get_param("settings").resolve() is None
    assert dag.params.get_param("chunk_mb").resolve() == 16
