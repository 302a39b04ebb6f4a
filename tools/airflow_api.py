"""What the local script asks Airflow's REST interface. Standard library only, never through a proxy."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any
from urllib.parse import quote

_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class ApiError(Exception):
    """An answer that is not the wished one; `status` is 0 if nobody answered."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status}: {message}" if status else message)
        self.status = status


class AirflowApi:
    """A client for one DAG of the Airflow on a port of this machine, or on any other address."""

    def __init__(self, address: str, dag_id: str = "curate", login: dict[str, str] | None = None) -> None:
        self.address = address
        self.dag = f"/api/v2/dags/{dag_id}"
        self.login = login
        self._token: str | None = None

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """One request; parsed JSON back.

        Raises:
            ApiError: no answer, or another status than 2xx.
        """
        if self._token is None and not path.startswith(("/auth", "/execution/health")):
            # Without login, a local Airflow where everyone is admin hands out a token for nothing.
            found = self.call("POST", "/auth/token", self.login) if self.login else self.call("GET", "/auth/token")
            self._token = found["access_token"]
        request = urllib.request.Request(
            self.address + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"}
            | ({"Authorization": f"Bearer {self._token}"} if self._token else {}),
        )
        try:
            with _OPENER.open(request, timeout=60) as answer:
                return json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as error:
            raise ApiError(error.code, error.read().decode(errors="replace")[:500]) from None
        except (OSError, ValueError) as error:
            raise ApiError(0, f"{type(error).__name__}: {error}") from None

    def answers_tasks(self) -> bool:
        """Whether the part of the API server that tasks talk to is there."""
        try:
            self.call("GET", "/execution/health")
        except ApiError:
            return False
        return True

    def healthy(self) -> bool:
        """Whether database and scheduler are well."""
        try:
            health = self.call("GET", "/api/v2/monitor/health")
        except ApiError:
            return False
        return all((health.get(part) or {}).get("status") == "healthy" for part in ("metadatabase", "scheduler"))

    def parsed_at(self) -> str | None:
        """When the DAG was last read from its file, in UTC, ISO 8601; None if never."""
        try:
            found: str | None = self.call("GET", self.dag)["last_parsed_time"]
        except ApiError as error:
            if error.status in (0, 404):
                return None
            raise
        return found

    def import_errors(self) -> list[str]:
        """Why DAG files cannot be read."""
        return [one["stack_trace"] for one in self.call("GET", "/api/v2/importErrors")["import_errors"]]

    def set_pool(self, name: str, slots: int, description: str) -> None:
        """Make a pool, or give it this size."""
        body = {"name": name, "slots": slots, "description": description, "include_deferred": False}
        try:
            self.call("POST", "/api/v2/pools", body)
        except ApiError as error:
            if error.status != 409:
                raise
            self.call("PATCH", f"/api/v2/pools/{quote(name)}", body)

    def trigger(self, run_id: str, conf: dict[str, Any]) -> None:
        """Begin a run with parameters."""
        self.call("POST", f"{self.dag}/dagRuns", {"dag_run_id": run_id, "logical_date": None, "conf": conf})

    def run(self, run_id: str) -> dict[str, Any]:
        """State, start and end of a run."""
        found: dict[str, Any] = self.call("GET", f"{self.dag}/dagRuns/{quote(run_id)}")
        return found

    def unfinished_runs(self) -> list[str]:
        """Ids of runs that are queued or in work."""
        found = self.call("GET", f"{self.dag}/dagRuns?state=running&state=queued&limit=100")
        return [one["dag_run_id"] for one in found["dag_runs"]]

    def give_up(self, run_id: str) -> None:
        """Mark a run as failed."""
        self.call("PATCH", f"{self.dag}/dagRuns/{quote(run_id)}", {"state": "failed"})

    def tasks(self, run_id: str) -> list[dict[str, Any]]:
        """Every task instance of a run."""
        found: list[dict[str, Any]] = []
        while True:
            path = f"{self.dag}/dagRuns/{quote(run_id)}/taskInstances?limit=100&offset={len(found)}"
            page = self.call("GET", path)
            found += page["task_instances"]
            if not page["task_instances"] or len(found) >= page["total_entries"]:
                return found

    def log_of(self, run_id: str, task: dict[str, Any]) -> str:
        """Log of a task's last try as text."""
        path = (
            f"{self.dag}/dagRuns/{quote(run_id)}/taskInstances/{quote(task['task_id'])}"
            f"/logs/{max(1, task['try_number'])}?map_index={task['map_index']}&full_content=true"
        )
        content = self.call("GET", path).get("content") or []
        return "\n".join(line for line in map(_line, content) if "::" not in line)


def _line(entry: Any) -> str:
    """One log entry: time, level, text, and the error with it."""
    if not isinstance(entry, dict):
        return str(entry)
    text = f"{str(entry.get('timestamp') or '')[11:19]} {entry.get('level', '')} {entry.get('event', '')}".strip()
    for problem in entry.get("error_detail") or []:
        text += f"\n    {problem.get('exc_type')}: {problem.get('exc_value')}"
    return text
