"""A change-impact sheet as plain data: what `sheet.json` holds, for programs; `sheet.html` and `sheet.md` tell the same."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Any

from curation.impact.counting.bounds import BrokenBound
from curation.impact.counting.figure_types import Figures
from curation.impact.facts import Comparison, SideFacts, StepFacts

__all__ = ["FORMAT", "plain", "sheet_json"]

FORMAT = 1
"""Raised when a key goes or changes its meaning; new keys do not raise it."""


def sheet_json(
    comparison: Comparison, figures: Figures, broken: Sequence[BrokenBound], documents: Any = (), **more: Any
) -> dict[str, Any]:
    """The whole sheet as plain data that JSON can hold: numbers that are not finite are null.

    Args:
        documents: those that are shown; dataclasses, mappings or lists of them.
        more: further entries, such as `changes`.
    """
    return {
        "format": FORMAT,
        "within_bounds": not broken,
        "broken": plain(broken),
        "base": _side(comparison.base),
        "new": _side(comparison.new),
        "sample": plain(comparison.sample),
        "tokenizer": comparison.tokenizer,
        "notes": list(comparison.notes),
        "figures": plain(figures),
        "documents": plain(documents),
        **{key: plain(value) for key, value in more.items()},
    }


def _side(side: SideFacts) -> dict[str, Any]:
    return {
        "label": side.label,
        "commit": side.commit,
        "run": side.run_folder.name,
        "config": side.config_text,
        "steps": [_step(step) for step in side.steps],
    }


def _step(step: StepFacts) -> dict[str, Any]:
    """A step without its place on this machine."""
    return {
        field.name: plain(getattr(step, field.name)) for field in dataclasses.fields(step) if field.name != "folder"
    }


def plain(value: Any) -> Any:
    """Dataclasses, mappings and sequences as dictionaries and lists; what is not finite as null; paths as names.

    Raises:
        TypeError: something that JSON cannot hold.
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        found = [plain(inner) for inner in value]
        return sorted(found, key=str) if isinstance(value, (set, frozenset)) else found
    if isinstance(value, Enum):
        return plain(value.value)
    if isinstance(value, Path):
        return value.name
    if isinstance(value, bool) or value is None or isinstance(value, (str, int)):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None  # NumPy's is one of Python's
    if hasattr(value, "item") and getattr(value, "shape", None) == ():
        return plain(value.item())
    raise TypeError(f"a sheet cannot hold {type(value).__name__}")
