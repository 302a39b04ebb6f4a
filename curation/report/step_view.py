"""What the page shows of one step: numbers, reasons, drawings, and samples with their scores.

Reads a few hundred documents and their verdict rows by place; nothing else of the texts.
"""

from __future__ import annotations

import difflib
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from markupsafe import Markup

from curation.report.charts import histogram
from curation.report.collect import Border, Collected, StepPass
from curation.report.excerpt import Excerpt, shown
from curation.report.numbers import share, value
from curation.report.samples import Place, Sampled, find_documents, read_samples
from curation.report.sketch import Sketch
from curation.report.tally import TallyTable
from curation.shards import Shard, open_table

__all__ = ["Chart", "Reason", "Sample", "SampleGroup", "StepView", "step_views"]

LOOKED_ENOUGH = 1000
"""Documents after which a rule that never fired is worth naming."""
MAX_LABEL_ROWS = 15


@dataclass(frozen=True)
class Reason:
    """A row of the table of reasons."""

    name: str
    sentence: str
    n: int
    share: float
    """Of the documents that the step looked at."""

    @property
    def heavy(self) -> bool:
        """Takes more than half of what it sees."""
        return self.share > 0.5


@dataclass(frozen=True)
class Chart:
    """A score with its distribution."""

    name: str
    what: str
    unit: str
    svg: Markup
    notes: list[str]


@dataclass(frozen=True)
class Sample:
    """A document with what the step said about it."""

    document: Sampled
    keep: bool
    reason: str | None
    scores: list[tuple[str, str, str]]
    """Name, value, and its part: `by` if the list is sorted by it, `decides` if it has a threshold, else nothing."""
    text: Markup
    partner: Sampled | None = None
    partner_text: Markup | None = None


@dataclass(frozen=True)
class SampleGroup:
    """Samples under one heading."""

    title: str
    kind: str
    """dropped, kept, border or groups."""
    note: str
    samples: list[Sample]
    open: bool = False


@dataclass
class StepView:
    """Everything that the page shows of one step."""

    number: int
    name: str
    anchor: str
    summary: str
    totals: dict[str, Any]
    closed: bool
    n_shards: int
    reasons: list[Reason]
    silent: list[str]
    """Reasons that never fired although the step saw enough documents."""
    charts: list[Chart] = field(default_factory=list)
    labels: list[TallyTable] = field(default_factory=list)
    groups: list[SampleGroup] = field(default_factory=list)
    group_sizes: list[tuple[str, int]] = field(default_factory=list)
    not_drawn: list[str] = field(default_factory=list)

    @property
    def dropped(self) -> int:
        return int(self.totals["docs_in"] - self.totals["docs_kept"])


def step_views(found: Collected, shards: Sequence[Shard], totals: dict[str, dict[str, Any]]) -> list[StepView]:
    """The views of all steps.

    Args:
        totals: the funnel's line of each closed step, by name.
    """
    reader = _Reader(shards, found.steps)
    return [_view(step, reader, totals.get(step.step.name)) for step in found.steps]


class _Reader:
    """All sample documents and their verdict rows, read once."""

    def __init__(self, shards: Sequence[Shard], steps: Sequence[StepPass]) -> None:
        places = {step.step.name: _places(step) for step in steps}
        self.verdicts = {step.step.name: _read_verdicts(step, shards, places[step.step.name]) for step in steps}
        partners = {
            row["kept_doc_id"] for rows in self.verdicts.values() for row in rows.values() if row.get("kept_doc_id")
        }
        self._partner_places = find_documents(shards, partners)
        everything = set().union(*places.values(), self._partner_places.values()) if steps else set()
        self.documents = read_samples(shards, everything)

    def partner(self, row: dict[str, Any]) -> Sampled | None:
        place = self._partner_places.get(row.get("kept_doc_id") or b"")
        return self.documents[place] if place is not None else None


def _places(step: StepPass) -> set[Place]:
    found = {*step.kept.places, *(step.groups.places if step.groups else [])}
    for reservoir in step.dropped.values():
        found.update(reservoir.places)
    for border in step.borders:
        found.update(border.places(kept=True), border.places(kept=False))
    return found


