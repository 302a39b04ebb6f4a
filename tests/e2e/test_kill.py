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
    settings = ["ingest.slice_mb=1", "ingest.shard_mb=1", "safety_model.max_windows=1"]
    options = [*(word for one in settings for word in ("--set", one)), "--workers", "2", "--run", "killed"]
    return [sys.executable, "-m", "curation.cli", "run", "demo", "--input", str(inputs), "--root", str(root), *options]


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


def kill_somewhere(child: subprocess.Popen[bytes], folder: Path, rng: random.Random) -> bool:
    """Kill the process group after a few more files have appeared, or early in its start; False if it ended before."""
    wanted = sum(1 for _ in folder.rglob("*")) + rng.randint(1, 6)
    early = time.monotonic() + (rng.uniform(0, 2) if rng.random() < 0.2 else 60)
    while child.poll() is None and time.monotonic() < early and sum(1 for _ in folder.rglob("*")) < wanted:
        time.sleep(0.002)
    time.sleep(rng.uniform(0, 0.05))
    if child.poll() is not None:
        return False
    os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    return True


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_run_killed_at_random_moments_ends_byte_identical_and_does_nothing_twice(tmp_path: Path) -> None:
    """SIGKILL of the whole process group, 20 times; whenever a run ends after all, it equals an undisturbed one."""
    inputs = tmp_path / "in"
    inputs.mkdir()
    for number in range(8):
        write_corpus(inputs / f"{number}.jsonl", 700, seed=number)
    subprocess.run(command(inputs, tmp_path / "whole"), check=True, capture_output=True)
    expected = results(tmp_path / "whole")
    rng = random.Random(5)
    kills, roots = 0, 0
    while kills < KILLS:
        root = tmp_path / f"root{roots}"
        roots += 1
        ended = False
        while not ended:
            before = done_items(root)
            if kills == KILLS:
                subprocess.run(command(inputs, root), check=True, capture_output=True)
                ended = True
            else:
                child = subprocess.Popen(
                    command(inputs, root), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
                )
                ended = not kill_somewhere(child, root, rng)
                kills += not ended
                assert not ended or child.returncode == 0
            after = done_items(root)
            # Work files go when their step is closed; a marker that stands must be the one that stood before.
            assert {p: after[p] for p in before if p in after} == {p: t for p, t in before.items() if p in after}
        assert results(root) == expected
        assert list(root.rglob("*.tmp")) == [], "temporary files are left behind"
