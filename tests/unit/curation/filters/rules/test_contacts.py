"""Contacts: handles, invitations and accounts as advertisements give them, not mail addresses, code or quantities."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from curation.filters.rules.contacts import measure
from curation.filters.rules.parts import parts_of


def contacts(text: str) -> float | None:
    """How many contacts a text has, from its share; None where it is undefined."""
    parts = parts_of(pa.array([text], pa.large_string()))
    column = measure(parts)["contacts"]
    return None if np.ma.getmaskarray(column)[0] else float(column[0]) * float(parts.units[0]) / 100


@pytest.mark.parametrize(
    ("text", "n"),
    [
        ("Write to @green_mill today", 1),
        ("Join t.me/greenmill or https://t.me/+abcDEF or wa.me/000", 3),
        ("discord.gg/mill and bit.ly/mill", 2),
        ("加微信 w6288014 了解", 1),
        ("频率为AM1430和FM1470的电台", 0),
        ("联系客服：mill20231，或者 13800000000 王先生", 2),
        ("Пишите @melnica_bot", 1),
        ("mail@example.org or me.you@example.org", 0),
        ("[@contributor] and (@contributor) and `@property`", 0),
        ("16:47 <@miller> hi", 0),
        ("use @Override() and @mill.setter", 0),
        ("共有20000人参加，其中1997年生的有100000名", 0),
        ("遵循GB18030标准和UTF8编码", 1),  # looks like an account: a page has few of them
        ("see https://example.org/path/time/", 0),
        ("at @me and a@b", 0),
        ("\u26a0\ufe0f 20241231 the mill is open", 0),  # what ends an emoji is no full-width sign
        ("V：mill20231", 1),
    ],
)
def test_number_of_contacts(text: str, n: int) -> None:
    """What counts and what does not."""
    assert contacts(text) == pytest.approx(n, abs=1e-4)


def test_long_texts_say_nothing() -> None:
    """From 1,000 words on, and where there is no word, it is undefined."""
    assert contacts("@green_mill " + "word " * 980) == pytest.approx(1, abs=1e-3)
    assert contacts("@green_mill " + "word " * 1000) is None
    assert contacts("") is None
    assert contacts("@@@ !!!") is None
