"""The gold of language identification, and how answers are scored against it.

Two sets of the test data's `4_langid`: `sentences`, single words, pairs and sentences of 75 languages, and `mixed_pages`,
pages made of lines of two languages, each with its label. A line such as `zh+ja` is a sentence with another in brackets
behind it, so that the characters of each language are known there too. Languages are ISO 639-3 codes throughout, by the
table of `quality_models.language_codes`; `und` is no answer, and always wrong.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import zstandard

from quality_models.fasttext_file import read_fasttext
from quality_models.langdetect_profiles import read_profiles
from quality_models.language_codes import to_iso639_3
from quality_models.language_models import lid176

__all__ = [
    "LENGTHS",
    "NOTHING",
    "Known",
    "Page",
    "Sentence",
    "accuracy",
    "chinese_lines",
    "chinese_texts",
    "known_languages",
    "load_pages",
    "load_sentences",
    "macro_f1",
    "read_rows",
    "share",
]

NOTHING = "und"

LENGTHS: Mapping[str, tuple[int, int]] = {"< 20": (0, 20), "20 to 60": (20, 60), ">= 60": (60, 1 << 30)}
"""Classes of length, in characters: from the first to below the second."""

HAN = re.compile("[\u3400-\u9fff]")
KANA = re.compile("[\u3040-\u30ff]")
OPENS, CLOSES = "（）"
"""The brackets that hold the other language of a line."""


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Rows of a file of JSON lines, compressed or not."""
    if path.suffix != ".zst":
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    with zstandard.open(path, "rt", encoding="utf-8") as stream:
        return [json.loads(line) for line in stream]


# -- sentences --------------------------------------------------------------------------------------


class Sentence(NamedTuple):
    """A text of one language."""

    text: str
    language: str
    length: int
    """Characters."""


def load_sentences(folder: Path) -> list[Sentence]:
    """All texts of `4_langid`, in their order."""
    rows = read_rows(folder / "sentences.jsonl.zst")
    return [Sentence(row["text"], to_iso639_3(row["lang"]), row["n_chars"]) for row in rows]


class Known(NamedTuple):
    """Languages that lid.176 and langdetect's profiles have, both of them and either."""

    both: frozenset[str]
    either: frozenset[str]


def known_languages() -> Known:
    """Raises FileNotFoundError where a model's package is not installed."""
    of_fasttext, of_langdetect = (
        frozenset(map(to_iso639_3, labels)) for labels in (read_fasttext(lid176()).labels, read_profiles().labels)
    )
    return Known(of_fasttext & of_langdetect, of_fasttext | of_langdetect)


def macro_f1(answers: Sequence[str], gold: Sequence[str]) -> float:
    """Mean over the gold's languages of F1; answers outside the gold's languages miss, and cost no other's precision."""
    named, true = Counter(answers), Counter(gold)
    hits = Counter(answer for answer, right in zip(answers, gold, strict=True) if answer == right)
    return sum(2 * hits[one] / (named[one] + true[one]) for one in true) / max(1, len(true))


def accuracy(answers: Sequence[str], gold: Sequence[str]) -> float:
    return share(answer == right for answer, right in zip(answers, gold, strict=True))


def share(hits: Iterable[bool]) -> float:
    """Mean of truth values; nan of none."""
    values = list(hits)
    return sum(values) / len(values) if values else float("nan")


# -- mixed pages ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Page:
    """A page of lines, most of them in one language, the rest in another.

    lines: the text and the language of each line, `first+second` where it holds two. characters, letters: of each language.
    main, second, style: as the page was made: block, interleave or inline; second is None for a page of one language.
    """

    name: str
    text: str
    lines: tuple[tuple[str, str], ...]
    characters: Mapping[str, int]
    letters: Mapping[str, int]
    main: str
    second: str | None
    style: str

    @property
    def majority(self) -> str:
        """The language of most characters."""
        return max(self.characters, key=lambda one: (self.characters[one], one))

    @property
    def other_share(self) -> float:
        """Share of characters that are not in the majority's language."""
        return 1 - self.characters[self.majority] / sum(self.characters.values())

    @property
    def clear(self) -> bool:
        """Whether the shares of the two languages differ by more than 10 points."""
        return 1 - 2 * self.other_share > 0.1

    @property
    def pair(self) -> str:
        """The two languages, that of most characters first."""
        others = sorted(set(self.characters) - {self.majority})
        return " + ".join([self.majority, *others])

    def han_only(self) -> list[int]:
        """Lines of Japanese without kana: the places of them."""
        return [
            place
            for place, (text, language) in enumerate(self.lines)
            if language == "jpn" and HAN.search(text) and not KANA.search(text)
        ]


