"""Holds a trainer's tokenizer against a token file when it is opened: by fingerprint, or by the file's golden ids."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Protocol

from tokenization.errors import TokenizerError
from tokenization.layout import Header
from tokenization.parity import check_golden

__all__ = ["TrainerTokenizer", "check_tokenizer"]

_FINGERPRINT = re.compile("[0-9a-f]{64}")


class HasFingerprint(Protocol):
    """Any tokenizer that knows its own fingerprint, such as `tokenization.tokenizer.Tokenizer`."""

    def fingerprint(self) -> str: ...


TrainerTokenizer = str | HasFingerprint | Callable[[str], Any]
"""A fingerprint, a tokenizer with one, or a function from a text to its ids."""


def check_tokenizer(header: Header, tokenizer: TrainerTokenizer, where: str) -> None:
    """Refuse a tokenizer that is not the one of the file.

    A function is held against the golden ids, as `parity.check_golden` does: what it puts around every text, and special
    tokens that it reads in text which spells them, are no difference.

    Raises:
        TokenizerError: it is another one; the message names both, or the text and the token where they part, and why.
        TypeError: it is no tokenizer.
    """
    fingerprint = tokenizer if isinstance(tokenizer, str) else getattr(tokenizer, "fingerprint", None)
    if callable(fingerprint):
        fingerprint = fingerprint()
    card = header.tokenizer
    packed = f"{where}: packed with tokenizer {card.name}, fingerprint {card.fingerprint}"
    if isinstance(fingerprint, str):
        if not _FINGERPRINT.fullmatch(fingerprint):
            raise TokenizerError(
                f"expected a tokenizer's fingerprint (64 hex digits), or a function from a text to its ids, found {fingerprint!r:.80}. "
                "To compare files by path: corpusmill parity TOKENIZER FILE."
            )
        if fingerprint != card.fingerprint:
            raise TokenizerError(
                f"{packed}; yours has the fingerprint {fingerprint}. Train with the tokenizer of the file, or pack again "
                "with yours."
            )
    elif callable(tokenizer):
        encode = tokenizer
        found = check_golden(encode, header)
        if not found.equal:
            raise TokenizerError(f"{packed}; yours is another one: {found.message()}")
    else:
        raise TypeError(
            f"tokenizer must be a fingerprint, a function from text to ids, or have fingerprint(): {tokenizer!r}"
        )
