"""What the mutation check found, in lines for a terminal and as the page `bench/results/mutation.md`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tests.mutation.check import Result
from tests.mutation.drawn import DRAWN
from tests.mutation.harmless import why_harmless
from tests.mutation.mutant import CLASSES

__all__ = ["Survey", "page", "told"]

BEHAVIOUR = ("golden case", "sample", "floor", "unit test")
"""Judges that see what a fault does."""
PINNED = "pinned table"
"""Sees that a file is another, and nothing of what follows from it."""
JUDGES = (*BEHAVIOUR, PINNED)
HEAD = ("mutants", *BEHAVIOUR, "noticed by what it does", PINNED, "nobody")


@dataclass(frozen=True)
class Survey:
    """Counts of one step, and what survived."""

    step: str
    counts: Mapping[str, Mapping[str, int]]
    """Class of mutant -> who noticed -> how many; `nobody` for survivors."""
    survivors: Sequence[tuple[str, str]]
    """(step, mutant)"""
    seconds: float

    @classmethod
    def made(cls, step: str, results: Sequence[Result], seconds: float) -> Survey:
        counts: dict[str, Counter[str]] = {}
        for one in results:
            counts.setdefault(one.mutant.of, Counter())["nobody" if one.survived else one.judge] += 1
        left = [(step, one.mutant.name) for one in results if one.survived]
        return cls(step, {of: dict(by) for of, by in counts.items()}, left, seconds)

    def plain(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> Survey:
        return cls(plain["step"], plain["counts"], [(a, b) for a, b in plain["survivors"]], plain["seconds"])

    def total(self, judge: str | None = None) -> int:
        return sum(n for by in self.counts.values() for name, n in by.items() if judge in (None, name))


def told(one: Survey) -> str:
    """For a terminal."""
    by = ", ".join(f"{judge} {one.total(judge)}" for judge in JUDGES if one.total(judge))
    lines = [
        f"{one.step}: {one.total()} mutants in {one.seconds:.0f} s; noticed by {by}; survivors {one.total('nobody')}"
    ]
    for step, name in one.survivors:
        why = why_harmless(step, name)
        lines.append(f"  {'harmless' if why else 'OPEN    '}  {name}" + (f": {why}" if why else ""))
    return "\n".join(lines)


def page(surveys: Sequence[Survey]) -> str:
    """The whole page, in Markdown: tables of who noticed what, every survivor with why, how it was run, and what is not known."""
    every: Counter[str] = Counter()
    steps, by_class = [], {of: Counter[str]() for of in CLASSES}
    for one in surveys:
        by = Counter({judge: one.total(judge) for judge in (*JUDGES, "nobody")})
        steps.append([one.step, *_row(by)])
        every.update(by)
        for of, some in one.counts.items():
            by_class[of].update(some)
    classes = [[of, *_row(by)] for of, by in by_class.items() if by]
    lines = [INTRODUCTION, *_table(["step", *HEAD], [*steps, ["all", *_row(every)]]), "", _in_short(every), ""]
    lines += [
        "By class, all steps together:",
        "",
        *_table(["class", *HEAD], classes),
        "",
        "## What nothing notices",
        "",
    ]
    for one in surveys:
        for step, name in one.survivors:
            why = why_harmless(step, name)
            lines.append(f"- **{step}**: {name}. " + (f"Harmless: {why}." if why else "**Open.**"))
    return "\n".join([*lines, "", RUN, *_drawn()]) + "\n"


def _row(by: Mapping[str, int]) -> list[int]:
    """The numbers of a row, after HEAD."""
    seen = [by.get(judge, 0) for judge in BEHAVIOUR]
    return [sum(by.values()), *seen, sum(seen), by.get(PINNED, 0), by.get("nobody", 0)]


def _in_short(by: Mapping[str, int]) -> str:
    """What the last row says, in a sentence."""
    mutants, *_, seen, pinned, nobody = _row(by)
    said = f"{seen:,} of {mutants:,} faults are noticed by what they do, {nobody:,} by nobody."
    if pinned:
        said += (
            f" Of the other {pinned:,} only a digest says that a table is another than it was: **whether any text would be judged "
            "otherwise, nothing here tells**."
        )
    return said


def _drawn() -> list[str]:
    rows = [[step, one.possible, one.tried, len(one.survivors)] for step, one in DRAWN.items()]
    lines = [DRAW, *_table(["step", "possible", "tried", "survived"], rows), "", KERNELS]
    for step, one in DRAWN.items():
        lines += [f"- **{step}**", *(f"  - {name}" for name in one.survivors)]
    return lines


def _table(head: Sequence[Any], rows: Sequence[Sequence[Any]]) -> list[str]:
    cells = [[str(cell) for cell in row] for row in (head, ["---"] * len(head), *rows)]
    return [f"| {' | '.join(row)} |" for row in cells]


INTRODUCTION = """# Which faults of the filters are noticed

