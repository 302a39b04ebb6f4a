"""What the tests of the re-score share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rescore_loops import Loop, toy_model


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A toy checkpoint in transformers' format."""
    return toy_model(tmp_path_factory.mktemp("lm"))


@pytest.fixture
def loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Loop:
    """An empty world, without waiting for disks."""
    monkeypatch.setattr("os.fsync", lambda descriptor: None)
    (tmp_path / "training").mkdir()
    return Loop(tmp_path)
