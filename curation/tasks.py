"""What each task of the DAG `curate` does, free of Airflow: open the run, do one thing, return a few counts.

The DAG fixes its tasks before it knows the config. So a stage has slots: `plan` asks the pipeline which passes the
stage has, gives each slot one pass cut into chunks, and the last slot whatever is left over. A small stage (each of its
passes would be one chunk) is done by the task `whole` instead, since each task costs a second of starting.
Nothing here depends on who calls it: the same items, in any grouping, give the same files.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import platform
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from curation.chunks import CHUNK_MB, WHOLE, cut, items_of
from curation.config import SHIPPED, load_config
from curation.environment import environment
from curation.errors import ConfigError, CorpusmillError, RunError
from curation.funnel import build_funnel
from curation.ids import digest8
from curation.launch import finish_run, start_run
from curation.passes import Pass
from curation.pipeline import ALL_STAGES, Pipeline
from curation.run import RUN_ID, Run, new_run_id, read_json, utc_now, write_json

__all__ = [
    "Planned",
    "TaskName",
    "assemble",
    "begin",
    "check",
    "gate",
    "known_configs",
    "plan",
    "recorded",
    "report",
    "root_of",
    "run_id_for",
    "token_file_facts",
    "unused_after",
    "whole",
    "work",
]

log = logging.getLogger("corpusmill")

_AIRFLOWS_OWN = ("manual__", "scheduled__", "backfill__", "asset_triggered__", "operator_triggered__")


@dataclass(frozen=True)
class Planned:
    """What one slot of a stage has to do."""

    passes: list[str]
    """Names of the passes, in order; several only if there is one chunk."""
    chunks: list[str]
    """`0-7` (items 0 to 7) ..., or `all` alone; empty: nothing to do."""
    whole: bool = False
    """The stage is small: nothing for the slots, the task `whole` does it."""


# -- start -------------------------------------------------------------------------------------


def known_configs() -> list[str]:
    """What the form offers: names of shipped configs, then paths of those in CORPUSMILL_CONFIGS. Two folder listings."""
    own = environment().configs
    shipped = sorted(path.stem for path in SHIPPED.glob("*.yaml"))
    return shipped + (sorted(str(path) for path in own.glob("*.y*ml")) if own is not None else [])


def root_of(params: Mapping[str, Any]) -> Path:
    """Folder of all runs: the parameter, or the worker's CORPUSMILL_ROOT.

    Raises:
        ConfigError: it is relative; each worker has its own current folder.
    """
    root = Path(params.get("root") or environment().root)
    if not root.is_absolute():
        raise ConfigError(
            f"root {str(root)!r}: expected an absolute path that means the same folder on every worker. "
            "Fill in `root`, or set CORPUSMILL_ROOT for all of Airflow."
        )
    return root.resolve()


def run_id_for(dag_id: str, dag_run_id: str, name: str, run_after: datetime) -> str:
    """The run id of a DAG run, the same at every retry.

    A `dag_run_id` that someone chose is the run id if it is safe in a path; one that Airflow made (`manual__...`)
    becomes a run id of our own form, with a digest of Airflow's id.
    """
    if RUN_ID.fullmatch(dag_run_id) and not dag_run_id.startswith(_AIRFLOWS_OWN):
        return dag_run_id
    return new_run_id(name, digest8([dag_id, dag_run_id]), run_after)


def begin(
    params: Mapping[str, Any], *, dag_id: str, dag_run_id: str, run_after: datetime, attempt: int = 1
) -> dict[str, Any]:
    """Check the config, plan the inputs and make the run's folder, or open it if an earlier try made it.

    Returns:
        `run` (folder, relative to the root), `files`, `parts`, `stages`.

    Raises:
        ConfigError, InputError: see `start_run`. Trying again would not help.
    """
    start = time.time()
    root = root_of(params)
    for what, given in [*[("input", one) for one in params["input"]], ("config", str(params["config"]))]:
        if "://" not in given and not Path(given).is_absolute() and (what == "input" or Path(given).name != given):
            raise ConfigError(f"{what} {given!r}: expected an absolute path or a URL; each worker has its own folder.")
    overrides = list(params.get("overrides") or [])
    if params.get("name"):
        overrides.append(f"name={json.dumps(params['name'])}")
    config = load_config(params["config"], overrides)
    pipeline = start_run(
        config,
        list(params["input"]),
        root,
        run_id=run_id_for(dag_id, dag_run_id, config.top.name, run_after),
        workers=os.cpu_count() or 1,
        engine={"engine": "airflow", "dag_id": dag_id, "dag_run_id": dag_run_id},
    )
    log.info("run %s", pipeline.run.folder)
    _note(pipeline.run.folder, TaskName("start", -1, attempt), start, None)
    return {
        "run": str(pipeline.run.folder.relative_to(root)),
        "files": len(pipeline.plan.inputs),
        "parts": len(pipeline.plan.parts),
        "stages": pipeline.stages(),
    }


# -- stages ------------------------------------------------------------------------------------


def plan(
    folder: Path, stage: str, slot: int, n_slots: int, *, chunk_mb: float = CHUNK_MB, may_be_whole: bool = True
) -> Planned | None:
    """What slot `slot` (from 1) of `n_slots` has to do; None if the config has nothing for this stage.

    Args:
        may_be_whole: leave a small stage to the task `whole`.
    """
    pipeline = Pipeline.open(folder)
    if stage not in pipeline.stages():
        return None
    passes = pipeline.passes(stage)
    if may_be_whole and _is_small(pipeline, passes, chunk_mb):
        return Planned([], [], whole=True)
    mine = passes[slot - 1 :] if slot == n_slots else passes[slot - 1 : slot]
    names = [one.name for one in mine]
    if len(mine) == 1:
        return Planned(names, cut(_weights(pipeline, mine[0]), chunk_mb * 2**20))
    return Planned(names, [WHOLE] if mine else [])


def whole(folder: Path, stage: str, *, chunk_mb: float = CHUNK_MB) -> dict[str, Any]:
    """Do all passes of a small stage, in order; nothing if it is large, since then the slots do it."""
    pipeline = Pipeline.open(folder)
    passes = pipeline.passes(stage)
    names = [one.name for one in passes] if _is_small(pipeline, passes, chunk_mb) else []
    return work(folder, stage, names, WHOLE)


def _is_small(pipeline: Pipeline, passes: Sequence[Pass], chunk_mb: float) -> bool:
    """Whether each of its passes would be one task anyway."""
    return all(len(cut(_weights(pipeline, one), chunk_mb * 2**20)) <= 1 for one in passes)


def _weights(pipeline: Pipeline, work: Pass) -> list[float]:
    """Bytes that each item of a pass reads, about."""
    if work.what == "part":
        return [float(sum(piece.end - piece.start for piece in part.slices)) for part in pipeline.plan.parts]
    sizes = [float(shard.text_bytes) for shard in pipeline.shards]
    if work.what == "shard":
        return sizes
    return [sum(sizes) / work.n_items] * work.n_items if work.n_items else []


def work(folder: Path, stage: str, passes: Sequence[str], chunk: str) -> dict[str, Any]:
    """Do the items of one chunk, one after the other. What is done already is recognised and left alone.

    Returns:
        `items`, and how many of them were `reused` from an earlier try.
    """
    pipeline = Pipeline.open(folder)
    open_passes = {one.name: one for one in pipeline.passes(stage)}
    counts = Counter(items=0, reused=0)
    for name in passes:
        # A pass that is no longer listed belongs to a step that is closed: its files may be gone, and are not needed.
        if name in open_passes:
            for item in items_of(chunk, open_passes[name].n_items):
                done = pipeline.run_item(name, item)
                counts.update(items=1, reused=int(bool(done.get("reused"))))
        log.info("%s %s: %d items done, %d of them before", name, chunk, counts["items"], counts["reused"])
    return dict(counts)


def parity(folder: Path) -> dict[str, Any] | None:
    """Hold the tokenizer against the trainer's before anything is encoded, unless the token file stands already.

    Returns:
        A few counts; None if the config packs nothing.

    Raises:
        ConfigError: they differ; the message says which text, at which token, and why they may.
    """
    pipeline = Pipeline.open(folder)
    if "pack" not in pipeline.stages():
        return None
    for one in pipeline.passes("pack"):
        if one.name == "pack.parity":
            return pipeline.run_item(one.name, 0)
    return {"reused": True}


def assemble(folder: Path) -> dict[str, Any]:
    """Put the encoded parts together into the token file, unless it stands already."""
    pipeline = Pipeline.open(folder)
    counts: dict[str, Any] = {"reused": True}
    for one in pipeline.passes("pack"):
        if one.name == "pack.assemble":
            counts = pipeline.run_item(one.name, 0)
    return counts


def check(folder: Path, stage: str) -> dict[str, Any]:
    """Close a stage: the conservation law is counted anew on what lies on disk.

    Raises:
        LawError: documents were lost or invented.
        InputError: too much of the input is in the quarantine.
    """
    counts = Pipeline.open(folder).close(stage)
    log.info("%s closed: %s", stage, json.dumps(counts))
    return counts


def unused_after(folder: Path, stage: str) -> list[str]:
    """Stages without a step of this config that stand between `stage` and the next one that has any."""
    used = Pipeline.open(folder).stages()
    behind = ALL_STAGES[ALL_STAGES.index(stage) + 1 :]
    n_unused = next((n for n, name in enumerate(behind) if name in used), len(behind))
    return list(behind[:n_unused])


def token_file_facts(folder: Path) -> dict[str, Any]:
    """What the asset event says about a finished token file: run id, path (relative to the root), tokens, digest."""
    run = Run(folder)
    marker = read_json(run.pack / "_done.json")
    return {
        "run_id": run.run_id,
        "path": str((run.pack / "tokens.arrow").relative_to(folder.parent.parent)),
        "tokens": marker["packed"]["tokens"],
        "digest": marker["digest"],
    }


# -- the end -----------------------------------------------------------------------------------


def report(folder: Path, failed: Sequence[str]) -> dict[str, Any]:
    """Write the report, of a failed run too, and say in run.json how the run ended.

    Args:
        failed: names of tasks that failed.

    Raises:
        LawError: the numbers of the whole run do not add up; the report is written all the same.
    """
    from curation.report.build import write_report

    pipeline = Pipeline.open(folder)
    try:
        if not failed:
            funnel = finish_run(pipeline)
            return {"documents": funnel["documents"], "kept": funnel["kept"]}
        error = reasons(folder, failed)
    except CorpusmillError as broken:
        pipeline.run.update(state="failed", end=utc_now(), error=str(broken))
        write_report(folder)
        raise
    except Exception as fault:
        # A fault of ours must not leave a run that is "running" for ever.
        pipeline.run.update(state="failed", end=utc_now(), error=f"the report failed: {type(fault).__name__}: {fault}")
        raise
    pipeline.run.update(state="failed", end=utc_now(), error=error)
    write_report(folder)
    return {"failed": len(failed)}


def gate(folder: Path | None, failed: Sequence[str]) -> dict[str, Any]:
    """The colour of the DAG run: green only if nothing failed, every stage is closed and the law holds.

    Raises:
        RunError: names what failed, with the first messages.
        LawError: the numbers of the whole run do not add up.
    """
    if failed or folder is None:
        raise RunError(reasons(folder, failed) if folder is not None else f"failed: {', '.join(failed)}")
    pipeline = Pipeline.open(folder)
    funnel = build_funnel(pipeline)
    if pipeline.run.info["state"] != "done":
        raise RunError(f"run {pipeline.run.run_id} is {pipeline.run.info['state']}: its report is not finished.")
    return {"run_id": pipeline.run.run_id, "documents": funnel["documents"], "kept": funnel["kept"]}


def reasons(folder: Path, failed: Sequence[str]) -> str:
    """One line a failed task, with the error that its last try left in the run's logs."""
    lines = []
    for name in failed[:5]:
        tries = sorted((folder / "logs" / "tasks").glob(f"{name}.*.json"), key=lambda path: path.stat().st_mtime)
        last = read_json(tries[-1]) if tries else {}
        chunk = f" ({last['doing']})" if last.get("doing") else ""
        lines.append(f"{name}{chunk}: {last.get('error') or 'it ended without a word; see its log in Airflow'}")
    if len(failed) > 5:
        lines.append(f"and {len(failed) - 5} more tasks")
    return "\n".join(lines)


