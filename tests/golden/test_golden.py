"""Golden cases: for each step, texts whose verdict a person has decided, and why.

A line of `cases/<filter>.jsonl` is one case: id, lang, text, keep, reason, source, why; and, where a case needs
them, `config` (settings other than the defaults), `times` (the text is repeated so often), `scores` (what the
scores must be, see `differs`), `label` (what the step `language` said of it; left out: no such step stands before), `url` and
`xfail` (the filter is wrong about it, and why; the test fails once it is right).
A case of a data-set step holds `texts` and `kept`, the places of those that stay, instead of text and keep.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from curation.dedup import DATA_SET_STEPS
from curation.filters import FILTERS
from curation.steps import STEPS, step_class
from curation.verdicts import Filter
from tests.fakes import batch_for, make_run, run_steps
from tests.golden.case_files import CASES, differs, load

KEYS = {"id", "lang", "text", "keep", "reason", "source", "why"}
GROUP_KEYS = {"id", "lang", "texts", "kept", "reason", "source", "why"}
OPTIONAL_KEYS = {"config", "times", "scores", "xfail", "label", "url"}
LEAST, LEAST_LANGUAGES, LEAST_WHY = 25, 10, 10
"""Cases of a step, their languages, and the characters of a reason why."""


def cases_of(steps: dict[str, str]) -> list[Any]:
    """One pytest parameter for each case, named step-id."""
    return [
        pytest.param(
            step,
            case,
            id=f"{step}-{case['id']}",
            marks=[pytest.mark.xfail(reason=case["xfail"], strict=True)] if "xfail" in case else [],
        )
        for step in steps
        for case in load(step)
    ]


def said(keep: bool, reason: str | None) -> str:
    """A verdict in words."""
    return "keep" if keep else f"drop, {reason}"


def missing_in(step: str, cases: list[dict[str, Any]]) -> list[str]:
    """What a step's cases lack, a sentence each."""
    ids = [case.get("id") for case in cases]
    languages = {case.get("lang") for case in cases} - {"und", None}
    twice = sorted({str(name) for name in ids if ids.count(name) > 1})
    lacks = [
        (len(cases) < LEAST, f"{len(cases)} cases of at least {LEAST}: {LEAST - len(cases)} more"),
        (
            len(languages) < LEAST_LANGUAGES,
            f"texts in {len(languages)} languages (`lang`) of at least {LEAST_LANGUAGES}",
        ),
        (all(case.get("reason") is None for case in cases), "no case is dropped: what is the step for?"),
        (all(case.get("reason") for case in cases), "no case is kept: what must the step leave alone?"),
        (bool(twice), f"an id stands twice: {', '.join(twice)}"),
    ]
    found = [sentence for lack, sentence in lacks if lack]
    keys = GROUP_KEYS if step in DATA_SET_STEPS else KEYS
    for number, case in enumerate(cases, 1):
        where = f"line {number} ({case.get('id', 'without id')})"
        if absent := sorted(keys - case.keys()):
            found.append(f"{where} lacks {', '.join(absent)}")
        if unknown := sorted(case.keys() - keys - OPTIONAL_KEYS):
            found.append(f"{where} has unknown keys: {', '.join(unknown)}")
        if len(case.get("why", "")) < LEAST_WHY:
            found.append(f"{where}: `why` says in {LEAST_WHY} characters or more why a person decided so")
        if not case.get("source"):
            found.append(f"{where}: `source` says who wrote the text, and under which licence")
    return found


@pytest.mark.parametrize("step", STEPS)
def test_every_step_has_cases(step: str) -> None:
    """At least 25 cases in at least ten languages, kept and dropped ones, each with a source and a reason why."""
    missing = missing_in(step, load(step))

    lines = "\n  ".join([f"{step}: tests/golden/cases/{step}.jsonl lacks something:", *missing])
    example = "" if step in DATA_SET_STEPS else f"\nA case is one line, such as\n  {example_of(step)}"
    if missing:
        pytest.fail(lines + example, pytrace=False)


def example_of(step: str) -> str:
    """A line as it must look."""
    reason = next(iter(step_class(step).reasons))
    case = {"id": "short-name-de", "lang": "de", "text": "...", "keep": False, "reason": reason}
    return json.dumps({**case, "source": "written for this project, CC0", "why": "what a person sees in it"})


def test_no_case_is_forgotten() -> None:
    """Every file of cases belongs to a step."""
    strays = {path.stem for path in CASES.glob("*.jsonl")} - set(STEPS)
    assert not strays, f"cases of no step: {sorted(strays)}. Is its line in curation/filters/__init__.py missing?"


@pytest.mark.parametrize(("step", "case"), cases_of(FILTERS))
def test_filter(step: str, case: dict[str, Any]) -> None:
    """The verdict, the reason that is named, and the scores that are given, are those that a person decided."""
    kind = step_class(step)
    judge = kind(kind.Config.model_validate(case.get("config", {})))
    assert isinstance(judge, Filter)
    labels = [case["label"]] if "label" in case else None
    batch = batch_for(judge, [case["text"] * case.get("times", 1)], labels, [case.get("url")])

    scores = judge.score(batch)
    decision = judge.decide(scores)

    found = (bool(decision.keep[0]), decision.reason_array(list(judge.reasons)).to_pylist()[0])
    row = scores.to_pylist()[0]
    if found != (case["keep"], case["reason"]):
        pytest.fail(
            f"{step}-{case['id']}: a person says {said(case['keep'], case['reason'])}, the filter {said(*found)}\n"
            f"  why: {case['why']}\n  scores: {row}\n  thresholds: {dict(judge.thresholds())}",
            pytrace=False,
        )
    wrong = {name: row[name] for name, value in case.get("scores", {}).items() if differs(row[name], value)}
    assert not wrong, (
        f"{step}-{case['id']}: scores are not as a person counted them: {wrong}, expected {case['scores']}\n"
        f"  why: {case['why']}\n  scores: {row}"
    )


@pytest.mark.parametrize(("step", "case"), cases_of(DATA_SET_STEPS))
def test_data_set_step(step: str, case: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a few documents those stay that a person decided; every other one carries the reason."""
    monkeypatch.setattr("os.fsync", lambda descriptor: None)
    kind = step_class(step)
    judge = kind(kind.Config.model_validate(case.get("config", {})))

    judged = run_steps(make_run(tmp_path, [case["texts"]]), [judge])

    kept = judged.kept(step)
    assert kept == case["kept"], (
        f"{step}-{case['id']}: a person keeps texts {case['kept']}, the step {kept}\n  why: {case['why']}"
    )
    reasons = {row["reason"] for row in judged.verdicts(step) if not row["keep"]}
    assert reasons <= {case["reason"]}, f"{step}-{case['id']}: reasons {reasons}, expected {case['reason']}"
