"""Small n-gram models for tests, trained in a moment on a few sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from curation.filters.perplexity.ngram_text import NORMALISATION, normal_characters
from curation.text import buffers
from quality_models.ngram_counts import count_ngrams
from quality_models.ngram_file import NgramModel, pack, write_ngram
from quality_models.ngram_smoothing import estimate

ENGLISH = (
    "The river runs behind the mill, and in spring the water reaches the garden.",
    "In the evening the children come down to the bridge and look at the boats.",
    "Nobody remembers who built the mill, but everybody knows when it was closed.",
)


def tiny_model(
    texts: Sequence[str], language: str, facts: Mapping[str, Any] | None = None, order: int = 3
) -> NgramModel:
    """A model of everything that occurs in the texts."""
    codes, offsets = normal_characters(*buffers(pa.array(list(texts), pa.large_string())))
    counted = count_ngrams(codes, offsets, order, least=1, least_character=1)
    kept = [np.ones(len(level.last), np.bool_) for level in counted.levels]
    return pack(estimate(counted, kept), language, NORMALISATION, facts or {})


def write_tiny(
    path: Path, texts: Sequence[str] = ENGLISH, language: str = "eng", facts: Mapping[str, Any] | None = None
) -> Path:
    """The same as a file; returns its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_ngram(tiny_model(texts, language, facts), path)
    return path
