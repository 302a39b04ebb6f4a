"""What a change-impact sheet says, ready to be shown: the verdict in words, the tables, the documents, how it was made."""

from __future__ import annotations

import math
import platform
import re
from collections.abc import Sequence
from dataclasses import dataclass

from curation.impact.config import ImpactConfig
from curation.impact.counting.bounds import BrokenBound
from curation.impact.counting.bounds_before import BoundChange
from curation.impact.counting.figure_types import Figures, RuleNote
from curation.impact.facts import Comparison
from curation.impact.shown.documents import Documents, ShownDocument
from curation.report.impact_changes import Change, changes_of
from curation.report.impact_costs import corpus_table, cost_table, labelled_words
from curation.report.impact_numbers import amount, interval, percent, signed
from curation.report.impact_table import Table, group_name
from curation.report.impact_tables import filter_table, group_tables, reason_table, totals_table
from curation.report.numbers import noun
from curation.run import code_version

__all__ = ["Bound", "DocumentGroup", "View", "called", "view_of"]

MAX_FILES = 5
MAX_LANGUAGES = 8
"""Languages that a line about bounds names, the worst first."""
_FOLDERS = re.compile(r"(?<!\S)/\S*/(?=[^\s/])")
_KINDS = {"dead": "dead", "often": "more than tenfold", "seldom": "a tenth and less"}


@dataclass(frozen=True, slots=True)
class Bound:
    """A bound of the config and whether it holds."""

    holds: bool
    text: str


@dataclass(frozen=True)
class DocumentGroup:
    """Documents under one heading."""

    anchor: str
    title: str
    note: str
    kind: str
    """kept, dropped or border: its colour."""
    documents: Sequence[ShownDocument]
    open: bool


@dataclass(frozen=True)
class View:
    """Everything that a page or a Markdown file shows."""

    title: str
    level: str
    """done: within bounds; bad: a bound is broken; look: there are none, or the change loosens them."""
    verdict: str
    sentences: Sequence[str]
    bounds: Sequence[Bound]
    loosened: Sequence[str]
    """Bounds that the change itself raises or drops, a sentence each."""
    is_bounded: bool
    """Whether the new side's config has bounds."""
    changes: Sequence[Change]
    totals: Table
    filters: Table
    groups: Sequence[Table]
    reasons: Table
    rules: Sequence[tuple[str, RuleNote]]
    """With its kind in words."""
    silent: Sequence[str]
    off: Sequence[str]
    documents: Sequence[DocumentGroup]
    border: Sequence[DocumentGroup]
    costs: Table
    corpus: Table | None
    made: Sequence[tuple[str, str]]
    command: str


def view_of(
    comparison: Comparison,
    figures: Figures,
    broken: Sequence[BrokenBound],
    documents: Documents,
    *,
    bounds: ImpactConfig | None,
    bound_changes: Sequence[BoundChange] = (),
    loosened: Sequence[str] = (),
    command: str = "",
) -> View:
    """The view of a change.

    Args:
        bounds: of the new side's config; None: it has none.
        bound_changes: bounds that are other ones on the base.
        loosened: a sentence for each that the change itself raises or drops.
        command: that makes this sheet again.
    """
    is_bounded = bounds is not None and bounds.bounds_anything
    level = "bad" if broken else "done" if is_bounded and not loosened else "look"
    return View(
        title=f"{called(comparison.new.label)} beside {called(comparison.base.label)}",
        level=level,
        verdict=_verdict(level, is_bounded=is_bounded, is_loosened=bool(loosened)),
        sentences=[*_sentences(figures), *labelled_words(figures)],
        bounds=_bounds(figures, broken, bounds),
        loosened=loosened,
        is_bounded=is_bounded,
        changes=[*changes_of(comparison), *(Change(one.key, one.kind, *one.words()) for one in bound_changes)],
        totals=totals_table(figures),
        filters=filter_table(figures),
        groups=group_tables(figures),
        reasons=reason_table(figures),
        rules=[(_KINDS.get(note.kind, note.kind), note) for note in figures.rules.notes],
        silent=figures.rules.silent,
        off=figures.rules.off,
        documents=_document_groups(figures, documents),
        border=_border_groups(documents),
        costs=cost_table(figures),
        corpus=corpus_table(figures),
        made=_made(comparison),
        command=command,
    )


