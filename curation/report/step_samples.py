"""Samples of a step as the page shows them: a document, an excerpt, what the step scored and said, the copy kept instead.

Documents and verdict rows of all samples of all steps are read once, by place; nothing else of the texts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from curation.records import EARLIER_SUFFIX
from curation.report.collect import StepPass
from curation.report.compare import Comparison, compare
from curation.report.excerpt import Excerpt, shown
from curation.report.groups import find_members
from curation.report.numbers import value_beside
from curation.report.samples import Place, Sampled, find_documents, read_samples
from curation.score_words import list_words
from curation.shards import Shard, open_table

__all__ = ["Sample", "SampleGroup", "StepReader", "read_verdicts", "sample_of", "score_units"]

MAX_LIST_ITEMS = 6
"""Items of a score that is a list, which a sample shows."""
N_MEMBERS = 3
"""Copies of each of the largest groups that are shown beside their kept document."""


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
class SampleGroup:
    """Samples under one heading."""

    title: str
    kind: str
    """dropped, kept or border."""
    note: str
    samples: list[Sample]
    open: bool = False
    sides: tuple[str, str] = ("just dropped", "just kept")
    """Of kind border: headings of the dropped and of the kept ones."""


class StepReader:
    """All sample documents and their verdict rows, read once."""

    def __init__(self, shards: Sequence[Shard], steps: Sequence[StepPass]) -> None:
        self.members = {step.step.name: _members(step, shards) for step in steps}
        places = {step.step.name: _places(step, self.members[step.step.name]) for step in steps}
        self.verdicts = {step.step.name: read_verdicts(step, shards, places[step.step.name]) for step in steps}
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


def read_verdicts(step: StepPass, shards: Sequence[Shard], places: Iterable[Place]) -> dict[Place, dict[str, Any]]:
    by_shard: dict[int, list[int]] = defaultdict(list)
    for shard, row in places:
        by_shard[shard].append(row)
    found: dict[Place, dict[str, Any]] = {}
    for shard, rows in by_shard.items():
        table = open_table(step.step.folder / f"{shards[shard].name}.arrow", rows=shards[shard].rows).read_all()
        for row, values in zip(rows, table.take(rows).to_pylist(), strict=True):
            found[shard, row] = values
    return found


def score_units(step: StepPass) -> dict[str, str]:
    return {score["name"]: score["unit"] for score in step.step.card["scores"]}


def sample_of(
    step: StepPass,
    reader: StepReader,
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
    units = score_units(step)
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
