"""Letters that say nothing: random, mashed, repeated, DNA. Made here, so that the model knows what is no language.

Without them a classifier must name one of its languages for `Qwrtz plkmn vbxdf`, and does so with confidence.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

from curation.filters.language.voters import NO_LANGUAGE
from tools.language_model.sources import Text

__all__ = ["nonsense"]

LINES = 6_000
"""Of each kind."""

LEAST = 5
"""Letters of a made word: shorter ones, which training lines may be cut to, are words of some language too often."""

LATIN, CYRILLIC = "abcdefghijklmnopqrstuvwxyz", "абвгдежзийклмнопрстуфхцчшщыьэюя"
ARABIC, DEVANAGARI = "ابتثجحخدذرزسشصضطظعغفقكلمنهوي", "अइउएकखगघचछजझटठडढणतथदधनपफबभमयरलवशषसह"
KEYBOARD = ("qwertyuiop", "asdfghjkl", "zxcvbnm", "asdf", "jkl", "qwe", "йцукенгшщзхъ", "фывапролджэ", "ячсмитьбю")


def _words(made: random.Random, letters: str) -> str:
    """Words of random letters."""
    sizes = [made.randint(LEAST, 12) for _ in range(made.randint(2, 12))]
    return " ".join("".join(made.choices(letters, k=size)) for size in sizes)


def _mashed(made: random.Random) -> str:
    """What a hand leaves on a keyboard: stretches of its rows, to and fro."""
    words = []
    for _ in range(made.randint(1, 8)):
        row = made.choice(KEYBOARD)
        start = made.randrange(len(row))
        word = (row[start : start + made.randint(2, 8)] * LEAST)[: made.randint(LEAST, 12)]
        words.append(word[::-1] if made.random() < 0.2 else word)
    return " ".join(words)


def _repeated(made: random.Random) -> str:
    """One to three letters, over and over."""
    unit = "".join(made.choices(LATIN + CYRILLIC[:8], k=made.randint(1, 3)))
    return unit * made.randint(8, 40)


def _letters_of(letters: str) -> Callable[[random.Random], str]:
    return lambda made: _words(made, letters)


KINDS: dict[str, Callable[[random.Random], str]] = {
    "latin": _letters_of(LATIN),
    "consonants": _letters_of("bcdfghjklmnpqrstvwxz"),
    "cyrillic": _letters_of(CYRILLIC),
    "arabic": _letters_of(ARABIC),
    "devanagari": _letters_of(DEVANAGARI),
    "dna": lambda made: "".join(made.choices("acgt", k=made.randint(20, 200))),
    "hexadecimal": _letters_of("abcdef"),
    "mashed": _mashed,
    "repeated": _repeated,
}


def nonsense() -> Iterator[Text]:
    """LINES of each kind, the same each time."""
    for kind, make in KINDS.items():
        made = random.Random(kind)
        for number in range(LINES):
            yield Text(NO_LANGUAGE, "nonsense", f"{kind} {number}", make(made))
