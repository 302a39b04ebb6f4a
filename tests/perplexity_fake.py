"""A stand-in for the models of the filter perplexity: what it says of a text can be worked out by head.

A letter costs 1 bit; `?` costs 8, `~` has no probability at all (inf), `#` breaks the model (nan); blanks are not read. It
knows English, Chinese and every language in Cyrillic.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from curation.filters.perplexity.engines import Judged

COSTS = {"?": 8.0, "~": np.inf, "#": np.nan}
NO_BITS = 0.0


def model_of(label: str) -> str | None:
    """The model that a label gets."""
    language, _, script = label.partition("_")
    return language if language in ("eng", "zho") else "mul" if script == "Cyrl" else None


@dataclass
class FakeEngine:
    """Judges as the module says; `scale` multiplies what it finds, and `read` counts what it was given."""

    scale: float = 1.0
    tokens_per_letter: int = 1
    read: list[str] = field(default_factory=list)

    def identity(self) -> Mapping[str, str]:
        return {"fake": f"{self.scale}"}

    def judge(self, texts: pa.LargeStringArray, labels: pa.StringArray) -> Judged:
        models = [model_of(label) for label in labels.to_pylist()]
        letters = [
            [c for c in text if not c.isspace()] if model else []
            for text, model in zip(texts.to_pylist(), models, strict=True)
        ]
        self.read += texts.to_pylist()
        bits = np.array([sum((COSTS.get(c, 1.0) for c in one), NO_BITS) for one in letters])
        sizes = np.array([len(one) for one in letters], np.int64)
        return Judged(
            model=np.array(models, object),
            nats=bits * np.log(2) * self.scale,
            tokens=sizes * self.tokens_per_letter,
            characters=sizes,
            bytes=np.array([len("".join(one).encode()) for one in letters], np.int64),
        )
