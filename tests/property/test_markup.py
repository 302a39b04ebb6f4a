"""The markup kernels against the slow oracle, and what must hold for any text."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import example, given, settings
from hypothesis import strategies as st

from curation.markup import Kind, kind_counts, kinds_of
from curation.text import buffers
from tests.markup_oracle import kinds_slowly
from tests.strategies import hostile_text, markup_text

ATTRIBUTED = st.lists(
    st.sampled_from(
        [
            "<",
            ">",
            "/",
            " ",
            "\n",
            "=",
            '"',
            "'",
            "a",
            "p",
            "b-c",
            "class",
            "on",
            "v-if",
            "data-x",
            "@x",
            ":y",
            "{",
            "é",
        ]
    ),
    max_size=40,
).map("".join)
SCRIPT_PIECES = (
    *("<script>", '<script src="x">', "<SCRIPT setup>", "</script>", "</script >", "<style>", "</style>", "word "),
    *("import a from b\n", "window.x", "{a: 1};\n", "if (x) { y(); }\n", '"name": "value",\n', "\n", "prose. "),
    *("document.write(1);\n", "color: red;", "x{", "}", "漢字", "```\n", "`"),
)
SCRIPTS = st.lists(st.sampled_from(SCRIPT_PIECES), max_size=40).map("".join)
LONG_LINES = st.lists(
    st.sampled_from(
        ["word " * 20, "漢字" * 60, "x" * 210, "a=1;" * 40, "12.5-3" * 40, "M1.5 2l-3 4z " * 10, "<p>", "\n"]
    )
    | st.sampled_from(['{"a":"b","c":[1,2]},' * 9, "https://a.b/" + "c" * 250, "  ", "é", ");\n", "var a = 1;\n"]),
    max_size=12,
).map("".join)


def differences(text: str) -> str:
    """The first place where kernel and oracle disagree."""
    fast, slow = kinds_of(text), np.frombuffer(kinds_slowly(text), np.uint8)
    if np.array_equal(fast, slow):
        return ""
    place = int(np.flatnonzero(fast != slow)[0])
    around = text.encode()[max(0, place - 30) : place + 30]
    return f"byte {place}, near {around!r}: kernel {Kind(fast[place]).name}, oracle {Kind(slow[place]).name}"


@settings(max_examples=150, deadline=None)
@given(st.one_of(markup_text, ATTRIBUTED, SCRIPTS, LONG_LINES, hostile_text))
@example("````\n```\n````\n")
@example("<script>a</scripta></script")
@example("&#x1F600;&#12345678;&amp;&ampx;")
@example('"key" : 1\n"key": 2\n"k": 3\n')
def test_as_the_oracle_says(text: str) -> None:
    """Every byte of any text has the kind that the rules give it."""
    assert differences(text) == ""


@settings(deadline=None)
@given(st.lists(markup_text, max_size=6), st.integers(0, 3))
def test_counts_are_those_of_each_text_alone(texts: list[str], skipped: int) -> None:
    """Counts are of non-blank characters, add up to all of them, and know nothing of the neighbours."""
    array = pa.array(texts, pa.large_string())[skipped:]

    counts = kind_counts(*buffers(array))

    for text, row in zip(texts[skipped:], counts, strict=True):
        data = np.frombuffer(text.encode(), np.uint8)
        starts = (data & 0xC0 != 0x80) & ~np.isin(data, list(b" \t\n\v\f\r"))
        expected = np.bincount(kinds_of(text)[starts], minlength=len(Kind))
        assert row.tolist() == expected.tolist()
        assert row.sum() == sum(character not in " \t\n\v\f\r" for character in text)


@given(st.text(st.characters(codec="utf-8", exclude_characters="<&`~{[:\n\"'"), max_size=200))
def test_text_without_signs_is_text(text: str) -> None:
    """Without any sign that could open something, and in one short line, all is text."""
    assert not kinds_of(text).any() or len(text.encode()) > 300
