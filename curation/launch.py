"""Starting, driving and ending a run: what the command line and the first and last Airflow task share."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from curation.config import RunConfig
from curation.errors import ConfigError, CorpusmillError
from curation.ids import digest8
from curation.pipeline import Pass, Pipeline, check_plan_unchanged
from curation.pool import Pool
from curation.run import Run, code_version, new_run_id, read_json, utc_now, write_json

__all__ = ["Progress", "drive", "finish_run", "start_run"]

log = logging.getLogger("corpusmill")

Progress = Callable[[Pass, int], None]
"""Called with a pass and how many of its items are done: once with 0, then after each item."""


def start_run(
    config: RunConfig,
    inputs: Sequence[str],
    root: Path,
    *,
    run_id: str | None = None,
    new: bool = False,
    workers: int = 1,
    engine: dict[str, Any] | None = None,
    judge_all: bool = False,
) -> Pipeline:
    """Plan the inputs and make the run's folder, or find the run that this very job has already begun.

    The same config over the same inputs is the same job: unless `new` is set, its latest run under `root`
    is taken up again, and what is done in it is not done twice. With `run_id` that run is used, whatever
    its former thresholds were.

    Args:
        engine: ids of the scheduler that drives the run, kept in run.json.
        judge_all: every step judges every document.

    Raises:
        InputError: an input is missing, or changed since the run began.
        ConfigError: the run exists with other inputs or other ingest settings.
    """
    from curation.ingest.plan import plan_inputs

    plan = plan_inputs(list(inputs), config.top.ingest, workers=workers).to_json()
    job = _job(config, plan, judge_all)
    if run_id is None:
        run_id = (None if new else _latest_run_of(root, job)) or new_run_id(config.top.name, job)
    ingest = digest8([_documents_of(config), judge_all])
    run = Run.create(
        root,
        run_id=run_id,
        config_text=config.to_yaml(),
        config_digest=config.digest(),
        inputs=[i["source"] for i in plan["inputs"]],
        extra={"job": job, "ingest": ingest, "judge_all": judge_all, "engine": engine},
    )
    _check_same_documents(run, plan, ingest)
    run.update(job=job)
    return Pipeline(run, config)


def _check_same_documents(run: Run, plan: dict[str, Any], ingest: str) -> None:
    """Refuse to go on with a run whose documents would be others than those it has; else store the plan."""
    if run.info["ingest"] != ingest:
        raise ConfigError(
            f"run {run.run_id} was ingested with other ingest settings; its documents would not be the same. "
            "Start a new run (leave out --run, or choose another run id)."
        )
    stored = run.shards / "plan.json"
    if stored.exists():
        check_plan_unchanged(read_json(stored), plan, run.run_id)
    else:
        write_json(stored, plan)


def _documents_of(config: RunConfig) -> dict[str, Any]:
    """The ingest settings that decide what the documents are: all but the limit at which a run gives up."""
    return config.top.ingest.model_dump(mode="json", exclude={"max_quarantine_share"})


def _job(config: RunConfig, plan: dict[str, Any], judge_all: bool) -> str:
    """Digest of everything that decides a run's result: config, inputs and code version."""
    inputs = [[i["source"], i["size"], i["mtime"]] for i in plan["inputs"]]
    resolved = {**config.resolved(), "ingest": _documents_of(config)}
    return digest8({"config": resolved, "inputs": inputs, "code": code_version(), "judge_all": judge_all})


def _latest_run_of(root: Path, job: str) -> str | None:
    """Id of the newest run under `root` of the same job."""
    found = [read_json(path) for path in (root / "runs").glob("*/run.json")]
    same = [info for info in found if info.get("job") == job]
    return max(same, key=lambda info: (info["start"], info["run_id"]))["run_id"] if same else None


def drive(pipeline: Pipeline, *, workers: int, progress: Progress | None = None) -> None:
    """Do every pass of every stage that is not done yet, in `workers` processes, and close each stage.

    Raises:
        CorpusmillError: what went wrong; run.json says `failed`, and the same call goes on from there.
    """
    report = progress or (lambda work, done: None)
    try:
        with pipeline.run.locked(), Pool(pipeline.run.folder, workers) as pool:
            pipeline.run.sweep()
            for stage in pipeline.stages():
                for work in pipeline.passes(stage):
                    report(work, 0)
                    for done, _ in enumerate(pool.run(work), start=1):
                        report(work, done)
                pipeline.close(stage)
    except BaseException as error:
        message = str(error) if isinstance(error, CorpusmillError) else f"{type(error).__name__}: {error}"
        pipeline.run.update(state="failed", end=utc_now(), error=message)
        raise


def finish_run(pipeline: Pipeline) -> dict[str, Any]:
    """Write the funnel and the report and mark the run as done; returns the funnel."""
    from curation.funnel import build_funnel
    from curation.report.build import write_report

    funnel = build_funnel(pipeline)
    write_json(pipeline.run.report / "funnel.json", funnel)
    if pipeline.run.info["state"] != "done":
        pipeline.run.update(state="done", end=utc_now(), error=None)
    write_report(pipeline.run.folder)
    pipeline.run.sweep()
    return funnel
