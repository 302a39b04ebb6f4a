"""`corpusmill run` and `corpusmill judge`: a config on inputs, to its end or step by step."""

from __future__ import annotations

import argparse
import logging
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from curation.command_parser import Commands, command
from curation.errors import ConfigError
from curation.export_command import positive
from curation.terminal import PlainFormatter

if TYPE_CHECKING:
    from curation.pipeline import Pipeline

__all__ = ["add_judge", "add_run"]

log = logging.getLogger("corpusmill")


def _add_job(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("config", metavar="CONFIG", help="a YAML file, or a shipped config: demo, web ...")
    parser.add_argument("--input", nargs="+", required=True, metavar="PATH", help="files, folders, globs or URLs")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="change a setting: length.min_units=30"
    )
    parser.add_argument(
        "--workers", type=positive, default=os.cpu_count() or 1, metavar="N", help="processes (default: one a core)"
    )
    parser.add_argument("--quiet", action="store_true", help="no progress")


def add_run(commands: Commands) -> None:
    """The arguments of `run`."""
    parser = command(
        commands,
        "run",
        "run the whole pipeline; the last line printed is the run's folder",
        """
corpusmill run web --input crawl/ --root out
corpusmill run web --input 'crawl/*.jsonl.zst' --root out --workers 8 --set length.min_units=30
corpusmill run web --input crawl/ --root out                  the same again: goes on, or has nothing to do
corpusmill run web --input crawl/ --root out --run RUN_ID --set length.min_units=20     decides anew in an old run""",
    )
    _add_job(parser)
    parser.add_argument(
        "--root", type=Path, metavar="DIR", help="folder of all runs (default: CORPUSMILL_ROOT, or ./runs-root)"
    )
    parser.add_argument("--run", metavar="RUN_ID", help="use or make this very run")
    parser.add_argument("--new", action="store_true", help="a new run even if the same job has been done")
    parser.set_defaults(function=_run)


def add_judge(commands: Commands) -> None:
    """The arguments of `judge`."""
    parser = command(
        commands,
        "judge",
        "every step on every document, as if each stood alone: one JSON line a document",
        "corpusmill judge web --input sample.jsonl --output judged.jsonl",
    )
    _add_job(parser)
    parser.add_argument("--output", type=Path, required=True, metavar="OUT.jsonl")
    parser.set_defaults(function=_judge)


def _run(arguments: argparse.Namespace) -> int:
    from curation.config import load_config
    from curation.environment import environment
    from curation.launch import drive, finish_run, start_run
    from curation.progress import ProgressDisplay
    from curation.report.table import print_funnel

    if arguments.run and arguments.new:
        raise ConfigError("--run and --new exclude each other: --run takes up a run, --new begins one.")
    config = load_config(arguments.config, arguments.set)
    pipeline = start_run(
        config,
        arguments.input,
        arguments.root or environment().root,
        run_id=arguments.run,
        new=arguments.new,
        workers=arguments.workers,
    )
    _log_to(pipeline)
    log.info("run %s", pipeline.run.run_id)
    with ProgressDisplay(quiet=arguments.quiet) as progress:
        drive(pipeline, workers=arguments.workers, progress=progress)
    print_funnel(finish_run(pipeline))
    print(pipeline.run.folder)
    return 0


def _log_to(pipeline: Pipeline) -> None:
    """Lines of this process go to the run's own log too, each with the run id."""
    folder = pipeline.run.folder / "logs"
    folder.mkdir(exist_ok=True)
    handler = logging.FileHandler(folder / "run.log", encoding="utf-8")
    handler.setFormatter(PlainFormatter(f"%(asctime)s {pipeline.run.run_id} %(levelname)s %(message)s"))
    log.addHandler(handler)


_JUDGE_ALL = ("ingest.max_quarantine_share=1", "ingest.max_damaged_share=1", "pack=")


def _judge(arguments: argparse.Namespace) -> int:
    from curation.config import load_config
    from curation.judgements import write_judgements
    from curation.launch import drive, start_run
    from curation.progress import ProgressDisplay

    # Judging looks at steps only, and bad lines are reported, not a reason to stop.
    config = load_config(arguments.config, [*arguments.set, *_JUDGE_ALL])
    _refuse_input_as_output(arguments)
    with tempfile.TemporaryDirectory(prefix="corpusmill-judge-") as root:
        pipeline = start_run(config, arguments.input, Path(root), workers=arguments.workers, judge_all=True)
        with ProgressDisplay(quiet=arguments.quiet) as progress:
            drive(pipeline, workers=arguments.workers, progress=progress)
        count = write_judgements(pipeline, arguments.output)
        quarantined = pipeline.run.ingested()["quarantined"]
    log.info("%d documents judged, written to %s", count, arguments.output)
    if quarantined:
        detail = ", ".join(f"{reason} {n}" for reason, n in sorted(quarantined.items()))
        log.warning("%d lines could not be read and are not judged: %s", sum(quarantined.values()), detail)
    return 0


def _refuse_input_as_output(arguments: argparse.Namespace) -> None:
    output = arguments.output.resolve()
    if any("://" not in given and Path(given).resolve() == output for given in arguments.input):
        raise ConfigError(f"--output {arguments.output} is an input, and would be replaced. Give another name.")
