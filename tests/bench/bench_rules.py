"""Speed of the measures of `rules`, module by module and together, beside datatrove's filters that do the same.

    python tests/bench/bench_rules.py [--repeats 5] [--peer PYTHON] [--sample 400] > bench/results/rules.md

Texts are the labelled crawl of the test data (CORPUSMILL_TEST_DATA, folder 2_text), in batches of 1,000 documents. CPU
time of one core, best of the repeats, since the machine may be shared. `hostile` are 2 MB texts made to be slow. PYTHON
is an interpreter that has datatrove; its filters run in a process of their own over a sample of the same documents, each over
all of them, told their languages.
"""

from __future__ import annotations

import argparse
import inspect
import json
import os
import platform
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import zstandard

from curation.filters.rules import parts
from curation.filters.rules.step import MEASURES as MODULES

REPO = Path(__file__).resolve().parents[2]
BATCH_ROWS = 1000
GROUPS = ("all", "en", "zh", "ja", "ru", "ko", "th", "hi")
HOSTILE: Mapping[str, str] = {
    **{
        repr(piece): piece * (2_000_000 // len(piece.encode()))
        for piece in ("a", "a b ", "\n", "a\n", "漢", "://", "!)", "…")
    },
    "different words": " ".join(f"{i:x}" for i in range(330_000)),
    "a novel twice": " ".join(f"{i * 2654435761 % 2**32:x}" for i in range(115_000)) * 2,
}


def corpus() -> list[dict[str, str]]:
    """Documents of the labelled crawl, with their labels."""
    folder = Path(os.environ.get("CORPUSMILL_TEST_DATA", REPO.parent / "shared" / "data")) / "2_text"

    def rows(path: Path) -> list[dict[str, str]]:
        with zstandard.open(path, "rt", encoding="utf-8") as stream:
            return [json.loads(line) for line in stream]

    labels = {row["id"]: row for row in rows(folder / "gold.jsonl.zst")}
    return [{**labels[row["id"]], **row} for path in sorted(folder.glob("crawl-*.zst")) for row in rows(path)]


def batches(texts: Sequence[str]) -> list[pa.Array]:
    return [pa.array(texts[i : i + BATCH_ROWS], pa.large_string()) for i in range(0, len(texts), BATCH_ROWS)]


def least(work: Callable[[], object], repeats: int) -> float:
    """Least CPU seconds of a piece of work, after one run that is not counted."""
    work()
    times = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def seconds(arrays: Sequence[pa.Array], repeats: int) -> dict[str, float]:
    """CPU seconds of the parts and of each module over all batches."""
    taken = dict.fromkeys(("parts", *(name_of(module) for module in MODULES)), 0.0)
    for array in arrays:
        made = parts.parts_of(array)
        taken["parts"] += least(partial(parts.parts_of, array), repeats)
        for module in MODULES:
            taken[name_of(module)] += least(partial(module.measure, made), repeats)
    return taken


def name_of(module: ModuleType) -> str:
    return module.__name__.rsplit(".", 1)[-1]


def speeds(documents: Sequence[Mapping[str, str]], repeats: int) -> None:
    """Print nanoseconds a byte by module, and MB/s of all, by language."""
    names = ["parts", *(name_of(module) for module in MODULES)]
    print("ns a byte of UTF-8, and MB/s of all together:\n")
    print(f"| texts | MB | {' | '.join(names)} | all | MB/s |\n|---|---|{'---|' * (len(names) + 2)}")
    for group in GROUPS:
        texts = [row["text"] for row in documents if group == "all" or row["lang"] == group]
        size = sum(len(text.encode()) for text in texts)
        taken = seconds(batches(texts), repeats)
        total = sum(taken.values())
        cells = " | ".join(f"{taken[name] / size * 1e9:.2f}" for name in names)
        print(
            f"| {group} | {size / 1e6:.1f} | {cells} | {total / size * 1e9:.1f} | {size / total / 1e6:.0f} |",
            flush=True,
        )


def hostile() -> None:
    """Print MB/s on texts made to be slow."""
    print("\n| 2 MB of | MB/s |\n|---|---|")
    for name, text in HOSTILE.items():
        total = sum(seconds([pa.array([text], pa.large_string())], 1).values())
        print(f"| `{name}` | {len(text.encode()) / total / 1e6:.0f} |", flush=True)


def run_datatrove(rows: Sequence[Mapping[str, str]]) -> dict[str, float]:
    """CPU seconds of each of datatrove's filters over all rows. Run by an interpreter that has datatrove, and no other package."""
    import contextlib
    import importlib
    import io
    import time

    document = importlib.import_module("datatrove.data").Document
    library = importlib.import_module("datatrove.pipeline.filters")
    names = ("GopherRepetition", "GopherQuality", "C4Quality", "FineWebQuality")
    makers = {name: getattr(library, f"{name}Filter") for name in names}
    taken = {}
    for name, maker in makers.items():
        filters: dict[str, Any] = {}
        for warm in (True, False):
            start = time.process_time()
            for row in rows:
                if row["language"] not in filters:
                    filters[row["language"]] = maker(language=row["language"])
                with contextlib.redirect_stdout(io.StringIO()):
                    filters[row["language"]].filter(document(text=row["text"], id=""))
                if warm and len(filters) >= len({row["language"] for row in rows}):
                    break
            taken[name] = time.process_time() - start
    return taken


LANGUAGES = {"en": "eng", "zh": "zho", "de": "deu", "ru": "rus", "fr": "fra", "es": "spa"}
"""datatrove's names of the languages that the sample is taken from: those whose tokenizers need nothing but spaCy."""


def peer(python: str, documents: Sequence[Mapping[str, str]], n: int, repeats: int) -> None:
    """Print datatrove's speed and ours on a sample of the same documents."""
    chosen = [row for row in documents if row["lang"] in LANGUAGES][:: max(len(documents) // n, 1)]
    rows = [{"text": row["text"], "language": LANGUAGES[row["lang"]]} for row in chosen]
    source = (
        f"import json, sys\n{inspect.getsource(run_datatrove)}\nprint(json.dumps(run_datatrove(json.load(sys.stdin))))"
    )
    source = "from __future__ import annotations\n" + source
    done = subprocess.run([python, "-c", source], input=json.dumps(rows), capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"\ndatatrove did not run: {done.stderr.strip().splitlines()[-1:]}")
        return
    taken = json.loads(done.stdout.splitlines()[-1])
    size = sum(len(row["text"].encode()) for row in rows)
    ours = sum(seconds(batches([row["text"] for row in rows]), repeats).values())
    print(f"\n{len(rows)} documents of {len(LANGUAGES)} languages, {size / 1e6:.2f} MB, languages told:\n")
    print("| what | MB/s |\n|---|---|")
    for name, spent in [*taken.items(), ("all four", sum(taken.values()))]:
        print(f"| datatrove {name} | {size / spent / 1e6:.2f} |")
    print(f"| these measures, all | {size / ours / 1e6:.0f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--every", type=int, default=1, help="take only every n-th document")
    parser.add_argument("--peer", metavar="PYTHON", help="interpreter that has datatrove")
    parser.add_argument("--sample", type=int, default=400, help="documents for the peer")
    options = parser.parse_args()
    documents = corpus()[:: options.every]
    print(f"# Measures of rules, {datetime.now(timezone.utc):%Y-%m-%d}\n")
    print(f"{os.cpu_count()} cores, {platform.machine()}; Python {platform.python_version()}.")
    print(f"`python tests/bench/bench_rules.py`: {len(documents):,} documents, best CPU time of {options.repeats}.\n")
    speeds(documents, options.repeats)
    hostile()
    if options.peer:
        peer(options.peer, documents, options.sample, options.repeats)


if __name__ == "__main__":
    main()