def load_pages(folder: Path) -> list[Page]:
    """All mixed pages of `4_langid`, in their order.

    Raises ValueError where a line of two languages cannot be told apart.
    """
    return [_page(row) for row in read_rows(folder / "mixed_pages.jsonl.zst")]


def _page(row: Mapping[str, Any]) -> Page:
    characters: Counter[str] = Counter()
    letters: Counter[str] = Counter()
    lines = []
    for text, label in zip(row["text"].split("\n"), row["line_langs"], strict=True):
        languages = [to_iso639_3(one) for one in label.split("+")]
        cut = len(text) if len(languages) == 1 else _bracket(text, row["id"])
        for language, part in ((languages[0], text[:cut]), (languages[-1], text[cut:])):
            characters[language] += len(part)
            letters[language] += sum(map(str.isalpha, part))
        lines.append((text, "+".join(languages)))
    second = None if row["second_lang"] is None else to_iso639_3(row["second_lang"])
    main = to_iso639_3(row["main_lang"])
    return Page(row["id"], row["text"], tuple(lines), characters, letters, main, second, row["style"])


def _bracket(text: str, page: str) -> int:
    """Place of the bracket that holds the line's second language: the one that the line's last character closes."""
    depth = 0
    for place in range(len(text) - 1, 0, -1):
        depth += (text[place] == CLOSES) - (text[place] == OPENS)
        if depth == 0:
            break
    else:
        place = 0
    if not text.endswith(CLOSES) or place == 0:
        raise ValueError(f"page {page}: expected a sentence and another in brackets, found {text!r}")
    return place


# -- forms of Chinese -------------------------------------------------------------------------------


FORMS = {"zh": "zho_Hans", "zh-Hant": "zho_Hant", "zh_TW": "zho_Hant"}
LINE_HAN = 20
"""Han characters from which on a line is judged by itself."""


def chinese_texts(data: Path) -> dict[str, list[str]]:
    """Chinese documents by form, `zho_Hans` or `zho_Hant`: the good and short ones of `2_text`, all of `3_neardup`.

    Their labels are those of their sources: manuals that are translated in part are among them. Some of what `3_neardup`
    calls zh may be in either form, so that only its Traditional ones are taken.
    """
    gold = {
        row["id"]: FORMS[row["lang"]]
        for row in read_rows(data / "2_text" / "gold.jsonl.zst")
        if row["lang"] in FORMS and row["quality"] in ("good", "short")
    }
    texts: dict[str, list[str]] = {"zho_Hans": [], "zho_Hant": []}
    for path in sorted((data / "2_text").glob("crawl-*.jsonl.zst")):
        for row in read_rows(path):
            if row["id"] in gold:
                texts[gold[row["id"]]].append(row["text"])
    for path in sorted((data / "3_neardup").glob("docs-*.jsonl.zst")):
        texts["zho_Hant"] += [row["text"] for row in read_rows(path) if FORMS.get(row["lang"]) == "zho_Hant"]
    return {form: list(dict.fromkeys(ones)) for form, ones in texts.items()}


def chinese_lines(texts: Iterable[str]) -> list[str]:
    """Lines of documents that are Chinese for sure: Han characters enough, more than of anything else, and no kana; once each."""
    lines = dict.fromkeys(line for text in texts for line in text.split("\n"))
    return [line for line in lines if len(HAN.findall(line)) >= max(LINE_HAN, len(line) // 2) and not KANA.search(line)]
