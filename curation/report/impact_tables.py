"""The tables of a change-impact sheet about what moves: the same rows for the page and for Markdown, so that both say the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from curation.impact.counting.figure_types import MEASURES, Figures, FilterMoves, Group, Moves, Part, ReasonLine
from curation.report.impact_charts import Scale, difference, moves, scale_of
from curation.report.impact_numbers import amount, interval, percent, signed
from curation.report.impact_table import Cell, Table, group_name, heads, of_all, part_cell
from curation.report.numbers import noun

__all__ = ["filter_table", "group_tables", "reason_table", "totals_table"]

MAX_ROWS = 12
MAX_MORE = 88
"""Rows that are folded away; the rest is in sheet.json."""
MAX_REASONS = 500
_MOVES = "kept before # | leaves # | ~ | comes in # | kept now # | net #"
_OWN_ORDER = "lengths"
"""Groups whose order says something: none is folded away."""


def _folded(
    rows: Sequence[Any], quiet: Callable[[Any], bool], row: Callable[[Any], Sequence[Cell]], most: int = MAX_MORE
) -> tuple[list[Sequence[Cell]], list[Sequence[Cell]]]:
    """Rows that are shown, and rows that are folded away: what says nothing, and what is too much."""
    loud = [one for one in rows if not quiet(one)]
    rest = [*loud[MAX_ROWS:], *(one for one in rows if quiet(one))]
    return [row(one) for one in loud[:MAX_ROWS]], [row(one) for one in rest[:most]]


def _more_words(shown: int, quiet: int, rows: int, what: str, verb: str, most: int = MAX_MORE) -> str:
    """What the folded rows are called."""
    if shown + quiet == rows:
        return f"{what} {verb}" if quiet else ""
    left = rows - shown
    return f"{left:,} more" if left <= most else f"{most} of {left:,} more; sheet.json has all"


def _move_cells(found: Moves, scale: Scale, figures: Figures, of: str) -> list[Cell]:
    net = Cell("-", "", "n") if found.net is None else Cell(signed(found.net.value), interval(found.net), "n")
    before, after = (
        Cell(amount(one, weighted=figures.weighted), of_all(one), "n") for one in (found.before, found.after)
    )
    return [
        before,
        part_cell(found.leaves, figures, "dropped-text"),
        Cell("", "", "pic", moves(scale, found.leaves.share, found.comes_in.share, of)),
        part_cell(found.comes_in, figures, "kept-text"),
        after,
        net,
    ]


def totals_table(figures: Figures) -> Table:
    """Documents, characters and tokens of the whole sample."""
    found = [(measure, figures.totals.moves(measure)) for measure in MEASURES]
    scale = scale_of([one.leaves.share for _, one in found], [one.comes_in.share for _, one in found])
    rows = [[Cell(measure), *_move_cells(one, scale, figures, measure)] for measure, one in found]
    weighted = ", weighted as in the corpus that the sample was drawn from" if figures.weighted else ""
    caption = f"Shares of what the base keeps, with 95 % intervals{weighted}"
    return Table("totals", "Totals", caption, heads(f"| {_MOVES}"), rows)


def group_tables(figures: Figures) -> list[Table]:
    """By language, source, length and label."""
    kinds = (
        ("languages", "By language", "language", figures.languages),
        ("sources", "By source", "source", figures.sources),
        (_OWN_ORDER, "By length", "characters", figures.lengths),
        ("labels", "By label", "label", figures.labels),
    )
    found = []
    for anchor, title, head, groups in kinds:
        if groups:
            inner = [_group_table(figures, f"{anchor}-{one}", one, head, groups, one) for one in MEASURES[1:]]
            found.append(replace(_group_table(figures, anchor, title, head, groups, MEASURES[0]), inner=inner))
    return found


def _group_table(figures: Figures, anchor: str, title: str, head: str, groups: Sequence[Group], measure: str) -> Table:
    """Groups in one measure, those in which something moves in sight."""

    def quiet(group: Group) -> bool:
        return (
            not anchor.startswith(_OWN_ORDER)
            and not group.documents.leaves.count
            and not group.documents.comes_in.count
        )

    drawn = [group.moves(measure) for group in groups if not quiet(group)][:MAX_ROWS]
    scale = scale_of([one.leaves.share for one in drawn], [one.comes_in.share for one in drawn])

    def row(group: Group) -> Sequence[Cell]:
        name = group_name(group.name)
        beside = f"{group.sample:,} in the sample" if measure == MEASURES[0] else ""
        return [Cell(name, beside), *_move_cells(group.moves(measure), scale, figures, name)]

    rows, more = _folded(groups, quiet, row)
    n_quiet = sum(map(quiet, groups))
    words = _more_words(len(rows), n_quiet, len(groups), noun(n_quiet, head), "in which nothing moves")
    caption = f"{measure}, shares of what the base keeps"
    quiet_rows = len(more) - max(0, len(groups) - n_quiet - len(rows))
    note = "" if rows else "Nothing moves in any of them."
    return Table(
        anchor, title, caption, heads(f"{head} | {_MOVES}"), rows, more, words, n_quiet=max(0, quiet_rows), note=note
    )


# -- by filter and reason ----------------------------------------------------------------------


def filter_table(figures: Figures) -> Table:
    """What each step drops on both sides."""
    sides = [[getattr(one, side)[MEASURES[0]].share for one in figures.filters] for side in ("leaves", "comes_in")]
    scale = scale_of(*sides)
    columns = "step | drops before # | drops now # | newly dropped # | ~ | newly kept # | characters and tokens | between steps"
    caption = (
        "Newly dropped: kept by the base. Newly kept: this step dropped it on the base. Shares of what the base keeps. "
        "Between steps: documents that another step dropped, or now drops"
    )
    return Table(
        "filters", "By filter", caption, heads(columns), [_filter_row(one, scale, figures) for one in figures.filters]
    )


def _filter_row(one: FilterMoves, scale: Scale, figures: Figures) -> Sequence[Cell]:
    leaves, comes_in = (side[MEASURES[0]] for side in (one.leaves, one.comes_in))

    def drops(part: Part, there: bool) -> Cell:
        return Cell(amount(part, weighted=figures.weighted), of_all(part), "n") if there else Cell("-", "", "n none")

    return [
        Cell(
            one.name, badge="new" if not one.on_base else "gone" if not one.on_new else "changed" if one.changed else ""
        ),
        drops(one.drops_before, one.on_base),
        drops(one.drops_after, one.on_new),
        part_cell(leaves, figures, "dropped-text", quiet=True),
        Cell("", "", "pic", moves(scale, leaves.share, comes_in.share, one.name)),
        part_cell(comes_in, figures, "kept-text", quiet=True),
        Cell("", _other_measures(one), "remarks"),
        Cell("", _between(one), "remarks"),
    ]


def _other_measures(one: FilterMoves) -> str:
    """Characters and tokens that leave and come in by a step, with their shares."""
    lines = []
    for word, side in (("out", one.leaves), ("in", one.comes_in)):
        told = [
            f"{percent(part.share.value)} ({interval(part.share)}) of {measure}"
            for measure in MEASURES[1:]
            if (part := side[measure]).count and part.share is not None
        ]
        lines += [f"{word}: {', '.join(told)}"] if told else []
    return "; ".join(lines)


def _between(one: FilterMoves) -> str:
    taken = [f"{part.count:,} from {name}" for name, part in one.taken_from.items() if part.count]
    given = [f"{part.count:,} to {name}" for name, part in one.given_to.items() if part.count]
    return "; ".join([*taken, *given])


def reason_table(figures: Figures) -> Table:
    """The share of every reason before and after, those that moved most first."""
    ranked = sorted(figures.reasons, key=lambda one: -abs(one.difference.value) if one.difference is not None else 0.0)
    largest = max((abs(one.difference.value) for one in ranked if one.difference is not None), default=0.0)
    rows, more = _folded(ranked, _is_same, lambda one: _reason_row(one, largest, figures), MAX_REASONS)
    n_quiet = sum(map(_is_same, ranked))
    words = _more_words(len(rows), n_quiet, len(ranked), noun(n_quiet, "reason"), "without a change", MAX_REASONS)
    caption = (
        "Documents that each reason dropped and its share of all, with 95 % intervals; and how many break the rule, whatever "
        "other rules say, where a step counts that"
    )
    columns = heads("reason | before # | now # | difference # | ~ | breaks the rule #")
    note = "" if rows else "No reason drops another number."
    return Table("reasons", "Reasons", caption, columns, rows, more, words, note=note)


def _is_same(one: ReasonLine) -> bool:
    return one.before.count == one.after.count and one.state == "both" and one.hits_before == one.hits_after


def _reason_row(one: ReasonLine, largest: float, figures: Figures) -> Sequence[Cell]:
    moved = one.difference is not None and one.before.count != one.after.count
    change = (
        Cell(signed(one.difference.value), interval(one.difference), "n")
        if moved and one.difference
        else Cell("", "", "n")
    )
    return [
        Cell(one.reason, one.sentence, "reason", badge="" if one.state == "both" else one.state),
        part_cell(one.before, figures, quiet=True),
        part_cell(one.after, figures, quiet=True),
        change,
        Cell("", "", "pic", difference(largest, one.difference, one.reason) if moved else None),
        Cell(_hits(one), "", "n"),
    ]


def _hits(one: ReasonLine) -> str:
    if one.hits_before is None and one.hits_after is None:
        return ""
    before, after = ("-" if hits is None else f"{hits:,}" for hits in (one.hits_before, one.hits_after))
    return before if before == after else f"{before} → {after}"
