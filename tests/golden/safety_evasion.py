"""Disguises that adverts put on, and what must not be taken for one: the suite that safety filters are measured by.

`variants` writes a term or a phrase in each disguise that fits its script. `load_phrases` gives adverts none of which stands
whole on a list of terms, `load_lookalikes` innocent sentences that hold what lists stumble over. Tables of look-alikes are
this module's own, so that the filter is not measured by its own table; Traditional forms are OpenCC's.
All is decided by the text alone: the same text has the same variants everywhere.
"""

from __future__ import annotations

import random
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

from opencc import OpenCC

__all__ = ["DISGUISES", "Case", "load_lookalikes", "load_phrases", "script_of", "variants"]

CASES = Path(__file__).parent / "cases"

CYRILLIC = dict(zip("aceopxyisjhdqwmkt", "асеорхуіѕјһԁԛԝмкт", strict=True))
GREEK = dict(zip("aeikopvuxynt", "αεικορνυχγητ", strict=True))
TO_LATIN = {there: latin for latin, there in CYRILLIC.items() if there not in "мкт"}
LEET = {"o": "0", "i": "1", "e": "3", "a": "4", "s": "5", "t": "7"}
SIGNS = {"a": "@", "s": "$", "i": "!"}
RADICALS = dict(
    zip(
        "入力口女子小人大手日水金色片生用白老肉行豆足身車里門面香高一二工",
        "⼊⼒⼝⼥⼦⼩⼈⼤⼿⽇⽔⾦⾊⽚⽣⽤⽩⽼⾁⾏⾖⾜⾝⾞⾥⾨⾯⾹⾼⼀⼆⼯",
        strict=True,
    )
)
"""Han characters that are also encoded as radicals."""
FINE = "\u200b\u200c\u200d\u2060\u00ad\ufeff"
BETWEEN = "-.*_·★~/|"
LEADING_VOWELS = "\u0e40\u0e41\u0e42\u0e43\u0e44"
"""Thai vowels that are written before their consonant."""


class Case(NamedTuple):
    """A text of the suite. kind: the category of an advert, or what makes an innocent sentence look like one."""

    lang: str
    kind: str
    text: str


def _load(path: Path) -> list[Case]:
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
    return [Case(*line.replace("\\n", "\n").split("\t")) for line in lines]


def load_phrases() -> list[Case]:
    return _load(CASES / "safety_phrases.tsv")


def load_lookalikes() -> list[Case]:
    return _load(CASES / "safety_lookalikes.tsv")


# -- scripts ----------------------------------------------------------------------------------------


SCRIPTS = {
    "HIRAGANA": "kana",
    "KATAKANA": "kana",
    "HANGUL": "Hangul",
    "CJK": "Han",
    "CYRILLIC": "Cyrillic",
    "LATIN": "Latin",
}
RANKS = ("kana", "Hangul", "Han", "Cyrillic", "other", "Latin")


def script_of(text: str) -> str:
    """Of its letters' scripts the first of RANKS; Latin where it has none."""
    names = {unicodedata.name(char, "").partition(" ")[0].partition("-")[0] for char in text if char.isalpha()}
    found = {SCRIPTS.get(name, "other") for name in names}
    return next((script for script in RANKS if script in found), "Latin")


def clusters(text: str) -> list[str]:
    """Its characters with their marks: what a reader takes for one letter."""
    found: list[str] = []
    for char in text:
        if found and (unicodedata.category(char) in ("Mn", "Mc") or found[-1][-1] in LEADING_VOWELS):
            found[-1] += char
        else:
            found.append(char)
    return found


# -- disguises --------------------------------------------------------------------------------------


def full_width(text: str, chance: random.Random) -> str:
    return "".join(chr(ord(char) + 0xFEE0) if "!" <= char <= "~" else char for char in text)


def zero_width(text: str, chance: random.Random) -> str:
    """Something that is not seen in every gap between letters."""
    return "".join(one + (chance.choice(FINE) if one != " " else "") for one in clusters(text))


