"""Whatever a text holds, Markdown shows it as that text: as CommonMark with tables reads it."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from curation.report.impact_markdown import code, fenced, inline
from curation.terminal import printable, printable_lines

PARSER = MarkdownIt("commonmark").enable("table")
HARD = [
    "`", "``", " ` ", "\\", "\\`", "|", "a|b\\|c", "- x", "1. x", "# x", "> x", "===", "---", "+ x", "&lt;", "<b>", "[a](b)",
    "![a](b)", "*a* _b_ ~~c~~", "snake_case _x_ __y__", "a\nb", "\x1b[31m", "\u202e", "$x$", "@user", "#12",
    "https://evil.example/a_b?c=*d*", "see www.evil.example.", "(HTTP://evil.example)", "a@evil.example", "owner/name#12",
    "GH-12", ":tada:", "https:/\\/x|y@z`w`",
]  # fmt: skip
TEXTS = st.one_of(
    st.text(max_size=60), st.text(alphabet="`|\\*_[]()<>#-+=.1 &a\n!~@:/w", max_size=40), st.sampled_from(HARD)
)


@settings(max_examples=150, deadline=None)
@given(TEXTS)
@example("1. x")
@example("=")
@example("-")
@example("    indented")
def test_text_in_a_line_is_that_text(text: str) -> None:
    """One paragraph of plain text and code spans, and nothing else; control characters are escaped."""
    parsed = PARSER.parse(f"x {inline(text)}") + (PARSER.parse(inline(text)) if text.strip(" ") else [])
    kinds = {token.type for token in parsed}
    assert kinds <= {"paragraph_open", "inline", "paragraph_close"}
    children = [child for token in parsed if token.type == "inline" for child in token.children or ()]
    assert {child.type for child in children} <= {"text", "text_special", "code_inline"}
    first = [child.content for token in parsed[:3] if token.type == "inline" for child in token.children or ()]
    shown = printable(text.replace("\u00a0", " "))
    assert "".join(first).rstrip() == f"x {shown.strip(' ')}".rstrip()


@settings(max_examples=150, deadline=None)
@given(TEXTS)
def test_no_text_in_a_line_becomes_a_link_or_a_mention(text: str) -> None:
    """GitHub looks for addresses, names and numbers in the text that is shown, escaped or not, but not in code."""
    for token in PARSER.parse(f"x {inline(text)}"):
        shown = "".join("\0" if one.type == "code_inline" else one.content for one in token.children or ())
        assert not re.search(r"://|www\.|@\w|#\d|\bGH-\d|:[a-z0-9_+-]+:", shown, re.IGNORECASE), shown


@settings(max_examples=150, deadline=None)
@given(TEXTS)
def test_a_code_span_outside_a_table_holds_that_text(text: str) -> None:
    """A pipe in it has no backslash before it."""
    shown = printable(text.replace("\u00a0", " "))
    _, line, _ = PARSER.parse(f"x {code(text)} y")
    assert [one.content.strip() for one in line.children or () if one.type == "code_inline"] == [shown.strip()]


@settings(max_examples=150, deadline=None)
@given(TEXTS)
def test_a_code_span_holds_that_text(text: str) -> None:
    """Whatever backticks it has; in a table a pipe is none of its borders."""
    shown = printable(text.replace("\u00a0", " "))
    parsed = PARSER.parse(f"| head | two |\n| --- | --- |\n| {code(text, in_table=True)} | end |\n")
    cells = [token for token in parsed if token.type == "inline"]
    assert [cell.content for cell in (cells[0], cells[1], cells[3])] == ["head", "two", "end"]
    children = [child for child in cells[2].children or () if child.content.strip()]
    if shown.strip():
        assert [child.type for child in children] == ["code_inline"]
        assert children[0].content.strip() == shown.strip()


@settings(max_examples=100, deadline=None)
@given(TEXTS)
def test_a_block_holds_that_text(text: str) -> None:
    """Line breaks as they are; no fence in it ends it."""
    (token,) = PARSER.parse(fenced(text))
    assert token.type == "fence"
    assert token.content.rstrip("\n") == printable_lines(text).rstrip("\n")


@pytest.mark.parametrize("text", HARD)
def test_a_block_in_a_list_holds_that_text(text: str) -> None:
    """As documents stand in the sheet."""
    block = "\n".join(f"   {line}" for line in fenced(f"{text}\n{text}").split("\n"))
    parsed = PARSER.parse(f"1. first\n\n{block}\n")
    fences = [token.content for token in parsed if token.type == "fence"]
    assert fences == [printable_lines(f"{text}\n{text}") + "\n"]
