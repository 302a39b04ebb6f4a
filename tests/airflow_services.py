"""Airflow as several processes, each in a session of its own, for tests that need a real scheduler."""

from __future__ import annotations

import errno
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests import airflow_env
from tools.airflow_api import AirflowApi

__all__ = ["AIRFLOW", "Services", "free_port"]

AIRFLOW = str(Path(sys.executable).with_name("airflow"))


_PORTS = range(20_000, 32_000)
"""Below those that Linux gives to whoever asks for any: so nobody gets one of ours while a service starts or starts anew."""
_HELD: list[socket.socket] = []


def free_port() -> int:
    """A port of this machine that no other call returns while this process lives, in any process."""
    for port in random.SystemRandom().sample(_PORTS, 500):
        # A name of the kernel's that ends with this process: it says to other tests that the port is taken.
        holder = socket.socket(socket.AF_UNIX)
        with socket.socket() as probe:
            try:
                holder.bind(f"\0corpusmill-test-port-{port}")
                probe.bind(("127.0.0.1", port))
            except OSError as error:
                holder.close()
                if error.errno != errno.EADDRINUSE:
                    raise
                continue
        _HELD.append(holder)
        return port
    raise RuntimeError(f"of 500 ports from {_PORTS.start} to {_PORTS.stop - 1} none is free")


class Services:
    """Processes, each in a session of its own, and the settings that they share: alike for every executor."""

    def __init__(self, folder: Path, settings: Mapping[str, str], dag_id: str = "curate") -> None:
        self.folder = folder
        self.sessions: dict[str, subprocess.Popen[bytes]] = {}
        port = free_port()
        here = f"http://127.0.0.1:{port}"
        self.environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith("AIRFLOW")},
            **airflow_env.settings(folder / "airflow"),
            "PATH": f"{Path(sys.executable).parent}:{os.environ.get('PATH', '/usr/bin:/bin')}",
            "NO_PROXY": "127.0.0.1,localhost",
            "AIRFLOW__LOGGING__LOGGING_LEVEL": "INFO",
            "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{here}/execution/",
            "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
            "AIRFLOW__API__HOST": "127.0.0.1",
            "AIRFLOW__API__PORT": str(port),
            "AIRFLOW__API__BASE_URL": here,
            "AIRFLOW__SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": "0.1",
            "AIRFLOW__SCHEDULER__ENABLE_HEALTH_CHECK": "False",
            "CORPUSMILL_ROOT": str(folder / "root"),
            **settings,
        }
        self.api = AirflowApi(here, dag_id)

    def start(self, name: str, *command: str) -> None:
        with self.log(name).open("wb") as stream:
            self.sessions[name] = subprocess.Popen(
                command,
                env=self.environment,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def log(self, name: str) -> Path:
        return self.folder / f"{name}.log"

    def wait_for(self, what: str, ready: Any, seconds: float = 90) -> None:
        deadline = time.monotonic() + seconds
        while not ready():
            dead = [name for name, child in self.sessions.items() if child.poll() is not None]
            if dead or time.monotonic() > deadline:
                ends = "\n".join(
                    f"--- {name}\n" + "\n".join(self.log(name).read_text(errors="replace").splitlines()[-15:])
                    for name in (dead or self.sessions)
                )
                pytest.fail(f"{what}: {dead or 'not in time'}\n{ends}")
            time.sleep(0.25)

    def stop(self) -> None:
        """End all sessions: Airflow first, so that nobody misses the database; whatever is left is killed."""
        for name in reversed(self.sessions):
            self._signal(name, signal.SIGINT if name == "postgres" else signal.SIGTERM)
            deadline = time.monotonic() + 3
            while self._members(name) and time.monotonic() < deadline:
                time.sleep(0.05)
            while self._members(name):
                self._signal(name, signal.SIGKILL)
                time.sleep(0.05)
            self.sessions[name].wait()

    def _members(self, name: str) -> list[psutil.Process]:
        found = []
        for process in psutil.process_iter(["status"]):
            try:
                mine = os.getsid(process.pid) == self.sessions[name].pid
            except (ProcessLookupError, PermissionError):
                continue
            if mine and process.info["status"] != psutil.STATUS_ZOMBIE:
                found.append(process)
        return found

    def _signal(self, name: str, number: int) -> None:
        # PostgreSQL's children are its own business unless they must be killed.
        members = self._members(name)
        leader = [one for one in members if one.pid == self.sessions[name].pid]
        for process in leader if number == signal.SIGINT and leader else members:
            try:
                process.send_signal(number)
            except psutil.NoSuchProcess:
                continue

    def kill(self, name: str) -> None:
        """End a session as a machine ends: no process of it can say a word."""
        while self._members(name):
            self._signal(name, signal.SIGKILL)
            time.sleep(0.05)
        self.sessions.pop(name).wait()
