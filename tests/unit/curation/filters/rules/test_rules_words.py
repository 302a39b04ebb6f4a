"""Measures of words, and how many of a list a text has."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from curation.filters.rules import words
from curation.filters.rules.parts import parts_of
from tests.rules_measures import measures

CHINESE = "这是一个没有空格的句子，说的是很普通的事情。" * 40


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("The fox ran 12 miles.", "words", 5),
        ("狐狸跑了12里", "words", 6),
        ("狐狸跑了十里", "units", 3.75),
        ("The fox ran 12 miles.", "mean_word_length", 3.2),
        (CHINESE, "mean_word_length", None),
        (CHINESE, "letter_words", 1),
        ("12 34 56 kg 7", "letter_words", 0.2),
        ("", "letter_words", None),
        ("l e t t e r s out", "single_letter_words", 7 / 8),
        ("中 文 字 a", "single_letter_words", None),
        ("这 是 7 8 9 a", "single_letter_words", 1),
        ("a bb ccc", "longest_word", 3),
        ("a " * 16, "word_entropy", 0),
        ("a b " * 8, "word_entropy", 0.25),
        ("a " * 15, "word_entropy", None),
        (" ".join(f"w{i}" for i in range(256)) + " w1" * 99, "word_entropy", 1),
        ("# one ## two", "hash_per_word", 1.5),
        ("#狐狸狐狸狐狸狐狸", "hash_per_word", 0.2),
        ("###", "hash_per_word", None),
        ("wait... what…… no. 。。。 .. ・・・", "ellipsis_per_word", 4 / 3),
    ],
)
def test_measures_of_words(text: str, name: str, value: float | None) -> None:
    """Counts and shares in every script; None where there is nothing to measure."""
    assert measures([text], [words])[0][name] == (None if value is None else pytest.approx(value))


def test_a_chinese_page_is_not_one_long_word() -> None:
    """900 characters without a blank are as many words, and no mean word length condemns them (bug log B098)."""
    found = measures([CHINESE], [words])[0]
    assert (found["words"], found["longest_word"], found["mean_word_length"]) == (800, 1, None)


def test_numbers_are_told_from_prose() -> None:
    """A page of numbers and units has few words with letters, prose in any script nearly all (bug log B099)."""
    numbers, english, chinese = measures(["12.5 3,000 kg 7 8 9 14 2024 77 5", "It is a fine day.", CHINESE], [words])
    assert numbers["letter_words"] == pytest.approx(0.1)
    assert english["letter_words"] == chinese["letter_words"] == 1


def test_distinct_words_of_a_list() -> None:
    """Each word of the list counts once, in any case; a document without a list has none; `enough` ends the search."""
    parts = parts_of(pa.array(["The cat and the DOG.", "我的书，我的", "The cat", "the cat and dog"]))
    lists = words.word_lists([["the", "and", "dog", "The"], ["的", "我"], []])
    rows = np.array([0, 1, -1, 2])
    assert words.distinct_of(parts, rows, lists).tolist() == [3, 2, 0, 0]
    assert words.distinct_of(parts, rows, lists, enough=2).tolist() == [2, 2, 0, 0]


def test_long_lists() -> None:
    """Tables of any size find their words and no others."""
    listed = [f"word{i}" for i in range(3_000)]
    parts = parts_of(pa.array([" ".join(listed) + " other more"]))
    lists = words.word_lists([listed, ["single"]])
    assert words.distinct_of(parts, np.array([0]), lists).tolist() == [3_000]
    assert words.distinct_of(parts, np.array([1]), lists).tolist() == [0]
