"""The exceptions of the pipeline: five in all, so that a caller can tell what to do.

    CorpusmillError
    |- ConfigError     the configuration or the command is wrong: mend it        (exit 2)
    |- InputError      the input cannot be used as asked: look at the files      (exit 1)
    |- RunError        a run on disk is damaged, foreign or incomplete           (exit 1)
    `- LawError        documents were lost or invented: a fault of the program   (exit 1)

A message says what was expected, what was found, where, and what to do.
Retrying helps only for `RunError`: a chunk that is missing or damaged is made anew.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = ["ConfigError", "CorpusmillError", "InputError", "LawError", "RunError", "nearest"]


class CorpusmillError(Exception):
    """Any error that is meant for the user: shown as one message, never as a traceback."""

    exit_code = 1


class ConfigError(CorpusmillError):
    """The configuration or the command line is wrong."""

    exit_code = 2


class InputError(CorpusmillError):
    """An input file is missing, of an unknown kind, or too much of it is damaged."""


class RunError(CorpusmillError):
    """A file of a run is missing, damaged, or belongs to another run."""


class LawError(CorpusmillError):
    """The conservation law is broken: what went in does not equal what came out."""


def nearest(word: str, known: Iterable[str]) -> str:
    """` (did you mean 'x'?)`, or nothing if no known word is close."""
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.5)
    return f" (did you mean {close[0]!r}?)" if close else ""
