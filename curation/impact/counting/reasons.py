"""The share of every reason before and after, and which reasons the settings of a side never give."""

from __future__ import annotations

import json
from collections.abc import Sequence

from curation.errors import CorpusmillError
from curation.impact.counting.figure_types import ReasonLine
from curation.impact.counting.intervals import Ratios
from curation.impact.facts import Comparison, Outcome, SideFacts, StepFacts
from curation.report.usual import usual_of
from curation.report.usual_sources import off_by_settings, off_reasons
from curation.routes import ROUTED_SUFFIX
from curation.steps import step_class

__all__ = ["off_reasons_of", "reason_lines"]


def off_reasons_of(side: SideFacts, step: StepFacts) -> set[str]:
    """Reasons of a step that the settings of its side never give: their silence says nothing.

    The side's own run says so if it has a report of these verdicts. Else the step says so if this code judged; of other code
    the settings as they lie on disk must say it.

    Raises:
        RunError: what the run found is damaged.
    """
    told = usual_of(side.run_folder / "report", step.name, step.digest).get("off")
    if told is None:
        told = _asked(step) if side.commit is None else None
    if told is None:
        told = off_by_settings(step.config, step.reasons, step.hits)
        if '"route:' not in json.dumps(step.config, default=str):
            told.add(f"{step.name}{ROUTED_SUFFIX}")
    return {reason for reason in told if reason in step.reasons}


def _asked(step: StepFacts) -> set[str] | None:
    """What the step of this code says; None if the settings or reasons are not those of this code."""
    if all(reason.partition(".")[2] in step.thresholds for reason in step.reasons):
        return set()  # each has a limit that applies; a step that must open its model to say so takes a second
    try:
        kind = step_class(step.name)
        known = kind(kind.Config.model_validate(dict(step.config)))
    except (ValueError, CorpusmillError):
        return None
    if list(known.reasons) != list(step.reasons):
        return None
    return off_reasons(known, {"facts": {} if step.hits is None else {"hits": step.hits}})


def reason_lines(comparison: Comparison, ratios: Ratios, steps: Sequence[str]) -> tuple[ReasonLine, ...]:
    """A line for each reason of either side, in the order of `steps` and of their reasons.

    Raises:
        RunError: what a run found of its own rules is damaged.
    """
    lines = []
    for name in steps:
        base, new = comparison.base.step(name), comparison.new.step(name)
        off_base = off_reasons_of(comparison.base, base) if base else set()
        off_new = off_reasons_of(comparison.new, new) if new else set()
        sentences = {**(dict(base.reasons) if base else {}), **(dict(new.reasons) if new else {})}
        for reason in _merged(new, base, name, comparison.outcomes):
            on_base = base is not None and reason in base.reasons
            on_new = new is not None and reason in new.reasons
            state = _state(on_base, on_new, reason in off_base, reason in off_new)
            lines.append(_line(ratios, reason, name, sentences.get(reason, ""), state, base, new))
    return tuple(lines)


def _merged(new: StepFacts | None, base: StepFacts | None, name: str, outcomes: Sequence[Outcome]) -> list[str]:
    """Reasons in the order of the new side, then those of the base alone, then those that only stand in verdicts."""
    found = [*(new.reasons if new else ()), *(base.reasons if base else ())]
    found += [outcome.reason for outcome in outcomes if outcome.step == name and outcome.reason is not None]
    return list(dict.fromkeys(found))


def _state(on_base: bool, on_new: bool, off_base: bool, off_new: bool) -> str:
    if on_base != on_new:
        return "new" if on_new else "gone"
    if off_base != off_new:
        return "switched on" if off_base else "switched off"
    return "both"


def _line(
    ratios: Ratios, reason: str, step: str, sentence: str, state: str, base: StepFacts | None, new: StepFacts | None
) -> ReasonLine:
    cells = ratios.cells
    before, after = cells.dropped_for("before", reason), cells.dropped_for("after", reason)
    return ReasonLine(
        reason=reason,
        step=step,
        sentence=sentence,
        state=state,
        before=ratios.part(before, cells.all),
        after=ratios.part(after, cells.all),
        difference=ratios.difference(after & ~before, before & ~after, cells.all),
        hits_before=None if base is None or base.hits is None else base.hits.get(reason, 0),
        hits_after=None if new is None or new.hits is None else new.hits.get(reason, 0),
    )
