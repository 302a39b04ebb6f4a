"""`corpusmill impact`: what a change does to documents, on a terminal, in a sheet, and as an exit code for CI.

The command judges the sample twice, which costs what the chain costs on it, or a second or two where earlier runs have
judged alike. On a terminal the summary is coloured; wherever else the output goes it is plain text in columns. Nothing in
it can command the terminal.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from curation.command_parser import Commands, command
from curation.errors import ConfigError, CorpusmillError, RunError
from curation.export_command import positive
from curation.terminal_columns import print_lines

__all__ = ["add_impact"]

NOT_JUDGED = 3
"""Exit code where there is no sheet though the command was right: 1 says that there is one, and that a bound is broken."""

_SUMMARY = (
    "judge a sample before and after a change: which documents change sides, why, and whether that is within bounds"
)
_EXAMPLES = """
corpusmill impact --base main                                   what the working tree does otherwise than main, by `web`
corpusmill impact mine.yaml --base HEAD~1 --sample sample/      the same by a config and on a sample of your own
corpusmill impact web --base web --set length.min_units=30      a setting; `corpusmill what-if` asks that of a finished run
corpusmill impact mine.yaml --base web --corpus 3Bdocuments     two configs, and what it would mean on a whole corpus"""


def add_impact(commands: Commands) -> None:
    """The command's arguments."""
    parser = command(commands, "impact", _SUMMARY, _EXAMPLES)
    parser.add_argument(
        "config",
        nargs="?",
        default="web",
        metavar="CONFIG",
        help="the new side: a YAML file, or a shipped config (default: web)",
    )
    parser.add_argument(
        "--base",
        required=True,
        metavar="REV_OR_CONFIG",
        help="what to compare with: a git revision, a YAML file, or a shipped config",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="change a setting of the new side: length.min_units=30",
    )
    parser.add_argument(
        "--sample",
        nargs="+",
        default=[],
        metavar="PATH",
        help="documents that both sides judge, such as `corpusmill sample` draws (default: the sample that ships)",
    )
    parser.add_argument(
        "--corpus", metavar="SIZE", help="say what it would mean on a corpus of this size: 3Bdocuments, 2.5Ttokens"
    )
    parser.add_argument(
        "--output", type=Path, metavar="DIR", help="folder of the sheet (default: one in impact/sheets of the root)"
    )
    parser.add_argument(
        "--workers", type=positive, default=os.cpu_count() or 1, metavar="N", help="processes (default: one a core)"
    )
    parser.add_argument(
        "--root",
        type=Path,
        metavar="DIR",
        help="where both sides are judged (default: CORPUSMILL_ROOT, or ./runs-root)",
    )
    parser.add_argument("--json", action="store_true", help="print the whole sheet as JSON instead of a summary")
    parser.add_argument("--quiet", action="store_true", help="no progress")
    parser.set_defaults(function=_impact)


def _impact(arguments: argparse.Namespace, file: TextIO | None = None) -> int:
    """Ask, answer, print; returns 1 if the change breaks a bound, else 0.

    Raises:
        CorpusmillError: see `curation.impact_tasks.answer`; its exit code is 2 for wrong use, else 3.
    """
    from curation.environment import environment
    from curation.impact_summary import summary_lines
    from curation.impact_tasks import Question, answer
    from curation.progress import ProgressDisplay

    question = Question(
        arguments.config, arguments.base, tuple(arguments.set), tuple(arguments.sample), arguments.corpus
    )
    root = arguments.root or environment().root
    _refuse_foreign(arguments.output)
    if arguments.quiet:
        logging.getLogger("corpusmill").setLevel(logging.WARNING)
    with _not_judged(), ProgressDisplay(quiet=arguments.quiet) as progress:
        shown = None if arguments.quiet else progress
        found = answer(question, root, arguments.output, workers=arguments.workers, progress=shown)
    stream = file if file is not None else sys.stdout
    if arguments.json:
        print(found.data.read_text(encoding="utf-8").rstrip("\n"), file=stream)
    else:
        print_lines(lambda width: summary_lines(found), stream)
    return 1 if found.broken else 0


def _refuse_foreign(output: Path | None) -> None:
    """Four files among somebody's own would be lost there, or stay for ever."""
    if output is not None and output.is_dir() and any(output.iterdir()) and not (output / "sheet.json").exists():
        raise ConfigError(
            f"{output} holds other files, among which a sheet would be lost. Give --output a folder of its own."
        )


@contextlib.contextmanager
def _not_judged() -> Iterator[None]:
    """Make an exit code of its own of whatever keeps the sheet from being written, and a message of what the system says."""
    try:
        yield
    except SyntaxError as error:
        if error.filename is None:
            raise
        raise _unjudged(f"{error.filename}, line {error.lineno}, is no Python: {error.msg}. Mend it first.") from error
    except OSError as error:
        if error.filename is None:
            raise
        raise _unjudged(
            f"{error.filename} cannot be used: {error.strerror}. Check --root, --output and --sample: folders must be yours to write."
        ) from error
    except CorpusmillError as error:
        if error.exit_code == 1:
            error.exit_code = NOT_JUDGED
        raise


def _unjudged(message: str) -> RunError:
    error = RunError(message)
    error.exit_code = NOT_JUDGED
    return error
