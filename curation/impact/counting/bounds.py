"""Whether a change moves more than its config says: each bound that is broken, in a sentence."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from curation.impact.config import ImpactConfig
from curation.impact.counting.figure_types import Estimate, Figures, Group
from curation.report.numbers import count

__all__ = ["BrokenBound", "broken_bounds", "percent_of", "unchecked_bounds"]

_ROUNDING = 1e-9
"""Relative; sums of weights are not exact."""


@dataclass(frozen=True, slots=True)
class BrokenBound:
    """A bound that the change breaks."""

    key: str
    """Of the config: `impact.max_kept_change`."""
    language: str | None
    """None: of all documents."""
    limit: float
    found: float
    """Share of the documents that the base keeps; infinite if it keeps none of the language."""
    text: str
    """One sentence or more: limit, found, language, what to do."""


def broken_bounds(figures: Figures, config: ImpactConfig | None) -> list[BrokenBound]:
    """The bounds that the change breaks: that of all documents first, then languages, the worst first.

    Compared is what was found in the sample, by weights; its interval is told, but decides nothing: the same change on the
    same sample is always judged alike.

    Args:
        config: of the new side; None: no bounds.
    """
    if config is None:
        return []
    found = []
    if config.max_kept_change is not None:
        found += _broken(figures.totals, None, "impact.max_kept_change", config.max_kept_change)
    languages = []
    for group, key, limit in _bounds_of_languages(figures, config):
        languages += _broken(group, group.name, key, limit)
    return found + sorted(languages, key=lambda one: (-one.found, one.language or ""))


def unchecked_bounds(figures: Figures, config: ImpactConfig | None) -> list[str]:
    """Sentences about bounds of single languages that the sample cannot check, since it has no document of them."""
    known = {group.name: group for group in figures.languages}
    missing = [] if config is None else [name for name in config.languages if name not in known]
    return [
        f"impact.languages.{name} bounds nothing: the sample has no document of {name}. It has: "
        f"{', '.join(sorted(known)) or 'none'}. Add documents of it to the sample, or take the bound out."
        for name in missing
    ]


def _bounds_of_languages(figures: Figures, config: ImpactConfig) -> Iterator[tuple[Group, str, float]]:
    """Each language that has a bound, with the bound's key and limit."""
    for group in figures.languages:
        if group.name in config.languages:
            yield group, f"impact.languages.{group.name}", config.languages[group.name]
        elif config.max_language_change is not None:
            # By either side: a language that was dropped wholly and comes in now must not slip through.
            documents = max(group.documents.before.count, group.documents.after.count)
            if documents >= config.least_documents:
                yield group, "impact.max_language_change", config.max_language_change


def _broken(group: Group, language: str | None, key: str, limit: float) -> list[BrokenBound]:
    moves = group.documents
    moving = moves.leaves.count + moves.comes_in.count
    if not moving:
        return []
    found = math.inf if moves.moved is None else moves.moved.value
    if found <= limit * (1 + _ROUNDING):
        return []
    of = f"of language {language} " if language else ""
    if moves.moved is None:
        told = f"{_documents(moves.comes_in.count)} {of}come in, of which the base keeps none"
    else:
        told = (
            f"{percent_of(found, limit)} of the documents {of}that the base keeps leave or come in ({_interval(moves.moved)}; "
            f"{count(moves.leaves.count)} leave and {count(moves.comes_in.count)} come in, "
            f"of {count(moves.before.count)} in the sample)"
        )
    advice = (
        "Look at the sheet: if this is what the change is for, raise the bound in the config in the same change; "
        "if not, mend the change."
    )
    return [BrokenBound(key, language, limit, found, f"{told}; {key} allows {percent_of(limit, found)}. {advice}")]


def _documents(number: int) -> str:
    return f"{number:,} document{'' if number == 1 else 's'}"


def _interval(estimate: Estimate) -> str:
    return f"95 %: {percent_of(estimate.low)} to {percent_of(estimate.high)}"


def percent_of(number: float, beside: float | None = None) -> str:
    """With as many digits as tell it from another number."""
    for digits in range(2, 9):
        text = f"{100 * number:.{digits}f}"
        if beside is None or text != f"{100 * beside:.{digits}f}":
            break
    whole, _, rest = text.partition(".")
    rest = rest.rstrip("0")
    return f"{whole}.{rest} %" if rest else f"{whole} %"
