"""Excerpts around a span: it is in them, it is marked, and nothing else of the document is."""

from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.matched_spans import MatchedSpan
from curation.report.excerpt import EXCERPT_CHARS, EXCERPT_LINES
from curation.report.span_excerpt import cut_around, find_marks, marked


def span_of(text: str, term: str, category: str = "spam", nth: int = 0) -> MatchedSpan:
    place = [match.start() for match in re.finditer(re.escape(term), text)][nth]
    begin = len(text[:place].encode())
    return MatchedSpan(category, term, begin, begin + len(term.encode()), "lists/zh.tsv:7")


def html(text: str, *spans: MatchedSpan, own: str | None = None) -> str:
    data = text.encode()
    excerpt = cut_around(data, spans[0].begin)
    return str(marked(excerpt.text, find_marks(data, excerpt, spans, own)))


@pytest.mark.parametrize(
    "filler", ["x", "words and blanks ", "汉", "かな。", "😀", "e\u0301 ", "a\n", "\r\n", "a\r\n", "\n\n\n"]
)
@pytest.mark.parametrize("before", [0, 1, 37, 119, 121, 500, 5000])
def test_the_span_is_shown_and_marked(filler: str, before: int) -> None:
    """In any script, wherever it stands, with text on either side, and within the limits of an excerpt."""
    text = filler * before + "赌场online" + filler * 3000
    data = text.encode()
    span = span_of(text, "赌场online")
    excerpt = cut_around(data, span.begin)
    assert len(excerpt.text) <= EXCERPT_CHARS
    assert excerpt.text.count("\n") <= EXCERPT_LINES
    (mark,) = find_marks(data, excerpt, [span])
    assert excerpt.text[mark.begin : mark.end] == "赌场online"
    assert "\ufffd" not in excerpt.text
    assert data[excerpt.begin :].decode().replace("\r\n", "\n").startswith(excerpt.text.rstrip())
    if before > 400 and filler.strip():
        assert excerpt.begin > 0


def test_a_short_document_is_shown_whole() -> None:
    text = "a menu\n" * 3 + "casino"
    assert cut_around(text.encode(), len(text) - 3).begin == 0


def test_marks_name_their_term_and_rule() -> None:
    """Escaped, masked; another category is marked otherwise; overlapping ones are one mark with both names."""
    text = 'buy <b>"pills"</b> at the casino now, casino bonus'
    pills, casino = span_of(text, '"pills"', "drugs"), span_of(text, "casino", "gambling")
    bonus = span_of(text, "casino bonus", "gambling")
    again = span_of(text, "casino", "spam", 1)
    found = html(text, casino, pills, bonus, again, own="gambling")
    assert '<mark title="gambling: casino (zh.tsv:7)">casino</mark>' in found
    assert '<mark class="other" title="drugs: &#34;pills&#34; (zh.tsv:7)">&#34;pills&#34;</mark>' in found
    assert '<mark title="spam: casino (zh.tsv:7); gambling: casino bonus (zh.tsv:7)">casino bonus</mark>' in found
    assert "<b>" not in found


def test_a_masked_account_stays_masked_in_a_mark() -> None:
    """In the text, and in the title, where a list of one's own names an account."""
    text = "加微信：abc_0000 马上上车"
    found = html(text, span_of(text, "微信：abc_0000"))
    assert "abc_0000" not in found
    assert '<mark title="spam: 微信：•••••••• (zh.tsv:7)">微信：••••••••</mark>' in found


def test_an_account_at_the_beginning_of_the_cut_is_masked() -> None:
    """Masked first, then cut: half of it would be none."""
    for shift in range(40):
        text = "y" * 600 + " VX：made_up_account_0 " + "z" * (90 + shift) + " casino " + "w" * 600
        shown = cut_around(text.encode(), text.encode().index(b"casino")).text
        assert "account" not in shown
        assert "up_" not in shown


@given(
    st.text(max_size=900),
    st.lists(st.tuples(st.integers(0, 4000), st.integers(1, 4000)), max_size=6),
    st.integers(-5, 5000),
)
def test_any_spans_break_nothing(text: str, places: list[tuple[int, int]], place: int) -> None:
    """Beyond the text, inside of a character, overlapping: the marked text is the excerpt and nothing more."""
    data = text.encode("utf-8", "replace")
    spans = [MatchedSpan("spam", "t", begin, begin + length, "f:1") for begin, length in places]
    excerpt = cut_around(data, place)
    marks = find_marks(data, excerpt, spans)
    assert all(one.begin < one.end <= len(excerpt.text) for one in marks)
    assert all(one.end <= other.begin for one, other in itertools.pairwise(marks))
    marked(excerpt.text, marks)
