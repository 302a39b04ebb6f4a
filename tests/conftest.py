"""Shared fixtures: where the real test data lies."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parent.parent
# An exception that nobody foresaw shows its traceback in tests, not the one message that a user gets.
os.environ.setdefault("CORPUSMILL_DEBUG", "1")


@pytest.fixture(scope="session")
def test_data() -> Path:
    """Folder of real inputs with gold labels; tests that need it are skipped where it is absent."""
    folder = Path(os.environ.get("CORPUSMILL_TEST_DATA", REPO.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"real test data not found at {folder}: set CORPUSMILL_TEST_DATA to its folder")
    return folder
