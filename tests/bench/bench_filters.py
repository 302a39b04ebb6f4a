"""Speed of every filter, in MB of UTF-8 per second of one core, and of all rule filters together.

    python tests/bench/bench_filters.py [--repeats 5] [--gold] > bench/results/filters-DATE.md

Texts are the labelled crawl of the test data (CORPUSMILL_TEST_DATA), in batches of 1,000 documents. CPU time,
best of the repeats, since the machine may be shared. `hostile` are 2 MB texts made to be slow. With --gold a
second table says what each filter drops of each kind of text.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path

import pyarrow as pa
import zstandard

from curation.filters import FILTERS
from curation.steps import step_class
from curation.verdicts import Filter
from tests.fakes import batch_for

REPO = Path(__file__).resolve().parents[2]
BATCH_ROWS = 1000
HOSTILE = ("<", "<a b='", "{", "`x", "<script>", "<!--", "```\n", "&", "[url ", "color:", "://", "漢", "a\u0301", "\n")


def corpus() -> list[dict[str, str]]:
    """Documents of the labelled crawl, with their labels."""
    folder = Path(os.environ.get("CORPUSMILL_TEST_DATA", REPO.parent / "shared" / "data")) / "2_text"

    def rows(path: Path) -> list[dict[str, str]]:
        with zstandard.open(path, "rt", encoding="utf-8") as stream:
            return [json.loads(line) for line in stream]

    labels = {row["id"]: row for row in rows(folder / "gold.jsonl.zst")}
    return [{**labels[row["id"]], **row} for path in sorted(folder.glob("crawl-*.zst")) for row in rows(path)]


def batches(made: Filter, texts: Sequence[str]) -> list[pa.RecordBatch]:
    return [batch_for(made, texts[i : i + BATCH_ROWS]) for i in range(0, len(texts), BATCH_ROWS)]


def seconds(made: Filter, texts: Sequence[str], repeats: int) -> float:
    """Least CPU time for scores and verdicts of all batches."""
    work = batches(made, texts)
    times = []
    for _ in range(repeats):
        start = time.process_time()
        for batch in work:
            made.decide(made.score(batch))
        times.append(time.process_time() - start)
    return min(times)


def speeds(filters: Sequence[Filter], texts: Sequence[str], repeats: int) -> None:
    """Print MB/s and microseconds a document, then the least speed on hostile texts."""
    megabytes = sum(len(text.encode()) for text in texts) / 1e6
    print("| filter | MB/s | us a document | slowest on hostile texts, MB/s | on |\n|---|---|---|---|---|")
    total = 0.0
    for made in filters:
        taken = seconds(made, texts, repeats)
        total += taken
        hostile = {p: 2 / seconds(made, [p * (2_000_000 // len(p.encode()))], 1) for p in HOSTILE}
        worst = min(hostile, key=lambda piece: hostile[piece])
        cells = f"{megabytes / taken:,.0f} | {taken / len(texts) * 1e6:,.1f} | {hostile[worst]:,.0f} | `{worst!r}` |"
        print(f"| {made.name} | {cells}", flush=True)
    print(f"| **all** | **{megabytes / total:,.0f}** | {total / len(texts) * 1e6:,.1f} | | |")


def verdicts(filters: Sequence[Filter], documents: Sequence[dict[str, str]]) -> None:
    """Print how many documents of each label every filter drops."""
    texts = [document["text"] for document in documents]
    keys = [f"{d['quality']}: {d['kind']}" if d["quality"] != "good" else "good" for d in documents]
    sizes = Counter(keys)
    dropped = {}
    for made in filters:
        keep = [kept for batch in batches(made, texts) for kept in made.decide(made.score(batch)).keep]
        dropped[made.name] = Counter(key for key, kept in zip(keys, keep, strict=True) if not kept)
    print("\n| label | documents |", " | ".join(f"{made.name} drops" for made in filters), "|")
    print("|---|---|", "---|" * len(filters), sep="")
    for key in sorted(sizes):
        print(f"| {key} | {sizes[key]} |", " | ".join(str(dropped[made.name][key]) for made in filters), "|")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--gold", action="store_true", help="say what each filter drops of each kind of text")
    options = parser.parse_args()
    documents = corpus()
    filters = []
    for name in FILTERS:
        kind = step_class(name)
        made = kind(kind.Config())
        assert isinstance(made, Filter)
        made.score(batch_for(made, ["warm up"]))
        filters.append(made)
    print(f"# Filters, {datetime.now(timezone.utc):%Y-%m-%d}\n")
    print(f"{os.cpu_count()} cores, {platform.machine()}; Python {sys.version.split()[0]}.")
    print(f"`python tests/bench/bench_filters.py`: {len(documents):,} documents, best CPU time of {options.repeats}.\n")
    speeds(filters, [document["text"] for document in documents], options.repeats)
    if options.gold:
        verdicts(filters, documents)


if __name__ == "__main__":
    main()
