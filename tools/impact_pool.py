"""What the shipped impact sample is made of: the texts written for this project, by language, and the furniture of pages.

Articles are the good documents of demo/documents and those of tools/impact_texts/articles.jsonl, in more languages. Frames (menus,
footers, cookie notices), fillers of forums, adverts and what fills their slots lie in tools/impact_texts, too. All of it
is CC0. Reading costs 20 ms.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

from demo.hand_written import HandWritten, read_hand_written

__all__ = ["TEXTS", "Made", "Pool", "sentences"]

TEXTS = Path(__file__).resolve().parent / "impact_texts"

_SENTENCE = re.compile(
    r"(?<=[。！？।])(?![。！？।”’」』》）])|(?<=[。！？।][”’」』》）])|(?<=[^\d\s][.!?…])(?=\s)|(?<=[.!?][»”\"])(?=\s)|(?=\n\n)"
)
PROSE = (
    "good",
    "kanji_only",
    "mixed_zh_en",
    "mixed_ja_en",
    "mixed_ko_en",
    "mixed_de_en",
    "literal",
    "forum_useful",
    "html_tutorial",
)
"""Kinds of hand-written documents that a corpus should keep."""
SHORT_LINES = ("poem", "recipe", "dialogue", "riddle", "manual", "classified", "half width", "faq", "qa", "notice")
"""Genres in short lines: kept as they are, but no parts are taken of them."""


@dataclass(frozen=True, slots=True)
class Made:
    """One document of the sample."""

    text: str
    lang: str
    """BCP 47; `und` for none."""
    kind: str
    """How it was made."""
    quality: str | None
    """`good`, `junk`, `copy` (of a document of the sample), or None: nobody would blame a filter for either verdict."""

    @property
    def weighs(self) -> int:
        """Bytes in UTF-8."""
        return len(self.text.encode())


def sentences(text: str) -> list[str]:
    """A text in sentences, each with its end mark; put together again they are the text. A number ends none."""
    return [part for part in _SENTENCE.split(text) if part]


class Pool:
    """The texts, read once."""

    def __init__(self) -> None:
        self.hand_written: Sequence[HandWritten] = read_hand_written()
        extra = [HandWritten(**row) for row in _rows("articles.jsonl")]
        self.articles: dict[str, list[HandWritten]] = {}
        """Good prose by language, in the order of the files."""
        for row in (*self.hand_written, *extra):
            if row.kind == "good" and len(row.text) >= 60 and row.copy_of is None:
                self.articles.setdefault(row.lang, []).append(row)
        self.extra: Sequence[HandWritten] = extra
        self.frames: Mapping[str, Mapping[str, Any]] = _json("frames.json")
        self.fillers: Mapping[str, Sequence[str]] = _json("fillers.json")
        self._slots: Mapping[str, Mapping[str, Sequence[str]]] = _json("slots.json")

    def languages(self) -> list[str]:
        """Languages with articles, the one with the most first."""
        return sorted(self.articles, key=lambda lang: (-len(self.articles[lang]), lang))

    def any_language(self, rng: Random, *, framed: bool = False) -> str:
        """A language, as often as its articles are many; only those whose pages' furniture is known if `framed`."""
        return rng.choice(self._framed if framed else self._all)

    @cached_property
    def _all(self) -> list[str]:
        return [lang for lang in self.languages() for _ in self.articles[lang]]

    @cached_property
    def _framed(self) -> list[str]:
        return [lang for lang in self._all if lang in self.frames]

    def article(self, lang: str, rng: Random) -> str:
        """One article."""
        return rng.choice(self.articles[lang]).text

    @cached_property
    def _prose(self) -> dict[str, list[list[str]]]:
        """By language the sentences of articles that are no verse, list or talk, of which a part is no text."""
        return {
            lang: [sentences(row.text) for row in rows if row.genre not in SHORT_LINES]
            for lang, rows in self.articles.items()
        }

    def passage(self, lang: str, rng: Random) -> str:
        """Some running sentences of one article and some of another: so no two documents are made of one whole article,
        which would make them near copies of each other, and of the article itself."""
        parts = []
        for found in rng.sample(self._prose[lang], 2):
            count = max(1, round(len(found) * rng.uniform(0.35, 0.7)))
            start = rng.randint(0, len(found) - count)
            parts.append("".join(found[start : start + count]).strip())
        return "\n\n".join(parts)

    def adverts(self) -> Iterator[Made]:
        """Every advert, with each way to fill its slots."""
        for row in _rows("adverts.jsonl"):
            slots = self._slots.get(row["lang"], {})
            names = [name for name in ("trade", "place", "thing") if "{" + name + "}" in row["text"]]
            for values in product(*(slots[name] for name in names)):
                text = row["text"].format(**dict(zip(names, values, strict=True)))
                yield Made(text, row["lang"], f"advert_{row['kind']}", "junk")


def _rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (TEXTS / name).read_bytes().splitlines()]


def _json(name: str) -> Any:
    return json.loads((TEXTS / name).read_bytes())
