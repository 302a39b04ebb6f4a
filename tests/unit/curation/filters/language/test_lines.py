"""What has no language leaves a line, the rest is written as it stands and folded; nothing else changes it."""

from __future__ import annotations

import io
import json
import time
import unicodedata
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import zstandard
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from curation.errors import InputError
from curation.filters.language.folding import LOWER_BLOCKS, LOWER_INDEX, NOT_NFC
from curation.filters.language.lines import LineKind, Lines, prepare
from curation.text import Script, buffers
from tests.guard_page import run_between_guard_pages
from tests.lines_oracle import cleaned, folded, letters
from tests.strategies import cuts, hostile_text, markup_text

CASES = [
    ("Text stays, as it is (even this)!", "Text stays, as it is (even this)!"),
    ("see https://a.example/b?c=1&d#e now", "see now"),
    ("(siehe www.example.org/x)", "(siehe"),
    ("请访问https://example.com/abc查看详情", "请访问 查看详情"),
    ("example.org/a/b und example.org", "und"),
    ("mail me@example.org or @handle, now", "mail or now"),
    ("edit config.yaml and a/b/c.py, C:\\x\\y, /usr/lib/z", "edit and"),
    ("e.g. z.B. d.h. U.S. and/or он/она", "e.g. z.B. d.h. U.S. and or он она"),
    ("Ende.Neuer Satz. слово.слово", "Ende.Neuer Satz. слово.слово"),
    ("v1.2.3 costs 12,345.67 € or -5 % on 2026-11-29 at 10:30", "costs or on at"),
    ("1990年3月5日 2000-luvulla 1923'te", "年 月 日 luvulla te"),
    ("pip_install fooBar() getElementById std::vector a=b $HOME x86_64 H2O", ""),
    ("McDonald isiZulu hÉireann iPhone", "McDonald isiZulu hÉireann iPhone"),
    ("#BlackLivesMatter2020 #été_bleu", "Black Lives Matter été bleu"),
    ("**bold**, _thin_ and `code`.", "bold, thin and code."),
    ("[text](https://a.example/b) [文字](/a/b.html)", "text 文字"),
    ('<a href="x y" class=z>Text</a>&nbsp;R&amp;D &#39;', "Text R D"),
    ("a < b and c > d, 修改<中华人民共和国>的", "a b and c d, 修改 中华人民共和国 的"),
    ("😀❤️ ok 👨‍👩‍👧 ★ ½ ٣", "ok"),
    ("a\u00a0\u3000 \t b\u2028c\u200bd", "a b c d"),
    ("so\u00adft \u202ba\u202c\u2066b\u2069", "soft ab"),
    ("می‌خواهم ക്‍ x\u200d", "می‌خواهم ക് x"),
    ("e\u0301te\u0301 ka\u0323\u0302 \u1112\u1161\u11ab", "été kậ 한"),
    ("\u212bngstro\u0308m", "Ångström"),
    ("l'homme l’homme rock 'n' roll", "l'homme l’homme rock 'n' roll"),
    ("a\0b\x1bc", "a b c"),
    ("\u0301\u0e31", "\u0301\u0e31"),
    ("𝔘 𠀀字", "𝔘 𠀀字"),
    ("12345 67890", ""),
    ("!!! ??? ...", "!!! ??? ..."),
]
FOLDED = [
    ("The LIBRARY Opens.", "the library opens"),
    ("İSTANBUL IĞDIR", "i̇stanbul iğdir"),
    ("ΣΟΦΟΣ ΆΓΙΟΣ", "σοφοσ άγιοσ"),
    ("ЩУКА ЁЖ ЃО", "щука ёж ѓо"),
    ("ՀԱՅ ᲡᲐᲥᲐᲠᲗᲕᲔᲚᲝ ႠႡ Ꭰ Ꞓ Ⱥ 𐐀", "հայ საქართველო ⴀⴁ ꭰ ꞓ ⱥ 𐐨"),
    ("“Don’t”, he said - rock-'n'-roll", "don’t he said - rock-'n'-roll"),
    ("图书馆，开放。 ラーメン", "图书馆 开放 ラーメン"),
    ("می‌خواهم", "می خواهم"),
]


def prepared(*texts: str) -> Lines:
    return prepare(*buffers(pa.array(texts, pa.large_string())))


