"""Measures of characters, and the table that says what each character is."""

from __future__ import annotations

import pytest
import regex

from curation.filters.rules import sign_table, signs
from tests.rules_measures import measures


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("ab 12", "digits", 0.5),
        ("一二٣४", "digits", 0.5),
        ("“Oui”, dit-il : 50 % !", "other_signs", 0),
        ("「はい」、そうです。", "other_signs", 0),
        ("ab#*", "other_signs", 0.5),
        ("हिन्दी में है।", "other_signs", 0),
        ("ab\ufffd\ue000", "other_signs", 0.5),
        ("ABcd 中", "upper_case", 0.5),
        ("AB 中文字", "upper_case", None),
        ("中文", "upper_case", None),
        ("ПРИвет", "upper_case", 0.5),
        ("ქართული", "upper_case", 0),
        ("ᏣᎳᎩ", "upper_case", None),
        ("a b\n\n", "blanks", 0.6),
        ("", "blanks", None),
        ("\n ", "blanks", None),
        ("(a)[b]【c】「d」", "brackets", 0.5),
        ("f { x }", "curly_brackets", 500),
        ("见http://a.cn/b。好", "links", 13 / 16),
        ("(see www.ab.org).", "links", 10 / 16),
        ("a://", "links", 0),
        ("fooled by ://x and www. and awww.b.c", "links", 0),
        ("HTTP://A.B/C, http://d", "links", 20 / 21),
        ("ok😀👍", "emoji", 0.5),
        ("a----b", "longest_run", 4 / 6),
        ("a    b", "longest_run", 0.5),
        ("哈哈哈哈", "longest_run", 1),
        ("", "longest_run", 0),
    ],
)
def test_measures_of_signs(text: str, name: str, value: float | None) -> None:
    """Shares of what is visible, in every script; 0 or None for what is blank."""
    assert measures([text], [signs])[0][name] == (None if value is None else pytest.approx(value))


@pytest.mark.parametrize("length", [1, 63, 64, 65, 127, 128, 129, 200])
@pytest.mark.parametrize("before", ["", "x", "é", "x" * 70])
def test_runs_go_on_from_block_to_block(length: int, before: str) -> None:
    """A run is as long as it is, wherever the blocks begin that a kernel reads."""
    found = measures([before + "=" * length + "y" * 100], [signs])[0]
    assert found["longest_run"] == pytest.approx(
        max(100, length, len(before) if len(before) > 1 else 0) / (len(before) + length + 100)
    )


def test_ends_of_sentences_are_those_of_unicode() -> None:
    """Every mark of the list is a Sentence_Terminal, but for those that the module names; no living script's is missing."""
    every = "".join(chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000)
    unicode = set(regex.findall(r"\p{Sentence_Terminal}", every))
    assert set(sign_table.SENTENCE_ENDS) - unicode == set("\u2026\u22ef\u037e\u0f0d\u0f0e")
    missing = {c for c in unicode - set(sign_table.SENTENCE_ENDS) if c < "\U00010000"}
    assert missing == set("\u1b4e\u1b4f\u1b7f\u2024\u2cf9\u2cfa\u2cfb\u2e53\u2e54\u2e60\u2e61\ufe12\ufe15\ufe16")


def test_upper_and_lower_case() -> None:
    """Capitals have a small letter, and the small letters of the table are theirs: as Python has it, but for rare letters."""
    wrong = []
    for code in range(0x250):
        kind = int(sign_table.SIGN_BLOCKS[int(sign_table.SIGN_INDEX[code >> 6]) << 6 | code & 63]) & 7
        character = chr(code)
        if character.isalpha() and character.lower() != character:
            wrong += [character] if kind != sign_table.Sign.UPPER else []
        elif kind == sign_table.Sign.UPPER:
            wrong.append(character)
    assert wrong == ["İ"]  # simple folding leaves it as it is
