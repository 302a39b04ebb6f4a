"""The page about the DAGs says what the DAGs say."""

from __future__ import annotations

import importlib.util

import pytest

from tests import airflow_env

pytestmark = [pytest.mark.airflow, *[pytest.mark.filterwarnings(rule) for rule in airflow_env.QUIET]]


def test_the_page_is_fresh_and_names_every_dag_and_parameter() -> None:
    """A change of a DAG without `make docs` fails here."""
    airflow_env.home()
    spec = importlib.util.spec_from_file_location("make_dag_docs", airflow_env.REPO / "tools" / "make_dag_docs.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    dags = module.read_dags()
    text = (airflow_env.REPO / "docs" / "reference" / "dags.md").read_text(encoding="utf-8")
    assert text == module.page(dags), "run `make docs`"
    for dag in dags:
        assert f"## {dag.dag_id}\n" in text
        for name in dag.params:
            assert f"| `{name}` |" in text