def strings(lines: Lines) -> list[tuple[str, str]]:
    """Each line cleaned, and folded."""
    clean, fold = lines.clean.tobytes(), lines.folded.tobytes()
    places = zip(lines.clean_starts, lines.clean_ends, lines.folded_starts, lines.folded_ends, strict=True)
    return [(clean[a:b].decode(), fold[c:d].decode()) for a, b, c, d in places]


def raw_lines(texts: Sequence[str], lines: Lines) -> list[str]:
    data = "".join(texts).encode()
    return [data[a:b].decode() for a, b in zip(lines.spans.starts, lines.spans.ends, strict=True)]


def assert_as_told_slowly(texts: Sequence[str]) -> None:
    lines = prepared(*texts)
    for raw, (clean, fold), row in zip(raw_lines(texts, lines), strings(lines), lines.letters, strict=True):
        assert clean == cleaned(raw)
        assert fold == folded(clean)
        assert {script: n for script, n in enumerate(row.tolist()) if n} == letters(clean)


def is_told_apart(text: str) -> bool:
    """No symbol that NFC takes apart: those are dropped before, or after."""
    return not any(
        (unicodedata.category(c)[0] in "SC" and (c != unicodedata.normalize("NFC", c))) or c == "\u0338" for c in text
    )


@pytest.mark.parametrize(("raw", "clean"), CASES)
def test_clean(raw: str, clean: str) -> None:
    """Addresses, numbers, code, symbols and markup are one blank; letters, marks and punctuation stay."""
    assert [clean] == [line for line, _ in strings(prepared(raw))] == [cleaned(raw)]


@pytest.mark.parametrize(("raw", "fold"), FOLDED)
def test_folded(raw: str, fold: str) -> None:
    """Lower case letters, marks, apostrophes and hyphens; one blank for anything else."""
    assert [fold] == [line for _, line in strings(prepared(raw))]


def test_lower_case_is_that_of_python() -> None:
    """The table is `str.lower` of single characters, but for the one that becomes two, and characters not in NFC."""
    distances = LOWER_BLOCKS.reshape(-1, 64)[LOWER_INDEX].reshape(-1)
    for code in range(0x1E944):
        character = chr(code)
        if code == 0x130 or 0xD800 <= code < 0xE000:
            continue
        expected = ord(character.lower()) - code if unicodedata.is_normalized("NFC", character) else NOT_NFC
        assert expected == distances[code], hex(code)
    assert all(distances[ord(c)] == NOT_NFC for c in "\u212a\uf900\U0002f800\u0958")


def test_lines_of_documents() -> None:
    """There is a row for every line, blank ones too, in order; a carriage return belongs to none."""
    lines = prepared("One two.\r\n\r\n三\n", "", "\n", "x")

    assert strings(lines) == [("One two.", "one two"), ("", ""), ("三", "三"), ("", ""), ("x", "x")]
    assert lines.spans.offsets.tolist() == [0, 3, 3, 4, 5]
    assert lines.kind.tolist() == [LineKind.TEXT, LineKind.BLANK, LineKind.TEXT, LineKind.BLANK, LineKind.TEXT]
    assert (lines.letters[0, Script.LATIN], lines.letters[2, Script.HAN], lines.letters.sum()) == (6, 1, 8)
    assert [str(a.dtype) for a in (lines.letters, lines.kind, lines.clean_ends)] == ["int32", "uint8", "int64"]


def test_nothing_gives_nothing() -> None:
    """No document, and documents without lines, have no rows."""
    assert (len(prepared().kind), len(prepared("", "").kind)) == (0, 0)


def test_damaged_offsets_are_refused() -> None:
    """Offsets that leave the data are told, not followed."""
    with pytest.raises(InputError, match="rise and lie within"):
        prepare(np.zeros(4, np.uint8), np.array([0, 9], np.int64))


PIECES = (
    *(
        "foo",
        "Bar",
        "éa",
        "слово",
        "字",
        "かな",
        "한국",
        "ไทย",
        "हिन्दी",
        "x1",
        "7",
        "-",
        ".",
        "..",
        ",",
        ":",
        "::",
        "'",
        "’",
        "!",
    ),
    *(
        "_",
        "/",
        "//",
        "\\",
        "@",
        "=",
        "$",
        "#",
        "()",
        "(",
        ")",
        "http://",
        "://",
        "www.",
        "&amp;",
        "&",
        "<",
        "<b>",
        ">",
        "](",
        "]",
    ),
    *(
        " ",
        "  ",
        "\u00a0",
        "\u200d",
        "\u200c",
        "\u00ad",
        "\u0301",
        "\u0327",
        "e\u0301",
        "\u093c",
        "😀",
        "½",
        "。",
        "\0",
        "\n",
    ),
)
token_text = st.lists(st.sampled_from(PIECES), max_size=30).map("".join)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.one_of(token_text, hostile_text, markup_text), max_size=4))
def test_kernels_do_what_is_told_slowly(texts: list[str]) -> None:
    """Cleaned and folded lines and letters are those of plain Python."""
    assume(all(map(is_told_apart, texts)))
    assert_as_told_slowly(texts)


