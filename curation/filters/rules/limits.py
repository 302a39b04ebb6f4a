"""Limits by rule and label, read from tables; and for each document the limit that applies to it.

A limit stands under a key: a label (`zho_Hant`), a language (`zho`), a script (`und_Hani`) or, for all others, the
empty one. Of the keys that a label asks for (`labels.lookup_keys`) the first that has a limit decides; None there
means that the rule is off. What a config says stands in a layer above what its preset says, and is asked first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curation.filters.labels import lookup_keys

__all__ = [
    "DEFAULT",
    "FOLDER",
    "OFF",
    "ByKey",
    "Layers",
    "Limits",
    "limit_for",
    "limits_by_row",
    "read_limits",
    "read_rows",
    "read_wide",
]

ByKey: TypeAlias = Mapping[str, float | None]
Limits: TypeAlias = Mapping[str, ByKey]
"""By rule, then by key. A rule that is absent is off."""
Layers: TypeAlias = Mapping[str, Sequence[ByKey]]
"""By rule: limits by key, the nearest layer first."""

DEFAULT = ""
"""The key for every label that has no nearer one."""
OFF = "off"

FOLDER = Path(__file__).resolve().parent


def read_rows(name: str) -> list[dict[str, str]]:
    """Rows of a table beside this module, by the names in its first line; lines that begin with # are remarks."""
    lines = [line for line in (FOLDER / name).read_text("utf-8").splitlines() if not line.startswith("#")]
    head, *rows = [line.split("\t") for line in lines]
    return [dict(zip(head, row, strict=True)) for row in rows]


@cache
def read_limits(name: str) -> Limits:
    """A table with a row for each limit: columns `rule`, `label`, `limit` and any others."""
    found: dict[str, dict[str, float | None]] = {}
    for row in read_rows(name):
        found.setdefault(row["rule"], {})[row["label"]] = None if row["limit"] == OFF else float(row["limit"])
    return found


@cache
def read_wide(name: str) -> Limits:
    """A table with a row for each label and a column for each rule."""
    found: dict[str, dict[str, float | None]] = {}
    for row in read_rows(name):
        for rule, limit in row.items():
            if rule != "label":
                found.setdefault(rule, {})[row["label"]] = float(limit)
    return found


def limit_for(layers: Sequence[ByKey], label: str) -> float | None:
    """The limit of one rule that applies to a label; None where it is off."""
    return next((by_key[key] for by_key in layers for key in lookup_keys(label) if key in by_key), None)


def limits_by_row(limits: Layers, labels: pa.Array) -> dict[str, npt.NDArray[np.float32]]:
    """For each rule the limit of each document, from the labels of n documents: float32[n], nan where it is off.

    Rules that apply to none of them are left out.
    """
    encoded = labels.dictionary_encode()
    names = encoded.dictionary.to_pylist()
    codes = encoded.indices.to_numpy(zero_copy_only=False)
    found = {}
    for rule, layers in limits.items():
        chosen = [limit_for(layers, name) for name in names]
        if any(limit is not None for limit in chosen):
            found[rule] = np.array([np.nan if limit is None else limit for limit in chosen], np.float32)[codes]
    return found
