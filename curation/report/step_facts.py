"""What a step says about itself beside its verdicts, as a block of its section.

Facts are plain data in the step's `_done.json`. A step with more to say than names and numbers has a view: a function
from its facts to a `FactsView`, named in `VIEWS` and loaded only if such a step is in the run. Any other step with facts
gets them as a table. A view takes what is there: a run of another version of the code may know less, or more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any

from markupsafe import Markup

from curation.report.numbers import noun, value
from curation.routes import SET_ASIDE

__all__ = ["VIEWS", "Count", "Fact", "FactsView", "alarms_of", "facts_view", "number", "text_of"]

VIEWS: Mapping[str, str] = {
    "near": "curation.report.near_view:near_view",
    "perplexity": "curation.report.perplexity_view:perplexity_view",
}
"""For each step that has one, the import path of its view."""

MAX_FACTS = 40


@dataclass(frozen=True, slots=True)
class Fact:
    """A line: what, its value, and what follows from it."""

    name: str
    value: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Count:
    """A row of a table with bars."""

    name: str
    n: int
    note: str = ""


@dataclass(frozen=True)
class FactsView:
    """The block: a drawing, lines beside it, a table of counts below."""

    title: str
    facts: Sequence[Fact]
    figure: Markup | None = None
    figure_title: str = ""
    figure_note: str = ""
    counts_caption: str = ""
    counts_head: str = ""
    counts_of: str = "dropped"
    """What the table counts."""
    counts: Sequence[Count] = ()
    replaces: frozenset[str] = field(default_factory=frozenset)
    """Scores that need no drawing or table of their own beside this block."""


def facts_view(step: str, facts: Mapping[str, Any]) -> FactsView | None:
    """The block of a step; None if it says nothing."""
    if not facts:
        return None
    if step in VIEWS:
        module, _, name = VIEWS[step].partition(":")
        view: Callable[[Mapping[str, Any]], FactsView] = getattr(import_module(module), name)
        shown = view(facts)
        return replace(shown, facts=[*_set_aside(facts.get(SET_ASIDE)), *shown.facts])
    lines = _set_aside(facts.get(SET_ASIDE))
    lines += [
        Fact(name.replace("_", " "), text)
        for name in facts
        if name not in ("alarms", "hits", SET_ASIDE) and (text := text_of(facts[name]))
    ]
    return FactsView("What the step says", lines[:MAX_FACTS]) if lines else None


def _set_aside(found: Any) -> list[Fact]:
    """A line for each named output, with the command that writes it."""
    return [
        Fact(f"set aside for {name}", noun(n, "document"), f"corpusmill export RUN --route {name} --output FILE")
        for name, n in (found.items() if isinstance(found, Mapping) else ())
        if isinstance(n, int)
    ]


def alarms_of(facts: Mapping[str, Any]) -> list[str]:
    """Sentences that a reader must see."""
    found = facts.get("alarms")
    return [alarm for alarm in found if isinstance(alarm, str)] if isinstance(found, list) else []


def number(facts: Mapping[str, Any], name: str) -> float | None:
    """A number of the facts; None if there is no such number, or none that a float can hold."""
    found = facts.get(name)
    return found if isinstance(found, int | float) and not isinstance(found, bool) and _is_finite(found) else None


def _is_finite(found: float) -> bool:
    """Also false for whole numbers beyond a float's range: JSON holds any."""
    try:
        return math.isfinite(found)
    except OverflowError:
        return False


def text_of(found: Any) -> str:
    """A fact in one line; empty if it does not fit into one."""
    if isinstance(found, bool):
        return "yes" if found else "no"
    if isinstance(found, int | float):
        return value(found) if _is_finite(found) else str(found)
    if isinstance(found, str):
        return found
    if isinstance(found, Mapping):
        parts = [f"{name} {text}" for name, inner in found.items() if (text := text_of(inner))]
    elif isinstance(found, list):
        parts = [text_of(inner) for inner in found]
    else:
        return ""
    return ", ".join(parts) if len(parts) <= 12 and all(parts) else ""
