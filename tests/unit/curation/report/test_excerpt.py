"""Text on the page: cut where it is said, masked, every invisible character named."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.report.excerpt import EXCERPT_CHARS, EXCERPT_LINES, hex_dump, mask, plain, quantity_of_bytes, shown, take


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("write to john.doe@example.com now", "write to ••••.•••@•••••••.••• now"),
        ("ÜBER.öl@bücher.example", "••••.••@••••••.•••••••"),
        ("tel. +49 (30) 123-4567", "tel. +•• (••) •••-••••"),
        ("电话：13800138000。", "电话：•••••••••••。"),
        ("０９０-１２３４-５６７８", "•••-••••-••••"),
        ("call 415.555.2671!", "call •••.•••.••••!"),
        ("电话13812345678谢谢, โทร0812345678ครับ", "电话•••••••••••谢谢, โทร••••••••••ครับ"),
        ("abc1234567 1234567abc 2024年05月20日", "abc1234567 1234567abc 2024年05月20日"),
        ("on 2024-05-20 and 20.05.2024", "on 2024-05-20 and 20.05.2024"),
        ("in (1914-1918) and 1939–1945", "in (1914-1918) and 1939–1945"),
        ("pi is 3.14159265", "pi is 3.14159265"),
        ("1,234,567 people", "1,234,567 people"),
        ("id=a123456789b", "id=a123456789b"),
        ("no address: a@b, 12 @ 3", "no address: a@b, 12 @ 3"),
    ],
)
def test_addresses_and_phone_numbers_are_masked(text: str, expected: str) -> None:
    """Addresses and phone-like numbers, in any script's digits; dates, years, decimals stay."""
    assert mask(text) == expected


@given(st.text(max_size=300))
def test_masking_keeps_the_length(text: str) -> None:
    """So that the cut stands where it is said to stand."""
    assert len(mask(text)) == len(text)


@given(st.text(st.characters(), max_size=300))
def test_shown_text_is_harmless(text: str) -> None:
    """No character of HTML's syntax and no invisible one survives as itself, outside of our own marks."""
    rest = str(shown(text))
    for opening in ('<i class="ctl"', "<i class='ctl'"):
        rest = rest.replace(opening, "")
    assert "<script" not in rest
    assert not set(map(ord, rest)) & {
        *range(9),
        11,
        12,
        *range(14, 32),
        *range(0x7F, 0xA0),
        *range(0x202A, 0x202F),
        0xFEFF,
    }
    rest.encode("utf-8")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a<b>&\"'", "a&lt;b&gt;&amp;&#34;&#39;"),
        ("a\x00b", 'a<i class="ctl" title="U+0000 control character">␀</i>b'),
        ("a\u202eb", 'a<i class="ctl" title="U+202E RIGHT-TO-LEFT OVERRIDE">202E</i>b'),
        ("\ud800", '<i class="ctl" title="U+D800 private use or no character">D800</i>'),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("👨\u200d👩", "👨\u200d👩"),
        ("a\u200db", 'a<i class="ctl" title="U+200D ZERO WIDTH JOINER">200D</i>b'),
        ("tab\there\nline", "tab\there\nline"),
        ("a\n\n\n\n\nb", 'a\n<i class="ctl">5 line breaks</i>\nb'),
        ("a" + " " * 20 + "b", 'a <i class="ctl">20 blanks</i> b'),
    ],
)
def test_what_is_shown(text: str, expected: str) -> None:
    """Escaped; invisible characters named; joiners left where a script or an emoji needs them."""
    assert str(shown(text)) == expected


def test_attributes_hold_no_marks() -> None:
    assert plain("a\u202e\x00b") == "a\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}b"


@pytest.mark.parametrize("text", ["x" * 2000, "汉" * 2000, "😀" * 2000, "e\u0301" * 1000])
def test_the_cut_is_between_characters(text: str) -> None:
    """The first EXCERPT_CHARS characters of any script, and no replacement character."""
    excerpt = take(text.encode())
    assert excerpt.cut
    assert excerpt.text == text[:EXCERPT_CHARS]
    assert excerpt.n_bytes == len(text.encode())


def test_a_short_text_is_whole() -> None:
    excerpt = take(b"only this")
    assert (excerpt.text, excerpt.cut) == ("only this", False)


def test_many_lines_are_cut_too() -> None:
    """A menu of one word a line does not fill the screen."""
    excerpt = take("\n".join("abcdefghijklmnopqrstuvwxyz").encode())
    assert excerpt.cut
    assert excerpt.text.count("\n") == EXCERPT_LINES - 1


def test_an_address_at_the_cut_is_masked() -> None:
    """Masking looks beyond the cut, so that half an address is not shown."""
    excerpt = take(("x" * (EXCERPT_CHARS - 12) + " jane.doe@mail.example").encode())
    assert "jane" not in excerpt.text


@given(st.binary(max_size=4000))
def test_any_bytes_can_be_taken(data: bytes) -> None:
    """Damaged text gives replacement characters, never an error."""
    assert len(take(data).text) <= EXCERPT_CHARS


def test_bytes_are_dumped_with_their_offsets() -> None:
    dump = hex_dump(b"\xff\xfeAB" + bytes(range(20)))
    assert dump.splitlines()[0].startswith("0000  ff fe 41 42 00")
    assert dump.splitlines()[0].endswith("..AB............")
    assert dump.splitlines()[1].startswith("0010  0c 0d")


def test_an_address_is_masked_in_both_columns_of_a_dump() -> None:
    dump = hex_dump(b"\xff to joe@mail.example ")
    assert "joe" not in dump
    assert "6a 6f 65" not in dump


@pytest.mark.parametrize(
    ("n_bytes", "expected"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (999, "999 bytes"),
        (1000, "1.00 kB"),
        (12_340, "12.3 kB"),
        (999_600, "1.00 MB"),
        (5e12, "5.00 TB"),
    ],
)
def test_quantities_of_bytes(n_bytes: float, expected: str) -> None:
    assert quantity_of_bytes(n_bytes) == expected
