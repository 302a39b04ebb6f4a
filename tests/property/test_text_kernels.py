"""Every text kernel equals a slow and plain reading of its definition, on any text of any script.

The oracle works on Python strings: a character at a time, words by one regular expression over the
characters' roles. It shares nothing with the kernels but the character tables, which have tests of
their own.
"""

from __future__ import annotations

import json
import random
import re
from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pytest
import zstandard
from hypothesis import example, given, settings
from hypothesis import strategies as st

import curation.text
from curation.text import (
    CharClass,
    Script,
    Spans,
    buffers,
    class_counts,
    count_chars,
    count_words,
    hash_spans,
    line_spans,
    paragraph_spans,
    script_counts,
    unspaced_share,
    word_hashes,
    word_spans,
)

# ---------------------------------------------------------------- the oracle

TABLE = [
    line.split("\t")
    for line in (Path(curation.text.__file__).parent / "characters.tsv").read_text("utf-8").splitlines()
    if not line.startswith("#")
]
FIRSTS = [int(row[0], 16) for row in TABLE]
BLANK = {"space", "newline", "control"}
ROLE_LETTERS = {
    "letter": "L",
    "digit": "D",
    "unspaced": "U",
    "mark": "M",
    "ignorable": "I",
    "joiner": "J",
    "number_joiner": "N",
    "hebrew_joiner": "Q",
}


class Character(NamedTuple):
    """One character of a text and its bytes `start:stop`."""

    char: str
    start: int
    stop: int

    @property
    def kind(self) -> tuple[str, str, str]:
        """Class, script and role, as the table has them."""
        row = TABLE[bisect_right(FIRSTS, ord(self.char)) - 1]
        return (row[2], row[3], row[4]) if ord(self.char) <= int(row[1], 16) else ("other", "Common", "break")

    @property
    def letter(self) -> str:
        """One letter for the role; H for a Hebrew letter."""
        _, script, role = self.kind
        return "H" if (role, script) == ("letter", "Hebrew") else ROLE_LETTERS.get(role, "B")


def characters(raw: bytes) -> Iterator[Character]:
    """Characters of a text; U+FFFD for each maximal part of it that is not UTF-8."""
    at = 0
    while at < len(raw):
        try:
            good, bad = raw[at:].decode(), 0
        except UnicodeDecodeError as error:
            good, bad = raw[at : at + error.start].decode(), error.end - error.start
        for char in good:
            yield Character(char, at, at + len(char.encode()))
            at += len(char.encode())
        if bad:
            yield Character("\ufffd", at, at + bad)
            at += bad


def oracle_words(raw: bytes) -> list[tuple[int, int]]:
    """Spans of words: marks and ignorable characters join what they follow, then a pattern finds the runs."""
    roles, spans = "", []
    for character in characters(raw):
        if character.letter not in "MI":
            roles += character.letter
            spans.append([character.start, character.stop])
        elif character.letter == "M" and spans:
            spans[-1][1] = character.stop
    pattern = r"U|[LHD](?:[LHD]|J(?=[LHD])|(?<=D)N(?=D)|(?<=H)Q(?=H))*"
    return [(spans[m.start()][0], spans[m.end() - 1][1]) for m in re.finditer(pattern, roles)]


def oracle_lines(raw: bytes) -> list[tuple[int, int]]:
    """Spans of lines without the blanks at their ends."""
    lines, at = [], 0
    for line in raw.split(b"\n"):
        inner = [(c.start, c.stop) for c in characters(line) if c.kind[0] not in BLANK]
        lines.append((at + inner[0][0], at + inner[-1][1]) if inner else (at + len(line), at + len(line)))
        at += len(line) + 1
    return lines[:-1] if raw.endswith(b"\n") or not raw else lines


def oracle_paragraphs(raw: bytes) -> list[tuple[int, int]]:
    """Spans from the first to the last of neighbouring lines that are not blank."""
    paragraphs: list[tuple[int, int]] = []
    blank = True
    for start, stop in oracle_lines(raw):
        if start < stop:
            paragraphs.append((start, stop) if blank else (paragraphs.pop()[0], stop))
        blank = start == stop
    return paragraphs


def oracle_xxh64(raw: bytes, seed: int = 0) -> int:
    """XXH64 as its specification puts it."""
    p1, p2, p3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
    p4, p5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
    mask = (1 << 64) - 1

    def rotate(x: int, n: int) -> int:
        return (x << n | x >> (64 - n)) & mask

    def turn(lane: int, word: int) -> int:
        return rotate((lane + word * p2) & mask, 31) * p1 & mask

    def number(n: int) -> int:
        return int.from_bytes(raw[at : at + n], "little")

    at = 0
    h = (seed + p5) & mask
    if len(raw) >= 32:
        lanes = [(seed + p1 + p2) & mask, (seed + p2) & mask, seed, (seed - p1) & mask]
        while at + 32 <= len(raw):
            for i in range(4):
                lanes[i] = turn(lanes[i], number(8))
                at += 8
        h = sum(rotate(lane, n) for lane, n in zip(lanes, (1, 7, 12, 18), strict=True)) & mask
        for lane in lanes:
            h = ((h ^ turn(0, lane)) * p1 + p4) & mask
    h = (h + len(raw)) & mask
    while at + 8 <= len(raw):
        h = (rotate(h ^ turn(0, number(8)), 27) * p1 + p4) & mask
        at += 8
    if at + 4 <= len(raw):
        h = (rotate(h ^ number(4) * p1 & mask, 23) * p2 + p3) & mask
        at += 4
    while at < len(raw):
        h = rotate(h ^ number(1) * p5 & mask, 11) * p1 & mask
        at += 1
    h = (h ^ h >> 33) * p2 & mask
    h = (h ^ h >> 29) * p3 & mask
    return h ^ h >> 32