def _verdict(level: str, *, is_bounded: bool, is_loosened: bool) -> str:
    if level != "look":
        return {"bad": "Out of bounds", "done": "Within its bounds"}[level]
    if is_bounded:
        return "Within bounds that the change itself loosens"
    return "The change removes its bounds" if is_loosened else "No bounds are set"


def _sentences(figures: Figures) -> list[str]:
    """What a reader must know first."""
    all_documents, tokens = figures.totals.documents, figures.totals.tokens
    moved = all_documents.leaves.count + all_documents.comes_in.count
    kept = f"{amount(all_documents.before, weighted=figures.weighted)} documents"
    if not moved:
        sure = (
            f": less than {percent(all_documents.moved.high)} of them would, with 95 % certainty"
            if all_documents.moved
            else ""
        )
        also = figures.totals.changes_reason.count
        words = [f"No document changes sides. The base keeps {kept}{sure}."]
        return [*words, f"{noun(also, 'document')} stay out for another reason."] if also else words
    sides = []
    for part, word in ((all_documents.leaves, "leave"), (all_documents.comes_in, "come in")):
        share = "" if part.share is None else f" ({percent(part.share.value)}; {interval(part.share)})"
        number = amount(part, weighted=figures.weighted)
        sides.append(f"{number} {_verb(word, number)}{share}" if part.count else f"none {_verb(word, '1')}")
    words = [f"Of {kept} that the base keeps {sides[0]}; {sides[1]}."]
    if tokens.net is not None:
        words.append(f"The corpus changes by {signed(tokens.net.value)} of its tokens ({interval(tokens.net)}).")
    words += _by_whom(figures)
    return words


def called(label: str) -> str:
    """A side or a sample, files by their name: where they lie is told elsewhere."""
    return _FOLDERS.sub("", label)


def _verb(word: str, number: str) -> str:
    return word if number != "1" else {"leave": "leaves", "come in": "comes in"}[word]


def _by_whom(figures: Figures) -> list[str]:
    """The filters and the language that move most."""
    words = []
    for side, verb in (("leaves", "Dropped by"), ("comes_in", "Let in by")):
        counts = {one.name: getattr(one, side)["documents"].count for one in figures.filters}
        ranked = sorted((name for name in counts if counts[name]), key=lambda name: (-counts[name], name))[:3]
        if ranked:
            words.append(f"{verb} {', '.join(f'{name} ({counts[name]:,})' for name in ranked)}.")
    moving = [
        group for group in figures.languages if group.documents.moved is not None and group.documents.before.count >= 30
    ]
    worst = max(moving, key=lambda group: group.documents.moved.value if group.documents.moved else 0.0, default=None)
    if (
        worst is not None
        and worst.documents.moved is not None
        and worst.documents.moved.value > 0
        and len(figures.languages) > 1
    ):
        found = worst.documents.moved
        words.append(
            f"Most moves in {group_name(worst.name)}: {percent(found.value)} of its documents ({interval(found)})."
        )
    return words


def _bounds(figures: Figures, broken: Sequence[BrokenBound], bounds: ImpactConfig | None) -> list[Bound]:
    found = _broken(figures, broken)
    if bounds is None:
        return found
    keys = {one.key for one in broken}
    moved = figures.totals.documents.moved
    if bounds.max_kept_change is not None and "impact.max_kept_change" not in keys:
        share = "nothing" if moved is None else percent(moved.value)
        found.append(
            Bound(True, f"all documents: {share} moves, {percent(bounds.max_kept_change)} may (impact.max_kept_change)")
        )
    if bounds.max_language_change is not None and "impact.max_language_change" not in keys:
        which = f"each language with {bounds.least_documents} documents or more"
        limit_words = percent(bounds.max_language_change)
        found.append(Bound(True, f"{which}: at most {limit_words} may move, and does (impact.max_language_change)"))
    for language, limit in bounds.languages.items():
        if f"impact.languages.{language}" not in keys:
            found.append(
                Bound(True, f"{language}: at most {percent(limit)} may move, and does (impact.languages.{language})")
            )
    return found


