"""Which faults of a filter's settings, tables, decisions and reasons its golden cases notice."""

from __future__ import annotations

import signal
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tests.mutation.code import Reached, code_mutants, reached
from tests.mutation.golden import Golden
from tests.mutation.mutant import Mutant, clear_caches
from tests.mutation.reasons import reason_mutants, side_mutants
from tests.mutation.settings import setting_mutants, table_mutants

__all__ = ["Result", "decide_functions", "mutants_of", "scoring_mutants", "try_mutants"]

SECONDS = 60
"""After which a mutant that does not end is noticed."""


@dataclass(frozen=True)
class Result:
    """What became of a mutant."""

    mutant: Mutant
    judge: str
    """Who was asked last."""
    noticed_by: tuple[str, ...]
    """Cases that fail, or the error that it raised; empty: it survived."""

    @property
    def survived(self) -> bool:
        return not self.noticed_by


CACHES = {
    ("curation.filters.labels", "lookup_keys"),
    ("curation.filters.rules.presets", "preset_limits"),
    ("curation.filters.rules.limits", "read_limits"),
    ("curation.filters.rules.limits", "read_wide"),
    ("curation.filters.perplexity.limits", "shipped_limits"),
}
"""Functions that decisions go through and whose results are remembered: they are watched from the start."""


def decide_functions(golden: Golden) -> list[Reached]:
    """The functions that decisions run through, nothing of them remembered. How settings are read is another matter."""
    judges = [(golden.filter(group.settings), group.scores) for group in golden.groups]

    def decide() -> None:
        for judge, scores in judges:
            judge.decide(scores)

    clear_caches(CACHES)
    return reached(decide, ("curation/filters", "curation/verdicts.py"))


def mutants_of(golden: Golden) -> Iterator[Mutant]:
    """Every fault of a filter but those of scoring."""
    step = golden.step
    yield from setting_mutants(step)
    yield from table_mutants(step)
    yield from side_mutants(step)
    yield from reason_mutants(step)
    yield from code_mutants(step, decide_functions(golden), kinds={"comparison", "logic"})


def scoring_mutants(golden: Golden) -> Iterator[Mutant]:
    """Faults of the Python code that scores: comparisons, joins, sums and numbers. Kernels are out of reach."""
    groups = [(golden.filter(group.settings), group.batch) for group in golden.groups]

    def score() -> None:
        for judge, batch in groups:
            judge.score(batch)

    deciding = {(one.file, one.line) for one in decide_functions(golden)}
    found = [one for one in reached(score, ("curation/filters",)) if (one.file, one.line) not in deciding]
    yield from code_mutants(golden.step, found, kinds={"comparison", "logic", "scoring"}, scores=True)


def try_mutants(
    mutants: Iterable[Mutant], judge: Callable[[Mutant], list[str]], name: str = "golden case", seconds: int = SECONDS
) -> Iterator[Result]:
    """Put in each mutant and ask a judge: it says who noticed it. An error counts as noticed, and so does no end in so long."""
    for mutant in mutants:
        with mutant.apply():
            noticed = tuple(_asked(judge, mutant, seconds))
        yield Result(mutant, name, noticed)


def _asked(judge: Callable[[Mutant], list[str]], mutant: Mutant, seconds: int) -> list[str]:
    try:
        with _at_most(seconds), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return judge(mutant)
    except Exception as error:
        return [f"{type(error).__name__}: {error}"[:200]]


@contextmanager
def _at_most(seconds: int) -> Iterator[None]:
    """Raises TimeoutError where what is done within takes longer."""

    def stop(*_: Any) -> None:
        raise TimeoutError(f"no end after {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
