"""An Airflow home of its own for the tests: settings that must stand before anything imports Airflow.

Import this module first, and Airflow only inside tests and fixtures: importing it takes two seconds, and
tests that do not need it must not pay for it.
"""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

REPO = Path(__file__).resolve().parents[1]
DAGS = REPO / "dags"

# Airflow and what it uses warn about one another; our own warnings stay errors.
QUIET = (
    "ignore::DeprecationWarning",
    "ignore::PendingDeprecationWarning",
    "ignore::FutureWarning",
    "ignore::ResourceWarning",
    "ignore::UserWarning:airflow",
    "ignore::pytest.PytestUnraisableExceptionWarning",
)


def settings(home: Path) -> dict[str, str]:
    """The environment of an Airflow in `home`, alike for this process and for services that a test starts."""
    return {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(DAGS),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__UNIT_TEST_MODE": "False",
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{home / 'airflow.db'}",
        "AIRFLOW__LOGGING__BASE_LOG_FOLDER": str(home / "logs"),
        "AIRFLOW__LOGGING__LOGGING_LEVEL": "WARNING",
        "AIRFLOW__API_AUTH__JWT_SECRET": "a secret of the tests and of nothing else " * 2,
    }


@cache
def home() -> Path:
    """The home of this test process, made on the first call and removed at the end.

    Raises:
        RuntimeError: Airflow was imported before, from somebody's real home.
    """
    if "airflow" in sys.modules:
        raise RuntimeError("Airflow was imported before its test home was made: import it inside tests only")
    folder = Path(tempfile.mkdtemp(prefix="corpusmill-airflow-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for key in [key for key in os.environ if key.startswith("AIRFLOW")]:
        del os.environ[key]
    os.environ.update(settings(folder))
    return folder


@cache
def database() -> Path:
    """The home with an empty database in it."""
    folder = home()
    from airflow.utils.db import initdb

    initdb()
    return folder


def read_dag(name: str) -> Any:
    """A DAG, read from its file as Airflow reads it."""
    home()
    from airflow.dag_processing.dagbag import DagBag

    bag = DagBag(str(DAGS))
    assert bag.import_errors == {}
    return bag.dags[name]


def read_curate() -> Any:
    """One run of the pipeline."""
    return read_dag("curate")


def read_rescore() -> Any:
    """The re-score."""
    return read_dag("rescore")


def read_impact() -> Any:
    """The impact of a change."""
    return read_dag("filter_impact")
