"""The gate: golden cases of every filter, and its gold figures against the floors of `tests/golden/floors.json`.

    python -m tests.gate                                          # golden cases, floors, aims; 1 if anything is broken
    python -m tests.gate --only rules quality                     # some families of figures, without the cases
    python -m tests.gate --update                                 # raise floors to what is reached, and add new ones
    python -m tests.gate --update --lower 'rules.junk_hit.emoji' --reason 'emoji of signatures are no junk'
    python -m tests.gate --update --corpus 2_text                 # the corpus was changed, and that is meant

Where the test data are not there, the figures that need them are not judged, and the last line says so.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path

from curation.errors import nearest
from tests.gate.aims import aims_broken
from tests.gate.families import FAMILIES
from tests.gate.floors import FLOORS, Floors, FloorsError, broken, new_figures, read, updated, vanished, write
from tests.gate.gold import DATA
from tests.gate.history import falls
from tests.gate.judge import Result, absent, digests, judge
from tests.gate.noise import noise_of

MANY = 30
"""Lines of one kind that are shown."""


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser("python -m tests.gate", description=(__doc__ or "").partition("\n")[0])
    made.add_argument("--only", nargs="+", metavar="FAMILY", help=f"families of figures: {', '.join(FAMILIES)}")
    made.add_argument(
        "--no-cases", action="store_true", help="leave the golden cases out, which run among the fast tests too"
    )
    made.add_argument("--update", action="store_true", help="raise floors to what is reached, add new ones")
    made.add_argument(
        "--lower", nargs="+", default=[], metavar="FIGURE", help="with --update: these may fall; * stands for anything"
    )
    made.add_argument("--reason", metavar="WHY", help="with --lower: why, one sentence, written beside the floor")
    made.add_argument(
        "--corpus", nargs="+", default=[], metavar="NAME", help="with --update: these corpora were changed on purpose"
    )
    made.add_argument("--data", type=Path, default=DATA, help="folder of the test data")
    made.add_argument("--floors", type=Path, default=FLOORS, help=argparse.SUPPRESS)
    return made


def main(argv: Sequence[str] | None = None) -> int:
    """0: all holds; 1: something is broken, or an update was refused; 2: wrong use."""
    arguments = parser().parse_args(argv)
    try:
        _check_use(arguments)
        return _run(arguments)
    except FloorsError as error:
        print(f"gate: {error}", file=sys.stderr)
        return 2


def _check_use(arguments: argparse.Namespace) -> None:
    for name in arguments.only or ():
        if name not in FAMILIES:
            raise FloorsError(f"no family {name!r}{nearest(name, FAMILIES)}. There are {', '.join(FAMILIES)}")
    if not arguments.update and (arguments.lower or arguments.reason or arguments.corpus):
        raise FloorsError("--lower, --reason and --corpus belong to --update")
    known = {corpus for name in FAMILIES for corpus in FAMILIES[name].corpora}
    for name in arguments.corpus:
        if name not in known:
            raise FloorsError(f"no corpus {name!r}{nearest(name, known)}. There are {', '.join(sorted(known))}")
    if arguments.lower and not (arguments.reason or "").strip():
        raise FloorsError("a floor is lowered for a reason only: say it with --reason")
    if arguments.reason and not arguments.lower:
        raise FloorsError("--reason says why floors fall: name them with --lower")


def _run(arguments: argparse.Namespace) -> int:
    floors = read(arguments.floors)
    wanted = list(arguments.only or FAMILIES)
    found = digests(wanted, arguments.data)
    missing = absent(wanted, arguments.data, found)
    there = [name for name in wanted if name not in missing]
    changed = [name for name, digest in found.items() if digest and digest != floors.corpora.get(name)]
    if unmeant := [name for name in changed if not (arguments.update and name in arguments.corpus)]:
        print(f"gate: {_of_corpora(unmeant, floors, arguments.update)}", file=sys.stderr)
        return 1
    result = judge(there, arguments.data, cases=not (arguments.no_cases or arguments.only))
    if arguments.update:
        return _update(arguments, floors, there, result, {name: digest for name, digest in found.items() if digest})
    problems = _problems(floors, there, result)
    if arguments.floors == FLOORS:
        problems += [
            f"{one}. Lower it with: python -m tests.gate --update --lower FIGURE --reason WHY" for one in falls()
        ]
    return _report(problems, result, missing)


def _of_corpora(names: Sequence[str], floors: Floors, update: bool) -> str:
    known = [name for name in names if name in floors.corpora]
    what = "has another SHA-256 than the floors were measured on" if known else "has no floors yet"
    hint = " ".join(f"'{name}'" if " " in name else name for name in names)
    return (
        f"gold {', '.join(names)} {what}, so its figures say nothing of the filters. "
        f"If that is meant{', name it' if update else ''}: python -m tests.gate --update --corpus {hint}"
    )


def _problems(floors: Floors, families: Collection[str], result: Result) -> list[str]:
    """A sentence for whatever is not as it should be."""
    said = []
    for name, (figure, floor) in broken(floors, result.figures).items():
        noise = f" less {floor.noise:g}" if floor.noise else ""
        said.append(
            f"{name}: {figure.share:.6f} ({figure.hits:g} of {figure.n}) is below its floor of {floor.floor:g}{noise}"
        )
    said += [
        f"{name}: has a floor, and nothing measures it any more" for name in vanished(floors, result.figures, families)
    ]
    said += [
        f"{name}: is new and has no floor: python -m tests.gate --update"
        for name in new_figures(floors, result.figures)
    ]
    said += aims_broken(result.figures, families)
    return said


def _report(problems: Sequence[str], result: Result, missing: Mapping[str, str]) -> int:
    """Say it all, and return the exit code. missing: families that were not judged, and why."""
    if result.cases:
        print(f"{result.cases}\n\ngate: golden cases fail, see above")
    for one in problems:
        print(f"gate: {one}")
    for why in sorted(set(missing.values())):
        print(f"gate: NOT JUDGED: {', '.join(name for name in missing if missing[name] == why)}: {why}")
    if problems or result.cases:
        print("gate: closed. What a floor is, and when it may fall: docs/how-to/keep-the-gate.md")
        return 1
    cases = "golden cases and " if result.cases is not None else ""
    what = "open" if not missing else "open as far as it was judged"
    seconds = sum(result.seconds.values())
    print(f"gate: {what}; {cases}{len(result.figures)} figures hold, {seconds:.0f} s of processor time")
    return 0


def _update(
    arguments: argparse.Namespace, floors: Floors, there: Collection[str], result: Result, found: dict[str, str]
) -> int:
    day = datetime.now(timezone.utc).date().isoformat()
    noises = {name: noise_of(name, figure.n) for name, figure in result.figures.items()}
    reason = f"{day}: {arguments.reason.strip()}" if arguments.reason else None
    update = updated(floors, result.figures, there, noises, lower=arguments.lower, reason=reason, corpora=found)
    for name in update.refused:
        figure = result.figures.get(name)
        reached = f"{figure.share:.6f} ({figure.hits:g} of {figure.n})" if figure else "nothing"
        print(f"gate: {name}: measures {reached}, and its floor is {floors.floors[name].floor:g}")
    if update.refused or result.cases:
        what = "golden cases fail" if result.cases else "floors fall only with --lower FIGURE --reason WHY"
        print(f"gate: nothing was written: {what}")
        return 1
    for what in ("raised", "lowered", "added", "removed"):
        names: tuple[str, ...] = getattr(update, what)
        for name in names[:MANY]:
            print(f"{what}: {name} {_move(floors, update.floors, name)}")
        if len(names) > MANY:
            print(f"{what}: {len(names) - MANY} more")
    write(update.floors, arguments.floors)
    untouched = sorted(set(FAMILIES) - set(there))
    print(
        f"{arguments.floors.name} written"
        + (f"; not judged, and as they were: {', '.join(untouched)}" if untouched else "")
    )
    return 0


def _move(before: Floors, after: Floors, name: str) -> str:
    old, new = before.floors.get(name), after.floors.get(name)
    return " -> ".join(f"{one.floor:g}" for one in (old, new) if one is not None)


if __name__ == "__main__":
    sys.exit(main())
