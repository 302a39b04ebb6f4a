"""Speed of tokenizing new text with identical ids: ours beside the stock library, tiktoken and sentencepiece.

    python -m tests.bench.bench_tokenize [--megabytes 1.5] [--rounds 3] [--tokenizers NAME...] > bench/results/tokenize.md
    python -m tests.bench.bench_tokenize --identity [--tokenizers NAME...]     every text of 2_text and 4_langid, by both

Texts are documents of the test data (CORPUSMILL_TEST_DATA); known tokenizers are those of `make .venv/.tokenizers`, and
those that are absent are left out. Each round has documents of its own, which every way gets once, one way after the
other: all text is new to all of them, and a busy machine slows them alike. CPU time of one core; the median of the
rounds. A word, a page, a language that a way has seen in an earlier round it may remember, as in a run.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import zstandard

from curation.pack import encode_shard
from curation.pack_config import PackConfig
from tests.known_tokenizers import FOLDER, KNOWN
from tokenization.tokenizer import Tokenizer, load_tokenizer

REPO = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("CORPUSMILL_TEST_DATA", REPO.parent / "shared" / "data"))
GROUP = 1 << 20
"""Bytes of the documents that are given to a way at once."""
NAMES = ("default", "gpt2", "llama3", "qwen", "deepseek", "tekken", "mistral_v1", "mistral_v3", "mistral_v7")
TIKTOKEN, SENTENCEPIECE = ("gpt2", "llama3", "qwen", "tekken"), ("mistral_v1", "mistral_v3", "mistral_v7")

Way = Callable[[Sequence[str]], object]


class Corpus(NamedTuple):
    """Documents of one kind, in rounds that share no document."""

    name: str
    rounds: list[list[str]]


def lines(path: Path) -> Iterator[dict[str, Any]]:
    with zstandard.open(path, "rt", encoding="utf-8") as file:
        yield from map(json.loads, file)


def corpora(megabytes: float, n_rounds: int) -> list[Corpus]:
    """English; Chinese; all other languages of the crawl together with pages of two languages."""
    languages = {row["id"]: row["lang"] for row in lines(DATA / "2_text/gold.jsonl.zst")}
    kinds: dict[str, list[str]] = {"English": [], "Chinese": [], "others, mixed": []}
    names = {"en": "English", "zh": "Chinese"}
    for part in range(3):
        for row in lines(DATA / f"2_text/crawl-{part:02}.jsonl.zst"):
            kinds[names.get(languages[row["id"]], "others, mixed")].append(row["text"])
    pages = [row["text"] for row in lines(DATA / "4_langid/mixed_pages.jsonl.zst")]
    mixed = kinds["others, mixed"]
    kinds["others, mixed"] = [text for pair in zip(pages, mixed, strict=False) for text in pair]
    made = []
    for name, texts in kinds.items():
        rest = iter(texts)
        made.append(Corpus(name, [take(rest, megabytes) for _ in range(n_rounds)]))
    return made


def take(texts: Iterator[str], megabytes: float) -> list[str]:
    """The next texts, so many bytes of them."""
    taken: list[str] = []
    size = 0
    for text in texts:
        taken.append(text)
        size += len(text.encode())
        if size >= megabytes * 1e6:
            break
    return taken


def megabytes_of(texts: Sequence[str]) -> float:
    return sum(len(text.encode()) for text in texts) / 1e6


def groups(texts: Sequence[str]) -> list[list[str]]:
    """Texts in groups of about a megabyte, as `encode_shard` makes them."""
    made: list[list[str]] = [[]]
    size = 0
    for text in texts:
        if size > GROUP:
            made.append([])
            size = 0
        made[-1].append(text)
        size += len(text.encode())
    return made


def cpu_seconds(work: Callable[..., object], *arguments: object) -> float:
    begin = time.process_time()
    work(*arguments)
    return time.process_time() - begin


def collect(work: Way, batches: Sequence[Sequence[str]], results: list[Any]) -> None:
    results.extend(map(work, batches))


def load(name: str, *, fast: bool = True) -> Tokenizer:
    if name == "default":
        return load_tokenizer(fast=fast)
    return load_tokenizer(FOLDER / KNOWN[name][0], eos=KNOWN[name][1], fast=fast)


def peer(name: str) -> tuple[str, Way] | None:
    """What the model's makers encode with: its name, and how it is called for some texts."""
    path = FOLDER / KNOWN[name][0] if name in KNOWN else None
    if path is None:
        return None
    if name in SENTENCEPIECE:
        from sentencepiece import SentencePieceProcessor

        model = SentencePieceProcessor(model_file=str(path))
        return f"sentencepiece {version('sentencepiece')}", lambda texts: model.encode(list(texts), num_threads=1)
    if name not in TIKTOKEN:
        return None
    import tiktoken

    from tokenization.parity.tiktoken import load_ranks, load_tekken

    if name == "gpt2":
        from tiktoken.load import data_gym_to_mergeable_bpe_ranks
        from tiktoken_ext.openai_public import r50k_pat_str

        ranks = data_gym_to_mergeable_bpe_ranks(str(path / "vocab.bpe"), str(path / "encoder.json"))
        encoding = tiktoken.Encoding("gpt2", pat_str=r50k_pat_str, mergeable_ranks=ranks, special_tokens={})
        return f"tiktoken {tiktoken.__version__}", lambda texts: [encoding.encode_ordinary(text) for text in texts]
    raw = path.read_bytes()
    trainer = load_tekken(path, json.loads(raw)) if name == "tekken" else load_ranks(path, raw)
    return f"tiktoken {tiktoken.__version__}", trainer.plain


