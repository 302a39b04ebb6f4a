"""Lines end at a newline only, lose the blanks at their ends, and make paragraphs."""

from __future__ import annotations

import pyarrow as pa
import pytest

from curation.text import Spans, buffers, count_chars, hash_spans, line_hashes, line_spans, paragraph_spans
from curation.text.spans import Bytes, Int64s

LINES = [
    ("", []),
    ("\n", [""]),
    ("a", ["a"]),
    ("a\n", ["a"]),
    ("a\nb", ["a", "b"]),
    ("a\n\n b \n", ["a", "", "b"]),
    ("a\r\nb\r\n", ["a", "b"]),
    ("a\rb", ["a\rb"]),
    ("a\u2028b\u0085c\x0bd\x0ce\u2029f", ["a\u2028b\u0085c\x0bd\x0ce\u2029f"]),
    ("\ufeff\u3000 a\u00a0b \u200b\t\n \u2003\n", ["a\u00a0b", ""]),
    ("\x00\n字\u200e\n", ["", "字"]),
    ("x" * 130 + "\n" + " " * 130 + "y", ["x" * 130, "y"]),
]


def strings(where: tuple[Bytes, Int64s], spans: Spans) -> list[str]:
    """The parts of a text."""
    raw = where[0].tobytes()
    return [raw[a:b].decode() for a, b in zip(spans.starts, spans.ends, strict=True)]


@pytest.mark.parametrize(("text", "lines"), LINES)
def test_lines(text: str, lines: list[str]) -> None:
    """The lines of a text without the blanks at their ends; blank lines are empty."""
    where = buffers(pa.array([text, text], pa.large_string()))
    spans = line_spans(*where)

    assert lines * 2 == strings(where, spans)
    assert [0, len(lines), 2 * len(lines)] == spans.offsets.tolist()


@pytest.mark.parametrize(
    ("text", "paragraphs"),
    [
        ("", []),
        ("\n \n", []),
        ("one\ntwo", ["one\ntwo"]),
        (" one \n two\n\n\nthree\n", ["one \n two", "three"]),
        ("a\n\u00a0\r\nb\n\x00\nc", ["a", "b", "c"]),
    ],
)
def test_paragraphs(text: str, paragraphs: list[str]) -> None:
    """A paragraph is a maximal run of lines that are not blank."""
    where = buffers(pa.array([text], pa.large_string()))

    assert paragraphs == strings(where, paragraph_spans(*where))


def test_line_hashes_do_not_see_the_blanks_around() -> None:
    """Lines that differ in the blanks at their ends have one hash."""
    data, offsets = buffers(pa.array(["same\n  same\r\nother \n\n", " other"], pa.large_string()))
    hashes, lines = line_hashes(data, offsets)

    assert hashes[0] == hashes[1] != hashes[2] == hashes[4]
    assert count_chars(data, lines).tolist() == [4, 4, 5, 0, 5]
    assert hashes[3] == 0xEF46DB3751D8E999


@pytest.mark.parametrize(
    ("raw", "seed", "value"),
    [
        (b"", 0, 0xEF46DB3751D8E999),
        (b"a", 0, 0xD24EC4F1A98C6E5B),
        (b"abc", 0, 0x44BC2CF5AD770999),
        (b"Nobody inspects the spammish repetition", 0, 0xFBCEA83C8A378BF1),
    ],
)
def test_xxh64(raw: bytes, seed: int, value: int) -> None:
    """The hash is XXH64: values published for it."""
    assert value == hash_spans(*buffers(pa.array([raw.decode()], pa.large_string())), seed=seed)[0]
