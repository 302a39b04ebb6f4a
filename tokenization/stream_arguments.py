"""What a stream refuses when it is made: files that no model can read together, and numbers that do not fit."""

from __future__ import annotations

import operator
from collections.abc import Sequence

from tokenization.errors import TokenFileError
from tokenization.reader import TokenFile

__all__ = ["check_numbers", "check_together"]


def check_together(files: Sequence[TokenFile]) -> None:
    """Refuse files that no model can read together."""
    if not files:
        raise ValueError("no files: expected at least one")
    first = files[0]
    for file in files[1:]:
        a, b = first.metadata.tokenizer, file.metadata.tokenizer
        if a.fingerprint != b.fingerprint:
            raise TokenFileError(
                f"{file.path} has ids of tokenizer {b.name}, fingerprint {b.fingerprint}, but {first.path} of {a.name}, "
                f"fingerprint {a.fingerprint}: one model cannot read both. Pack them with one tokenizer."
            )
        if first.metadata.seq_len != file.metadata.seq_len:
            raise TokenFileError(
                f"{file.path} has sequences of {file.metadata.seq_len} tokens, but {first.path} of "
                f"{first.metadata.seq_len}. Pack them with one seq_len."
            )


def check_numbers(batch_size: int, rank: int, world: int, epochs: int | None) -> None:
    """Refuse numbers that are none, or do not fit each other; the message names them."""
    for name, value, low, high in (
        ("batch_size", batch_size, 1, 2**31),
        ("world", world, 1, batch_size),
        ("rank", rank, 0, world - 1),
        ("epochs", 1 if epochs is None else epochs, 1, 2**31),
    ):
        if not low <= operator.index(value) <= high:
            raise ValueError(f"{name} is {value}: expected a whole number from {low} to {high}")
