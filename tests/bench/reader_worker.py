"""Measures one format in a process of its own: commands come in as lines of JSON, answers go out the same way.

    PYTHON -m tests.bench.reader_worker FORMAT FOLDER SEQ_LEN < commands > answers

Run by an interpreter that has the tool; see reader_formats.py. The bench starts one for each format and asks them by
turns, so that what else the machine does falls on all of them. What a tool prints goes to standard error.
"""

from __future__ import annotations

import gc
import importlib.metadata
import itertools
import json
import multiprocessing
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tests.bench.reader_formats import FORMATS
from tests.bench.reader_interface import Format, Opened

__all__ = ["flip_byte", "memory"]

Answer = dict[str, Any]
CHUNK = 256
"""Rows between two looks at the clock."""


def memory(process: int | str = "self") -> Answer:
    """MB of a process: what is its own (written by it), and what is mapped from files and shared with the page cache."""
    lines = Path(f"/proc/{process}/smaps_rollup").read_text(encoding="ascii").splitlines()[1:]
    kb = {name: int(rest.split()[0]) for name, rest in (line.split(":") for line in lines)}
    return {"own": kb["Private_Dirty"] / 1024, "mapped": (kb["Rss"] - kb["Anonymous"]) / 1024}


def workers_memory() -> list[Answer]:
    """Memory of the processes that this one has started and that still run."""
    return [memory(child.pid) for child in multiprocessing.active_children() if child.pid]


def touch(row: Any) -> None:
    """Read every byte of a row, 8 at a time."""
    np.bitwise_xor.reduce(np.asarray(row).view(np.uint64))


