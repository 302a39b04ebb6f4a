"""Any interleaving of writers gives one history, whose sum is that of its entries one after the other."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.blacklist import Blacklist, append, compact, history
from curation.blacklist.files import LocalFiles
from curation.blacklist.history import damages, segment, versions
from tests.blacklists import FACTS, NOW, key, texts

KEYS = 6
ENTRY = st.tuples(st.integers(0, KEYS - 1), st.booleans(), st.sampled_from([None, -1, 1]))
APPENDS = st.lists(st.lists(ENTRY, min_size=1, max_size=4), min_size=1, max_size=6)


def table_of(entries: list[tuple[int, bool, int | None]]) -> pa.Table:
    times = [None if days is None else NOW + timedelta(days=days) for _, _, days in entries]
    return texts([one for one, _, _ in entries], removed=[removed for _, removed, _ in entries], expires=times)


def replayed(folder: Path, last: int) -> set[int]:
    """What holds, by reading all entries one after the other."""
    files = history.open_files(folder)
    state: dict[bytes, bool] = {}
    for version in versions(files, 1, last):
        for row in segment(files, version).read_all().to_pylist():
            state[row["key"]] = not row["removed"] and (row["expires"] is None or row["expires"] > NOW)
    return {number for number in range(KEYS) if state.get(key(number))}


def found(folder: Path, version: int) -> set[int]:
    blacklist = Blacklist.open(folder, version, at=NOW)
    rows = blacklist.lookup(pa.array([key(number) for number in range(KEYS)], pa.binary(16)))
    hits = {number for number in range(KEYS) if rows[number] >= 0}
    assert set(blacklist.entries(["key"])["key"].to_pylist()) == {key(number) for number in hits}
    assert len(blacklist) == len(hits)
    return hits


@given(APPENDS, st.sets(st.integers(1, 6)))
@settings(max_examples=15, deadline=None)
def test_each_version_is_the_sum_of_its_segments(
    appends: list[list[tuple[int, bool, int | None]]], cut: set[int]
) -> None:
    """Removed, expired, added again in any order, with snapshots after any of them."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for number, entries in enumerate(appends, start=1):
            assert append(folder, table_of(entries), FACTS) == number
            if number in cut:
                compact(folder)
        for number in range(len(appends) + 1):
            assert found(folder, number) == replayed(folder, number)


def writer(
    folder: Path, appends: list[list[tuple[int, bool, int | None]]], name: str, killed: set[int]
) -> Iterator[int]:
    """A writer that yields before each change of the folder; the caller decides who goes on. `killed`: appends that end
    after their segment, as a process does that is killed."""
    for number, entries in enumerate(appends):
        facts = {"who": name, "why": str(number)}
        with tempfile.TemporaryDirectory() as room:
            made = Path(room) / "segment"
            table = history.checked_entries(table_of(entries), NOW)
            history._write_segment(table, facts, NOW, made)
            files = history.open_files(folder)
            while True:
                at = history._complete(files) + 1
                yield at
                here = folder / f".{name}.tmp"
                here.write_bytes(made.read_bytes())
                done = files.create(f"{history.stem(at)}.arrow", here)
                here.unlink()
                if done:
                    break
            yield at
            if number not in killed:
                history._seal(files, at)


