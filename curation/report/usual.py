"""Rules that take nothing, ten times their usual share or less than a tenth of it: named when a run is done, of any filter.

A rule that never fires on a large crawl is often broken (a column that was renamed, a score that is null), or for a part of
the documents if it fires far less often than usual; one that fires far more often than usual is often a crawl that is broken
(another extraction, another encoding) or a limit that does not fit a language. What is usual say earlier finished runs under
the same root with the same settings of the step and other inputs, or else `usual_shares.tsv`: counted by
tools/make_usual_shares.py on crawl-like text with the shipped config.

An alarm is raised only where chance does not explain it: both shares are taken with Wilson's bounds (3 sigma). What was
found is written into the run once, so that later runs do not change what its report says. Costs a look at the markers of
the newest earlier runs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from curation.pipeline import Pipeline
from curation.report.numbers import NBSP, count, noun, share
from curation.report.usual_sources import LEAST_KNOWN, Known, earlier_runs, fired, known_shares, off_reasons
from curation.run import read_json, write_json
from curation.steps import PlacedStep
from curation.verdicts import Filter
from curation.wilson import wilson

__all__ = ["compare", "usual_alarms", "usual_of", "write_usual"]

FILE = "usual.json"
"""In the run's report folder."""
SIGMAS = 3.0
TIMES = 10
"""The usual share from which on a rule is named; as many parts of it below which it is named as well."""
LEAST_EXPECTED = 20
"""Documents that a rule should have taken before it is worth a word that it took none, which by chance it does less often than
once in 10^8, or less than a tenth."""
LEAST_FIRED = 20
"""Fewer documents are never too many."""
MAX_NAMED = 12
"""Rules that one sentence names."""


def usual_of(run_report: Path, name: str, digest: str) -> Mapping[str, Any]:
    """What was found of one step when the run was done; empty if nothing was, or of other verdicts.

    Raises:
        RunError: the file is damaged.
    """
    path = run_report / FILE
    if not path.exists():
        return {}
    found: Mapping[str, Any] = read_json(path).get("steps", {}).get(name, {})
    return found if found.get("digest") == digest else {}


def usual_alarms(pipeline: Pipeline) -> list[dict[str, Any]]:
    """The alarms as funnel.json holds them: step, text, reasons."""
    return [
        {"step": placed.name, "text": one["text"], "reasons": one["reasons"]}
        for placed in pipeline.placed
        for one in usual_of(pipeline.run.report, placed.name, placed.digest).get("alarms", [])
    ]


def write_usual(pipeline: Pipeline) -> None:
    """Compare every filter of a run that is done with what is usual, and keep what was found. Done once a verdict.

    Raises:
        RunError: a step is not done.
    """
    if pipeline.judge_all:
        return
    steps = [placed for placed in pipeline.placed if isinstance(placed.step, Filter)]
    report = pipeline.run.report
    if all(usual_of(report, placed.name, placed.digest) for placed in steps):
        return
    earlier = list(earlier_runs(pipeline))
    found = {
        placed.name: usual_of(report, placed.name, placed.digest) or _compare_step(placed, earlier) for placed in steps
    }
    write_json(report / FILE, {"steps": found})


def _compare_step(placed: PlacedStep, earlier: Sequence[Path]) -> dict[str, Any]:
    marker = read_json(placed.folder / "_done.json")
    mine, off = fired(marker), off_reasons(placed.step, marker)
    known = known_shares(placed, earlier)
    odd: dict[tuple[str, str], list[tuple[str, str]]] = defaultdict(list)
    silent = []
    for reason in placed.step.reasons:
        n = mine.counts.get(reason, 0)
        if reason in off:
            continue
        if reason in known:
            kind, words = compare(n, mine.documents, known[reason])
            if kind:
                odd[kind, known[reason].source].append((reason, words))
        elif not n and mine.documents >= LEAST_KNOWN:
            silent.append(reason)
    alarms = [
        {
            "kind": kind,
            "reasons": [reason for reason, _ in found],
            "text": _sentence(kind, source, found, mine.documents),
        }
        for (kind, source), found in odd.items()
    ]
    return {"digest": placed.digest, "alarms": alarms, "silent": silent, "off": sorted(off)}


def _sentence(kind: str, source: str, found: Sequence[tuple[str, str]], documents: int) -> str:
    names = ", ".join(f"{reason} ({words})" for reason, words in found[:MAX_NAMED])
    names += f" and {len(found) - MAX_NAMED} more" if len(found) > MAX_NAMED else ""
    n = noun(documents, "document")
    if kind == "never":
        return (
            f"Fired on none of {n}: {names}. Usual is the share in {source}. Look whether the scores are there, and whether "
            "the documents are what they should be: another field than the text, or an input that was cleaned before."
        )
    if kind == "seldom":
        return (
            f"Fired less than a tenth as often as usual, of {n}: {names}. Usual is the share in {source}. Look whether "
            "the scores are there for all documents, and whether the input was cleaned before, or another rule takes them now."
        )
    return (
        f"Fired more than {TIMES} times as often as usual, of {n}: {names}. Usual is the share in {source}. Look at their "
        "samples: other documents than usual, a broken extraction, or a limit that does not fit the language."
    )


def compare(n: int, documents: int, usual: Known) -> tuple[str, str]:
    """`never`, `seldom` or `often` with the numbers in words, if a rule took none where many are usual, less than a tenth of
    what is usual, or more than ten times as much.

    Two empty strings if it took what may be chance.
    """
    low, high = wilson(usual.fired, usual.documents, SIGMAS)
    expected = low * documents
    if n == 0 and expected >= LEAST_EXPECTED:
        return "never", f"usual: {_share(usual)}, about {_expected(documents, usual)}"
    least, most = wilson(n, documents, SIGMAS)
    part = share(n, documents).replace(NBSP, " ")
    if expected >= LEAST_EXPECTED and TIMES * most < low:
        return "seldom", f"{count(n)}, {part}; usual: {_share(usual)}, about {_expected(documents, usual)}"
    if n >= LEAST_FIRED and least > TIMES * high:
        return "often", f"{count(n)}, {part}; usual: {_share(usual)}"
    return "", ""


def _expected(documents: int, usual: Known) -> str:
    return count(documents * usual.fired / usual.documents)


def _share(usual: Known) -> str:
    return share(usual.fired, usual.documents).replace(NBSP, " ") if usual.fired else "none"
