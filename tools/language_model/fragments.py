"""From texts to lines for fastText: folded as the product folds them, some held out, the rest cut to fragments.

A model that is trained on sentences names single words badly, so most training lines are one to six words of a
sentence. Each label gets as many lines as its text allows and no more than a limit, and the sources of a label
share them by the square root of their size. Everything follows from a hash of the texts and labels: the same
sources give the same lines in the same order. Takes 3 minutes for 12 million lines, most of it Python's `random`.
"""

from __future__ import annotations

import hashlib
import random
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import NamedTuple, TypeAlias

import numpy as np

from curation.filters.language.lines import LineKind, prepare
from curation.filters.language.scripts import SCRIPT_CODES, SHARED
from curation.filters.language.voters import NO_LANGUAGE
from curation.text.tables import Script
from quality_models.language_codes import LANGUAGE_SCRIPTS
from tools.language_model.sources import Text

__all__ = ["Folded", "cut", "fold", "fragments", "pieces", "split"]

SHARED_SCRIPTS = {script: SCRIPT_CODES[script] for script in SHARED}
"""Texts in other scripts are left out: there the script tells the language."""

HELD_OUT = {"common-voice": 10, "chromium": 10, "cldr": 12, "udhr": 7, "nonsense": 20}
"""One key in this many is held out."""
MOST_HELD_OUT = 200
"""Held-out texts of a label and source that are kept; further ones are for neither side."""

WEIGHTS = {"cldr": 1.3}
CHARACTERS_PER_LINE = 2
"""A label has at most one training line for this many characters of its text."""
LEAST_TEXT = 2000
"""Characters that a label needs: it learns nothing from a few keywords but their noise."""
MOST_WORDS = 60
BARE = 0.08
"""Share of lines in Latin script that lose their marks, as people write without them."""
WITHOUT_MARKS = str.maketrans("ıđłø", "idlo")

Lines: TypeAlias = dict[str, dict[str, list[str]]]
"""Folded texts by label and source."""


class Folded(NamedTuple):
    """A text as the model reads it."""

    label: str
    source: str
    key: str
    text: str


def fold(texts: Iterable[Text]) -> Iterator[Folded]:
    """Texts as `curation.filters.language.lines` folds them: those with letters of a script that languages share.

    A text in a script that its label is not written in, by `language_codes.tsv`, is left out.
    """
    for (label, source), group in groupby(texts, key=lambda text: (text.label, text.source)):
        some = list(group)
        data = "\n".join(text.text for text in some).encode()
        lines = prepare(np.frombuffer(data, np.uint8), np.array([0, len(data)], np.int64))
        if len(lines.kind) != len(some):
            raise ValueError(
                f"{source}, {label}: expected {len(some)} lines, found {len(lines.kind)}: line ends in texts"
            )
        folded = lines.folded.tobytes()
        script = lines.letters[:, Script.OTHER :].argmax(axis=1) + Script.OTHER
        for row, text in enumerate(some):
            written = SHARED_SCRIPTS.get(Script(int(script[row])))
            start, end = lines.folded_starts[row], lines.folded_ends[row]
            if written is None or start == end or lines.kind[row] == LineKind.CODE:
                continue
            if label == NO_LANGUAGE or written in LANGUAGE_SCRIPTS.get(label, (written,)):
                yield Folded(label, source, text.key, folded[start:end].decode())


def _hash(*parts: str) -> int:
    return int.from_bytes(hashlib.blake2b("\0".join(parts).encode(), digest_size=8).digest(), "little")


def split(texts: Iterable[Folded]) -> tuple[Lines, list[Folded]]:
    """Texts to train on, and those held out. No text of a label is on both sides, none of a source twice."""
    train: defaultdict[str, defaultdict[str, dict[str, None]]] = defaultdict(lambda: defaultdict(dict))
    held: defaultdict[tuple[str, str], dict[str, Folded]] = defaultdict(dict)
    for text in texts:
        if _hash(text.source, text.key) % HELD_OUT[text.source] == 0:
            held[text.label, text.source].setdefault(text.text, text)
        else:
            train[text.label][text.source][text.text] = None
    held_out = []
    for (label, _), some in sorted(held.items()):
        for texts_of_source in train[label].values():
            for held_text in some:
                texts_of_source.pop(held_text, None)
        held_out += sorted(some.values(), key=lambda text: _hash(text.label, text.text))[:MOST_HELD_OUT]
    known = {label: {source: list(some) for source, some in train[label].items() if some} for label in train}
    sizes = {label: sum(len(text) for some in known[label].values() for text in some) for label in known}
    lines = {label: sources for label, sources in known.items() if sizes[label] >= LEAST_TEXT}
    return lines, [text for text in held_out if text.label in lines]


def cut(words: list[str], rng: random.Random) -> list[str]:
    """A run of words: one, two, three to six, or all (MOST_WORDS at most); each about as often as the others."""
    kind = rng.random()
    if kind < 0.33:
        length = 1
    elif kind < 0.53:
        length = 2
    elif kind < 0.75:
        length = rng.randint(3, 6)
    else:
        length = MOST_WORDS
    length = min(length, len(words))
    first = rng.randint(0, len(words) - length)
    return words[first : first + length]


def without_marks(text: str) -> str:
    """The text in plain letters, as many write it."""
    parts = unicodedata.normalize("NFD", text)
    return "".join(part for part in parts if unicodedata.category(part) != "Mn").translate(WITHOUT_MARKS)


def fragments(lines: Lines, most: int) -> Iterator[tuple[str, str]]:
    """Label and text of each training line, label by label; at most `most` of a label."""
    for label in sorted(lines):
        rng = random.Random(label)
        sources = [(name, [text.split() for text in sorted(lines[label][name])]) for name in sorted(lines[label])]
        sizes = {name: sum(len(word) for words in some for word in words) for name, some in sources}
        total = min(most, sum(sizes.values()) // CHARACTERS_PER_LINE)
        shares = {name: size**0.5 * WEIGHTS.get(name, 1.0) for name, size in sizes.items()}
        for name, some in sources:
            for _ in range(int(total * shares[name] / sum(shares.values()))):
                text = " ".join(cut(some[int(rng.random() * len(some))], rng))
                latin = unicodedata.name(text[0], "").startswith("LATIN")
                yield label, without_marks(text) if latin and rng.random() < BARE else text


def pieces(texts: Iterable[Folded]) -> dict[str, list[tuple[str, str]]]:
    """Label and text of held-out texts by length: "words" and "pairs" (one of each text) and "sentences"."""
    found: dict[str, list[tuple[str, str]]] = {"words": [], "pairs": [], "sentences": []}
    for text in texts:
        words = text.text.split()
        rng = random.Random(text.text)
        found["sentences"].append((text.label, text.text))
        found["words"].append((text.label, rng.choice(words)))
        if len(words) > 1:
            first = rng.randrange(len(words) - 1)
            found["pairs"].append((text.label, " ".join(words[first : first + 2])))
    return found
