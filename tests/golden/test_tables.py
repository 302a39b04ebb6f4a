"""Tables of limits hold thousands of numbers, more than cases can stand at: each is pinned, with what it is and where it is from.

A table that was changed on purpose gets its new digest in `tables.json`, and beside it, in the same change, why.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]
PINS = json.loads((REPO / "tests/golden/tables.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("table", PINS)
def test_a_table_changes_for_a_reason_only(table: str) -> None:
    """No number in it is other than when somebody last looked at what it does."""
    found = hashlib.sha256((REPO / table).read_bytes()).hexdigest()

    assert len(PINS[table]["why"]) >= 20
    assert found == PINS[table]["sha256"], (
        f"{table} is not the one that was looked at ({PINS[table]['why']}). If that is meant, look at the sheet of `make impact`, "
        f"then put its new digest {found} into tests/golden/tables.json, and why it changed beside it."
    )


def test_every_table_of_limits_is_pinned() -> None:
    """Tables of limits, by their names, that stand beside a filter."""
    tables = {str(path.relative_to(REPO)) for path in (REPO / "curation/filters").rglob("*limits.tsv")}

    assert tables <= set(PINS)
