"""The re-score loop, killed at any moment and begun again: each threshold once, and the entries of an undisturbed loop."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from curation.blacklist.files import open_files
from curation.blacklist.history import damages, latest_number, segment, versions
from tests.rescore_loops import EVERY, Loop, texts, toy_model

pytest.importorskip("torch", reason="torch is not installed: `make torch`")
pytest.importorskip("transformers", reason="transformers is not installed: `make setup`")

REPO = Path(__file__).resolve().parents[2]
THRESHOLDS, KILLS = 3, 12
COMMAND = """
import argparse, sys
from curation.rescore_command import add_rescore
parser = argparse.ArgumentParser()
add_rescore(parser.add_subparsers())
arguments = parser.parse_args(sys.argv[1:])
sys.exit(arguments.function(arguments))
"""


def start(loop: Loop) -> subprocess.Popen[bytes]:
    words = [sys.executable, "-c", COMMAND, "rescore", str(loop.folder / "rescore.yaml"), "--once", "--quiet"]
    return subprocess.Popen(words, cwd=REPO, stderr=subprocess.DEVNULL, start_new_session=True)


def files(loop: Loop) -> int:
    return sum(1 for _ in loop.root.rglob("*"))


def kill_somewhere(child: subprocess.Popen[bytes], loop: Loop, moments: random.Random) -> bool:
    """Kill it after a few more files have appeared; false if it ended before."""
    wanted = files(loop) + moments.randint(1, 12)
    while child.poll() is None and files(loop) < wanted:
        time.sleep(0.001)
    time.sleep(moments.uniform(0, 0.02))
    if child.poll() is not None:
        return False
    os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    return True


def train(loop: Loop, model: Path, work: Callable[[int], None]) -> None:
    """A training that passes thresholds, with new documents before each; `work` is the re-score meanwhile."""
    loop.training.mkdir(parents=True)
    loop.settings_file()
    attempt = loop.attempt()
    for n in range(1, THRESHOLDS + 1):
        loop.add_run(f"run-{n}", texts(80, n))
        attempt.append(n * EVERY + 5, n, f"c{n}", sha256=loop.checkpoint(f"c{n}", model))
        work(n)


def entries(loop: Loop) -> list[list[dict[str, Any]]]:
    """Of each version, in order of keys: all that does not tell of the clock or the folder."""
    opened = open_files(loop.root / "blacklist")
    found = []
    for version in versions(opened, 1, latest_number(opened)):
        table = segment(opened, version).read_all()
        table = table.drop_columns(["time", "source"]).sort_by("key")
        found.append(table.to_pylist())
    return found


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_a_loop_that_is_killed_at_random_moments_does_each_threshold_once(tmp_path: Path) -> None:
    """SIGKILL of the process group, twelve times; then one version a threshold, with the entries of the loop beside it."""
    model = toy_model(tmp_path)
    whole, killed = Loop(tmp_path / "whole"), Loop(tmp_path / "killed")
    train(whole, model, lambda n: _ended(start(whole)))
    moments = random.Random(11)
    kills = 0

    def disturbed(n: int) -> None:
        nonlocal kills
        while kills < KILLS * n // THRESHOLDS:
            child = start(killed)
            if not kill_somewhere(child, killed, moments):
                assert child.returncode == 0
                break
            kills += 1
        _ended(start(killed))

    train(killed, model, disturbed)
    assert kills >= KILLS // 2, "most of the loops ended before they could be killed"
    for loop in (whole, killed):
        thresholds = sorted((loop.root / "rescore" / "toy").glob("[0-9]*"))
        assert [int(path.name) for path in thresholds] == [EVERY * n for n in range(1, THRESHOLDS + 1)]
        done = [loop.done(EVERY * n) for n in range(1, THRESHOLDS + 1)]
        assert [(one["state"], one["version"]) for one in done] == [("published", n) for n in range(1, THRESHOLDS + 1)]
        assert list(damages(loop.root / "blacklist")) == []
        assert [path.name for path in (loop.root / "rescore").glob("*/*/_model/*")] == ["pinned.json"] * THRESHOLDS
    assert entries(killed) == entries(whole)
    assert all(len(one) == 4 for one in entries(whole))


def _ended(child: subprocess.Popen[bytes]) -> None:
    assert child.wait(300) == 0
