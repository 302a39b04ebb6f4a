"""Limits from good text: of all, and of those that differ."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

REPO = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def tool() -> Any:
    spec = importlib.util.spec_from_file_location("make_rule_limits", REPO / "tools" / "make_rule_limits.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def table(**values: list[float | None]) -> pa.Table:
    """Scores of `digits` by label."""
    labels = [label for label, some in values.items() for _ in some]
    return pa.table(
        {"language": labels, "digits": pa.array([v for some in values.values() for v in some], pa.float32())}
    )


def limits(tool: Any, good: pa.Table, floor: float) -> dict[str, float]:
    return {label: limit for label, limit, _, _ in tool.limits_of(good, "digits", floor)}


def test_no_limit_is_stricter_than_its_floor(tool: Any) -> None:
    """Where good text lies far below, the floor is the limit, and there is no other."""
    good = table(eng_Latn=[0.01] * 100, deu_Latn=[0.02] * 100)

    assert limits(tool, good, 0.3) == {"": 0.3}


def test_good_text_loosens_the_limit(tool: Any) -> None:
    """At most LOSS of good text lies beyond, every language weighing alike, whatever its size."""
    rng = np.random.default_rng(1)
    good = table(eng_Latn=list(rng.uniform(0, 0.2, 5000)), deu_Latn=[*[0.1] * 90, *[0.4] * 10])

    found = limits(tool, good, 0.3)

    assert found[""] == pytest.approx(0.4, abs=0.01)


def test_a_language_that_differs_gets_its_own(tool: Any) -> None:
    """One of forty languages is beyond in a tenth of its documents: too little for all, so it has a row, shrunk and rounded up."""
    others = {f"x{chr(97 + i // 26)}{chr(97 + i % 26)}_Latn": [0.05] * 100 for i in range(39)}
    good = table(**others, deu_Latn=[*[0.1] * 90, *[0.5] * 10])

    found = limits(tool, good, 0.3)

    assert set(found) == {"", "deu"}
    assert found[""] == 0.3
    assert 0.45 < found["deu"] < 0.53


def test_texts_without_the_measure_are_beyond_nothing(tool: Any) -> None:
    """Null counts as a document that no limit drops."""
    good = table(eng_Latn=[*[None] * 997, *[0.9] * 2], deu_Latn=[0.1] * 100)

    assert limits(tool, good, 0.3) == {"": 0.3}


@pytest.mark.parametrize(
    ("limit", "sign", "whole", "expected"),
    [
        (0.1234, 1, False, 0.13),
        (0.3, 1, False, 0.3),
        (-0.687, -1, False, 0.68),
        (-1.4, -1, True, 1.0),
        (0.0, 1, False, 0),
    ],
)
def test_rounding_is_away_from_good_text(tool: Any, limit: float, sign: int, whole: bool, expected: float) -> None:
    """Up for a maximum, down for a minimum; counts to whole numbers."""
    assert tool.rounded(limit, sign, whole) == expected
