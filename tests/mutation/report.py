"""What the mutation check found, in lines for a terminal and as the page `bench/results/mutation.md`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tests.mutation.check import Result
from tests.mutation.harmless import why_harmless
from tests.mutation.mutant import CLASSES

__all__ = ["Survey", "page", "told"]

JUDGES = ("golden case", "sample", "floor", "pinned table", "unit test")


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
    """Markdown: a table of who noticed what, and every survivor with why."""
    head = ["step", "mutants", *JUDGES, "nobody"]
    rows: list[list[Any]] = [
        [one.step, one.total(), *(one.total(judge) for judge in (*JUDGES, "nobody"))] for one in surveys
    ]
    rows.append(["all", *(sum(int(row[i]) for row in rows) for i in range(1, len(head)))])
    lines = [INTRODUCTION, *_table(head, rows), "", "By class, all steps together:", ""]
    classes = []
    for of in CLASSES:
        by: Counter[str] = Counter()
        for one in surveys:
            by.update(one.counts.get(of, {}))
        if by:
            classes.append([of, by.total(), *(by[judge] for judge in (*JUDGES, "nobody"))])
    lines += [*_table(["class", *head[1:]], classes), "", "## What nothing notices", ""]
    for one in surveys:
        for step, name in one.survivors:
            why = why_harmless(step, name)
            lines.append(f"- **{step}**: {name}. " + (f"Harmless: {why}." if why else "**Open.**"))
    return "\n".join(lines) + "\n"


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
- **pinned table**: the number stands in a table whose digest `tests/golden/tables.json` holds, so that a change needs a reason there;
- **unit test**: only a unit test of the step fails (`make test`).
"""
