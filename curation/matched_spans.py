"""Where the terms of `safety_terms` stand in a document, as its score `matched` holds them.

The column is a JSON list of `[category, term, first byte, byte behind the last, rule]`, the heaviest first, with the rule as
`file:line`; null where no term was found. Takes what is there: a verdict file of another version may hold something else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import orjson

__all__ = ["MATCHED", "MatchedSpan", "different_terms", "read_spans"]

MATCHED = "matched"
"""Name of the score. It is no label: hardly two documents have the same."""
_FIELDS = 5
_MOST_BYTES = 2**62
"""No text is as long: what lies beyond is no place."""


class MatchedSpan(NamedTuple):
    """A term in a document."""

    category: str
    term: str
    """As its list writes it."""
    begin: int
    """Byte of the text, UTF-8."""
    end: int
    """Behind its last byte; more than `begin`."""
    rule: str
    """The list and the line of the term, `file:line`."""

    @property
    def place(self) -> str:
        """The rule without the folders of its list: `zh.tsv:14`."""
        return self.rule.replace("\\", "/").rpartition("/")[2]


def read_spans(cell: str | None) -> list[MatchedSpan]:
    """The spans of one document, the heaviest first; entries that are none are left out."""
    if not cell:
        return []
    try:
        entries = orjson.loads(cell)
    except orjson.JSONDecodeError:
        return []
    return [span for entry in entries if (span := _span(entry))] if isinstance(entries, list) else []


def _span(entry: object) -> MatchedSpan | None:
    """Called for every span of a run: types as JSON gives them, so no boolean passes for a number."""
    if type(entry) is not list or len(entry) < _FIELDS:
        return None
    category, term, begin, end, rule = entry[:_FIELDS]
    if type(category) is not str or type(term) is not str or type(rule) is not str:
        return None
    if type(begin) is not int or type(end) is not int or not 0 <= begin < end <= _MOST_BYTES:
        return None
    return MatchedSpan(category, term, begin, end, rule)


def different_terms(spans: Iterable[MatchedSpan]) -> Iterator[tuple[MatchedSpan, int]]:
    """Each term once, where it stands first in the list, with how often it stands there; in the order of the list."""
    found: dict[tuple[str, str, str], tuple[MatchedSpan, int]] = {}
    for span in spans:
        key = (span.category, span.term, span.rule)
        first, times = found.get(key, (span, 0))
        found[key] = (first, times + 1)
    yield from found.values()
