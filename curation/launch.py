"""Starting, driving and ending a run: what the command line and the first and last Airflow task share."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from curation.config import RunConfig, parse_config
from curation.environment import environment
from curation.errors import ConfigError, CorpusmillError, InputError, RunError
from curation.ids import digest8
from curation.passes import Pass
from curation.pipeline import Pipeline
from curation.pool import Pool
from curation.run import Run, checked_run_id, code_version, new_run_id, read_json, run_lock, utc_now, write_json
from curation.verdicts import Step, StepConfig

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
    saved: Collection[str] = (),
) -> Pipeline:
    """Plan the inputs and make the run's folder, or find the run that this very job has already begun.

    The same config over the same inputs is the same job: unless `new` is set, its latest run under `root`
    is taken up again, and what is done in it is not done twice. With `run_id` that run is used, whatever
    its former thresholds were.

    Args:
        engine: ids of the scheduler that drives the run, kept in run.json.
        judge_all: every step judges every document.
        saved: steps whose scores lie in the run's folder already; they are not asked beforehand what else they need.

    Raises:
        InputError: an input is missing, or changed since the run began.
        ConfigError: the run exists with other inputs or other ingest settings, or a step misses something outside.
    """
    listed = _listed(inputs, root)
    # `judge` works in a root of its own, in which no blacklist lies.
    settle = partial(_settled, config, (environment().root if judge_all else root).resolve())
    asked = _job(config, listed, judge_all)
    if run_id is None and not new:
        run_id = _unfinished_run_of(root, asked)
    settled = settle(None if run_id is None else root.resolve() / "runs" / checked_run_id(run_id))
    if run_id is None:
        job = _job(settled, listed, judge_all)
        run_id = (None if new else _latest_run_of(root, job)) or _free_run_id(root, config.top.name, job)
    folder = root.resolve() / "runs" / run_id
    begun = (folder / "run.json").exists()
    _look_outside(folder, settled, saved)
    with run_lock(folder):
        _refuse_if_driven_elsewhere(folder, engine)
        if not begun and (folder / "run.json").exists():  # two first tries of a task must not settle on two versions
            settled = settle(folder)
        told = {"job": _job(settled, listed, judge_all), "asked": asked}
        run = _run_of(settled, root, run_id, listed, {**told, "judge_all": judge_all, "engine": engine})
        _settle_plan(run, inputs, listed, settled, workers)
        if any(run.info.get(key) != value for key, value in told.items()):
            run.update(**told)
    return Pipeline(run, settled)


def _run_of(
    config: RunConfig, root: Path, run_id: str, listed: Sequence[tuple[str, int, str]], told: dict[str, Any]
) -> Run:
    """The run's folder, made or opened.

    Args:
        told: further entries of run.json, if it is new.
    """
    ingest = _ingest_digest(config, told["judge_all"])
    run = Run.create(
        root,
        run_id=run_id,
        config_text=config.to_yaml(),
        config_digest=config.digest(),
        inputs=[source for source, _, _ in listed],
        extra={**told, "ingest": ingest},
    )
    if run.info["ingest"] != ingest:
        raise ConfigError(
            f"run {run_id} was ingested with other ingest settings; its documents would not be the same. "
            "Start a new run (leave out --run, or choose another run id)."
        )
    return run


def _settled(config: RunConfig, root: Path, folder: Path | None) -> RunConfig:
    """The config with all settled that steps leave open until a run starts: as this run had it, if it was begun before."""
    if all(type(step).pinned is Step.pinned for step in config.steps):
        return config
    former: dict[str, StepConfig] = {}
    if folder is not None and (folder / "run.json").exists() and (folder / "config.yaml").exists():
        begun = parse_config((folder / "config.yaml").read_text(encoding="utf-8"), str(folder / "config.yaml"))
        former = {step.name: step.config for step in begun.steps}
    return replace(config, steps=tuple(step.pinned(root, former.get(step.name)) for step in config.steps))


def _listed(inputs: Sequence[str], root: Path) -> list[tuple[str, int, str]]:
    """Source, size and time of change of every input file; reads none of them."""
    from curation.ingest.find import find_inputs

    if not all(given.strip() for given in inputs):
        raise ConfigError("an input is an empty name (an unset variable?). Give files, folders, globs or URLs.")
    listed = [(found.source, found.size, found.mtime) for found in find_inputs(list(inputs))[0]]
    _refuse_own_runs(root, [source for source, _, _ in listed])
    return listed


def _refuse_own_runs(root: Path, sources: Sequence[str]) -> None:
    """Runs hold Arrow and JSON files: a root inside an input folder would be read as crawl the next time."""
    runs = str((root / "runs").resolve()) + "/"
    inside = next((source for source in sources if source.startswith(runs)), None)
    if inside is not None:
        raise InputError(
            f"the root {root} lies inside an input folder, so that its own runs would be read, such as {inside}. "
            "Choose a root outside of the inputs, or name the inputs more narrowly."
        )


def _refuse_if_driven_elsewhere(folder: Path, engine: dict[str, Any] | None) -> None:
    """A run that an engine is driving holds no lock between its tasks: nobody else may take it up meanwhile."""
    if not (folder / "run.json").exists():
        return
    info = Run(folder).info
    if info["state"] == "running" and info["engine"] != engine and info["engine"] is not None:
        raise RunError(
            f"run {info['run_id']} is being driven by {info['engine']}. Wait for it to end, or begin another run with --new."
        )


def _look_outside(folder: Path, config: RunConfig, saved: Collection[str]) -> None:
    """Ask each step that is yet to be done whether what it needs is there: ingest may take hours, and then it is too late.

    A step that is closed needs nothing any more.
    """
    steps: Sequence[Step] = config.steps
    if (folder / "shards" / "_done.json").exists():
        placed = Pipeline(Run(folder), config).placed
        steps = [one.step for one in placed if not (one.folder / "_done.json").exists()]
    for step in steps:
        if step.name not in saved:
            step.ready()
    if config.top.pack is not None and not (folder / "pack" / "_done.json").exists():
        from curation.parity import check_before

        check_before(config.top.pack)


def _settle_plan(
    run: Run, inputs: Sequence[str], listed: Sequence[tuple[str, int, str]], config: RunConfig, workers: int
) -> None:
    """Plan a new run; of an old one check that its inputs are still those that were planned."""
    from curation.ingest.plan import plan_inputs

    stored = run.shards / "plan.json"
    if not stored.exists():
        plan = plan_inputs(list(inputs), config.top.ingest, workers=workers)
        write_json(stored, plan.to_json())
        for note in plan.notes:
            log.warning("%s", note)
        if plan.ignored:
            first = "; ".join(f"{source}: {why}" for source, why in plan.ignored[:3])
            log.warning("%d files are not read (all named in shards/plan.json): %s", len(plan.ignored), first)
    planned = {i["source"]: (i["size"], i["mtime"]) for i in read_json(stored)["inputs"]}
    now = {source: (size, mtime) for source, size, mtime in listed}
    changed = sorted(source for source in planned.keys() | now.keys() if planned.get(source) != now.get(source))
    if changed:
        raise InputError(
            f"{len(changed)} inputs changed since run {run.run_id} began, such as {changed[0]}. "
            "Start a new run (leave out --run), or put the inputs back."
        )


def _documents_of(config: RunConfig) -> dict[str, Any]:
    """The ingest settings that decide what the documents are: all but the limits at which a run gives up."""
    return config.top.ingest.model_dump(mode="json", exclude={"max_quarantine_share", "max_damaged_share"})


def _ingest_digest(config: RunConfig, judge_all: bool) -> str:
    return digest8([_documents_of(config), judge_all])


def _job(config: RunConfig, listed: Sequence[tuple[str, int, str]], judge_all: bool) -> str:
    """Digest of everything that decides a run's result: config, inputs and code version."""
    steps = [{step.name: step.config.deciding()} for step in config.steps]
    resolved = {**config.resolved(), "memory_mb": None, "ingest": _documents_of(config), "steps": steps}
    resolved.pop("export")  # another form of what the run keeps, not another run
    return digest8(
        {"config": resolved, "inputs": [list(one) for one in listed], "code": code_version(), "judge_all": judge_all}
    )


