"""The report as a tab on the page of a DAG run, in Airflow's own user interface.

The page shows text from the crawl, so the browser is told to run and load nothing; only who may read the DAG's runs may
read it; and whatever the address says, a file is served only if it is the report of a run under the root whose run.json
names this very DAG run. The tab of the DAG `filter_impact` is the change-impact sheet, found the same way by its
asked.json. The tab of the DAG `rescore` leads to the re-scores of a training, all of them: a run of that DAG may work on
several thresholds, or find none to work on, and who may read its runs may read these. Every Airflow process, each task
too, imports this module: FastAPI comes in only when the API server asks for the app.
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

__all__ = [
    "IMPACT_DAG",
    "RESCORE_DAG",
    "CorpusmillPlugin",
    "find_report",
    "find_rescore",
    "find_sheet",
    "make_app",
    "trainings",
]

IMPACT_DAG = "filter_impact"
RESCORE_DAG = "rescore"

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
    return _page_of(root / "runs", "run.json", "report/report.html", (dag_id, dag_run_id))


def find_sheet(root: Path, dag_id: str, dag_run_id: str) -> tuple[Path | None, str]:
    """The change-impact sheet of a DAG run, or None and a sentence why there is none; costs the same."""
    return _page_of(root / "impact" / "sheets", "asked.json", "sheet.html", (dag_id, dag_run_id))


def _page_of(place: Path, about: str, page: str, wanted: tuple[str, str]) -> tuple[Path | None, str]:
    """The page of the folder in `place` whose file `about` names the DAG and the DAG run that are wanted."""
    place = place.resolve()
    for folder, info in _candidates(place, about, wanted[1]):
        engine = info.get("engine") or {}
        if (engine.get("dag_id"), engine.get("dag_run_id")) == wanted:
            found = (folder / page).resolve()
            if not found.is_relative_to(place):
                return None, f"The page of {folder.name} is a link that leads out of the root folder."
            if found.is_file():
                return found, ""
            return None, f"{folder.name} has no report yet: it is written at the end. This page looks again by itself."
    return None, (
        "Nothing under the root folder that the API server knows (CORPUSMILL_ROOT) belongs to this DAG run. "
        "It may not have begun yet, or it was given another root."
    )


def _candidates(place: Path, about: str, dag_run_id: str) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Folders that could be it, the likely one first, then newest first, with what the file `about` in them says."""
    likely = [place / dag_run_id] if Path(dag_run_id).name == dag_run_id else []
    others = sorted(place.glob("*/"), reverse=True, key=lambda path: path.stat().st_mtime) if place.is_dir() else []
    for folder in [*likely, *others]:
        try:
            info = json.loads((folder / about).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue  # none of ours, or one that is just going away: it cannot be the one
        if isinstance(info, dict) and folder.resolve().is_relative_to(place):
            yield folder, info


def trainings(root: Path) -> list[str]:
    """Folders of trainings that have a page of their re-scores, in order of their names."""
    folders = (root / "rescore").resolve()
    pages = sorted(folders.glob("*/index.html")) if folders.is_dir() else []
    return [page.parent.name for page in pages if find_rescore(root, page.parent.name)[0] is not None]


def find_rescore(root: Path, training: str, threshold: str | None = None) -> tuple[Path | None, str]:
    """The page of a training, or the report of one of its thresholds; or None and a sentence why there is none.

    Args:
        training, threshold: names of folders, from an address.
    """
    from curation.run import RUN_ID

    folders = (root / "rescore").resolve()
    if not RUN_ID.fullmatch(training) or (threshold is not None and not (threshold.isascii() and threshold.isdigit())):
        return None, "No re-score has this name."
    place = folders / training
    page = (place / "index.html" if threshold is None else place / threshold / "report" / "report.html").resolve()
    if not page.is_relative_to(folders):
        return None, "This report is a link that leads out of the root folder."
    if page.is_file():
        return page, ""
    return None, "There is no such report yet: it is written when a re-score ends. This page looks again by itself."


def make_app() -> FastAPI:
    """The app that the API server mounts."""
    from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity
    from airflow.api_fastapi.core_api.security import requires_access_dag
    from fastapi import Depends, FastAPI
    from fastapi.responses import FileResponse, HTMLResponse, RedirectResponse

    from curation.environment import environment

    may_read = Depends(requires_access_dag(method="GET", access_entity=DagAccessEntity.RUN))
    # Its own API description would be readable without login.
    app = FastAPI(title="Corpusmill", docs_url=None, redoc_url=None, openapi_url=None)

    # FastAPI reads annotations when it is given a function, and could not find names that are local to this one.
    def show(dag_id: str, dag_run_id: str) -> Any:
        if dag_id == RESCORE_DAG:
            return rescores(dag_run_id)
        if dag_id == IMPACT_DAG:
            return answer(*find_sheet(environment().root, dag_id, dag_run_id))
        return answer(*find_report(environment().root, dag_id, dag_run_id))

    def show_rescore(dag_id: str, training: str, threshold: str | None = None) -> Any:
        if dag_id != RESCORE_DAG:  # who may read another DAG's runs may not read these
            return answer(None, "This DAG has no re-scores.")
        return answer(*find_rescore(environment().root, training, threshold))

    def rescores(dag_run_id: str) -> Any:
        known = trainings(environment().root)
        # Relative: the server may stand behind a path of which it knows nothing.
        above = "../" * (2 + dag_run_id.count("/"))
        if len(known) == 1:
            return RedirectResponse(f"{above}rescore/{RESCORE_DAG}/{known[0]}/", status_code=302, headers=HEADERS)
        if known:
            return HTMLResponse(_list_of(known, above), headers=HEADERS)
        return answer(
            None, "No re-score has a report yet: it is written when one ends. This page looks again by itself."
        )

    def answer(report: Path | None, why: str) -> Any:
        if report is not None:
            return FileResponse(report, media_type="text/html; charset=utf-8", headers=HEADERS)
        return HTMLResponse(_no_report(why), status_code=404, headers=HEADERS)

    app.get("/runs/{dag_id}/{dag_run_id:path}", dependencies=[may_read], response_model=None)(show)
    # As the files lie on disk, so that the links between them lead somewhere.
    for path in ("", "index.html", "{threshold}/report/report.html"):
        app.get(f"/rescore/{{dag_id}}/{{training}}/{path}", dependencies=[may_read], response_model=None)(show_rescore)
    return app


def _list_of(known: list[str], above: str) -> str:
    items = "".join(
        f'<li><a href="{above}rescore/{RESCORE_DAG}/{escape(one)}/">{escape(one)}</a></li>' for one in known
    )
    return _page("Re-scores", f"<ul>{items}</ul>")


def _no_report(why: str) -> str:
    return _page("No report", f"<p>{escape(why)}</p>", '<meta http-equiv="refresh" content="10">')


def _page(title: str, body: str, head: str = "") -> str:
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8">{head}'
        f"<title>{title}</title><style>body{{font:16px/1.5 system-ui,sans-serif;max-width:40rem;margin:4rem auto;"
        "padding:0 1rem;color:#333;background:#fff}h1{font-size:1.2rem}</style>"
        f"<h1>{title}</h1>{body}</html>"
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
