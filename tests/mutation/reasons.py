"""Faults in what drops: a reason that never fires, a rule that looks at its other side."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from curation.steps import step_class
from curation.verdicts import DataSetStep, Decision, decide_by_rules
from tests.mutation.mutant import Mutant, replaced

__all__ = ["reason_mutants", "side_mutants"]


def reason_mutants(step: str) -> Iterator[Mutant]:
    """Each reason of a step never fires: of a filter the next one that applies does instead, if any."""
    kind = step_class(step)
    for reason in kind.reasons:

        def apply(reason: str = reason) -> Any:
            if issubclass(kind, DataSetStep):
                return replaced(kind, "verdicts", _keeping(kind, reason))
            return _never(reason)

        yield Mutant(step, "reason", f"{reason} never fires", apply)


@contextmanager
def _never(reason: str) -> Iterator[None]:
    """Every module that decides by rules does so without one reason."""

    def without(n_rows: int, reasons: Any, hits: Any) -> Decision:
        return decide_by_rules(n_rows, reasons, {name: hit for name, hit in hits.items() if name != reason})

    with ExitStack() as stack:
        for name, module in list(sys.modules.items()):
            if name.startswith("curation.") and vars(module).get("decide_by_rules") is decide_by_rules:
                stack.enter_context(replaced(module, "decide_by_rules", without))
        yield


def _keeping(kind: Any, reason: str) -> Any:
    """The verdicts of a data-set step, where a reason keeps."""
    usual, place = kind.verdicts, list(kind.reasons).index(reason)

    def verdicts(self: Any, shard: int, context: Any) -> Any:
        decision, scores = usual(self, shard, context)
        mine = decision.reason == place
        return Decision(decision.keep | mine, np.where(mine, -1, decision.reason).astype(np.int16)), scores

    return verdicts


def side_mutants(step: str) -> Iterator[Mutant]:
    """Each rule of `rules` drops on the other side of its limit."""
    if step != "rules":
        return
    from curation.filters.rules.rule import BY_NAME

    for name, rule in BY_NAME.items():
        other = replace(rule, side="min" if rule.side == "max" else "max")
        yield Mutant(step, "side", f"{name}: {rule.side} -> {other.side}", partial(replaced, BY_NAME, name, other))