def _read_verdicts(step: StepPass, shards: Sequence[Shard], places: Iterable[Place]) -> dict[Place, dict[str, Any]]:
    by_shard: dict[int, list[int]] = defaultdict(list)
    for shard, row in places:
        by_shard[shard].append(row)
    found: dict[Place, dict[str, Any]] = {}
    for shard, rows in by_shard.items():
        table = open_table(step.step.folder / f"{shards[shard].name}.arrow", rows=shards[shard].rows).read_all()
        for row, values in zip(rows, table.take(rows).to_pylist(), strict=True):
            found[shard, row] = values
    return found


def _view(step: StepPass, reader: _Reader, totals: dict[str, Any] | None) -> StepView:
    card = step.step.card
    dropped = totals["dropped"] if totals else {name: n for name, n in step.counts.items() if n}
    shown_totals = totals or {
        "docs_in": step.docs_in,
        "docs_kept": step.docs_kept,
        "bytes_in": 0,
        "bytes_kept": 0,
        "seconds": sum(seconds for _, seconds, _ in step.seconds),
        "peak_rss_mb": max((peak for _, _, peak in step.seconds), default=0.0),
    }
    n_in = shown_totals["docs_in"]
    reasons = [
        Reason(name, card["reasons"].get(name, "not declared by the step"), n, n / n_in if n_in else 0.0)
        for name, n in sorted(
            ((name, dropped.get(name, 0)) for name in [*card["reasons"], *(dropped.keys() - card["reasons"].keys())]),
            key=lambda pair: -pair[1],
        )
    ]
    view = StepView(
        number=step.step.index + 1,
        name=step.step.name,
        anchor=f"step-{step.step.index + 1}",
        summary=card["summary"],
        totals=shown_totals,
        closed=totals is not None,
        n_shards=step.n_shards,
        reasons=reasons,
        silent=[reason.name for reason in reasons if not reason.n] if n_in >= LOOKED_ENOUGH else [],
        not_drawn=sorted(step.not_drawn),
    )
    _add_scores(view, step)
    view.groups = _sample_groups(step, reader, reasons)
    view.group_sizes = _size_classes(step.group_sizes)
    return view


def _add_scores(view: StepView, step: StepPass) -> None:
    """Histograms of numbers, tables of words."""
    thresholds = step.step.card["thresholds"]
    for score in step.step.card["scores"]:
        name = score["name"]
        sketch, tally = step.sketches.get(name), step.labels.get(name)
        if tally is not None and len(tally):
            view.labels.append(tally.table(f"{name}: {score['what']}", name, MAX_LABEL_ROWS))
        if sketch is None or not sketch.total or (name == "group_size" and step.groups is not None):
            continue
        limits = [float(limit) for limit in thresholds.get(name, [])]
        unit = score["unit"]
        notes = [_spread_note(sketch, unit)]
        notes += [_threshold_note(border, unit) for border in step.borders if border.score == name]
        undefined = int(sketch.undefined.sum())
        if undefined and not (step.groups is not None and name == "similarity"):
            notes.append(f"{undefined:,} documents have no such score ({int(sketch.undefined[0]):,} of them dropped)")
        svg = Markup("") if sketch.minimum == sketch.maximum else histogram(sketch, name, unit, limits)
        view.charts.append(Chart(name, score["what"], unit, svg, notes))


def _spread_note(sketch: Sketch, unit: str) -> str:
    """Where the values lie, in one line."""
    if sketch.minimum == sketch.maximum:
        return f"{value(sketch.minimum, unit)} for all {sketch.total:,} documents that have it"
    low, middle, high = (value(sketch.quantile(q), unit) for q in (0.05, 0.5, 0.95))
    return f"median {middle}; nine in ten {low} to {high}; all {value(sketch.minimum, unit)} to {value(sketch.maximum, unit)}"


def _threshold_note(border: Border, unit: str) -> str:
    below, at, above = border.total.tolist()
    total = below + at + above
    parts = [
        f"{share(below, total)} below" if below else "",
        f"{at:,} exactly at it" if at else "",
        f"{share(above, total)} above" if above else "",
    ]
    return f"threshold {value(border.threshold, unit)}: " + ", ".join(part for part in parts if part)


