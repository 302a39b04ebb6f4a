"""The scores that decide of a document on both sides, with the limits that apply to it there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from curation.impact.facts import Outcome, StepFacts
from curation.impact.shown.side_rows import SideRows
from curation.matched_spans import MATCHED
from curation.report.samples import Place
from curation.verdicts import Step
from curation.what_if_outcomes import score_batch
from curation.what_if_samples import RowLimits, score_of_reason

__all__ = ["AskedStep", "DecidingScore", "ask_step", "deciding_scores", "score_behind"]

MAX_WORDS = 2
MAX_NUMBERS = 3
"""Scores with a limit that are shown where the reason is called as none of them."""
_UNSHOWN = frozenset({MATCHED, "kept_doc_id", "spans"})
"""Scores that the marks in the text, or the copy beside it, say better."""
_OF_COPIES = "similarity"


@dataclass(frozen=True, slots=True)
class DecidingScore:
    """A score that decides, with its value and its limits on both sides."""

    step: str
    name: str
    unit: str
    before: Any
    """None where the step had not looked at the document, or the score is undefined."""
    after: Any
    limits_before: tuple[float, ...]
    limits_after: tuple[float, ...]


@dataclass(frozen=True)
class AskedStep:
    """A step on one side, asked about one document."""

    facts: StepFacts
    known: Step | None
    """The step of this code; None where other code judged."""
    row: Mapping[str, Any]
    """Its verdict row."""
    by_row: RowLimits | None

    def limits(self, score: str) -> tuple[float, ...]:
        """The limits of a score that apply to the document."""
        if self.by_row is not None:
            return self.by_row.of(score, 0)
        return tuple(float(limit) for limit in self.facts.thresholds.get(score, ()))


def ask_step(side: SideRows, name: str, place: Place | None) -> AskedStep | None:
    """What a step of a side says of a document; None if the side lacks it, or it had not looked."""
    facts = side.side.step(name)
    row = side.row(facts, place) if facts is not None else None
    if facts is None or row is None or place is None:
        return None
    limits = None
    if (by_row := side.limits_by_row(facts)) is not None:
        limits = RowLimits(by_row, score_batch(by_row, side.table(facts, place[0]), np.array([place[1]], np.int64)))
    return AskedStep(facts, side.object_of(facts), row, limits)


def deciding_scores(
    sides: tuple[SideRows, SideRows], places: tuple[Place | None, Place | None], outcomes: tuple[Outcome, Outcome]
) -> list[DecidingScore]:
    """The scores of the steps that drop a document on one side or the other.

    Args:
        places: of the document on each side.
        outcomes: what becomes of it there.
    """
    found = []
    for name in dict.fromkeys(outcome.step for outcome in outcomes if outcome.step is not None):
        before, after = (ask_step(side, name, place) for side, place in zip(sides, places, strict=True))
        reasons = [outcome.reason for outcome in outcomes if outcome.step == name and outcome.reason]
        found += [score_of(before, after, score) for score in _names(before, after, reasons)]
    return found


def score_of(before: AskedStep | None, after: AskedStep | None, name: str) -> DecidingScore:
    """One score of a step as it stands on both sides, of which one at least has looked."""
    step = next(one.facts for one in (after, before) if one is not None)
    values = [one.row.get(name) if one is not None else None for one in (before, after)]
    limits = [one.limits(name) if one is not None else () for one in (before, after)]
    return DecidingScore(step.name, name, step.units.get(name, ""), values[0], values[1], limits[0], limits[1])


def score_behind(asked: AskedStep, reason: str) -> str | None:
    """The score that a reason is about, if one can be named."""
    return score_of_reason(asked.known, reason, list(asked.facts.units))


def _names(before: AskedStep | None, after: AskedStep | None, reasons: Sequence[str]) -> list[str]:
    """The scores that reasons are about; else those of their category; else those whose limits differ, or that have one."""
    asked = [one for one in (before, after) if one is not None]
    known = list(dict.fromkeys(name for one in asked for name in one.facts.units if name not in _UNSHOWN))
    named = {score_behind(one, reason) for one in asked for reason in reasons}
    if found := [name for name in known if name in named]:
        return found
    if _OF_COPIES in known:
        return [_OF_COPIES]
    limits = {name: [one.limits(name) for one in asked] for name in known}
    limited = [name for name in known if any(limits[name])]
    whys = tuple(f"{reason.partition('.')[2]}_" for reason in reasons)
    own = [name for name in limited if name.startswith(whys)]
    moved = [name for name in limited if len(asked) > 1 and limits[name][0] != limits[name][1]]
    if own or moved:
        return (own or moved)[:MAX_NUMBERS]
    # No limit has moved: a policy has, or the step is new. What it found in words comes first.
    return ([*_in_words(asked, known), *limited] or known)[: MAX_NUMBERS + 1]


def _in_words(asked: Sequence[AskedStep], known: Sequence[str]) -> list[str]:
    """Scores that are words, and the first list: what a step found, where a policy decides."""
    values = {name: next((one.row[name] for one in asked if one.row.get(name) is not None), None) for name in known}
    words = [name for name in known if isinstance(values[name], str)][:MAX_WORDS]
    lists = [name for name in known if isinstance(values[name], list) and values[name]][:1]
    return [*words, *lists]
