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

CASES = Path(__file__).parent / "cases"
KEYS = {"id", "lang", "text", "keep", "reason", "source", "why"}
GROUP_KEYS = {"id", "lang", "texts", "kept", "reason", "source", "why"}
OPTIONAL_KEYS = {"config", "times", "scores", "xfail", "label", "url"}
NEAR = 0.03
"""Shares may differ by so much from those that a person counted."""


def load(step: str) -> list[dict[str, Any]]:
    """The cases of a step."""
    path = CASES / f"{step}.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


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


def differs(found: Any, expected: Any) -> bool:
    """Whether a score is not as expected: one of a list of values; shares by name, nearly; runs of lines exactly."""
    if isinstance(found, list):
        rows = [list(row.values()) for row in found]
        if isinstance(expected, dict):
            shares = dict(rows)
            return shares.keys() != expected.keys() or any(abs(shares[k] - expected[k]) > NEAR for k in shares)
        return bool(rows != expected)
    return found not in (expected if isinstance(expected, list) else [expected])


@pytest.mark.parametrize("step", STEPS)
def test_every_step_has_cases(step: str) -> None:
    """At least 25 cases in at least ten languages, kept and dropped ones, each with a source and a reason why."""
    cases = load(step)

    assert len(cases) >= 25, f"{step}: {len(cases)} cases in {CASES / step}.jsonl"
    assert len({case["lang"] for case in cases} - {"und"}) >= 10
    assert len({case["id"] for case in cases}) == len(cases), "an id stands twice"
    assert {bool(case["reason"]) for case in cases} == {True, False}
    for case in cases:
        keys = GROUP_KEYS if step in DATA_SET_STEPS else KEYS
        assert keys <= case.keys() <= keys | OPTIONAL_KEYS, case["id"]
        assert len(case["why"]) >= 10, case["id"]
        assert case["source"], case["id"]


def test_no_case_is_forgotten() -> None:
    """Every file of cases belongs to a step."""
    assert {path.stem for path in CASES.glob("*.jsonl")} <= set(STEPS)


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
    assert found == (case["keep"], case["reason"]), f"{case['why']} Scores: {row}"
    wrong = {name: row[name] for name, value in case.get("scores", {}).items() if differs(row[name], value)}
    assert not wrong, f"{case['why']} Expected: {case['scores']}. Scores: {row}"


@pytest.mark.parametrize(("step", "case"), cases_of(DATA_SET_STEPS))
def test_data_set_step(step: str, case: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a few documents those stay that a person decided; every other one carries the reason."""
    monkeypatch.setattr("os.fsync", lambda descriptor: None)
    kind = step_class(step)
    judge = kind(kind.Config.model_validate(case.get("config", {})))

    judged = run_steps(make_run(tmp_path, [case["texts"]]), [judge])

    assert judged.kept(step) == case["kept"], case["why"]
    assert {row["reason"] for row in judged.verdicts(step) if not row["keep"]} <= {case["reason"]}
