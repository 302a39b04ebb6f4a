"""Speed and memory of ingest over a corpus of JSON lines, in MB of plain JSON lines per second of one core.

    python tests/bench/bench_ingest.py CORPUS [--repeats 3] > bench/results/ingest-DATE.md

CORPUS is a folder of plain .jsonl files (about 200 MB; bench/make_corpus.py of the shared test data writes one).
Each figure is the best of the repeats, CPU time, each in a process of its own; peak memory is that of the process,
and of the process before it read anything in brackets. `parse only` is the floor: lines split and parsed by orjson.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path

import orjson
import zstandard

from curation.ingest.config import IngestConfig
from curation.ingest.jsonl import read_jsonl
from curation.ingest.part import ingest_part
from curation.ingest.plan import Plan, plan_inputs
from curation.ingest.record import SliceReport
from curation.run import peak_memory

REPO = Path(__file__).resolve().parents[2]


def parse_only(plan: Plan, config: IngestConfig, out: Path) -> None:
    """What no reader can go below: split and parse."""
    for one in plan.inputs:
        with Path(one.source).open("rb") as stream:
            for line in stream:
                orjson.loads(line)


def read_only(plan: Plan, config: IngestConfig, out: Path) -> None:
    """Documents made and dropped."""
    for part in plan.parts:
        for one in part.slices:
            for _ in read_jsonl(one, config, SliceReport()):
                pass


def whole(plan: Plan, config: IngestConfig, out: Path) -> None:
    """Everything: read, identities, shards, hashes, fsync."""
    for part in plan.parts:
        ingest_part(part, shards=out / "shards", quarantine=out / "quarantine", config=config)


def plan_only(plan: Plan, config: IngestConfig, out: Path) -> None:
    """The scan that planning needs for files that are cut."""
    plan_inputs([one.source for one in plan.inputs], config)


WORK: dict[str, Callable[[Plan, IngestConfig, Path], None]] = {
    "plan": plan_only,
    "parse only": parse_only,
    "read_jsonl": read_only,
    "ingest_part": whole,
}


def measure(name: str, inputs: Path) -> None:
    """Do one kind of work in this process and print what it took."""
    config = IngestConfig()
    plan = plan_inputs([str(inputs)], config)
    with tempfile.TemporaryDirectory(dir=inputs.parent) as out:
        with peak_memory() as before:
            pass
        start = time.process_time()
        with peak_memory() as used:
            WORK[name](plan, config, Path(out))
        seconds = time.process_time() - start
    print(json.dumps({"seconds": seconds, "peak": used["peak_rss_mb"], "before": before["peak_rss_mb"]}))


def make_variants(corpus: Path, folder: Path) -> dict[str, Path]:
    """The corpus plain, compressed, with ASCII escapes, and a tenth of it."""
    variants = {name: folder / name for name in ("plain", "a tenth", "gzip", "zstd", "ascii escapes")}
    for target in variants.values():
        target.mkdir()
    for number, path in enumerate(sorted(corpus.glob("*.jsonl"))):
        content = path.read_bytes()
        (variants["plain"] / path.name).write_bytes(content)
        (variants["gzip"] / f"{path.name}.gz").write_bytes(gzip.compress(content, 6))
        (variants["zstd"] / f"{path.name}.zst").write_bytes(zstandard.compress(content))
        escaped = (json.dumps(json.loads(line)).encode() for line in content.splitlines())
        (variants["ascii escapes"] / path.name).write_bytes(b"\n".join(escaped) + b"\n")
        if number == 0:
            tenth = content[: max(len(content) // 4, 1)]
            (variants["a tenth"] / path.name).write_bytes(tenth[: tenth.rfind(b"\n") + 1])
    return variants


def plain_bytes(variant: Path, plain: Path) -> int:
    """Bytes of a variant before compression."""
    packed = any(path.suffix in (".gz", ".zst") for path in variant.iterdir())
    return sum(path.stat().st_size for path in (plain if packed else variant).iterdir())


def main() -> None:
    """Print a table of all work over all variants."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--measure", choices=WORK, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        measure(arguments.measure, arguments.corpus)
        return
    folder = Path(tempfile.mkdtemp(prefix="bench-ingest-"))
    try:
        variants = make_variants(arguments.corpus, folder)
        n_bytes = sum(path.stat().st_size for path in variants["plain"].iterdir())
        print(f"# Ingest, {datetime.now(timezone.utc):%Y-%m-%d}\n")
        print(f"{n_bytes / 1e6:.0f} MB of JSON lines; {_machine()}; best of {arguments.repeats}, CPU time.\n")
        print("| input | work | MB/s a core | peak MB (before) |\n| --- | --- | --- | --- |")
        for variant, inputs in variants.items():
            for name in WORK:
                if variant in ("plain", "ascii escapes") or name in ("read_jsonl", "ingest_part"):
                    print(_row(variant, name, inputs, variants["plain"], arguments.repeats), flush=True)
    finally:
        shutil.rmtree(folder)


def _row(variant: str, name: str, inputs: Path, plain: Path, repeats: int) -> str:
    command = [sys.executable, __file__, str(inputs), "--measure", name]
    environment = {**os.environ, "PYTHONPATH": str(REPO)}
    runs = [
        json.loads(subprocess.run(command, env=environment, capture_output=True, check=True).stdout)
        for _ in range(repeats)
    ]
    best = min(runs, key=lambda run: run["seconds"])
    speed = plain_bytes(inputs, plain) / best["seconds"] / 1e6
    return f"| {variant} | {name} | {speed:,.0f} | {best['peak']:.0f} ({best['before']:.0f}) |"


def _machine() -> str:
    model = "unknown processor"
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        lines = cpuinfo.read_text(encoding="ascii", errors="replace").splitlines()
        model = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), model)
    return f"{os.cpu_count()} cores, {model}, Python {sys.version.split()[0]}"


if __name__ == "__main__":
    main()