def _free_run_id(root: Path, name: str, job: str) -> str:
    """A new run id; two runs of one job that begin in the same second get a number."""
    wanted = new_run_id(name, job)
    names = [wanted, *(f"{wanted}-{number}" for number in range(2, 1000))]
    return next(one for one in names if not (root / "runs" / one).exists())


def _latest_run_of(root: Path, job: str) -> str | None:
    """Id of the newest run under `root` of the same job that no engine drives."""
    same = [(info["start"], info["run_id"]) for info in _runs(root) if info.get("job") == job]
    return max(same)[1] if same else None


def _unfinished_run_of(root: Path, asked: str) -> str | None:
    """Id of the newest run for which the very same was asked, if it is not done.

    What was settled when it began (the version of a blacklist) may be another by now, and so the job; it goes on all the
    same with what it has: hours of work would be lost, and the next start after its end takes the newer version.
    """
    same = [
        (info["start"], info["run_id"], info["state"])
        for info in _runs(root)
        if info.get("asked", info.get("job")) == asked
    ]
    _, run_id, state = max(same, default=("", None, "done"))
    return run_id if state != "done" else None


def _runs(root: Path) -> Iterator[dict[str, Any]]:
    """run.json of each run under `root` that no engine drives."""
    for path in (root / "runs").glob("*/run.json"):
        try:
            info = read_json(path)
        except RunError as error:
            log.warning("left out while looking for the run of this job: %s", error)
            continue
        if info.get("engine") is None:
            yield info