def _broken(figures: Figures, broken: Sequence[BrokenBound]) -> list[Bound]:
    """A line for all documents, and one for the languages that a bound is about."""
    found = []
    by_key: dict[tuple[str, float], list[BrokenBound]] = {}
    for one in broken:
        if one.language is None:
            moved = figures.totals.documents.moved
            sure = f" ({interval(moved)})" if moved is not None else ""
            found.append(
                Bound(False, f"all documents: {percent(one.found)} moves{sure}, {percent(one.limit)} may ({one.key})")
            )
        else:
            by_key.setdefault((one.key, one.limit), []).append(one)
    for (key, limit), ones in by_key.items():
        named = [
            f"{one.language} {percent(one.found) if math.isfinite(one.found) else '(none kept before)'}" for one in ones
        ]
        more = f" and {len(named) - MAX_LANGUAGES} more" if len(named) > MAX_LANGUAGES else ""
        found.append(
            Bound(False, f"{', '.join(named[:MAX_LANGUAGES])}{more}: {percent(limit)} may move in each ({key})")
        )
    return found


def _document_groups(figures: Figures, documents: Documents) -> list[DocumentGroup]:
    totals = figures.totals
    groups = []
    for anchor, title, kind, shown, n in (
        ("dropped", "Newly dropped", "dropped", documents.dropped, totals.documents.leaves.count),
        ("kept", "Newly kept", "kept", documents.kept, totals.documents.comes_in.count),
        ("other", "Dropped for another reason", "neutral", documents.other, totals.changes_reason.count),
    ):
        note = (
            f"{n:,} in the sample"
            if n == len(shown)
            else f"{len(shown):,} of {n:,} in the sample, spread over reasons and languages"
        )
        if n or anchor != "other":
            groups.append(
                DocumentGroup(anchor, title, note if n else "none in the sample", kind, shown, anchor != "other")
            )
    return groups


def _border_groups(documents: Documents) -> list[DocumentGroup]:
    return [
        DocumentGroup("border-kept", "Just kept", "on both sides", "kept", documents.border_kept, True),
        DocumentGroup("border-dropped", "Just dropped", "on both sides", "dropped", documents.border_dropped, True),
    ]


def _made(comparison: Comparison) -> list[tuple[str, str]]:
    """How the sheet was made, so that anyone can make it again."""
    sample = comparison.sample
    files = ", ".join(sample.files[:MAX_FILES])
    more = f" and {len(sample.files) - MAX_FILES:,} more" if len(sample.files) > MAX_FILES else ""
    drawn = f", drawn from {sample.population:,}" if sample.population is not None else ""
    quarantined = f"; {noun(sample.quarantined, 'line')} in quarantine" if sample.quarantined else ""
    return [
        ("sample", f"{sample.name}: {sample.about}"),
        ("documents", f"{sample.documents:,}{drawn}{quarantined}"),
        ("sha256", sample.sha256),
        ("files", files + more if files else "-"),
        ("base", _side_words(comparison.base.label, comparison.base.commit, comparison.base.run_folder.name)),
        ("new", _side_words(comparison.new.label, comparison.new.commit, comparison.new.run_folder.name)),
        ("tokens", f"counted by the tokenizer {comparison.tokenizer}"),
        ("versions", f"corpusmill {code_version()}, Python {platform.python_version()}"),
    ]


def _side_words(label: str, commit: str | None, run: str) -> str:
    code = f"code of commit {commit}" if commit else "the code that wrote this sheet"
    return f"{label}; {code}; run {run}"
