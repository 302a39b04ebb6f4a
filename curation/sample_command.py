"""`corpusmill sample`: its arguments and its answer. Imports what it needs when it is meant."""

from __future__ import annotations

import argparse
import logging
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from curation.command_parser import Commands, command
from curation.export_command import positive
from curation.terminal_columns import Cell, columns, print_lines

if TYPE_CHECKING:
    from rich.text import Text

    from curation.sampling.draw import DrawnSample

__all__ = ["add_sample", "answer_lines"]

log = logging.getLogger("corpusmill")

_SUMMARY = "draw documents of a finished run, of every language, source, length and outcome, for `corpusmill impact`"
_EXAMPLES = """
corpusmill sample runs-root/runs/web-20260520-142322-8c4a --output sample
corpusmill sample RUN --output sample --documents 5000 --seed 2     more documents, and others
corpusmill impact web --base main --sample sample                   what a change does to them"""
_SHOWN = 12
"""Languages that are printed at most."""


def add_sample(commands: Commands) -> None:
    """Add the command."""
    parser = command(commands, "sample", _SUMMARY, _EXAMPLES)
    parser.add_argument("run", metavar="RUN", help="a run's folder, or its id under --root")
    parser.add_argument("--root", type=Path, metavar="DIR", help="folder of all runs, if RUN is an id")
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        required=True,
        metavar="DIR",
        help="folder to write; an earlier sample in it is replaced",
    )
    parser.add_argument(
        "--documents", type=positive, default=2000, metavar="N", help="how many to draw (default: 2000)"
    )
    parser.add_argument(
        "--seed", type=int, default=0, metavar="N", help="another number draws other documents (default: 0)"
    )
    parser.set_defaults(function=_sample)


def _sample(arguments: argparse.Namespace) -> int:
    from curation.environment import environment
    from curation.pipeline import Pipeline
    from curation.run import Run
    from curation.sampling.draw import draw_sample

    pipeline = Pipeline(Run.find(arguments.run, arguments.root or environment().root))
    made = draw_sample(pipeline, arguments.output, arguments.documents, arguments.seed)
    print_lines(lambda width: answer_lines(made), sys.stdout)
    log.warning("the sample holds text of the crawl, with all personal data in it: keep it where you keep the crawl")
    print(made.folder)
    return 0


def answer_lines(made: DrawnSample) -> Iterator[Text]:
    """What was drawn, by outcome and language: documents of the sample, and of the run."""
    rows: list[list[Cell]] = []
    for part in ("outcome", "language"):
        drawn: Counter[str] = Counter()
        there: Counter[str] = Counter()
        for stratum, count, population in made.strata:
            drawn[getattr(stratum, part)] += count
            there[getattr(stratum, part)] += population
        ranked = sorted(drawn, key=lambda name: (-there[name], name))
        rows.append([(part, "bold"), ("drawn", "bold"), ("of", "bold")])
        rows += [[(name, ""), (f"{drawn[name]:,}", ""), (f"{there[name]:,}", "")] for name in ranked[:_SHOWN]]
        if rest := ranked[_SHOWN:]:
            cells = (sum(counts[name] for name in rest) for counts in (drawn, there))
            rows.append([(f"{len(rest)} more", "dim"), *((f"{cell:,}", "dim") for cell in cells)])
    documents = made.documents - made.companions
    rows.append(
        [(f"in {len(made.strata)} strata", "bold"), (f"{documents:,}", "bold"), (f"{made.population:,}", "bold")]
    )
    yield from columns(rows, left=1)
    if made.companions:
        yield from columns(
            [[(f"and {made.companions:,} kept documents of which drawn ones are copies", "dim")]], left=1
        )