@settings(max_examples=200, deadline=None)
@given(st.one_of(token_text, hostile_text, markup_text))
def test_what_is_left_is_left_again(text: str) -> None:
    """A cleaned line is clean, and a folded one folded."""
    once = [pair for pair in strings(prepared(text)) if pair[0]]
    again = strings(prepared(*(clean for clean, _ in once)))
    assert once == again
    folds = [fold for _, fold in once if fold]
    assert folds == [fold for _, fold in strings(prepared(*folds))]


@pytest.mark.parametrize("line", ["(ab); (cd);", "(ж); (щ); x;", "Ⱥ].#Xカ}Y\u200d🇪X;\u200b"])
def test_signs_of_code_count_at_the_end_of_the_data_too(line: str) -> None:
    """64 bytes are read at once where they are there, and where they are not the line is of the same kind."""
    assert prepared(line).kind.tolist() == prepared(line, "word " * 40).kind[:1].tolist() == [LineKind.CODE]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.one_of(token_text, hostile_text), max_size=6).flatmap(cuts))
def test_cuts_change_nothing(parts: list[list[str]]) -> None:
    """Documents alone, in batches or as slices of an array have the same lines."""
    texts = [text for part in parts for text in part]
    whole = prepared(*texts)
    array = pa.array(["before\n", *texts, "after"], pa.large_string())
    found, kinds, counts, start = [], [], [], 1
    for part in parts:
        lines = prepare(*buffers(array.slice(start, len(part))))
        start += len(part)
        found += strings(lines)
        kinds += lines.kind.tolist()
        counts += lines.letters.tolist()
    assert (strings(whole), whole.kind.tolist(), whole.letters.tolist()) == (found, kinds, counts)


def test_real_lines(test_data: Path) -> None:
    """Lines of crawled text in 25 languages are cleaned and folded as plain Python does it."""
    path = test_data / "2_text" / "crawl-00.jsonl.zst"
    with path.open("rb") as file:
        stream = zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(file)
        rows = [json.loads(row) for row, _ in zip(io.TextIOWrapper(stream, "utf-8"), range(600), strict=False)]
    lines = [line for row in rows for line in row["text"].split("\n")[::40][:5] if len(line) < 2000]
    assert len(lines) > 500
    assert_as_told_slowly([line for line in lines if is_told_apart(line)])


LONG = [
    "word ",
    "x",
    "_a",
    "<a ",
    "<",
    "&",
    "&#",
    "http://",
    "e\u0301",
    "\u0301",
    "\u00ad",
    "a\u0301\u0327",
    "字",
    "](",
    "/a",
    "#aB",
]


@pytest.mark.parametrize("piece", LONG)
def test_long_lines_take_time_by_their_length(piece: str) -> None:
    """A line of 2 MB is read once, whatever stands in it: an hour would be quadratic, 20 s is not."""
    began = time.process_time()
    lines = prepared("\n", piece * (2_000_000 // len(piece.encode())))
    assert len(lines.kind) == 2
    assert time.process_time() - began < 20


PROGRAM = """
from curation.filters.language.lines import prepare

texts = ["word word", "a" * 70, "été", "字字", "x.y_z", "<a", "&am", "http:/", "www.", "e\\u0301", "\\u00ad", "a\\u200d"]
texts += ["#aB", "](", "()", "a:", "\\\\"]
for text in texts:
    raw = text.encode()
    for where in ("start", "end"):
        data = put(raw, where)
        for a in range(len(raw) + 1):
            prepare(data, np.array([0, a, len(raw)], np.int64))
prepare(put(bytes(range(256)) * 16, "start"), np.arange(0, 4097, 64))
print("visited")
"""


def test_nothing_is_read_outside_of_the_data() -> None:
    """Kernels stay within the data, at every cut of a text, in the midst of a character too."""
    run_between_guard_pages(PROGRAM)
