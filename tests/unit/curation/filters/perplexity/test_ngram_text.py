"""Normalised characters: by one rule in every script, whether the kernel or Python does it."""

from __future__ import annotations

import pyarrow as pa
import pytest

from curation.filters.perplexity.ngram_text import BLOCK, normal_characters
from curation.text import buffers


def normal(texts: list[str]) -> list[str]:
    codes, offsets = normal_characters(*buffers(pa.array(texts, pa.large_string())))
    whole = "".join(map(chr, codes.tolist()))
    return [whole[start:end] for start, end in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)]


CASES = {
    "": "",
    " \n\t\r ": "",
    "Hello,  World\n\n\tAgain ": "hello, world again",
    "STRASSE ẞ ß": "strasse ß ß",
    "1999 ٣٤ ৫ ²": "0000 00 0 0",
    "½ ①②": "0⁄0 00",
    "Ｆｕｌｌ　ｗｉｄｔｈ！": "full width!",
    "ｶﾞｷﾞ": "ガギ",
    "e\u0301a\u0308": "éä",
    "한국": "한국",
    "ﬁ ﷺ": "fi صلى الله عليه وسلم",
    "soft\u00adhyphen\u200b x\ufe0f": "softhyphen x",
    "a\u00a0b\u2003c\u2028d\u0085e": "a b c d e",
    "\x00a\x01": "\x00a\x01",
    "\x00 \x00\r0": "\x00 \x00 0",
    "中文，全形。": "中文,全形。",
    "नमस्ते": "नमस्ते",
    "\u0301 alone": "\u0301 alone",
    "a\u0323\u0307 a\u0307\u0323": "ạ̇ ạ̇",
    "😀 emoji": "😀 emoji",
}


@pytest.mark.parametrize("text", CASES)
def test_normal_form(text: str) -> None:
    """NFKC, case folding, digits as 0, one blank for any run of them, none at the ends."""
    assert normal([text]) == [CASES[text]]


def test_texts_do_not_depend_on_their_neighbours() -> None:
    """All cases at once give what each gives by itself, also where Python has to help with some."""
    assert normal(list(CASES)) == list(CASES.values())


@pytest.mark.parametrize("n", [BLOCK - 40, BLOCK - 36, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK])
@pytest.mark.parametrize("unit", ["a", "a ", " ", "ﬃ", "中"])
def test_blocks_meet_without_a_seam(n: int, unit: str) -> None:
    """Texts of about the length that is normalised at a time, and of several times that."""
    assert normal([unit * n + "b"]) == [" ".join((unit.replace("ﬃ", "ffi") * n + "b").split())]


def test_bytes_that_are_no_text_are_read_as_replacements() -> None:
    """Arrow strings are UTF-8; should one not be, nothing is read beyond it."""
    array = pa.Array.from_buffers(
        pa.string(), 2, [None, pa.py_buffer(b"\0\0\0\0\3\0\0\0\5\0\0\0"), pa.py_buffer(b"a\xffb\xe4\xb8")]
    )
    codes, offsets = normal_characters(*buffers(array))
    assert [chr(code) for code in codes] == ["a", "\ufffd", "b", "\ufffd"]
    assert offsets.tolist() == [0, 3, 4]
