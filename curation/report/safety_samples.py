"""Samples of the steps that look for unsafe text, each cut around what was found in it, and a sample of what passed.

An excerpt stands around the heaviest term of its category, as `matched` of the terms' step has it; in a step with a model
around that inside of the worst window, or at its beginning. Where both steps ran, terms are marked in the samples of both.
Reads the documents and verdict rows of about a hundred samples a step, by place.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from curation.errors import RunError
from curation.matched_spans import MATCHED, MatchedSpan, different_terms, read_spans
from curation.report.collect import StepPass
from curation.report.masking import mask
from curation.report.numbers import count, noun, value_beside
from curation.report.safety_pass import WORST, Category, SafetyPass
from curation.report.samples import Place, Sampled, read_samples, rows_at
from curation.report.span_excerpt import LEAD_CHARS, cut_around, find_marks, marked
from curation.report.step_samples import Sample, SampleGroup, read_verdicts, score_units
from curation.shards import Shard

__all__ = ["SafetySamples", "read_safety_samples", "safety_groups"]

SIDES = ("dropped for it", "kept, nearest to the limit")
N_TERMS = 4
"""Terms that stand beside a sample."""
N_LABELS = 4
"""The likeliest labels of a sample."""
_TERM_CHARS = 60


@dataclass(frozen=True)
class _Piece:
    """What one sample shows of its document, or how it comes to it."""

    place: Place
    own: str | None
    """The category that it is a sample of; None: of what passed."""


@dataclass(frozen=True)
class SafetySamples:
    """Documents, verdicts and spans of all samples; texts are read when a sample is made of them."""

    shards: Sequence[Shard]
    documents: Mapping[Place, Sampled]
    verdicts: Mapping[str, Mapping[Place, Mapping[str, Any]]]
    """By step."""
    spans: Mapping[Place, list[MatchedSpan]]


def read_safety_samples(shards: Sequence[Shard], steps: Sequence[StepPass]) -> SafetySamples:
    """Read what the samples of all steps for safety need; nothing if there is no such step."""
    audited = [(step, step.safety) for step in steps if step.safety is not None]
    places = {place for _, safety in audited for place in safety.places}
    verdicts = {step.step.name: read_verdicts(step, shards, set(safety.places)) for step, safety in audited}
    spans: dict[Place, list[MatchedSpan]] = {}
    for step, safety in audited:
        if safety.kind == "terms":
            rows = _verdicts_that_are_there(step, shards, places)
            spans.update({place: read_spans(_text(row.get(MATCHED))) for place, row in rows.items()})
    return SafetySamples(shards, read_samples(shards, places), verdicts, spans)


def _verdicts_that_are_there(
    step: StepPass, shards: Sequence[Shard], places: set[Place]
) -> dict[Place, dict[str, Any]]:
    """Verdict rows of places that another step chose: a file that is damaged has been named by the pass."""
    try:
        return read_verdicts(step, shards, places)
    except RunError:
        return read_verdicts(step, shards, set(step.safety.places) if step.safety else set())


def _text(cell: Any) -> str | None:
    return cell if isinstance(cell, str) else None


def safety_groups(step: StepPass, read: SafetySamples) -> list[SampleGroup]:
    """Samples by category, and of what passed."""
    assert step.safety is not None
    pieces = [_Piece(place, None) for place in step.safety.passed.places]
    for category in step.safety.categories.values():
        chosen = [*category.dropped_sample.places, *category.near.places]
        pieces += [_Piece(place, category.name) for place in chosen]
    samples = dict(_samples(step, read, pieces))
    groups: list[SampleGroup] = []
    for category in sorted(step.safety.categories.values(), key=lambda one: -one.dropped):
        dropped, near = (
            [samples[_Piece(place, category.name)] for place in reservoir.places]
            for reservoir in (category.dropped_sample, category.near)
        )
        if dropped or near:
            note = f"{count(category.dropped)} dropped; {_kept_note(category, step.safety)}"
            groups.append(SampleGroup(category.name, "border", note, [*dropped, *near], open=not groups, sides=SIDES))
    if step.safety.passed.places:
        shown = [samples[_Piece(place, None)] for place in step.safety.passed.places]
        note = (
            f"{len(shown)} of {noun(step.docs_kept, 'document')} that this step kept, drawn at random: what was missed?"
        )
        groups.append(SampleGroup("passed", "kept", note, shown, open=True))
    return groups


def _kept_note(category: Category, safety: SafetyPass) -> str:
    if safety.kind == "model":
        return "the nearest to its limit among those kept"
    return f"{count(category.kept)} kept although a term stands in them"


def _samples(step: StepPass, read: SafetySamples, pieces: Sequence[_Piece]) -> Iterator[tuple[_Piece, Sample]]:
    """A sample for each piece; of each document's text only what is shown is decoded."""
    by_place: dict[Place, list[_Piece]] = {}
    for piece in pieces:
        by_place.setdefault(piece.place, []).append(piece)
    assert step.safety is not None
    describe: Callable[..., list[tuple[str, str, str]]] = _term_scores if step.safety.kind == "terms" else _model_scores
    for place, batch, row in rows_at(read.shards, by_place):
        data = memoryview(batch.column("text")[row].as_buffer())
        verdict = read.verdicts[step.step.name][place]
        spans = read.spans.get(place, [])
        for piece in by_place[place]:
            at, lead = _where(verdict, spans, piece.own)
            excerpt = cut_around(data, at, lead=lead)
            text = marked(excerpt.text, find_marks(data, excerpt, spans, piece.own))
            scores = [*describe(step, verdict, piece.own), *_terms_beside(spans, piece.own)]
            yield (
                piece,
                Sample(read.documents[place], bool(verdict["keep"]), verdict["reason"], scores, excerpt, text),
            )


