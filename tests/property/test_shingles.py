r"""Shingles equal a slow and plain reading of their definition, on any text of any script.

The oracle works on Python strings: unicodedata, `\w`, lists of words, hashes in Python's integers. It
shares nothing with the kernels but the table that tells which scripts are cut by character.
"""

from __future__ import annotations

import io
import json
import random
import re
import unicodedata
from collections.abc import Iterator
from functools import cache, reduce
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import zstandard
from hypothesis import example, given, settings
from hypothesis import strategies as st

from curation.dedup.sets import Shingles, distinct
from curation.dedup.shingles import shingles
from curation.text import UNICODE_VERSION, Role, Script
from curation.text.tables import KIND_BLOCKS, KIND_INDEX
from tests.strategies import PIECES, any_text, hostile_text

pytestmark = pytest.mark.skipif(
    unicodedata.unidata_version != UNICODE_VERSION, reason="Python has another Unicode version"
)

# ---------------------------------------------------------------- the oracle

INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufe00-\ufe0f"
    "\ufeff\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0001\U000e0020-\U000e007f\U000e0100-\U000e01ef]"
)
FILLERS = "\u115f\u1160"
ONES = (1 << 64) - 1


@cache
def folded(character: str) -> str:
    """Simple case folding of one character."""
    return next((f for f in (character.casefold(), character.lower()) if len(f) == 1), character)


@cache
def is_word(character: str) -> bool:
    r"""`\w`, and what is reserved for ideographs."""
    code = ord(character)
    reserved = 0x20000 <= code <= 0x3FFFD and code & 0xFFFE != 0xFFFE
    return re.match(r"\w", character) is not None or (reserved and unicodedata.category(character) == "Cn")


@cache
def is_unspaced(character: str) -> bool:
    """Whether the script of a letter is cut by character."""
    code = ord(character)
    kind = int(KIND_BLOCKS[int(KIND_INDEX[code >> 6]) << 6 | code & 63])
    return kind >> 4 & 15 == Role.UNSPACED or kind >> 8 == Script.HANGUL


def units(raw: bytes) -> tuple[bool, list[str]]:
    """Whether a text is cut by character, and its words or characters."""
    text = unicodedata.normalize("NFKC", raw.decode("utf-8", "replace"))
    words: list[str] = []
    characters: list[str] = []
    before = ""  # what stands before: a word character, a mark of one, or nothing of the kind
    for character in map(folded, INVISIBLE.sub(lambda m: " " if m[0] in FILLERS else "", text)):
        is_mark = unicodedata.category(character)[0] == "M" and before != ""
        if is_word(character):
            words += [words.pop() + character] if before == "word" else [character]
            characters.append(character)
        elif is_mark:
            words[-1] += character
            characters[-1] += character
        before = "word" if is_word(character) else "mark" if is_mark else ""
    letters = [c[0] for c in characters]
    by_character = 100 * sum(map(is_unspaced, letters)) > 30 * len(letters)
    return by_character, characters if by_character else words


def absorbed(h: int, block: int) -> int:
    h = (h ^ block) * 0x9E3779B97F4A7C15 & ONES
    return h ^ h >> 32


def word_hash(word: str) -> int:
    """Hash of a word's LEB128, eight bytes at a time."""
    coded = bytearray()
    for code in map(ord, word):
        while code >= 0x80:
            coded.append(code & 0x7F | 0x80)
            code >>= 7
        coded.append(code)
    h = 0
    for at in range(0, len(coded), 8):
        h = absorbed(h, int.from_bytes(coded[at : at + 8], "little"))
    h = h * 0xD6E8FEB86659FD93 & ONES
    return h ^ h >> 29


def mixed(h: int) -> int:
    """The finaliser of MurmurHash3."""
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        h = (h ^ h >> 33) * factor & ONES
    return h ^ h >> 33


def oracle(raw: bytes, size: int = 5) -> list[int]:
    """Hashes of the shingles of a text."""
    by_character, found = units(raw)
    seed = 0x8CB92BA72F3D8DD7 if by_character else 0x2545F4914F6CDD1D
    hashes = [reduce(absorbed, map(ord, unit), seed) if by_character else word_hash(unit) for unit in found]
    values = []
    for start in range(max(1, len(hashes) - size + 1) if hashes else 0):
        total = 0
        for h in hashes[start : start + size]:
            total = total * 0x9FB21C651E98DF27 + h & ONES
        values.append(mixed(total ^ seed))
    return values


# ---------------------------------------------------------------- texts


def array_of(documents: list[bytes], room: int = 80) -> pa.Array:
    """Documents, valid UTF-8 or not, as an array with some room behind the last: kernels read 72 bytes at once."""
    offsets = np.cumsum([0, *map(len, documents)]).astype(np.int64)
    data = b"".join(documents) + b"\xe6\xbc\xa2" * room
    return pa.LargeStringArray.from_buffers(len(documents), pa.py_buffer(offsets), pa.py_buffer(data))


def by_document(found: Shingles) -> list[list[int]]:
    return [part.tolist() for part in np.split(found.values, found.offsets[1:-1])] if len(found.offsets) > 1 else []


def check(documents: list[bytes], size: int = 5, room: int = 80) -> None:
    """Kernels against the oracle."""
    found = shingles(array_of(documents, room), size)
    assert len(found.offsets) == len(documents) + 1
    for raw, values in zip(documents, by_document(found), strict=True):
        assert values == oracle(raw, size), raw
    assert by_document(distinct(found)) == [sorted(set(values)) for values in by_document(found)]


