"""Measures of texts as plain numbers, None where undefined, for tests."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType

import numpy as np
import pyarrow as pa

from curation.filters.rules import line_shapes, repeated_lines, repetition, signs, words
from curation.filters.rules.parts import parts_of

MODULES = (words, signs, line_shapes, repeated_lines, repetition)
"""Those that tests/rules_oracle.py reads slowly."""


def measures(texts: Sequence[str], modules: Sequence[ModuleType] = MODULES) -> list[dict[str, float | None]]:
    """All measures of each text."""
    return measures_of_array(pa.array(texts, pa.large_string()), modules)


def measures_of_array(texts: pa.Array, modules: Sequence[ModuleType] = MODULES) -> list[dict[str, float | None]]:
    """All measures of each text of an Arrow array."""
    parts = parts_of(texts)
    columns = {name: values for module in modules for name, values in module.measure(parts).items()}
    hidden = {name: np.ma.getmaskarray(values) for name, values in columns.items()}
    return [
        {name: None if hidden[name][i] else float(np.ma.getdata(values)[i]) for name, values in columns.items()}
        for i in range(len(texts))
    ]
