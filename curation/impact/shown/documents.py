"""The documents of a change-impact sheet: some that are newly dropped, newly kept or change their reason, and borderline ones.

Chosen by a hash of the document's identity and spread over reasons and languages, so the same change shows the same ones.
Each with what becomes of it on either side, the scores that decide with the limits of both sides, and the text around what
triggered it, personal data masked as in every report. Reads a few hundred bytes of some dozen texts and the verdict rows
beside them; of a side that other code judged only what lies on disk.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from markupsafe import Markup

from curation.impact.facts import KEPT, Comparison, Outcome
from curation.impact.shown.borderline import Borderline, find_borderline
from curation.impact.shown.deciding import AskedStep, DecidingScore, ask_step, deciding_scores, score_behind, score_of
from curation.impact.shown.evidence import Evidence, evidence_of
from curation.impact.shown.side_rows import SideRows, both_sides
from curation.report.compare import COMPARED_BYTES, compare
from curation.report.excerpt import Excerpt, take
from curation.report.samples import Place, find_documents, priorities, rows_at, salted, whole
from curation.report.span_excerpt import Mark, cut_around, find_marks, marked
from curation.shards import open_table

__all__ = ["Documents", "Partner", "ShownDocument", "all_shown", "choose_documents", "documents_json"]

N_SHOWN = 20
"""Newly dropped documents, and newly kept ones."""
N_OTHER = 6
"""Documents that stay out for another reason."""
_ID_CHARS = 120


@dataclass(frozen=True)
class Partner:
    """The copy that is kept instead of a document."""

    id: str
    source: str
    excerpt: Excerpt
    html: Markup
    """The excerpt with what the other one lacks marked."""
    note: str
    """Where the two differ."""


@dataclass(frozen=True)
class ShownDocument:
    """A document with what becomes of it, and why."""

    id: str
    doc_id: str
    source: str
    url: str | None
    line: int
    language: str
    label: str | None
    weight: float
    """Documents of the corpus that it stands for."""
    before: Outcome
    after: Outcome
    scores: tuple[DecidingScore, ...]
    excerpt: Excerpt
    marks: tuple[Mark, ...]
    """Characters of the excerpt that triggered it."""
    html: Markup
    """The excerpt with its marks, safe to show."""
    note: str
    partner: Partner | None
    near: Borderline | None = None
    """Of a borderline document: the limit that it is near to."""


@dataclass(frozen=True)
class Documents:
    """All documents of a sheet."""

    dropped: tuple[ShownDocument, ...]
    """Newly dropped: kept by the base alone."""
    kept: tuple[ShownDocument, ...]
    """Newly kept."""
    other: tuple[ShownDocument, ...]
    """Dropped on both sides, but for another reason."""
    border_kept: tuple[ShownDocument, ...]
    """Kept on both sides, nearest to a limit of a changed filter first."""
    border_dropped: tuple[ShownDocument, ...]
    """Dropped by a changed filter on both sides."""


def choose_documents(comparison: Comparison, n: int = N_SHOWN) -> Documents:
    """The documents that a sheet shows.

    Args:
        n: newly dropped and newly kept documents at most.

    Raises:
        RunError: a shard or a verdict file is missing or damaged.
        ConfigError: the new side's config cannot be read by this code.
    """
    table = comparison.documents
    before, after = (table.column(name).to_numpy().astype(np.int64) for name in ("before", "after"))
    chosen = {
        "dropped": _spread(table, np.flatnonzero((before == 0) & (after != 0)), after, n, "dropped"),
        "kept": _spread(table, np.flatnonzero((before != 0) & (after == 0)), before, n, "kept"),
        "other": _spread(
            table, np.flatnonzero((before != after) & (before != 0) & (after != 0)), after, min(n, N_OTHER), "other"
        ),
    }
    reader = _Reader(comparison)
    borders = find_borderline(comparison, reader.sides)
    near = {row: one for found in borders.values() for row, one in found.items()}
    rows = [row for listed in chosen.values() for row in listed] + list(near)
    shown = reader.read(rows, near)
    dropped, kept, other = (tuple(shown[row] for row in chosen[name]) for name in ("dropped", "kept", "other"))
    border_kept, border_dropped = (tuple(shown[row] for row in borders[name]) for name in ("kept", "dropped"))
    return Documents(dropped, kept, other, border_kept, border_dropped)


def _spread(
    table: pa.Table, rows: npt.NDArray[np.int64], outcome: npt.NDArray[np.int64], n: int, salt: str
) -> list[int]:
    """At most n of some rows: a reason in turn, the most frequent first, and in each a language in turn."""
    if not len(rows):
        return []
    taken = table.select(["doc_id", "language"]).take(pa.array(rows))
    keys = salted(priorities(whole(taken.column("doc_id"))), salt)
    languages = taken.column("language").to_pylist()
    groups: dict[int, dict[str, list[tuple[int, int]]]] = defaultdict(lambda: defaultdict(list))
    for row, key, language in zip(rows.tolist(), keys.tolist(), languages, strict=True):
        groups[int(outcome[row])][language].append((key, row))
    by_reason = [
        _in_turn([[row for _, row in sorted(held)] for _, held in sorted(group.items(), key=_largest)])
        for _, group in sorted(groups.items(), key=lambda item: (-sum(map(len, item[1].values())), item[0]))
    ]
    return _in_turn(by_reason)[:n]


def _largest(item: tuple[str, Sequence[Any]]) -> tuple[int, str]:
    return -len(item[1]), item[0]


def _in_turn(lists: Sequence[Sequence[int]]) -> list[int]:
    """One of each list, then a second of each, and so on."""
    longest = max(map(len, lists), default=0)
    return [held[turn] for turn in range(longest) for held in lists if turn < len(held)]


class _Reader:
    """Reads chosen documents of a comparison."""

    def __init__(self, comparison: Comparison) -> None:
        self._comparison = comparison
        self.sides = both_sides(comparison)
        self._base, self._new = self.sides

    def read(self, rows: Sequence[int], near: Mapping[int, Borderline]) -> dict[int, ShownDocument]:
        """Documents by their row of the table."""
        listed = list(dict.fromkeys(rows))
        facts = self._comparison.documents.take(pa.array(listed, pa.int64())).to_pylist()
        by_place = {(one["shard"], one["row"]): (row, one) for row, one in zip(listed, facts, strict=True)}
        self._base.seek({place: one["doc_id"] for place, (_, one) in by_place.items()})
        for index in sorted({place[0] for place in by_place}):
            shard = self._new.shards[index]
            open_table(shard.path, shard.sha256, shard.rows)  # what is shown must be what was written
        found: dict[int, ShownDocument] = {}
        for place, batch, inside in rows_at(self._new.shards, by_place):
            row, one = by_place[place]
            found[row] = self._document(one, place, batch, inside, near.get(row))
        return found

    def _document(
        self, facts: Mapping[str, Any], place: Place, batch: pa.RecordBatch, inside: int, near: Borderline | None
    ) -> ShownDocument:
        outcomes = (self._comparison.outcomes[facts["before"]], self._comparison.outcomes[facts["after"]])
        places = (self._base.place_of(place, facts["doc_id"]), place)
        text = memoryview(batch.column("text")[inside].as_buffer())
        scores = deciding_scores(self.sides, places, outcomes) if near is None else self._near_scores(near, places)
        shown = self._shown(outcomes, places, text, near)
        return ShownDocument(
            id=_cut(facts["id"]),
            doc_id=facts["doc_id"].hex(),
            source=_cut(facts["source"]),
            url=None if (url := batch.column("url")[inside].as_py()) is None else _cut(url),
            line=batch.column("line")[inside].as_py(),
            language=facts["language"],
            label=None if facts["label"] is None else _cut(facts["label"]),
            weight=facts["weight"],
            before=outcomes[0],
            after=outcomes[1],
            scores=tuple(scores),
            near=near,
            **shown,
        )

    def _near_scores(self, near: Borderline, places: tuple[Place | None, Place | None]) -> list[DecidingScore]:
        asked = [ask_step(side, near.step, place) for side, place in zip(self.sides, places, strict=True)]
        return [score_of(asked[0], asked[1], near.score)] if asked != [None, None] else []

    def _shown(
        self,
        outcomes: tuple[Outcome, Outcome],
        places: tuple[Place | None, Place | None],
        text: memoryview,
        near: Borderline | None,
    ) -> dict[str, Any]:
        """The excerpt with what triggered the document, of the side that drops it; of both the new one."""
        number = 1 if near is not None or outcomes[1] != KEPT else 0
        side, place, outcome = self.sides[number], places[number], outcomes[number]
        step = near.step if near is not None else outcome.step
        asked = ask_step(side, step, place) if step is not None else None
        reason = outcome.reason if outcome.step == step else None
        if asked is not None and reason is not None and asked.row.get("kept_doc_id") is not None:
            partner = self._partner(side, asked, text)
            if partner is not None:
                return partner
        evidence = _evidence(asked, reason, near, text)
        excerpt = cut_around(text, evidence.begin)
        marks = tuple(find_marks(text, excerpt, evidence.spans))
        note = evidence.note
        if evidence.spans and not marks:
            note = "what triggered it stands elsewhere in it"
        return {"excerpt": excerpt, "marks": marks, "html": marked(excerpt.text, marks), "note": note, "partner": None}

    def _partner(self, side: SideRows, asked: AskedStep, text: memoryview) -> dict[str, Any] | None:
        """Both copies side by side from where they begin to differ; None if the one that is kept stands in another run."""
        place = find_documents(side.shards, [asked.row["kept_doc_id"]]).get(asked.row["kept_doc_id"])
        if place is None:
            return None
        _, batch, inside = next(rows_at(side.shards, [place]))
        other = memoryview(batch.column("text")[inside].as_buffer())
        both = compare(bytes(text[:COMPARED_BYTES]), bytes(other[:COMPARED_BYTES]), len(text), len(other))
        source = batch.column("source")[inside].as_py()
        partner = Partner(
            _cut(batch.column("id")[inside].as_py()),
            _cut(source.rpartition("/")[2]),
            both.right,
            both.right_html,
            both.note,
        )
        return {"excerpt": both.left, "marks": (), "html": both.left_html, "note": "", "partner": partner}


def _evidence(asked: AskedStep | None, reason: str | None, near: Borderline | None, text: memoryview) -> Evidence:
    if asked is None:
        return Evidence()
    score = near.score if near is not None else score_behind(asked, reason) if reason is not None else None
    return evidence_of(asked.facts.name, score, reason, asked.row, text)


def _cut(text: str) -> str:
    """A name, masked and cut."""
    return take(memoryview(text.encode("utf-8", "replace")), _ID_CHARS).text or "-"


def all_shown(documents: Documents) -> Iterator[ShownDocument]:
    """Every document of a sheet."""
    for group in (documents.dropped, documents.kept, documents.other, documents.border_kept, documents.border_dropped):
        yield from group


def documents_json(documents: Documents) -> dict[str, Any]:
    """The documents as plain data, for `sheet.json`: without what is there for pages only."""
    names = ("dropped", "kept", "other", "border_kept", "border_dropped")
    return {name: [_json(one) for one in getattr(documents, name)] for name in names}


def _json(one: ShownDocument) -> dict[str, Any]:
    told = {
        name: getattr(one, name)
        for name in (
            "id",
            "doc_id",
            "source",
            "url",
            "line",
            "language",
            "label",
            "weight",
            "before",
            "after",
            "scores",
            "near",
            "note",
        )
    }
    partner = (
        None
        if one.partner is None
        else {"id": one.partner.id, "source": one.partner.source, "excerpt": one.partner.excerpt.text}
    )
    marks = [{"begin": mark.begin, "end": mark.end, "what": mark.title} for mark in one.marks]
    return {**told, "excerpt": one.excerpt.text, "cut": one.excerpt.cut, "marks": marks, "kept_instead": partner}
