"""Measures of lines, sentences, and repeated lines and paragraphs."""

from __future__ import annotations

import pytest

from curation.filters.rules import line_shapes, repeated_lines
from tests.rules_measures import measures

LONG = "This is a sentence of a usual length, which nobody would call short."


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("- a\n\n• b\nc", "bullet_lines", 2 / 3),
        ("a...\nb…\nc.\nd", "ellipsis_lines", 0.5),
        ("a.\n他走了。\nवह गया।\nd", "end_mark_lines", 0.75),
        ("สวัสดีครับ\nวันนี้", "end_mark_lines", None),
        ("ສະບາຍດີ", "unended_sentences", None),
        ("", "end_mark_lines", None),
        (f"short\n{LONG}\n\n", "short_lines", 0.5),
        ("abc\nde\n", "longest_line", 3),
        ("abc\n\nd\n", "mean_line_length", 2),
        ("a b\n\n\nc d\n", "newlines_per_word", 0.25),
        ("狐狸跑了十里\n狐狸跑了十里", "newlines_per_word", 1 / 7.5),
        ("One. Two! Three? 3.5 is not... e.g. this", "sentences", 5),
        ("他走了。她说：“好！”他们笑了？没有", "sentences", 3),
        ("... ! ? . .", "sentences", 0),
        ("Really?! (Yes.) “No.”", "sentences", 3),
        ("One.\nTwo\nThree", "unended_sentences", 2 / 3),
        ("A line that goes\non in the next.\n\nHead", "unended_sentences", 0.5),
        ("A line that goes\n\non in the next.", "unended_sentences", 0.5),
        ("!!!", "unended_sentences", None),
        (f"{LONG}\nTwo words.\nno mark\nOn and on...", "kept_sentences", 1),
        ("We use of cookies now.\nRead our Privacy Policy here.\nEnable JavaScript please now.", "kept_sentences", 0),
        ("The use of policy is fine.", "kept_sentences", 1),
        ("他走了三里路。", "kept_sentences", 1),
        (f"{'x' * 1001} and more words.", "kept_sentences", 0),
        ("Share\n3 likes\n12 34 56\nOne two three four", "removable_words", 6 / 10),
        ("首页\n12 评论\n今天天气很好啊", "removable_words", 5 / 12),
        ("BUY IT ALL NOW\nof course not", "removable_words", 4 / 7),
    ],
)
def test_measures_of_lines(text: str, name: str, value: float | None) -> None:
    """Shares of the lines that are not blank, in every script; None where there is nothing to measure."""
    assert measures([text], [line_shapes])[0][name] == (None if value is None else pytest.approx(value))


def test_chinese_and_japanese_ends_are_ends() -> None:
    """Lines that end in 。 or 」, with or without a full stop before it, all end as sentences do (bug log B100)."""
    text = (
        "今天天气很好，我们去公园。\n" * 5 + "彼は「もう行くよ。」\n" * 5 + "「もう行くよ」\n" * 5 + "『本』と「夢」\n"
    )
    found = measures([text], [line_shapes])[0]
    assert (found["end_mark_lines"], found["unended_sentences"]) == (1, 0)


@pytest.mark.parametrize(
    ("text", "lines", "characters"),
    [
        ("", 0, 0),
        ("\n\n", 0, 0),
        ("a\nb\nc", 0, 0),
        ("a\na\n\nbb\nbb\na", 3 / 5, 4 / 7),
        ("  a \na\r\n", 0.5, 0.5),
        ("A\na", 0, 0),
    ],
)
def test_repeated_lines(text: str, lines: float, characters: float) -> None:
    """Lines after the first of their kind, blanks at the ends apart; blank lines are none."""
    found = measures([text], [repeated_lines])[0]
    assert found["duplicate_lines"] == pytest.approx(lines)
    assert found["duplicate_line_characters"] == pytest.approx(characters)


@pytest.mark.parametrize(
    ("text", "paragraphs", "characters"),
    [
        ("a\na\na", 0, 0),
        ("a\nbb\n\nc\n\n\na\nbb", 1 / 3, 3 / 7),
        ("a\nbb\n\nbb\na", 0, 0),
        ("a\n\na\n\na", 2 / 3, 2 / 3),
    ],
)
def test_repeated_paragraphs(text: str, paragraphs: float, characters: float) -> None:
    """Runs of lines that equal an earlier run line by line."""
    found = measures([text], [repeated_lines])[0]
    assert found["duplicate_paragraphs"] == pytest.approx(paragraphs)
    assert found["duplicate_paragraph_characters"] == pytest.approx(characters)
