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
from typing import Any

import pyarrow as pa

from curation.steps import step_class
from curation.verdicts import Filter
from tests.fakes import batch_for
from tests.golden import case_files

__all__ = ["Golden", "Group", "load", "misjudged"]


def load(step: str) -> list[dict[str, Any]]:
    """The cases of a step that hold today."""
    return [case for case in case_files.load(step) if "xfail" not in case]


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
        wrong = wrong or any(
            case_files.differs(row[name], value) for name, value in case.get("scores", {}).items() if row
        )
        if wrong:
            found.append(case["id"])
    return found
