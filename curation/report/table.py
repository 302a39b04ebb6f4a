"""The funnel as a table on a terminal; as aligned plain text wherever else the output goes."""

from __future__ import annotations

import sys
from typing import Any, TextIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from curation.funnel import funnel_rows
from curation.report.numbers import NBSP, share

__all__ = ["plain_funnel", "print_funnel"]

_HEAD = ("", "documents", "taken away", "", "why")


def print_funnel(funnel: dict[str, Any], console: Console | None = None, *, file: TextIO | None = None) -> None:
    """Print the funnel of a run.

    Args:
        console: a rich console to draw on, whatever it is.
        file: where to print without a console (default: standard output); a table if it is a terminal, else plain text.
    """
    if console is None:
        stream = file if file is not None else sys.stdout
        if not stream.isatty():
            print(plain_funnel(funnel), file=stream)
            return
        console = Console(file=stream, highlight=False)
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    for position, name in enumerate(_HEAD):
        is_number = position in (1, 2, 3)
        table.add_column(name, justify="right" if is_number else "left", no_wrap=position < 4, overflow="fold")
    for what, after, taken, part, why in _cells(funnel):
        table.add_row(Text(what, "bold"), after, Text(taken, "red"), Text(part, "dim"), Text(why, "dim"))
    console.print(table)


def plain_funnel(funnel: dict[str, Any]) -> str:
    """The funnel as lines of text in columns, without colour or control characters."""
    rows = [_HEAD, *_cells(funnel)]
    widths = [max(len(row[i]) for row in rows) for i in range(4)]
    return "\n".join(
        f"{what:<{widths[0]}}  {after:>{widths[1]}}  {taken:>{widths[2]}}  {part:>{widths[3]}}  {why}".rstrip()
        for what, after, taken, part, why in rows
    )


def _cells(funnel: dict[str, Any]) -> list[tuple[str, str, str, str, str]]:
    """Texts of each row: what, documents after it, taken away, share of what came in, why."""
    cells = []
    for what, after, taken, why in funnel_rows(funnel):
        part = share(taken, after + taken).replace(NBSP, " ") if taken else ""
        cells.append((_one_line(what), f"{after:,}", f"{taken:,}" if taken else "", part, _one_line(why)))
    return cells


def _one_line(text: str) -> str:
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
