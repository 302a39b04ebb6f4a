"""The re-score loop, killed at any moment and begun again: each threshold once, and the entries of an undisturbed loop."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
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
import argparse, os, signal, sys
from curation.rescore_command import add_rescore
at, count = int(sys.argv.pop(1)), 0
root = os.path.join(os.path.dirname(sys.argv[2]), "root")
target = {"os.rename": 1, "os.link": 1, "os.mkdir": 0}
def step(event, args):
    # Before each file or folder that appears in the root: the process group dies before that of number `at`.
    global count
    if event in target and os.fsdecode(args[target[event]]).startswith(root):
        count += 1
        if count == at:
            os.killpg(0, signal.SIGKILL)
sys.addaudithook(step)
parser = argparse.ArgumentParser()
add_rescore(parser.add_subparsers())
arguments = parser.parse_args(sys.argv[1:])
code = arguments.function(arguments)
print(count)
sys.exit(code)
"""


def start(loop: Loop, kill_at: int = 0) -> int:
    """Run the loop until nothing is due, or until it is killed; returns how many files have appeared.

    Args:
        kill_at: before which of them it is killed; 0: never.
    """
    command = [sys.executable, "-c", COMMAND, str(kill_at), "rescore", str(loop.folder / "rescore.yaml")]
    found = subprocess.run(
        [*command, "--once", "--quiet"], cwd=REPO, capture_output=True, start_new_session=True, timeout=300, check=False
    )
    assert found.returncode == (-signal.SIGKILL if kill_at else 0), found.stderr.decode()[-3000:]
    return kill_at or int(found.stdout.split()[-1])


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
    files: dict[int, int] = {}
    train(whole, model, lambda n: files.update({n: start(whole)}))
    moments = random.Random(11)

    def disturbed(n: int) -> None:
        """All kills of a threshold together come before its last file, so each of them finds a loop at work."""
        for _ in range(KILLS // THRESHOLDS):
            start(killed, moments.randint(1, files[n] * THRESHOLDS // KILLS))
        start(killed)

    train(killed, model, disturbed)
    for loop in (whole, killed):
        thresholds = sorted((loop.root / "rescore" / "toy").glob("[0-9]*"))
        assert [int(path.name) for path in thresholds] == [EVERY * n for n in range(1, THRESHOLDS + 1)]
        done = [loop.done(EVERY * n) for n in range(1, THRESHOLDS + 1)]
        assert [(one["state"], one["version"]) for one in done] == [("published", n) for n in range(1, THRESHOLDS + 1)]
        assert list(damages(loop.root / "blacklist")) == []
        assert [path.name for path in (loop.root / "rescore").glob("*/*/_model/*")] == ["pinned.json"] * THRESHOLDS
    assert entries(killed) == entries(whole)
    assert all(len(one) == 4 for one in entries(whole))
