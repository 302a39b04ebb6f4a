"""What the demo shows: a line for each task group while the run goes on, then the funnel and where the time went."""

from __future__ import annotations

import json
import time
from datetime import datetime
from pathlib import Path
from typing import Any

from airflow_api import AirflowApi
from airflow_home import Home, LocalAirflowError, tail

ENDED = {"success", "failed", "skipped", "upstream_failed", "removed"}
FAILED = {"failed"}


def follow(api: AirflowApi, run_id: str, home: Home, limit_s: float) -> dict[str, Any]:
    """Print a line for each task group as it ends; returns the run's `state`, `seconds` and Airflow's `memory_mb`.

    Raises:
        LocalAirflowError: a component of Airflow died, or the run takes longer than `limit_s`.
    """
    deadline = time.monotonic() + limit_s
    shown: set[str] = set()
    memory_mb, measured = 0.0, 0.0
    while True:
        run = api.run(run_id)
        for group, tasks in _groups(api.tasks(run_id)).items():
            if group not in shown and all(task["state"] in ENDED for task in tasks):
                shown.add(group)
                print(_line(group, tasks), flush=True)
        if run["state"] in ("success", "failed"):
            return {"state": run["state"], "seconds": _seconds(run), "memory_mb": memory_mb}
        if (dead := home.dead_component()) is not None:
            raise LocalAirflowError(f"its {dead} ended:\n{tail(home.component_log(dead).read_text(errors='replace'))}")
        if time.monotonic() > deadline:
            raise LocalAirflowError(f"run {run_id} is still {run['state']} after {limit_s:.0f} seconds.")
        if time.monotonic() - measured > 3:
            memory_mb, measured = max(memory_mb, home.memory_mb()), time.monotonic()
        time.sleep(0.5)


def _groups(tasks: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Tasks by group, in the order in which the groups run."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for task in tasks:
        groups.setdefault(task["task_id"].partition(".")[0], []).append(task)
    order = ["start", "ingest", "dedup", "language", "quality", "safety", "tokens", "pack", "report", "gate"]
    return dict(sorted(groups.items(), key=lambda pair: order.index(pair[0])))


def _line(group: str, tasks: list[dict[str, Any]]) -> str:
    done = [task for task in tasks if task["state"] == "success"]
    failed = [task for task in tasks if task["state"] in FAILED]
    times = [
        (task["start_date"], task["end_date"]) for task in done + failed if task["start_date"] and task["end_date"]
    ]
    seconds = _between(min(s for s, _ in times), max(e for _, e in times)) if times else 0.0
    what = f"{len(done)} task{'s' * (len(done) != 1)}" if done else "not in this config"
    if failed:
        what = f"FAILED in {', '.join(sorted({task['task_id'] for task in failed}))}"
    elif any(task["state"] == "upstream_failed" for task in tasks):
        what = "given up"
    return f"  {group:<10}{seconds:6.1f} s   {what}"


def _between(start: str, end: str) -> float:
    return (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()


def _seconds(run: dict[str, Any]) -> float:
    return _between(run["start_date"], run["end_date"])


def print_result(folder: Path, ended: dict[str, Any], *, seconds: float) -> None:
    """The funnel, the report's path, and how much of the time was work."""
    from curation.report.table import print_funnel

    funnel = json.loads((folder / "report" / "funnel.json").read_text(encoding="utf-8"))
    print()
    print_funnel(funnel)
    work = work_seconds(folder)
    peak = max([funnel.get("ingest", {}).get("peak_rss_mb", 0), *[step["peak_rss_mb"] for step in funnel["steps"]]])
    share = 1 - work / ended["seconds"]
    print(f"\n{seconds:.0f} s in all: {ended['seconds']:.0f} s the run, the rest Airflow's start.")
    print(
        f"Of the run {work:.1f} s were work in tasks, {ended['seconds'] - work:.1f} s ({share:.0%}) Airflow's: about a second"
        "\na task, whose number hardly grows with the input. So the share is large for a demo, and small for a crawl."
    )
    print(f"Memory at most: {peak:.0f} MB a task, {ended['memory_mb']:.0f} MB Airflow with its tasks.")
    print(f"Report: {folder / 'report' / 'report.html'}")


def work_seconds(folder: Path) -> float:
    """Seconds in which at least one task was at work, from what the tasks themselves wrote down."""
    entries = [json.loads(path.read_text(encoding="utf-8")) for path in (folder / "logs" / "tasks").glob("*.json")]
    spans = sorted((entry["start"], entry["start"] + entry["seconds"]) for entry in entries)
    total, reached = 0.0, 0.0
    for start, end in spans:
        total += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return total


def print_failure(api: AirflowApi, run_id: str) -> None:
    """Which tasks failed, with the end of the log of each."""
    failed = [task for task in api.tasks(run_id) if task["state"] in FAILED]
    # The gate only repeats what the others said.
    for task in [task for task in failed if task["task_id"] != "gate"][:3] or failed:
        index = f"[{task['map_index']}]" if task["map_index"] >= 0 else ""
        print(f"\n--- {task['task_id']}{index} failed; the end of its log:\n{tail(api.log_of(run_id, task))}")
    print(
        f"\nrun {run_id} failed in {len(failed)} task{'s' * (len(failed) != 1)}: {api.address}/dags/curate/runs/{run_id}"
    )
