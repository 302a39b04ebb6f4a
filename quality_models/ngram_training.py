"""Trains an n-gram language model of characters: from normalised text to a model of a given size.

    estimated = train(codes, offsets, order=6, most_bytes=4_000_000)
    write_ngram(pack(estimated, "fra", NORMALISATION, facts), path)

A minute and 2 GB for 10 million characters and order 6; text beyond `MOST_CHARACTERS` brings nothing that a model of a
few megabytes could hold.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from quality_models.ngram_counts import count_ngrams
from quality_models.ngram_file import COSTS, ORDERS
from quality_models.ngram_smoothing import Estimated, estimate, fitting

__all__ = ["MOST_CHARACTERS", "least_count", "train"]

MOST_CHARACTERS = 40_000_000
"""Characters of text that are counted at most, in 4 GB of memory."""
LARGE = 4_000_000
"""From so many characters on n-grams that occur once are left out: a small model has no room for them."""
HEAD_BYTES = 8_192
CHARACTER_BYTES = 12


def least_count(n_characters: int) -> int:
    """How often an n-gram must occur, in a text of so many characters."""
    return 2 if n_characters >= LARGE else 1


def train(codes: npt.NDArray[np.uint32], offsets: npt.NDArray[np.int64], *, order: int, most_bytes: int) -> Estimated:
    """The model of documents that says most in a file of `most_bytes`.

    codes: uint32[n], normalised characters; document d is `codes[offsets[d]:offsets[d + 1]]`.
    Raises ValueError where there is no text, too much of it, or an order that a file cannot hold.
    """
    if not ORDERS[0] <= order <= ORDERS[1]:
        raise ValueError(f"expected an order from {ORDERS[0]} to {ORDERS[1]}, found {order}")
    n = int(offsets[-1] - offsets[0])
    if n > MOST_CHARACTERS:
        raise ValueError(f"expected at most {MOST_CHARACTERS:,} characters of text, found {n:,}: give a part of it")
    least = least_count(n)
    counted = count_ngrams(codes, offsets, order, least=least, least_character=least + 1)
    room = max(most_bytes - HEAD_BYTES - CHARACTER_BYTES * len(counted.characters), 0)
    kept = fitting(counted.levels, [0.0, *[COSTS[0]] * (order - 2), COSTS[1]], room)
    return estimate(counted, kept)