def compare(name: str, tokenizer: Tokenizer, corpus: Sequence[Corpus]) -> Iterator[str]:
    """A row of the table for each corpus; all ids are compared with the stock library's."""
    library, other, second = tokenizer._backend, peer(name), load(name)  # a second one, that has seen no more
    ways: dict[str, Way] = {
        "stock": lambda texts: library.encode_batch(texts, add_special_tokens=False),
        "ids": tokenizer.encode_batch,
        "documents": second.encode_documents,
    }
    if other is not None:
        ways["peer"] = other[1]
    for way in ways.values():
        way(["a word, to load what is loaded once"])
    for kind in corpus:
        speeds: dict[str, list[float]] = {way: [] for way in ways}
        differ = n = 0
        for texts in kind.rounds:
            batches, size = groups(texts), megabytes_of(texts)
            results: dict[str, list[Any]] = {way: [] for way in ways}
            for way, work in ways.items():
                seconds = cpu_seconds(collect, work, batches, results[way])
                speeds[way].append(size / seconds)
            for (ids, lengths), right in zip(results["ids"], results["stock"], strict=True):
                rows = np.split(ids, np.cumsum(lengths)[:-1])
                differ += sum(row.tolist() != one.ids for row, one in zip(rows, right, strict=True))
                n += len(right)
        yield row_of(name, kind, speeds, f"{n - differ:,} of {n:,}", other[0] if other else "")


def identity(names: Sequence[str]) -> None:
    """Compare the ids of every text of 2_text and 4_langid with the stock library's."""
    print(
        "| tokenizer | documents | MB | tokens | documents with other ids | characters lost |\n|---|---|---|---|---|---|"
    )
    paths = [*sorted((DATA / "2_text").glob("crawl-*")), *sorted((DATA / "4_langid").glob("*.zst"))]
    texts = [row["text"] for path in paths for row in lines(path)]
    for name in names:
        tokenizer, differ, tokens, lost = load(name), 0, 0, 0
        for group in groups(texts):
            encoded = tokenizer.encode_documents(group)
            rows = np.split(encoded.ids, np.cumsum(encoded.lengths)[:-1])
            right = tokenizer._backend.encode_batch_fast(group, add_special_tokens=False)
            differ += sum(row[:-1].tolist() != one.ids for row, one in zip(rows, right, strict=True))
            tokens, lost = tokens + len(encoded.ids) - len(group), lost + int(encoded.lost.sum())
        print(
            f"| {name} | {len(texts):,} | {megabytes_of(texts):.1f} | {tokens:,} | {differ:,} | {lost:,} |", flush=True
        )


def row_of(name: str, kind: Corpus, speeds: Mapping[str, Sequence[float]], equal: str, other: str) -> str:
    median = {way: statistics.median(values) for way, values in speeds.items()}
    ratios = {
        way: [one / stock for one, stock in zip(speeds[way], speeds["stock"], strict=True)]
        for way in ("ids", "documents")
    }
    times = [
        f"{statistics.median(ratios[way]):.1f} ({min(ratios[way]):.0f} to {max(ratios[way]):.0f})" for way in ratios
    ]
    beside = f"{median['peer']:.1f} ({other})" if other else "–"
    return (
        f"| {name} | {kind.name} | {median['stock']:.2f} | {beside} | {median['ids']:.0f} | {times[0]} "
        f"| {median['documents']:.0f} | {times[1]} | {equal} |"
    )


def write_shard(path: Path, texts: Sequence[str]) -> Path:
    """A shard of these texts, as ingest writes it."""
    digests = [i.to_bytes(16, "big") for i in range(len(texts))]
    table = pa.table(
        {
            "doc_id": pa.array(digests, pa.binary(16)),
            "text_id": pa.array(digests, pa.binary(16)),
            "id": pa.array([f"document-{i}" for i in range(len(texts))]),
            "source": pa.array(["crawl.jsonl.gz"] * len(texts)),
            "text": pa.array(list(texts)),
        }
    )
    with pa.ipc.new_file(str(path), table.schema) as writer:
        writer.write_table(table, max_chunksize=1_000)
    return path