`python -m tests.mutation --gold --unit --report bench/results/mutation.md`: every number among the settings' defaults and in the
tables of limits is moved by a fifth, up and down (whole numbers by 1 at least; a share that would leave 1 goes half of the way
there); every comparison that `decide` reaches is turned into its opposite, and loses or gains its equality; every `and`, `or`, `not`,
`&`, `|`, `~`, `any`, `maximum` there is turned; every rule of `rules` looks at its other side; every reason never fires. One fault at
a time, in a process that judges anew; no file is changed.

A fault is counted under the first that notices it:

- **golden case**: a case of `tests/golden/cases` fails;
- **sample**: more documents of the shipped sample change sides than the bounds of `web` allow (`impact.max_kept_change`,
  `impact.max_language_change`), so `corpusmill impact` fails;
- **floor**: a figure of the gate falls below its floor in `tests/golden/floors.json`;
- **unit test**: only a unit test of the step fails (`make test`);
- **pinned table**, which is no such notice: the number stands in a table whose digest `tests/golden/tables.json` holds, so that
  whoever changes it must give a reason there. A digest says that a file is another, not that a text is judged otherwise, so these are
  in no sum of what is noticed. They are not put to unit tests, for there are thousands.
"""

RUN = """## How this was run

2026-11-30, on 2 cores of a machine that was shared and busy, Python 3.11. Seconds say little; the golden cases alone take some 3 s for
a small filter, 20 s for the 14,185 mutants of `rules`. Not in one go, and not every judge was asked everywhere: of `perplexity` and
`rules` neither sample nor floors were asked, so that nobody knows how many of their pinned numbers those would notice; of
`safety_model` not the sample; floors were asked of `safety_model` only. 25 faults of `safety_model` that no judge noticed were counted
as pinned after its table had been pinned. The unit tests of `near` were run on 33 of its survivors, by a limit of 60 s each, which four
did not end within: those count as not noticed. Two more are noticed by tests that were written for them later, and only those tests were
run on them. The first list of `near` was made before kernels and checks of settings were left out of the mutants; its counts are of
those that are still made.

When the check began, the golden cases noticed 3 of the 96 moves of the default limits of `rules`, none of the 8 of html_noise's
thresholds and none of the 6 of safety_terms'. 334 cases were written to close that.

## What a golden case near a limit means

Cases named `within-`, `at-` and `beyond-` stand within a fifth of a limit, on its two sides. Where a reader would judge a text otherwise
than the limit does, the case says so: such a text is kept because good texts of its language reach the same figure, and for no other
reason.
"""

DRAW = """## A draw of faults in the code that scores

Sums, numbers, comparisons and joins in the Python functions that scoring runs through (kernels are out of reach: their machine code is made
once). Only golden cases were asked. Many of these are of no account (a guard against dividing by nothing, the order of what is equal); they
were **not** looked at one by one, so all of them are open.
"""

KERNELS = """Of `rules` and `near` there is no figure: a fault that hands a kernel a wrong size ends the process.
"""
