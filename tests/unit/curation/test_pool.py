"""The pool: items in any order on any number of workers, and a dead worker is named."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

import curation.pool
from curation.config import parse_config
from curation.errors import RunError
from curation.launch import drive, start_run
from curation.pipeline import Pass
from curation.pool import Pool
from tests.e2e.conftest import write_corpus

CONFIG = "name: t\ningest: {slice_mb: 1, shard_mb: 1}\nsteps: [exact, length]\n"


def test_a_killed_worker_is_an_error_that_names_the_pass_and_the_items(tmp_path: Path) -> None:
    """What the system's memory killer does shows as one message, not as a broken pipe."""
    write_corpus(tmp_path / "a.jsonl", 50)
    pipeline = start_run(parse_config(CONFIG), [str(tmp_path / "a.jsonl")], tmp_path / "root")
    work = Pass("ingest", "tests.kill", 4, "part")
    with (
        Pool(pipeline.run.folder, 2) as pool,
        pytest.raises(RunError, match=r"died in pass tests\.kill while parts .* fewer --workers"),
    ):
        pool._item = _die
        list(pool.run(work))


def _die(folder: str, pass_name: str, item: int) -> dict[str, object]:
    import os
    import signal

    os.kill(os.getpid(), signal.SIGKILL)
    return {}


def test_after_an_error_no_worker_is_left_that_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Items that are begun are waited for, within bounds, and then their workers are gone; the error is the item's own."""
    for patience, finished in ((60.0, True), (0.1, False)):
        folder = tmp_path / str(patience)
        folder.mkdir()
        monkeypatch.setattr(curation.pool, "PATIENCE_S", patience)
        with pytest.raises(ValueError, match="item 0"), Pool(folder, 2) as pool:
            pool._item = _fail_or_write
            list(pool.run(Pass("ingest", "tests.fail", 40, "part")))
        assert pool._executor is not None
        assert (folder / "begun").exists()
        assert (folder / "written").exists() is finished
        before = sorted(folder.iterdir())
        time.sleep(1.5)
        assert sorted(folder.iterdir()) == before


def _fail_or_write(folder: str, pass_name: str, item: int) -> dict[str, object]:
    begun = Path(folder) / "begun"
    if item == 0:
        until = time.monotonic() + 30
        while not begun.exists() and time.monotonic() < until:
            time.sleep(0.01)
        raise ValueError("item 0")
    begun.touch()
    time.sleep(1)
    (Path(folder) / ("written" if item == 1 else f"written-{item}")).touch()
    return {}


def test_the_result_does_not_depend_on_workers(tmp_path: Path) -> None:
    """One worker or three: the same verdict files, byte for byte."""
    for number in range(4):
        write_corpus(tmp_path / f"{number}.jsonl", 800, seed=number)
    bytes_of = {}
    for workers in (1, 3):
        root = tmp_path / f"root{workers}"
        pipeline = start_run(parse_config(CONFIG), [str(tmp_path / "*.jsonl")], root, run_id="same")
        drive(pipeline, workers=workers)
        bytes_of[workers] = {p.relative_to(root): p.read_bytes() for p in root.rglob("*.arrow")}
    assert bytes_of[1] == bytes_of[3]
    assert len(bytes_of[1]) >= 12


def test_workers_end_with_the_process_that_started_them(tmp_path: Path) -> None:
    """SIGKILL of the main process alone: neither a worker nor the fork server is left a few seconds later."""
    for number in range(3):
        write_corpus(tmp_path / f"{number}.jsonl", 2000, seed=number)
    arguments = [
        "run",
        "demo",
        "--input",
        str(tmp_path / "*.jsonl"),
        "--root",
        str(tmp_path / "root"),
        "--workers",
        "2",
    ]
    main = subprocess.Popen(
        [sys.executable, "-m", "curation.cli", *arguments, "--set", "ingest.slice_mb=1"], stderr=subprocess.DEVNULL
    )
    children: list[psutil.Process] = []
    while len(children) < 4 and main.poll() is None:
        children = psutil.Process(main.pid).children(recursive=True)
        time.sleep(0.01)
    main.kill()
    main.wait()
    assert len(children) >= 4, "the run ended before it had workers"
    _, alive = psutil.wait_procs(children, timeout=15)
    assert alive == []
