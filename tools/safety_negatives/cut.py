"""Makes documents plain, and cuts pieces of all lengths out of them, from two words to a page."""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterator

from tools.safety_negatives.collect import Document, simplified, traditional
from tools.safety_negatives.texts import TRADITIONAL, Text, draw

__all__ = [
    "SENTENCE",
    "form_of",
    "is_in_script",
    "is_plain",
    "is_unclean",
    "pieces",
    "prepared",
]

CLOSING = "」』”’）)】》\"'"
SENTENCE = re.compile(
    rf"[^\n]+?(?:[。！？!?؟।။።…]+[{CLOSING}]*|\.[{CLOSING}]*(?=\s)|\n|$)\n*"  # an end mark of any script, or of the line
)
LONGEST_SENTENCE = 1000
SHORTEST_PIECE, LONGEST_PIECE = 12, 1250
DENSE = ("zh", TRADITIONAL, "ja", "th", "km", "lo", "my", "yue", "ko")
"""Languages whose characters say more."""
MAIN = ("zh", TRADITIONAL, "ja", "en", "ko")

_SCRIPTS = {
    "CYRILLIC": "ru uk bg sr mk be kk ky mn tt tg", "ARABIC": "ar fa ur ps ug", "HEBREW": "he yi", "GREEK": "el",
    "DEVANAGARI": "hi mr ne", "BENGALI": "bn", "TAMIL": "ta", "TELUGU": "te", "MALAYALAM": "ml", "GUJARATI": "gu",
    "GURMUKHI": "pa", "KANNADA": "kn", "GEORGIAN": "ka", "ARMENIAN": "hy", "SINHALA": "si", "KHMER": "km", "LAO": "lo",
    "MYANMAR": "my", "ETHIOPIC": "am", "THAI": "th", "HANGUL": "ko", "CJK": "zh zh-Hant yue",
}  # fmt: skip
SCRIPTS: dict[str, tuple[str, ...]] = {lang: (name,) for name, langs in _SCRIPTS.items() for lang in langs.split()}
SCRIPTS["ja"] = ("CJK", "HIRAGANA", "KATAKANA")
TWO_SCRIPTS = ("sr",)

UNCLEAN = re.compile(
    r"porn|f[u]ck|\bcock\b|blowjob|hentai|做爱|做愛|嫖|裸聊|操你|幹你|섹스|씨발|시발|자지|보지\b|nigg|\bcunt|пизд|\bху[йяе]|\bбля",
    re.IGNORECASE,
)
"""What would be no harmless row, in whatever source."""

UNTRANSLATED_SOURCES = (
    "opensource.guide", "spree_i18n", "django-oscar", "gnome", "bitcoin.org", "react", "typescript-docs", "ruby-lang.org",
    "tldr", "contributor-covenant",
)  # fmt: skip
"""Translations in which lines were left in English."""


def is_unclean(text: str) -> bool:
    return UNCLEAN.search(text) is not None


def form_of(text: str) -> str | None:
    """zh or zh-Hant by the characters that one of them lacks; None where there are as many of both."""
    traditional_only = sum(a != b for a, b in zip(simplified(text), text, strict=False))
    simplified_only = sum(a != b for a, b in zip(traditional(text), text, strict=False))
    if traditional_only == simplified_only:
        return None
    return TRADITIONAL if traditional_only > simplified_only else "zh"


def is_in_script(text: str, lang: str, least: float = 0.4) -> bool:
    """Whether so many of its letters are of the script of its language."""
    wanted = SCRIPTS.get(lang)
    if wanted is None or lang in TWO_SCRIPTS:
        return True
    letters = [char for char in text if char.isalpha()]
    return sum(unicodedata.name(char, "").startswith(wanted) for char in letters) >= least * len(letters)


def is_plain(text: str, lang: str) -> bool:
    """Whether it is words: letters enough, and different ones."""
    kinds = Counter(unicodedata.category(char)[0] for char in text)
    letters = kinds["L"] + kinds["M"]
    if "\ufffd" in text or letters / len(text) <= 0.35:
        return False
    return (letters >= 10 and len(set(text)) > 8) or (lang in MAIN and letters >= 8)


def prepared(document: Document, english: Collection[str]) -> Document:
    """With lines of English taken out of translations, in one form of Chinese, and without line ends inside of paragraphs."""
    one = document.text
    lang, text = one.lang, one.text.replace("\r\n", "\n")
    if lang != "en" and one.source in UNTRANSLATED_SOURCES:
        text = "\n".join(line for line in text.split("\n") if line.strip() not in english)
    if lang == "zh" and one.source in ("tatoeba", "treebanks"):
        text = simplified(text)
    if lang in ("zh", TRADITIONAL) and one.source == "common-voice":
        lang = form_of(text) or lang
    if one.source in ("rust-book-ko", "ruby-lang.org") or (one.source == "books" and lang in ("en", "nl")):
        text = re.sub(r"(?<!\n)\n(?!\s*(?:\n|[-*•+]|\d+[.)]))", " ", text)
    return document._replace(text=one._replace(lang=lang, text=re.sub(r"\n[ \t]*\n\s*", "\n\n", text)))


def _sentences(text: str) -> Iterator[str]:
    for match in SENTENCE.finditer(text):
        sentence = match.group(0)
        while len(sentence) > LONGEST_SENTENCE:
            place = max(sentence.rfind(mark, 200, 900) for mark in " ,，、;；")
            place = place + 1 if place > 0 else 900
            yield sentence[:place]
            sentence = sentence[place:]
        yield sentence


def pieces(document: Text, most: int) -> Iterator[str]:
    """Up to so many pieces of a document, spread over it: sentences in a row, as long as chance wants, by their logarithm."""
    sentences = list(_sentences(document.text))
    shortest, longest = (12, 700) if document.lang in DENSE else (20, 1200)
    who = (document.source, document.document, document.lang)
    for number in range(most if sentences else 0):
        length = math.exp(math.log(shortest) + draw("len", *who, number) * (math.log(longest) - math.log(shortest)))
        start = int((number + draw("st", *who, number)) / most * len(sentences))
        piece = ""
        for sentence in sentences[start:]:
            if piece and len(piece) + len(sentence) > max(length * 1.25, shortest):
                break
            piece += sentence
            if len(piece) >= length:
                break
        piece = piece.strip()
        if max(SHORTEST_PIECE, shortest * 0.9) <= len(piece) <= LONGEST_PIECE:
            yield piece