def _where(verdict: Mapping[str, Any], spans: Sequence[MatchedSpan], own: str | None) -> tuple[int, int]:
    """The byte around which the excerpt is cut, and how many characters stand before it."""
    begin, end = (verdict.get(name) for name in WORST)
    chosen = [span for span in spans if own is None or span.category == own] or list(spans)
    if isinstance(begin, int) and isinstance(end, int):
        inside = [span for span in chosen if begin <= span.begin < end] or [s for s in spans if begin <= s.begin < end]
        return (inside[0].begin, LEAD_CHARS) if inside else (begin, 0)
    return (chosen[0].begin, LEAD_CHARS) if chosen else (0, 0)


def _term_scores(step: StepPass, verdict: Mapping[str, Any], own: str | None) -> list[tuple[str, str, str]]:
    """What decides of the category; of all others that were found their peak."""
    assert step.safety is not None
    units = score_units(step)
    scores = []
    for name in step.safety.categories:
        if not verdict.get(f"{name}_hits") and name != own:
            continue
        for what in ("peak", "density", "weight", "hits") if name == own else ("peak",):
            found = verdict.get(f"{name}_{what}")
            if found is not None:
                scores.append(_score(step.safety, units, f"{name}_{what}", found, decides=name == own))
    if not scores:
        return [("no term found", "", "")]
    return sorted(scores, key=lambda score: not score[0].startswith(f"{own}_")) if own else scores


def _model_scores(step: StepPass, verdict: Mapping[str, Any], own: str | None) -> list[tuple[str, str, str]]:
    """The likeliest labels, the category in question first, and where the worst window stands."""
    assert step.safety is not None
    units = score_units(step)
    found = {name: verdict.get(name) for name in step.safety.categories}
    numbers = {name: p for name, p in found.items() if isinstance(p, int | float) and math.isfinite(p)}
    if not numbers:
        return [("not read by the model", "", "")]
    likely = sorted(numbers, key=lambda name: (name != own, -numbers[name]))[:N_LABELS]
    scores = [_score(step.safety, units, name, numbers[name], decides=name == own) for name in likely]
    begin, end = (verdict.get(name) for name in WORST)
    if isinstance(begin, int) and isinstance(end, int):
        scores.append(("worst window", f"bytes {begin:,} to {end:,}", ""))
    return scores


def _score(
    safety: SafetyPass, units: Mapping[str, str], name: str, found: float, *, decides: bool
) -> tuple[str, str, str]:
    limits = safety.limits.get(name, [])
    part = "decides" if decides and limits else ""
    return name.replace("_", " "), value_beside(found, limits, units.get(name, "")), part


def _terms_beside(spans: Sequence[MatchedSpan], own: str | None) -> list[tuple[str, str, str]]:
    """The heaviest terms with their rules, so that a list can be repaired."""
    terms = list(different_terms(span for span in spans if own is None or span.category == own))
    if not terms:
        return []
    words = [
        f"{_cut(mask(span.term))}{f' ×{times}' if times > 1 else ''} ({span.place})" for span, times in terms[:N_TERMS]
    ]
    more = f" and {len(terms) - N_TERMS} more" if len(terms) > N_TERMS else ""
    return [("terms" if len(terms) > 1 else "term", ", ".join(words) + more, "")]


def _cut(term: str) -> str:
    return term if len(term) <= _TERM_CHARS else f"{term[:_TERM_CHARS]}…"
