"""Writers of a blacklist that are killed at any moment: what they were told is written is there, and nothing is half there."""

from __future__ import annotations

import contextlib
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from curation.blacklist import Blacklist, append
from curation.blacklist.files import open_files
from curation.blacklist.history import damages, versions
from tests.blacklists import FACTS, key, texts

REPO = Path(__file__).resolve().parents[2]
PATIENCE = 300.0
"""Seconds for what takes a moment on a quiet machine."""
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


class Writer:
    """A writer in a process of its own, and what it acknowledged: pairs of a number and its version."""

    def __init__(self, code: str, *arguments: object) -> None:
        command = [sys.executable, "-c", code, *map(str, arguments)]
        self._process = subprocess.Popen(command, cwd=REPO, stdout=subprocess.PIPE, text=True)
        self._lines: list[str] = []
        self._more = threading.Condition()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                with self._more:
                    self._lines.append(line)
                    self._more.notify_all()

    def end(self) -> None:
        """Kill it if it is still there."""
        self._process.kill()
        self._process.wait(PATIENCE)
        self._reader.join()

    def kill_behind(self, count: int, seconds: float) -> None:
        """Kill it so long after it acknowledged `count` appends, however long those take."""
        with self._more:
            assert self._more.wait_for(lambda: len(self._lines) >= count, PATIENCE), f"{len(self._lines)} of {count}"
        time.sleep(seconds)
        self._process.kill()

    def acknowledged(self) -> set[tuple[int, int]]:
        """What it acknowledged before it ended."""
        assert self._process.wait(PATIENCE) == -signal.SIGKILL
        self._reader.join()
        whole = [line.split() for line in self._lines if line.endswith("\n")]  # the last one may be torn
        return {(int(number), int(version)) for number, version in whole}


@pytest.fixture
def start() -> Iterator[Callable[..., Writer]]:
    """Starts writers; none outlives the test."""
    with contextlib.ExitStack() as stack:

        def started(code: str, *arguments: object) -> Writer:
            writer = Writer(code, *arguments)
            stack.callback(writer.end)
            return writer

        yield started


@pytest.mark.slow
def test_writers_that_are_killed_lose_nothing_that_was_acknowledged(
    tmp_path: Path, start: Callable[..., Writer]
) -> None:
    """Four times two at once, each killed with SIGKILL at some moment; the next ones go on behind them."""
    moments = random.Random(7)
    acknowledged: dict[int, int] = {}
    for first in range(0, 80_000, 20_000):
        started = [start(WRITER, tmp_path, first + 10_000 * one) for one in range(2)]
        for writer in started:
            writer.kill_behind(moments.randint(2, 9), moments.uniform(0, 0.1))
        for writer in started:
            acknowledged |= dict(writer.acknowledged())
    assert list(damages(tmp_path)) == []
    last = append(tmp_path, texts([99_999]), FACTS)
    facts = {one.number: one.facts["why"] for one in versions(open_files(tmp_path), 1, last)}
    assert {number: facts[version] for number, version in acknowledged.items()} == {n: str(n) for n in acknowledged}
    assert len(acknowledged) >= 8 * 2
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
def test_killed_writers_of_the_same_names_append_each_once(tmp_path: Path, start: Callable[..., Writer]) -> None:
    """Three times three at once, all with the same names from the first on, each killed with SIGKILL at some moment."""
    moments = random.Random(5)
    acknowledged: set[tuple[int, int]] = set()
    for turn in range(1, 4):
        started = [start(ONCE, tmp_path) for _ in range(3)]
        for writer in started:
            writer.kill_behind(5 * turn + moments.randint(0, 4), moments.uniform(0, 0.1))
        for writer in started:
            acknowledged |= writer.acknowledged()
    assert list(damages(tmp_path)) == []
    last = append(tmp_path, texts([99_999]), FACTS)
    names = [one.facts.get("once") for one in versions(open_files(tmp_path), 1, last)]
    assert names == [*(f"gpt/{number}" for number in range(last - 1)), None]
    assert {(number, number + 1) for number, _ in acknowledged} == acknowledged
    assert len({number for number, _ in acknowledged}) >= 15
    assert (tmp_path / "once.json").exists()
