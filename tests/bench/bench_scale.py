"""Time and memory of a whole run over a small corpus and one ten times larger: does memory grow with the input?

    python -m tests.bench.bench_scale [SMALL LARGE] [--config web] [--workers 2] [--set pack=] > bench/results/scale-DATE.md

SMALL and LARGE are folders of inputs; left out, both are made from a seed (--documents for the small one). Each corpus is
run by `corpusmill run` in a process of its own, and every process of its tree is looked at every 0.1 s. A process's memory
is its resident set; `own` is that without the pages of files it has mapped, which the system takes back when it likes.
Seconds are wall time of a pass as the run's log gives them: on a shared machine, compare ratios.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path

import psutil

from tests.e2e.conftest import write_corpus

REPO = Path(__file__).resolve().parents[2]
EVERY_S = 0.1
PASS_DONE = re.compile(r"(?P<name>[a-z]+: \S+): \d+ [a-z ]+ in (?P<seconds>[0-9.]+) s$")
MB = 2**20


@dataclass
class Peaks:
    """Highest memory in MB: of one process, its own part, and of all processes together (own parts)."""

    one: float = 0.0
    own: float = 0.0
    tree: float = 0.0

    def raise_to(self, one: float, own: float, tree: float) -> None:
        self.one, self.own, self.tree = max(self.one, one), max(self.own, own), max(self.tree, tree)


@dataclass
class Measured:
    """One run: MB of its input, wall seconds, and for each pass seconds and peaks."""

    megabytes: float
    seconds: float = 0.0
    pass_seconds: dict[str, float] = field(default_factory=dict)
    peaks: dict[str, Peaks] = field(default_factory=lambda: defaultdict(Peaks))

    def whole(self) -> Peaks:
        found = Peaks()
        for peaks in self.peaks.values():
            found.raise_to(peaks.one, peaks.own, peaks.tree)
        return found


def memory_of_tree(root: psutil.Process) -> tuple[float, float, float]:
    """Largest resident set, largest own part, own parts together, in MB, of a process and all below it."""
    resident, own = [0.0], [0.0]
    try:
        below = root.children(recursive=True)
    except psutil.NoSuchProcess:
        return 0.0, 0.0, 0.0
    for process in [root, *below]:
        try:
            memory = process.memory_info()
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue  # it ended between the listing and the look
        resident.append(memory.rss / MB)
        own.append((memory.rss - getattr(memory, "shared", 0)) / MB)
    return max(resident), max(own), sum(own)


def measure(inputs: Path, config: str, workers: int, overrides: Sequence[str]) -> Measured:
    """Run the pipeline over `inputs` under a sampler.

    Raises:
        subprocess.CalledProcessError: the run failed; what it said stands on stderr.
    """
    megabytes = sum(path.stat().st_size for path in inputs.glob("*.jsonl")) / 1e6
    found = Measured(megabytes)
    samples: list[tuple[float, tuple[float, float, float]]] = []
    ends: list[tuple[float, str]] = []
    with tempfile.TemporaryDirectory(prefix="bench-scale-") as root:
        command = [
            sys.executable,
            "-m",
            "curation.cli",
            "run",
            config,
            "--input",
            str(inputs / "*.jsonl"),
            "--root",
            root,
        ]
        command += ["--workers", str(workers), *[word for one in overrides for word in ("--set", one)]]
        environment = {**os.environ, "PYTHONPATH": str(REPO)}
        begin = time.perf_counter()
        with subprocess.Popen(
            command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, env=environment
        ) as run:
            stop = threading.Event()
            sampler = threading.Thread(target=_sample, args=(psutil.Process(run.pid), samples, stop))
            sampler.start()
            assert run.stderr is not None
            for line in run.stderr:
                print(line, end="", file=sys.stderr)
                if match := PASS_DONE.match(line.strip()):
                    ends.append((time.perf_counter(), match["name"]))
                    found.pass_seconds[match["name"]] = float(match["seconds"])
            stop.set()
            sampler.join()
        found.seconds = time.perf_counter() - begin
        if run.returncode:
            raise subprocess.CalledProcessError(run.returncode, command)
    for moment, peaks in samples:
        name = next((name for end, name in ends if moment <= end), "end: report")
        found.peaks[name].raise_to(*peaks)
    return found


def _sample(
    process: psutil.Process, samples: list[tuple[float, tuple[float, float, float]]], stop: threading.Event
) -> None:
    while not stop.wait(EVERY_S):
        samples.append((time.perf_counter(), memory_of_tree(process)))


def table(small: Measured, large: Measured) -> list[str]:
    """Markdown rows: each pass of both runs, then the whole."""
    lines = [
        "| pass | s | MB/s | one process MB | its own MB | tree MB | s ratio | own ratio | tree ratio |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name, seconds in large.pass_seconds.items():
        before = small.pass_seconds.get(name, 0.0)
        lines.append(_row(name, large, small, (seconds, before), large.peaks[name], small.peaks[name]))
    whole = _row("whole run", large, small, (large.seconds, small.seconds), large.whole(), small.whole())
    return [*lines, whole]


def _row(name: str, large: Measured, small: Measured, seconds: tuple[float, float], now: Peaks, before: Peaks) -> str:
    rate = [f"{m.megabytes / s:.0f}" if s >= EVERY_S else "-" for m, s in ((small, seconds[1]), (large, seconds[0]))]
    ratios = [_ratio(seconds[0], seconds[1]), _ratio(now.own, before.own), _ratio(now.tree, before.tree)]
    # A pass shorter than the sampler's step has no figure.
    pairs = [
        f"{a:.0f} -> {b:.0f}" if a and b else "-"
        for a, b in ((before.one, now.one), (before.own, now.own), (before.tree, now.tree))
    ]
    return f"| {name} | {seconds[1]:.1f} -> {seconds[0]:.1f} | {' -> '.join(rate)} | {' | '.join(pairs)} | {' | '.join(ratios)} |"


def _ratio(large: float, small: float) -> str:
    return f"{large / small:.2f}" if small and large else "-"


def made(folder: Path, documents: int) -> tuple[Path, Path]:
    """Two corpora of the same kind: one file of so many documents, and ten such files."""
    paths = folder / "small", folder / "large"
    for path, files in zip(paths, (1, 10), strict=True):
        path.mkdir()
        for number in range(files):
            write_corpus(path / f"{number:02}.jsonl", documents, seed=number)
    return paths


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("corpora", nargs="*", type=Path, metavar="FOLDER", help="a small corpus and a large one")
    parser.add_argument("--documents", type=int, default=20_000, help="of the small corpus, if it is made here")
    parser.add_argument("--config", default="web")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    arguments = parser.parse_args()
    if len(arguments.corpora) not in (0, 2):
        parser.error("give two folders, the small one first, or none")
    with tempfile.TemporaryDirectory(prefix="bench-scale-corpora-") as folder:
        small, large = arguments.corpora or made(Path(folder), arguments.documents)
        warm_up = Path(folder) / "warm-up"
        warm_up.mkdir()
        write_corpus(warm_up / "00.jsonl", 50)
        measure(warm_up, arguments.config, arguments.workers, arguments.set)  # kernels are compiled once a machine
        one, ten = (measure(path, arguments.config, arguments.workers, arguments.set) for path in (small, large))
    settings = ", ".join([f"config {arguments.config}", f"{arguments.workers} workers", *arguments.set])
    print(f"# A run and one of ten times its size, {datetime.now(timezone.utc):%Y-%m-%d}\n")
    print(
        f"{one.megabytes:,.0f} MB and {ten.megabytes:,.0f} MB of JSON lines ({ten.megabytes / one.megabytes:.1f} times); {settings};"
    )
    print(
        f"{os.cpu_count()} cores, {_processor()}, {psutil.virtual_memory().total / 2**30:.0f} GB, Python {platform.python_version()};"
    )
    print(f"load {os.getloadavg()[0]:.1f} at the end.\n")
    print("\n".join(table(one, ten)))
    return 0


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


if __name__ == "__main__":
    sys.exit(main())
