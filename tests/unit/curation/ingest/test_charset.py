"""Text equals what the page's author wrote, whatever charset the page claims; what cannot be read is refused."""

from __future__ import annotations

import random
from pathlib import Path

import orjson
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from warcio.archiveiterator import ArchiveIterator

from curation.ingest.charset import Decoded, UndecodableError, codec_of, declared_in, decode

ZH = "市议会周二开会，决定在入冬前修好大桥。工程师说，桥上的裂缝比去年宽了一倍，必须马上动手。"
HANT = "政府公布新的圖書館計畫，預計明年春天開放給市民使用，讓大家都能在假日到那裡讀書。"
JA = "市議会は火曜日に開かれ、冬が来る前に橋を修理することを決めた。ひび割れは去年の二倍に広がっている。"
KO = "시의회는 화요일에 회의를 열고 겨울이 오기 전에 다리를 고치기로 결정했다. 균열은 작년보다 두 배나 넓어졌다."
RU = "Городской совет собрался во вторник и решил починить мост до зимы. Трещины стали вдвое шире, чем год назад."
FR = "Le conseil municipal s’est réuni mardi et a décidé de réparer le pont avant l’hiver, où la fêlure a doublé."
PL = "Rada miasta zebrała się we wtorek i postanowiła naprawić most przed zimą, bo pęknięcia są dwa razy szersze."
AR = "اجتمع مجلس المدينة يوم الثلاثاء وقرر إصلاح الجسر قبل الشتاء، فقد اتسعت الشقوق إلى الضعف."


def page(text: str, declared: str = "") -> str:
    meta = f'<meta charset="{declared}">' if declared else ""
    return f"<html><head>{meta}<title>{text[:9]}</title></head><body><p>{text}</p>\n<p>{text[5:]}</p></body></html>"


READABLE = [
    # text, its real encoding, what the page declares, what the server says, why
    (ZH, "utf-8", "", None, "valid UTF-8 needs no declaration"),
    (ZH, "utf-8", "gb2312", None, "a site moved to UTF-8 and forgot its meta element: three real pages do"),
    (ZH, "gb18030", "gb2312", None, "gb2312 means gb18030 on the web"),
    (ZH, "gb18030", "", None, "undeclared Chinese is told by its everyday characters"),
    (ZH, "gb18030", "iso-8859-1", None, "iso-8859-1 is what a server says that does not know; it fits any bytes"),
    (ZH, "gb18030", "utf-8", "utf-8", "both declarations wrong"),
    (ZH, "utf-16", "", None, "a byte order mark settles it"),
    (ZH, "utf-16-le", "", None, "unmarked UTF-16 is told by the NUL bytes of its markup"),
    (ZH, "utf-16-be", "", None, "the same, other byte order"),
    (ZH, "utf-8-sig", "iso-8859-1", None, "a UTF-8 mark beats any declaration"),
    (ZH, "hz", "", None, "a seven-bit code: valid ASCII, and noise if taken for it"),
    (HANT, "big5", "big5", None, "declared and right"),
    (HANT, "big5", "", None, "resiliparse alone says gb18030"),
    (JA, "shift_jis", "x-sjis", None, "an old label of the web that Python does not know"),
    (JA, "euc_jp", "", None, "EUC-JP is also valid GB 2312: kana decide"),
    (JA, "iso2022_jp", "", None, "a seven-bit code behind escapes"),
    (KO, "euc_kr", "", None, "EUC-KR is also valid GB 2312, in everyday characters even; resiliparse alone says utf-8"),
    (KO, "cp949", "iso-8859-1", None, "wrongly declared"),
    (RU, "windows-1251", "", None, "Cyrillic, undeclared"),
    (RU, "koi8-r", "", None, "the other Cyrillic code: wrongly read it has capitals inside words"),
    (RU, "koi8-r", "", "windows-1251", "the server is wrong: what it says reads as nonsense"),
    (FR, "windows-1252", "iso-8859-1", None, "curly quotes in iso-8859-1 are windows-1252"),
    (FR, "windows-1252", "utf-8", "UTF-8", "a UTF-8 declaration over windows-1252 bytes"),
    (PL, "iso-8859-2", "iso-8859-1", None, "read as declared, signs would stand inside words"),
    (PL, "windows-1250", "windows-1250", None, "declared and right"),
    (AR, "windows-1256", "", None, "Arabic, undeclared"),
]


@pytest.mark.parametrize(("text", "encoding", "declared", "served", "why"), READABLE, ids=[row[4] for row in READABLE])
def test_pages_are_read_as_they_were_written(
    text: str, encoding: str, declared: str, served: str | None, why: str
) -> None:
    """The text is that of the author, with no sign replaced."""
    found = decode(page(text, declared).encode(encoding, "xmlcharrefreplace"), served)
    assert text[:30] in found.text
    assert found.replaced == 0


