"""Where stands in a text what a measure of `rules` counts: bytes, for marks in an excerpt.

Lines, words, repetitions and phrases are those that the measure itself counts; signs are looked for by expressions that say
the same of nearly all text. Measures of a whole text (means, entropy, what is too little) have no place. Loads the kernels
of `rules`, 0.5 s once a process, then under 1 ms a document.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from curation.matched_spans import MatchedSpan

if TYPE_CHECKING:
    from curation.filters.rules.automaton import Automaton
    from curation.filters.rules.parts import Parts
    from curation.filters.rules.phrase_visit import Lorem

__all__ = ["spans_of_measure"]

Place = tuple[int, int]
"""First byte and the byte behind the last."""

_IN_AN_ADDRESS = r"[^\s\"<>\[\](){}|\\^`]+"
_CAPITALS = "[A-Z\u00c0-\u00d6\u00d8-\u00de\u0391-\u03a9\u0410-\u042f]{2,}"
_CONTACT = r"@[A-Za-z0-9_]{5,}|\b(?:t|telegra?m|wa|line)\.me/\S*|\b(?:discord\.gg|bit\.ly)/\S*|[A-Za-z0-9_]{0,15}\d{5,15}[A-Za-z0-9_]{0,15}"
_SIGNS: Mapping[str, tuple[str, re.Pattern[str]]] = {
    "links": (
        "address",
        re.compile(rf"[A-Za-z][A-Za-z0-9+.-]{{0,9}}://{_IN_AN_ADDRESS}|\bwww\.{_IN_AN_ADDRESS}", re.I),
    ),
    "contacts": ("contact", re.compile(_CONTACT, re.I)),
    "hash_per_word": ("#", re.compile("#+")),
    "ellipsis_per_word": ("ellipsis", re.compile("\\.{3,}|\u2026+|\u3002{3,}")),
    "digits": ("digits", re.compile(r"\d(?:[\d.,:/ -]*\d)?")),
    "brackets": ("bracket", re.compile("[()\\[\\]{}\u3010\u3011\uff08\uff09\u300c\u300d]+")),
    "curly_brackets": ("curly bracket", re.compile("[{}]+")),
    "replacement_characters": ("lost when it was decoded", re.compile("[\ufffd\u0080-\u009f\ue000-\uf8ff]+")),
    "misread_signs": ("read as Latin-1", re.compile(r"\u00a1[^\w\s]")),
    "mojibake": (
        "read in the wrong encoding",
        re.compile("[\u00c2\u00c3\u00e2][\u0080-\u00bf\u0152-\u017e\u02c6-\u2122]+"),
    ),
    "emoji": ("emoji", re.compile("[\u2600-\u27bf\u2b50\u2b55\U0001f000-\U0001faff]+")),
    "blanks": ("blanks", re.compile(r"[^\S\n]{2,}")),
    "single_letter_words": ("single letters", re.compile(r"\b[^\W\d_](?: [^\W\d_]\b)+")),
    "upper_case": ("capitals", re.compile(rf"{_CAPITALS}(?:\s+{_CAPITALS})*")),
}
"""By measure what a mark is called, and what it is."""
_RUN = re.compile(r"(\S)\1{3,}")
_WORD = re.compile(r"\S+")
_REPEATS = re.compile(r"(top|duplicate)_(\d+)gram")


def spans_of_measure(measure: str, text: bytes) -> list[MatchedSpan]:
    """The places that a measure counts, as far as they can be pointed at; none of any other measure."""
    if measure in _SIGNS:
        what, expression = _SIGNS[measure]
        found = _by_characters(text, (match.span() for match in expression.finditer(text.decode("utf-8", "replace"))))
        return _named(measure, what, found, text)
    if measure in ("longest_run", "longest_word", "mean_word_length"):
        return _named(measure, measure.replace("_", " "), _longest(measure, text), text)
    if measure not in _PARTS and not _REPEATS.fullmatch(measure):
        return []
    from curation.filters.rules.parts import parts_of

    parts = parts_of(pa.array([text.decode("utf-8", "replace")], pa.large_string()))
    if match := _REPEATS.fullmatch(measure):
        size = int(match[2])
        places = _most_frequent(parts, size) if match[1] == "top" else _repeated_runs(parts, size)
        return _named(measure, f"run of {size} words that occurs more than once", places, text)
    what, find = _PARTS[measure]
    return _named(measure, what, find(parts), text)


def _named(measure: str, what: str, places: Iterator[Place] | list[Place], text: bytes) -> list[MatchedSpan]:
    return [MatchedSpan("rules", what, begin, end, measure) for begin, end in places if 0 <= begin < end <= len(text)]


def _by_characters(text: bytes, spans: Iterator[Place]) -> Iterator[Place]:
    """Places in characters, ascending, as places in bytes."""
    decoded = text.decode("utf-8", "replace")
    place, at = 0, 0
    for begin, end in spans:
        at += len(decoded[place:begin].encode("utf-8"))
        length = len(decoded[begin:end].encode("utf-8"))
        yield at, at + length
        place, at = end, at + length


def _longest(measure: str, text: bytes) -> Iterator[Place]:
    decoded = text.decode("utf-8", "replace")
    expression = _RUN if measure == "longest_run" else _WORD
    longest = max(expression.finditer(decoded), key=lambda match: len(match.group()), default=None)
    return _by_characters(text, iter([longest.span()] if longest else []))


# -- lines -------------------------------------------------------------------------------------


def _repeated_lines(parts: Parts) -> Iterator[Place]:
    seen: set[int] = set()
    for key, begin, end in zip(
        parts.line_hashes.tolist(), parts.lines.starts.tolist(), parts.lines.ends.tolist(), strict=True
    ):
        if begin < end and key in seen:
            yield begin, end
        seen.add(key)


def _repeated_paragraphs(parts: Parts) -> Iterator[Place]:
    seen: set[tuple[int, ...]] = set()
    keys: list[int] = []
    first = last = 0
    lines = zip(parts.line_hashes.tolist(), parts.lines.starts.tolist(), parts.lines.ends.tolist(), strict=True)
    for key, begin, end in [*lines, (0, 0, 0)]:
        if begin < end:
            first, last = (begin if not keys else first), end
            keys.append(key)
            continue
        if keys and tuple(keys) in seen:
            yield first, last
        seen.add(tuple(keys))
        keys = []


def _flagged(flag: str, wanted: bool, parts: Parts) -> Iterator[Place]:
    """Lines with a flag of `Line`, or without it."""
    from curation.filters.rules.parts import Line

    bit = Line[flag]
    for flags, begin, end in zip(
        parts.line_flags.tolist(), parts.lines.starts.tolist(), parts.lines.ends.tolist(), strict=True
    ):
        if begin < end and bool(flags & bit) is wanted:
            yield begin, end


# -- words -------------------------------------------------------------------------------------


def _runs(parts: Parts, size: int) -> list[tuple[int, ...]]:
    words = parts.hashes.tolist()
    return [tuple(words[i : i + size]) for i in range(len(words) - size + 1)]


def _merged(parts: Parts, runs: Iterator[int], size: int) -> Iterator[Place]:
    """Runs of words that begin at some words, those that touch as one."""
    begin = end = -1
    for first in runs:
        if first > end:
            if begin >= 0:
                yield int(parts.words.starts[begin]), int(parts.words.ends[end - 1])
            begin = first
        end = first + size
    if begin >= 0:
        yield int(parts.words.starts[begin]), int(parts.words.ends[end - 1])


def _repeated_runs(parts: Parts, size: int) -> Iterator[Place]:
    seen: set[tuple[int, ...]] = set()

    def again() -> Iterator[int]:
        for place, run in enumerate(_runs(parts, size)):
            if run in seen:
                yield place
            seen.add(run)

    return _merged(parts, again(), size)


def _most_frequent(parts: Parts, size: int) -> Iterator[Place]:
    runs = _runs(parts, size)
    counts = Counter(runs)
    if not counts:
        return iter(())
    widths = dict(zip(runs, range(len(runs)), strict=True))  # where each run stands last
    chars = parts.word_chars.tolist()
    top = max(
        counts, key=lambda run: counts[run] * sum(chars[widths[run] : widths[run] + size]) if counts[run] > 1 else 0
    )
    return _merged(parts, (place for place, run in enumerate(runs) if run == top), size)


@cache
def _listed() -> tuple[Automaton, Lorem]:
    """The shipped phrases, as the measure looks for them; 0.2 s, once a process."""
    from curation.filters.rules.phrases import shipped_table, tables_of

    return tables_of(shipped_table())


def _phrases(name: str, parts: Parts) -> Iterator[Place]:
    """Words that lie in phrases of a class, runs of them as one."""
    from curation.filters.rules.phrase_visit import N_COUNTS, Words, visit_lines, visit_words
    from curation.filters.rules.phrases import CLASSES

    trie, lorem = _listed()
    marked, counts = np.zeros(len(parts.hashes), np.uint8), np.zeros((1, N_COUNTS), np.int64)
    words = Words(parts.data, parts.hashes, parts.word_kinds, *parts.words[:2], parts.word_chars)
    visit_lines(trie, words, parts.lines, parts.line_words, marked, counts)
    visit_words(trie, lorem, words, parts.words.offsets, marked, counts)
    return _merged(parts, iter(np.flatnonzero(marked & CLASSES[name]).tolist()), 1)


_PARTS: Mapping[str, tuple[str, Callable[[Parts], Iterator[Place]]]] = {
    "duplicate_lines": ("line that equals an earlier one", _repeated_lines),
    "duplicate_line_characters": ("line that equals an earlier one", _repeated_lines),
    "duplicate_paragraphs": ("paragraph that equals an earlier one", _repeated_paragraphs),
    "duplicate_paragraph_characters": ("paragraph that equals an earlier one", _repeated_paragraphs),
    "bullet_lines": ("line with a bullet", partial(_flagged, "BULLET", True)),
    "ellipsis_lines": ("line that ends in an ellipsis", partial(_flagged, "ELLIPSIS", True)),
    "short_lines": ("short line", partial(_flagged, "SHORT", True)),
    "end_mark_lines": ("line that does not end as a sentence", partial(_flagged, "ENDED", False)),
    "top_word": ("most frequent word", partial(_most_frequent, size=1)),
    "furniture_words": ("menu, footer, cookie notice or button", partial(_phrases, "furniture")),
    "call_words": ("sales talk", partial(_phrases, "call")),
    "placeholder_words": ("placeholder text", partial(_phrases, "placeholder")),
}
