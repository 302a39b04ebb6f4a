"""Texts as token ids, and batches of texts of like length that hold a budget of tokens.

Costs: tokenization some 20,000 short texts/s a core. Ids lie end to end, 4 bytes each, so that a million rows of 40 tokens take 160 MB.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer

from quality_models.lm_tokens import read_tokenizer
from quality_models.safety_text import readable

__all__ = ["Encoded", "batches", "encode", "encoded", "join", "load_tokenizer", "padded_places"]

MULTIPLE = 8
"""Batches are padded to multiples of this: kernels like it, and lengths differ less."""

CHUNK = 4096


class Encoded(NamedTuple):
    """Token ids of texts, end to end."""

    ids: npt.NDArray[np.int32]
    offsets: npt.NDArray[np.int64]
    """int64[texts + 1]."""

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        """int64[texts], in tokens."""
        return np.diff(self.offsets)


def load_tokenizer(path: Path, max_tokens: int) -> Tokenizer:
    """A tokenizer.json that cuts at `max_tokens`, special tokens among them, and reads none from a text. Raises ValueError."""
    tokenizer = read_tokenizer(path)
    tokenizer.enable_truncation(max_tokens)
    return tokenizer


def encode(tokenizer: Tokenizer, texts: Sequence[str]) -> Encoded:
    """Ids of texts, cleaned as the filter cleans them."""
    parts: list[npt.NDArray[np.int32]] = []
    for start in range(0, len(texts), CHUNK):
        cleaned = [readable(text) for text in texts[start : start + CHUNK]]
        parts += [np.asarray(found.ids, np.int32) for found in tokenizer.encode_batch_fast(cleaned)]
    return encoded(parts)


def encoded(ids: Sequence[npt.NDArray[np.int32]]) -> Encoded:
    """Token ids of each text, put end to end."""
    whole = np.concatenate(ids) if ids else np.empty(0, np.int32)
    return Encoded(whole, np.cumsum([0, *(len(part) for part in ids)], dtype=np.int64))


def join(first: Encoded, second: Encoded) -> Encoded:
    """The texts of both, in order."""
    offsets = np.concatenate([first.offsets, second.offsets[1:] + first.offsets[-1]])
    return Encoded(np.concatenate([first.ids, second.ids]), offsets)


def batches(lengths: npt.NDArray[np.int64], budget: int, seed: int | None = None) -> list[npt.NDArray[np.int64]]:
    """Places of the texts of each batch: texts of like length, up to `budget` tokens with padding, at least one text.

    With a seed: which texts of a length meet, and the order of batches, are drawn. Without: shortest first.
    """
    padded = -(-np.maximum(lengths, 1) // MULTIPLE) * MULTIPLE
    random = np.random.default_rng(seed)
    tie = np.arange(len(lengths)) if seed is None else random.permutation(len(lengths))
    order = np.lexsort((tie, padded))
    cuts: list[npt.NDArray[np.int64]] = []
    start = 0
    while start < len(order):
        end = start + max(1, budget // int(padded[order[start]]))
        while (
            end > start + 1 and int(padded[order[min(end, len(order)) - 1]]) * (min(end, len(order)) - start) > budget
        ):
            end = min(end, len(order)) - 1
        cuts.append(order[start:end].astype(np.int64))
        start = end
    return cuts if seed is None else [cuts[at] for at in random.permutation(len(cuts))]


def padded_places(
    offsets: npt.NDArray[np.int64], rows: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Where the tokens of texts stand in what lies end to end: places int64[texts, width], and which of them are real.

    Padding points at the text's own first token, so that no place is out of bounds.
    """
    starts = offsets[rows]
    lengths = offsets[rows + 1] - starts
    width = -(-max(int(lengths.max()), 1) // MULTIPLE) * MULTIPLE
    column = np.arange(width)
    real = column[None, :] < lengths[:, None]
    return np.where(real, starts[:, None] + column[None, :], starts[:, None]), real
