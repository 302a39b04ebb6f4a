"""Speed and memory of packing: encoding, planning, assembling, verifying, opening and reading.

    python tests/bench/bench_pack.py [--encode-mb 8] [--tokens 100] > bench/results/packing-DATE.md

Texts are the crawl of the test data (CORPUSMILL_TEST_DATA); token counts of the larger parts are made up,
log-normal as web documents are. CPU time where that is the point, since the machine may be shared. Each
assembly runs in a process of its own, so that its peak memory is its own.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import zstandard

from curation.pack import PackConfig, assemble, encode_shard
from curation.run import peak_memory
from tokenization.packing import plan_packing
from tokenization.parts import PartWriter
from tokenization.reader import TokenFile, verify
from tokenization.tokenizer import Encoded, Tokenizer, load_tokenizer

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


def groups(texts: list[str]) -> Iterator[list[str]]:
    """Texts in groups of about a megabyte, as `encode_shard` makes them."""
    group: list[str] = []
    size = 0
    for text in texts:
        group.append(text)
        size += len(text.encode())
        if size > GROUP:
            yield group
            group, size = [], 0
    if group:
        yield group


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
        "doc_id": pa.array([i.to_bytes(16, "big") for i in range(len(texts))], pa.binary(16)),
        "id": pa.array([f"document-{i}" for i in range(len(texts))]),
        "source": pa.array(["crawl.jsonl.gz"] * len(texts)),
        "text": pa.array(texts),
    }
    table = pa.table(columns)
    with pa.ipc.new_file(str(path), table.schema) as writer:
        writer.write_table(table, max_chunksize=1_000)
    return path


def encoding(megabytes: float) -> None:
    """MB/s a core: ids alone, with EOS and round trip, and a whole shard; the stock library and the fast one."""
    texts, engines = crawl(megabytes), {"stock": load_tokenizer(fast=False), "fast": load_tokenizer()}
    batches, size = list(groups(texts)), sum(len(text.encode()) for text in texts) / 1e6
    library = engines["stock"]._backend
    print(f"## Encoding, default tokenizer, {len(texts):,} documents of the crawl, {size:.1f} MB, one core\n")
    print(f"Fast is {engines['fast'].engine}; stock is {engines['stock'].engine}.\n")
    with tempfile.TemporaryDirectory() as name:
        shard, part = write_shard(Path(name) / "shard.arrow", texts), Path(name) / "part.arrow"
        ways: dict[str, Callable[[], object]] = {
            "tokenizers encode_batch": lambda: [library.encode_batch(b, add_special_tokens=False) for b in batches],
        }
        for engine, loaded in engines.items():
            config = PackConfig(engine="auto" if engine == "fast" else "stock")
            loaded.encode_documents(["load it"])
            encode_shard(shard, [True] + [False] * (len(texts) - 1), part, config)
            ways |= {
                f"encode_batch, {engine}": lambda t=loaded: [t.encode_batch(b) for b in batches],
                f"encode_documents, {engine} (EOS, round trip of every document)": lambda t=loaded: [
                    t.encode_documents(b) for b in batches
                ],
                f"encode_shard, {engine} (the whole of it, part file on disk)": lambda c=config: encode_shard(
                    shard, None, part, c
                ),
            }
        print("| way | MB per CPU second | times tokenizers |\n|---|---|---|")
        # First, while its caches are empty: a run sees new text all the time.
        fresh = size / cpu_seconds(lambda: encode_shard(shard, None, part, PackConfig()), 1)
        speeds = {name: size / cpu_seconds(work, 2) for name, work in ways.items()}
        speeds["the same, first time over the text"] = fresh
    first = next(iter(speeds.values()))
    for name, speed in speeds.items():
        print(f"| {name} | {speed:.2f} | {speed / first:.1f} |", flush=True)
    loading()
    endless(engines["fast"])


def loading() -> None:
    """CPU seconds until the first text is encoded, once a process."""
    stock, fast = (cpu_seconds(lambda f=f: load_tokenizer(fast=f).encode_documents(["a"]), 2) for f in (False, True))
    print(f"\nLoading: {stock:.2f} CPU seconds with the stock library, {fast:.2f} with the trial of the fast one.")


def endless(tokenizer: Tokenizer) -> None:
    """Texts without blanks: doubling the length must about double the time."""
    dice = random.Random(0)
    made = {
        "one letter": lambda n: "a" * n,
        "random letters": lambda n: "".join(dice.choices("abcdefghijklmnopqrstuvwxyz", k=n)),
        "base64": lambda n: base64.b64encode(dice.randbytes(n * 3 // 4)).decode(),
        "digits": lambda n: "7" * n,
        "random Han": lambda n: "".join(map(chr, dice.choices(range(0x4E00, 0x9FA5), k=n // 3))),
        "underscores": lambda n: "_" * n,
        "blanks": lambda n: " " * n,
        "line ends": lambda n: "\n" * n,
    }
    print("\n| 8 MB without a border | CPU seconds | times 4 MB |\n|---|---|---|")
    for name, make in made.items():
        text = make(8_000_000)
        half, whole = (
            cpu_seconds(lambda t=part: tokenizer.encode_documents([t]), 1)  # type: ignore[misc]
            for part in (text[: len(text) // 2], text)
        )
        print(f"| {name} | {whole:.2f} | {whole / half:.2f} |", flush=True)


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
                who = {
                    "doc_id": pa.array([r.to_bytes(16, "big") for r in rows], pa.binary(16)),
                    "id": pa.array([f"document-{r}" for r in rows]),
                    "source": pa.array(["crawl.jsonl.gz"] * len(lengths)),
                }
                writer.write(pa.record_batch(who), [Encoded(ids, lengths, nothing, 4 * lengths, nothing)])
                row += len(lengths)
                made += len(ids)
    return paths


def assemble_alone(folder: Path) -> None:
    """Assemble the parts of a folder and say what it took; the work of a child process."""
    parts = sorted(folder.glob("*.arrow"), key=lambda path: int(path.stem))
    load_tokenizer()
    with peak_memory() as used:
        begin = time.process_time()
        packed = assemble(parts, pack_folder=folder / "pack", config=PackConfig(), run_id="bench", config_digest="0")
        cpu = time.process_time() - begin
    print(json.dumps({**packed, **used, "cpu": cpu}))


def assembling(millions: int) -> None:
    """Rates and peak memory of assembling a tenth of the tokens and all of them, then of verifying and reading."""
    print("\n## Assembling, uint16, seq_len 2048, best_fit; a process of its own each time\n")
    print("| M tokens | documents | s | MB/s | MB per CPU second | peak MB |")
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as name:
        for n_tokens in (millions * 100_000, millions * 1_000_000):
            folder = Path(name) / str(n_tokens)
            folder.mkdir()
            make_parts(folder, n_tokens)
            command = [sys.executable, __file__, "--assemble", str(folder)]
            done = json.loads(subprocess.run(command, check=True, capture_output=True, text=True, cwd=REPO).stdout)
            size = done["tokens"] * 2 / 1e6
            print(
                f"| {done['tokens'] / 1e6:.0f} | {done['documents']:,} | {done['seconds']:.2f} | {size / done['seconds']:.0f} "
                f"| {size / done['cpu']:.0f} | {done['peak_rss_mb']:.0f} |",
                flush=True,
            )
        reading(folder / "pack/tokens.arrow")


def reading(path: Path) -> None:
    """Verify, open, and random rows beside a plain NumPy memory map of the same bytes."""
    size = path.stat().st_size / 1e6
    verifying = cpu_seconds(lambda: verify(path).raise_if_bad())
    opening = cpu_seconds(lambda: TokenFile(path)[0], 20)
    file = TokenFile(path)
    seq_len = file.metadata.seq_len
    plain_path = path.with_suffix(".bin")
    with plain_path.open("wb") as stream:
        for row in file:
            stream.write(row.tobytes())
    plain = np.asarray(np.memmap(plain_path, np.uint16, "r")).reshape(-1, seq_len)  # without memmap's own overhead
    order = np.random.default_rng(2).integers(0, len(file), 50_000).tolist()

    def touch(source: TokenFile | npt.NDArray[np.uint16]) -> int:
        total = 0
        for index in order:
            total ^= int(np.bitwise_xor.reduce(source[index].view(np.uint64)))
        return total

    assert touch(file) == touch(plain)
    n_bytes = len(order) * seq_len * 2 / 1e6
    mapped, bare = n_bytes / cpu_seconds(lambda: touch(file)), n_bytes / cpu_seconds(lambda: touch(plain))
    getting = cpu_seconds(lambda: [file[index] for index in order]) / len(order) * 1e6
    print(f"\n## Reading the larger one, {size:.0f} MB, page cache warm\n")
    print(f"- verify: {size / verifying:.0f} MB per CPU second")
    print(f"- open and first sequence: {opening * 1e3:.1f} ms")
    print(f"- random sequence, view only: {getting:.2f} us")
    print(
        f"- random sequences, every byte touched: {mapped:.0f} MB/s; "
        f"NumPy memory map of the bare ids: {bare:.0f} MB/s ({mapped / bare:.0%})"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--encode-mb", type=float, default=8)
    parser.add_argument("--tokens", type=int, default=100, metavar="MILLIONS")
    parser.add_argument("--assemble", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.assemble:
        assemble_alone(options.assemble)
        return
    info = Path("/proc/cpuinfo")
    model = re.search(r"model name\s*:\s*(.*)", info.read_text() if info.exists() else "")
    print(f"# Packing, {datetime.now(timezone.utc):%Y-%m-%d}\n")
    print(f"{os.cpu_count()} cores (shared with other work), {model[1] if model else 'unknown'};", end=" ")
    print(f"Python {sys.version.split()[0]}, pyarrow {pa.__version__}. `python tests/bench/bench_pack.py`\n")
    encoding(options.encode_mb)
    planning()
    assembling(options.tokens)


if __name__ == "__main__":
    main()