# -- traces ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TaskName:
    """Which try of which task this is."""

    task_id: str
    map_index: int
    attempt: int
    doing: str = ""
    """Pass and items, such as `exact.scatter 0-7`."""

    def __str__(self) -> str:
        """As Airflow names the states of mapped tasks: `dedup.pass_1_3`."""
        return self.task_id if self.map_index < 0 else f"{self.task_id}_{self.map_index}"


@contextlib.contextmanager
def recorded(folder: Path, name: TaskName) -> Iterator[None]:
    """Leaves `logs/tasks/NAME.TRY.json` in the run: when, where, how long, and the error if there was one."""
    start = time.time()
    try:
        yield
    except BaseException as broken:
        known = isinstance(broken, CorpusmillError)
        _note(folder, name, start, str(broken) if known else f"{type(broken).__name__}: {broken}")
        raise
    _note(folder, name, start, None)


def _note(folder: Path, name: TaskName, start: float, error: str | None) -> None:
    entry = {
        "task": str(name),
        "try": name.attempt,
        "doing": name.doing,
        "start": round(start, 3),
        "seconds": round(time.time() - start, 3),
        "host": platform.node(),
        "pid": os.getpid(),
        "error": error,
    }
    write_json(folder / "logs" / "tasks" / f"{name}.{name.attempt}.json", entry)
