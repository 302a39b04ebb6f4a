"""Two texts side by side: wherever they differ, the place is shown, and nothing private with it."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.report.compare import COMPARED_BYTES, compare, first_difference
from curation.report.excerpt import EXCERPT_CHARS

WORDS = {
    "Latin": "several words of a sentence that goes on ",
    "Han": "汉字写成的句子没有空格",
    "Thai": "ภาษาไทยเขียนติดกัน",
    "astral": "𝒳𝒴𝒵🎉",
    "lines": "one line\n",
    "Windows lines": "a line that ends twice\r\n",
}


def compared(left: str, right: str) -> tuple[str, str, str]:
    """HTML of both, and the note."""
    a, b = left.encode(), right.encode()
    found = compare(a[:COMPARED_BYTES], b[:COMPARED_BYTES], len(a), len(b))
    for piece in (found.left, found.right):
        assert len(piece.text) <= EXCERPT_CHARS
        assert "\N{REPLACEMENT CHARACTER}" not in piece.text or "\N{REPLACEMENT CHARACTER}" in left + right
    assert found.left.begin == found.right.begin
    return str(found.left_html), str(found.right_html), found.note


@given(st.binary(max_size=30), st.binary(max_size=30), st.binary(max_size=30))
def test_the_first_difference_is_that_of_a_plain_loop(head: bytes, left: bytes, right: bytes) -> None:
    left, right = head + left, head + right
    place = next((i for i, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), None)
    if place is None and len(left) != len(right):
        place = min(len(left), len(right))
    assert first_difference(left, right) == place


@pytest.mark.parametrize("name", WORDS)
@pytest.mark.parametrize("repeats", [0, 1, 7, 30, 300])
def test_what_differs_is_marked_wherever_it_stands(name: str, repeats: int) -> None:
    """At the beginning or after thousands of characters, in lines or without a blank: both sides show it."""
    head, tail = WORDS[name] * repeats, WORDS[name] * 200
    left, right, note = compared(f"{head} before {tail}", f"{head} after {tail}")
    assert "<mark>before</mark>" in left
    assert "<mark>after</mark>" in right
    if repeats not in (7, 30):  # whether the beginning shows it depends on the length of the words
        assert ("the same up to byte" in note) == (repeats == 300)


def test_what_one_has_more_is_marked() -> None:
    """The kept one is longer by a paragraph in the middle, or at the end."""
    head, tail = "the same words again " * 100, "and other ones after them " * 100
    for end in (tail, ""):
        left, right, _ = compared(head + end, f"{head}An addition. {end}")
        assert "mark" not in left
        assert re.search(r"<mark> ?An addition\. ?</mark>", right)


def test_equal_texts_are_said_to_be_equal() -> None:
    """As far as they were looked at."""
    text = "word " * 100
    assert compared(text, text)[2] == "the same text"
    long = "word " * 20_000
    assert compared(long + "x", long + "y")[2] == "no difference in the first 64 kB"


@pytest.mark.parametrize("gap", range(0, 240, 3))
def test_an_address_before_the_piece_stays_masked(gap: int) -> None:
    """Wherever the piece begins, a part of an address or of a number is no less private than the whole."""
    for private, parts in (("john.doe@mail.example", ["doe", "mail"]), ("+49301234567", ["1234", "4567"])):
        head = "，" * 300 + private + "，" * (gap // 3) + " " * (gap % 2)
        for html in compared(f"{head}甲" + "，" * 300, f"{head}乙" + "，" * 300)[:2]:
            assert not any(part in html for part in parts)


@given(st.text(max_size=700), st.text(max_size=60), st.text(max_size=60), st.text(max_size=700))
def test_any_two_texts_can_be_compared(head: str, left: str, right: str, tail: str) -> None:
    """Blank, empty, control characters, surrogate-free anything: pieces of both, no error."""
    compared(*(text.encode("utf-8", "replace").decode() for text in (head + left + tail, head + right + tail)))
