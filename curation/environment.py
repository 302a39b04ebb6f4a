"""What the environment sets (folder of runs, configs, re-score, how faults are shown, Airflow's login), and who runs this."""

from __future__ import annotations

import getpass
import os
import platform
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Environment", "environment", "somebody"]


@dataclass(frozen=True)
class Environment:
    """Everything that is read from the environment, in one place."""

    root: Path
    """CORPUSMILL_ROOT: where runs lie if --root is not given."""
    configs: Path | None
    """CORPUSMILL_CONFIGS: a folder of configs that the DAG's form offers beside the shipped ones."""
    rescore: str | None = None
    """CORPUSMILL_RESCORE: the settings file that the DAG `rescore` takes where its form names none."""
    debug: bool = False
    """CORPUSMILL_DEBUG=1: the command line shows the traceback of a fault of the program, instead of a message."""
    airflow_login: str | None = None
    """CORPUSMILL_AIRFLOW_LOGIN, as `user:password`: with it `corpusmill progress --notify` tells Airflow."""


def environment() -> Environment:
    """Read the environment."""
    configs = os.environ.get("CORPUSMILL_CONFIGS")
    return Environment(
        root=Path(os.environ.get("CORPUSMILL_ROOT", "runs-root")),
        configs=Path(configs) if configs else None,
        rescore=os.environ.get("CORPUSMILL_RESCORE") or None,
        debug=os.environ.get("CORPUSMILL_DEBUG", "") not in ("", "0"),
        airflow_login=os.environ.get("CORPUSMILL_AIRFLOW_LOGIN") or None,
    )


def somebody() -> str:
    """Who runs this process: `name@host`."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError, ImportError):  # a container without this user
        name = "somebody"
    return f"{name}@{platform.node()}"
