"""All mutants of a step, and of each who notices it: judges are asked in turn, each about what those before it let pass."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from curation.steps import step_class
from curation.verdicts import Filter
from tests.gate.gold import MissingDataError
from tests.mutation.check import SECONDS, Result, mutants_of, scoring_mutants, try_mutants
from tests.mutation.data_set import DataSetGolden, data_set_mutants, is_data_set_step
from tests.mutation.golden import Golden
from tests.mutation.harmless import why_harmless
from tests.mutation.mutant import Mutant
from tests.mutation.others import FloorsJudge, SampleJudge, UnitTests, pinned

__all__ = ["Judges", "survey"]

SEED = 20261130
"""Of the draw of scoring mutants."""

LONG = 900
"""Seconds that unit tests may take: on a busy machine they are slow, and that says nothing of a mutant."""

Asked = Callable[[Mutant], list[str]]


@dataclass
class Judges:
    """Who is asked beside the golden cases; what takes time is made once."""

    sample: bool = True
    gold: bool = False
    unit: bool = False
    _sample: SampleJudge | None = field(default=None, init=False)
    _floors: FloorsJudge | None = field(default=None, init=False)

    def of(self, step: str, left: Sequence[Mutant]) -> list[tuple[str, Asked]]:
        """Those that can judge what is left of a step's mutants, in order, and ready: that takes time, so only who is needed."""
        found: list[tuple[str, Asked]] = []
        if (
            self.sample
            and issubclass(step_class(step), Filter)
            and not all(_never_meets(one, "sample") for one in left)
        ):
            if self._sample is None:
                self._sample = SampleJudge()
                self._sample.prepare()
            found.append(("sample", self._sample.noticed))
        if self.gold and not all(_never_meets(one, "floor") for one in left):
            self._floors = self._floors or FloorsJudge()
            try:
                self._floors.prepare(step)
                found.append(("floor", self._floors.noticed))
            except MissingDataError as error:
                print(f"{step}: floors are not asked: {error}")
        found.append(("pinned table", pinned))
        if self.unit:
            found.append(("unit test", UnitTests().noticed))
        return found


def survey(step: str, judges: Judges, *, scoring: int = 0) -> list[Result]:
    """Every mutant of a step with who noticed it first.

    Raises:
        AssertionError: a golden case fails without any mutant.
    """
    if is_data_set_step(step):
        return _survey_of_data_set_step(step, judges)
    golden = Golden(step)
    before = golden.noticed()
    assert not before, f"{step}: golden cases fail without any mutant: {before}"
    mutants = list(mutants_of(golden))
    if scoring:
        drawn = list(scoring_mutants(golden))
        mutants += random.Random(SEED).sample(drawn, min(scoring, len(drawn)))
    found = list(
        try_mutants(
            mutants, lambda mutant: golden.noticed(score=mutant.scores, concerns=mutant.concerns), "golden case"
        )
    )
    after = golden.noticed(score=True)
    assert not after, f"{step}: a mutant was not taken out: {after}"
    return list(_asked_on(found, judges, step))


def _survey_of_data_set_step(step: str, judges: Judges) -> list[Result]:
    golden = DataSetGolden(step)
    found = list(try_mutants(data_set_mutants(golden), lambda _: golden.noticed(), "golden case"))
    assert not golden.noticed(), f"{step}: a mutant was not taken out"
    return list(_asked_on(found, judges, step))


def _asked_on(results: list[Result], judges: Judges, step: str) -> Iterator[Result]:
    """The results, where those that survived, and of which nobody has said that they are harmless, are put to the other judges."""
    left = [one.mutant for one in results if one.survived and why_harmless(step, one.mutant.name) is None]
    others = judges.of(step, left) if left else []
    for result in results:
        for name, judge in others:
            if result.survived and result.mutant in left and not _never_meets(result.mutant, name):
                [result] = try_mutants([result.mutant], judge, name, LONG if name == "unit test" else SECONDS)
        yield result


def _never_meets(mutant: Mutant, judge: str) -> bool:
    """Whether a mutant matters under settings only that the judge never uses: presets of `rules` other than the default."""
    return judge in ("sample", "floor") and not mutant.concerns({})
