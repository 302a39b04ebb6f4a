"""The sheet as plain data: everything that a program may want, and nothing that JSON cannot hold."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from curation.impact.config import ImpactConfig
from curation.impact.counting.bounds import broken_bounds
from curation.impact.counting.figure_types import Corpus
from curation.impact.counting.figures import figures
from curation.impact.sheet import plain, sheet_json
from tests.impact_oracle import compared, documents_of


@dataclass(frozen=True)
class Shown:
    text: str
    scores: dict[str, float]


def test_a_sheet_is_json() -> None:
    """All of it, read back the same; what is infinite or undefined is null."""
    documents = documents_of(120, 1)
    for one in documents[:40]:
        one |= {"before": 0, "after": 5}
    comparison = compared(documents, population=1000)
    found = figures(comparison, Corpus(2e12, "tokens"))
    broken = broken_bounds(found, ImpactConfig(max_kept_change=0.01))
    sheet = sheet_json(comparison, found, broken, [Shown("a < b", {"x": float("nan")})], loosened=("one",))
    assert json.loads(json.dumps(sheet, allow_nan=False)) == sheet
    assert sheet["format"] == 1
    assert sheet["within_bounds"] is False
    assert sheet["broken"][0]["key"] == "impact.max_kept_change"
    assert sheet["figures"]["totals"]["documents"]["leaves"]["count"] == found.totals.documents.leaves.count
    assert sheet["documents"] == [{"text": "a < b", "scores": {"x": None}}]
    assert sheet["loosened"] == ["one"]
    assert [step["name"] for step in sheet["base"]["steps"]] == ["length", "rules", "safety"]
    assert sheet["sample"]["population"] == 1000


def test_no_place_on_this_machine_is_in_it() -> None:
    """A sheet is passed on: folders are names at most."""
    comparison = compared(documents_of(20, 2))
    text = json.dumps(sheet_json(comparison, figures(comparison), []))
    assert "no-such-run" not in text
    assert '"folder"' not in text
    assert plain(Path("/somewhere/else/x.json")) == "x.json"


def test_within_bounds_is_said() -> None:
    """So that a program need not count what is broken."""
    comparison = compared(documents_of(20, 3))
    assert sheet_json(comparison, figures(comparison), [])["within_bounds"] is True


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.float64(0.5), 0.5),
        (np.int64(3), 3),
        (np.bool_(True), True),
        (float("inf"), None),
        ((1, [2, {"a": (3,)}]), [1, [2, {"a": [3]}]]),
        ({2, 1}, [1, 2]),
        ({1: None}, {"1": None}),
        (True, True),
    ],
)
def test_values_are_made_plain(value: object, expected: object) -> None:
    """Numbers of NumPy, tuples, sets, keys that are no strings."""
    assert plain(value) == expected
    assert type(plain(value)) is type(expected)


def test_what_cannot_be_held_is_refused() -> None:
    """Instead of writing how Python prints it."""
    with pytest.raises(TypeError, match="a sheet cannot hold bytes"):
        plain(b"x")
