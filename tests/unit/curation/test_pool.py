"""The pool: items in any order on any number of workers, and a dead worker is named."""

from __future__ import annotations

from pathlib import Path

import pytest

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
        pytest.raises(RunError, match=r"died in pass tests\.kill while parts .* its memory"),
    ):
        pool._item = _die
        list(pool.run(work))


def _die(folder: str, pass_name: str, item: int) -> dict[str, object]:
    import os
    import signal

    os.kill(os.getpid(), signal.SIGKILL)
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
