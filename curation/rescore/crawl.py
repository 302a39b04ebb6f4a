"""Which documents a threshold judges: runs and files that no other threshold of its training has judged.

What a threshold judges is fixed when it begins, under the lock of its training, so that each run and file goes to one
threshold. They are listed before; under the lock it is only seen what others have taken meanwhile. Files of fresh crawl
become a run of their own, `<training>-<threshold>`, whose steps filter them first, as `curate` would: what they drop
anyway needs no model to say so.

Costs a look at run.json of every run, and a listing of the input folders.
"""

from __future__ import annotations

import fnmatch
import logging
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

from curation.config import load_config
from curation.errors import ConfigError, InputError, RunError
from curation.ids import digest8
from curation.launch import drive, finish_run, start_run
from curation.pipeline import Pipeline
from curation.rescore.settings import RescoreSettings
from curation.rescore.threshold import BusyError, NotReadyError, Threshold, thresholds_on_disk, training_lock
from curation.run import Run, read_json

__all__ = ["anything_new", "begin", "ingest_crawl", "require_done", "runs_left"]

log = logging.getLogger("corpusmill")

ENGINE = "rescore"
"""What run.json names as the engine of a run that a threshold has made for itself."""


def anything_new(settings: RescoreSettings) -> bool:
    """Whether there is a run or a file that no threshold of the training has judged.

    Raises:
        RunError: the input cannot be listed.
    """
    return any(_not_taken(settings, *_listed(settings)))


def begin(threshold: Threshold) -> bool:
    """Fix what a threshold judges, or end it where there is nothing; false if it has ended.

    As long as no run of it has begun to be scored, its settings are those of now: what they had wrong may be mended.

    Raises:
        RunError: the input cannot be listed.
    """
    settings = threshold.settings
    listed = ([], []) if threshold.is_begun or threshold.done is not None else _listed(settings)
    with training_lock(settings):
        if threshold.done is not None:
            return False
        if threshold.is_begun:
            with suppress(BusyError), threshold.settings_stay(seconds=0):  # else another process begins to score
                if not threshold.is_being_scored:
                    threshold.begin(threshold.info["runs"], threshold.info["crawl"])
            return True
        runs, files = _not_taken(settings, *listed)
        if not runs and not files:
            threshold.finish("no_documents", why="no document was new to this training when it began")
            log.info("threshold %s: no new documents", f"{threshold.tokens:,}")
            return False
        crawl = None
        if files:
            runs.append(_crawl_id(threshold))
            crawl = {"run_id": _crawl_id(threshold), "config": settings.crawl.config, "files": files}
        threshold.begin(runs, crawl)
    log.info("threshold %s: judges %s", f"{threshold.tokens:,}", ", ".join(threshold.info["runs"]))
    return True


def ingest_crawl(threshold: Threshold, progress: Any = None) -> dict[str, Any]:
    """Read and filter the fresh crawl of a threshold that has begun, unless that is done.

    Raises:
        InputError: a file changed since the threshold began, or too much of it is damaged.
        RunError: another process is at it.
    """
    crawl = threshold.info["crawl"]
    if crawl is None or _is_done(threshold, crawl["run_id"]):
        return {"reused": True}
    settings = threshold.begun_with
    _require_unchanged(threshold, crawl["files"])
    pipeline = start_run(
        load_config(crawl["config"], ["pack=", "export="]),
        [source for source, _, _ in crawl["files"]],
        settings.runs_root,
        run_id=crawl["run_id"],
        engine={"engine": ENGINE, "training_run": settings.training.run, "threshold": threshold.tokens},
        workers=settings.crawl.workers,
    )
    drive(pipeline, workers=settings.crawl.workers, progress=progress)
    _require_unchanged(threshold, crawl["files"])
    funnel = finish_run(Pipeline.open(pipeline.run.folder))
    return {"reused": False, "documents": funnel["documents"], "kept": funnel["kept"]}


