"""What is undone before a safety model reads a text, and where its characters stood."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quality_models.safety_text import Places, readable


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("加 微 信", "加微信"),
        ("赌-博 网站", "赌博 网站"),
        ("赌￥博", "赌博"),
        ("赌★博", "赌博"),
        ("赌\u200b博", "赌博"),
        ("ｃａｓｉｎｏ", "casino"),
        ("ｐ.о.r.n", "porn"),
        ("p o r n site", "porn site"),
        ("p - o - r - n", "porn"),
        ("b_e_t now", "bet now"),
        ("v i a g r a  n o w", "viagra  now"),
        ("саsino кaзино", "casino казино"),
        ("ᴄᴀꜱɪɴᴏ 🅱🅴🆃", "casino BET"),
        ("𝓬𝓪𝓼𝓲𝓷𝓸", "casino"),
        ("カ ジ ノ", "カジノ"),
        ("be\u00adt\u2060ting", "betting"),
        ("a\r\nb\rc\u2028d\x85e", "a\nb\nc\nd\ne"),
        ("\x00before\x00after\x1b", "beforeafter"),
    ],
)
def test_disguises_are_undone(text: str, expected: str) -> None:
    """Spaced, signed, full-width, invisible, look-alike letters become what a person reads."""
    assert readable(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "J. R. R. Tolkien isn't read by e.g. a cat.",
        "Москва and Moscow; Афины και Αθήνα",
        "C++ a - b",
        "1 2 3 4 5",
        "我 在 北京, 你呢?".replace("我 在 ", "我们 在"),
        "한국어 문장은 띄어 쓴다.",
        "สวัสดีชาวโลก",
        "The old mill by the river is open again.\n\nA second paragraph.",
        "",
    ],
)
def test_ordinary_text_stays(text: str) -> None:
    """What is no disguise is left as it stands."""
    assert readable(text) == text


@given(st.text(alphabet=st.one_of(st.characters(), st.sampled_from("aо -.\n\r赌博\u200bＡ")), max_size=200))
@settings(max_examples=150, deadline=None)
def test_any_text_keeps_its_lines_and_places(text: str) -> None:
    """Deterministic; as many lines; places rise from 0 to at most the end, at borders of characters."""
    text = text.encode("utf-8", "ignore").decode()
    cleaned = readable(text)
    places = Places(text, cleaned)
    found = [places.bytes_at(place) for place in range(len(cleaned) + 1)]

    assert readable(text) == cleaned
    assert found == sorted(found)
    assert found[-1] <= len(text.encode())
    for place in found:
        text.encode()[:place].decode()


def test_places_are_exact_where_lines_are_unchanged() -> None:
    """A changed line moves the places of its own characters only."""
    text = "плоский текст\r\nр о r n\r\nзнакомый ряд"
    cleaned = readable(text)
    at = cleaned.index("знакомый")

    assert Places(text, cleaned).bytes_at(at) == len(text[: text.index("знакомый")].encode())


@pytest.mark.parametrize("piece", ["a ", "a.", "аa", "赌-", "赌 ", "\u0301", "a a ab ", "_", "'a b"])
def test_it_is_linear(piece: str) -> None:
    """300 kB of what could make a pattern go back and forth take a moment."""
    start = time.perf_counter()

    readable(piece * (300_000 // len(piece)) + "bb")

    assert time.perf_counter() - start < 2
