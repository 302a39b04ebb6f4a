"""Phrases that tell junk from text: forum filler, furniture of pages, sales talk, placeholders.

`phrases.tsv` has them in many languages, by class:

| class | is | counts |
| --- | --- | --- |
| filler | a whole post of a forum that says nothing: "first!", "thanks for sharing" | where a line is nothing else |
| head | what stands before a post: floor and quote numbers, user, date | for the filler after it |
| menu | an item of a menu or a bar of buttons: "home", "share", "log in" | where a line is nothing else |
| furniture | a phrase of footers, cookie notices, share and log-in buttons | everywhere |
| call | plain sales talk and calls to action: "call today for a free quote" | everywhere |
| placeholder | text that holds a place: "your text here" | everywhere |
| lorem | a word of lorem ipsum | in runs of six and more, a quarter of them long |

So "share" in a sentence is no furniture, a row of share buttons is; a reply "thanks!" does not make a good thread
filler, since a long line weighs as many; and real Latin has words of lorem ipsum, but hardly six in a row.
Case, punctuation and blanks do not count. There are no lists of what is offered (drugs, bets, sex): only of how.
Costs about 2 ns a byte, see `phrase_visit`; the tables take 0.6 s to make, once a process.

Ours. C4 (Raffel et al. 2020) drops pages with "lorem ipsum" and cuts lines that name JavaScript or a policy; RefinedWeb
and DCLM cut lines of buttons and counters. All of those know English only.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curation.errors import ConfigError
from curation.filters.rules.automaton import ANYWHERE, LINE, NUMBER, Automaton, Phrase, automaton_of
from curation.filters.rules.parts import Parts, hashes_of, parts_of
from curation.filters.rules.phrase_visit import (
    CALL,
    CALL_PHRASES,
    CALLED,
    FILLER,
    FILLERS,
    FURNISHED,
    FURNITURE,
    FURNITURE_PHRASES,
    HEAD,
    HELD,
    LONG,
    LOREM,
    MENU,
    MOST_WORDS,
    N_COUNTS,
    PLACEHOLDER,
    SHORT,
    TEXT,
    Lorem,
    Words,
    lorem_of,
    visit_lines,
    visit_words,
)
from curation.records import ScoreColumn
from curation.text.spans import Int64s

__all__ = ["COLUMNS", "measure", "read_phrases", "shipped_table", "tables_of"]

COLUMNS = (
    ScoreColumn("filler_lines", pa.float32(), "share", "lines, long ones weighing more, that are only forum filler"),
    ScoreColumn("furniture_words", pa.float32(), "share", "words in menus, footers, cookie notices and buttons"),
    ScoreColumn("call_words", pa.float32(), "share", "words in phrases of sales talk and calls to action"),
    ScoreColumn("placeholder_words", pa.float32(), "share", "words of lorem ipsum and other placeholder text"),
)

CLASSES: Mapping[str, int] = {
    "filler": FILLER,
    "head": HEAD,
    "menu": MENU,
    "furniture": FURNITURE,
    "call": CALL,
    "placeholder": PLACEHOLDER,
    "lorem": LOREM,
}
EVERYWHERE = FURNITURE | CALL | PLACEHOLDER
IN_LINES = FILLER | HEAD | MENU | FURNITURE | CALL
LONG_LETTERS = 5
"""Letters of a long word of lorem ipsum."""
FEWEST = {FURNITURE_PHRASES: 3, CALL_PHRASES: 2}
"""Phrases of furniture and of sales talk in a text from which on they count: one "read more" proves nothing."""
ACCENTLESS = frozenset("es pt fr it ca cs pl ro hu tr vi sv da nl".split())
"""Languages whose forums often leave accents out."""


def read_phrases(table: str) -> Iterator[tuple[int, str]]:
    """Class and phrase for each phrase of a table in the form of `phrases.tsv`, with the ways it is also written.

    Raises ConfigError for a line that has not a known class, a language and phrases.
    """
    for number, line in enumerate(table.splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        cells = line.split("\t")
        if len(cells) != 3 or cells[0] not in CLASSES:
            raise ConfigError(
                f"line {number} of the table of phrases must be class, language, phrases between tabs, the class one "
                f"of {', '.join(CLASSES)}; found {line[:60]!r}"
            )
        for phrase in cells[2].split(" | "):
            for variant in _ways_to_write(phrase.strip(), cells[1]):
                yield CLASSES[cells[0]], variant


def _ways_to_write(phrase: str, language: str) -> set[str]:
    """A phrase as listed, with typographic apostrophes, with Turkish capitals, and without accents."""
    ways = {phrase}
    if language == "tr":
        ways |= {" ".join("\u0130" + word[1:] if word[0] == "i" else word for word in phrase.split())}
    if language in ACCENTLESS:
        bare = "".join(c for c in unicodedata.normalize("NFD", phrase) if not unicodedata.combining(c))
        ways |= {bare.replace("\u0131", "i").replace("\u0142", "l").replace("\u0111", "d")}
    return ways | {way.replace("'", "\u2019") for way in ways}


@cache
def _shipped() -> tuple[Automaton, Lorem]:
    return tables_of(shipped_table())


def shipped_table() -> str:
    """The table of phrases that is part of the package."""
    return files(__package__).joinpath("phrases.tsv").read_text("utf-8")


def tables_of(table: str) -> tuple[Automaton, Lorem]:
    """The trie of all phrases and the table of single words.

    Raises ConfigError for a phrase that is too long, or too short for its class.
    """
    listed = sorted(set(read_phrases(table)))
    found = parts_of(pa.array([phrase for _, phrase in listed], pa.large_string()))
    (zero,) = hashes_of(["0"]).tolist()
    phrases: list[Phrase] = []
    lorem: dict[int, int] = {}
    offsets = found.words.offsets
    for (bits, phrase), begin, end in zip(listed, offsets[:-1], offsets[1:], strict=True):
        words = tuple(int(NUMBER) if word == zero else word for word in found.hashes[begin:end].tolist())
        if not 1 <= len(words) <= MOST_WORDS or (bits == LOREM and len(words) > 1):
            raise ConfigError(
                f"a phrase needs 1 to {MOST_WORDS} words, one of class lorem 1, found {len(words)} in {phrase!r}"
            )
        if bits == LOREM:
            lorem[words[0]] = LONG if len(phrase) >= LONG_LETTERS else SHORT
            continue
        if bits & IN_LINES:
            phrases.append(Phrase(words, bits, LINE))
        if bits & EVERYWHERE:
            phrases.append(Phrase(words, bits, ANYWHERE))
    return automaton_of(phrases), lorem_of(lorem)


def measure(parts: Parts) -> dict[str, npt.NDArray[Any]]:
    """The columns of `COLUMNS`, float32[n] each; a share of nothing is 0."""
    trie, lorem = _shipped()
    counts = np.zeros((len(parts.offsets) - 1, N_COUNTS), np.int64)
    marked = np.zeros(len(parts.hashes), np.uint8)
    words = Words(parts.data, parts.hashes, parts.word_kinds, *parts.words[:2], parts.word_chars)
    visit_lines(trie, words, parts.lines, parts.line_words, marked, counts)
    visit_words(trie, lorem, words, parts.words.offsets, marked, counts)
    n_words = np.diff(parts.words.offsets)
    return {
        "filler_lines": _share(counts[:, FILLERS], counts[:, FILLERS] + counts[:, TEXT]),
        "furniture_words": _share(_where_many(counts, FURNISHED, FURNITURE_PHRASES), n_words),
        "call_words": _share(_where_many(counts, CALLED, CALL_PHRASES), n_words),
        "placeholder_words": _share(counts[:, HELD], n_words),
    }


def _where_many(counts: Int64s, words: int, phrases: int) -> Int64s:
    """Words counted, where they are in enough phrases to tell: int64[n]."""
    return np.where(counts[:, phrases] < FEWEST[phrases], 0, counts[:, words])


def _share(part: Int64s, whole: Int64s) -> npt.NDArray[np.float32]:
    return (part / np.maximum(whole, 1)).astype(np.float32)
