"""Every measure of words, lines, signs and repetition equals a slow reading of its definition, however a batch is cut."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from curation.filters.rules.step import MEASURES
from tests.rules_measures import measures, measures_of_array
from tests.rules_oracle import measures_of
from tests.strategies import PIECES, any_text, cuts, hostile_text, markup_text

PHRASES = (
    *(
        "http://a.b/c?d=e, ",
        "see www.x.org. ",
        "A",
        "b ",
        "B ",
        "...",
        "。。",
        "…",
        "・",
        "!",
        "? ",
        '"',
        "）",
        "(",
        "- ",
    ),
    *(
        "* item\n",
        "• x\n",
        "{",
        "}",
        "###",
        "aaaa",
        "The ",
        "use of cookies ",
        "javascript ",
        "privacy policy ",
        "END OF.\n",
    ),
    *(
        "small.\n",
        "Слово ",
        "СЛОВО ",
        "ไทย ",
        "ελληνικά; ",
        "漢字。",
        "ああ！",
        "「はい。」",
        "3 likes\n",
        "K",
        "ſ",
        "wW",
        "://",
    ),
    *(" " * 70, "-" * 70, "lorem ipsum dolor sit amet, consectetur adipiscing elit sed do eiusmod tempor ", "\n\n"),
)
"""Pieces that some measure counts, and blocks longer than what a kernel takes at once."""

telling_text = st.lists(st.sampled_from((*PHRASES, *PIECES)), max_size=60).map("".join)
repeating_text = st.lists(st.sampled_from(("a ", "b ", "C ", "字", "."))).map("".join)
repeating_lines = st.lists(st.sampled_from(("x\n", " x\n", "y z\n", "\n", "漢\n"))).map("".join)


def assert_equal(found: dict[str, float | None], wanted: dict[str, float | None]) -> None:
    assert found.keys() == wanted.keys()
    for name, value in wanted.items():
        other = found[name]
        same = other is None if value is None else other is not None and math.isclose(other, value, rel_tol=1e-5)
        assert same, f"{name} is {other}, not {value}"


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.one_of(telling_text, repeating_text, repeating_lines, hostile_text, markup_text, any_text), max_size=4)
)
@example(["", "\n", "a", "#", "。", "\u0301", "a\u0301", "\U0010ffff"])
@example(["x" * 63 + "." + "y" * 64 + ". z", "://" * 40, "www." * 40, ")" * 130 + ".", "." * 130])
@example(["THE KELVIN K IS k and ſ is s: The the THE thE the THE the the the the the the the the."])
def test_measures_equal_their_definition(texts: list[str]) -> None:
    for text, found in zip(texts, measures(texts), strict=True):
        assert_equal(found, measures_of(text))


@settings(max_examples=40, deadline=None)
@given(st.data(), st.lists(telling_text, max_size=8))
def test_a_document_is_measured_alike_in_any_batch(data: st.DataObject, texts: list[str]) -> None:
    """Alone, in a batch, in a slice, and as `string`: the same numbers."""
    whole = measures(texts, MEASURES)
    parts = data.draw(cuts(texts))
    assert [row for part in parts for row in measures(part, MEASURES)] == whole
    array = pa.array(["before it. ", *texts, "after. it"], pa.string())
    assert measures_of_array(array.slice(1, len(texts)), MEASURES) == whole


@pytest.mark.parametrize("copies", [2, 3])
def test_a_text_said_twice_repeats_all_but_its_first_copy(copies: int) -> None:
    """Of n copies of a text of different words, 1 - 1/n lies in runs of words that occurred before."""
    text = " ".join(f"word{i}" for i in range(400)) + "\n\n"
    (found,) = measures([text * copies])
    assert found["duplicate_10gram"] == pytest.approx(1 - 1 / copies, abs=0.001)
    assert found["duplicate_lines"] == found["duplicate_paragraphs"] == pytest.approx(1 - 1 / copies)


@pytest.mark.parametrize(
    "text",
    [
        *("a" * 300_000, "a b " * 75_000, "\n" * 300_000, "a\n" * 100_000, "://" * 100_000, "!)" * 100_000),
        *("。」" * 50_000, "@" * 300_000, "thanks for " * 27_000, "Ã©" * 75_000, "home | " * 43_000),
    ],
    ids=[
        *("one letter", "two words", "line ends", "short lines", "links", "closers"),
        *("wide closers", "handles", "beginnings of phrases", "mojibake", "menus"),
    ],
)
def test_time_grows_with_the_text_only(text: str) -> None:
    """Nothing is looked at again and again: a text of 300 kB of one thing is done at once (else this takes minutes)."""
    (found,) = measures([text], MEASURES)
    assert all(value is None or math.isfinite(value) for value in found.values())
