"""The rules: for each one the measure that it looks at, the side on which it drops, and where it comes from.

A rule is one measure and one side. Its name is its reason (`rules.duplicate_lines`) and its key in the config
(`rules: {duplicate_lines: 0.3}`). The formula of a measure stands with its score column; limits stand in presets.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

__all__ = ["BY_NAME", "RULES", "Rule"]

Side = Literal["max", "min"]


@dataclass(frozen=True, slots=True)
class Rule:
    """A document is dropped where the measure is above (`max`) or below (`min`) the limit; equal is kept."""

    name: str
    measure: str
    """The score column."""
    side: Side
    unit: str
    """Of measure and limit; a `share` is 0 to 1."""
    sentence: str
    """Why a document is dropped."""
    source: str
    """Who has the rule, or one like it."""


def _rules(side: Side, unit: str, text: str) -> tuple[Rule, ...]:
    """Rules from lines `name | measure | sentence | source`; an empty measure is called as the rule."""
    cells = [[cell.strip() for cell in line.split("|")] for line in text.strip().splitlines()]
    return tuple(Rule(name, measure or name, side, unit, what, source) for name, measure, what, source in cells)


_JUNK = _rules(
    "max",
    "share",
    """
    replacement_characters | | too many of its characters were lost when it was decoded: U+FFFD, C1 controls | ours
    mojibake | | too many of its characters are letters read in the wrong encoding | ours, after ftfy
    misread_han | | too many of its Han letters are what UTF-8 shows in an East Asian encoding | ours
    inverted_case | | too many Cyrillic words begin small and go on in capitals: the wrong encoding, or Caps Lock | ours
    placeholder_words | | too many of its words are placeholder text: lorem ipsum, "your text here" | ours; C4
    disguised_letters | | too many of its letters mix alphabets within a word, are styled, or crossed out | ours; UTS 39
    filler_lines | | too many of its lines are forum filler: first!, +1, thanks for sharing | ours
    call_words | | too many of its words are plain sales talk: call today for a free quote, add to cart | ours
    number_rows | | too many of its lines are rows of numbers | ours
    furniture_words | | too many of its words are those of menus, footers, cookie notices and buttons | ours; DCLM
    loose_lines | | too many of its lines stand in runs of short lines without sentences: menus, chats, lists | ours
    loose_line_characters | | too many of its characters stand in runs of short lines without sentences | ours
    """,
)
_MISREAD = _rules(
    "max",
    "places",
    """
    misread_signs | | East Asian punctuation in it was read as Latin-1 | ours
    """,
)
_CONTACTS = _rules(
    "max",
    "per 100 English words",
    """
    contacts | | too many handles, invitation links and accounts of messengers for what it says | ours
    """,
)
_REPEATED = _rules(
    "max",
    "share",
    """
    top_word | | one word makes up too much of it: keyword stuffing | ours
    duplicate_lines | | too many of its lines repeat an earlier one | Gopher
    duplicate_line_characters | | too much of its text is in lines that repeat an earlier one | Gopher, FineWeb
    duplicate_paragraphs | | too many of its paragraphs repeat an earlier one | Gopher
    duplicate_paragraph_characters | | too much of its text is in paragraphs that repeat an earlier one | Gopher
    top_2gram | | its most frequent run of 2 words makes up too much of it | Gopher
    top_3gram | | its most frequent run of 3 words makes up too much of it | Gopher
    top_4gram | | its most frequent run of 4 words makes up too much of it | Gopher
    duplicate_5gram | | too much of it is in runs of 5 words that occurred before | Gopher
    duplicate_6gram | | too much of it is in runs of 6 words that occurred before | Gopher
    duplicate_7gram | | too much of it is in runs of 7 words that occurred before | Gopher
    duplicate_8gram | | too much of it is in runs of 8 words that occurred before | Gopher
    duplicate_9gram | | too much of it is in runs of 9 words that occurred before | Gopher
    duplicate_10gram | | too much of it is in runs of 10 words that occurred before | Gopher
    """,
)
_SIGNS = _rules(
    "max",
    "share",
    """
    longest_run | | one character, repeated without a break, makes up too much of it | ours
    single_letter_words | | too many of its words are single letters: letters spaced out | ours
    upper_case | | too many of its letters are capitals | ours; DCLM, by line
    digits | | too many of its characters are digits | NeMo Curator
    other_signs | | too many of its characters are neither letters, digits nor common punctuation | NeMo Curator
    blanks | | too many of its characters are blanks | NeMo Curator
    brackets | | too many of its characters are brackets | NeMo Curator
    links | | too many of its characters are in addresses of the web | NeMo Curator
    emoji | | too many of its characters are emoji | ours
    """,
)
_COUNTS = _rules(
    "max",
    "per English word",
    """
    hash_per_word | | it has too many # for its words | Gopher
    ellipsis_per_word | | it has too many ellipses for its words | Gopher
    newlines_per_word | | it has too many line breaks for what it says | FineWeb
    """,
)
_LINES = _rules(
    "max",
    "share",
    """
    bullet_lines | | too many of its lines begin with a bullet | Gopher
    ellipsis_lines | | too many of its lines end in an ellipsis | Gopher
    short_lines | | too many of its lines say less than 30 English characters would | FineWeb
    unended_sentences | | too many of its sentences have no end mark | NeMo Curator
    removable_words | | too many of its words are in lines of capitals, digits, counters or one word | RefinedWeb, DCLM
    """,
)
_FEW = (
    *_rules(
        "min",
        "share",
        """
        end_mark_lines | | too few of its lines end as sentences do in its script | FineWeb
        word_entropy | | its words are too few different ones, over and over | RedPajama-V2
        letter_words | | too few of its words have a letter | Gopher
        """,
    ),
    *_rules(
        "min",
        "words",
        """
        stop_words | | it has too few of the most frequent words of its language | Gopher
        """,
    ),
    *_rules(
        "min",
        "sentences",
        """
        few_sentences | sentences | it has too few sentences | C4
        kept_sentences | | too few sentences are left without lines of menus, policies and code | C4
        """,
    ),
)
_BOUNDS = (
    Rule("curly_brackets", "curly_brackets", "max", "per 1,000 characters", "it has too many curly brackets", "C4"),
    Rule("long_words", "mean_word_length", "max", "characters", "its words are too long on average", "Gopher"),
    Rule("short_words", "mean_word_length", "min", "characters", "its words are too short on average", "Gopher"),
    Rule("longest_word", "longest_word", "max", "characters", "it has a word that is too long to be one", "C4"),
    Rule("few_units", "units", "min", "English words", "it says too little", "Gopher"),
    Rule("many_units", "units", "max", "English words", "it says too much to be one document", "Gopher"),
)

RULES = (*_MISREAD, *_JUNK, *_CONTACTS, *_SIGNS, *_REPEATED, *_COUNTS, *_LINES, *_FEW, *_BOUNDS)
"""Every rule, in the order in which reasons are named: what says most about a document comes first."""

BY_NAME: Mapping[str, Rule] = {rule.name: rule for rule in RULES}
