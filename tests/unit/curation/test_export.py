"""Export: the kept documents of a run that is done, and of no other."""

from __future__ import annotations

from pathlib import Path

import pytest

from curation.config import parse_config
from curation.errors import RunError
from curation.export import export_kept
from curation.launch import drive, start_run
from curation.pipeline import Pipeline
from tests.e2e.conftest import write_corpus

CONFIG = "name: t\nsteps: [exact, length]\n"


def started(folder: Path) -> Pipeline:
    write_corpus(folder / "a.jsonl", 50)
    return start_run(parse_config(CONFIG), [str(folder / "a.jsonl")], folder / "root")


def test_a_run_that_is_not_done_is_refused(tmp_path: Path) -> None:
    """Before ingest, and when the last step has files but no marker: nothing is written, the step is named."""
    pipeline = started(tmp_path)
    output = tmp_path / "kept.jsonl"
    with pytest.raises(RunError, match="is not done: ingest"):
        export_kept(pipeline, output)
    drive(pipeline, workers=1)
    count = export_kept(pipeline, output)
    assert len(output.read_bytes().splitlines()) == count > 0
    output.unlink()
    (pipeline.placed[-1].folder / "_done.json").unlink()
    for name in ("kept.jsonl", "kept.parquet"):
        with pytest.raises(RunError, match="is not done: length"):
            export_kept(Pipeline.open(pipeline.run.folder), tmp_path / name)
        assert not (tmp_path / name).exists()
