"""The files of golden cases, `cases/<step>.jsonl`: reading them, and telling whether a score is as a person expects it.

What a line holds is said in `test_golden`, which holds the steps to them; the mutation check asks them which faults they notice.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

__all__ = ["CASES", "NEAR", "differs", "load"]

CASES = Path(__file__).parent / "cases"
NEAR = 0.03
"""Shares may differ by so much from those that a person counted."""


def load(step: str, folder: Path = CASES) -> list[dict[str, Any]]:
    """The cases of a step; none where it has no file."""
    path = folder / f"{step}.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def differs(found: Any, expected: Any) -> bool:
    """Whether a score is not as expected: one of a list of values; shares by name, nearly; runs of lines exactly."""
    if isinstance(found, list):
        rows = [list(row.values()) for row in found]
        if isinstance(expected, dict):
            shares = dict(rows)
            return shares.keys() != expected.keys() or any(abs(shares[k] - expected[k]) > NEAR for k in shares)
        return bool(rows != expected)
    return found not in (expected if isinstance(expected, list) else [expected])
