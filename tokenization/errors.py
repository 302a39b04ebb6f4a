"""Errors of the token file and of tokenizers, so that a caller can tell what to do.

    ValueError
    `- TokenizationError
       |- TokenizerError    the tokenizer cannot be loaded, or does not fit: choose or mend it
       |- TokenFileError    the token file is damaged, foreign, or was written wrongly
       `- ProgressError     a training's ledger cannot be read or written (in `progress_line`)

A message says what was expected, what was found, where, and what to do.
"""

from __future__ import annotations

__all__ = ["TokenFileError", "TokenizationError", "TokenizerError"]


class TokenizationError(ValueError):
    """Base of this package's errors: shown as one message, never as a traceback."""


class TokenizerError(TokenizationError):
    """A tokenizer is missing, unreadable, without an end-of-document token, or unfit for the text."""


class TokenFileError(TokenizationError):
    """A token file is damaged, no token file, from another version, or breaks its own rules."""
