"""Speed of the text kernels, in MB of UTF-8 per second of one core, language by language.

    python tests/bench/bench_text.py [--repeats 7] [--megabytes 10] > bench/results/text-kernels-DATE.md

Texts are the labelled crawl of the test data (CORPUSMILL_TEST_DATA). CPU time, best of the repeats,
since the machine may be shared. The last columns do the same work in plain Python: one regular
expression that finds the same words but for their finer points, and the built-in hash of each.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from pathlib import Path

import numba
import pyarrow as pa
import zstandard

import curation.text as text

REPO = Path(__file__).resolve().parents[2]
LANGUAGES = {"en": "English", "zh": "Chinese", "ja": "Japanese", "fr": "French", "ru": "Russian", "ko": "Korean"}
LANGUAGES |= {"th": "Thai", "hi": "Hindi", "ar": "Arabic", "code": "code"}
WORD = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]|[^\W_]+(?:['’_][^\W_]+)*")

KERNELS: Mapping[str, Callable[..., object]] = {
    "count_chars": text.count_chars,
    "class_counts": text.class_counts,
    "script_counts": text.script_counts,
    "line_spans": text.line_spans,
    "paragraph_spans": text.paragraph_spans,
    "line_hashes": text.line_hashes,
    "count_words": text.count_words,
    "word_spans": text.word_spans,
    "word_hashes": text.word_hashes,
    "folded": functools.partial(text.word_hashes, folded=True),
    "profile": text.profile,
}


def corpora(megabytes: float) -> dict[str, list[str]]:
    """Documents by language, each language cut to a size, and all of them in the order of the crawl."""
    folder = Path(os.environ.get("CORPUSMILL_TEST_DATA", REPO.parent / "shared" / "data")) / "2_text"

    def rows(name: str) -> list[dict[str, str]]:
        with zstandard.open(folder / f"{name}.jsonl.zst", "rt", encoding="utf-8") as file:
            return [json.loads(line) for line in file]

    languages = {row["id"]: row["lang"] for row in rows("gold")}
    found: dict[str, list[str]] = defaultdict(list)
    sizes: dict[str, int] = defaultdict(int)
    for row in (row for part in range(3) for row in rows(f"crawl-{part:02}")):
        for name, limit in ((LANGUAGES.get(languages[row["id"]]), megabytes), ("all, mixed", 2 * megabytes)):
            if name and sizes[name] < limit * 1e6:
                found[name].append(row["text"])
                sizes[name] += len(row["text"].encode())
    order = ["English", "Chinese", "all, mixed"]
    return {name: found[name] for name in [*order, *(name for name in LANGUAGES.values() if name not in order)]}


def seconds(work: Callable[[], object], repeats: int) -> float:
    """CPU seconds of the fastest run, after one that may compile."""
    work()
    best = float("inf")
    for _ in range(repeats):
        begin = time.process_time()
        work()
        best = min(best, time.process_time() - begin)
    return best


def measure(texts: list[str], repeats: int) -> tuple[float, dict[str, float]]:
    """Megabytes of the texts, and MB/s of each kernel and of plain Python."""
    data, offsets = text.buffers(pa.array(texts, pa.large_string()))
    size = float(offsets[-1] - offsets[0]) / 1e6
    speeds = {
        name: size / seconds(functools.partial(kernel, data, offsets), repeats) for name, kernel in KERNELS.items()
    }
    speeds["re"] = size / seconds(lambda: [[hash(word) for word in WORD.findall(one)] for one in texts], 1)
    return size, speeds


def compile_times() -> dict[str, float]:
    """Seconds that a new process needs to import the kernels, and to have all ready with a cold and a warm cache."""
    program = (
        "import time, numpy, pyarrow, numba; begin = time.perf_counter(); "
        "import curation.text; print(time.perf_counter() - begin)"
    )
    run = functools.partial(subprocess.run, capture_output=True, text=True, check=True, cwd=REPO)
    found = {"import": float(run([sys.executable, "-c", program]).stdout)}
    with tempfile.TemporaryDirectory() as folder:
        for state in ("cold", "warm"):
            said = run([sys.executable, "-m", "curation.text"], env={**os.environ, "NUMBA_CACHE_DIR": folder}).stdout
            found[state] = float(said.split(" in ")[1].split(" s")[0])
    return found


def hardware() -> str:
    """Number and model of the processors, and how wide their vectors are."""
    info = Path("/proc/cpuinfo")
    content = info.read_text() if info.exists() else ""
    model = re.search(r"model name\s*:\s*(.*)", content)
    vectors = next((name for name in ("avx512bw", "avx2") if name in content), "no avx2")
    return f"{os.cpu_count()} cores (shared with other work), {model[1] if model else 'unknown'}, {vectors}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--megabytes", type=float, default=10, help="most text of one language")
    options = parser.parse_args()
    print(f"# Text kernels, {datetime.now(timezone.utc):%Y-%m-%d}\n")
    print(f"{hardware()}; Python {sys.version.split()[0]}, numba {numba.__version__}.")
    print(
        "`python tests/bench/bench_text.py`: MB of UTF-8 per second of CPU time on one core, best of "
        f"{options.repeats}.\n"
    )
    print("| text | MB |", " | ".join(KERNELS), "| words by `re`, hashed | word_hashes / re |")
    print("|---|---|", "---|" * (len(KERNELS) + 2), sep="")
    for name, texts in corpora(options.megabytes).items():
        size, speeds = measure(texts, options.repeats)
        cells = [f"{speeds[kernel]:,.0f}" for kernel in KERNELS]
        print(
            f"| {name} | {size:.1f} |",
            " | ".join(cells),
            f"| {speeds['re']:.1f} | {speeds['word_hashes'] / speeds['re']:.0f} |",
            flush=True,
        )
    times = compile_times()
    print(
        f"\nimport of curation.text after numpy, pyarrow and numba: {times['import'] * 1e3:.0f} ms; "
        f"first call of every kernel: {times['cold']:.1f} s with a cold cache, {times['warm']:.1f} s with a warm one."
    )


if __name__ == "__main__":
    main()
