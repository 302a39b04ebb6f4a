"""What a table of a change-impact sheet is: cells that the page and Markdown both can show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from curation.impact.counting.figure_types import OTHERS, Figures, Part
from curation.report.impact_numbers import amount, at_most, interval, percent
from curation.report.masking import mask
from curation.report.numbers import NBSP

__all__ = ["Cell", "Head", "Table", "group_name", "heads", "of_all", "part_cell"]

_NAME_CHARS = 100


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell: what it says, what is said smaller below, and a drawing that Markdown does without."""

    text: str
    small: str = ""
    css: str = ""
    picture: Markup | None = None
    badge: str = ""


@dataclass(frozen=True, slots=True)
class Head:
    """A column."""

    text: str
    number: bool = False
    drawn: bool = False
    """Holds drawings only."""


@dataclass(frozen=True)
class Table:
    """A table; `more` are rows that are folded away under `more_words`."""

    anchor: str
    title: str
    caption: str
    heads: Sequence[Head]
    rows: Sequence[Sequence[Cell]]
    more: Sequence[Sequence[Cell]] = ()
    more_words: str = ""
    n_quiet: int = 0
    """Of those at the end so many say that nothing moves."""
    note: str = ""
    inner: Sequence[Table] = ()
    """Tables that say the same in other measures, folded away."""


def heads(names: str) -> list[Head]:
    """Columns from `step | before # | ~`: numbers end in #, and ~ holds drawings."""
    found = [name.strip() for name in names.split("|")]
    return [Head(name.rstrip("#~ "), name.endswith("#"), name.endswith("~")) for name in found]


def part_cell(part: Part, figures: Figures, css: str = "", *, quiet: bool = False) -> Cell:
    """A number with its share and the interval of that.

    Args:
        quiet: nothing is said of a share that is nothing.
    """
    text = amount(part, weighted=figures.weighted)
    if part.share is None or (quiet and not part.count):
        return Cell(text, "", "n" if part.count else "n none")
    small = f"{percent(part.share.value)} ({interval(part.share)})" if part.count else at_most(part.share)
    if figures.weighted and part.count:
        small = f"{small}{NBSP}· {part.count:,} in the sample"
    return Cell(text, small, f"n {css if part.count else 'none'}")


def of_all(part: Part) -> str:
    """Its share of all, in words."""
    return "" if part.share is None else f"{percent(part.share.value)} of all"


def group_name(name: str) -> str:
    """A group's name, masked and cut: a source may be called as a person is."""
    return "all others" if name == OTHERS else (mask(name)[:_NAME_CHARS] or "-")
