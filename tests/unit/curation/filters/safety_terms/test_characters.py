"""The table of the view equals what Unicode and the lists say of each character."""

from __future__ import annotations

from itertools import chain

import pytest

from curation.filters.safety_terms import characters as table
from curation.filters.safety_terms.spelling import entries_of
from tests.safety_terms_oracle import Char, letters_of, view_of

KINDS = {"letter": table.LETTER, "unspaced": table.UNSPACED, "digit": table.DIGIT, "sign": table.SIGN}
SCRIPTS = {"L": table.LATIN, "C": table.CYRILLIC, "G": table.GREEK, "O": table.OTHER_SCRIPT}


def told(char: Char) -> tuple[object, ...]:
    sentence = char.text in table.SENTENCE_SIGNS
    if char.kind in KINDS:
        scripts = sum(SCRIPTS[script] for script in char.scripts)
        return table.SOLID, ord(char.text), KINDS[char.kind], scripts, char.wide, sentence and char.kind == "sign"
    if char.kind in ("mark", "jamo"):
        return table.MARK if char.kind == "mark" else table.JAMO, ord(char.text)
    return table.SEPARATOR, char.kind, sentence


def held(entry: int) -> tuple[object, ...]:
    kind = entry >> table.TYPE_AT & 0xFF
    code = entry & table.CODE
    sentence = bool(entry & table.SENTENCE)
    if kind == table.SOLID:
        scripts = entry >> table.SCRIPT_AT & table.ANY_SCRIPT
        return kind, code, entry >> table.KIND_AT & 3, scripts, bool(entry & table.WIDE), sentence
    if kind in (table.MARK, table.JAMO):
        return kind, code
    return kind, "newline" if entry & table.NEWLINE else "blank" if entry & table.BLANK else "other", sentence


def test_each_character() -> None:
    """All characters of most alphabets and forms, and each 31st of all others."""
    some = chain(
        range(0x3400), range(0xA640, 0xAC00), range(0xF900, 0x10600), range(0x1D400, 0x1D800), range(0x1F100, 0x1F200)
    )
    for code in chain(some, range(0x3400, 0x110000, 31)):
        if not 0xD800 <= code < 0xE000:
            wanted = [told(char) for char in view_of(chr(code))]
            found = [held(entry) for entry in entries_of(chr(code)) if entry >> table.TYPE_AT & 0xFF != table.NONE]
            assert found == wanted, hex(code)


@pytest.mark.parametrize(
    ("written", "view"),
    [
        ("Ｐоʀɴ 🇸🅔🅇 ⓐ", "pornsexa"),
        ("賭場開戶送彩金", "赌场开户送彩金"),
        ("e\u0301 é Ё ё é\u0336", "ééeeé"),
        ("e\u0302\u0323 ệ", "ệệ"),
        ("ｶﾞ ガ カ\u3099", "ガガガ"),
        ("\u1112\u1161\u11ab 한", "한한"),
        ("a\u200b\u00ad\ufe0fb", "ab"),
        ("18+ t.me", "18tme"),
    ],
)
def test_views(written: str, view: str) -> None:
    """Letters and digits in the view."""
    assert "".join(letter.char.text for letter in letters_of(written)) == view
