"""A run that is killed at any moment goes on where it stopped, and ends byte-identical."""

from __future__ import annotations

import hashlib
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.e2e.conftest import write_corpus

KILLS = 20


def command(inputs: Path, root: Path) -> list[str]:
    settings = ["--set", "ingest.slice_mb=1", "--set", "ingest.shard_mb=1", "--workers", "2", "--run", "killed"]
    return [sys.executable, "-m", "curation.cli", "run", "demo", "--input", str(inputs), "--root", str(root), *settings]


def results(root: Path) -> dict[str, str]:
    """Digest of every file that the run's result consists of: all but markers, logs and the report, which hold times."""
    folder = root / "runs" / "killed"
    files = [*folder.rglob("*.arrow"), *folder.rglob("*.parquet"), *folder.glob("quarantine/*"), folder / "config.yaml"]
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def done_items(root: Path) -> dict[Path, int]:
    """Markers of finished items with the time they were written."""
    found = {}
    for path in (root / "runs" / "killed").rglob("_items/*.json"):
        found[path] = path.stat().st_mtime_ns
    return found


@pytest.mark.slow
def test_a_run_killed_at_random_moments_ends_byte_identical_and_does_nothing_twice(tmp_path: Path) -> None:
    """SIGKILL of the whole process group, 20 times, then the same command to its end."""
    inputs = tmp_path / "in"
    inputs.mkdir()
    for number in range(6):
        write_corpus(inputs / f"{number}.jsonl", 1500, seed=number)
    started = time.perf_counter()
    subprocess.run(command(inputs, tmp_path / "whole"), check=True, capture_output=True)
    seconds = time.perf_counter() - started
    rng = random.Random(5)
    root = tmp_path / "root"
    killed = 0
    for _ in range(KILLS):
        before = done_items(root)
        child = subprocess.Popen(
            command(inputs, root), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        time.sleep(rng.uniform(0.3, 1.0) * seconds)
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
            killed += 1
        child.wait()
        after = done_items(root)
        # Work files go when their step is closed; what still stands must be what stood before.
        assert {path: after[path] for path in before if path in after} == {
            p: t for p, t in before.items() if p in after
        }
    subprocess.run(command(inputs, root), check=True, capture_output=True)
    assert killed >= KILLS // 2, "the run is too short to be killed"
    assert results(root) == results(tmp_path / "whole")
    left = list((root / "runs" / "killed").rglob("*.tmp"))
    assert left == [], "temporary files are left behind"
