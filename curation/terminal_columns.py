"""Coloured lines and aligned columns on a terminal, plain text wherever else the output goes. Nothing in them commands the terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TextIO

from curation.terminal import printable

if TYPE_CHECKING:
    from rich.text import Text

__all__ = ["Cell", "columns", "line_of", "print_lines"]

Cell = tuple[str, str]
"""Text and style."""


def print_lines(lines: Callable[[int | None], Iterable[Text]], stream: TextIO) -> None:
    """Print lines, in colour if the stream is a terminal.

    Args:
        lines: given the columns of the terminal (None: it is none) all lines; one that must not be broken says so (`no_wrap`).
    """
    from rich.console import Console

    console = Console(file=stream, highlight=False) if stream.isatty() else None
    for line in lines(console.width if console is not None else None):
        if console is None:
            print(line.plain.rstrip(), file=stream)
        else:
            console.print(line, soft_wrap=line.no_wrap is True, overflow="fold")


def line_of(*cells: Cell, no_wrap: bool = False) -> Text:
    """Cells one after the other, each in its style, whatever is not printable in them escaped."""
    from rich.text import Text

    line = Text(no_wrap=no_wrap or None)
    for text, style in cells:
        line.append(printable(text), style)
    return line


def columns(rows: Sequence[Sequence[Cell]], *, left: int, last_left: bool = False) -> Iterator[Text]:
    """Lines of aligned cells: the first `left` columns to the left, the others to the right, as wide as they are drawn."""
    from rich.cells import cell_len

    cells = [[(printable(text), style) for text, style in row] for row in rows]
    widths = [max(cell_len(text) for text, _ in column) for column in zip(*cells, strict=True)] if cells else []
    for row in cells:
        line = line_of(no_wrap=True)
        for i, ((text, style), width) in enumerate(zip(row, widths, strict=True)):
            blanks = " " * (width - cell_len(text))
            to_left = i < left or (last_left and i == len(row) - 1)
            line.append("  " if i else "")
            line.append("" if to_left else blanks)
            line.append(text, style)
            line.append(blanks if to_left and i < len(row) - 1 else "")
        yield line
