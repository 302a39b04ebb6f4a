"""The tables of a step that looks for unsafe text: what each category took, which terms fire, what a cascade misses.

Numbers by category are counted from the verdict files; terms and the cascade's estimate are facts of the step
(`curation.safety_facts`). A run of another version may know less of them: what is not there is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from curation.report.collect import StepPass
from curation.report.masking import mask
from curation.report.numbers import NBSP, count, noun, share, value
from curation.report.safety_pass import Category, SafetyPass
from curation.report.step_facts import number
from curation.safety_facts import MOST_TERMS, cascade_facts
from quality_models.safety_labels import CATEGORIES

__all__ = ["CategoryRow", "SafetyView", "TermRow", "TermTable", "other_facts", "safety_view"]

SHOWN_FACTS = frozenset({"terms", "different_terms", "forgotten_terms", "cascade"})
"""Facts that are shown here and need no line in the step's block."""
_TERM_CHARS = 160


@dataclass(frozen=True, slots=True)
class CategoryRow:
    """Documents of one category: hit = dropped + elsewhere + kept."""

    reason: str
    sentence: str
    hit: int
    dropped: int
    elsewhere: int
    kept: int


@dataclass(frozen=True, slots=True)
class TermRow:
    """A term with its documents."""

    term: str
    place: str
    rule: str
    documents: int
    dropped: int
    alone: int


@dataclass(frozen=True, slots=True)
class TermTable:
    """The terms of a category that stand in most documents."""

    caption: str
    rows: list[TermRow]


@dataclass(frozen=True)
class SafetyView:
    """Everything beside samples and scores."""

    what_hit: str
    """What makes a document one of a category."""
    rows: list[CategoryRow]
    sentences: list[str] = field(default_factory=list)
    terms: list[TermTable] = field(default_factory=list)
    n_terms: int = 0


def other_facts(step: StepPass) -> Mapping[str, Any]:
    """The facts of a step that have no place of their own here."""
    facts = step.step.facts
    return facts if step.safety is None else {name: facts[name] for name in facts if name not in SHOWN_FACTS}


def safety_view(step: StepPass) -> SafetyView | None:
    """The tables of a step; None if it does not look for unsafe text."""
    if step.safety is None:
        return None
    terms = list(_term_tables(step.step.facts, step.safety))
    return SafetyView(
        what_hit="a term of it was found" if step.safety.kind == "terms" else "its score reaches the limit",
        rows=[_row(category, step) for category in step.safety.categories.values()],
        sentences=[*_reading(step.safety), *_cascade(step.step.facts.get("cascade"))],
        terms=terms,
        n_terms=sum(len(table.rows) for table in terms),
    )


def _row(category: Category, step: StepPass) -> CategoryRow:
    reason = f"{step.step.name}.{category.name}"
    sentence = step.step.card["reasons"].get(reason) or CATEGORIES.get(category.name, "")
    return CategoryRow(reason, sentence, category.hit, category.dropped, category.elsewhere, category.kept)


def _reading(safety: SafetyPass) -> Iterator[str]:
    if safety.kind == "model" and safety.docs_in:
        read = safety.docs_in - safety.unread
        yield (
            f"The model read {count(read)} of {noun(safety.docs_in, 'document')} ({share(read, safety.docs_in)})."
            if safety.unread
            else f"The model read all {noun(safety.docs_in, 'document')}."
        )


def _cascade(found: Any) -> Iterator[str]:
    """What the cascade is likely to miss, with the 95 % interval of the share."""
    if not isinstance(found, Mapping):
        return
    audited, unsafe, unread = (number(found, key) for key in ("audited", "audited_unsafe", "documents_not_read"))
    if audited is None or unsafe is None or unread is None or not 0 <= unsafe <= audited or unread < 0:
        return
    if not audited:
        yield (
            f"What the cascade misses: {noun(int(unread), 'document')} not read, and none of the like was drawn at random and "
            "read, so nobody can say. Raise the share of the audit sample."
        )
        return
    own = cascade_facts(int(audited), int(unsafe), int(unread))
    estimate, low, high = (_share_of(found, own, key) for key in ("estimate", "low", "high"))
    yield (
        f"What the cascade misses: of {noun(int(audited), 'document')} that it would not have given to the model, drawn at "
        f"random and read all the same, {count(unsafe)} {'was' if unsafe == 1 else 'were'} unsafe. So about "
        f"{value(estimate, 'share')} of the {noun(int(unread), 'document')} left unread are likely to be unsafe (95{NBSP}% "
        f"interval {value(low, 'share')} to {value(high, 'share')}): {count(estimate * unread)} documents, between "
        f"{count(low * unread)} and {count(high * unread)}."
    )


def _share_of(found: Mapping[str, Any], own: Mapping[str, Any], key: str) -> float:
    """A share as the step gives it, else from its counts."""
    given = number(found, key)
    return given if given is not None and 0 <= given <= 1 else float(own[key])


def _term_tables(facts: Mapping[str, Any], safety: SafetyPass) -> Iterator[TermTable]:
    """A table for each category, in the order of the step's own."""
    terms, different = facts.get("terms"), facts.get("different_terms")
    if not isinstance(terms, Mapping):
        return
    for name in [*safety.categories, *(str(key) for key in terms if key not in safety.categories)]:
        lines = terms.get(name)
        rows = [row for line in lines if (row := _term_row(line))] if isinstance(lines, list) else []
        if rows:
            n = number(different, name) if isinstance(different, Mapping) else None
            known = max(int(n or 0), len(rows))
            caption = f"{name}: {noun(known, 'term')} found" + (f", the first {len(rows)}" if known > len(rows) else "")
            yield TermTable(caption, rows[:MOST_TERMS])


def _term_row(line: Any) -> TermRow | None:
    if not isinstance(line, Mapping) or not isinstance(line.get("term"), str):
        return None
    documents, dropped, alone = (number(line, key) or 0 for key in ("documents", "dropped", "alone"))
    rule = str(line.get("rule", ""))
    term = mask(line["term"])
    shown = term if len(term) <= _TERM_CHARS else f"{term[:_TERM_CHARS]}…"
    return TermRow(shown, rule.replace("\\", "/").rpartition("/")[2], rule, int(documents), int(dropped), int(alone))
