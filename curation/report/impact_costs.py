"""Tables of a change-impact sheet about what a change costs, and what it would mean on a corpus; what labels say of it."""

from __future__ import annotations

from collections.abc import Sequence

from curation.impact.counting.figure_types import Cost, CostLine, Figures, Scaled
from curation.report.impact_numbers import interval, percent, short_amount, times
from curation.report.impact_table import Cell, Table, group_name, heads
from curation.report.numbers import NBSP, duration, noun

__all__ = ["corpus_table", "cost_table", "labelled_words"]

SLOWER = 1.25
"""Times from which on a step is marked as slower: two runs of one code differ by as much on a busy machine."""


def cost_table(figures: Figures) -> Table:
    """Time and memory of each step."""
    columns = "step | time before # | now # | ms a document before # | now # | times # | memory before # | now #"
    caption = (
        "Over the whole sample; milliseconds are of the processor where both sides tell them. A step whose scores an earlier run "
        "had saved costs little here, which says nothing of its speed"
    )
    return Table("costs", "Time and memory", caption, heads(columns), [_cost_row(one) for one in figures.costs])


def _cost_row(one: CostLine) -> Sequence[Cell]:
    sides = (one.before, one.after)
    slower = one.times is not None and one.times >= SLOWER
    each = ["-" if side is None or side.ms_per_document is None else f"{side.ms_per_document:.3g}" for side in sides]
    return [
        Cell(one.name),
        *(_seconds(side) for side in sides),
        *(Cell(text, "", "n") for text in each),
        Cell("" if one.times is None else times(one.times), "", "n quarantined-text" if slower else "n"),
        *(Cell("-" if side is None else f"{side.peak_rss_mb:,.0f}{NBSP}MB", "", "n") for side in sides),
    ]


def _seconds(side: Cost | None) -> Cell:
    if side is None:
        return Cell("-", "no such step", "n none")
    if side.from_saved_scores:
        return Cell(duration(side.seconds), "from saved scores", "n none")
    if side.scored is None:
        scored = noun(side.documents, "document")
    else:  # scores of an earlier run may be of documents that another step drops now
        scored = f"all {side.scored:,} scored" if side.scored == side.documents else f"{side.scored:,} scored"
    return Cell(duration(side.seconds), scored, "n")


def corpus_table(figures: Figures) -> Table | None:
    """What it would mean on a corpus of a given size; None if none is known."""
    found = figures.extrapolation
    if found is None:
        return None
    rows = [[Cell(measure), *_scaled_cells(scaled)] for measure, scaled in found.scaled.items()]
    languages = [[Cell(group_name(name)), *_scaled_cells(scaled)] for name, scaled in found.languages.items()]
    whose = "the corpus that the sample was drawn from" if found.drawn else "a corpus"
    size = f"{short_amount(found.corpus.size)} {found.corpus.measure}"
    caption = f"On {whose} of which the base keeps {size}; 95 % intervals"
    note = "This holds as far as the sample is as the corpus is: its sources, its languages, its share of junk."
    columns = heads("| kept before # | leaves # | comes in # | kept now #")
    words = f"by language, in {found.corpus.measure}" if languages else ""
    return Table("corpus", "On a corpus", caption, columns, rows, languages, words, note="" if found.drawn else note)


def _scaled_cells(scaled: Scaled) -> list[Cell]:
    cells = []
    for estimate, css in (
        (scaled.before, "n"), (scaled.leaves, "n dropped-text"), (scaled.comes_in, "n kept-text"), (scaled.after, "n"),
    ):  # fmt: skip
        low, high = short_amount(estimate.low), short_amount(estimate.high)
        small = "" if low == high else f"{low} to {high}"
        cells.append(Cell(short_amount(estimate.value), small, css if estimate.value else "n none"))
    return cells


def labelled_words(figures: Figures) -> list[str]:
    """What labels say of the change, a sentence a side."""
    found = figures.labelled
    if found is None:
        return []
    words = []
    for good, junk, verb in (
        (found.leaves_good, found.leaves_junk, "leave"),
        (found.comes_in_good, found.comes_in_junk, "come in"),
    ):
        right, name = (junk, "junk") if verb == "leave" else (good, "good")
        if n := good.count + junk.count:
            share = "" if right.share is None else f" ({percent(right.share.value)}; {interval(right.share)})"
            verb = verb if n > 1 else {"leave": "leaves", "come in": "comes in"}[verb]
            words.append(
                f"Of {noun(n, 'labelled document')} that {verb} {right.count:,} {'is' if right.count == 1 else 'are'} {name}{share}."
            )
    return words
