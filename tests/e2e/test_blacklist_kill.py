"""Writers of a blacklist that are killed at any moment: what they were told is written is there, and nothing is half there."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pytest

from curation.blacklist import Blacklist, append
from curation.blacklist.files import open_files
from curation.blacklist.history import damages, versions
from tests.blacklists import FACTS, key, texts

REPO = Path(__file__).resolve().parents[2]
WRITER = """
import itertools, sys
from curation.blacklist import append, compact
from tests.blacklists import texts
folder, first = sys.argv[1], int(sys.argv[2])
for number in itertools.count(first):
    print(number, append(folder, texts([number]), {"who": str(first), "why": str(number)}), flush=True)
    if number % 7 == 0:
        compact(folder)
"""


@pytest.mark.slow
def test_writers_that_are_killed_lose_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    """Four times two at once, each killed with SIGKILL at some moment; the next ones go on behind them."""
    moments = random.Random(7)
    acknowledged: dict[int, int] = {}
    for first in range(0, 80_000, 20_000):
        started = [
            subprocess.Popen(
                [sys.executable, "-c", WRITER, str(tmp_path), str(first + 10_000 * one)],
                cwd=REPO,
                stdout=subprocess.PIPE,
                text=True,
            )
            for one in range(2)
        ]
        outputs = []
        for process in started:
            assert process.stdout is not None
            outputs.append(process.stdout.readline())  # it is at work
        for process in started:
            time.sleep(moments.uniform(0.05, 0.6))
            process.kill()
        for process, output in zip(started, outputs, strict=True):
            lines = (output + process.communicate()[0]).split("\n")[:-1]  # the last one may be torn
            acknowledged |= {int(number): int(version) for number, version in map(str.split, lines)}
    assert list(damages(tmp_path)) == []
    last = append(tmp_path, texts([99_999]), FACTS)
    facts = {one.number: one.facts["why"] for one in versions(open_files(tmp_path), 1, last)}
    assert {number: facts[version] for number, version in acknowledged.items()} == {n: str(n) for n in acknowledged}
    assert len(acknowledged) >= 8
    # A version that was not acknowledged may be there, whole, once for each writer that was killed.
    assert len(acknowledged) < last <= len(acknowledged) + 9
    blacklist = Blacklist.open(tmp_path)
    rows = blacklist.lookup(pa.array([key(number) for number in acknowledged], pa.binary(16)))
    assert (rows >= 0).all()
    assert len(blacklist) == last


ONCE = """
import itertools, sys
from curation.blacklist import append, history
from tests.blacklists import FACTS, texts
history._TAIL = 7
for number in itertools.count():
    print(number, append(sys.argv[1], texts([number]), FACTS, once=f"gpt/{number}"), flush=True)
"""


@pytest.mark.slow
def test_killed_writers_of_the_same_names_append_each_once(tmp_path: Path) -> None:
    """Three times three at once, all with the same names from the first on, each killed with SIGKILL at some moment."""
    moments = random.Random(5)
    acknowledged: set[tuple[int, int]] = set()
    for _ in range(3):
        started = [
            subprocess.Popen([sys.executable, "-c", ONCE, str(tmp_path)], cwd=REPO, stdout=subprocess.PIPE, text=True)
            for _ in range(3)
        ]
        outputs = []
        for process in started:
            assert process.stdout is not None
            outputs.append(process.stdout.readline())  # it is at work
        for process in started:
            time.sleep(moments.uniform(0.1, 0.8))
            process.kill()
        for process, output in zip(started, outputs, strict=True):
            lines = (output + process.communicate()[0]).split("\n")[:-1]  # the last one may be torn
            acknowledged |= {(int(number), int(version)) for number, version in map(str.split, lines)}
    assert list(damages(tmp_path)) == []
    last = append(tmp_path, texts([99_999]), FACTS)
    names = [one.facts.get("once") for one in versions(open_files(tmp_path), 1, last)]
    assert names == [*(f"gpt/{number}" for number in range(last - 1)), None]
    assert {(number, number + 1) for number, _ in acknowledged} == acknowledged
    assert len({number for number, _ in acknowledged}) >= 12
    assert (tmp_path / "once.json").exists()
