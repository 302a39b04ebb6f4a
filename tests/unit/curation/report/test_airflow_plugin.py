"""The tab in Airflow: who may see a report, which file it is, and what the browser may do with it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests import airflow_env

pytestmark = [pytest.mark.airflow, *[pytest.mark.filterwarnings(rule) for rule in airflow_env.QUIET]]

HOSTILE = "<script>alert(1)</script>"


def make_run(root: Path, name: str, dag_run_id: str, *, report: str | None = HOSTILE, dag_id: str = "curate") -> Path:
    folder = root / "runs" / name
    (folder / "report").mkdir(parents=True)
    engine = {"engine": "airflow", "dag_id": dag_id, "dag_run_id": dag_run_id}
    (folder / "run.json").write_text(json.dumps({"run_id": name, "engine": engine}), encoding="utf-8")
    if report is not None:
        (folder / "report" / "report.html").write_text(report, encoding="utf-8")
    return folder


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Three runs: one with a chosen id, one with Airflow's, one without a report; and things that are no runs."""
    airflow_env.home()
    make_run(tmp_path, "chosen", "chosen")
    make_run(tmp_path, "zhweb-20260520-142322-8c4a", "manual__2026-05-20T14:23:22+00:00", report="<p>zhweb")
    make_run(tmp_path, "unfinished", "unfinished", report=None)
    (tmp_path / "runs" / "broken").mkdir()
    (tmp_path / "runs" / "broken" / "run.json").write_text("{", encoding="utf-8")
    (tmp_path / "runs" / "stray.txt").write_text("x", encoding="utf-8")
    outside = make_run(tmp_path / "elsewhere", "secret", "secret")
    (tmp_path / "runs" / "linked").symlink_to(outside)
    half = make_run(tmp_path, "half", "half", report=None)
    (half / "report" / "report.html").symlink_to(outside / "report" / "report.html")
    return tmp_path


@pytest.mark.parametrize(
    ("dag_id", "dag_run_id", "found", "why"),
    [
        ("curate", "chosen", "chosen", ""),
        ("curate", "manual__2026-05-20T14:23:22+00:00", "zhweb-20260520-142322-8c4a", ""),
        ("curate", "unfinished", None, "no report yet"),
        ("curate", "nosuch", None, "Nothing under the root"),
        ("other", "chosen", None, "Nothing under the root"),
        ("curate", "secret", None, "Nothing under the root"),
        ("curate", "half", None, "leads out of the root"),
        ("curate", "../elsewhere/runs/secret", None, "Nothing under the root"),
        ("curate", "..", None, "Nothing under the root"),
        ("curate", "", None, "Nothing under the root"),
    ],
)
def test_only_the_report_of_this_very_dag_run_is_found(
    root: Path, dag_id: str, dag_run_id: str, found: str | None, why: str
) -> None:
    """By the ids in run.json, under the root only, whatever the address or a link says."""
    from curation.report.airflow_plugin import find_report

    report, text = find_report(root, dag_id, dag_run_id)
    assert why in text
    assert report == (None if found is None else (root / "runs" / found / "report" / "report.html").resolve())


def test_a_root_without_runs_is_no_error(tmp_path: Path) -> None:
    """The API server may come up before the first run."""
    airflow_env.home()
    from curation.report.airflow_plugin import find_report

    assert find_report(tmp_path / "nosuch", "curate", "x")[0] is None


@pytest.fixture(scope="module")
def server() -> Any:
    """The API server as Airflow builds it, with the plugin found through its entry point."""
    airflow_env.database()
    from airflow.api_fastapi.app import create_app
    from fastapi.testclient import TestClient

    return TestClient(create_app(apps="core"))


@pytest.fixture(scope="module")
def token(server: Any) -> str:
    from airflow.api_fastapi.app import get_auth_manager
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser

    made: str = get_auth_manager().generate_jwt(SimpleAuthManagerUser(username="reader", role="viewer"))
    return made


