"""The golden cases as judge: scores of all cases are computed once, and each mutant only decides again.

Cases of a step that share their settings are one batch. A mutant is noticed where any case, other than those that are known
to be wrong (`xfail`), gets another verdict or reason than a person gave it.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from curation.steps import step_class
from curation.verdicts import Filter
from tests.fakes import batch_for

__all__ = ["CASES", "Golden", "Group", "load", "misjudged"]

CASES = Path(__file__).resolve().parents[1] / "golden" / "cases"
NEAR = 0.03
"""Shares may differ by so much from those that a person counted; as in tests/golden/test_golden.py."""


def load(step: str, folder: Path = CASES) -> list[dict[str, Any]]:
    """The cases of a step that hold today."""
    lines = (folder / f"{step}.jsonl").read_text(encoding="utf-8").splitlines()
    return [case for case in map(json.loads, lines) if "xfail" not in case]


@dataclass(frozen=True)
class Group:
    """Cases of one filter with the same settings."""

    settings: dict[str, Any]
    cases: list[dict[str, Any]]
    batch: pa.RecordBatch
    scores: pa.RecordBatch

    @property
    def expected(self) -> list[tuple[bool, str | None]]:
        return [(case["keep"], case["reason"]) for case in self.cases]


def differs(found: Any, expected: Any) -> bool:
    """As in tests/golden/test_golden.py: whether a score is not as a person expects it."""
    if isinstance(found, list):
        rows = [list(row.values()) for row in found]
        if isinstance(expected, dict):
            shares = dict(rows)
            return shares.keys() != expected.keys() or any(abs(shares[k] - expected[k]) > NEAR for k in shares)
        return bool(rows != expected)
    return found not in (expected if isinstance(expected, list) else [expected])


class Golden:
    """The golden cases of one filter with their scores."""

    def __init__(self, step: str, cases: Sequence[dict[str, Any]] | None = None) -> None:
        self.step = step
        self.kind = step_class(step)
        self.cases = load(step) if cases is None else list(cases)

    def filter(self, settings: dict[str, Any]) -> Filter:
        made = self.kind(self.kind.Config.model_validate(settings))
        assert isinstance(made, Filter)
        return made

    @cached_property
    def groups(self) -> list[Group]:
        """By settings; scores as the code without any fault has them."""
        by_settings: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for case in self.cases:
            by_settings[json.dumps(case.get("config", {}), sort_keys=True)].append(case)
        found = []
        for cases in by_settings.values():
            settings = cases[0].get("config", {})
            judge = self.filter(settings)
            texts = [case["text"] * case.get("times", 1) for case in cases]
            batch = batch_for(judge, texts, [case.get("label") for case in cases], [case.get("url") for case in cases])
            found.append(Group(settings, cases, batch, judge.score(batch)))
        return found

    def noticed(
        self, *, score: bool = False, concerns: Callable[[Mapping[str, Any]], bool] = lambda settings: True
    ) -> list[str]:
        """Ids of the cases that fail as the step is now.

        Args:
            score: compute the scores anew, and hold them against those that cases give.
            concerns: which settings to ask about.
        """
        found: list[str] = []
        for group in self.groups:
            if not concerns(group.settings):
                continue
            judge = self.filter(group.settings)
            scores = judge.score(group.batch) if score else group.scores
            found += misjudged(judge, scores, group.cases, with_scores=score)
        return found


def misjudged(
    judge: Filter, scores: pa.RecordBatch, cases: Sequence[dict[str, Any]], *, with_scores: bool = False
) -> list[str]:
    """Ids of the cases that a filter judges otherwise than a person."""
    decision = judge.decide(scores)
    reasons = decision.reason_array(list(judge.reasons)).to_pylist()
    found = []
    rows = scores.to_pylist() if with_scores else [{}] * len(cases)
    for case, keep, reason, row in zip(cases, decision.keep.tolist(), reasons, rows, strict=True):
        wrong = (keep, reason) != (case["keep"], case["reason"])
        wrong = wrong or any(differs(row[name], value) for name, value in case.get("scores", {}).items() if row)
        if wrong:
            found.append(case["id"])
    return found
