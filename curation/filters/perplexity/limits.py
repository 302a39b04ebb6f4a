"""Limits of each document: those of the config by language, and below them those that ship for the shipped models.

The shipped ones are bits per character at the outer percentiles of good text, a line for each language
(perplexity_limits.tsv, made by tools/make_perplexity_limits.py). They belong to the shipped n-gram models: under any
other model only what the config says holds.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curation.filters.labels import lookup_keys
from curation.filters.perplexity.config import OFF, LimitsByLanguage

__all__ = ["SHIPPED_LIMITS", "RowLimits", "ShippedLimit", "row_limits", "shipped_limits"]

SHIPPED_LIMITS = Path(__file__).with_name("perplexity_limits.tsv")

Doubles = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ShippedLimit:
    """Where good text of a language lies, in bits per character."""

    min_bits_per_character: float
    max_bits_per_character: float


@dataclass(frozen=True, slots=True)
class RowLimits:
    """The limits of n documents: -inf and inf where there is none."""

    max_perplexity: Doubles
    max_bits_per_character: Doubles
    min_bits_per_character: Doubles


@cache
def shipped_limits(path: Path = SHIPPED_LIMITS) -> Mapping[str, ShippedLimit]:
    """The table by label, language or script; "" for every other one."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader((line for line in file if not line.startswith("#")), delimiter="\t")
        return {
            "" if row["language"] == "default" else row["language"]: ShippedLimit(
                float(row["min_bits_per_character"]), float(row["max_bits_per_character"])
            )
            for row in rows
        }


def row_limits(config: LimitsByLanguage, labels: pa.Array, *, shipped: bool) -> RowLimits:
    """The limits of each document by its label.

    Args:
        labels: string[n], no nulls.
        shipped: whether the shipped models judge, so that their limits hold where the config says nothing.
    """
    encoded = labels.dictionary_encode()
    names: list[str] = encoded.dictionary.to_pylist()
    rows = encoded.indices.to_numpy(zero_copy_only=False)

    def of(name: str, none: float) -> Doubles:
        values = np.array([_limit(config, name, label, shipped, none) for label in names], np.float64)
        found: Doubles = values[rows] if names else np.zeros(0)
        return found

    return RowLimits(
        max_perplexity=of("max_perplexity", math.inf),
        max_bits_per_character=of("max_bits_per_character", math.inf),
        min_bits_per_character=of("min_bits_per_character", -math.inf),
    )


def _limit(config: LimitsByLanguage, name: str, label: str, shipped: bool, none: float) -> float:
    said = config.limit(name, label)
    if said is None:
        table = shipped_limits() if shipped else {}
        found = next((table[key] for key in lookup_keys(label) if key in table), None)
        return float(getattr(found, name, none))
    return none if said == OFF else said
