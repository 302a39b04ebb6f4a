"""what-if: seconds and memory of a question to a run of a million short documents, each in a process of its own.

    python -m tests.bench.bench_what_if                       exact, html_noise, length, rules; the run is made first
    python -m tests.bench.bench_what_if --documents 50000

Texts of 1 to 60 words made from a seed. What is timed is the whole answer with ten samples, imports left out; verdict
files are in the page cache and are hashed, as they are by every question.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from curation.pipeline import Pipeline
from curation.run import Run, peak_memory
from tests.fakes import SOURCE, write_shards
from tests.near_runs import finish

CONFIG = "name: bench\nsteps: [exact, html_noise, {length: {min_units: 10}}, rules]\n"
ROWS = 50_000
"""Documents of a shard."""
QUESTIONS = ("length.min_units=12", "html_noise.min_noise_chars=10", "rules.preset=gopher")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--ask", nargs=2, metavar=("RUN", "KEY=VALUE"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.ask:
        return ask(Path(arguments.ask[0]), arguments.ask[1])
    with tempfile.TemporaryDirectory(prefix="corpusmill-bench-") as root:
        folder = make(Path(root), arguments.documents)
        n_bytes = sum(path.stat().st_size for path in (folder / "steps").rglob("*.arrow"))
        print(f"{arguments.documents:,} documents, {n_bytes / 1e6:,.0f} MB of verdict files")
        for question in QUESTIONS:
            for _ in range(arguments.repeats):
                command = [sys.executable, "-m", "tests.bench.bench_what_if", "--ask", str(folder), question]
                subprocess.run(command, check=True)
    return 0


def make(root: Path, documents: int) -> Path:
    """A finished run; returns its folder."""
    rng = np.random.default_rng(1)
    shards = []
    for first in range(0, documents, ROWS):
        lengths = rng.integers(1, 60, min(ROWS, documents - first))
        words = [f"w{number}" for number in rng.integers(0, 3000, int(lengths.sum()))]
        ends = np.cumsum(lengths).tolist()
        starts = [0, *ends[:-1]]
        shards.append(
            [" ".join(words[a:b]) + f" {first + i}" for i, (a, b) in enumerate(zip(starts, ends, strict=True))]
        )
    run = Run.create(root, run_id="bench", config_text=CONFIG, config_digest="0" * 8, inputs=[SOURCE])
    write_shards(run, shards, batch_rows=5000)
    finish(Pipeline.open(run.folder))
    return run.folder


def ask(folder: Path, question: str) -> int:
    """Ask one question in this process and print what it took."""
    from curation.what_if import what_if

    with peak_memory() as used:
        answer = what_if(Pipeline.open(folder), [question])
    changed = sum(change.documents for change in answer.changes)
    numbers = f"{used['seconds']:6.2f} s {used['peak_rss_mb']:6.0f} MB"
    print(f"{question:<32} {numbers}  {changed:9,} documents change", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