def end_to_end(names: Sequence[str], corpus: Sequence[Corpus]) -> None:
    """From a shard to a part file: reading, ids, EOS, the proof of each document, provenance, writing, checksum."""
    print("\n## From a shard to its part file\n")
    print("Reading, ids, EOS, the proof that each document comes back, provenance, checksum, the file on disk.\n")
    print("| tokenizer | corpus | MB | MB per CPU second | times stock encode_batch |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            path = "default" if name == "default" else str(FOLDER / KNOWN[name][0])
            config = PackConfig(tokenizer=path, eos=None if name == "default" else KNOWN[name][1])
            library = load(name)._backend
            part = Path(folder) / "part.arrow"
            for kind in corpus:
                shard = write_shard(Path(folder) / "shard.arrow", kind.rounds[0][:1])
                encode_shard(shard, None, part, config)
                speeds, ratios = [], []
                for texts in kind.rounds:
                    size = megabytes_of(texts)
                    write_shard(shard, texts)
                    speeds.append(size / cpu_seconds(encode_shard, shard, None, part, config))
                    stock = cpu_seconds(library.encode_batch, texts, False, False)
                    ratios.append(speeds[-1] * stock / size)
                print(
                    f"| {name} | {kind.name} | {size:.1f} | {statistics.median(speeds):.0f} "
                    f"| {statistics.median(ratios):.1f} |",
                    flush=True,
                )


def endless(names: Sequence[str], size: int) -> None:
    """Texts without a border, of one size and of twice that, by every engine; no text twice, which it may remember."""
    dice = random.Random(0)
    made: dict[str, Callable[[int], str]] = {
        "one letter": lambda n: dice.choice("abcdefghijklmnopqrstuvwxyz") * n,
        "random letters": lambda n: "".join(dice.choices("abcdefghijklmnopqrstuvwxyz", k=n)),
        "random Han": lambda n: "".join(map(chr, dice.choices(range(0x4E00, 0x9FA5), k=n // 3))),
        "underscores": lambda n: dice.choice("_-=*.") * (n // 20),
    }
    print(f"\n## Texts without a border: CPU seconds for {2 * size / 1e6:g} MB, and times those for the half\n")
    print(f"Underscores, or other signs: {size // 10:,} and {size // 20:,} of one.\n")
    print(f"| engine | {' | '.join(made)} |\n|---|{'---|' * len(made)}")
    for name in names:
        for fast in (True, False):
            tokenizer = load(name, fast=fast)
            tokenizer.encode_documents(["load it"])
            cells = []
            for make in made.values():
                half, whole = (
                    min(cpu_seconds(tokenizer.encode_documents, [make(n)]) for _ in range(2)) for n in (size, 2 * size)
                )
                cells.append(f"{whole:.3f} ({whole / half:.1f})")
            print(f"| {name}, {tokenizer.engine.split(' (')[0]} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--megabytes", type=float, default=1.5, help="of each corpus in a round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tokenizers", nargs="+", default=list(NAMES), choices=NAMES)
    parser.add_argument("--identity", action="store_true", help="compare the ids of every text, and measure nothing")
    options = parser.parse_args()
    names = [name for name in options.tokenizers if name == "default" or (FOLDER / KNOWN[name][0]).exists()]
    if options.identity:
        identity(names)
        return
    info = Path("/proc/cpuinfo")
    model = re.search(r"model name\s*:\s*(.*)", info.read_text() if info.exists() else "")
    print(f"# Tokenizing, {datetime.now(timezone.utc):%Y-%m-%d}\n")
    print(
        f"{os.cpu_count()} cores, {model[1] if model else 'unknown'}, shared with other work: load "
        f"{os.getloadavg()[0]:.1f} at the beginning. Python {sys.version.split()[0]}, tokenizers "
        f"{version('tokenizers')}, fastokens {version('fastokens')}, numba {version('numba')}.\n"
        f"`python -m tests.bench.bench_tokenize {' '.join(sys.argv[1:])}`".rstrip(" `")
        + "`\n"
    )
    print(
        f"MB per CPU second of one core; {options.rounds} rounds of {options.megabytes:g} MB of documents that no way has "
        "seen, each way once a round, one after the other; medians, and the least and the most of the ratios. Stock is\n"
        "`tokenizers.encode_batch`. Ids: those alone, samples compared with the stock library among them. Documents: with\n"
        "EOS, unknown tokens, and the proof for each document that its ids give its text back.\n"
    )
    print(
        "| tokenizer | corpus | stock | its makers' library | ids | times stock | documents | times stock | equal ids |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    corpus, engines = corpora(options.megabytes, options.rounds), {}
    for name in names:
        tokenizer = load(name)
        for row in compare(name, tokenizer, corpus):
            print(row, flush=True)
        engines[name] = tokenizer.engine
    print("\nEngines: " + "; ".join(f"{name}: {engine}" for name, engine in engines.items()) + ".")
    some = [name for name in ("default", "llama3", "mistral_v3") if name in names]
    end_to_end(some, corpus)
    endless([name for name in ("default", "mistral_v3") if name in names], int(options.megabytes * 4e6 / 3))
    print(f"\nLoad at the end: {os.getloadavg()[0]:.1f}.")


if __name__ == "__main__":
    main()
