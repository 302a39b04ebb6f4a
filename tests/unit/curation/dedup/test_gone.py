"""A run that is done needs no earlier run."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from curation.errors import ConfigError
from curation.export import export_kept
from curation.pipeline import Pipeline
from tests.near_runs import begun, near_run


def test_a_run_that_is_done_needs_no_earlier_run(tmp_path: Path) -> None:
    """When what it was compared with is gone, it can be opened and exported; one that is not done cannot go on."""
    first = near_run(tmp_path, "first", [["one two three four five six"]])
    second = near_run(
        tmp_path, "second", [["seven eight nine", "one two three four five six"]], against=[first.run.folder]
    )
    third = begun(tmp_path, "third", [["ten"]], against=[first.run.folder])
    shutil.rmtree(first.run.folder)

    assert export_kept(Pipeline.open(second.run.folder), tmp_path / "kept.jsonl") == 1
    with pytest.raises(ConfigError, match=r"nothing at .*first"):
        Pipeline.open(third.run.folder).passes("dedup")
