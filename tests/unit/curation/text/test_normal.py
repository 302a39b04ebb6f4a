"""The table of normal forms is true to Python's unicodedata, and a text made to take hours takes none."""

from __future__ import annotations

import random
import re
import time
import unicodedata
from collections import Counter
from functools import cache

import pytest

from curation.text import UNICODE_VERSION
from curation.text.normal import (
    BREAK,
    FIRST,
    FORM_BLOCKS,
    FORM_INDEX,
    KIND,
    LONGER,
    MARK,
    POOL,
    SECOND,
    SEVERAL,
    UNSPACED,
    VALUE_AT,
    WORD,
    normalise,
)
from curation.text.tables import N_CODE_POINTS

FORMS: list[int] = FORM_BLOCKS.reshape(-1, 64)[FORM_INDEX].reshape(-1).tolist()
POOLED: list[int] = POOL.tolist()
CODES = [*range(0xD800), *range(0xE000, 0x34000), *range(0x34000, N_CODE_POINTS, 97), *range(0xE0000, 0xE1000)]
"""All of Unicode, but of the planes where nothing is assigned only some."""
UNSEEN = """00AD 034F 061C 17B4-17B5 180B-180F 200E-200F 202A-202E 2060-2064 2066-206F FE00-FE0F FEFF 1BCA0-1BCA3 1D173-1D17A
E0001 E0020-E007F E0100-E01EF"""
INVISIBLE = {
    code
    for first, _, last in (one.partition("-") for one in UNSEEN.split())
    for code in range(int(first, 16), int(last or first, 16) + 1)
}

pytestmark = pytest.mark.skipif(
    unicodedata.unidata_version != UNICODE_VERSION, reason="Python has another Unicode version"
)


def fold(text: str) -> str:
    """Simple case folding."""
    return "".join(next((f for f in (c.casefold(), c.lower()) if len(f) == 1), c) for c in text)


def form(code: int) -> str:
    """What the table makes of a character, before folding where it is several."""
    found = FORMS[code]
    if found & SEVERAL:
        start, count = found >> VALUE_AT, found >> 16 & 0xFF
        return "".join(map(chr, POOLED[start : start + count]))
    return chr(code + (found >> VALUE_AT))


def order(code: int) -> int:
    return FORMS[code] >> 8 & 0xFF


@cache
def nfkc(code: int) -> str:
    return unicodedata.normalize("NFKC", chr(code))


def test_every_character_has_its_form() -> None:
    """One look-up is NFKC and simple case folding; invisible marks vanish."""
    for code in CODES:
        expected = "".join(c for c in nfkc(code) if ord(c) not in INVISIBLE)
        found = fold(form(code)) if FORMS[code] & SEVERAL else form(code)
        assert found == fold(expected), hex(code)


def test_parts_of_forms_have_forms_of_their_own() -> None:
    """What lies in the pool needs no second look-up there, and what may not fit is marked."""
    assert not any(FORMS[code] & SEVERAL for code in POOLED)
    for code in (code for code in CODES if FORMS[code] & SEVERAL):
        n_units = sum(FORMS[ord(c)] & KIND != BREAK for c in form(code))
        assert bool(FORMS[code] & LONGER) == (n_units > len(chr(code).encode())), hex(code)


def test_word_characters_are_what_w_matches() -> None:
    r"""Letters, numbers and `_`; without fillers, which are invisible, and with what is reserved for ideographs."""
    fillers = {0x115F, 0x1160, 0x3164, 0xFFA0}
    for code in CODES:
        if len(form(code)) != 1 or FORMS[code] & SEVERAL:
            continue
        folded = form(code)
        kind = FORMS[code] & KIND
        is_word = re.match(r"\w", folded) is not None and code not in fillers
        reserved = unicodedata.category(folded) == "Cn" and 0x20000 <= ord(folded) <= 0x3FFFD
        reserved = reserved and code & 0xFFFE != 0xFFFE
        assert (kind in (WORD, UNSPACED)) == (is_word or reserved), hex(code)


@pytest.mark.parametrize(
    ("characters", "kind"),
    [
        ("aZ_é9٣дאبहकதაአᚠ", WORD),
        ("漢〇ひカーㄅ한ไລខမꆈ𗀀𠀀\U0003fff0ﾊ", UNSPACED),
        ("\u0301\u0e31\u093e", MARK),
        (" .-'’\n\0\u200d\u00ad\u3164😀$\ufffd\ue000", BREAK),
    ],
)
def test_kinds(characters: str, kind: int) -> None:
    """Scripts cut by character are told from others; what joins words elsewhere breaks them here."""
    assert {c: FORMS[ord(c)] & KIND for c in characters} == dict.fromkeys(characters, kind)


def test_orders_and_pairs() -> None:
    """Combining classes are Unicode's, and whatever NFC makes of two characters is marked on both."""
    for code in CODES:
        if len(nfkc(code)) == 1 and not FORMS[code] & SEVERAL:
            assert order(code) == unicodedata.combining(nfkc(code)), hex(code)
        parts = unicodedata.decomposition(chr(code)).split()
        if len(parts) == 2 and parts[0][0] != "<" and nfkc(code) == chr(code):
            first, second = (int(part, 16) for part in parts)
            assert FORMS[first] & FIRST, hex(first)
            assert FORMS[second] & SECOND, hex(second)


def test_neighbours_that_are_not_marked_stay_as_they_are() -> None:
    """Of any two characters either NFKC is NFKC of each, or the table tells that it may not be so."""
    chance = random.Random(3)
    single = [code for code in CODES if not FORMS[code] & SEVERAL and unicodedata.category(chr(code)) != "Cn"]
    lively = [code for code in single if order(code) or FORMS[code] & (FIRST | SECOND)]
    seconds = [code for code in single if order(code) or FORMS[code] & SECOND]
    for code in (*chance.choices(lively, k=20_000), *chance.choices(single, k=5_000)):
        after = chance.choice(seconds)
        joined = nfkc(code) + nfkc(after)
        told = FORMS[code] & FIRST and FORMS[after] & SECOND
        told = told or 0 < order(after) < order(code)
        assert told or unicodedata.normalize("NFKC", joined) == joined, (hex(code), hex(after))


def test_normalise_is_nfkc() -> None:
    """Also of marks in a row, up to a thousand."""
    for text in ("", "e\u0301 ﬁ ｶﾞ", "a" + "\u0301\u0316" * 500, "각"):
        assert normalise(text) == unicodedata.normalize("NFKC", text)


@pytest.mark.parametrize("marks", ["\u0301\u0316", "\u0344\u0316"])
def test_a_text_of_marks_takes_no_hours(marks: str) -> None:
    """100,000 marks out of order, for which unicodedata alone takes 8 seconds, and four times as long for twice as many."""
    text = "a" + marks * 50_000
    begin = time.process_time()
    found = normalise(text)

    assert time.process_time() - begin < 4
    assert Counter(unicodedata.normalize("NFD", found.replace("\u034f", " ")).replace(" ", "")) == Counter(
        "".join(unicodedata.normalize("NFD", c) for c in text)
    )
