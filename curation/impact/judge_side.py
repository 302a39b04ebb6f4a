"""One side judges the sample: an ordinary run of its own, named by all that decides its result.

A side of this code runs in this process, one of other code as that code's own command line in another. What earlier runs
have done is linked in first (`curation.impact.seeds`), so that a moved threshold decides anew from saved scores. The same
side over the same sample is done once: the second time costs a look at its files.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from curation.config import parse_config, yaml_mapping
from curation.errors import ConfigError, RunError
from curation.ids import digest8
from curation.impact.code import HERE, Sources, environment_digest
from curation.impact.contents import contents_of
from curation.impact.inputs import Sample
from curation.impact.kernels import share_kernels
from curation.impact.locks import hold, waiting_lock
from curation.impact.seeds import CODE_FILE, Made, closed_steps, is_finished, saved_steps, seed, steps_with_scores
from curation.impact.sides import Side, step_names
from curation.impact.warm import warm_here, warm_steps, write_warm_documents
from curation.launch import Progress, drive, start_run
from curation.pool import Pool
from curation.run import write_json

__all__ = ["judge_side", "made_with", "run_id_of"]

log = logging.getLogger("corpusmill")

LAST_LINES = 15
"""Of what the other code said before it failed."""
SMALL_BYTES = 32 * 2**20
"""Below this much text, starting workers takes longer than their work: one process does it all."""
_OTHER_CODE = """
import json, os, sys, threading, time
tree, parent, commands = json.load(sys.stdin)
def end_with_parent():
    while os.getppid() == parent:
        time.sleep(0.3)
    os._exit(1)
threading.Thread(target=end_with_parent, daemon=True).start()
sys.path.insert(0, tree)
import curation.cli
if not curation.cli.__file__.startswith(tree):
    sys.exit(f"another curation was imported: {curation.cli.__file__}")
for command in commands:
    code = curation.cli.main(command)
    if code:
        sys.exit(code)
"""
"""Runs commands of the code in a folder, in one process, after making sure that it is that code; ends with the process that asks."""


def made_with(side: Side, sample: Sample) -> Made:
    """What decides what a side's run may take over.

    Raises:
        ConfigError: what a step of this code reads beside its settings is not there.
    """
    told = f"{sample.folder}\0{sample.sha256}"
    return Made(told, _ingest_settings(side), environment_digest(), side.code, contents_of(side))


def run_id_of(side: Side, sample: Sample) -> str:
    """The run's id: equal for equal code, config, content of all that the config names, and sample."""
    return _id_of(side, made_with(side, sample))


def _id_of(side: Side, made: Made) -> str:
    settings = settings_of(side)
    name = str(settings.pop("name", "run"))
    code = [made.environment, made.code.ingest, made.code.engine, dict(made.code.steps), side.tree is None]
    decides = [made.sample, *code, settings, dict(made.contents)]
    digest = hashlib.sha256(json.dumps(decides, sort_keys=True, default=str).encode()).hexdigest()[:16]
    safe = "".join(char if char.isascii() and char.isalnum() else "-" for char in name).strip("-").lower()
    return f"{safe[:40] or 'run'}-{digest}"


def settings_of(side: Side) -> dict[str, Any]:
    """The side's config as plain data."""
    return yaml_mapping(side.text, side.label)


def _ingest_settings(side: Side) -> str:
    """Digest of the settings that decide what the documents are; empty where only other code understands them."""
    try:
        config = side.config or parse_config(_only_ingest(side), side.label)
    except ConfigError:
        return ""
    return digest8(config.top.ingest.model_dump(mode="json", exclude={"max_quarantine_share", "max_damaged_share"}))


def _only_ingest(side: Side) -> str:
    return json.dumps({"ingest": settings_of(side).get("ingest") or {}})


def judge_side(side: Side, sample: Sample, root: Path, *, workers: int = 1, progress: Progress | None = None) -> Path:
    """Judge the sample, unless this very side has judged it already; returns the run's folder.

    Two commands at once: the second waits for the first.

    Args:
        root: folder of all runs; what `impact` keeps lies in its folder `impact`.

    Raises:
        CorpusmillError: the sample, the config or the other code will not do.
    """
    own = root.resolve() / "impact"
    made = made_with(side, sample)
    run_id = _id_of(side, made)
    folder = own / "runs" / run_id
    hold(own, "runs", run_id)
    with waiting_lock(own, run_id) as lock:
        if not is_finished(folder):
            used = 1 if sample.bytes < SMALL_BYTES else workers
            try:
                _judge(side, sample, own, made, used, progress, lock, seeded=True)
            except RunError as error:
                if side.config is None:
                    raise
                # What `impact` keeps may be damaged, here or in a run that was linked: it is its own to delete.
                log.warning("%s is judged anew, without what was kept: %s", side.label, error)
                shutil.rmtree(folder)
                _judge(side, sample, own, made, used, progress, lock, seeded=False)
            if not is_finished(folder):
                raise RunError(
                    f"{side.label} has judged the sample, but {folder} is not whole. Delete it and try again."
                )
        os.utime(folder / CODE_FILE)  # the run was of use: those that were not for the longest time are deleted first
    return folder