def simple_fold(text: str) -> str:
    """Simple case folding: each character to one character."""
    return "".join(next((f for f in (c.casefold(), c.lower()) if len(f) == 1), c) for c in text)


# ---------------------------------------------------------------- texts

PIECES = (
    "the", "The", "McDonald", "don't", "rock'n'roll", "l’eau", "'quoted'", "a__b", "snake_case", "x_", "well-known",
    "1,234.5", "3.", ".5", "1'000", "90's", "1.a", "a.1", "U.S.", "é", "e\u0301", "ǅungla", "ẞtraße", "İstanbul", "ſ",
    "Ὀδυσσεύς", "Привет", "ёлка", "ինչպե՞ս", "שלום", 'צה"ל', "ג׳ירפה", 'a"b', '"', "مرحبا", "می‌روم", "१२३", "हिन्दी",
    "বাংলা", "தமிழ்", "ภาษาไทย", "๑๒๓", "ລາວ", "ខ្មែរ", "မြန်မာ", "中文", "漢字仮名", "コーヒー", "ひらがな", "ｶﾀｶﾅ", "한국어",
    "\u1112\u1161\u11ab", "ꆈꌠ", "𠀀𪚥", "葛\U000e0100", "𝒳𝟚", "👍🏽", "👨‍👩‍👧‍👦", "🇩🇪", "1️⃣", "❤️", "©", "\u0301", "\u200d", "\u00ad",
    "\ufeff", "\u200b", "\u2028", "\u0085", "\x00", "\x7f", "\t", "\r\n", "\n", "\n\n", " ", "  ", "\u3000", "\u00a0",
    ".", ",", "'", "_", "·", "…", "。", "、", "$", "+", "-", "\u202e", "\ufffd", "\U0010ffff", "\ue000", "Ⅷ", "½", "〇",
    "a" * 70, "ab " * 50, "x" * 33,
)  # fmt: skip
texts = st.lists(
    st.one_of(st.sampled_from(PIECES), st.text(max_size=4), st.text("aZ09 '_.,\"\n", max_size=80)), max_size=40
).map("".join)
damaged = st.lists(
    st.one_of(st.binary(max_size=5), st.sampled_from(PIECES).map(str.encode).flatmap(
        lambda raw: st.integers(0, len(raw)).map(lambda n: raw[:n])
    )),
    max_size=30,
).map(b"".join)  # fmt: skip
raw_texts = st.one_of(texts.map(lambda text: text.encode("utf-8", "replace")), damaged)


def laid_out(documents: list[bytes]) -> tuple[np.ndarray, np.ndarray]:
    """Documents as kernels take them, the last one at the very end of the buffer."""
    offsets = np.cumsum([0, *map(len, documents)])
    return np.frombuffer(b"".join(documents), np.uint8), offsets.astype(np.int64)


def by_document(spans: Spans, offsets: np.ndarray) -> list[list[tuple[int, int]]]:
    """Spans relative to their documents, as lists."""
    return [
        [(int(a - begin), int(b - begin)) for a, b in zip(spans.starts[i:j], spans.ends[i:j], strict=True)]
        for begin, i, j in zip(offsets, spans.offsets, spans.offsets[1:], strict=False)
    ]


def check(documents: list[bytes]) -> None:
    """All kernels against all oracles."""
    data, offsets = laid_out(documents)
    chars = [list(characters(raw)) for raw in documents]
    classes = [[c.kind[0] for c in document] for document in chars]
    scripts = [[c.kind[1] for c in document if c.kind[0] == "letter"] for document in chars]
    words = [oracle_words(raw) for raw in documents]

    assert [len(document) for document in chars] == count_chars(data, offsets).tolist()
    assert [[d.count(c.name.lower()) for c in CharClass] for d in classes] == class_counts(data, offsets).tolist()
    names = [s.name.title() for s in Script]
    assert [[d.count(name) for name in names] for d in scripts] == script_counts(data, offsets).tolist()
    assert [len(document) for document in words] == count_words(data, offsets).tolist()
    assert words == by_document(word_spans(data, offsets), offsets)
    assert [oracle_lines(raw) for raw in documents] == by_document(line_spans(data, offsets), offsets)
    assert [oracle_paragraphs(raw) for raw in documents] == by_document(paragraph_spans(data, offsets), offsets)
    check_hashes(documents, data, offsets, words)


