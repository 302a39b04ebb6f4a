"""Where the pieces of a document lie in a token file, from its row in documents.parquet. NumPy alone.

A document that was cut lies in its first sequence from `offset` on, in its last one from `last_offset` on, and in
whole sequences between them. Those follow the first one in the order of the plan, which is the order of the file
unless its sequences were shuffled: then the permutation of the header's seed says where each lies.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tokenization.shuffle import Permutation

__all__ = ["later_sequences", "piece_sequences", "sequence_order"]

Ints = npt.NDArray[np.int64]


def sequence_order(sequences: int, shuffle_seed: int | None) -> Permutation | None:
    """Where each planned sequence lies in the file; None: in its own place."""
    return None if shuffle_seed is None else Permutation(sequences, shuffle_seed)


def later_sequences(first: Ints, number: Ints, *, sequences: int, shuffle_seed: int | None) -> Ints:
    """The sequences of pieces between the first and the last of their documents.

    Args:
        first: int64[n], the sequence of the first piece of each one's document.
        number: int64[n], which piece it is, from 1.
        sequences, shuffle_seed: of the token file's header.

    Returns:
        int64[n]; `sequences` or more where there cannot be such a piece.
    """
    order = sequence_order(sequences, shuffle_seed)
    if order is None:
        return first + number
    later: Ints = order.inverse_many(first) + number
    inside = later < sequences
    later[inside] = order.many(later[inside])
    return later


def piece_sequences(
    sequence: int, pieces: int, last_sequence: int, *, sequences: int, shuffle_seed: int | None
) -> Ints:
    """The sequence of each piece of a document, in the order of its text: int64[pieces].

    The first piece begins at `offset`, the last at `last_offset`, all others at 0.

    Args:
        sequence, pieces, last_sequence: of the document's row in documents.parquet.
        sequences, shuffle_seed: of the token file's header.
    """
    found = np.full(pieces, sequence)
    number = np.arange(1, pieces - 1)
    # The last piece is packed apart: it need not follow the others.
    found[1:-1] = later_sequences(found[1:-1], number, sequences=sequences, shuffle_seed=shuffle_seed)
    found[-1] = last_sequence
    return found