def read_again(path: Path) -> None:
    """Drop a file from the page cache and read it in order, as it comes to a machine that trains.

    How the kernel laid out the pages of a file while it was written makes the same gather on the same bytes twice as
    fast or slow; after this, files of different writers are alike.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_SEQUENTIAL)
        while os.read(descriptor, 1 << 22):
            pass
    finally:
        os.close(descriptor)


class Stopwatch:
    """Wall and processor seconds, of this process, since it was made."""

    def __init__(self) -> None:
        self.wall, self.cpu = time.perf_counter(), time.process_time()

    def read(self) -> Answer:
        return {"wall": time.perf_counter() - self.wall, "cpu": time.process_time() - self.cpu}


def endless(opened: Opened) -> Iterator[Any]:
    """All rows in order, over and over."""
    while True:
        yield from opened.iterate()


def visit(rows: Iterable[Any], do: Callable[[Any], Any], seconds: float) -> Answer:
    """Do something with rows until the time is up; the number of rows, and what it took."""
    rows, done, watch = iter(rows), 0, Stopwatch()
    stop = time.perf_counter() + seconds
    while time.perf_counter() < stop:
        for row in itertools.islice(rows, CHUNK):
            do(row)
        done += CHUNK
    return {"rows": done, **watch.read()}


class Bench:
    """One format, and what can be asked of it; each method is a command."""

    def __init__(self, one: Format, folder: Path, seq_len: int) -> None:
        self.format, self.folder, self.seq_len = one, folder, seq_len
        self.opened: Opened | None = None

    def load(self) -> Answer:
        """Import what is needed."""
        watch = Stopwatch()
        self.format.load()
        versions = {name: importlib.metadata.version(name) for name in ("numpy", self.format.distribution)}
        return {**watch.read(), "versions": versions, "memory": memory()}

    def write(self, source: str) -> Answer:
        """Write all tokens, which lie in memory before."""
        rows = np.fromfile(source, np.uint16).reshape(-1, self.seq_len)
        self.format.prepare_to_write()
        watch = Stopwatch()
        self.format.write(rows, self.folder)
        took = watch.read()
        paths = [path for path in self.folder.rglob("*") if path.is_file()]
        for path in paths:
            read_again(path)
        return {**took, "bytes": sum(path.stat().st_size for path in paths)}

    def _open(self) -> Opened:
        if self.opened is None:
            self.opened = self.format.open(self.folder, self.seq_len)
        return self.opened

    def life(self, seconds: float) -> Answer:
        """Open, first row, first pass over all rows, with memory after each."""
        before, watch = memory(), Stopwatch()
        opened = self._open()
        np.asarray(opened.get(0))
        answer = {"open": watch.read(), "before": before, "opened": memory()}
        stop, done, watch = time.perf_counter() + seconds, 0, Stopwatch()
        for row in opened.iterate():
            touch(row)
            done += 1
            if done % CHUNK == 0 and time.perf_counter() > stop:
                break
        answer["pass"] = {"rows": done, **watch.read()}
        gc.collect()
        return {**answer, "passed": memory(), "n": opened.n}

    def rate(self, what: str, seconds: float, seed: int) -> Answer:
        """One way of reading for some time."""
        opened = self._open()
        if what == "sequential":
            return visit(endless(opened), touch, seconds)
        order = np.random.default_rng(seed).integers(0, opened.n, 1 << 16)
        if what == "batch":
            return self._batches(opened, order, seconds)
        get = opened.get
        do: dict[str, Callable[[int], Any]] = {
            "random": lambda i: touch(get(i)),
            "copy": lambda i: np.asarray(get(i)).astype(np.int64),
            "get": get,
        }
        return visit(itertools.cycle(order.tolist()), do[what], seconds)

    def _batches(self, opened: Opened, order: Any, seconds: float, size: int = 64) -> Answer:
        parts = itertools.cycle(order.reshape(-1, size))
        done, watch = 0, Stopwatch()
        stop = time.perf_counter() + seconds
        while time.perf_counter() < stop:
            done += len(opened.batch(next(parts)))
        return {"rows": done, **watch.read()}

    def loader(self, way: str, workers: int, batch: int, seconds: float, weigh: bool) -> Answer:
        """torch's DataLoader: seconds to the first batch, then the rate; memory of its workers if asked for."""
        import torch

        opened = self._open()
        make = getattr(self.format, self.format.loaders[way])
        watch = Stopwatch()
        batches = iter(make(self.folder, opened, batch, workers))
        first = next(batches)
        if tuple(first.to(torch.int64).shape) != (batch, self.seq_len):
            raise ValueError(f"a batch of shape {tuple(first.shape)}")
        answer: Answer = {"first": watch.read()}
        done, watch, stop = 0, Stopwatch(), time.perf_counter() + seconds
        for one in batches:
            done += len(one.to(torch.int64))
            if time.perf_counter() > stop:
                break
        answer |= {"rows": done, **watch.read()}
        if weigh and workers:
            answer["workers"] = workers_memory() or self._weigh(make(self.folder, opened, batch, workers))
        return answer

    def _weigh(self, batches: Iterable[Any]) -> list[Answer]:
        """Memory of the workers of a loader in the midst of its work, where the measured one has come to its end."""
        running = iter(batches)
        for _ in itertools.islice(running, 16):
            pass
        return workers_memory()

    def run_to(self, batch: int, share: float, keep: str) -> Answer:
        """Read a shuffled epoch up to some share, keep the next batch as a file, tell the state."""
        steps = int(self._open().n * share) // batch
        state, tokens = self.format.run_to(self.folder, self.seq_len, batch, steps)
        np.save(keep, np.asarray(tokens).astype(np.int64))
        return {"state": state}

    def resume(self, batch: int, state: Any, expected: str) -> Answer:
        """Open, and read the batch after a state: seconds, and whether it is the one that would have come."""
        watch = Stopwatch()
        tokens = self.format.resume(self.folder, self.seq_len, batch, state)
        return {**watch.read(), "exact": np.array_equal(np.asarray(tokens), np.load(expected))}

    def flip(self, source: str, copy: str, place: float, bit: int) -> Answer:
        """Read a copy with one bit flipped: refused, other tokens without a word, or the same."""
        folder = Path(copy)
        shutil.copytree(self.folder, folder)
        changed = flip_byte(folder, place, bit)
        try:
            outcome = self._read_damaged(folder, np.fromfile(source, np.uint16).reshape(-1, self.seq_len))
        finally:
            shutil.rmtree(folder)
        return {"outcome": outcome, "file": changed}

    def _read_damaged(self, folder: Path, rows: Any) -> str:
        try:
            opened = self.format.open(folder, self.seq_len)
        except Exception:
            return "refused when opened"
        if opened.n != len(rows):
            return "other tokens, not noticed"
        try:
            same = all(np.array_equal(np.asarray(opened.get(i)), row) for i, row in enumerate(rows))
        except Exception:
            return "refused when read"
        return "same tokens" if same else "other tokens, not noticed"


def flip_byte(folder: Path, place: float, bit: int) -> str:
    """Flip one bit of the byte that lies at a share of all bytes of a folder; the file's name."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    sizes = [path.stat().st_size for path in paths]
    position = int(place * sum(sizes))
    for path, size in zip(paths, sizes, strict=True):
        if position < size:
            with path.open("r+b") as file:
                file.seek(position)
                (byte,) = file.read(1)
                file.seek(position)
                file.write(bytes([byte ^ 1 << bit]))
            return path.name
        position -= size
    raise ValueError(f"place {place} is not in 0 .. 1")


def main() -> None:
    name, folder, seq_len = sys.argv[1:]
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    bench = Bench(FORMATS[name], Path(folder), int(seq_len))
    for line in sys.stdin:
        command = json.loads(line)
        try:
            answer = getattr(bench, command.pop("do"))(**command)
        except Exception as error:
            # One tool's failure is a cell of the table, with its reason, not the end of the bench.
            answer = {"error": f"{type(error).__name__}: {error}"[:300]}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
