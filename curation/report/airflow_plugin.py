"""The report as a tab on the page of a DAG run, in Airflow's own user interface.

The page shows text from the crawl, so the browser is told to run and load nothing; only who may read the DAG's runs may
read it; and whatever the address says, a file is served only if it is the report of a run under the root whose run.json
names this very DAG run. Every Airflow process, each task too, imports this module: FastAPI comes in only when the API
server asks for the app.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.plugins_manager import AirflowPlugin

if TYPE_CHECKING:
    from fastapi import FastAPI

__all__ = ["CorpusmillPlugin", "find_report", "make_app"]

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


def find_report(root: Path, dag_id: str, dag_run_id: str) -> tuple[Path | None, str]:
    """The report of a DAG run, or None and a sentence why there is none.

    Costs a look into one run.json, or into all under `root` if Airflow chose the id of the DAG run.
    """
    runs = (root / "runs").resolve()
    for folder, info in _candidates(runs, dag_run_id):
        engine = info.get("engine") or {}
        if engine.get("dag_id") == dag_id and engine.get("dag_run_id") == dag_run_id:
            report = (folder / "report" / "report.html").resolve()
            if not report.is_relative_to(runs):
                return None, f"The report of run {folder.name} is a link that leads out of the root folder."
            if report.is_file():
                return report, ""
            return (
                None,
                f"Run {folder.name} has no report yet: it is written at the end. This page looks again by itself.",
            )
    return None, (
        "Nothing under the root folder that the API server knows (CORPUSMILL_ROOT) belongs to this DAG run. "
        "It may not have begun yet, or it was given another root."
    )


def _candidates(runs: Path, dag_run_id: str) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Runs that could be it, the likely one first, then newest first."""
    likely = [runs / dag_run_id] if Path(dag_run_id).name == dag_run_id else []
    others = sorted(runs.glob("*/"), reverse=True, key=lambda path: path.stat().st_mtime) if runs.is_dir() else []
    for folder in [*likely, *others]:
        try:
            info = json.loads((folder / "run.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue  # not a run, or one that is just going away: it cannot be the one
        if isinstance(info, dict) and folder.resolve().is_relative_to(runs):
            yield folder, info


def make_app() -> FastAPI:
    """The app that the API server mounts."""
    from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity
    from airflow.api_fastapi.core_api.security import requires_access_dag
    from fastapi import Depends, FastAPI
    from fastapi.responses import FileResponse, HTMLResponse

    from curation.config import environment

    may_read = Depends(requires_access_dag(method="GET", access_entity=DagAccessEntity.RUN))
    # Its own API description would be readable without login.
    app = FastAPI(title="Corpusmill", docs_url=None, redoc_url=None, openapi_url=None)

    # FastAPI reads annotations when it is given a function, and could not find names that are local to this one.
    def show(dag_id: str, dag_run_id: str) -> Any:
        report, why = find_report(environment().root, dag_id, dag_run_id)
        if report is not None:
            return FileResponse(report, media_type="text/html; charset=utf-8", headers=HEADERS)
        return HTMLResponse(_no_report(why), status_code=404, headers=HEADERS)

    app.get("/runs/{dag_id}/{dag_run_id:path}", dependencies=[may_read], response_model=None)(show)
    return app


def _no_report(why: str) -> str:
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><meta http-equiv="refresh" content="10">'
        "<title>No report</title><style>body{font:16px/1.5 system-ui,sans-serif;max-width:40rem;margin:4rem auto;"
        "padding:0 1rem;color:#333;background:#fff}h1{font-size:1.2rem}</style>"
        f"<h1>No report</h1><p>{escape(why)}</p></html>"
    )


_REPORT_OF_RUN = "/corpusmill/runs/{DAG_ID}/{RUN_ID}"


class CorpusmillPlugin(AirflowPlugin):  # type: ignore[misc]  # Airflow comes without types
    """Registers the app and its tab."""

    name = "corpusmill_report"
    external_views = [  # noqa: RUF012  # the base class declares it so
        {"name": "Corpusmill", "href": _REPORT_OF_RUN, "destination": place, "url_route": route}
        for place, route in (("dag_run", "corpusmill"), ("task_instance", "corpusmill-of-task"))
    ]

    @property
    def fastapi_apps(self) -> list[dict[str, Any]]:
        return [{"app": make_app(), "url_prefix": "/corpusmill", "name": "Corpusmill report"}]
