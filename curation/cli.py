"""The command line: the same functions that the Airflow tasks call.

Exit codes: 0 done, 1 failed, 2 wrong use or configuration. A user's mistake never ends in a traceback, and what the crawl
says never reaches the terminal as it is: it could move the cursor, set the title, or turn the line around. A fault of the
program ends in one message too; its traceback goes to the run's log, or with CORPUSMILL_DEBUG=1 to the terminal.
"""

from __future__ import annotations

import argparse
import errno
import logging
import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from curation import what_if_command
from curation.blacklist_command import add_blacklist
from curation.calibrate_command import add_calibrate
from curation.cat_command import add_cat
from curation.command_parser import Commands, Parser, command
from curation.errors import ConfigError, CorpusmillError
from curation.export_command import add_export_arguments, export
from curation.impact_command import add_impact
from curation.job_command import add_judge, add_run
from curation.mask_command import add_mask
from curation.new_filter_command import add_new_filter
from curation.parity_command import add_parity
from curation.progress_command import add_progress
from curation.rescore_command import add_rescore
from curation.sample_command import add_sample
from curation.terminal import PlainFormatter, printable_lines
from curation.train_ngram_command import add_train_ngram
from curation.train_safety_command import add_train_safety

if TYPE_CHECKING:
    from curation.pipeline import Pipeline

__all__ = ["build_parser", "main"]

log = logging.getLogger("corpusmill")


class _TerminalFormatter(PlainFormatter):
    """What a reader must see stands out by its first word."""

    def format(self, record: logging.LogRecord) -> str:
        return ("warning: " if record.levelno >= logging.WARNING else "") + super().format(record)


def build_parser() -> argparse.ArgumentParser:
    """The parser with all commands."""
    about = "Raw crawl in, one packed Arrow file of token ids out; every dropped line accounted for."
    parser = Parser(prog="corpusmill", description=about)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=Parser)
    for add in (
        add_run,
        add_judge,
        _add_explain,
        _add_what_if,
        add_impact,
        _add_export,
        _add_report,
        _add_verify,
        _add_configs,
    ):
        add(commands)
    for add in (
        add_parity,
        add_cat,
        add_mask,
        add_sample,
        add_progress,
        add_rescore,
        add_blacklist,
        add_calibrate,
        add_train_ngram,
        add_train_safety,
        add_new_filter,
    ):
        add(commands)
    return parser


def _add_explain(commands: Commands) -> None:
    parser = command(
        commands,
        "explain",
        "one document's path through a run: scores, reasons, the copy that was kept",
        "corpusmill explain out/runs/web-20260520-142322-8c4a zh-000123\ncorpusmill explain RUN part-3.jsonl:1042",
    )
    _add_run_argument(parser)
    parser.add_argument("id", metavar="ID", help="the document's id, doc_id, text_id or URL, or FILE:LINE")
    parser.set_defaults(function=_explain)


def _add_what_if(commands: Commands) -> None:
    parser = command(commands, "what-if", what_if_command.SUMMARY, what_if_command.EXAMPLES)
    _add_run_argument(parser)
    what_if_command.add_what_if_arguments(parser)
    parser.set_defaults(function=lambda arguments: what_if_command.print_what_if(_open(arguments), arguments))


def _add_export(commands: Commands) -> None:
    parser = command(
        commands,
        "export",
        "write the kept documents of a run, those that were set aside, or signatures",
        """
corpusmill export out/runs/web-20260520-142322-8c4a --output kept.jsonl.zst
corpusmill export RUN -o 'by-language/{language}.parquet'       a file for each language, in a folder of their own
corpusmill export RUN --route mixed -o mixed.jsonl.zst          what a filter has set aside for `mixed`
corpusmill export RUN --signatures kept.index                   for `near.against` of later runs, without the texts""",
    )
    _add_run_argument(parser)
    add_export_arguments(parser)
    parser.set_defaults(function=_export)


def _add_report(commands: Commands) -> None:
    summary = "build a run's report anew, also of one that failed, and print the funnel and the report's path"
    parser = command(commands, "report", summary, "corpusmill report RUN")
    _add_run_argument(parser)
    parser.set_defaults(function=_report)


def _add_verify(commands: Commands) -> None:
    summary = "check every checksum of a run, or of a token file alone"
    parser = command(commands, "verify", summary, "corpusmill verify RUN\ncorpusmill verify RUN/pack/tokens.arrow")
    parser.add_argument("file", type=Path, metavar="FILE", help="a token file, or a run's folder")
    parser.set_defaults(function=_verify)


def _add_configs(commands: Commands) -> None:
    summary = "list the configs that ship, or print one, to be saved and changed"
    parser = command(commands, "configs", summary, "corpusmill configs\ncorpusmill configs web > mine.yaml")
    parser.add_argument("name", nargs="?", metavar="NAME", help="a shipped config")
    parser.set_defaults(function=_configs)