def test_the_report_is_for_those_who_may_read_the_run(
    server: Any, token: str, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """401 without a login, the page with one; scripts stay text, because the browser is told so."""
    monkeypatch.setenv("CORPUSMILL_ROOT", str(root))
    assert server.get("/corpusmill/runs/curate/chosen").status_code == 401
    assert server.get("/corpusmill/runs/curate/chosen", headers={"Authorization": "Bearer x"}).status_code in (401, 403)
    login = {"Authorization": f"Bearer {token}"}
    answer = server.get("/corpusmill/runs/curate/chosen", headers=login)
    assert (answer.status_code, answer.text) == (200, HOSTILE)
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    airflows_id = server.get("/corpusmill/runs/curate/manual__2026-05-20T14:23:22+00:00", headers=login)
    assert airflows_id.text == "<p>zhweb"


def test_no_report_is_a_page_that_says_why(
    server: Any, token: str, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """404 with the same rules for the browser, without paths of the server, and it looks again by itself."""
    monkeypatch.setenv("CORPUSMILL_ROOT", str(root))
    answer = server.get("/corpusmill/runs/curate/unfinished", headers={"Authorization": f"Bearer {token}"})
    assert answer.status_code == 404
    assert "no report yet" in answer.text
    assert 'http-equiv="refresh"' in answer.text
    assert str(root) not in answer.text
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    for path in ("/corpusmill/docs", "/corpusmill/openapi.json", "/corpusmill/"):
        assert server.get(path).status_code == 404


def test_the_tab_stands_on_the_page_of_a_dag_run(server: Any, token: str) -> None:
    """Airflow lists the plugin with its view, and could load it."""
    answer = server.get("/api/v2/plugins", headers={"Authorization": f"Bearer {token}"})
    listed = next(one for one in answer.json()["plugins"] if one["name"] == "corpusmill_report")
    assert listed["external_views"][0]["destination"] == "dag_run"
    assert listed["external_views"][0]["href"] == "/corpusmill/runs/{DAG_ID}/{RUN_ID}"


def test_the_plugin_costs_a_task_nothing(tmp_path: Path) -> None:
    """Every task process imports it: neither FastAPI nor Arrow come in with it."""
    code = (
        "import sys, airflow.sdk; before = set(sys.modules); import curation.report.airflow_plugin; "
        "print(sorted(set(sys.modules) - before))"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        env={**airflow_env.settings(tmp_path), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    for heavy in ("'fastapi'", "'pyarrow'", "'pydantic_settings'", "'curation.config'"):
        assert heavy not in done.stdout


@pytest.fixture
def rescored(tmp_path: Path) -> Path:
    """A training with one report and one threshold without; beside it what must not be shown."""
    airflow_env.home()
    training = tmp_path / "rescore" / "gpt"
    (training / "0000000000400000" / "report").mkdir(parents=True)
    (training / "0000000000800000").mkdir()
    (training / "index.html").write_text(HOSTILE, encoding="utf-8")
    (training / "0000000000400000" / "report" / "report.html").write_text("<p>at 400 k", encoding="utf-8")
    (tmp_path / "secret.html").write_text("secret", encoding="utf-8")
    (tmp_path / "rescore" / "linked").mkdir()
    (tmp_path / "rescore" / "linked" / "index.html").symlink_to(tmp_path / "secret.html")
    return tmp_path


@pytest.mark.parametrize(
    ("training", "threshold", "found", "why"),
    [
        ("gpt", None, "gpt/index.html", ""),
        ("gpt", "0000000000400000", "gpt/0000000000400000/report/report.html", ""),
        ("gpt", "0000000000800000", None, "no such report yet"),
        ("nosuch", None, None, "no such report yet"),
        ("linked", None, None, "leads out of the root"),
        ("..", None, None, "has this name"),
        ("gpt", "..", None, "has this name"),
        ("gpt", "\u0661", None, "has this name"),
        ("", None, None, "has this name"),
    ],
)
def test_only_reports_of_re_scores_are_found(
    rescored: Path, training: str, threshold: str | None, found: str | None, why: str
) -> None:
    """By names of folders under the root, whatever the address or a link says."""
    from curation.report.airflow_plugin import find_rescore, trainings

    report, text = find_rescore(rescored, training, threshold)
    assert why in text
    assert report == (None if found is None else (rescored / "rescore" / found).resolve())
    assert trainings(rescored) == ["gpt"]
    assert trainings(rescored / "nosuch") == []


def test_the_tab_of_the_rescore_leads_to_its_training(
    server: Any, token: str, rescored: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a login only, and only for that DAG; the links between the pages lead somewhere; scripts stay text."""
    monkeypatch.setenv("CORPUSMILL_ROOT", str(rescored))
    tab, report = "/corpusmill/runs/rescore/scheduled__2026-05-20T14:00:00+00:00", "0000000000400000/report/report.html"
    for path in (tab, "/corpusmill/rescore/rescore/gpt/", f"/corpusmill/rescore/rescore/gpt/{report}"):
        assert server.get(path).status_code == 401
    login = {"Authorization": f"Bearer {token}"}
    answer = server.get(tab, headers=login)
    assert (answer.status_code, answer.text) == (200, HOSTILE)
    assert answer.url.path == "/corpusmill/rescore/rescore/gpt/"
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    page = server.get(str(answer.url.join(report)), headers=login)
    assert page.text == "<p>at 400 k"
    assert server.get(str(page.url.join("../../index.html")), headers=login).text == HOSTILE
    assert server.get("/corpusmill/rescore/curate/gpt/", headers=login).status_code == 404
    assert (
        server.get("/corpusmill/rescore/rescore/gpt/0000000000800000/report/report.html", headers=login).status_code
        == 404
    )


def test_several_trainings_are_listed(server: Any, token: str, rescored: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CORPUSMILL_ROOT", str(rescored))
    (rescored / "rescore" / "other").mkdir()
    (rescored / "rescore" / "other" / "index.html").write_text("other", encoding="utf-8")
    login = {"Authorization": f"Bearer {token}"}
    answer = server.get("/corpusmill/runs/rescore/x", headers=login)
    assert '<a href="../../rescore/rescore/other/">other</a>' in answer.text
    assert server.get(str(answer.url.join("../../rescore/rescore/other/")), headers=login).text == "other"


@pytest.fixture
def asked(tmp_path: Path) -> Path:
    """Three questions of the DAG: one answered, one with Airflow's own id, one without a sheet yet; and what must not be shown."""
    airflow_env.home()
    secret = tmp_path / "secret.html"
    secret.write_text("secret", encoding="utf-8")
    ids = {"mine": "mine", "web-20260520-142322-8c4a": "manual__2026-05-20", "waiting": "waiting", "linked": "linked"}
    for name, dag_run_id in ids.items():
        folder = tmp_path / "impact" / "sheets" / name
        folder.mkdir(parents=True)
        engine = {"engine": "airflow", "dag_id": "filter_impact", "dag_run_id": dag_run_id}
        (folder / "asked.json").write_text(json.dumps({"engine": engine}), encoding="utf-8")
        if name == "linked":
            (folder / "sheet.html").symlink_to(secret)
        elif name != "waiting":
            (folder / "sheet.html").write_text(f"{HOSTILE} {name}", encoding="utf-8")
    (tmp_path / "impact" / "sheets" / "by-hand").mkdir()
    return tmp_path


@pytest.mark.parametrize(
    ("dag_id", "dag_run_id", "found", "why"),
    [
        ("filter_impact", "mine", "mine", ""),
        ("filter_impact", "manual__2026-05-20", "web-20260520-142322-8c4a", ""),
        ("filter_impact", "waiting", None, "no report yet"),
        ("filter_impact", "linked", None, "leads out of the root"),
        ("curate", "mine", None, "Nothing under the root"),
        ("filter_impact", "by-hand", None, "Nothing under the root"),
        ("filter_impact", "../../secret", None, "Nothing under the root"),
    ],
)
def test_only_the_sheet_of_this_very_dag_run_is_found(
    asked: Path, dag_id: str, dag_run_id: str, found: str | None, why: str
) -> None:
    """By the ids in asked.json, under the root only, whatever the address or a link says."""
    from curation.report.airflow_plugin import find_sheet

    sheet, text = find_sheet(asked, dag_id, dag_run_id)
    assert why in text
    assert sheet == (None if found is None else (asked / "impact" / "sheets" / found / "sheet.html").resolve())


def test_the_tab_of_the_impact_is_its_sheet(
    server: Any, token: str, asked: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a login only; scripts stay text, because the browser is told so."""
    monkeypatch.setenv("CORPUSMILL_ROOT", str(asked))
    login = {"Authorization": f"Bearer {token}"}
    assert server.get("/corpusmill/runs/filter_impact/mine").status_code == 401
    answer = server.get("/corpusmill/runs/filter_impact/mine", headers=login)
    assert (answer.status_code, answer.text) == (200, f"{HOSTILE} mine")
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert server.get("/corpusmill/runs/filter_impact/waiting", headers=login).status_code == 404