def check_hashes(
    documents: list[bytes], data: np.ndarray, offsets: np.ndarray, words: list[list[tuple[int, int]]]
) -> None:
    """Hashes of documents, and of words as they stand and folded."""
    assert [oracle_xxh64(raw, 7) for raw in documents] == hash_spans(data, offsets, seed=7).tolist()
    parts = [raw[a:b] for raw, spans in zip(documents, words, strict=True) for a, b in spans]
    plain = word_hashes(data, offsets)
    assert np.cumsum([0, *map(len, words)]).tolist() == plain.offsets.tolist()
    assert [oracle_xxh64(part) for part in parts] == plain.values.tolist()
    folded = word_hashes(data, offsets, seed=3, folded=True)
    assert [oracle_xxh64(simple_fold(part.decode()).encode(), 3) for part in parts] == folded.values.tolist()


# ---------------------------------------------------------------- the laws


@settings(max_examples=150, deadline=None)
@given(st.lists(raw_texts, max_size=4))
@example([])
@example([b""])
@example([b"", b"\n", b"", b"\xff", b""])
@example(["".join(PIECES).encode(), " ".join(PIECES).encode()])
def test_kernels_equal_the_oracle(documents: list[bytes]) -> None:
    """Whatever the text, valid or not, kernels and definitions agree."""
    check(documents)


def test_dense_mixtures_equal_the_oracle() -> None:
    """Long texts of the few characters that decide about words, in every order, equal the oracle."""
    chance = random.Random(20)
    alphabets = ("aB1'._,\" ", "a1'.\"_éש中ถ\u0301\u200d\n ’٫,ה", tuple(PIECES))
    for alphabet in alphabets:
        check(["".join(chance.choices(alphabet, k=chance.randrange(300))).encode() for _ in range(150)])


def test_every_character_alone_and_between_letters() -> None:
    """Each character of Unicode has the class, script, role and folding that the tables give it."""
    codes = [code for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    dense = [code for code in codes if code < 0x3400 or 0xA000 <= code < 0xAC00 or 0xF900 <= code < 0x12000]
    sparse = codes[::257]
    check([b"".join(b"a" + chr(code).encode() + b"1 " for code in sorted({*dense, *sparse}))])


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
@settings(max_examples=25, deadline=None)
@given(documents=st.lists(texts, min_size=1, max_size=6), cut=st.data())
def test_a_slice_counts_like_a_copy(kind: pa.DataType, documents: list[str], cut: st.DataObject) -> None:
    """Offsets of a sliced array are respected, for both string types, without a copy of the text."""
    array = pa.array([text.encode("utf-8", "replace").decode() for text in documents], kind)
    start = cut.draw(st.integers(0, len(array)))
    part = array.slice(start, cut.draw(st.integers(0, len(array) - start)))
    fresh = pa.array(part.to_pylist(), kind)

    for kernel in (count_chars, count_words, class_counts, script_counts):
        assert kernel(*buffers(fresh)).tolist() == kernel(*buffers(part)).tolist()
    assert word_hashes(*buffers(fresh)).values.tolist() == word_hashes(*buffers(part)).values.tolist()


@settings(max_examples=25, deadline=None)
@given(texts)
def test_parts_count_like_texts_of_their_own(text: str) -> None:
    """A kernel over the lines of a document gives what it gives for each line as a document."""
    raw = text.encode("utf-8", "replace")
    data, offsets = laid_out([raw])
    lines = line_spans(data, offsets)
    alone = laid_out([raw[a:b] for a, b in oracle_lines(raw)])

    for kernel in (count_chars, count_words, class_counts, script_counts, hash_spans):
        assert kernel(*alone).tolist() == kernel(data, lines).tolist()
    assert word_hashes(*alone).values.tolist() == word_hashes(data, lines, seed=0).values.tolist()


@settings(max_examples=25, deadline=None)
@given(st.lists(texts, max_size=4))
def test_shares_are_shares(documents: list[str]) -> None:
    """The share of letters without blanks is the oracle's, from 0 to 1, and 0 where there are no letters."""
    data, offsets = laid_out([text.encode("utf-8", "replace") for text in documents])
    letters = script_counts(data, offsets)
    share = unspaced_share(letters)

    assert ((share >= 0) & (share <= 1)).all()
    assert not share[letters.sum(axis=1) == 0].any()


def real_texts(folder: Path) -> dict[str, list[bytes]]:
    """Some documents of every language: crawled pages, and sentences for language identification."""
    found: dict[str, list[bytes]] = {}
    for name, key in (("2_text/crawl-00", None), ("4_langid/sentences", "lang")):
        with zstandard.open(folder / f"{name}.jsonl.zst", "rt", encoding="utf-8") as file:
            for number, line in enumerate(file):
                row = json.loads(line)
                if key or number % 40 == 0:
                    found.setdefault(row[key] if key else "crawl", []).append(row["text"][:3000].encode())
    return found


def test_kernels_equal_the_oracle_on_real_text(test_data: Path) -> None:
    """Crawled documents, and sentences in 75 languages, come out as the oracle has them."""
    found = real_texts(test_data)
    assert len(found) > 70
    for documents in found.values():
        check(documents[:60])
