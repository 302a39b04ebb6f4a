"""The DAG of a change's impact as Airflow reads it: how it is wired, what its form takes, what every task says of itself."""

from __future__ import annotations

from typing import Any

import pytest

from tests import airflow_env

pytestmark = [pytest.mark.airflow, *[pytest.mark.filterwarnings(rule) for rule in airflow_env.QUIET]]


@pytest.fixture(scope="module")
def dag() -> Any:
    return airflow_env.read_impact()


def test_it_is_one_chain_whose_end_are_the_bounds(dag: Any) -> None:
    """The new side goes first: the base then judges only what its own code or settings change."""
    assert [task.task_id for task in dag.topological_sort()] == ["start", "judge_new", "judge_base", "sheet", "bounds"]
    assert [task.task_id for task in dag.leaves] == ["bounds"]
    assert {str(task.trigger_rule.value) for task in dag.tasks} == {"all_success"}


def test_it_runs_when_asked(dag: Any) -> None:
    """No schedule: a change is what starts it. Two questions at once do no harm."""
    assert (dag.schedule, dag.max_active_runs, dag.catchup) == (None, 2, False)
    assert set(dag.tags) == {"corpusmill", "impact"}


def test_what_judges_and_counts_waits_in_the_pool(dag: Any) -> None:
    """The ends are light."""
    where = {task.task_id: (task.pool, task.queue) for task in dag.tasks}
    assert where.pop("start") == where.pop("bounds") == ("default_pool", "default")
    assert set(where.values()) == {("cpu", "cpu")}


def test_every_task_has_retries_a_policy_an_owner_and_a_text(dag: Any) -> None:
    """Two more tries, none for a wrong question, and a text that says what the task does."""
    import curation.errors

    for task in dag.tasks:
        assert task.doc_md, task.task_id
        assert task.owner == "corpusmill"
        assert task.retries == 2, task.task_id
        for error in ("ConfigError", "InputError", "LawError"):
            decision = task.retry_policy.evaluate(getattr(curation.errors, error)("x"), 1, 3)
            assert decision.action.value == "fail"
    assert len(dag.doc_md) > 500


def test_the_form_wants_a_base_and_nothing_else(dag: Any) -> None:
    """What is compared with must be said; a config is proposed, the rest may stay empty."""
    from airflow.sdk.exceptions import ParamValidationError

    params = dag.params
    with pytest.raises(ParamValidationError):
        params.get_param("base").resolve()
    for name, wrong in (("base", ""), ("config", ""), ("overrides", ["no equals sign"]), ("sample", 7), ("corpus", 3)):
        with pytest.raises(ParamValidationError):
            params.get_param(name).resolve(wrong)
    assert params.get_param("config").resolve() == "web"
    assert {"web", "demo", "zh-web"} <= set(params.get_param("config").schema["examples"])
    assert [params.get_param(name).resolve() for name in ("sample", "corpus", "root")] == [None, None, None]
    assert params.get_param("overrides").resolve() == []
