"""Classes of documents by length: the few that a reader can keep in mind."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = ["LENGTHS", "length_classes"]

_BORDERS = (200, 1_000, 5_000, 20_000)
"""Characters at which a new class begins."""
LENGTHS = ("< 200", "200 to 1,000", "1,000 to 5,000", "5,000 to 20,000", "20,000 and more")
"""Names, short to long; a class holds its lower border, not its upper."""


def length_classes(characters: npt.NDArray[np.int64]) -> pa.Array:
    """The class of each length: string[n]."""
    return pa.array(np.array(LENGTHS, object)[np.searchsorted(_BORDERS, characters, side="right")], pa.string())
