"""The mutation check: which deliberate faults of the filters do the golden cases, the gate and the bounds of impact notice?

    python -m tests.mutation                                # the golden cases and the shipped sample, all steps
    python -m tests.mutation --filter rules length          # some of them
    python -m tests.mutation --cases                        # the golden cases alone
    python -m tests.mutation --gold --unit --report bench/results/mutation.md     # all judges, and the page

Each judge is asked only about what those before it let pass: golden cases, sample, floors, pinned tables, unit tests. Exit 1 if a
mutant survives of which nobody has said why it is harmless (`harmless.py`).
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from curation.dedup import DATA_SET_STEPS
from curation.filters import FILTERS
from tests.mutation.harmless import why_harmless
from tests.mutation.report import Survey, page, told
from tests.mutation.survey import Judges, survey

STEPS = (*FILTERS, *DATA_SET_STEPS)


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser("python -m tests.mutation", description=(__doc__ or "").partition("\n")[0])
    made.add_argument("--filter", nargs="+", metavar="NAME", default=list(STEPS), choices=STEPS, help="steps to try")
    made.add_argument("--cases", action="store_true", help="ask the golden cases only")
    made.add_argument("--gold", action="store_true", help="ask the gate's floors, too, where the gold is there")
    made.add_argument("--unit", action="store_true", help="ask the unit tests of the step, too")
    made.add_argument("--scoring", type=int, default=0, metavar="N", help="draw N faults of the code that scores, too")
    made.add_argument("--report", type=Path, metavar="FILE", help="write the page there")
    made.add_argument(
        "--results", type=Path, metavar="FOLDER", help="keep what is found of each step there, and take it from there"
    )
    return made


def main(argv: Sequence[str] | None = None) -> int:
    arguments = parser().parse_args(argv)
    judges = Judges(sample=not arguments.cases, gold=arguments.gold, unit=arguments.unit)
    surveys: list[Survey] = []
    for step in arguments.filter:
        kept = arguments.results / f"{step}.json" if arguments.results else None
        if kept is not None and kept.exists():
            surveys.append(Survey.of(json.loads(kept.read_text(encoding="utf-8"))))
            continue
        begin = time.perf_counter()
        results = survey(step, judges, scoring=arguments.scoring)
        surveys.append(Survey.made(step, results, time.perf_counter() - begin))
        if kept is not None:
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.write_text(json.dumps(surveys[-1].plain(), ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
        print(told(surveys[-1]), flush=True)
    if arguments.report:
        arguments.report.write_text(page(surveys), encoding="utf-8")
    return int(any(why_harmless(step, name) is None for one in surveys for step, name in one.survivors))


if __name__ == "__main__":
    sys.exit(main())
