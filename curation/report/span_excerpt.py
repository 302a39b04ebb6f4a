"""Excerpts around a place of a document, with spans of it marked.

Nothing but the excerpt and its margins is decoded, whatever the length of the document. Masked before it is cut, as every
excerpt is; masking keeps the length, so that spans, which are bytes of the document, can be found in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from curation.matched_spans import MatchedSpan
from curation.report.excerpt import Excerpt, plain, shown, take
from curation.report.masking import mask

__all__ = ["Mark", "cut_around", "find_marks", "marked"]

LEAD_CHARS = 120
"""Characters before the place."""
LEAD_LINES = 4
_TITLE_CHARS = 240
_BORDER = re.compile(r"[\s。！？，、；]+")


@dataclass(frozen=True, slots=True)
class Mark:
    """Characters of an excerpt that a term is, or several terms that overlap."""

    begin: int
    end: int
    title: str
    own: bool
    """Of the category that the excerpt is about."""


def cut_around(data: memoryview | bytes, place: int, *, lead: int = LEAD_CHARS) -> Excerpt:
    """The excerpt in which byte `place` stands, `lead` characters behind its beginning or less."""
    whole = take(data)
    if not whole.cut:
        return whole
    place = _between_characters(data, min(max(place, 0), len(data)))
    low = _between_characters(data, max(0, place - 4 * lead))
    before = bytes(data[low:place]).decode("utf-8", "replace")
    cut = before[-lead:] if lead else ""
    breaks = [match.end() for match in re.finditer("\n", cut)]
    if len(breaks) > LEAD_LINES:
        cut = cut[breaks[-LEAD_LINES - 1] :]
    if not low and len(before) <= lead + LEAD_CHARS // 4 and len(breaks) <= LEAD_LINES:
        cut = before
    elif lead:
        border = _BORDER.search(cut, 0, len(cut) // 4)
        cut = cut[border.end() :] if border else cut
    return take(data, begin=place - len(cut.encode()))


def _between_characters(data: memoryview | bytes, place: int) -> int:
    """The first byte of the character in which a byte stands."""
    while 0 < place < len(data) and data[place] & 0xC0 == 0x80:
        place -= 1
    return place


def find_marks(
    data: memoryview | bytes, excerpt: Excerpt, spans: Iterable[MatchedSpan], own: str | None = None
) -> list[Mark]:
    """The spans that an excerpt shows, in order; those that overlap are one.

    Args:
        own: the category that the excerpt is about; None: all are its own.
    """
    last = min(excerpt.begin + 4 * len(excerpt.text), len(data))
    inside = sorted(
        (span for span in spans if span.end > excerpt.begin and span.begin < last),
        key=lambda span: (span.begin, span.end),
    )
    marks: list[Mark] = []
    for span in inside:
        begin, end = (_characters(data, excerpt.begin, min(place, last)) for place in (span.begin, span.end))
        begin, end = min(begin, len(excerpt.text)), min(end, len(excerpt.text))
        if begin >= end:
            continue
        title = f"{span.category}: {mask(span.term)} ({span.place})"
        is_own = own is None or span.category == own
        if marks and begin < marks[-1].end:
            before = marks.pop()
            titles = before.title if title in before.title else f"{before.title}; {title}"
            marks.append(Mark(before.begin, max(before.end, end), titles, before.own or is_own))
        else:
            marks.append(Mark(begin, end, title, is_own))
    return marks


def _characters(data: memoryview | bytes, begin: int, place: int) -> int:
    """How many characters of an excerpt that begins at a byte stand before another one."""
    text = bytes(data[begin : max(begin, place)]).decode("utf-8", "replace")
    return len(text.replace("\r\n", "\n"))


def marked(text: str, marks: Sequence[Mark]) -> Markup:
    """Text as HTML, escaped and made visible as `shown` does it, with marks that name their terms."""
    parts, end = [], 0
    for one in marks:
        kind = Markup("") if one.own else Markup(' class="other"')
        title = escape(plain(one.title[:_TITLE_CHARS]))
        inner = shown(text[one.begin : one.end])
        parts += [shown(text[end : one.begin]), Markup('<mark{} title="{}">{}</mark>').format(kind, title, inner)]
        end = one.end
    return Markup("").join([*parts, shown(text[end:])])
