"""Neural perplexity: `gpt2` in bfloat16 and `ctranslate2` in 8 bits beside a plain loop of transformers, on the same documents.

    python -m tests.bench.bench_lm --model FOLDER [--characters N] [--rounds N] [--threads N] > bench/results/neural-perplexity.md

The loop is that of Hugging Face's "Perplexity of fixed-length models": one document at a time, float32, windows of 1,024
tokens, stride 512, no BOS; what others take is told as times its speed. All score every token of a document.
Documents: English good ones of at most 12,000 characters of the test data's `2_text`, in the order of their ids' checksums.
Rounds run each tool once, one right after the other; a speed is scored tokens by second, of a CPU and of the clock; medians.
Without `--model` a tiny model of seeded numbers shows that the bench runs: its figures mean nothing.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from quality_models.causal_lm import CausalLm, quiet
from quality_models.ctranslate_lm import CtranslateLm
from quality_models.lm_folder import library_version
from quality_models.lm_tokens import read_tokenizer
from quality_models.windows import WindowRule
from tests.bench.bench_scale import _processor
from tests.bench.language_gold import read_rows
from tests.lm_oracle import write_gpt2

REPO = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("CORPUSMILL_TEST_DATA", REPO.parent / "shared" / "data"))
ALL = 10**9
RULES = ((1024, 512), (1024, 768), (512, 384))


class Judgement(NamedTuple):
    """nats: float64[n_texts]. tokens: int64[n_texts], those scored."""

    nats: np.ndarray[Any, Any]
    tokens: np.ndarray[Any, Any]


Judge = Callable[[Sequence[str]], Judgement]


class Plain:
    """The loop of Hugging Face's documentation."""

    def __init__(self, folder: Path, window: int, stride: int, threads: int) -> None:
        import torch
        from transformers import AutoModelForCausalLM

        with quiet():
            self.model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
        self.tokenizer = read_tokenizer(folder / "tokenizer.json")
        self.window, self.stride, self.threads = window, stride, threads

    def __call__(self, texts: Sequence[str]) -> Judgement:
        import torch

        torch.set_num_threads(self.threads)
        with torch.inference_mode():
            found = [self._one(text) for text in texts]
        return Judgement(np.array([nats for nats, _ in found]), np.array([tokens for _, tokens in found]))

    def _one(self, text: str) -> tuple[float, int]:
        import torch

        ids = torch.tensor([self.tokenizer.encode(text, add_special_tokens=False).ids])
        nats, scored, before = 0.0, 0, 0
        for begin in range(0, ids.shape[1], self.stride):
            end = min(begin + self.window, ids.shape[1])
            inputs = ids[:, begin:end]
            targets = inputs.clone()
            targets[:, : before - end] = -100
            # The first token of a window is never a target.
            count = int((targets[:, 1:] != -100).sum())
            if count:
                nats += float(self.model(input_ids=inputs, labels=targets).loss) * count
            scored += count
            before = end
            if end == ids.shape[1]:
                break
        return nats, scored


def tools(folder: Path, cache: Path, threads: int, rules: Sequence[tuple[int, int]]) -> dict[tuple[str, str], Judge]:
    """Each tool by name and rule, loaded."""

    def ours(engine: CausalLm | CtranslateLm) -> Judge:
        def judge(texts: Sequence[str]) -> Judgement:
            found = engine.judge(texts)
            return Judgement(found.nats, found.tokens)

        return judge

    found: dict[tuple[str, str], Judge] = {}
    for window, stride in rules:
        rule, said = WindowRule(window, stride, max_windows=ALL), f"{window} / {stride}"
        found["transformers, float32", said] = Plain(folder, window, stride, threads)
        found["`gpt2`, bfloat16", said] = ours(CausalLm(str(folder), rule, threads=threads))
        int8 = CtranslateLm(str(folder), rule, threads=threads, cache_folder=cache)
        found["`ctranslate2`, int8", said] = ours(int8)
    for judge in found.values():
        judge(["A first text, so that everything is loaded."])
    return found