def _sample_groups(step: StepPass, reader: _Reader, reasons: Sequence[Reason]) -> list[SampleGroup]:
    rows = reader.verdicts[step.step.name]
    groups = []
    for rank, reason in enumerate(reason for reason in reasons if reason.n):
        reservoir = step.dropped.get(reason.name)
        samples = [_sample(step, reader, place, rows[place]) for place in (reservoir.places if reservoir else [])]
        groups.append(SampleGroup(reason.name, "dropped", f"{reason.n:,} dropped", samples, open=rank == 0))
    for border in step.borders:
        places = [*border.places(kept=False)[::-1], *border.places(kept=True)]
        if places:
            samples = [_sample(step, reader, place, rows[place], border.score) for place in places]
            unit = _units(step).get(border.score, "")
            title = f"{border.score} close to {value(border.threshold, unit)}"
            first = border is step.borders[0]
            groups.append(SampleGroup(title, "border", "borderline, nearest to the threshold", samples, open=first))
    if step.groups is not None and step.groups.places:
        samples = [_sample(step, reader, place, rows[place], "group_size") for place in step.groups.places]
        groups.append(SampleGroup("largest groups", "groups", "by their kept document", samples))
    if step.kept.places:
        samples = [_sample(step, reader, place, rows[place]) for place in step.kept.places]
        groups.append(SampleGroup("kept", "kept", f"{step.docs_kept:,} kept", samples))
    return groups


def _units(step: StepPass) -> dict[str, str]:
    return {score["name"]: score["unit"] for score in step.step.card["scores"]}


def _sample(step: StepPass, reader: _Reader, place: Place, row: dict[str, Any], sorted_by: str = "") -> Sample:
    document = reader.documents[place]
    units = _units(step)
    scores = []
    for name, found in row.items():
        if name in ("keep", "reason", "kept_doc_id") or found is None:
            continue
        if name == "group_size" and found <= 1:
            continue
        is_number = isinstance(found, int | float) and not isinstance(found, bool)
        part = "by" if name == sorted_by else "decides" if name in step.step.card["thresholds"] else ""
        scores.append((name, value(found, units.get(name, "")) if is_number else str(found), part))
    partner = reader.partner(row)
    if partner is None:
        return Sample(document, bool(row["keep"]), row["reason"], scores, shown(document.text.text))
    text, partner_text = mark_differences(document.text, partner.text)
    return Sample(document, bool(row["keep"]), row["reason"], scores, text, partner, partner_text)


_TOKENS = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|\w+|\s+|.", re.DOTALL)


def mark_differences(left: Excerpt, right: Excerpt) -> tuple[Markup, Markup]:
    """Both texts as HTML, with the words (characters in Chinese, Japanese, Korean) marked that the other one lacks.

    What follows the end of the other excerpt is not marked if that one was cut there.
    """
    tokens = _TOKENS.findall(left.text), _TOKENS.findall(right.text)
    marked: tuple[list[Markup], list[Markup]] = ([], [])
    operations = difflib.SequenceMatcher(None, *tokens, autojunk=False).get_opcodes()
    for position, (kind, *bounds) in enumerate(operations, start=1):
        beyond = position == len(operations) and (
            (kind == "delete" and right.cut) or (kind == "insert" and left.cut) or (kind == "replace" and left.cut)
        )
        for side in (0, 1):
            text = shown("".join(tokens[side][bounds[2 * side] : bounds[2 * side + 1]]))
            if text:
                marked[side].append(text if kind == "equal" or beyond else Markup("<mark>{}</mark>").format(text))
    return Markup("").join(marked[0]), Markup("").join(marked[1])


def _size_classes(sizes: dict[int, int]) -> list[tuple[str, int]]:
    """Groups by size: 2, 3, 4, 5 to 8, 9 to 16 ..."""
    classes: list[tuple[str, int]] = []
    low, high = 2, 2
    while sizes and low <= max(sizes):
        n = sum(count for size, count in sizes.items() if low <= size <= high)
        classes.append((str(low) if low == high else f"{low:,} to {high:,}", n))
        low = high + 1
        high = low if low <= 4 else 2 * high
    return classes
