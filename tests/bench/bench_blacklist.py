"""Speed and memory of a blacklist of many entries: append, open with and without a snapshot, test a million documents.

    python tests/bench/bench_blacklist.py [--entries 10000000] [--asked 1000000] [--signed 0] > bench/results/blacklist.md

Keys are made up: uniform, as hashes are. Each measure runs in a process of its own, so that its peak memory is its own;
mapped pages that were touched count in it. Imports are not counted; pyarrow loads pandas (0.3 s) when the first list becomes
an array, so that is done before. `--signed` gives so many of the entries a signature of 512 bytes.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from curation.blacklist import Blacklist, append, compact
from curation.run import peak_memory

REPO = Path(__file__).resolve().parents[2]
SEGMENTS = 10
BATCH = 2_000
"""Documents of a batch, as a run looks them up."""
FACTS = {"who": "bench", "why": "measure"}


def keys(n: int, seed: int) -> pa.Array:
    """Random keys: binary(16)[n]."""
    data = np.random.default_rng(seed).bytes(16 * n)
    return pa.Array.from_buffers(pa.binary(16), n, [None, pa.py_buffer(data)])


def entries(n: int, seed: int, signed: int = 0) -> pa.Table:
    """Entries of kind text; the first `signed` have a signature."""
    columns = {
        "kind": pa.repeat(pa.scalar("text"), n),
        "key": keys(n, seed),
        "reason": pa.repeat(pa.scalar("rescore.noise"), n),
        "score": pa.array(np.random.default_rng(seed).random(n)),
        "language": pa.repeat(pa.scalar("eng_Latn"), n),
        "tokens_seen": pa.repeat(pa.scalar(10**10, pa.int64()), n),
    }
    table = pa.table(columns)
    if signed:
        data = pa.repeat(pa.scalar(b"0" * 512, pa.binary()), signed)
        column = pa.chunked_array([data, pa.nulls(n - signed, pa.binary())])
        table = table.append_column("signature", column).replace_schema_metadata({"signing": "{}"})
    return table


def measure(action: str, folder: str, n: int, asked: int) -> dict[str, Any]:
    """One measure in this process: seconds and peak memory."""
    pa.array([0]).to_numpy()
    if action == "append":
        table = entries(n, 99)
    else:
        ids = pa.concat_arrays([keys(n // SEGMENTS, 3).slice(0, asked // 2), keys(asked - asked // 2, 1234)])
    result: dict[str, Any] = {}
    with peak_memory() as measured:
        if action == "append":
            append(folder, table, FACTS)
        elif action == "compact":
            compact(folder)
        else:
            blacklist = Blacklist.open(folder)
            result["open_s"] = time.perf_counter()
            rows = blacklist.lookup(ids)
            result["looked_s"] = time.perf_counter()
            result["found"] = int(np.count_nonzero(rows >= 0))
            blacklist.take(rows[rows >= 0][:100])
            result["taken_s"] = time.perf_counter()
    if action == "open":
        result["batch_ms"] = batch_seconds(blacklist, ids) * 1e3
    if "open_s" in result:
        end = result["taken_s"]
        start = end - measured["seconds"]
        taken, looked, opened = (
            end - result["looked_s"],
            result["looked_s"] - result["open_s"],
            result["open_s"] - start,
        )
        result |= {"open_s": opened, "looked_s": looked, "taken_s": taken}
    return {**result, **measured}


def batch_seconds(blacklist: Blacklist, ids: pa.Array) -> float:
    """Seconds to look up a batch of text_ids, and as many URLs: the median."""
    seconds: list[float] = []
    for start in range(0, min(len(ids), 50 * BATCH), BATCH):
        some = ids.slice(start, BATCH)
        urls = [f"https://host{number}.example/page" for number in range(len(some))]
        begin = time.perf_counter()
        blacklist.lookup(some)
        blacklist.lookup_urls(urls)
        seconds.append(time.perf_counter() - begin)
    return float(np.median(seconds))


def in_process(action: str, folder: str, n: int, asked: int) -> dict[str, Any]:
    """`measure` in a process of its own."""
    command = [
        sys.executable,
        __file__,
        "--measure",
        action,
        "--folder",
        folder,
        "--entries",
        str(n),
        "--asked",
        str(asked),
    ]
    environment = {**os.environ, "PYTHONPATH": str(REPO)}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    measured: dict[str, Any] = json.loads(done.stdout)
    return measured


def main() -> None:
    """Measure and print a page, or one measure as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--entries", type=int, default=10_000_000)
    parser.add_argument("--asked", type=int, default=1_000_000)
    parser.add_argument("--signed", type=int, default=0)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    n, asked = arguments.entries, arguments.asked
    if arguments.measure:
        print(json.dumps(measure(arguments.measure, arguments.folder, n, asked)))
        return
    with tempfile.TemporaryDirectory(prefix="bench-blacklist-") as folder:
        for seed in range(SEGMENTS):
            append(folder, entries(n // SEGMENTS, seed, arguments.signed // SEGMENTS), FACTS)
        size = sum(path.stat().st_size for path in Path(folder).iterdir()) / 1e6
        plain = in_process("open", folder, n, asked)
        made = in_process("compact", folder, n, asked)
        index = next(Path(folder).glob("index-*.arrow")).stat().st_size / 1e6
        fast = in_process("open", folder, n, asked)
        assert plain["found"] == fast["found"] == min(asked // 2, n // SEGMENTS)
        added = in_process("append", folder, 100_000, asked)
        after = in_process("open", folder, n, asked)
        report(
            n,
            asked,
            arguments.signed,
            size,
            index,
            {"plain": plain, "made": made, "fast": fast, "added": added, "after": after},
        )


def report(n: int, asked: int, signed: int, size: float, index: float, found: dict[str, dict[str, Any]]) -> None:
    """Print the page."""
    print(
        f"# Blacklist: {n:,} entries, {signed:,} with a signature, in {SEGMENTS} segments of {size:,.0f} MB together\n"
    )
    print(f"Looked up: {asked:,} text_ids, up to half of them on it. The snapshot has {index:,.0f} MB.\n")
    print(f"| | open, s | look up, s | {BATCH:,} texts and URLs, ms | take 100 entries, s | peak memory, MB |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for name, title in (
        ("plain", "without snapshot"),
        ("fast", "with snapshot"),
        ("after", "with snapshot and 100,000 more"),
    ):
        one = found[name]
        times = " | ".join(f"{one[key]:.2f}" for key in ("open_s", "looked_s", "batch_ms", "taken_s"))
        print(f"| {title} | {times} | {one['peak_rss_mb']:,.0f} |")
    print(f"\nAppend 100,000 entries: {found['added']['seconds']:.2f} s, {found['added']['peak_rss_mb']:,.0f} MB.")
    print(f"Compact: {found['made']['seconds']:.1f} s, {found['made']['peak_rss_mb']:,.0f} MB.")


if __name__ == "__main__":
    main()
