"""A change-impact sheet as Markdown: the whole of it, and a short text for a pull request.

What the crawl says stands in code spans and fenced blocks that it cannot close, one character as one character: it makes no
heading, table cell, link, mention or picture, and commands no terminal. Places that triggered a document stand between ⟦ and ⟧.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from curation.impact.counting.figure_types import Figures
from curation.impact.facts import Comparison, Outcome
from curation.impact.shown.documents import ShownDocument
from curation.report.excerpt import cut
from curation.report.impact_numbers import interval, limits_words, percent, score_words
from curation.report.impact_table import Cell, Table, group_name
from curation.report.impact_view import DocumentGroup, View, called
from curation.report.numbers import NBSP, noun, value
from curation.report.span_excerpt import Mark
from curation.terminal import printable, printable_lines

__all__ = ["code", "fenced", "inline", "pull_request", "sheet_markdown"]

_SPECIAL = re.compile(r"[\\`*\[\]<>|~&$@#]|(?<![^\W_])_|_(?![^\W_])")
_BEGINS_A_BLOCK = re.compile(r"^(\s*)([-+=]+(?=\s|$))|^(\s*\d+)([.)](?=\s|$))")
_BACKTICKS = re.compile("`+")
_MADE_A_LINK = re.compile(
    r"[^\s|`]*(?::/|www\.|@|\bGH-\d|#\d|:[a-z0-9_+-]+:)[^\s|`]*",
    re.IGNORECASE,
)
"""Words that GitHub and GitLab make links, mentions or pictures, escaped or not: they look at the text that is shown."""
MAX_WORST = 5
LEAST_DOCUMENTS = 30
"""That the base keeps of a language which a pull request names."""
MAX_SAID = 4
"""Bounds and rules that a pull request names; the sheet has all."""
MAX_LOOSENED = 2
_LINE_CHARS = 300
_NOTE_CHARS = 1000


def inline(text: str) -> str:
    """Text in a line of Markdown, in a table too: as it stands, on one line; addresses and names in code spans."""
    shown = printable(text.replace(NBSP, " ")).strip(" ")
    parts, end = [], 0
    for word in _MADE_A_LINK.finditer(shown):
        parts += [_SPECIAL.sub(r"\\\g<0>", shown[end : word.start()]), f"`{word[0]}`"]
        end = word.end()
    escaped = "".join([*parts, _SPECIAL.sub(r"\\\g<0>", shown[end:])])
    return _BEGINS_A_BLOCK.sub(lambda m: f"{m[1] or m[3] or ''}\\{m[2] or m[4]}", escaped)


def code(text: str, *, in_table: bool = False) -> str:
    """Text as a code span.

    Args:
        in_table: a pipe would end a cell there, even in code; elsewhere its backslash would be shown.
    """
    shown = printable(text.replace(NBSP, " ")) or " "
    shown = shown.replace("|", "\\|") if in_table else shown
    ticks = "`" * (1 + max((len(run) for run in _BACKTICKS.findall(shown)), default=0))
    pad = " " if shown[0] in "` " or shown[-1] in "` " else ""
    return f"{ticks}{pad}{shown}{pad}{ticks}"


def fenced(text: str, language: str = "text") -> str:
    """Text as a fenced block, line breaks as they are."""
    shown = printable_lines(text)
    ticks = "`" * max(3, 1 + max((len(run) for run in _BACKTICKS.findall(shown)), default=0))
    return f"{ticks}{language}\n{shown}\n{ticks}"


def sheet_markdown(comparison: Comparison, figures: Figures, view: View) -> str:
    """The whole sheet."""
    parts = [
        f"# Change-impact sheet: {inline(cut(view.title, _LINE_CHARS))}",
        f"**{view.verdict}**",
        *(inline(sentence) for sentence in view.sentences),
        _list(
            [
                *_loosened_lines(view),
                *_bound_lines(view),
                *(inline(cut(text, _NOTE_CHARS)) for text in comparison.notes),
            ]
        ),
        "## What was changed",
        _changes(view),
        *_section(view.totals),
        *_section(view.filters),
        *(part for table in view.groups for part in _section(table)),
        *_section(view.reasons),
        "## Documents",
        *(part for group in view.documents for part in _documents(group, 3)),
        "## Borderline",
        "Documents that stay where they are, nearest to a limit of a changed filter.",
        *(part for group in view.border for part in _documents(group, 3)),
        "## Dead and wild rules",
        *_rules(view),
        *_section(view.costs),
        *(_section(view.corpus) if view.corpus is not None else ()),
        "## How it was made",
        *([fenced(view.command, "sh")] if view.command else []),
        _list([f"{name}: {code(cut(told, _NOTE_CHARS))}" for name, told in view.made]),
        "## Signature",
        "Who lets this change in has looked at the documents above.",
        "- name:\n- date:\n- word:",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def pull_request(comparison: Comparison, figures: Figures, view: View) -> str:
    """Under 30 lines for whoever reads the change: what it does, and what to look at."""
    lines = [f"### Impact on documents: {view.verdict.lower()}", ""]
    lines += [" ".join(inline(sentence) for sentence in view.sentences), ""]
    named = [one for one in view.changes if one.kind != "reads"]
    changes = [
        f"{code(_short(one.what))} {inline(_short(one.before))} → {inline(_short(one.after))}"
        for one in named[:MAX_SAID]
    ]
    if changes:
        more = f" and {len(named) - MAX_SAID} more" if len(named) > MAX_SAID else ""
        lines += [f"Changed: {'; '.join(changes)}{more}.", ""]
    lines += [*_table(view.totals, view.totals.rows), ""]
    loosened = _capped(_loosened_lines(view), MAX_LOOSENED)
    said = _list([*loosened, *_capped(_bound_lines(view, broken_only=True))])
    rules = _list(_capped([f"{code(note.reason)} {kind}: {inline(_short(note.text))}" for kind, note in view.rules]))
    for block in (said, _worst(figures), rules):
        lines += [block, ""] if block else []
    sample = comparison.sample
    told = (
        f"{code(_short(called(sample.name)))}, {noun(sample.documents, 'document')}, sha256 {code(sample.sha256[:12])}"
    )
    lines.append(f"Sample {told}. The documents and all numbers: [sheet.html](sheet.html), [sheet.md](sheet.md).")
    return "\n".join(lines) + "\n"


def _short(text: str) -> str:
    return text if len(text) <= _LINE_CHARS else f"{text[:_LINE_CHARS]} ..."


def _capped(lines: Sequence[str], most: int = MAX_SAID) -> list[str]:
    more = [f"and {len(lines) - most} more"] if len(lines) > most else []
    return [*lines[:most], *more]


def _worst(figures: Figures) -> str:
    """The languages of which most moves."""
    moving = [one for one in figures.languages if one.documents.moved is not None and one.documents.moved.value > 0]
    # Of a handful of documents one is a large share: languages with more of them go first.
    moving = [one for one in moving if one.documents.before.count >= LEAST_DOCUMENTS] or moving
    moving.sort(key=lambda one: -(one.documents.moved.value if one.documents.moved else 0))
    told = [
        f"{code(group_name(group.name))} {percent(group.documents.moved.value)} ({interval(group.documents.moved)})".replace(
            NBSP, " "
        )
        for group in moving[:MAX_WORST]
        if group.documents.moved is not None
    ]
    return f"Most moves in {', '.join(told)}." if told and len(figures.languages) > 1 else ""


# -- blocks ------------------------------------------------------------------------------------


def _list(lines: Sequence[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def _bound_lines(view: View, *, broken_only: bool = False) -> list[str]:
    shown = [one for one in view.bounds if not (broken_only and one.holds)]
    marks = {True: "holds", False: "**broken**"}
    return [f"{marks[one.holds]}: {inline(cut(one.text, _NOTE_CHARS))}" for one in shown]


def _loosened_lines(view: View) -> list[str]:
    """Apart from the bounds that are broken, lest these push them out of a short list."""
    return [f"**loosened**: {inline(cut(text, _NOTE_CHARS))}" for text in view.loosened]


def _changes(view: View) -> str:
    if not view.changes:
        return "Nothing that decides a verdict: both sides have the same steps, settings, code, lists and models."
    rows = []
    for one in view.changes:
        what, before, after = (code(text, in_table=True) for text in (one.what, one.before, one.after))
        rows.append(f"| {what} | {inline(one.kind)} | {before} | {after} |")
    return "\n".join(["| what | kind | before | now |", "| --- | --- | --- | --- |", *rows])


def _section(table: Table, level: int = 2) -> Iterator[str]:
    yield f"{'#' * level} {table.title if level == 2 else f'the same in {table.title}'}"
    if table.caption and level == 2:
        yield f"{inline(table.caption)}."
    # Nobody reads that nothing moves line by line: the page and sheet.json have that.
    loud = table.more[: len(table.more) - table.n_quiet]
    rows = [row for row in (*table.rows, *loud) if not (table.anchor == "reasons" and _says_nothing(row))]
    if rows:
        yield "\n".join(_table(table, rows))
    if table.note:
        yield inline(table.note)
    if table.n_quiet and level == 2:
        yield f"In {table.n_quiet:,} more nothing moves."
    for inner in table.inner:
        yield from _section(inner, 3)


def _says_nothing(row: Sequence[Cell]) -> bool:
    """A reason that fires on neither side: those stand together under dead and wild rules."""
    return all("none" in cell.css for cell in row[1:3]) and not row[-1].text


def _table(table: Table, rows: Sequence[Sequence[Cell]]) -> list[str]:
    """Lines of a table, without the columns that hold drawings."""
    columns = [place for place, head in enumerate(table.heads) if not head.drawn]
    heads = [inline(table.heads[place].text) or " " for place in columns]
    lines = [f"| {' | '.join(heads)} |"]
    lines.append(f"| {' | '.join('---:' if table.heads[place].number else '---' for place in columns)} |")
    lines += [f"| {' | '.join(_cell(row[place], first=place == columns[0]) for place in columns)} |" for row in rows]
    return lines


def _cell(cell: Cell, *, first: bool) -> str:
    text = code(cell.text, in_table=True) if first and cell.text else inline(cell.text)
    badge = f" **{inline(cell.badge)}**" if cell.badge else ""
    small = inline(cell.small)
    return f"{text}{badge}{' · ' if text and small else ''}{small}"


def _rules(view: View) -> Iterator[str]:
    if view.rules:
        yield _list([f"**{kind}** {code(note.reason)} {inline(note.text)}" for kind, note in view.rules])
    else:
        yield "None: every rule that fired before fires still, and none moved more than tenfold."
    nothing = "of which the sample says nothing: they fire on neither side"
    for names, what in ((view.silent, nothing), (view.off, "that the settings never give")):
        if names:
            yield f"{noun(len(names), 'reason')} {what}: {', '.join(code(name) for name in names)}."


# -- documents ---------------------------------------------------------------------------------


def _documents(group: DocumentGroup, level: int) -> Iterator[str]:
    yield f"{'#' * level} {group.title}\n\n{inline(group.note)}"
    for number, one in enumerate(group.documents, 1):
        label = f" · label {code(one.label)}" if one.label is not None else ""
        yield f"{number}. {code(one.id)} · {code(one.source)} · {code(one.language)}{label}\n\n{_indented(_document(one))}"


def _document(one: ShownDocument) -> str:
    lines = [f"{_outcome(one.before)} → {_outcome(one.after)}"]
    if one.near is not None:
        unit = one.scores[0].unit if one.scores else ""
        found, limit = score_words(one.near.value, [one.near.limit], unit), value(one.near.limit, unit)
        lines = [
            f"{_outcome(one.after)}; {code(f'{one.near.step}.{one.near.score}')} {inline(found)}, beside the limit {inline(limit)}"
        ]
    else:
        for score in one.scores:
            sides = [(score.before, score.limits_before), (score.after, score.limits_after)]
            told = [score_words(found, limits, score.unit) for found, limits in sides if found is not None]
            words = " → ".join(dict.fromkeys(told)) or "undefined"
            limits = limits_words(score.limits_before, score.limits_after, score.unit)
            lines.append(f"{code(score.name)} **{inline(words)}**{f', {inline(limits)}' if limits else ''}")
    if one.note:
        lines.append(inline(one.note))
    parts = ["; ".join(lines), fenced(_with_marks(one.excerpt.text, one.marks) + (" ..." if one.excerpt.cut else ""))]
    if one.partner is not None:
        beside = f", {inline(one.partner.note)}" if one.partner.note else ""
        parts += [f"the copy that is kept: {code(one.partner.id)}{beside}", fenced(one.partner.excerpt.text)]
    return "\n\n".join(parts)


def _outcome(outcome: Outcome) -> str:
    return "kept" if outcome.step is None else f"dropped {code(outcome.reason or outcome.step)}"


def _with_marks(text: str, marks: Sequence[Mark]) -> str:
    parts, end = [], 0
    for one in marks:
        parts += [text[end : one.begin], "\u27e6", text[one.begin : one.end], "\u27e7"]
        end = one.end
    return "".join([*parts, text[end:]])


def _indented(text: str) -> str:
    """As part of a list item."""
    return "\n".join(f"   {line}" if line else line for line in text.split("\n"))
