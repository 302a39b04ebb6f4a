"""Chooses of each source how much of it a model reads, and what is held out.

Which documents are taken depends on their text alone: they are ordered by a digest of it. A document in fifty is held
out, and so is every document that shares a line of 40 characters or more with texts that must stay unseen.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from tools.ngram_models.sources import Text

__all__ = ["MIXTURES", "Mixture", "chosen", "held_out", "long_lines", "reads"]

HELD_OUT_IN_256 = 5
LONG_LINE = 40


class Mixture(NamedTuple):
    """What a model is trained on. most: characters of each source and language; `other` for sources not named."""

    languages: frozenset[str] | None
    """None: all but those that are named in `NOT_IN_MANY`."""
    order: int
    megabytes: float
    most: Mapping[str, int]
    other: int


def _single(language: str, order: int, megabytes: float, other: int, most: Mapping[str, int]) -> Mixture:
    return Mixture(frozenset({language}), order, megabytes, most, other)


MIXTURES: Mapping[str, Mixture] = {
    "eng": _single("eng", 6, 3.5, 3_500_000, {"wikipedia": 10_000_000, "react": 500_000}),
    "zho": _single("zho", 4, 5.8, 1_500_000, {"guides": 1_500_000, "python-docs": 1_000_000}),
    "jpn": _single("jpn", 5, 3.0, 3_000_000, {"aozora": 6_000_000, "python-docs": 1_500_000}),
    "mul": Mixture(
        None,
        5,
        7.0,
        {"ntrex": 160_000, "common-voice": 160_000, "gnome": 200_000, "books": 150_000, "wikipedia": 200_000},
        120_000,
    ),
}
"""The models that come with Corpusmill."""


NOT_IN_MANY = frozenset({"zho", "jpn", "yue"})
"""Languages whose thousands of characters would take the room of ten others, and that have models of their own."""


def reads(mixture: Mixture, language: str) -> bool:
    """Whether a model is trained on a language."""
    return language in mixture.languages if mixture.languages is not None else language not in NOT_IN_MANY


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def held_out(text: Text) -> bool:
    return _digest(text.text)[-1] < HELD_OUT_IN_256


def long_lines(text: str) -> Iterator[int]:
    """Of each line of 40 characters or more, its first 40, hashed."""
    return (hash(line.strip()[:LONG_LINE]) for line in text.splitlines() if len(line.strip()) >= LONG_LINE)


def chosen(texts: Iterable[Text], mixture: Mixture, unseen: frozenset[int]) -> Iterator[Text]:
    """The training documents of a mixture. unseen: what `long_lines` gives of texts that must not be read."""
    groups: dict[tuple[str, str], list[tuple[bytes, Text]]] = defaultdict(list)
    for text in texts:
        if reads(mixture, text.language) and not held_out(text):
            groups[text.language, text.source].append((_digest(text.text), text))
    for (_, source), rows in sorted(groups.items()):
        room = mixture.most.get(source, mixture.other)
        for _, text in sorted(rows):
            if room <= 0:
                break
            if unseen.isdisjoint(long_lines(text.text)):
                room -= len(text.text)
                yield text
