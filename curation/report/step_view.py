"""What the page shows of one step: numbers, reasons, drawings, and samples with their scores.

Reads a few hundred documents and their verdict rows by place; nothing else of the texts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from markupsafe import Markup

from curation.report.charts import histogram
from curation.report.collect import Border, Collected, StepPass
from curation.report.groups import size_classes
from curation.report.numbers import share, value
from curation.report.rule_marks import RuleMarks, rule_marks
from curation.report.safety_samples import SafetySamples, read_safety_samples, safety_groups
from curation.report.safety_view import SafetyView, other_facts, safety_view
from curation.report.sketch import Sketch
from curation.report.step_facts import FactsView, alarms_of, facts_view
from curation.report.step_samples import Sample, SampleGroup, StepReader, sample_of, score_units
from curation.report.tally import TallyTable
from curation.report.usual_sources import hits_of
from curation.shards import Shard

__all__ = ["Chart", "CopyGroup", "Reason", "StepView", "step_views"]

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
class CopyGroup:
    """One of the largest groups: the kept document and those of its copies that are least like it."""

    size: int
    kept_doc_id: str
    earlier: bool
    """The kept document stands in an earlier run."""
    head: Sample | None
    """The kept document, if it stands in this run and no pair shows its beginning."""
    members: list[Sample]


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
    marks: RuleMarks
    charts: list[Chart] = field(default_factory=list)
    labels: list[TallyTable] = field(default_factory=list)
    groups: list[SampleGroup] = field(default_factory=list)
    group_sizes: list[tuple[str, int]] = field(default_factory=list)
    copies: list[CopyGroup] = field(default_factory=list)
    """The largest groups of copies."""
    facts: FactsView | None = None
    safety: SafetyView | None = None
    """The tables of a step that looks for unsafe text."""
    alarms: list[str] = field(default_factory=list)
    not_drawn: list[str] = field(default_factory=list)

    @property
    def other_reasons(self) -> list[Reason]:
        """Those that have no line in a table by category."""
        told = {row.reason for row in self.safety.rows} if self.safety is not None else set()
        return [reason for reason in self.reasons if reason.name not in told]

    @property
    def dropped(self) -> int:
        return int(self.totals["docs_in"] - self.totals["docs_kept"])


def step_views(
    found: Collected,
    shards: Sequence[Shard],
    totals: dict[str, dict[str, Any]],
    usual: Mapping[str, Mapping[str, Any]] | None = None,
) -> list[StepView]:
    """The views of all steps.

    Args:
        totals: the funnel's line of each closed step, by name.
        usual: what is not as usual in a step, by name; see `curation.report.usual`.
    """
    reader = StepReader(shards, found.steps)
    audited = read_safety_samples(shards, found.steps)
    names = [step.step.name for step in found.steps]
    return [
        _view(step, reader, audited, totals.get(name), (usual or {}).get(name, {}))
        for step, name in zip(found.steps, names, strict=True)
    ]


def _view(
    step: StepPass,
    reader: StepReader,
    audited: SafetySamples,
    totals: dict[str, Any] | None,
    usual: Mapping[str, Any],
) -> StepView:
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
    counts = {reason.name: reason.n for reason in reasons}
    view = StepView(
        number=step.step.index + 1,
        name=step.step.name,
        anchor=f"step-{step.step.index + 1}",
        summary=card["summary"],
        totals=shown_totals,
        closed=totals is not None,
        n_shards=step.n_shards,
        reasons=reasons,
        marks=(marks := rule_marks(counts, n_in, usual, hits_of(step.step.name, step.step.facts))),
        not_drawn=sorted(step.not_drawn),
        facts=facts_view(step.step.name, other_facts(step)),
        safety=safety_view(step),
        alarms=[*alarms_of(step.step.facts), *marks.alarms],
    )
    _add_scores(view, step)
    if step.safety is not None:
        view.groups = safety_groups(step, audited)
    else:
        view.groups = _sample_groups(step, reader, reasons)
    if step.groups is not None:
        view.group_sizes = size_classes(step.groups.sizes)
        view.copies = _copy_groups(step, reader)
    return view


def _add_scores(view: StepView, step: StepPass) -> None:
    """Histograms of numbers, tables of words."""
    thresholds = step.step.card["thresholds"]
    replaced = view.facts.replaces if view.facts is not None else frozenset()
    for score in step.step.card["scores"]:
        name = score["name"]
        if name in replaced or (step.safety is not None and name in step.safety.silent):
            continue
        sketch, tally = step.sketches.get(name), step.labels.get(name)
        if tally is not None and len(tally):
            counted = " (a document counts for each of them)" if name in step.listed else ""
            view.labels.append(tally.table(f"{name}: {score['what']}{counted}", name, MAX_LABEL_ROWS))
        if sketch is None or not sketch.total or (name == "group_size" and step.groups is not None):
            continue
        limits = [float(limit) for limit in thresholds.get(name, [])]
        unit = score["unit"]
        notes = [_spread_note(sketch, unit)]
        notes += [
            _threshold_note(border, unit) for border in step.borders if border.score == name and border.scored_kept
        ]
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


def _sample_groups(step: StepPass, reader: StepReader, reasons: Sequence[Reason]) -> list[SampleGroup]:
    rows = reader.verdicts[step.step.name]
    groups = []
    for rank, reason in enumerate(reason for reason in reasons if reason.n):
        reservoir = step.dropped.get(reason.name)
        samples = [sample_of(step, reader, place, rows[place]) for place in (reservoir.places if reservoir else [])]
        groups.append(SampleGroup(reason.name, "dropped", f"{reason.n:,} dropped", samples, open=rank == 0))
    for border in step.borders:
        dropped, kept = border.places(kept=False), border.places(kept=True)
        if dropped or kept:
            samples = [sample_of(step, reader, place, rows[place], border.score) for place in [*dropped[::-1], *kept]]
            title = f"{border.score} close to {value(border.threshold, score_units(step).get(border.score, ''))}"
            # A score that kept documents do not have, such as the similarity to another one, has no other side.
            kind, note = ("border", "borderline, nearest") if border.scored_kept else ("dropped", "nearest")
            first = border is step.borders[0]
            groups.append(SampleGroup(title, kind, f"{note} to the threshold", samples, open=first))
    if step.kept.places:
        samples = [sample_of(step, reader, place, rows[place]) for place in step.kept.places]
        groups.append(SampleGroup("kept", "kept", f"{step.docs_kept:,} kept", samples))
    return groups


def _copy_groups(step: StepPass, reader: StepReader) -> list[CopyGroup]:
    """The largest groups with some of their members."""
    assert step.groups is not None
    rows = reader.verdicts[step.step.name]
    found = []
    for key, (size, place) in step.groups.largest.items():
        members = [
            sample_of(step, reader, member, rows[member], without=("group_size",))
            for member in reader.members[step.step.name][key]
        ]
        doc_id = next((one.partner.doc_id if one.partner else one.earlier for one in members), "")
        shows_head = any(one.partner_excerpt is not None and not one.partner_excerpt.begin for one in members)
        head = None
        if place is not None:
            doc_id = reader.documents[place].doc_id
            head = None if shows_head else sample_of(step, reader, place, rows[place], without=("group_size",))
        found.append(CopyGroup(size, doc_id, place is None, head, members))
    return found
