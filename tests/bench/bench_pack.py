"""Speed and memory of packing: planning, assembling, verifying, and all of it from a shard of text to the file.

    python tests/bench/bench_pack.py [--text-mb 8] [--tokens 100] [--documents 50] > bench/results/packing.md

Texts are the crawl of the test data (CORPUSMILL_TEST_DATA); token counts of the larger parts are made up,
log-normal as web documents are. CPU time where that is the point, since the machine may be shared. Each plan and
assembly runs in a process of its own, so that its peak memory is its own.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import datetime, timezone
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import zstandard

from curation.pack import PackConfig, assemble, encode_shard
from curation.run import peak_memory
from tokenization.packing.assemble import Assembly
from tokenization.packing.parts import PartWriter, Totals
from tokenization.packing.plan import plan_packing
from tokenization.packing.selection import Rows
from tokenization.packing.spool import Spool
from tokenization.reader import verify
from tokenization.tokenizer import Encoded, load_tokenizer

REPO = Path(__file__).resolve().parents[2]
GROUP = 1 << 20


def crawl(megabytes: float) -> list[str]:
    """Documents of the crawl, in its order."""
    folder = Path(os.environ.get("CORPUSMILL_TEST_DATA", REPO.parent / "shared" / "data")) / "2_text"
    texts: list[str] = []
    size = 0
    for part in range(3):
        with zstandard.open(folder / f"crawl-{part:02}.jsonl.zst", "rt", encoding="utf-8") as file:
            for line in file:
                texts.append(json.loads(line)["text"])
                size += len(texts[-1].encode())
                if size > megabytes * 1e6:
                    return texts
    return texts


def cpu_seconds(work: Callable[[], object], repeats: int = 3) -> float:
    """CPU seconds of the fastest run."""
    best = float("inf")
    for _ in range(repeats):
        begin = time.process_time()
        work()
        best = min(best, time.process_time() - begin)
    return best


def write_shard(path: Path, texts: list[str]) -> Path:
    """A shard of these texts, as ingest writes it."""
    columns = {
        "doc_id": pa.array([sha256(b"%d" % i).digest()[:16] for i in range(len(texts))], pa.binary(16)),
        "text_id": pa.array([sha256(text.encode()).digest()[:16] for text in texts], pa.binary(16)),
        "id": pa.array([f"document-{i}" for i in range(len(texts))]),
        "source": pa.array(["crawl.jsonl.gz"] * len(texts)),
        "text": pa.array(texts),
    }
    table = pa.table(columns)
    with pa.ipc.new_file(str(path), table.schema) as writer:
        writer.write_table(table, max_chunksize=1_000)
    return path


def web_lengths(n: int, median: float = 500, seed: int = 0) -> npt.NDArray[np.int64]:
    """Made-up document lengths in tokens."""
    return np.maximum(2, np.random.default_rng(seed).lognormal(np.log(median), 1.1, n)).astype(np.int64)


def planning() -> None:
    """Seconds, padding and cut documents for a million documents."""
    print("\n## Planning 1,000,000 documents (log-normal, median 500 tokens)\n")
    print("| seq_len | strategy | CPU seconds | padding | documents cut | of them too long for a sequence |")
    print("|---|---|---|---|---|---|")
    lengths = web_lengths(1_000_000)
    for seq_len in (512, 2048, 8192, 65_536):
        for strategy in ("best_fit", "concat"):
            seconds = cpu_seconds(lambda s=strategy, n=seq_len: plan_packing(lengths, n, s))  # type: ignore[misc]
            plan = plan_packing(lengths, seq_len, strategy)  # type: ignore[arg-type]
            padding = 1 - plan.n_tokens / (plan.n_sequences * seq_len)
            cut, long = (plan.places().pieces > 1).mean(), (lengths > seq_len).mean()
            print(f"| {seq_len} | {strategy} | {seconds:.2f} | {padding:.4%} | {cut:.1%} | {long:.1%} |", flush=True)


def plan_alone(n_documents: int, strategy: str, seed: int | None) -> None:
    """Plan documents as an assembly does, all of them, and find all places; the work of a child process."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        lengths, tokens = Spool(folder, np.int32), 0
        for first in range(0, n_documents, GROUP):
            some = web_lengths(min(GROUP, n_documents - first), seed=first)
            lengths.append(some)
            tokens += int(some.sum())
        before = resident()
        rows = Rows("all", n_documents, Totals(tokens), (), (0, n_documents), None)
        parts: Any = SimpleNamespace(lengths=lengths)
        tokenizer: Any = None
        assembly = Assembly(parts, rows, tokenizer, folder, 2048, strategy, seed)  # type: ignore[arg-type]
        with peak_memory() as used:
            begin = time.process_time()
            planned = assembly.plan()
            cpu = time.process_time() - begin
            begin = time.process_time()
            for window in planned.windows():
                assembly._places(window, planned.n_sequences)
            places = time.process_time() - begin
            begin, n_blocks = time.process_time(), min(20, planned.n_sequences // 4096)
            for number in range(n_blocks):
                assembly._planned(planned, number * 4096, (number + 1) * 4096)
            block = (time.process_time() - begin) / max(1, n_blocks)
        disk = 12 * planned.n_pieces + 8 * planned.n_sequences + 12 * n_documents
        result = {"cpu": cpu, "places": places, "block": block, "cut": planned.cut_documents / n_documents}
        result |= {"padding": 1 - tokens / (planned.n_sequences * 2048), "disk": disk, "before": before, **used}
        planned.close()
        lengths.close()
    print(json.dumps(result))


def resident() -> float:
    """Memory of this process now, in MB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def many_plans(millions: int) -> None:
    """The same for as many documents as a large run has: the whole plan, its memory and its anonymous files."""
    print("\n## Planning a whole file, seq_len 2048; a process of its own each time\n")
    columns = ("M documents", "strategy", "order", "CPU s, plan", "CPU s, places", "ms a block of 16 MB", "peak MB")
    columns += ("of it before", "anonymous files, MB", "padding", "documents cut")
    print(f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}")
    for n in (1, millions):
        for strategy, seed in (("best_fit", None), ("best_fit", 1), ("concat", None)):
            words = [
                "--plan",
                str(n * 1_000_000),
                "--strategy",
                strategy,
                *([] if seed is None else ["--seed", str(seed)]),
            ]
            done = json.loads(child(words))
            print(
                f"| {n} | {strategy} | {'input' if seed is None else 'shuffled'} | {done['cpu']:.1f} | {done['places']:.1f} "
                f"| {done['block'] * 1e3:.1f} | {done['peak_rss_mb']:.0f} | {done['before']:.0f} | {done['disk'] / 1e6:.0f} "
                f"| {done['padding']:.4%} | {done['cut']:.1%} |",
                flush=True,
            )


def child(words: list[str]) -> str:
    """What this page prints with other words, in a process of its own."""
    command = [sys.executable, __file__, *words]
    return subprocess.run(command, check=True, capture_output=True, text=True, cwd=REPO).stdout


def make_parts(folder: Path, n_tokens: int) -> list[Path]:
    """Part files of random ids, about 17M tokens each."""
    tokenizer, paths, made, row = load_tokenizer(), [], 0, 0
    rng = np.random.default_rng(1)
    while made < n_tokens:
        paths.append(folder / f"{len(paths)}.arrow")
        with PartWriter(paths[-1], tokenizer) as writer:
            for _ in range(4):
                lengths = web_lengths(4_500, seed=row)
                ids = rng.integers(2, 32_768, int(lengths.sum())).astype(np.uint16)
                ids[np.cumsum(lengths) - 1] = tokenizer.eos_id
                rows, nothing = range(row, row + len(lengths)), np.zeros(len(lengths), np.int64)
                names = [sha256(b"%d" % r).digest()[:16] for r in rows]
                who = {
                    "doc_id": pa.array(names, pa.binary(16)),
                    "text_id": pa.array(names, pa.binary(16)),
                    "id": pa.array([f"document-{r}" for r in rows]),
                    "source": pa.array([f"crawl-{r % 8}.jsonl.gz" for r in rows]),
                    "language": pa.array(["en"] * len(lengths)),
                }
                writer.write(pa.record_batch(who), [Encoded(ids, lengths, nothing, 4 * lengths, nothing)])
                row += len(lengths)
                made += len(ids)
    return paths


CASES: dict[str, dict[str, Any]] = {
    "as they come": {},
    "shuffled": {"shuffle_seed": 1},
    "shuffled, 1 % held out, a source twice": {
        "shuffle_seed": 1,
        "holdout_share": 0.01,
        "mix": {"epochs": {"crawl-0*": 2}},
    },
}


def assemble_alone(folder: Path, case: str, threads: int) -> None:
    """Assemble the parts of a folder and say what it took; the work of a child process."""
    parts = sorted(folder.glob("*.arrow"), key=lambda path: int(path.stem))
    config = PackConfig(**CASES[case])
    pack = folder / "pack"
    nothing = {"epochs": {"*": 1}}  # a run of nothing loads the tokenizer and all modules
    assemble([], pack_folder=pack, config=PackConfig(mix=nothing), run_id="bench", config_digest="0")
    with peak_memory() as used:
        begin = time.process_time()
        packed = assemble(parts, pack_folder=pack, config=config, run_id="bench", config_digest="0", threads=threads)
        cpu = time.process_time() - begin
    print(json.dumps({**packed, **used, "cpu": cpu}))


def assembling(millions: int) -> None:
    """Rates and peak memory of assembling a tenth of the tokens and all of them, then of verifying."""
    print("\n## Assembling, uint16, seq_len 2048, best_fit; a process of its own each time\n")
    print("| M tokens | documents | order | threads | s | MB/s | MB per CPU second | peak MB |")
    print("|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as name:
        for n_tokens, threads_of_each in ((millions * 100_000, (1,)), (millions * 1_000_000, (1, 2))):
            folder = Path(name) / str(n_tokens)
            folder.mkdir()
            make_parts(folder, n_tokens)
            for case in CASES:
                for threads in threads_of_each:
                    words = ["--assemble", str(folder), "--case", case, "--threads", str(threads)]
                    done = json.loads(child(words))
                    size = sum(file["tokens"] for file in done["files"]) * 2 / 1e6
                    print(
                        f"| {size / 2:.0f} | {done['documents']:,} | {case} | {threads} | {done['seconds']:.2f} "
                        f"| {size / done['seconds']:.0f} | {size / done['cpu']:.0f} | {done['peak_rss_mb']:.0f} |",
                        flush=True,
                    )
        path = folder / "pack/tokens.arrow"
        bare = cpu_seconds(lambda: plain_copy(folder), 2)
        size = path.stat().st_size / 1e6
        verifying = cpu_seconds(lambda: verify(path).raise_if_bad())
        print(f"\nVerifying the larger one: {size / verifying:.0f} MB per CPU second.", end=" ")
        print(f"Copying its parts to one file and syncing it, nothing else: {size / bare:.0f} MB per CPU second.")


def plain_copy(folder: Path) -> None:
    """Parts to one file, as any writer must."""
    with (folder / "copy").open("wb") as out:
        for part in sorted(folder.glob("*.arrow")):
            out.write(part.read_bytes())
        os.fsync(out.fileno())


def end_to_end(megabytes: float) -> None:
    """From a shard of text to the published token file, one process."""
    texts = crawl(megabytes)
    size = sum(len(text.encode()) for text in texts) / 1e6
    load_tokenizer().encode_documents(["load it"])
    print(f"\n## From shard to token file, {len(texts):,} documents of the crawl, {size:.1f} MB of text, one process\n")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shard, config = write_shard(folder / "shard.arrow", texts), PackConfig()
        encode_shard(shard, [True] + [False] * (len(texts) - 1), folder / "warm.arrow", config)
        wall, begin = time.perf_counter(), time.process_time()
        counts = encode_shard(shard, None, folder / "part.arrow", config)
        encoded = time.process_time() - begin
        keywords: dict[str, Any] = {"config": config, "run_id": "bench", "config_digest": "0"}
        assemble([folder / "part.arrow"], pack_folder=folder / "pack", checksums=[counts["sha256"]], **keywords)
        cpu, wall = time.process_time() - begin, time.perf_counter() - wall
    print(f"- encoding, first time over the text: {size / encoded:.1f} MB of text per CPU second")
    print(f"- encoding and assembling: {size / cpu:.1f} MB of text per CPU second, {size / wall:.1f} by the clock")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--text-mb", type=float, default=8)
    parser.add_argument("--tokens", type=int, default=100, metavar="MILLIONS")
    parser.add_argument("--documents", type=int, default=50, metavar="MILLIONS")
    parser.add_argument("--assemble", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--case", help=argparse.SUPPRESS)
    parser.add_argument("--threads", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--plan", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--strategy", help=argparse.SUPPRESS)
    parser.add_argument("--seed", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.assemble:
        assemble_alone(options.assemble, options.case, options.threads)
        return
    if options.plan:
        plan_alone(options.plan, options.strategy, options.seed)
        return
    info = Path("/proc/cpuinfo")
    model = re.search(r"model name\s*:\s*(.*)", info.read_text() if info.exists() else "")
    print(f"# Packing, {datetime.now(timezone.utc):%Y-%m-%d}\n")
    load = os.getloadavg()[0]
    print(
        f"{os.cpu_count()} cores (shared with other work, load {load:.0f}), {model[1] if model else 'unknown'};",
        end=" ",
    )
    print(f"Python {sys.version.split()[0]}, pyarrow {pa.__version__}. `python tests/bench/bench_pack.py`\n")
    planning()
    many_plans(options.documents)
    assembling(options.tokens)
    end_to_end(options.text_mb)


if __name__ == "__main__":
    main()
