"""Speed and separation of the n-gram models: MB of UTF-8 a second of one core, and nanoseconds a character.

    python -m tests.bench.bench_ngram [--megabytes 8] [--repeats 5] > bench/results/ngram.md

Texts are the good ones of the labelled crawl (CORPUSMILL_TEST_DATA/2_text), by language. CPU time, best of the repeats,
since the machine may be shared. With KenLM installed, its query reads the same text with a model of the same size,
from an ARPA file, character by character: `--kenlm`. Its Python module takes words as a string, so a blank stands
between any two characters, as its users must do.
"""

from __future__ import annotations

import argparse
import math
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from pathlib import Path

import numpy as np
import pyarrow as pa

from curation.filters.perplexity.ngram import Scorer, load_models, prepared, score_texts
from curation.filters.perplexity.ngram_text import NORMALISATION, normal_characters
from curation.text import buffers
from quality_models.arpa import tokens_of, write_arpa
from quality_models.ngram_file import pack, quantised
from quality_models.ngram_training import train
from tests.bench.bench_text import corpora, seconds
from tools.ngram_models.measure import random_text, shuffled_characters, shuffled_words

REPO = Path(__file__).resolve().parents[2]
MODELS = {"English": "eng", "Chinese": "zho", "Japanese": "jpn"}
KENLM_TEXT = 300_000
BROKEN: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "words shuffled": shuffled_words,
    "characters shuffled": shuffled_characters,
    "random characters": random_text,
    "UTF-8 read as Latin-1": lambda text: text.encode().decode("latin-1"),
}


def model_for(language: str) -> Scorer:
    return load_models()[MODELS.get(language, "mul")]


def speeds(texts: Sequence[str], scorer: Scorer, repeats: int) -> tuple[float, float, float, float]:
    """Megabytes, MB/s and nanoseconds a character of scoring, MB/s of normalisation alone. Long texts whole."""
    pieces = [text[at : at + 20_000] for text in texts for at in range(0, len(text), 20_000)]
    data, offsets = buffers(pa.array(pieces, pa.large_string()))
    size = float(offsets[-1]) / 1e6
    tokens = int(score_texts(scorer, data, offsets).tokens.sum())
    taken = seconds(lambda: score_texts(scorer, data, offsets), repeats)
    alone = seconds(lambda: normal_characters(data, offsets), repeats)
    return size, size / taken, taken * 1e9 / max(tokens, 1), size / alone


def percentiles(texts: Sequence[str], scorer: Scorer) -> str:
    """Bits a character: the 5th, 50th and 95th percentile over documents."""
    scores = score_texts(scorer, *buffers(pa.array(texts, pa.large_string())))
    read = scores.tokens >= 50
    bits = scores.nats[read] / math.log(2) / scores.tokens[read]
    return " / ".join(f"{value:.2f}" for value in np.percentile(bits, [5, 50, 95])) if read.any() else "-"


def against_kenlm(texts: Sequence[str]) -> str:
    """Agreement with KenLM's query, and its speed beside ours, on one model of order 5."""
    import kenlm  # type: ignore[import-not-found]

    text = "\n".join(texts)[:KENLM_TEXT]
    codes, _ = normal_characters(*buffers(pa.array([text], pa.large_string())))
    half = len(codes) // 2
    model = train(codes[:half], np.array([0, half]), order=5, most_bytes=500_000)
    scorer = prepared(pack(model, "mis", NORMALISATION, {}))
    listed = dict(zip([0, *model.characters.tolist()], tokens_of(model.characters), strict=True))
    lines = ["".join(map(chr, codes[at : at + 500].tolist())).strip() for at in range(half, len(codes) - 500, 500)]
    spaced = [" ".join(["▁", *(listed.get(ord(char), "<unk>") for char in line)]) for line in lines]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.arpa"
        write_arpa(quantised(model), path)
        query = kenlm.Model(str(path))
    first = query.score("▁", bos=False, eos=False)
    theirs = np.array([query.score(line, bos=False, eos=False) - first for line in spaced]) * -math.log(10)
    data, ends = buffers(pa.array(lines, pa.large_string()))
    ours = score_texts(scorer, data, ends)
    known = np.array(["<unk>" not in line for line in spaced])
    off = np.abs(ours.nats - theirs)[known] / ours.tokens[known]
    slow = seconds(lambda: [query.score(line, bos=False, eos=False) for line in spaced], 3)
    fast = seconds(lambda: score_texts(scorer, data, ends), 3)
    size = sum(len(grams.last) for grams in model.grams)
    return (
        f"{known.sum()} texts of 500 characters, model of order 5 and {size:,} n-grams: "
        f"nats a character differ by {np.median(off):.1e} in the median, {off.max():.1e} at most (fingerprints); "
        f"{(off < 1e-4).mean():.0%} are equal to 1e-4. KenLM's query takes {slow / fast:.1f} times as long "
        "(called from Python for each text, which is normalised and cut into tokens for it before)."
    )


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=float, default=8)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--kenlm", action="store_true")
    given = parser.parse_args(arguments)
    revision = subprocess.run(
        ["git", "describe", "--always", "--dirty=+"], cwd=REPO, capture_output=True, text=True, check=False
    ).stdout.strip()
    texts = {name: found for name, found in corpora(given.megabytes).items() if found}
    print(f"# N-gram models, {datetime.now(timezone.utc):%Y-%m-%d}\n\nRevision {revision}. {__doc__.splitlines()[0]}\n")
    print("| text | model | MB | MB/s | ns a character | normalisation alone, MB/s |\n|---|---|---|---|---|---|")
    for name, found in texts.items():
        size, speed, each, alone = speeds(found, model_for(name), given.repeats)
        print(
            f"| {name} | {MODELS.get(name, 'mul')} | {size:.1f} | {speed:.1f} | {each:.0f} | {alone:.0f} |", flush=True
        )
    began = time.perf_counter()
    for scorer in map(prepared, [one.model for one in load_models().values()]):
        assert scorer.model.order
    print(f"\nMaking {len(load_models())} models ready: {(time.perf_counter() - began) * 1000:.0f} ms.\n")
    print("Bits a character, 5th / 50th / 95th percentile of documents of the crawl, good and bad ones together:\n")
    print("| text | " + " | ".join(BROKEN) + " |\n|---|" + "---|" * len(BROKEN))
    table: dict[str, list[str]] = defaultdict(list)
    for name, found in texts.items():
        table[name] = [
            percentiles([change(text) for text in found[:300]], model_for(name)) for change in BROKEN.values()
        ]
        print(f"| {name} | " + " | ".join(table[name]) + " |", flush=True)
    if given.kenlm:
        print("\n## KenLM\n")
        print(against_kenlm(texts["English"]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
