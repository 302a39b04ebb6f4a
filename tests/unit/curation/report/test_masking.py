"""What leads to a person is masked, however it is spelt; the length stays, and ordinary sentences do, too."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.report.excerpt import EXCERPT_CHARS, take
from curation.report.masking import MASK, mask

MADE_UP = [
    ("加微信 abcd_0000 了解", "加微信 ••••••••• 了解"),
    ("加薇信：ＡＢＣ０００", "加薇信：••••••"),
    ("V信13800000000 联系", "V信••••••••••• 联系"),
    ("微❤️：abc000", "微❤️：••••••"),
    ("VX：made-up", "VX：•••••••"),
    ("VX/QQ同号：00000000", "VX/QQ同号：••••••••"),
    ("扣扣号码：12300000", "扣扣号码：••••••••"),
    ("QQ群 0 0 0 0 1", "QQ群 • • • • •"),
    ("QQ：①②③④⑤⑥⑦", "QQ：•••••••"),
    ("LINE: made.up", "LINE: •••••••"),
    ("加LINE ID：abc000", "加LINE ID：••••••"),
    ("ライン：abc_0", "ライン：•••••"),
    ("카톡 아이디 abc000", "카톡 아이디 ••••••"),
    ("Telegram @made_up", "Telegram @•••••••"),
    ("飞机：@made_up", "飞机：@•••••••"),
    ("纸飞机abcdef00", "纸飞机••••••••"),
    ("/ask@made_up @made_0@made_1 a@b", "/ask@••••••• @••••••@•••••• a@b"),
    ("客服t.me/made_up，加扣0000000000QQ", "客服t.me/•••••••，加扣••••••••••QQ"),
    ("加喂：ab000000 薇 ABC000", "加喂：•••••••• 薇 ••••••"),
    ("联系@小明的号 吧", "联系@•••• 吧"),
    ("t.me/made_up，快来", "t.me/•••••••，快来"),
    ("t . me / made_up", "t . me / •••••••"),
    ("https://wa.me/15550000000?text=hi", "https://wa.me/•••••••••••?•••••••"),
    ("WhatsApp +1 (555) 000-0000", "WhatsApp +• ••••• ••••••••"),
    ("name (at) example (dot) com", "•••• •••• ••••••• ••••• •••"),
    ("made . up @ example . com", "made . •• @ ••••••• . •••"),
    ("身份证11010100000000000X。", "身份证••••••••••••••••••。"),
    ("卡号 6222 0000 0000 0000 000", "卡号 •••• •••• •••• •••• •••"),
    ("DE00 0000 0000 0000 0000 00", "•••• •••• •••• •••• •••• ••"),
    ("一三八零零零零零零零零", "•••••••••••"),
    ("１３８ ００００ ００００", "••• •••• ••••"),
    ("1\u200b3\u200b8\u200b0\u200b0\u200b0\u200b0\u200b0", "\u200b".join("••••••••")),
    ("1️⃣3️⃣8️⃣0️⃣0️⃣0️⃣0️⃣0️⃣", "•️⃣" * 8),
]

HARMLESS = [
    "微信公众号：某某某",
    "微信支付很方便",
    "on line because of it",
    "Line up here, line 1234 of the file",
    "WeChat users are many; a Telegram channel; the QQ group chat",
    "session started, signal 12000 lost, see IG report",
    "The match ended 21:15, 3-2 (1-0), before 48,000 people.",
    "二十一世纪，一二三四五",
    "from 1914-1918, on 2024-05-20, about 3.14159265",
    "蔷薇 1980，安徽 2024 年，折扣 20000，威尔士 2020 喂 hello",
    "電報が届いた。ライン川を渡る。",
]


@pytest.mark.parametrize(("text", "expected"), MADE_UP)
def test_accounts_are_masked(text: str, expected: str) -> None:
    """Behind the name of a messenger, in links, as handles and numbers; the sentence around them stays."""
    assert mask(text) == expected


@pytest.mark.parametrize("text", HARMLESS)
def test_ordinary_sentences_stay(text: str) -> None:
    assert mask(text) == text


@given(st.text(max_size=300) | st.text("微信VXqQ@.: 0١1一①t/me\u200b", max_size=300))
def test_the_length_and_every_other_character_stay(text: str) -> None:
    """So that places in the text stay right."""
    masked = mask(text)
    assert len(masked) == len(text)
    assert all(new in (old, MASK) for old, new in zip(text, masked, strict=True))


@pytest.mark.parametrize(("text", "expected"), MADE_UP)
@pytest.mark.parametrize("before", [EXCERPT_CHARS - 5, EXCERPT_CHARS - 2, 3])
def test_half_an_account_at_the_cut_is_one(text: str, expected: str, before: int) -> None:
    """Masking looks beyond the cut."""
    excerpt = take(("x" * before + "\n" + text).encode())
    assert excerpt.text == (("x" * before + "\n" + expected)[:EXCERPT_CHARS]).rstrip()


@pytest.mark.parametrize(
    "unit", ["微信", "QQ", "QQ:", "1 ", "1\u200b", "@", "a@", "t.me/", "AB00", "一", "vx.", "x" * 60 + "@a."]
)
def test_no_text_takes_long(unit: str) -> None:
    """Every pattern is bounded: what stands in an excerpt is masked in milliseconds, whatever it is."""
    text = (unit * 900)[:900]
    began = time.perf_counter()
    mask(text)
    assert time.perf_counter() - began < 1.0