LIVELY = [
    chr(code)
    for code in range(0x30000)
    if not 0xD800 <= code < 0xE000
    and not 0xAC40 <= code < 0xD780
    and (unicodedata.decomposition(chr(code)) or unicodedata.combining(chr(code)))
]
"""Characters that NFKC changes, or moves."""

lively_text = st.lists(
    st.one_of(st.sampled_from(LIVELY), st.sampled_from(PIECES), st.text("aZ09_ .é漢ก", max_size=90)), max_size=20
).map("".join)
damaged = st.lists(
    st.one_of(st.binary(max_size=5), st.sampled_from(PIECES).map(lambda piece: piece.encode()[:-1])), max_size=30
).map(b"".join)
raw_texts = st.one_of(st.one_of(any_text, hostile_text, lively_text).map(str.encode), damaged)

# ---------------------------------------------------------------- the laws


@settings(max_examples=150, deadline=None)
@given(st.lists(raw_texts, max_size=4), st.sampled_from((1, 2, 5, 5, 5, 9)), st.sampled_from((0, 80)))
@example([], 5, 0)
@example([b""], 5, 0)
@example([b"", b"\xff", b"\0", b""], 5, 80)
@example(["".join(PIECES).encode(), " ".join(PIECES).encode()], 5, 80)
def test_shingles_equal_the_oracle(documents: list[bytes], size: int, room: int) -> None:
    """Whatever the text, valid or not, at the end of the data or before, shingles are what is defined."""
    check(documents, size, room)


def test_dense_mixtures_equal_the_oracle() -> None:
    """Long texts of the few characters that decide, in every order, equal the oracle."""
    chance = random.Random(5)
    alphabets = ("aB1_ -'", "ab é\u0301 ", "aZ 漢ひ한", "கோொாெ ", "a\u0e33ก \u0301", "각가 a", "ｶﾞﾊﾟ a", tuple(LIVELY))
    for alphabet in alphabets:
        check(["".join(chance.choices(alphabet, k=chance.randrange(200))).encode() for _ in range(60)])


def test_words_at_every_border_of_blocks() -> None:
    """ASCII is read 64 bytes at a time: words of every length, and other characters, at every place."""
    words = [b"x" * n + b" " for n in range(1, 20)]
    documents = [b"a " * lead + word * 8 for lead in range(0, 34, 3) for word in words]
    documents += [
        b"." * lead + b"word" + "é\u0301—ß漢".encode()[at : at + 3] + b"s end" for lead in range(66) for at in (0, 4)
    ]
    documents += [b"w" * n for n in range(140)] + [b" " * n + b"a" for n in range(140)]
    check(documents)


@settings(max_examples=40, deadline=None)
@given(st.lists(raw_texts, min_size=1, max_size=6), st.data())
def test_a_document_stands_for_itself(documents: list[bytes], data: st.DataObject) -> None:
    """Its shingles are the same in every batch, slice and order."""
    order = data.draw(st.permutations(range(len(documents))))
    start = data.draw(st.integers(0, len(documents)))
    whole = by_document(shingles(array_of(documents)))

    assert by_document(shingles(array_of([documents[i] for i in order]))) == [whole[i] for i in order]
    assert by_document(shingles(array_of(documents).slice(start))) == whole[start:]


@settings(max_examples=60, deadline=None)
@given(any_text)
def test_the_normal_form_does_not_matter(text: str) -> None:
    """A text in any normal form has the shingles of the same text in NFKC."""
    wanted = oracle(unicodedata.normalize("NFKC", text).encode())
    for form in ("NFC", "NFD", "NFKC", "NFKD"):
        other = unicodedata.normalize(form, text).encode()
        assert by_document(shingles(array_of([other]))) == [wanted]


spread = st.integers(0, ONES)
crowded = st.one_of(spread, st.integers(0, 40), st.integers(ONES - 40, ONES))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.one_of(spread, crowded), max_size=300), max_size=5))
def test_sets_are_sets(documents: list[list[int]]) -> None:
    """`distinct` sorts each document's values and takes each once, however they are spread."""
    offsets = np.cumsum([0, *map(len, documents)]).astype(np.int64)
    found = Shingles(np.array([v for values in documents for v in values], np.uint64), offsets)

    sets = distinct(found)
    assert sets.values.dtype == np.uint64
    assert by_document(sets) == [sorted(set(values)) for values in documents]


def real_texts(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Language and beginning of documents of every language; at most 12 of each."""
    seen: dict[str, int] = {}
    for path in sorted(folder.glob("3_neardup/docs-*.jsonl.zst")):
        with path.open("rb") as file:
            reader = zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(file)
            for line in io.TextIOWrapper(reader, "utf-8"):
                row = json.loads(line)
                seen[row["lang"]] = seen.get(row["lang"], 0) + 1
                if seen[row["lang"]] <= 12:
                    yield row["lang"], row["text"][:1500].encode()


def test_shingles_equal_the_oracle_on_real_text(test_data: Path) -> None:
    """Documents in 43 languages come out as the oracle has them."""
    found = list(real_texts(test_data))
    assert len({language for language, _ in found}) >= 40
    check([raw for _, raw in found])
