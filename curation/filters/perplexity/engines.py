"""What judges texts for the filter `perplexity`, behind one contract: an engine gives sums, never verdicts.

An engine knows no threshold and no document but the one it reads: what it says of a text depends on that text and its
label alone, whatever stands beside it in the batch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = ["Engine", "Judged"]

Doubles = npt.NDArray[np.float64]
Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Judged:
    """What a model reads in each of n texts. A row with 0 tokens could not be judged.

    Perplexity is exp(nats / tokens); bits per character are nats / ln 2 / characters; bits per byte likewise.
    """

    model: npt.NDArray[np.object_]
    """object[n] of str or None: which model judged; None where none fits the label."""
    nats: Doubles
    """float64[n]: sum of -ln p over the scored tokens. May be inf or nan where a model fails: the filter has a reason for it."""
    tokens: Int64s
    """int64[n]: scored tokens. Each token is scored at most once."""
    characters: Int64s
    """int64[n]: characters that the scored tokens spell, as the model reads them (after its normalisation)."""
    bytes: Int64s
    """int64[n]: bytes of UTF-8, of the text as it is given, that the scored tokens stand for; at most the text's."""

    def __post_init__(self) -> None:
        n = len(self.model)
        sizes = {name: len(getattr(self, name)) for name in ("nats", "tokens", "characters", "bytes")}
        assert set(sizes.values()) == {n}, f"{n} models, but {sizes}"


class Engine(Protocol):
    """A family of models that judges texts."""

    def identity(self) -> Mapping[str, Any]:
        """Plain data that decides its numbers: checksums of models, window, stride, BOS rule, normalisation, dtype."""
        ...

    def judge(self, texts: pa.LargeStringArray, labels: pa.StringArray) -> Judged:
        """Judge n texts (no nulls; a slice may be given) under n labels (`eng_Latn`, `und_Hani`, `und`; no nulls)."""
        ...
