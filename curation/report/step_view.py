"""What the page shows of one step: numbers, reasons, drawings, and samples with their scores.

Reads a few hundred documents and their verdict rows by place; nothing else of the texts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from markupsafe import Markup

from curation.records import EARLIER_SUFFIX
from curation.report.charts import histogram
from curation.report.collect import Border, Collected, StepPass
from curation.report.compare import Comparison, compare
from curation.report.excerpt import Excerpt, shown
from curation.report.groups import find_members, size_classes
from curation.report.numbers import share, value, value_beside
from curation.report.rule_marks import RuleMarks, rule_marks
from curation.report.samples import Place, Sampled, find_documents, read_samples
from curation.report.sketch import Sketch
from curation.report.step_facts import FactsView, alarms_of, facts_view
from curation.report.tally import TallyTable
from curation.report.usual_sources import hits_of
from curation.score_words import list_words
from curation.shards import Shard, open_table

__all__ = ["Chart", "CopyGroup", "Reason", "Sample", "SampleGroup", "StepView", "step_views"]

MAX_LABEL_ROWS = 15
MAX_LIST_ITEMS = 6
"""Items of a score that is a list, which a sample shows."""
N_MEMBERS = 3
"""Copies of each of the largest groups that are shown beside their kept document."""


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
    excerpt: Excerpt
    text: Markup
    """The excerpt as HTML."""
    partner: Sampled | None = None
    partner_excerpt: Excerpt | None = None
    partner_text: Markup | None = None
    note: str = ""
    """On the place where the two differ."""
    earlier: str = ""
    """doc_id of the partner if that stands in an earlier run."""


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


@dataclass(frozen=True)
class SampleGroup:
    """Samples under one heading."""

    title: str
    kind: str
    """dropped, kept or border."""
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
    marks: RuleMarks
    charts: list[Chart] = field(default_factory=list)
    labels: list[TallyTable] = field(default_factory=list)
    groups: list[SampleGroup] = field(default_factory=list)
    group_sizes: list[tuple[str, int]] = field(default_factory=list)
    copies: list[CopyGroup] = field(default_factory=list)
    """The largest groups of copies."""
    facts: FactsView | None = None
    alarms: list[str] = field(default_factory=list)
    not_drawn: list[str] = field(default_factory=list)

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
    reader = _Reader(shards, found.steps)
    names = [step.step.name for step in found.steps]
    return [
        _view(step, reader, totals.get(name), (usual or {}).get(name, {}))
        for step, name in zip(found.steps, names, strict=True)
    ]


class _Reader:
    """All sample documents and their verdict rows, read once."""

    def __init__(self, shards: Sequence[Shard], steps: Sequence[StepPass]) -> None:
        self.members = {step.step.name: _members(step, shards) for step in steps}
        places = {step.step.name: _places(step, self.members[step.step.name]) for step in steps}
        self.verdicts = {step.step.name: _read_verdicts(step, shards, places[step.step.name]) for step in steps}
        copies = {
            (name, place): row["kept_doc_id"]
            for name, rows in self.verdicts.items()
            for place, row in rows.items()
            if row.get("kept_doc_id") and not _of_earlier(row)
        }
        self._partner_places = find_documents(shards, copies.values())
        partners = set(self._partner_places.values())
        everything = set().union(*places.values(), partners) if steps else set()
        self.documents = read_samples(shards, everything, partners | {place for _, place in copies})

    def partner(self, row: dict[str, Any]) -> Sampled | None:
        """The document that was kept instead, if it stands in this run."""
        place = None if _of_earlier(row) else self._partner_places.get(row.get("kept_doc_id") or b"")
        return self.documents[place] if place is not None else None


def _of_earlier(row: dict[str, Any]) -> bool:
    """Whether a verdict names a kept document of an earlier run, which is not looked for."""
    return bool(row["reason"] and row["reason"].endswith(EARLIER_SUFFIX) and row.get("kept_doc_id"))


def _members(step: StepPass, shards: Sequence[Shard]) -> dict[int, list[Place]]:
    """Places of some copies of each of the largest groups, by key of the kept document; largest group first."""
    largest = step.groups.largest if step.groups is not None else {}
    found = find_members(step.step.folder, shards, largest, N_MEMBERS)
    return {key: found[key] for key in largest}


def _places(step: StepPass, members: dict[int, list[Place]]) -> set[Place]:
    found = {*step.kept.places, *(step.groups.places if step.groups else [])}
    found.update(*members.values())
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


def _view(step: StepPass, reader: _Reader, totals: dict[str, Any] | None, usual: Mapping[str, Any]) -> StepView:
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
        facts=facts_view(step.step.name, step.step.facts),
        alarms=[*alarms_of(step.step.facts), *marks.alarms],
    )
    _add_scores(view, step)
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
        if name in replaced:
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


def _sample_groups(step: StepPass, reader: _Reader, reasons: Sequence[Reason]) -> list[SampleGroup]:
    rows = reader.verdicts[step.step.name]
    groups = []
    for rank, reason in enumerate(reason for reason in reasons if reason.n):
        reservoir = step.dropped.get(reason.name)
        samples = [_sample(step, reader, place, rows[place]) for place in (reservoir.places if reservoir else [])]
        groups.append(SampleGroup(reason.name, "dropped", f"{reason.n:,} dropped", samples, open=rank == 0))
    for border in step.borders:
        dropped, kept = border.places(kept=False), border.places(kept=True)
        if dropped or kept:
            samples = [_sample(step, reader, place, rows[place], border.score) for place in [*dropped[::-1], *kept]]
            title = f"{border.score} close to {value(border.threshold, _units(step).get(border.score, ''))}"
            # A score that kept documents do not have, such as the similarity to another one, has no other side.
            kind, note = ("border", "borderline, nearest") if border.scored_kept else ("dropped", "nearest")
            first = border is step.borders[0]
            groups.append(SampleGroup(title, kind, f"{note} to the threshold", samples, open=first))
    if step.kept.places:
        samples = [_sample(step, reader, place, rows[place]) for place in step.kept.places]
        groups.append(SampleGroup("kept", "kept", f"{step.docs_kept:,} kept", samples))
    return groups


def _units(step: StepPass) -> dict[str, str]:
    return {score["name"]: score["unit"] for score in step.step.card["scores"]}


def _copy_groups(step: StepPass, reader: _Reader) -> list[CopyGroup]:
    """The largest groups with some of their members."""
    assert step.groups is not None
    rows = reader.verdicts[step.step.name]
    found = []
    for key, (size, place) in step.groups.largest.items():
        members = [
            _sample(step, reader, member, rows[member], without=("group_size",))
            for member in reader.members[step.step.name][key]
        ]
        doc_id = next((one.partner.doc_id if one.partner else one.earlier for one in members), "")
        shows_head = any(one.partner_excerpt is not None and not one.partner_excerpt.begin for one in members)
        head = None
        if place is not None:
            doc_id = reader.documents[place].doc_id
            head = None if shows_head else _sample(step, reader, place, rows[place], without=("group_size",))
        found.append(CopyGroup(size, doc_id, place is None, head, members))
    return found


def _sample(
    step: StepPass,
    reader: _Reader,
    place: Place,
    row: dict[str, Any],
    sorted_by: str = "",
    *,
    without: Sequence[str] = (),
) -> Sample:
    document, partner = reader.documents[place], reader.partner(row)
    scores = [score for score in _scores(step, row, sorted_by) if score[0] not in without]
    if partner is None:
        earlier = row["kept_doc_id"].hex() if _of_earlier(row) else ""
        text = shown(document.text.text)
        return Sample(document, bool(row["keep"]), row["reason"], scores, document.text, text, earlier=earlier)
    both: Comparison = compare(document.head, partner.head, document.text.n_bytes, partner.text.n_bytes)
    return Sample(
        document,
        bool(row["keep"]),
        row["reason"],
        scores,
        both.left,
        both.left_html,
        partner,
        both.right,
        both.right_html,
        both.note,
    )


def _scores(step: StepPass, row: dict[str, Any], sorted_by: str) -> list[tuple[str, str, str]]:
    """Name, value and part (see `Sample`) of each score that the document has."""
    units = _units(step)
    scores = []
    for name, found in row.items():
        if name in ("keep", "reason", "kept_doc_id") or found is None:
            continue
        if name == "group_size" and found <= 1:
            continue
        limits = step.step.card["thresholds"].get(name, [])
        part = "by" if name == sorted_by else "decides" if limits else ""
        if isinstance(found, int | float) and not isinstance(found, bool):
            words = value_beside(found, limits, units.get(name, ""))
        else:
            words = list_words(found, MAX_LIST_ITEMS) if isinstance(found, list) else str(found)
        scores.append((name, words, part))
    return scores
