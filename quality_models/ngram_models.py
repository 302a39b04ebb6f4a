"""Which n-gram language models come with Corpusmill: `weights/corpusmill-ngram-<language>.bin` beside this module.

Each has a card, `weights/corpusmill-ngram-<language>.md` or `weights/corpusmill-ngram.md` for all: sources, licences, figures.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

__all__ = ["FOLDER", "PREFIX", "installed_ngrams"]

FOLDER = Path(__file__).resolve().parent / "weights"
PREFIX = "corpusmill-ngram-"


def installed_ngrams() -> Mapping[str, Path]:
    """The file of each language (ISO 639-3; `mul` for many), in the order of names.

    Raises FileNotFoundError where there is none: the package is not whole.
    """
    found = {path.stem.removeprefix(PREFIX): path for path in sorted(FOLDER.glob(f"{PREFIX}*.bin"))}
    if not found:
        raise FileNotFoundError(f"{FOLDER}: expected files {PREFIX}*.bin, found none; install corpusmill again")
    return found