def _add_run_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", help="a run's folder, or its id under --root")
    parser.add_argument("--root", type=Path, metavar="DIR", help="folder of all runs, if RUN is an id")


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit code."""
    arguments = build_parser().parse_args(argv)
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_TerminalFormatter("%(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    function: Callable[[argparse.Namespace], int] = arguments.function
    # What stops services sends SIGTERM: end as on Ctrl-C, with the state written down and the workers gone.
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return function(arguments)
    except CorpusmillError as error:
        _say(str(error))
        return error.exit_code
    except KeyboardInterrupt:
        _say("stopped. The same command again goes on where it stopped, if it has begun anything.")
        return 130
    except BrokenPipeError:
        # The reader of our output (head, less) went away: not an error.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        from curation.environment import environment

        if environment().debug:
            raise
        _say(_of_the_system(error) if _is_of_the_system(error) else _fault(error))
        return 1
    finally:
        # Of whoever called this inside of a program: its children inherit it. None: it was set outside of Python.
        signal.signal(signal.SIGTERM, before or signal.SIG_DFL)


def _say(message: str) -> None:
    """One message on stderr; what is not printable in it is escaped, lines stay lines."""
    print(f"corpusmill: {printable_lines(message)}", file=sys.stderr)


def _is_of_the_system(error: Exception) -> bool:
    """A file or folder that the user named is of the wrong kind, missing, or not theirs."""
    kinds = (FileExistsError, FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError)
    too_long = isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG
    return (isinstance(error, kinds) or too_long) and isinstance(error, OSError) and error.filename is not None


def _of_the_system(error: Exception) -> str:
    assert isinstance(error, OSError)
    _log_traceback(error)
    return (
        f"{error.filename} cannot be used: {error.strerror}. Check the paths that were given: a folder must not lie below "
        "a file, and must be yours to read or write."
    )


def _fault(error: Exception) -> str:
    """What to say of an error that nobody foresaw."""
    notes = "".join(f"\n  {note}" for note in getattr(error, "__notes__", []))
    where = _log_traceback(error)
    seen = f"with the traceback in {where}" if where else "with the traceback: run it again with CORPUSMILL_DEBUG=1"
    return f"{type(error).__name__}: {error}{notes}\nThis is a fault of corpusmill; please report it {seen}."


def _log_traceback(error: Exception) -> Path | None:
    """Write the traceback to the run's log; returns the log, None if there is none."""
    files = [handler for handler in log.handlers if isinstance(handler, logging.FileHandler)]
    for handler in files:
        record = log.makeRecord(
            log.name, logging.ERROR, __file__, 0, "failed", (), (type(error), error, error.__traceback__)
        )
        handler.handle(record)
    return Path(files[-1].baseFilename) if files else None


def _open(arguments: argparse.Namespace) -> Pipeline:
    from curation.environment import environment
    from curation.pipeline import Pipeline
    from curation.run import Run

    return Pipeline(Run.find(arguments.run, arguments.root or environment().root))


def _explain(arguments: argparse.Namespace) -> int:
    from curation.explain import explain, explanation_lines

    for explanation in explain(_open(arguments), arguments.id):
        print("\n".join(explanation_lines(explanation)))
    return 0


def _export(arguments: argparse.Namespace) -> int:
    for line in export(_open(arguments), arguments):
        print(line)
    return 0


def _report(arguments: argparse.Namespace) -> int:
    from curation.launch import finish_run
    from curation.report.build import write_report
    from curation.report.table import print_funnel

    pipeline = _open(arguments)
    if pipeline.run.info["state"] == "done":
        print_funnel(finish_run(pipeline))
    else:
        state = pipeline.run.info["state"]
        log.warning("run %s is not done (%s): the report shows how far it came", pipeline.run.run_id, state)
    write_report(pipeline.run.folder)
    print(pipeline.run.report / "report.html")
    return 0


def _verify(arguments: argparse.Namespace) -> int:
    from curation.check import verify_run
    from tokenization.reader import verify

    if (arguments.file / "run.json").is_file():
        lines, whole = verify_run(arguments.file)
        print("\n".join(lines))
        return 0 if whole else 1
    if not arguments.file.is_file():
        raise ConfigError(f"no token file and no run at {arguments.file}. Give a token file, or the folder of a run.")
    report = verify(arguments.file)
    print(report)
    return 0 if report.ok else 1


def _configs(arguments: argparse.Namespace) -> int:
    from curation.config import SHIPPED, shipped_config

    if arguments.name:
        print(shipped_config(arguments.name).read_text(encoding="utf-8"), end="")
        return 0
    for path in sorted(SHIPPED.glob("*.yaml")):
        print(f"{path.stem:<10}  {path.read_text(encoding='utf-8').splitlines()[0].lstrip('# ')}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