@given(
    st.lists(APPENDS, min_size=2, max_size=3),
    st.lists(st.integers(0, 2), max_size=40),
    st.sets(st.integers(0, 5), max_size=2),
)
@settings(max_examples=15, deadline=None)
def test_any_interleaving_of_writers_keeps_all_in_order(
    plans: list[list[list[tuple[int, bool, int | None]]]], schedule: list[int], killed: set[int]
) -> None:
    """Each append is one version, each writer's in its order; no history has a hole, and its sum is that of its entries."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        append(folder, texts([0]), {"who": "first", "why": "0"})
        running = [writer(folder, plan, str(index), killed) for index, plan in enumerate(plans)]
        steps: list[Callable[[], object]] = [lambda one=one: next(one, None) for one in running]
        for turn in schedule:
            steps[turn % len(steps)]()
        for one in running:
            list(one)
        last = history._complete(history.open_files(folder))
        told = [one.facts for one in versions(history.open_files(folder), 1, last)]
        for index, plan in enumerate(plans):
            assert [one["why"] for one in told if one["who"] == str(index)] == [str(i) for i in range(len(plan))]
        assert last == 1 + sum(map(len, plans))
        assert found(folder, last) == replayed(folder, last)
        assert list(damages(folder)) == []


@given(st.permutations(range(4)))
@settings(max_examples=10, deadline=None)
def test_writers_of_different_keys_make_one_sum_in_any_order(order: list[int]) -> None:
    """Which of them came first is not seen in what holds."""
    entries = [texts([0]), texts([1, 2]), texts([3], expires=NOW), texts([4], removed=True)]
    with tempfile.TemporaryDirectory() as name:
        for number in order:
            append(name, entries[number], FACTS)
        assert found(Path(name), 4) == {0, 1, 2}


class Killed(BaseException):
    """Ends a writer in the middle, as SIGKILL does."""


class Turns:
    """Writers in threads, of which one runs at a time: each stops before it looks at the folder or changes it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._own = threading.local()
        self._back = threading.Semaphore(0)
        for name in ("names", "_put_if_new"):
            monkeypatch.setattr(LocalFiles, name, self._stopping(getattr(LocalFiles, name)))

    def _stopping(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def stopping(*arguments: Any) -> Any:
            if (writer := getattr(self._own, "writer", None)) is not None:
                self._back.release()
                writer["go"].acquire()
                if writer["killed"]:
                    raise Killed
            return function(*arguments)

        return stopping

    def start(self, act: Callable[[], object]) -> dict[str, Any]:
        """A writer that waits for its first turn."""
        writer: dict[str, Any] = {"go": threading.Semaphore(0), "killed": False, "done": False}

        def run() -> None:
            self._own.writer = writer
            writer["go"].acquire()
            try:
                if not writer["killed"]:
                    act()
            except Killed:
                pass
            finally:
                writer["done"] = True
                self._back.release()

        writer["thread"] = threading.Thread(target=run)
        writer["thread"].start()
        return writer

    def turn(self, writer: dict[str, Any], *, kill: bool = False) -> None:
        """Let a writer go to its next stop; a killed one ends there."""
        if not writer["done"]:
            writer["killed"] = writer["killed"] or kill
            writer["go"].release()
            self._back.acquire()
            if writer["done"]:
                writer["thread"].join()


@given(
    st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=4), min_size=2, max_size=3),
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 19).map(lambda n: n == 0)), max_size=60),
    st.integers(0, 3),
)
@settings(max_examples=15, deadline=None)
def test_any_interleaving_appends_a_name_once(
    plans: list[list[int]], schedule: list[tuple[int, bool]], tail: int
) -> None:
    """Writers of the same names, any of them killed anywhere: each acknowledged name is one version, that of all who asked."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(history, "_TAIL", tail)
        turns = Turns(patch)
        told: list[tuple[str, int]] = []

        def act(plan: list[int]) -> None:
            for name in plan:
                told.append((str(name), append(folder, texts([name]), FACTS, once=str(name))))

        writers = [turns.start(lambda plan=plan: act(plan)) for plan in plans]
        for index, kill in schedule:
            turns.turn(writers[index % len(writers)], kill=kill)
        for writer in writers:
            while not writer["done"]:
                turns.turn(writer)
        append(folder, texts([9]), FACTS)
        found = [
            one.facts.get("once") for one in versions(history.open_files(folder), 1, Blacklist.open(folder).version)
        ]
        names = [name for name in found if name is not None]
        assert len(names) == len(set(names))
        assert {(name, found.index(name) + 1) for name, _ in told} == set(told)
        assert list(damages(folder)) == []
