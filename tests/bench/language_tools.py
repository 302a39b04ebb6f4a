"""Starts the drivers of other tools (`language_peers`), each in an interpreter that has it, on one core where time counts."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from quality_models.language_codes import to_iso639_3
from quality_models.language_models import lid176
from tests.bench.language_gold import NOTHING
from tests.bench.language_peers import TOOLS

__all__ = ["ONE_THREAD", "PEERS", "Told", "answers_of", "interpreter", "on_one_core", "speed_of"]

PEERS = Path(__file__).with_name("language_peers.py")

ONE_THREAD: Mapping[str, str] = dict.fromkeys(
    ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS"), "1"
)


class Told(NamedTuple):
    """A tool's answers, ISO 639-3, and its name and version."""

    version: str
    languages: list[str]


@cache
def interpreter(tool: str, pythons: tuple[str, ...]) -> str | None:
    """The first interpreter that has a tool's module, None where none has."""
    look = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({TOOLS[tool][0]!r}) is None)"
    for python in pythons:
        if subprocess.run([python, "-c", look], check=False).returncode == 0:
            return python
    return None


def answers_of(tool: str, pythons: Sequence[str], texts: Sequence[str]) -> Told | None:
    """What a tool says of each text; None where no interpreter has it.

    Raises:
        SystemExit: it failed.
    """
    python = interpreter(tool, tuple(pythons))
    if python is None:
        return None
    told = json.loads(_run([python, str(PEERS), "answers", tool, str(lid176())], json.dumps(texts).encode()))
    return Told(told["version"], [NOTHING if one is None else to_iso639_3(one) for one in told["labels"]])


def speed_of(tool: str, pythons: Sequence[str], texts: bytes) -> dict[str, Any] | None:
    """What it takes a tool, on one core, to answer a JSON list of texts; None where no interpreter has it.

    Raises:
        SystemExit: it failed.
    """
    python = interpreter(tool, tuple(pythons))
    if python is None:
        return None
    return on_one_core([python, str(PEERS), "speed", tool, str(lid176())], texts)


def on_one_core(command: Sequence[str], texts: bytes) -> dict[str, Any]:
    """Run a command that prints one line of JSON, on the first core and with one thread."""
    pinned = ["taskset", "-c", "0"] if shutil.which("taskset") else []
    found: dict[str, Any] = json.loads(_run([*pinned, *command], texts))
    return found


def _run(command: Sequence[str], texts: bytes) -> bytes:
    done = subprocess.run(command, input=texts, capture_output=True, env={**os.environ, **ONE_THREAD}, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr.decode(errors='replace')[-3000:]}")
    return done.stdout
