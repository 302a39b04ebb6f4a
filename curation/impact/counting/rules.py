"""Dead and wild rules: those that fired before the change and do no more, and those whose share moved more than tenfold.

Both sides judged the same documents, so what moved has moved; chance is only in how many of them a rule is about. A rule
that takes fewer documents since an earlier step drops them is not dead: only documents that still reach it are expected.
Rules that the settings never give, and those of which the sample says nothing, are told apart. The thresholds are those of
`curation.report.usual`, which compares a run with earlier ones, other documents; but a rule is dead from five documents on:
of five that fired before, none does by chance only if less than half do in truth (0.45^5 = 2 %).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from curation.impact.counting.figure_types import Estimate, RuleNote, Rules
from curation.impact.counting.intervals import SIGMAS, Ratios
from curation.impact.counting.reasons import off_reasons_of
from curation.impact.facts import Comparison, Outcome, SideFacts, StepFacts
from curation.report.numbers import NBSP, count, noun, share
from curation.report.usual import LEAST_EXPECTED, LEAST_FIRED, TIMES
from curation.wilson import wilson

__all__ = ["LEAST_DEAD", "rules_of"]

LEAST_DEAD = 5
"""Documents that a rule should take before it is dead if it takes none."""


@dataclass(frozen=True)
class _Fired:
    """How often one rule fired on each side, of how many documents that its step looked at."""

    before: int
    looked_before: int
    after: int
    looked_after: int
    expected: float
    """Documents on which it would fire now if it fired as before."""


def rules_of(comparison: Comparison, ratios: Ratios) -> Rules:
    """What is to be said of the rules of the new side.

    Raises:
        RunError: what a run found of its own rules is damaged.
    """
    notes: list[RuleNote] = []
    silent: list[str] = []
    off: list[str] = []
    for step in comparison.new.steps:
        base = comparison.base.step(step.name)
        off_now = off_reasons_of(comparison.new, step)
        off_before = off_reasons_of(comparison.base, base) if base else set()
        for reason in step.reasons:
            if reason in off_now:
                off.append(reason)
                continue
            known = base is not None and reason in base.reasons and reason not in off_before
            fired = _fired(comparison, ratios, base if known else None, step, reason)
            if fired.before == fired.after == 0:
                silent.append(reason)
            elif known and (note := _note(comparison.base, reason, fired)) is not None:
                notes.append(note)
    notes.sort(key=lambda note: note.kind != "dead")
    return Rules(tuple(notes), tuple(silent), tuple(off))


def _fired(comparison: Comparison, ratios: Ratios, base: StepFacts | None, step: StepFacts, reason: str) -> _Fired:
    """What breaks the rule, if both sides count that; else what was dropped for it."""
    cells = ratios.cells
    documents = cells.counts[0]
    dropped = int(documents[cells.dropped_for("before", reason)].sum()) if base else 0
    after = int(documents[cells.dropped_for("after", reason)].sum())
    looked = base.docs_in if base else 0
    reached = int(documents[cells.dropped_for("before", reason) & _reaches(comparison, ratios, step, reason)].sum())
    if base is None or base.hits is None or step.hits is None:
        hits = None if step.hits is None or base is not None else step.hits.get(reason)
        return _Fired(dropped, looked, after if hits is None else hits, step.docs_in, float(reached if base else 0))
    before = base.hits.get(reason, 0)
    # What breaks a rule is known by number alone; as many of them should still come here as of those dropped for it.
    part = reached / dropped if dropped >= LEAST_DEAD else step.docs_in / looked if looked else 0.0
    return _Fired(before, looked, step.hits.get(reason, 0), step.docs_in, before * part)


def _reaches(comparison: Comparison, ratios: Ratios, step: StepFacts, reason: str) -> npt.NDArray[np.bool_]:
    """Cells whose documents come as far as this rule on the new side: no step, and no rule, before it drops them."""
    places = {one.name: one.place for one in comparison.new.steps}
    order = list(step.reasons)

    def comes(outcome: Outcome) -> bool:
        if outcome.step is None or outcome.step not in places:
            return True
        if outcome.step != step.name:
            return places[outcome.step] > step.place
        if step.hits is not None or outcome.reason not in order:
            return True  # it counts what breaks a rule, whatever the rules before it say
        return order.index(outcome.reason) >= order.index(reason)

    fitting = np.array([comes(outcome) for outcome in ratios.cells.outcomes], np.bool_)
    found: npt.NDArray[np.bool_] = fitting[ratios.cells.keys["after"]]
    return found


def _note(base: SideFacts, reason: str, fired: _Fired) -> RuleNote | None:
    """A note, if the rule is dead or its share moved more than tenfold."""
    numbers = (
        f"{noun(fired.before, 'document')} of {count(fired.looked_before)} before "
        f"({_share(fired.before, fired.looked_before)}), {count(fired.after)} of {count(fired.looked_after)} now "
        f"({_share(fired.after, fired.looked_after)})"
    )
    if fired.after == 0:
        if fired.expected < LEAST_DEAD:
            return None
        text = (
            f"{reason} fires no more: {numbers}, though {noun(round(fired.expected), 'document')} that it should take "
            "still came to it. Look whether its score is there, and whether its comparison is the right way round."
        )
        return RuleNote("dead", reason, fired.before, 0, fired.expected, None, text)
    if TIMES * fired.after < fired.expected and fired.expected >= LEAST_EXPECTED:
        times = _times(fired.after, fired.expected)
        text = f"{reason} fires {_in_words(1 / times.value)} times less often: {numbers}. {_LOOK}"
        return RuleNote("seldom", reason, fired.before, fired.after, fired.expected, times, text)
    looked = fired.looked_after / fired.looked_before if fired.looked_before else math.inf
    if fired.after >= LEAST_FIRED and fired.after > TIMES * fired.before * looked:
        times = _times(fired.after, fired.before * looked)
        often = "although it never fired before" if not fired.before else f"{_in_words(times.value)} times as often"
        text = f"{reason} fires {often}: {numbers}. {_LOOK}"
        return RuleNote("often", reason, fired.before, fired.after, fired.expected, times, text)
    return None


_LOOK = "Look at its documents below: is this what the change is for?"


def _times(after: float, expected: float) -> Estimate:
    """How many times as often, with the interval of the share of all firings that are of the new side."""
    low, high = wilson(after, after + expected, SIGMAS)
    value = after / expected if expected else math.inf
    return Estimate(value, low / (1 - low) if low < 1 else math.inf, high / (1 - high) if high < 1 else math.inf)


def _in_words(times: float) -> str:
    return f"{times:,.0f}" if times >= 20 else f"{times:.3g}"


def _share(part: int, whole: int) -> str:
    return share(part, whole).replace(NBSP, " ")
