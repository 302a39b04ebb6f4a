"""`corpusmill what-if`: its arguments, and its answer on a terminal. Nothing in it can command the terminal.

On a terminal it is coloured and texts are wrapped; wherever else the output goes it is plain text in columns.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from curation.errors import ConfigError
from curation.terminal_columns import Cell, columns, line_of, print_lines

if TYPE_CHECKING:
    from rich.text import Text

    from curation.pipeline import Pipeline
    from curation.what_if import WhatIf
    from curation.what_if_inputs import ChangedInput
    from curation.what_if_outcomes import Outcome
    from curation.what_if_samples import Deciding, DocumentOutcome

__all__ = ["EXAMPLES", "SUMMARY", "add_what_if_arguments", "answer_lines", "print_what_if"]

SUMMARY = "decide a finished run again with other settings, from its saved scores: which documents change sides"
EXAMPLES = """
corpusmill what-if RUN --set length.min_units=50
corpusmill what-if RUN --set length.min_units=50 --set html_noise.max_noise_share=0.2 --samples 30
corpusmill what-if RUN --set language.mixed=drop --output changed.jsonl     every document that changes, with its text
corpusmill impact CONFIG --base CONFIG --set length.min_units=50            judges a sample anew instead: other code, lists, models"""

_MAX_CHANGES, _MAX_LANGUAGES = 30, 15
_MAX_VALUE = 60
_SHOWN_CHARS, _SHOWN_LINES = 280, 4
"""Of a sample's text."""
_STYLES = {"kept": "green", "dropped": "red", "set aside": "yellow", "waiting": "cyan"}


def _count(text: str) -> int:
    value = int(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"expected a number of at least 0, found {text}")
    return value


def add_what_if_arguments(parser: argparse.ArgumentParser) -> None:
    """Everything but the run."""
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="change a setting: length.min_units=30"
    )
    parser.add_argument(
        "--samples",
        type=_count,
        default=10,
        metavar="N",
        help="documents to show, spread over the changes (default: 10)",
    )
    parser.add_argument(
        "--output", type=Path, metavar="FILE.jsonl", help="write every document that changes, with its text"
    )
    parser.add_argument("--json", action="store_true", help="print the answer as JSON")


def print_what_if(pipeline: Pipeline, arguments: argparse.Namespace, file: TextIO | None = None) -> int:
    """Ask and answer; returns the exit code.

    Raises:
        ConfigError, RunError: see `curation.what_if.what_if`.
    """
    from curation.what_if import what_if

    if not arguments.set:
        raise ConfigError("what-if: say what to change, with --set STEP.KEY=VALUE (more than once for more settings).")
    answer = what_if(pipeline, arguments.set, n_samples=arguments.samples, output=arguments.output)
    stream = file if file is not None else sys.stdout
    if arguments.json:
        print(json.dumps(answer.to_json(), indent=1), file=stream)
        return 0
    print_lines(lambda width: answer_lines(answer, arguments.output, width=width), stream)
    return 0


def answer_lines(answer: WhatIf, output: Path | None = None, *, width: int | None = None) -> Iterator[Text]:
    """The answer, line by line. A line that must not be broken by a terminal says so (`no_wrap`).

    Args:
        output: where all documents that change were written.
        width: columns of the terminal, into which texts are broken; None: they are not.
    """
    yield from _settings(answer)
    yield line_of()
    yield from _totals(answer)
    if answer.changes:
        yield line_of()
        yield from _changes(answer)
    if answer.languages and answer.changes:
        yield line_of()
        yield from _languages(answer)
    for one in answer.inputs:
        yield line_of()
        yield line_of((_changed_input(one), "yellow"))
    for sample in answer.samples:
        yield line_of()
        yield from _sample(sample, width)
    yield line_of()
    if answer.written is not None:
        yield line_of((f"{answer.written:,} documents written to {output}", ""))
    yield line_of(("to run it: ", "dim"), (answer.question.command, ""), no_wrap=True)


def _settings(answer: WhatIf) -> Iterator[Text]:
    rows = [
        [
            (one.key, "bold"),
            (_value(one.before), ""),
            ("->", "dim"),
            (_value(one.after), "bold"),
            _of_no_verdict(one.decides),
        ]
        for one in answer.question.settings
    ]
    if not rows:
        yield line_of(("the run has these very settings", "dim"))
    yield from columns(rows, left=5)


def _of_no_verdict(decides: bool) -> Cell:
    return ("" if decides else "decides no verdict", "dim")


def _value(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False).removesuffix(".0")
    return text if len(text) <= _MAX_VALUE else f"{text[:_MAX_VALUE]} ..."


def _totals(answer: WhatIf) -> Iterator[Text]:
    total = answer.total
    rows: list[list[Cell]] = [
        [("", ""), ("documents", "dim"), ("", ""), ("", "")],
        [
            ("kept in the run", "bold"),
            (f"{total.kept:,}", "green"),
            _share(total.kept, answer.documents),
            (_of_all(answer), "dim"),
        ],
    ]
    if not answer.changes:
        rows.append([("no document changes sides", ""), ("", ""), ("", ""), ("", "")])
    if total.leave:
        rows.append(
            [("  would leave", ""), (f"{total.leave:,}", "red"), _share(total.leave, total.kept), ("of those", "dim")]
        )
    if total.come_in:
        note = ("every step has judged them", "dim")
        rows.append([("  would come in", ""), (f"{total.come_in:,}", "green"), ("", ""), note])
    if total.leave or total.come_in:
        rows.append(
            [
                ("kept then", "bold"),
                (f"{answer.kept_after:,}", "green"),
                _share(answer.kept_after, answer.documents),
                ("", ""),
            ]
        )
    if total.waiting:
        note = ("would come in if the steps behind let them: a run decides", "dim")
        rows.append([("  not judged yet", ""), (f"{total.waiting:,}", "cyan"), ("", ""), note])
    if total.other:
        note = ("stay out, for another reason or output", "dim")
        rows.append([("  another reason", ""), (f"{total.other:,}", "yellow"), ("", ""), note])
    yield from columns(rows, left=1, last_left=True)


