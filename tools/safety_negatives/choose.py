"""Chooses so many pieces of each language, of all its sources in turn, and long documents to choose thresholds by."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

from tools.safety_negatives.collect import Document
from tools.safety_negatives.cut import MAIN, is_in_script, is_plain, is_unclean, pieces
from tools.safety_negatives.texts import TRADITIONAL, Text, draw

__all__ = ["QUOTAS", "Row", "choose_long", "choose_pieces", "row_of"]

Row = dict[str, Any]

OFTEN = "ru es de fr pt it nl pl tr vi id ar fa hi th uk"
SELDOM = (
    "cs sv da nb fi hu ro bg el he hr sr sk sl ca eu gl et lv lt ms sw tl ur bn ta te ml mr gu pa kn ka hy az kk uz ky mn ne "
    "si km lo my am is ga cy mt mk sq bs eo af ha zu rw so ps ug tt be yue yo tg"
)
QUOTAS: Mapping[str, int] = {
    **dict.fromkeys(SELDOM.split(), 350),
    **dict.fromkeys("cs sv hu ro el he bg ca bn ta ur fi da sr".split(), 520),
    **dict.fromkeys(OFTEN.split(), 1050),
    "zh": 5600,
    TRADITIONAL: 5300,
    "ja": 5400,
    "en": 5600,
    "ko": 5300,
}
"""Pieces of each language, a fifth of them for calibration."""
ORDER = (*MAIN, *OFTEN.split(), *SELDOM.split())
SHARES = {"train": 0.8, "calibrate": 0.2}
PULL: Mapping[str, float] = {
    "tldr": 0.5, "chromium": 0.5, "spree_i18n": 0.5, "django-oscar": 0.5, "bitcoin.org": 0.6, "common-voice": 2.2,
    "python-docs": 0.4, "react": 0.5, "typescript-docs": 0.3, "rust-book-ko": 0.5, "laws-tw": 2.5, "tico-19": 1.6,
    "opensource.guide": 1.2, "books": 2.4, "wikinews": 4, "tanaka": 1.5, "HowToCook": 1.5, "ntrex": 3, "cmrc-stories": 2,
    "tatoeba": 1.2, "songys-chatbot": 2.2, "contributor-covenant": 0.3, "bible-corpus": 0.8, "wikipedia": 3,
    "ruby-lang.org": 0.5, "trpl-zh": 0.5,
}  # fmt: skip
"""How often a source is asked beside others of its language; 1 where it is not named."""
ROUNDS = 6
LONG_FROM, LONG_TO = 1000, 30_000
"""Characters of a long document."""
LONG_OF_MAIN, LONG_OF_OFTEN, LONG_OF_SELDOM, LONG_OF_OTHERS = 340, 85, 18, 5


def row_of(text: Text, piece: str, split: str) -> Row:
    return {
        "text": piece,
        "lang": text.lang,
        "labels": [],
        "source": text.source,
        "licence": text.licence,
        "split": split,
        "domain": text.domain,
        "doc": f"{text.source}:{text.document}",
    }


class _Seen:
    """What was chosen already, or begins like it."""

    def __init__(self) -> None:
        self.keys: set[str] = set()

    def is_new(self, piece: str) -> bool:
        key = re.sub(r"\W+", "", piece.casefold())
        return key not in self.keys and key[:60] not in self.keys

    def add(self, piece: str) -> None:
        key = re.sub(r"\W+", "", piece.casefold())
        self.keys |= {key, key[:60]}


def choose_pieces(documents: Sequence[Document]) -> list[Row]:
    """Pieces of documents for training and calibration, in an order of chance."""
    groups: dict[tuple[str, str], dict[str, list[Text]]] = defaultdict(lambda: defaultdict(list))
    for text, role in documents:
        groups[text.lang, role][text.source].append(text)
    seen = _Seen()
    rows = [
        row_of(text, piece, role)
        for lang in ORDER
        for role, share in SHARES.items()
        for text, piece in _in_turn(groups.get((lang, role), {}), round(QUOTAS[lang] * share), seen)
    ]
    return sorted(rows, key=lambda row: draw(row["text"]))


def _in_turn(sources: Mapping[str, list[Text]], quota: int, seen: _Seen) -> Iterator[tuple[Text, str]]:
    """Pieces of one language, as many of each source as its pull wants while it has any."""
    left = {name: _spread(texts) for name, texts in sources.items()}
    credit = {name: draw(name) for name in left}
    while left and quota > 0:
        for name in list(left):
            credit[name] += PULL.get(name, 1)
            while credit[name] >= 1 and name in left and quota > 0:
                found = next((one for one in left[name] if _is_good(*one, seen)), None)
                if found is None:
                    del left[name]
                    continue
                seen.add(found[1])
                credit[name] -= 1
                quota -= 1
                yield found


def _is_good(text: Text, piece: str, seen: _Seen) -> bool:
    return (
        seen.is_new(piece) and is_plain(piece, text.lang) and is_in_script(piece, text.lang) and not is_unclean(piece)
    )


def _spread(texts: Sequence[Text]) -> Iterator[tuple[Text, str]]:
    """A third of the pieces of each document, then the next: all documents first, not all of one."""
    order = sorted(texts, key=lambda text: draw("o", text.source, text.document, text.lang))
    cut: dict[int, list[str]] = {}
    for turn in range(ROUNDS):
        for number, text in enumerate(order):
            most = max(1, min(60, len(text.text) // 350))
            at_once = max(1, most // 3)
            if number not in cut:
                cut[number] = list(pieces(text, most))
            for piece in cut[number][turn * at_once : (turn + 1) * at_once]:
                yield text, piece


def choose_long(documents: Iterable[Document]) -> list[Row]:
    """Whole documents of 1,000 to 30,000 characters, and the beginnings of longer ones."""
    groups: dict[str, dict[str, list[Text]]] = defaultdict(lambda: defaultdict(list))
    for text, role in documents:
        if role == "long" and (len(text.text) > LONG_TO or (len(text.text) >= LONG_FROM and text.kind != "menu")):
            groups[text.lang][text.source].append(text)
    beginnings: set[str] = set()
    counts: Counter[str] = Counter()
    rows = []
    for lang, sources in groups.items():
        for texts in sources.values():
            texts.sort(key=lambda text: draw("l", text.source, text.document, text.lang))
        for text in (text for turn in zip_longest(*sources.values()) for text in turn if text is not None):
            whole = _beginning(text.text)
            if counts[lang] < _most_long(lang) and is_in_script(whole, lang, 0.3) and whole[:80] not in beginnings:
                beginnings.add(whole[:80])
                counts[lang] += 1
                rows.append(row_of(text, whole, "calibrate"))
    return rows


def _beginning(text: str) -> str:
    if len(text) <= LONG_TO:
        return text
    end = text.rfind("\n", LONG_TO // 2, LONG_TO)
    return text[: end if end > 0 else LONG_TO].strip()


def _most_long(lang: str) -> int:
    if lang in MAIN:
        return LONG_OF_MAIN
    if lang in OFTEN.split():
        return LONG_OF_OFTEN
    return LONG_OF_SELDOM if lang in QUOTAS else LONG_OF_OTHERS
