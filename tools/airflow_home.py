"""A local Airflow inside this folder: its settings, its secrets, its processes.

Everything lies in `.airflow`: SQLite, logs, random secrets, the record of what was started. Components run each in a
session of its own, since a task of Airflow leaves the process group of its scheduler but never its session: so everything
that was started can be found and ended, also after a crash of whoever started it, and nothing else is ever touched.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psutil

REPO = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
COMPONENTS = {
    "api-server": ["api-server", "--workers", "1"],
    "scheduler": ["scheduler", "--skip-serve-logs"],
    "dag-processor": ["dag-processor"],
}
FIRST_PORT = 8080


class LocalAirflowError(Exception):
    """Something the user of the script should read; never shown as a traceback."""


class Home:
    """The folder of a local Airflow, and what runs in it."""

    def __init__(self, folder: Path = REPO / ".airflow", root: Path = REPO / "demo-run") -> None:
        self.folder = folder
        self.root = root
        self.logs = folder / "logs"
        self._state = folder / "processes.json"

    # -- settings ------------------------------------------------------------------------------

    def environment(self, port: int) -> dict[str, str]:
        """Everything that Airflow and the tasks need to know. Nothing of the caller's own Airflow leaks in."""
        mine = {key: value for key, value in os.environ.items() if not key.startswith(("AIRFLOW", "PYTHON"))}
        keys = self._secrets()
        here = f"http://127.0.0.1:{port}"
        settings = {
            "CORE__DAGS_FOLDER": REPO / "dags",
            "CORE__EXECUTOR": "LocalExecutor",
            # Small tasks flow while heavy ones wait for the pool `cpu`.
            "CORE__PARALLELISM": cores() + 4,
            "CORE__LOAD_EXAMPLES": False,
            "CORE__DAGS_ARE_PAUSED_AT_CREATION": False,
            "CORE__EXECUTION_API_SERVER_URL": f"{here}/execution/",
            "CORE__FERNET_KEY": keys["fernet"],
            # Nobody but users of this machine reach 127.0.0.1.
            "CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": True,
            "DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{self.folder / 'airflow.db'}",
            "API__HOST": "127.0.0.1",
            "API__PORT": port,
            "API__BASE_URL": here,
            "API__SECRET_KEY": keys["api"],
            "API_AUTH__JWT_SECRET": keys["jwt"],
            "SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": 0.1,
            "SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": 60,
            "SCHEDULER__ENABLE_HEALTH_CHECK": False,
            "DAG_PROCESSOR__REFRESH_INTERVAL": 10,
            "LOGGING__BASE_LOG_FOLDER": self.logs,
            "USAGE_DATA_COLLECTION__ENABLED": False,
        }
        return {
            **mine,
            **{f"AIRFLOW__{key}": str(value) for key, value in settings.items()},
            "AIRFLOW_HOME": str(self.folder),
            "CORPUSMILL_ROOT": os.environ.get("CORPUSMILL_ROOT", str(self.root)),
            "PATH": f"{BIN}{os.pathsep}{os.environ.get('PATH', '')}",
            "PYTHONUNBUFFERED": "1",
            "PYTHONSAFEPATH": "1",
            "NO_PROXY": ",".join(filter(None, [os.environ.get("NO_PROXY", ""), "127.0.0.1", "localhost"])),
            "no_proxy": ",".join(filter(None, [os.environ.get("no_proxy", ""), "127.0.0.1", "localhost"])),
        }

    def _secrets(self) -> dict[str, str]:
        """Random keys of this home, made once and readable by their owner only."""
        path = self.folder / "secrets.json"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            if not path.exists():
                from cryptography.fernet import Fernet

                made = {
                    "jwt": secrets.token_hex(64),
                    "api": secrets.token_hex(32),
                    "fernet": Fernet.generate_key().decode(),
                }
                descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
                with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
                    json.dump(made, stream)
            found: dict[str, str] = json.loads(path.read_text(encoding="utf-8"))
        except PermissionError as error:
            raise LocalAirflowError(
                f"{error.filename} belongs to another user, who ran this here before. "
                f"Let them run `make clean`, or remove {self.folder}."
            ) from None
        return found

    # -- processes -----------------------------------------------------------------------------

    def started(self) -> dict[str, Any]:
        """What `start` wrote down: `port` and `sessions`, or nothing."""
        try:
            found: dict[str, Any] = json.loads(self._state.read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):
            return {}
        return found

    def processes(self) -> list[psutil.Process]:
        """All living processes of the sessions that were started here."""
        sessions = {int(one["pid"]): float(one["created"]) for one in self.started().get("sessions", [])}
        found = []
        for process in psutil.process_iter():
            try:
                session = os.getsid(process.pid)
                if session not in sessions or process.status() == psutil.STATUS_ZOMBIE:
                    continue
                # The number of a session is free again only when nobody is left in it. So either its leader is the
                # process that was started, or the leader is gone and the rest is ours, or all of it is foreign.
                leader = psutil.Process(session).create_time() if psutil.pid_exists(session) else sessions[session]
                if abs(leader - sessions[session]) < 1 and process.create_time() >= sessions[session] - 1:
                    found.append(process)
            except (psutil.Error, ProcessLookupError, PermissionError):
                continue
        return found

    def dead_component(self) -> str | None:
        """Name of a component that was started and is no longer there."""
        alive = {process.pid for process in self.processes()}
        return next((one["name"] for one in self.started().get("sessions", []) if one["pid"] not in alive), None)

    def start(self) -> int:
        """Prepare the database and start all components; returns the port of the user interface."""
        port = free_port()
        environment = self.environment(port)
        self._migrate(environment)
        self.logs.mkdir(parents=True, exist_ok=True)
        sessions: list[dict[str, Any]] = []
        for name, arguments in COMPONENTS.items():
            with self.component_log(name).open("wb") as stream:
                child = subprocess.Popen(
                    [str(BIN / "airflow"), *arguments],
                    env=environment,
                    cwd=self.folder,
                    stdin=subprocess.DEVNULL,
                    stdout=stream,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            sessions.append({"name": name, "pid": child.pid, "created": psutil.Process(child.pid).create_time()})
            # Written after each one: whatever happens now, `stop` finds what was started.
            self._state.write_text(json.dumps({"port": port, "sessions": sessions}), encoding="utf-8")
        return port

    def _migrate(self, environment: dict[str, str]) -> None:
        stamp = self.folder / "migrated"
        wanted = version("apache-airflow-core")
        if stamp.exists() and stamp.read_text(encoding="utf-8") == wanted and (self.folder / "airflow.db").exists():
            return
        done = subprocess.run(
            [str(BIN / "airflow"), "db", "migrate"],
            env=environment,
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise LocalAirflowError(f"`airflow db migrate` failed:\n{tail(done.stdout + done.stderr)}")
        stamp.write_text(wanted, encoding="utf-8")

    def stop(self) -> int:
        """End every process that was started here; returns how many there were."""
        found = self.processes()
        for process in found:
            _signal(process, signal.SIGTERM)
        deadline = time.monotonic() + 3
        while self.processes() and time.monotonic() < deadline:
            time.sleep(0.1)
        # Again and again, for what a process has started in the meantime.
        while left := self.processes():
            for process in left:
                _signal(process, signal.SIGKILL)
            time.sleep(0.05)
        self._state.unlink(missing_ok=True)
        return len(found)

    def component_log(self, name: str) -> Path:
        return self.logs / f"{name}.log"

    def memory_mb(self) -> float:
        """Proportional memory of all its processes: pages that they share are counted once."""
        total = 0
        for process in self.processes():
            try:
                total += process.memory_full_info().pss
            except (psutil.Error, AttributeError):
                continue
        return total / 2**20


def _signal(process: psutil.Process, number: int) -> None:
    try:
        process.send_signal(number)
    except psutil.NoSuchProcess:
        return


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def free_port() -> int:
    """8080 if nobody listens there, else any free port of 127.0.0.1."""
    for port in (FIRST_PORT, 0):
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            # As servers do: a port whose last connections are just dying counts as free.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise LocalAirflowError("no free port on 127.0.0.1")


def tail(text: str, lines: int = 30) -> str:
    """The last lines of a log."""
    return "\n".join(text.splitlines()[-lines:])
