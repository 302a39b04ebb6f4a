"""The public kernels on texts that one can count by hand."""

from __future__ import annotations

import pyarrow as pa
import pytest

from curation.text import Script, buffers, char_length, count_chars, count_words, script_counts

CASES = [
    # text, characters, words, letters by script
    ("", 0, 0, {}),
    ("The quick don't 1,234.5 fox", 27, 5, {Script.LATIN: 15}),
    ("中文 mixed", 8, 3, {Script.HAN: 2, Script.LATIN: 5}),
    ("コーヒーを飲む", 7, 7, {Script.KATAKANA: 4, Script.HIRAGANA: 2, Script.HAN: 1}),
    ("안녕하세요 세계", 8, 2, {Script.HANGUL: 7}),
    ("สวัสดี", 6, 4, {Script.THAI: 4}),
    ("👨‍👩‍👧 ok", 8, 1, {Script.LATIN: 2}),
    ("e\u0301te\u0301 l’eau", 11, 2, {Script.LATIN: 7}),
]


@pytest.mark.parametrize(("text", "chars", "words", "letters"), CASES)
def test_counts(text: str, chars: int, words: int, letters: dict[Script, int]) -> None:
    """Characters, words and letters by script of short texts of several scripts."""
    data, offsets = buffers(pa.array([text], pa.large_string()))

    assert chars == char_length(pa.array([text]))[0] == count_chars(data, offsets)[0]
    assert words == count_words(data, offsets)[0]
    assert letters == {script: n for script in Script if (n := script_counts(data, offsets)[0, script])}
