"""Faults of the data-set steps, and their golden cases as judge: each case is a small run, so they cost a second rather than a blink."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

from curation.dedup import DATA_SET_STEPS
from curation.steps import step_class
from tests.fakes import make_run, run_steps
from tests.mutation.code import Reached, code_mutants, reached
from tests.mutation.golden import load
from tests.mutation.mutant import Mutant
from tests.mutation.reasons import reason_mutants
from tests.mutation.settings import setting_mutants

__all__ = ["DataSetGolden", "data_set_mutants", "is_data_set_step"]

DECIDING = ("exact.py", "near.py", "priority.py", "verify.py", "choose.py")
"""Files of `curation/dedup` in which it is decided what stays; the others only propose, hold or tell."""
NOT_DECIDING = {
    *("preflight", "facts", "ready", "n_items", "max_values", "bucket_plan", "_refuse_giant", "_batches", "misses"),
    *("_check", "_enough", "_known", "_scripts", "_six_decimals", "parsed", "score_of", "run_item"),
}
"""Functions there that cut the work into parts, refuse it, or check settings."""


def is_data_set_step(step: str) -> bool:
    return step in DATA_SET_STEPS


class DataSetGolden:
    """The golden cases of a data-set step."""

    def __init__(self, step: str, cases: list[dict[str, Any]] | None = None) -> None:
        self.step = step
        self.cases = load(step) if cases is None else cases

    def wrong(self, case: dict[str, Any]) -> bool:
        """Whether other documents of a case are kept than a person decided."""
        kind = step_class(self.step)
        judge = kind(kind.Config.model_validate(case.get("config", {})))
        with tempfile.TemporaryDirectory() as folder, mock.patch("os.fsync"):
            judged = run_steps(make_run(Path(folder), [case["texts"]]), [judge])
            reasons = {row["reason"] for row in judged.verdicts(self.step) if not row["keep"]}
            return bool(judged.kept(self.step) != case["kept"] or not reasons <= {case["reason"]})

    def noticed(self, *, most: int = 1) -> list[str]:
        """Ids of cases that fail, up to `most`."""
        found: list[str] = []
        for case in self.cases:
            if self.wrong(case):
                found.append(case["id"])
                if len(found) >= most:
                    break
        return found


def functions(golden: DataSetGolden) -> list[Reached]:
    """The functions that decide what stays, as far as a few cases reach them."""
    found = reached(lambda: golden.noticed(most=len(golden.cases)), ("curation/dedup",))
    return [one for one in found if one.file.name in DECIDING and one.name.rpartition(".")[2] not in NOT_DECIDING]


def data_set_mutants(golden: DataSetGolden) -> Iterator[Mutant]:
    yield from setting_mutants(golden.step)
    yield from reason_mutants(golden.step)
    yield from code_mutants(golden.step, functions(golden), kinds={"comparison", "logic"})