def _joined(text: str, sign: str, blank: str) -> str:
    """A sign between the letters of each word, and `blank` between words."""
    return blank.join(sign.join(clusters(word)) for word in text.split(" "))


def spaced(text: str, chance: random.Random) -> str:
    return _joined(text, " ", "   ")


def signs_between(text: str, chance: random.Random) -> str:
    return _joined(text, chance.choice(BETWEEN), " ")


def one_sign(text: str, chance: random.Random) -> str | None:
    """One sign in the middle, of scripts without blanks between words only."""
    if script_of(text) not in ("Han", "kana"):
        return None
    middle = max(len(text) // 2, 1)
    return text[:middle] + chance.choice(BETWEEN + "￥☆") + text[middle:]


def _replaced(text: str, table: Mapping[str, str], chance: random.Random, share: float = 1) -> str:
    return "".join(table[char] if char in table and chance.random() < share else char for char in text)


def homoglyphs(text: str, chance: random.Random) -> str:
    """Letters of another script that look the same: half of those that have one, but at least one stays."""
    if script_of(text) == "Cyrillic":
        return _replaced(text, TO_LATIN, chance, 0.5)
    return _replaced(text, {**CYRILLIC, **RADICALS}, chance, 0.6)


def styled(text: str, chance: random.Random) -> str:
    """Mathematical or circled letters."""
    first = chance.choice((0x1D41A, 0x1D5EE, 0x24D0, 0x1D68A))
    return "".join(chr(first + ord(char) - ord("a")) if "a" <= char <= "z" else char for char in text)


def mixed_script(text: str, chance: random.Random) -> str:
    """Greek, Cyrillic, full-width and Traditional forms by turns."""
    found = []
    for place, char in enumerate(text):
        if "!" <= char <= "~":
            other = chance.choice((GREEK, CYRILLIC)).get(char, chr(ord(char) + 0xFEE0))
        else:
            other = traditional(char, chance) or char
        found.append(other if place % 2 else char)
    return "".join(found)


def leet(text: str, chance: random.Random) -> str:
    """Digits and signs for letters, for at most half of each word's."""
    words = []
    for word in text.split(" "):
        left = len(word) // 2
        written = ""
        for char in word:
            table = SIGNS if char in SIGNS and chance.random() < 0.3 else LEET
            if char in table and left > 0 and chance.random() < 0.8:
                written, left = written + table[char], left - 1
            else:
                written += char
        words.append(written)
    return " ".join(words)


@cache
def converter() -> OpenCC:
    return OpenCC("s2t")


def traditional(text: str, chance: random.Random) -> str | None:
    """As OpenCC writes it, by words."""
    if script_of(text) != "Han":
        return None
    found: str = converter().convert(text)
    return found


def repeated(text: str, chance: random.Random) -> str:
    """One letter four times in a row, not beside another of its kind."""
    places = [
        i for i, char in enumerate(text) if char.isalpha() and char not in text[max(i - 1, 0) : i] + text[i + 1 : i + 2]
    ]
    if not places:
        return text
    place = chance.choice(places)
    return text[:place] + text[place] * 4 + text[place + 1 :]


def mixed_case(text: str, chance: random.Random) -> str:
    return "".join(char.upper() if i % 2 else char for i, char in enumerate(text))


DISGUISES: Mapping[str, Callable[[str, random.Random], str | None]] = {
    "full-width": full_width,
    "zero-width": zero_width,
    "spaced": spaced,
    "signs between": signs_between,
    "one sign": one_sign,
    "homoglyphs": homoglyphs,
    "styled letters": styled,
    "mixed script": mixed_script,
    "leet": leet,
    "Traditional": traditional,
    "repeated letter": repeated,
    "mixed case": mixed_case,
}


def variants(text: str) -> Iterator[tuple[str, str]]:
    """Each disguise that changes the text: its name, and the text in it."""
    for name, disguise in DISGUISES.items():
        found = disguise(text, random.Random(f"{name}\0{text}"))
        if found is not None and found != text:
            yield name, found
