"""Sets of rules with their limits: those of others as their authors ship them, and our own.

What differs from the authors' own programs is what a word, a line's end and a stop word are: here they are those of the
text's own script, for every preset; and documents are judged, never edited, so rules that cut lines (C4, RefinedWeb)
become measures of what would be left.

In scripts without blanks a word of `curation.text` is one character. A limit on runs of n words is applied there to
runs of as many characters as n words have (1.6 characters a word in Chinese, 2 in Japanese, as `length` counts them),
and not at all where that is more than ten, as in Thai. Mean word length is undefined there, so its limits do not apply.
A Korean word is counted in syllables, of which it has 2.7 on average: it may be as short as FineWeb-2 lets it be.
Thai and Lao end few sentences with a mark: rules that count sentences are off there.

Three rules of C4, which FineWeb has too, are stricter or looser here than there: placeholder_words finds phrases of any
language beside "lorem ipsum"; a sentence needs an end mark, where datatrove's splitter counts one without; and FineWeb's
count of sentences is of all lines, datatrove's of those that C4's other rules leave.

| preset | source |
| --- | --- |
| gopher | Rae et al. 2021, appendix A.1, with the numbers of datatrove's GopherQuality and GopherRepetition filters |
| c4 | Raffel et al. 2020, section 2.2, with datatrove's numbers |
| fineweb | Penedo et al. 2024: Gopher, C4 without its rule on line ends, and three rules of their own |
| fineweb2 | Penedo et al. 2025: the limits of each language from `fineweb2.tsv`; English, which is not in it, as fineweb |
| massive | ours: `limits.tsv`, from good text of many languages by tools/make_rule_limits.py |
| none | nothing: only rules that the config names are on |
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

from curation.filters.length import LETTERS_PER_UNIT
from curation.filters.rules.limits import DEFAULT, Limits, read_limits, read_wide
from curation.text import Script

__all__ = ["PRESETS", "preset_limits"]

TOP = {f"top_{n}gram": n for n in range(2, 5)}
REPEATED = {f"duplicate_{n}gram": n for n in range(5, 11)}

CHARACTERS_PER_WORD: Mapping[str, float] = {
    "Hani": LETTERS_PER_UNIT[Script.HAN],
    "Yiii": LETTERS_PER_UNIT[Script.YI],
    "Jpan": 2.0,
    **dict.fromkeys(
        ("Thai", "Laoo", "Khmr", "Mymr", "Tale", "Talu", "Lana", "Tavt", "Java", "Bali"), LETTERS_PER_UNIT[Script.THAI]
    ),
}
"""Scripts without blanks: letters that say what one English word says. Japanese mixes Han (1.6) and kana (3.3)."""

SHORT_KOREAN_WORDS = 1.0

NEED_END_MARKS = frozenset({"few_sentences", "kept_sentences"})
WITHOUT_END_MARKS = ("und_Thai", "und_Laoo")
"""Scripts that end most sentences with a blank: numbers of sentences mean nothing there."""

GOPHER: Mapping[str, float] = {
    "few_units": 50,
    "many_units": 100_000,
    "short_words": 3,
    "long_words": 10,
    "hash_per_word": 0.1,
    "ellipsis_per_word": 0.1,
    "bullet_lines": 0.9,
    "ellipsis_lines": 0.3,
    "letter_words": 0.8,
    "stop_words": 2,
    "duplicate_lines": 0.3,
    "duplicate_paragraphs": 0.3,
    "duplicate_line_characters": 0.2,
    "duplicate_paragraph_characters": 0.2,
    "top_2gram": 0.2,
    "top_3gram": 0.18,
    "top_4gram": 0.16,
    "duplicate_5gram": 0.15,
    "duplicate_6gram": 0.14,
    "duplicate_7gram": 0.13,
    "duplicate_8gram": 0.12,
    "duplicate_9gram": 0.11,
    "duplicate_10gram": 0.1,
}
C4: Mapping[str, float] = {"kept_sentences": 5, "curly_brackets": 0, "placeholder_words": 0}
FINEWEB: Mapping[str, float] = {
    **GOPHER,
    "few_sentences": 5,
    "curly_brackets": 0,
    "placeholder_words": 0,
    "end_mark_lines": 0.12,
    "short_lines": 0.67,
    "duplicate_line_characters": 0.01,
    "newlines_per_word": 0.3,
}
FINEWEB2: Mapping[str, float] = {
    **{name: GOPHER[name] for name in GOPHER if "paragraph" not in name},
    "duplicate_line_characters": 0.1,
}
"""What is the same for all languages; the rest stands in the table."""


def _alike(limits: Mapping[str, float]) -> dict[str, dict[str, float | None]]:
    """One limit for all labels, but for runs of words in scripts without blanks."""
    found: dict[str, dict[str, float | None]] = {name: {DEFAULT: limit} for name, limit in limits.items()}
    for script, characters in CHARACTERS_PER_WORD.items():
        for name, limit in _in_characters(limits, characters).items():
            found[name][f"und_{script}"] = limit
    if "short_words" in found:
        found["short_words"]["und_Kore"] = SHORT_KOREAN_WORDS
    for name in NEED_END_MARKS & found.keys():
        found[name] |= dict.fromkeys(WITHOUT_END_MARKS)
    return found


def _in_characters(limits: Mapping[str, float], characters: float) -> dict[str, float | None]:
    """Limits of runs of words, for runs of characters that are as long: None for runs that no limit speaks of."""
    found: dict[str, float | None] = {}
    for family in (TOP, REPEATED):
        by_length = {round(n * characters): limits[name] for name, n in family.items() if name in limits}
        found |= {name: by_length.get(n) for name, n in family.items() if name in limits}
    return found


def _fineweb2() -> Limits:
    """The table over what all languages share."""
    found = _alike(FINEWEB2)
    table = read_wide("fineweb2.tsv")
    for label in table["top_2gram"]:
        limits = {name: by_label[label] for name, by_label in table.items()}
        numbers = {name: limit for name, limit in limits.items() if limit is not None}
        script = "Hani" if label == "zho" else label.partition("_")[2]
        if label != DEFAULT and script in CHARACTERS_PER_WORD:
            limits |= _in_characters(numbers, CHARACTERS_PER_WORD[script])
        for name, limit in limits.items():
            found.setdefault(name, {})[label] = limit
    for name, limit in FINEWEB.items():
        found.setdefault(name, {})["eng"] = limit
    return found


PRESETS: Mapping[str, Callable[[], Limits]] = {
    "massive": lambda: read_limits("limits.tsv"),
    "gopher": lambda: _alike(GOPHER),
    "c4": lambda: _alike(C4),
    "fineweb": lambda: _alike(FINEWEB),
    "fineweb2": _fineweb2,
    "none": dict,
}
"""How the limits of each preset are made."""


@cache
def preset_limits(name: str) -> Limits:
    """The limits of a preset, by rule and key."""
    return PRESETS[name]()