def test_a_declaration_far_into_the_page_is_found() -> None:
    """16 KB of ASCII head, then the meta element and a GB18030 body (B010)."""
    head = "<html><head>" + "<link rel='x' href='/y.css'>\n" * 600
    raw = f"{head}<meta http-equiv='Content-Type' content='text/html; charset=gb18030'></head><body>{ZH}".encode(
        "gb18030"
    )
    assert len(head) > 16_000
    assert ZH in decode(raw).text
    assert declared_in(raw) == ["gb18030"]


def test_real_pages_in_fifteen_encodings(test_data: Path) -> None:
    """All 95 variants (declared, undeclared, wrongly declared) give the text that their true encoding gives."""
    with zstandard.open(test_data / "1_web/encodings_gold.jsonl.zst", "rt", encoding="utf-8") as gold:
        truth = {row["id"]: row for row in map(orjson.loads, gold)}
    wrong = []
    with (test_data / "1_web/encodings.warc.gz").open("rb") as stream:
        for record in ArchiveIterator(stream):
            if record.rec_type != "response":
                continue
            row = truth.pop(record.rec_headers.get_header("WARC-X-Fixture-Id"))
            raw = record.content_stream().read()
            codec = "utf-16" if row["encoding"] == "utf-16" else codec_of(row["encoding"])
            assert codec is not None
            if decode(raw).text != raw.decode(codec):
                wrong.append((row["id"], row["encoding"], row["mode"]))
    assert not truth
    assert wrong == []


def test_a_few_broken_places_are_replaced_and_counted() -> None:
    """Real pages paste in a byte of another charset: that costs a sign, not the page."""
    raw = page(ZH, "utf-8").encode().replace("大桥".encode(), b"\xb4\xf3" + "桥".encode(), 1)
    found = decode(raw)
    assert found.charset == "utf-8"
    assert found.replaced == found.text.count("\ufffd") == 2
    assert decode(b"<p>" + b"plain words of a page " * 40 + b"\x9d and more</p>", "utf-8").replaced == 1


def test_a_replacement_character_of_the_author_is_not_counted() -> None:
    """U+FFFD that stands in the page as such is the page's own."""
    found = decode((page(FR, "utf-8") + "\ufffd").encode() + b"\xff")
    assert (found.charset, found.replaced) == ("utf-8", 1)


def test_what_is_no_text_in_any_charset_is_refused() -> None:
    """Random bytes, and two codes in one page, are no text: the error says what was tried."""
    raw = bytes(random.Random(3).choices(range(1, 256), k=3000))
    with pytest.raises(UndecodableError, match="declared: utf-8"):
        decode(raw, "utf-8")


def test_plain_text_that_speaks_about_meta_elements_declares_nothing() -> None:
    """In a plain text `<meta charset>` is a quotation."""
    raw = f"Write <meta charset=koi8-r> into the head. {FR}".encode("cp1252")
    assert decode(raw, markup=False).charset == "cp1252"


LABELS = [
    ("UTF8", "utf-8"), ("latin1", "cp1252"), ("us-ascii", "cp1252"), ("GB_2312-80", "gb18030"), ("big5-hkscs", "big5hkscs"),
    ("Shift-JIS", "cp932"), ("windows-31j", "cp932"), ("ks_c_5601-1987", "cp949"), ("iso-8859-9", "cp1254"),
    (' "windows-1251" ', "cp1251"), ("TIS-620", "cp874"), ("utf-16", "utf-16-le"), ("rot13", None), ("zlib", None),
    ("unicode_escape", None), ("idna", None), ("x-user-defined", None), ("", None), (None, None), ("a\0b", None), ("é", None),
]  # fmt: skip


@pytest.mark.parametrize(("label", "codec"), LABELS)
def test_labels_mean_what_they_mean_on_the_web(label: str | None, codec: str | None) -> None:
    """Labels of the Encoding Standard give the wider codec; Python's codecs that are no charset are refused."""
    assert codec_of(label) == codec


@given(st.text())
@settings(max_examples=200)
def test_utf8_is_read_back(text: str) -> None:
    """Any text of some length comes back from UTF-8 unchanged (but for a leading mark)."""
    text = text.lstrip("\ufeff").replace("\0", " ") + ZH
    assert decode(text.encode("utf-8"), "utf-8").text == text


@given(st.binary(max_size=400), st.sampled_from([None, "utf-8", "gbk", "iso-2022-jp", "utf-16", "nonsense"]))
@settings(max_examples=300)
def test_any_bytes_are_read_or_refused(raw: bytes, declared: str | None) -> None:
    """No input raises anything but UndecodableError, and nothing is replaced uncounted."""
    try:
        found = decode(raw, declared)
    except UndecodableError:
        return
    assert isinstance(found, Decoded)
    found.text.encode("utf-8")
    assert found.replaced <= found.text.count("\ufffd")


def test_hostile_markup_does_not_slow_the_search_for_declarations() -> None:
    """A megabyte of unfinished meta elements is searched in one pass."""
    raw = b"<meta " * 200_000 + b"\xe9t\xe9"
    assert decode(raw, "iso-8859-1").text.endswith("été")
