"""`corpusmill impact`: what a change does to documents, on a terminal, in a sheet, and as an exit code for CI.

The command judges the sample twice, which costs what the chain costs on it, or a second or two where earlier runs have
judged alike. On a terminal the summary is coloured; wherever else the output goes it is plain text in columns. Nothing in
it can command the terminal.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TextIO

from curation.command_parser import Commands, command
from curation.export_command import positive
from curation.terminal_columns import print_lines

__all__ = ["add_impact"]

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
        CorpusmillError: see `curation.impact_tasks.answer`.
    """
    from curation.environment import environment
    from curation.impact_summary import summary_lines
    from curation.impact_tasks import Question, answer
    from curation.progress import ProgressDisplay

    question = Question(
        arguments.config, arguments.base, tuple(arguments.set), tuple(arguments.sample), arguments.corpus
    )
    root = arguments.root or environment().root
    with ProgressDisplay(quiet=arguments.quiet) as progress:
        shown = None if arguments.quiet else progress
        found = answer(question, root, arguments.output, workers=arguments.workers, progress=shown)
    stream = file if file is not None else sys.stdout
    if arguments.json:
        print(found.data.read_text(encoding="utf-8").rstrip("\n"), file=stream)
    else:
        print_lines(lambda width: summary_lines(found), stream)
    return 1 if found.broken else 0
