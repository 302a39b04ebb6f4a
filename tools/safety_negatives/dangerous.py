"""Harmless sentences with the words of crime: headlines, articles of law, novels. They do more than ten times as many others.

`dangerous_words.tsv` has an expression for each language.
"""

from __future__ import annotations

import csv
import gzip
import io
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

from tools.safety_negatives.choose import Row, row_of
from tools.safety_negatives.clones import read, tree
from tools.safety_negatives.collect import Document
from tools.safety_negatives.cut import SENTENCE, form_of, is_in_script, is_plain, is_unclean
from tools.safety_negatives.texts import TRADITIONAL, Text, draw

__all__ = ["choose_dangerous", "read_headlines", "words"]

WORDS = Path(__file__).resolve().parent / "dangerous_words.tsv"
HEADLINES = "tm4roon+jawikinews-headline-dataset"
MOST: Mapping[str, int] = {"ja": 900, "zh": 300, TRADITIONAL: 300, "en": 300, "ko": 200}
MOST_OF_OTHERS, MOST_HEADLINES = 70, 750
TECHNICAL = (
    "tldr", "chromium", "wikinews", "python-docs", "react", "django-oscar", "spree_i18n", "rust-book-ko", "trpl-zh",
    "typescript-docs", "songys-chatbot",
)  # fmt: skip
"""Sources that kill processes only, or are read elsewhere."""


@cache
def words() -> Mapping[str, re.Pattern[str]]:
    """Expression by language."""
    rows = [line.split("\t") for line in WORDS.read_text("utf-8").splitlines() if not line.startswith("#")]
    return {lang: re.compile(expression) for lang, expression in rows}


def read_headlines(clone: Path) -> Iterator[Text]:
    """Headlines of Japanese Wikinews and sentences of their articles, with such words."""
    expression = words()["ja"]
    for _, data in read(clone, list(tree(clone, "raw/"))[:1]):
        table = io.StringIO(gzip.decompress(data).decode("utf-8"))
        for cells in csv.reader(table, delimiter="\t", quoting=csv.QUOTE_NONE):
            if len(cells) < 3 or cells[0] == "id":
                continue
            article, headline = (re.sub(r"(?<![a-zA-Z]) | (?![a-zA-Z])", "", cell) for cell in cells[1:3])
            named = Text("ja", "news", "wikinews", "CC-BY-2.5", cells[0], "lines", headline)
            if expression.search(headline):
                yield named
            for sentence in re.findall(r"[^。]+。", article)[:4]:
                if expression.search(sentence):
                    yield named._replace(text=sentence.strip())
                    break
            first = re.match(r".+?。", article)
            if first and expression.search(headline) and draw(cells[0]) < 0.3:
                yield named._replace(text=f"{headline}\n{first[0]}")


def _sentences(documents: Iterable[Document]) -> Iterator[Text]:
    for text, role in documents:
        expression = words().get(text.lang)
        if role != "train" or expression is None or text.source in TECHNICAL:
            continue
        lang = text.lang
        if lang in ("zh", TRADITIONAL) and text.source in ("common-voice", "tatoeba"):
            lang = form_of(text.text) or lang
        for match in SENTENCE.finditer(text.text):
            sentence = match.group(0).strip()
            if (
                len(sentence) >= 18
                and words()[lang].search(sentence)
                and is_plain(sentence, lang)
                and is_in_script(sentence, lang)
            ):
                yield text._replace(lang=lang, text=sentence)


def choose_dangerous(headlines: Iterable[Text], documents: Iterable[Document], used: set[str]) -> list[Row]:
    """Rows of sentences that are not `used`, of all sources of a language in turn, Japanese headlines first."""
    pool: dict[str, dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    seen: set[str] = set()
    for text in (*headlines, *_sentences(documents)):
        plain = " ".join(text.text.split())
        key = re.sub(r"\W+", "", plain.casefold())
        if key not in seen and 12 <= len(plain) <= 400 and plain not in used and not is_unclean(plain):
            seen.add(key)
            pool[text.lang][text.source].append(row_of(text, plain, "train"))
    rows = [row for lang, sources in pool.items() for row in _in_turn(sources, MOST.get(lang, MOST_OF_OTHERS), lang)]
    return sorted(rows, key=lambda row: draw(row["text"]))


def _in_turn(sources: Mapping[str, list[Row]], most: int, lang: str) -> list[Row]:
    ordered = {name: sorted(rows, key=lambda row: draw("hl", row["text"])) for name, rows in sources.items()}
    found = ordered.pop("wikinews", [])[:MOST_HEADLINES] if lang == "ja" else []
    turn = 0
    while len(found) < most and any(turn < len(rows) for rows in ordered.values()):
        found += [rows[turn] for rows in ordered.values() if turn < len(rows)][: most - len(found)]
        turn += 1
    return found