def drive(pipeline: Pipeline, *, workers: int, progress: Progress | None = None) -> None:
    """Do every pass of every stage that is not done yet, in `workers` processes, and close each stage.

    Raises:
        CorpusmillError: what went wrong; run.json says `failed`, and the same call goes on from there.
        RunError: another process holds the run; nothing is changed.
    """
    with pipeline.run.locked():
        pipeline.run.sweep()
        try:
            with Pool(pipeline.run.folder, workers) as pool:
                for stage in pipeline.stages():
                    _drive_stage(pipeline, stage, pool, progress or (lambda work, done: None))
        except BaseException as error:
            message = str(error) if isinstance(error, CorpusmillError) else f"{type(error).__name__}: {error}"
            pipeline.run.update(state="failed", end=utc_now(), error=message)
            raise


def _drive_stage(pipeline: Pipeline, stage: str, pool: Pool, progress: Progress) -> None:
    passes = pipeline.passes(stage)
    if passes and pipeline.run.info["state"] != "running":
        pipeline.run.update(state="running", end=None, error=None)
    for work in passes:
        progress(work, 0)
        for done, _ in enumerate(pool.run(work), start=1):
            progress(work, done)
    pipeline.close(stage)


def finish_run(pipeline: Pipeline) -> dict[str, Any]:
    """Write the funnel, the export that the config asks for and the report, and mark the run as done; returns the funnel.

    Raises:
        LawError: the numbers do not add up.
        ConfigError, RunError: the export cannot be written; run.json says `failed`, and the same call tries again.
    """
    from curation.export_split import export_as_configured
    from curation.funnel import build_funnel
    from curation.report.build import write_report
    from curation.report.usual import usual_alarms, write_usual

    write_usual(pipeline)
    for alarm in usual_alarms(pipeline):
        log.warning("%s: %s", alarm["step"], alarm["text"])
    funnel = build_funnel(pipeline)
    run = pipeline.run
    try:
        export_as_configured(pipeline)
    except CorpusmillError as error:
        run.update(state="failed", end=utc_now(), error=str(error))
        raise
    path = run.report / "funnel.json"
    unchanged = path.exists() and read_json(path) == funnel and (run.report / "report.html").exists()
    if run.info["state"] == "done" and unchanged:
        return funnel
    write_json(path, funnel)
    run.update(state="done", end=utc_now(), error=None)
    write_report(run.folder)
    run.sweep()
    return funnel
