"""Identities: equal for what is the same, different for what is not."""

from __future__ import annotations

import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.ids import canonical_json, digest8, doc_id, normalise, text_id


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("café", "cafe\u0301", True),
        ("a\r\nb\rc", "a\nb\nc", True),
        ("  text \n", "text", True),
        ("\u3000全角\u3000", "全角", True),
        ("Text", "text", False),
        ("a  b", "a b", False),
        ("ﬁ", "fi", False),
        ("Ａ", "A", False),
        ("text.", "text", False),
        ("\ufefftext", "text", False),
    ],
)
def test_text_id_is_equal_exactly_under_the_documented_normalisation(one: str, other: str, same: bool) -> None:
    """NFC, line ends and outer blanks do not count; case, inner blanks, punctuation and NFKC forms do."""
    assert (text_id(one) == text_id(other)) is same


@given(st.text())
def test_normalisation_is_idempotent(text: str) -> None:
    """Normalising twice changes nothing more, and the result is NFC."""
    once = normalise(text)
    assert normalise(once) == once
    assert unicodedata.is_normalized("NFC", once)


def test_known_answers() -> None:
    """Frozen: a changed identity would silently break every blacklist and index."""
    assert text_id("hello\r\nworld ").hex() == "26c60a61d01db5836ca70fefd44a6a01"
    assert doc_id("file.jsonl", 10, 0, text_id("hello\nworld")).hex() == "b8f75dc819145669391e9436e4dbda7d"
    assert digest8({"b": 1, "a": [1, "ä"]}) == digest8({"a": [1, "ä"], "b": 1})
    assert canonical_json({"b": 1, "a": "ä"}) == '{"a":"ä","b":1}'


def test_doc_id_tells_places_apart() -> None:
    """Same text at another place, row or file is another occurrence."""
    content = text_id("x")
    ids = {
        doc_id("a", 0, 0, content),
        doc_id("a", 1, 0, content),
        doc_id("a", 0, 1, content),
        doc_id("b", 0, 0, content),
    }
    assert len(ids) == 4


def test_a_text_made_to_take_hours_takes_none() -> None:
    """Marks in a row without end are not put in order; their identity is that of the text as it stands."""
    marks = "a" + "\u0301\u0316" * 500_000
    begun = time.process_time()

    assert normalise(marks) == marks
    assert time.process_time() - begun < 5
    fewer = "a" + "\u0301\u0316" * 400
    assert normalise(fewer) == unicodedata.normalize("NFC", fewer)
