"""What a stream is made of: files that one model can read together, and numbers that fit each other."""

from __future__ import annotations

import operator
import os
from collections.abc import Sequence

from tokenization.errors import TokenFileError
from tokenization.reader import Read, TokenFile, Verify

__all__ = ["check_numbers", "opened"]


def opened(
    files: str | os.PathLike[str] | TokenFile | Sequence[str | os.PathLike[str] | TokenFile], verify: Verify, read: Read
) -> tuple[TokenFile, ...]:
    """The files, those that were given by their path opened.

    Raises:
        TokenFileError: one is damaged, or no model can read them together.
        ValueError: there are none.
    """
    several = [files] if isinstance(files, str | os.PathLike | TokenFile) else list(files)
    found = tuple(
        file if isinstance(file, TokenFile) else TokenFile(file, verify=verify, read=read) for file in several
    )
    _check_together(found)
    return found


def _check_together(files: Sequence[TokenFile]) -> None:
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