def documents(characters: int, longest: int) -> list[str]:
    """English documents labelled good, of at most `longest` characters each and about `characters` together."""
    gold = read_rows(DATA / "2_text" / "gold.jsonl.zst")
    good = [row for row in gold if row["lang"] == "en" and row["quality"] == "good" and row["chars"] <= longest]
    wanted: list[str] = []
    for row in sorted(good, key=lambda row: hashlib.sha256(row["id"].encode()).digest()):
        if characters <= 0:
            break
        wanted.append(row["id"])
        characters -= row["chars"]
    texts: dict[str, str] = {}
    for path in sorted((DATA / "2_text").glob("crawl-*.jsonl.zst")):
        texts |= {row["id"]: row["text"] for row in read_rows(path) if row["id"] in wanted}
    return [texts[number] for number in wanted]


def measure(known: dict[tuple[str, str], Judge], texts: Sequence[str], rounds: int) -> list[str]:
    """Rows of the table."""
    times: dict[tuple[str, str], list[tuple[float, float]]] = {name: [] for name in known}
    answers: dict[tuple[str, str], Judgement] = {}
    for _ in range(rounds):
        for name, judge in known.items():
            cpu, clock = time.process_time(), time.perf_counter()
            answers[name] = judge(texts)
            times[name].append((time.process_time() - cpu, time.perf_counter() - clock))
    base = next(iter(known))
    reference = answers[base].nats / answers[base].tokens
    rows = []
    for name, found in answers.items():
        tokens = found.tokens.sum()
        per_cpu, per_clock = (statistics.median(tokens / one[kind] for one in times[name]) for kind in (0, 1))
        ratios = [
            statistics.median(
                (tokens / mine[kind]) / (answers[base].tokens.sum() / its[kind])
                for mine, its in zip(times[name], times[base], strict=True)
            )
            for kind in (0, 1)
        ]
        nats = found.nats / found.tokens
        rows.append(
            f"| {name[0]} | {name[1]} | {tokens:,} | {per_cpu:,.0f} | {ratios[0]:.2f} | {per_clock:,.0f} | {ratios[1]:.2f} | "
            f"{np.exp(found.nats.sum() / tokens):.2f} | {np.exp(np.median(nats)):.2f} | {np.abs(nats - reference).max():.3f} |"
        )
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.bench_lm", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", type=Path, help="folder in transformers' format")
    parser.add_argument("--characters", type=int, default=20_000, help="of all documents, about")
    parser.add_argument("--longest", type=int, default=12_000, help="characters of a document, at most")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    if not (DATA / "2_text").is_dir():
        print(f"passed over: {DATA / '2_text'} is not there; set CORPUSMILL_TEST_DATA")
        return 0
    texts = documents(arguments.characters, arguments.longest)
    print(f"# Neural perplexity, {datetime.now(timezone.utc):%Y-%m-%d}\n")
    print(
        f"{_processor()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the start, {arguments.threads} threads;"
    )
    print(", ".join(f"{name} {library_version(name)}" for name in ("torch", "transformers", "ctranslate2")) + ".")
    lengths = sorted(len(text) for text in texts)
    print(f"Model: {arguments.model.name if arguments.model else 'a tiny one of seeded numbers'}.")
    print(
        f"{len(texts)} documents of {lengths[0]:,} to {lengths[-1]:,} characters, median {lengths[len(lengths) // 2]:,}.\n"
    )
    print(" ".join((__doc__ or "").split("\n\n")[2].split()) + "\n")
    print(
        "| tool | window / stride | tokens | a CPU second | times | a second | times | perplexity | median document | "
        "largest difference, nats a token |\n" + "| --- " * 10 + "|",
        flush=True,
    )
    with tempfile.TemporaryDirectory(prefix="bench-lm-") as folder:
        model = arguments.model or write_gpt2(Path(folder) / "tiny", positions=1024)
        known = tools(model, Path(folder) / "cache", arguments.threads, RULES)
        print("\n".join(measure(known, texts, arguments.rounds)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