def _judge(
    side: Side,
    sample: Sample,
    own: Path,
    made: Made,
    workers: int,
    progress: Progress | None,
    lock: int,
    *,
    seeded: bool,
) -> None:
    run_id = _id_of(side, made)
    folder = own / "runs" / run_id
    folder.mkdir(parents=True, exist_ok=True)
    if Made.read(folder) != made:
        made.write(folder)
    if seeded:
        seed(folder, own / "runs", made)
    if side.config is not None:
        _judge_here(side, sample, own, made, workers, progress)
    else:
        _judge_there(side, sample, own, run_id, workers, lock)
    if contents_of(side) != made.contents:
        shutil.rmtree(folder)
        raise ConfigError(
            f"a model or list that the config of {side.label} names was changed while it was in use. Try again."
        )


def _judge_here(side: Side, sample: Sample, own: Path, made: Made, workers: int, progress: Progress | None) -> None:
    """Run in this process; there is no report, since the sheet tells more."""
    from curation.funnel import build_funnel

    assert side.config is not None
    run_id = _id_of(side, made)
    saved = saved_steps(own / "runs" / run_id, side.config.steps, made.contents)
    pipeline = start_run(side.config, sample.files, own, run_id=run_id, workers=workers, saved=saved)
    with pipeline.run.locked(), Pool(pipeline.run.folder, workers) as pool:
        for work in pipeline.passes("ingest"):
            for _ in pool.run(work):
                pass
        pipeline.close("ingest")
    documents = _warm_documents(own, sample)
    write_warm_documents(pipeline.shards, documents)
    cold = warm_steps([step.name for step in side.config.steps], saved, side.code.reads)
    if cold and any(shard.rows for shard in pipeline.shards):
        warm_here(side.config, cold, documents, own)
    drive(pipeline, workers=workers, progress=progress)
    write_json(pipeline.run.report / "funnel.json", build_funnel(pipeline))
    pipeline.run.update(state="done", error=None)


def _warm_documents(own: Path, sample: Sample) -> Path:
    return own / "samples" / f".warm-{sample.folder.name}.jsonl"


def _judge_there(side: Side, sample: Sample, own: Path, run_id: str, workers: int, lock: int) -> None:
    """Run the command line of the other code, which knows nothing of this module.

    Raises:
        ConfigError: it does not understand its config.
        RunError: it failed; the message ends with what it said last.
    """
    assert side.tree is not None
    logs = own / "runs" / run_id / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    config = logs / "config-as-given.yaml"
    config.write_text(side.text, encoding="utf-8")
    run = ["run", str(config), "--input", *sample.files, "--root", str(own), "--run", run_id]
    commands = [*_warm_command(side, sample, own, run_id, logs), [*run, "--workers", str(workers), "--quiet"]]
    sources = [Sources(folder, own / "sources.json") for folder in (HERE, side.tree)]
    log.info("%d modules share their compiled kernels with %s", share_kernels(sources[0], sources[1]), side.label)
    code, said = _run_there(side.tree, commands, logs / "other-code.log", lock)
    if code != 0:
        last = "\n".join(f"  {line}" for line in said.splitlines()[-LAST_LINES:])
        kind = ConfigError if code == ConfigError.exit_code else RunError
        raise kind(
            f"the code of {side.label} did not judge the sample (exit status {code}). It said last:\n{last}\n"
            f"All it said: {logs / 'other-code.log'}. Choose another base, or give --base a config."
        )


def _warm_command(side: Side, sample: Sample, own: Path, run_id: str, logs: Path) -> list[list[str]]:
    """The command that warms the other code, in the same process as the run that follows."""
    documents = _warm_documents(own, sample)
    settings = settings_of(side)
    saved = steps_with_scores(own / "runs" / run_id) | closed_steps(own / "runs" / run_id)
    names = step_names(settings)
    cold = warm_steps(names, saved, side.code.reads)
    if not cold or not documents.exists():
        return []
    few = logs / "config-of-few.yaml"
    entries = [entry for entry, name in zip(settings["steps"], names, strict=True) if name in cold]
    few.write_text(json.dumps({**settings, "steps": entries}), encoding="utf-8")
    judge = ["judge", str(few), "--input", str(documents), "--output", str(logs / "warm.jsonl")]
    return [[*judge, "--workers", "1", "--quiet"]]


def _run_there(tree: Path, commands: Sequence[Sequence[str]], log_file: Path, lock: int) -> tuple[int, str]:
    """Run commands of the code in `tree`; returns the exit status and what was said.

    Args:
        lock: of the run. The other process holds it too: were this one killed, nobody else begins before that one has ended.
    """
    with log_file.open("w+b") as said:
        done = subprocess.run(
            [sys.executable, "-P", "-c", _OTHER_CODE],
            input=json.dumps([str(tree), os.getpid(), commands]).encode(),
            cwd=tree,
            env=_environment(tree),
            stdout=said,
            stderr=subprocess.STDOUT,
            pass_fds=(lock,),
            check=False,
        )
        said.seek(0)
        return done.returncode, said.read().decode(errors="replace")


def _environment(tree: Path) -> Mapping[str, str]:
    """Of the other code: its own modules before all others, in its workers too."""
    from quality_models.safety_cache import cache_folder

    inherited = {name: value for name, value in os.environ.items() if not name.startswith("CORPUSMILL_")}
    own = {"PYTHONPATH": str(tree), "PYTHONSAFEPATH": "1", "PYTHONWARNINGS": "ignore"}
    # Models that were made ready once are named by all that decides them, so that versions may share them.
    return {**inherited, **own, "CORPUSMILL_CACHE": str(cache_folder())}
