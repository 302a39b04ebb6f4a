"""What `corpusmill impact` prints: the change in short. The sheet has all of it, with documents.

A count is of the sample; a share beside it is of the corpus that the sample was drawn from, where it was drawn from one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from curation.terminal_columns import Cell, columns, line_of

if TYPE_CHECKING:
    from rich.text import Text

    from curation.impact.counting.figure_types import Cost, Estimate, Figures, Moves, Part
    from curation.impact.facts import Comparison
    from curation.impact_tasks import Answer

__all__ = ["summary_lines"]

_MAX_ROWS = 15
"""Of each table."""
_STATES = {"new": "new", "gone": "gone", "switched on": "switched on", "switched off": "switched off"}
_NOTHING: Cell = ("", "")


def summary_lines(answer: Answer) -> Iterator[Text]:
    """The change, line by line; the last one is the path of the sheet."""
    figures = answer.figures
    for part in (
        _question(answer.comparison),
        _totals(figures),
        _filters(figures),
        _languages(figures),
        _reasons(figures),
        _rules(figures),
        _costs(figures),
        _corpus(figures),
        _notes(answer.comparison),
        _loosened(answer),
        _bounds(answer),
    ):
        lines = list(part)
        yield from lines
        if lines:
            yield line_of()
    yield line_of((str(answer.page), "bold"), no_wrap=True)


def _question(comparison: Comparison) -> Iterator[Text]:
    sample = comparison.sample
    about = f"{sample.documents:,} documents"
    if sample.population is not None:
        about += f", drawn from {sample.population:,}: shares are of these"
    if sample.quarantined:
        about += f"; {sample.quarantined:,} could not be read"
    rows: list[list[Cell]] = [
        [("base", "dim"), (comparison.base.label, "")],
        [("new", "dim"), (comparison.new.label, "bold")],
        [("sample", "dim"), (f"{sample.name}: {about}", "")],
    ]
    yield from columns(rows, left=2)


def _totals(figures: Figures) -> Iterator[Text]:
    total = figures.totals
    moves = total.documents

    def row(words: str, name: str, style: str, note: str) -> list[Cell]:
        part: Part = getattr(moves, name)
        beside = [_share(getattr(total.moves(measure), name).share) for measure in ("characters", "tokens")]
        cells = _part(part, style if part.count else "")
        return [(words, "" if words[0] == " " else "bold"), *cells, *((cell, "dim") for cell in beside), (note, "dim")]

    rows = [
        [(name, "dim") for name in ("", "documents", "", "characters", "tokens", "")],
        row("kept before", "before", "green", f"of {total.sample:,}"),
        row("  leave", "leaves", "red", f"of those {_interval(moves.leaves.share)}"),
        row("  come in", "comes_in", "green", f"of those {_interval(moves.comes_in.share)}"),
        row("kept after", "after", "green", ""),
    ]
    if total.changes_reason.count:
        cells = _part(total.changes_reason, "yellow")
        rows.append([("  another reason", ""), *cells, _NOTHING, _NOTHING, ("of all", "dim")])
    yield from columns(rows, left=1, last_left=True)
    if not (moves.leaves.count or moves.comes_in.count):
        yield line_of(("no document changes sides", "bold"))


def _part(part: Part, style: str) -> list[Cell]:
    return [(f"{part.count:,}", style), (_share(part.share), "dim")]


def _filters(figures: Figures) -> Iterator[Text]:
    rows: list[list[Cell]] = [[(name, "dim") for name in ("step", "", "drops before", "after", "leave", "come in")]]
    for one in figures.filters:
        leaves, comes_in = one.leaves["documents"].count, one.comes_in["documents"].count
        if not (one.changed or leaves or comes_in or one.drops_before.count != one.drops_after.count):
            continue
        state = "changed" if one.changed else ""
        state = "new" if not one.on_base else "gone" if not one.on_new else state
        counts = (one.drops_before.count, one.drops_after.count, leaves, comes_in)
        styles = ("", "", "red", "green")
        rows.append(
            [
                (one.name, "bold"),
                (state, "dim"),
                *((f"{n:,}" if n else "", s) for n, s in zip(counts, styles, strict=True)),
            ]
        )
    if len(rows) > 1:
        yield from columns(rows, left=2)


def _languages(figures: Figures) -> Iterator[Text]:
    moving = [one for one in figures.languages if _moves(one.documents)]
    if not moving:
        return
    head = ("language", "kept before", "leave", "come in", "kept after", "moved", "95 %")
    rows: list[list[Cell]] = [[(name, "dim") for name in head]]
    for one in moving[:_MAX_ROWS]:
        moves = one.documents
        counts = (moves.before.count, moves.leaves.count, moves.comes_in.count, moves.after.count)
        styles = ("", "red", "green", "")
        cells = [(f"{n:,}" if n else "", s) for n, s in zip(counts, styles, strict=True)]
        rows.append([(one.name, "bold"), *cells, (_share(moves.moved), ""), (_interval(moves.moved), "dim")])
    yield from columns(rows, left=1)
    yield from _left_out(len(moving) - _MAX_ROWS, "languages that change")


def _moves(moves: Moves) -> int:
    return moves.leaves.count + moves.comes_in.count


def _reasons(figures: Figures) -> Iterator[Text]:
    changed = [one for one in figures.reasons if one.before.count != one.after.count or one.state in ("new", "gone")]
    if not changed:
        return
    changed.sort(key=lambda one: (-abs(one.after.count - one.before.count), one.reason))
    rows: list[list[Cell]] = [[(name, "dim") for name in ("reason", "", "before", "", "after", "")]]
    for one in changed[:_MAX_ROWS]:
        state = _STATES.get(one.state, "")
        rows.append([(one.reason, "bold"), (state, "dim"), *_part(one.before, ""), *_part(one.after, "")])
    yield from columns(rows, left=2)
    yield from _left_out(len(changed) - _MAX_ROWS, "reasons that change")


def _rules(figures: Figures) -> Iterator[Text]:
    rules = figures.rules
    for note in rules.notes[:_MAX_ROWS]:
        yield line_of((f"{note.kind}: ", "yellow"), (note.text, ""))
    yield from _left_out(len(rules.notes) - _MAX_ROWS, "rules like these")
    if rules.silent:
        some = ", ".join(rules.silent[:4]) + (" ..." if len(rules.silent) > 4 else "")
        yield line_of(
            (
                f"silent: {len(rules.silent):,} rules fire on neither side, the sample says nothing of them: {some}",
                "dim",
            )
        )


def _costs(figures: Figures) -> Iterator[Text]:
    """Of steps that changed and were measured on the new side."""
    changed = {one.name for one in figures.filters if one.changed}
    rows: list[list[Cell]] = [[(name, "dim") for name in ("ms a document", "before", "after", "times")]]
    for one in figures.costs:
        if one.name in changed and one.after is not None and one.after.ms_per_document is not None:
            times = "" if one.times is None else f"{one.times:.3g}"
            rows.append([(one.name, "bold"), (_cost(one.before), ""), (_cost(one.after), ""), (times, "")])
    if len(rows) > 1:
        yield from columns(rows, left=1)


def _cost(cost: Cost | None) -> str:
    if cost is None or cost.ms_per_document is None:
        return "saved scores" if cost is not None and cost.from_saved_scores else ""
    return f"{cost.ms_per_document:.3g}"


def _corpus(figures: Figures) -> Iterator[Text]:
    told = figures.extrapolation
    if told is None:
        return
    scaled = told.scaled[told.corpus.measure]
    whose = "drawn from" if told.drawn else "asked for"
    yield line_of(
        (f"of the corpus that was {whose}, {_big(told.corpus.size)} {told.corpus.measure} kept before: ", "dim"),
        (f"{_range(scaled.leaves)} leave", "red" if scaled.leaves.value else ""),
        (", ", ""),
        (f"{_range(scaled.comes_in)} come in", "green" if scaled.comes_in.value else ""),
    )


def _notes(comparison: Comparison) -> Iterator[Text]:
    for note in comparison.notes:
        yield line_of((f"note: {note}", "yellow"))


def _loosened(answer: Answer) -> Iterator[Text]:
    for text in answer.loosened:
        yield line_of((f"bound loosened: {text}", "bold yellow"))


def _bounds(answer: Answer) -> Iterator[Text]:
    limits = answer.bounds
    if not answer.broken:
        some = limits is not None and limits.bounds_anything
        told = "within the bounds of the config" if some else "the config has no bounds (section `impact`)"
        yield line_of((told, "dim"))
        return
    rows: list[list[Cell]] = [[("bound broken", "bold red"), *((name, "dim") for name in ("", "moved", "allowed"))]]
    for one in answer.broken[:_MAX_ROWS]:
        moved = f"{100 * one.found:.4g} %" if math.isfinite(one.found) else "none kept before"
        rows.append([(one.key, ""), (one.language or "", "bold"), (moved, "red"), (f"{100 * one.limit:.4g} %", "")])
    yield from columns(rows, left=2)
    yield from _left_out(len(answer.broken) - _MAX_ROWS, "bounds that are broken")
    yield line_of(("look at the sheet: if this is what the change is for, raise the bound in the same change", "dim"))


def _left_out(n: int, what: str) -> Iterator[Text]:
    if n > 0:
        yield line_of((f"and {n:,} more {what}; the sheet has all", "dim"))


def _share(share: Estimate | None) -> str:
    from curation.report import numbers

    return "" if share is None else numbers.share(share.value, 1).replace(numbers.NBSP, " ")


def _interval(share: Estimate | None) -> str:
    from curation.report import numbers

    if share is None:
        return ""
    low, high = (numbers.share(end, 1).replace(numbers.NBSP, " ") for end in (share.low, share.high))
    return f"({low} to {high})"


def _range(number: Estimate) -> str:
    return f"{_big(number.value)} ({_big(number.low)} to {_big(number.high)})"


def _big(number: float) -> str:
    """`2.5T`, `31.2M`, `960`: three digits are more than an interval is worth."""
    for limit, letter in ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k")):
        if number >= limit:
            return f"{number / limit:.3g}{letter}"
    return f"{number:.3g}"
