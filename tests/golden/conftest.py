"""What golden tests share: the bug cases beside the test data."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def bugcases(test_data: Path) -> Path:
    """Folder of the cases, beside the test data."""
    folder = test_data.parent / "bugcases"
    if not folder.is_dir():
        pytest.skip(f"no bug cases at {folder}: set CORPUSMILL_TEST_DATA to the folder beside them")
    return folder