def _require_unchanged(threshold: Threshold, files: Sequence[Sequence[Any]]) -> None:
    """Raises InputError if a file is not what it was when the threshold began: the next one would judge it again."""
    from curation.ingest.find import find_inputs

    what = (
        "Put it back as it was, its time too, or give this threshold up, and the next one reads what is there: "
        f'`corpusmill rescore SETTINGS --give-up {threshold.tokens} --note "..."`.'
    )
    try:
        now = {one.source: (one.size, one.mtime) for one in find_inputs([source for source, _, _ in files])[0]}
    except InputError as error:
        raise InputError(f"{error} {what}") from error
    for source, size, mtime in files:
        if (found := now.get(source)) != (size, mtime):
            raise InputError(
                f"{source} had {size} bytes of {mtime} when the threshold began; expected the same, found "
                f"{'nothing' if found is None else f'{found[0]} bytes of {found[1]}'}. {what}"
            )


def require_done(threshold: Threshold) -> None:
    """Raises NotReadyError if the fresh crawl of a threshold has not been read and filtered."""
    crawl = threshold.info["crawl"]
    if crawl is not None and not _is_done(threshold, crawl["run_id"]):
        raise NotReadyError(
            f"run {crawl['run_id']} is not done yet: the crawl of this threshold is still being filtered."
        )


def _is_done(threshold: Threshold, run_id: str) -> bool:
    path = threshold.settings.runs_root / "runs" / run_id / "run.json"
    return path.exists() and read_json(path)["state"] == "done"


def runs_left(settings: RescoreSettings) -> list[tuple[str, str]]:
    """Ids of runs that the patterns name and no threshold may judge yet, with the reason."""
    return [(run_id, why) for run_id, why in _candidates(settings) if why]


def _candidates(settings: RescoreSettings) -> Iterable[tuple[str, str]]:
    """Ids of the runs that the patterns name, and why one is left; empty: it is not."""
    for path in sorted((settings.runs_root / "runs").glob("*/run.json")):
        run_id = path.parent.name
        if not any(fnmatch.fnmatchcase(run_id, pattern) for pattern in settings.crawl.runs):
            continue
        try:
            run = Run(path.parent)
        except RunError as error:
            yield run_id, str(error)
            continue
        if (run.info.get("engine") or {}).get("engine") == ENGINE:
            continue  # of a threshold, maybe of another training
        if not settings.crawl.packed and (run.pack / "_done.json").exists():
            yield run_id, "it has a token file (crawl.packed)"
        elif run.info["state"] != "done" or not (run.shards / "_done.json").exists():
            yield run_id, f"its state is {run.info['state']}"
        elif settings.score.documents == "kept" and run.info.get("judge_all"):
            yield run_id, "its steps judged each document alone, so none is kept by all (score.documents)"
        else:
            yield run_id, ""


def _listed(settings: RescoreSettings) -> tuple[list[str], list[list[Any]]]:
    """Ids of all runs that may be judged; source, bytes and time of change of each file of the input."""
    from curation.ingest.find import find_inputs

    runs = [run_id for run_id, why in _candidates(settings) if not why]
    if not settings.crawl.input:
        return runs, []
    try:
        found, _ = find_inputs(list(settings.crawl.input))
    except (InputError, ConfigError) as error:
        raise RunError(f"crawl.input: {error}") from error
    return runs, [[one.source, one.size, one.mtime] for one in found]


def _not_taken(
    settings: RescoreSettings, runs: Sequence[str], files: Sequence[list[Any]]
) -> tuple[list[str], list[list[Any]]]:
    """Those of them that no threshold judges; of files, as they are now."""
    taken = [info for one in thresholds_on_disk(settings) if (info := one.taken) is not None]
    taken_runs = {run_id for info in taken for run_id in info["runs"]}
    taken_files = {tuple(file) for info in taken for file in (info["crawl"] or {"files": ()})["files"]}
    return [one for one in runs if one not in taken_runs], [one for one in files if tuple(one) not in taken_files]


def _crawl_id(threshold: Threshold) -> str:
    """`my-gpt-0000020000000000`: safe in a path, the same at every try, another for each training."""
    name = threshold.settings.training.run
    safe = re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-")[:60] or "training"
    return f"{safe}-{digest8(name)[:4]}-{threshold.tokens:016d}"
