"""Characters, classes and scripts of texts that one can count by hand."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from curation.text import (
    CharClass,
    Script,
    buffers,
    char_length,
    class_counts,
    count_chars,
    count_words,
    line_spans,
    profile,
    script_counts,
    unspaced_share,
)

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
    ("Привет, мир", 11, 2, {Script.CYRILLIC: 9}),
    ("二〇二四年", 5, 5, {Script.HAN: 5}),
    ("𝐁𝐨𝐥𝐝", 4, 1, {Script.COMMON: 4}),
    ("ᚠᚢᚦ", 3, 1, {Script.OTHER: 3}),
    ("123 !?", 6, 1, {}),
]


@pytest.mark.parametrize(("text", "chars", "words", "letters"), CASES)
def test_counts(text: str, chars: int, words: int, letters: dict[Script, int]) -> None:
    """Characters, words and letters by script of short texts of several scripts."""
    data, offsets = buffers(pa.array([text], pa.large_string()))

    assert chars == char_length(pa.array([text]))[0] == count_chars(data, offsets)[0]
    assert words == count_words(data, offsets)[0]
    assert letters == {script: n for script in Script if (n := script_counts(data, offsets)[0, script])}


def test_classes() -> None:
    """Each class has its characters; a row sums to the text's characters."""
    text = "aé中\u03011Ⅷ½.,。$+^`|~© \t\r\u3000\u200b\n\x00\x7f\ufeff\ufe0f👍☀\ufffd\ue000"
    expected = {
        CharClass.LETTER: 3,
        CharClass.MARK: 1,
        CharClass.NUMBER: 3,
        CharClass.PUNCTUATION: 3,
        CharClass.SYMBOL: 7,
        CharClass.SPACE: 5,
        CharClass.NEWLINE: 1,
        CharClass.CONTROL: 4,
        CharClass.EMOJI: 2,
        CharClass.OTHER: 2,
    }
    counts = class_counts(*buffers(pa.array([text, text * 40], pa.large_string())))

    assert expected == {char_class: counts[0, char_class] for char_class in CharClass}
    assert (counts[0] * 40 == counts[1]).all()
    assert len(text) == counts[0].sum()


@pytest.mark.parametrize(
    ("text", "share"), [("", 0), ("123", 0), ("中文", 1), ("中ab", 1 / 3), ("ไทย and", 0.5), ("한국어", 0), ("ｶﾞか", 1)]
)
def test_unspaced_share(text: str, share: float) -> None:
    """The share of letters in scripts written without blanks; 0 without letters."""
    letters = script_counts(*buffers(pa.array([text], pa.large_string())))

    assert share == unspaced_share(letters)[0]


def test_profile_has_what_the_single_kernels_have() -> None:
    """One visit gives the same sizes as a kernel for each."""
    data, offsets = buffers(pa.array([text for text, *_ in CASES] + ["a\n\nb\n", "\n"], pa.large_string()))
    sizes = profile(data, offsets)

    assert np.diff(offsets).tolist() == sizes.n_bytes.tolist()
    assert count_chars(data, offsets).tolist() == sizes.n_chars.tolist()
    assert count_words(data, offsets).tolist() == sizes.n_words.tolist()
    assert np.diff(line_spans(data, offsets).offsets).tolist() == sizes.n_lines.tolist()
    assert script_counts(data, offsets).tolist() == sizes.letters.tolist()