def _of_all(answer: WhatIf) -> str:
    return f"of {answer.documents:,}"


def _share(part: int, whole: int) -> Cell:
    from curation.report.numbers import NBSP, share

    return share(part, whole).replace(NBSP, " "), "dim"


def _changes(answer: WhatIf) -> Iterator[Text]:
    rows: list[list[Cell]] = [[("from", "dim"), ("", ""), ("to", "dim"), ("documents", "dim"), ("", "")]]
    for one in answer.changes[:_MAX_CHANGES]:
        before, after = _outcome(one.before), _outcome(one.after)
        rows.append([before, ("->", "dim"), after, (f"{one.documents:,}", ""), _share(one.documents, answer.documents)])
    yield from columns(rows, left=3)
    yield from _left_out(len(answer.changes) - _MAX_CHANGES, "kinds of change")


def _outcome(outcome: Outcome) -> Cell:
    return outcome.words, _STYLES[outcome.side]


def _languages(answer: WhatIf) -> Iterator[Text]:
    changed = [one for one in answer.languages if one.changes]
    head = ("language", "kept", "leave", "come in", "kept then", "not judged", "other")
    rows: list[list[Cell]] = [[(name, "dim") for name in head]]
    for one in changed[:_MAX_LANGUAGES]:
        cells = [f"{one.kept:,}", *(f"{n:,}" if n else "" for n in (one.leave, one.come_in))]
        cells.append(f"{one.kept - one.leave + one.come_in:,}")
        cells += [f"{n:,}" if n else "" for n in (one.waiting, one.other)]
        styles = ("green", "red", "green", "green", "cyan", "yellow")
        rows.append([(one.language, "bold"), *zip(cells, styles, strict=True)])
    yield from columns(rows, left=1)
    yield from _left_out(len(changed) - _MAX_LANGUAGES, "languages that change")


def _left_out(n: int, what: str) -> Iterator[Text]:
    if n > 0:
        yield line_of((f"and {n:,} more {what}; --json has all", "dim"))


def _changed_input(one: ChangedInput) -> str:
    from curation.report.numbers import noun

    parts = [f"{noun(one.leave, 'document')} would leave before it"] if one.leave else []
    parts += [f"{noun(one.enter, 'document')} would enter it"] if one.enter else []
    parts += [f"up to {one.may_enter:,} more would enter, as filters before it decide"] if one.may_enter else []
    sentence = f"{one.step} would look at other documents than it did: {', '.join(parts)}. "
    if one.orphans:
        were = "document was" if one.orphans == 1 else "documents were"
        sentence += f"{one.orphans:,} {were} dropped for one that would be gone; {one.step} may keep some of these. "
    return sentence + "What it finds then, only a run decides; it is counted here as it was."


def _sample(sample: DocumentOutcome, width: int | None) -> Iterator[Text]:
    before, after = _outcome(sample.before), _outcome(sample.after)
    language = [(f"  {sample.language}", "bold")] if sample.language else []
    yield line_of(before, (" -> ", "dim"), after, *language)
    place = f"{sample.id}  (doc_id {sample.doc_id})  {Path(sample.source).name}, line {sample.line:,}"
    yield line_of((f"  {place}", "dim"), no_wrap=True)
    for score in sample.scores:
        yield line_of((f"  {score.name} = {_number(score)}", "bold"), (f"   {_limits(score)}", ""))
    for line in _excerpt(sample, width):
        yield line_of(("  | ", "dim"), (line, ""))


def _excerpt(sample: DocumentOutcome, width: int | None) -> Iterator[str]:
    """The first lines of a text that are not blank, the last one marked if something is left out."""
    from rich.console import Console
    from rich.text import Text

    from curation.terminal import printable

    lines = [printable(line.strip()) for line in sample.text.text.split("\n") if line.strip()]
    shown, left = [], _SHOWN_CHARS
    for line in lines[:_SHOWN_LINES]:
        shown.append(line[:left])
        left -= len(line)
        if left <= 0:
            break
    if shown and (sample.text.cut or sum(map(len, shown)) < sum(map(len, lines))):
        shown[-1] += " ..."
    for line in shown:
        if width is None:
            yield line
        else:
            yield from (part.plain.rstrip() for part in Text(line).wrap(Console(width=width), max(width - 4, 20)))


def _number(score: Deciding) -> str:
    from curation.report.numbers import NBSP, value_beside

    if score.value is None:
        return "undefined"
    if isinstance(score.value, str | bool):
        return str(score.value)
    if isinstance(score.value, int | float):
        return value_beside(score.value, [*score.before, *score.after], score.unit).replace(NBSP, " ")
    return _value(score.value)


def _limits(score: Deciding) -> str:
    """`limit 16 -> 50`; of several limits those that differ, and where all are the same, each once."""
    before, after = score.before, score.after
    if before == after:
        return f"limit {_limit(before, score.unit)}" if before else ""
    if len(before) == len(after):
        pairs = [pair for pair in zip(before, after, strict=True) if pair[0] != pair[1]]
        before, after = tuple(pair[0] for pair in pairs), tuple(pair[1] for pair in pairs)
    return f"limit {_limit(before, score.unit)} -> {_limit(after, score.unit)}"


def _limit(limits: Sequence[float], unit: str) -> str:
    from curation.report.numbers import NBSP, value

    return ", ".join(value(limit, unit).replace(NBSP, " ") for limit in limits) or "none"
