"""Runs the benchmarks one after the other, small: `python -m tests.bench [NAME...] [--list]`, or `make bench`.

Each is run in a process of its own with arguments that take a minute or less; a module's own docstring says how to run it
in full and where to keep its result. A bench that needs data which are not here is passed over, and said so.
"""

from __future__ import annotations

import argparse
import ast
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from tests.e2e.conftest import write_corpus

HERE = Path(__file__).resolve().parent
REPO = HERE.parents[1]
DATA = Path(os.environ.get("CORPUSMILL_TEST_DATA", REPO.parent / "shared" / "data"))

SMALL: Mapping[str, list[str]] = {
    "filters": ["--repeats", "1"],
    "html": ["--modes", "fast"],
    "ingest": ["CORPUS", "--repeats", "1"],
    "language": ["--speed", "--rounds", "1", "--every", "16"],
    "near": ["--gold", "--rounds", "1"],
    "pack": ["--encode-mb", "1", "--tokens", "10"],
    "reader": ["--tokens", "4000000", "--rounds", "1", "--seconds", "0.05"],
    "scale": ["--documents", "2000"],
    "text": ["--repeats", "1", "--megabytes", "2"],
    "tokenize": ["--rounds", "1", "--megabytes", "0.3", "--tokenizers", "default", "mistral_v3"],
    "what_if": ["--documents", "20000", "--repeats", "1"],
}
"""Arguments of a small run, by bench; CORPUS stands for a folder of JSON lines made here."""
NEEDS_DATA = {
    "filters": "2_text",
    "html": "1_web",
    "language": "2_text",
    "near": "3_neardup",
    "pack": "2_text",
    "text": "2_text",
    "tokenize": "2_text",
}
"""Folder of the test data without which a bench cannot run."""


def benches() -> dict[str, Path]:
    """Every bench of this folder by name."""
    return {path.stem.removeprefix("bench_"): path for path in sorted(HERE.glob("bench_*.py"))}


def summary(path: Path) -> str:
    """First line of a bench's docstring."""
    return (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").splitlines()[0]


def run(name: str, corpus: Path) -> int:
    """Run one bench small; returns its exit code, 0 if its data are missing."""
    needed = NEEDS_DATA.get(name)
    if needed and not (DATA / needed).is_dir():
        print(f"passed over: {DATA / needed} is not there; set CORPUSMILL_TEST_DATA\n", flush=True)
        return 0
    arguments = [str(corpus) if one == "CORPUS" else one for one in SMALL.get(name, [])]
    command = [sys.executable, "-m", f"tests.bench.bench_{name}", *arguments]
    # Benches import the package and tests from the root of the repository, also in processes they start themselves.
    path = os.pathsep.join([str(REPO), *filter(None, [os.environ.get("PYTHONPATH")])])
    return subprocess.run(command, cwd=REPO, env={**os.environ, "PYTHONPATH": path}, check=False).returncode


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=(__doc__ or "").splitlines()[0])
    known = benches()
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"which ones (all): {', '.join(known)}")
    parser.add_argument("--list", action="store_true", help="only say what there is")
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - known.keys():
        parser.error(f"no bench called {', '.join(sorted(unknown))}; known: {', '.join(known)}")
    failed = []
    with tempfile.TemporaryDirectory(prefix="bench-corpus-") as folder:
        if not arguments.list:
            path = Path(folder) / "00.jsonl"
            write_corpus(path, 4000)
            # Without the bad lines, which are cut in the middle: the benches of readers want sound ones.
            sound = [line for line in path.read_bytes().splitlines(keepends=True) if line.endswith(b"}\n")]
            path.write_bytes(b"".join(sound))
        for name in arguments.names or known:
            print(f"== {name}: {summary(known[name])}", flush=True)
            if not arguments.list and run(name, Path(folder)):
                failed.append(name)
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
