"""The reader: ours beside a NumPy map, Megatron's layout, litdata, MDS and Hugging Face datasets, by turns in one run.

    python -m tests.bench.bench_reader --peers-python PEERS/bin/python --page bench/results/reader.md
    python -m tests.bench.bench_reader --tokens 1000000000 --formats "numpy view,numpy,ours" --page FILE

The same random uint16 tokens in sequences of one length, written by each tool, read one after the other and at random,
copied to int64, by torch's DataLoader with 0 and 2 workers; opened, resumed in the middle of a shuffled epoch, weighed,
damaged. Each format has a process of its own; they are asked by turns, forwards and backwards, so that what else the
machine does falls on all. A page on standard output, or in a file; about 5 minutes for 100M tokens.

Other tools live in an environment of their own (once; 2 GB):

    python3.11 -m venv PEERS && PEERS/bin/pip install torch==2.13.0
    PEERS/bin/pip install "torch==2.13.0" litdata datasets pyarrow mosaicml-streaming==0.13.0
    PEERS/bin/pip uninstall -y torchvision transformers

mosaicml-streaming asks for the last two, and needs neither for tokens. What is not there is left out, and said so.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tests.bench.reader_formats import FORMATS
from tests.bench.reader_interface import SOURCE, Format, make_tokens
from tests.bench.reader_page import RATES, Results, Setting, write_page
from tests.bench.reader_processes import MeasureError, Worker, find_interpreter

BATCH = 64
DAMAGES = 20
DAMAGED_ROWS = 500
PHASES = ("life", "rates", "loader", "resume", "flip")


@dataclass
class Bench:
    """Which formats are measured, where, and what was found."""

    pythons: Mapping[str, str]
    """Interpreter by format."""
    scratch: Path
    seq_len: int
    rounds: int
    seconds: float
    results: Results = field(default_factory=lambda: defaultdict(lambda: defaultdict(list)))

    def formats(self, part: str) -> list[Format]:
        return [one for name, one in FORMATS.items() if name in self.pythons and part in one.parts]

    @contextmanager
    def worker(self, one: Format, folder: Path) -> Iterator[Worker]:
        """A process that has imported what it needs."""
        place = folder / one.store.replace(" ", "-")
        place.mkdir(parents=True, exist_ok=True)
        with Worker(one.name, self.pythons[one.name], place, self.seq_len, self.scratch) as worker:
            self.ask(worker, "load", "load")
            yield worker

    def ask(self, worker: Worker, key: str, do: str, **arguments: Any) -> dict[str, Any]:
        """Ask, and keep the answer under a key; a failure is kept too."""
        try:
            answer = worker.ask(do, **arguments)
        except MeasureError as error:
            answer = {"failed": str(error)}
            print(f"{worker.name}, {key}: {error}", file=sys.stderr, flush=True)
        self.results[worker.name][key].append(answer)
        return answer

    def write(self, folder: Path) -> None:
        """Write what is read afterwards, once for formats that share it."""
        written: set[str] = set()
        for one in self.formats("life") + [one for part in PHASES for one in self.formats(part)]:
            if one.store not in written:
                written.add(one.store)
                with self.worker(one, folder) as worker:
                    self.ask(worker, "write", "write", source=str(folder / SOURCE), timeout=600)

    def life(self, folder: Path) -> None:
        for turn in range(min(self.rounds, 3)):
            for one in by_turns(self.formats("life"), turn):
                with self.worker(one, folder) as worker:
                    self.ask(worker, "life", "life", seconds=10 * self.seconds)

    def rates(self, folder: Path) -> None:
        with ExitStack() as stack:
            workers = [stack.enter_context(self.worker(one, folder)) for one in self.formats("rates")]
            for what in RATES:
                for worker in workers:  # what is done for the first time is not measured
                    self.ask(worker, "warm", "rate", what=what, seconds=self.seconds / 4, seed=0)
                for turn in range(self.rounds):
                    for worker in by_turns(workers, turn):
                        self.ask(worker, what, "rate", what=what, seconds=self.seconds, seed=turn)

    def loader(self, folder: Path) -> None:
        with ExitStack() as stack:
            formats = self.formats("loader")
            kept = {one.name: stack.enter_context(self.worker(one, folder)) for one in formats if not one.once}
            for workers in (0, 2):
                for turn in range(min(self.rounds, 3)):
                    for one in by_turns(formats, turn):
                        for way in one.loaders:
                            with ExitStack() as own:
                                worker = kept.get(one.name) or own.enter_context(self.worker(one, folder))
                                arguments = {"way": way, "workers": workers, "batch": BATCH, "weigh": not turn}
                                key = f"loader {way} {workers}"
                                self.ask(worker, key, "loader", seconds=4 * self.seconds, timeout=40, **arguments)

    def resume(self, folder: Path) -> None:
        """Save in one process, resume in others."""
        states = {}
        for one in self.formats("resume"):
            with self.worker(one, folder) as worker:
                keep = str(self.scratch / f"{one.name}.npy")
                states[one.name] = self.ask(worker, "run_to", "run_to", batch=BATCH, share=0.5, keep=keep, timeout=200)
        for turn in range(min(self.rounds, 3)):
            for one in by_turns(self.formats("resume"), turn):
                if "state" in states[one.name]:
                    keep = str(self.scratch / f"{one.name}.npy")
                    arguments = {"batch": BATCH, "state": states[one.name]["state"], "expected": keep}
                    with self.worker(one, folder) as worker:
                        self.ask(worker, "resume", "resume", timeout=200, **arguments)

    def flip(self, folder: Path) -> None:
        """One bit flipped, in a small file, in the same places for all."""
        places = np.random.default_rng(3).random(DAMAGES).tolist()
        for one in self.formats("flip"):
            left = list(enumerate(places))
            while left:
                with self.worker(one, folder) as worker:
                    while left:
                        number, place = left.pop()
                        arguments = {"copy": str(self.scratch / f"damaged {number}"), "place": place, "bit": number % 8}
                        answer = self.ask(worker, "flip", "flip", source=str(folder / SOURCE), **arguments)
                        if "failed" in answer:  # a damage may take the process with it
                            break


def by_turns(things: Sequence[Any], turn: int) -> Sequence[Any]:
    """Forwards, then backwards."""
    return things[:: -1 if turn % 2 else 1]


def run(bench: Bench, tokens: int, phases: Sequence[str]) -> None:
    """Make the tokens and measure."""
    large, small = bench.scratch / "large", bench.scratch / "small"
    for folder, n in ((large, tokens // bench.seq_len), (small, DAMAGED_ROWS)):
        folder.mkdir()
        make_tokens(n, bench.seq_len).tofile(folder / SOURCE)
    begin = time.perf_counter()
    for phase in ("write", *phases):
        print(f"{time.perf_counter() - begin:4.0f} s: {phase}", file=sys.stderr, flush=True)
        if phase == "flip":
            flips = Bench(bench.pythons, bench.scratch, bench.seq_len, bench.rounds, bench.seconds)
            flips.write(small)
            flips.flip(small)
            for name, found in flips.results.items():
                bench.results[name]["flip"] = found["flip"]
        else:
            getattr(bench, phase)(large)
    print(f"{time.perf_counter() - begin:4.0f} s: done", file=sys.stderr, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=int, default=100_000_000)
    parser.add_argument("--seq-len", type=int, default=2048)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.2, help="of one measurement; loaders get four times as long")
    parser.add_argument("--formats", default=",".join(FORMATS), help="separated by commas (all)")
    parser.add_argument("--phases", nargs="*", default=PHASES, choices=PHASES)
    parser.add_argument("--peers-python", nargs="+", default=[], metavar="PATH", help="looked at before this one")
    parser.add_argument("--page", type=Path, help="write the page here, not to standard output")
    parser.add_argument("--json", type=Path, help="keep every single measurement here")
    arguments = parser.parse_args()
    names = [name.strip() for name in re.split(r",(?! )", arguments.formats)]
    if unknown := set(names) - FORMATS.keys():
        parser.error(f"no format {sorted(unknown)}; known: {list(FORMATS)}")
    found = {name: find_interpreter(FORMATS[name], arguments.peers_python) for name in names}
    pythons = {name: python for name, python in found.items() if python}
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="bench-reader-") as scratch:
        bench = Bench(pythons, Path(scratch), arguments.seq_len, arguments.rounds, arguments.seconds)
        run(bench, arguments.tokens, arguments.phases)
    setting = Setting(
        command=" ".join(["python -m tests.bench.bench_reader", *shown(sys.argv[1:])]),
        tokens=arguments.tokens // arguments.seq_len * arguments.seq_len,
        seq_len=arguments.seq_len,
        rounds=arguments.rounds,
        load=(load, os.getloadavg()[0]),
        missing=[name for name in names if name not in pythons],
    )
    results = {name: dict(bench.results[name]) for name in FORMATS if name in bench.results}
    if arguments.json:
        arguments.json.write_text(json.dumps(results), encoding="utf-8")
    page = write_page(results, setting)
    if arguments.page:
        arguments.page.write_text(page, encoding="utf-8")
    else:
        print(page)
    return 0


def shown(arguments: Sequence[str]) -> list[str]:
    """The command line without the paths of one machine, and quoted where a name has a blank."""
    names = [one if not Path(one).is_absolute() else f".../{Path(one).name}" for one in arguments]
    return [shlex.quote(one) for one in names]


if __name__ == "__main__":
    sys.exit(main())
