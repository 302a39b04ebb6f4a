"""The DAG as Airflow reads it: it parses fast and light, and is wired as the pipeline runs."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from curation.pipeline import ALL_STAGES
from tests import airflow_env

pytestmark = [pytest.mark.airflow, *[pytest.mark.filterwarnings(rule) for rule in airflow_env.QUIET]]

HEAVY = ("torch", "numba", "trafilatura", "tokenizers", "transformers", "pandas", "fastwarc", "lxml", "jinja2.ext")


@pytest.fixture(scope="module")
def dag() -> Any:
    return airflow_env.read_curate()


def test_the_folder_parses_fast_and_imports_nothing_heavy(tmp_path: Path) -> None:
    """No import error, three DAGs, less than 2 s of processor time beyond Airflow itself, no model or extractor library."""
    code = """if True:
        import json, sys, time
        import airflow.sdk, airflow.dag_processing.dagbag
        before = set(sys.modules)
        start = time.process_time()
        bag = airflow.dag_processing.dagbag.DagBag(sys.argv[1])
        seconds = time.process_time() - start
        found = {"seconds": seconds, "errors": {str(k): v for k, v in bag.import_errors.items()}, "dags": list(bag.dags)}
        print(json.dumps(found | {"modules": sorted(set(sys.modules) - before)}))
    """
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, str(airflow_env.DAGS)],
        env={**airflow_env.settings(tmp_path), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["errors"] == {}
    assert sorted(found["dags"]) == ["curate", "filter_impact", "rescore"]
    assert [name for name in HEAVY if name in found["modules"]] == []
    assert found["seconds"] < 2


def test_groups_come_in_the_order_of_the_pipeline(dag: Any) -> None:
    """start, the stages, report, gate; each group begins when the one before it is closed."""
    order: list[str] = []
    for task in dag.topological_sort():
        name = task.task_id.partition(".")[0]
        if name not in order:
            order.append(name)
    assert order == ["start", *ALL_STAGES, "report", "gate"]
    closing = {"ingest": "ingest.close"} | {stage: f"{stage}.check" for stage in ALL_STAGES[1:]}
    for before, after in itertools.pairwise(ALL_STAGES):
        first = dag.get_task("pack.parity" if after == "pack" else f"{after}.plan")
        assert first.upstream_task_ids == {closing[before]}
    assert dag.get_task("pack.plan").upstream_task_ids == {"pack.parity"}, "nothing is encoded before parity holds"


def test_only_the_gate_decides_the_colour_of_the_run(dag: Any) -> None:
    """It is the only leaf and runs whatever happened; the report waits for every chunk."""
    assert [task.task_id for task in dag.leaves] == ["gate"]
    assert dag.get_task("gate").trigger_rule == "all_done"
    report = dag.get_task("report")
    assert report.trigger_rule == "all_done"
    chunks = {task.task_id for task in dag.tasks if task.pool == "cpu"}
    assert chunks <= report.upstream_task_ids
    assert {"ingest.read", "dedup.whole", "dedup.pass_8", "pack.encode"} <= chunks


def test_every_task_has_retries_a_policy_an_owner_and_a_text(dag: Any) -> None:
    """Two more tries, a policy that knows when they cannot help, and a text that says what the task does."""
    for task in dag.tasks:
        assert task.doc_md, task.task_id
        assert task.owner == "corpusmill"
        assert task.retries == 2, task.task_id
        assert task.retry_policy is not None
    assert len(dag.doc_md) > 500
    assert set(dag.tags) == {"corpusmill", "curation"}


@pytest.mark.parametrize(
    ("error", "fails"),
    [("ConfigError", True), ("InputError", True), ("LawError", True), ("RunError", False), ("CorpusmillError", False)],
)
def test_errors_that_would_only_repeat_are_not_tried_again(dag: Any, error: str, fails: bool) -> None:
    """A wrong config, a bad input and a broken law fail at once; a damaged file of the run is made anew."""
    import curation.errors

    decision = dag.get_task("start").retry_policy.evaluate(getattr(curation.errors, error)("x"), 1, 3)
    assert (decision.action.value == "fail") is fails


def test_heavy_tasks_wait_in_pools_and_light_ones_do_not(dag: Any) -> None:
    """Chunks in `cpu`, the assembly of the token file alone in `mem_heavy`, each on its own Celery queue."""
    where = {task.task_id: (task.pool, task.queue) for task in dag.tasks}
    assert where["pack.assemble"] == ("mem_heavy", "mem")
    assert {where[task_id] for task_id in where if ".pass_" in task_id or ".whole" in task_id} == {("cpu", "cpu")}
    assert {where[task_id] for task_id in where if ".plan" in task_id or ".check" in task_id} == {
        ("default_pool", "default")
    }


def test_the_form_offers_configs_and_checks_what_it_can(dag: Any) -> None:
    """Inputs are required; configs are proposals, not a closed list; the rest may stay empty."""
    from airflow.sdk.exceptions import ParamValidationError

    params = dag.params
    assert {"web", "demo", "zh-web"} <= set(params.get_param("config").schema["examples"])
    assert "enum" not in params.get_param("config").schema
    for name, wrong in (("input", []), ("overrides", ["no equals sign"]), ("chunk_mb", 0), ("name", "x" * 61)):
        with pytest.raises(ParamValidationError):
            params.get_param(name).resolve(wrong)
    with pytest.raises(ParamValidationError):
        params.get_param("input").resolve()
    for name in ("config", "overrides", "chunk_mb", "name", "root"):
        params.get_param(name).resolve()


def test_the_token_file_is_an_asset(dag: Any) -> None:
    """Others can be scheduled on it; only the closed pack stage announces it."""
    announcing = [task.task_id for task in dag.tasks if task.outlets]
    assert announcing == ["pack.check"]
    assert dag.get_task("pack.check").outlets[0].name == "corpusmill_tokens"
