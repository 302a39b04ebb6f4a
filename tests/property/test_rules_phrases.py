"""The counts of phrases equal a slow reading of their definition, on any text, however a batch is cut."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from curation.filters.rules import phrases
from curation.filters.rules.parts import WordKind, parts_of
from curation.filters.rules.phrase_visit import (
    BYTES_A_LINE,
    CALL,
    FILLER,
    FURNITURE,
    HEAD,
    LOREM,
    MENU,
    MOST_LAUGHING,
    MOST_WORDS,
    PLACEHOLDER,
    SHORTEST_RUN,
)
from tests.strategies import any_text, hostile_text

TABLE = """
filler	en	bump | thanks | thanks for sharing | thanks for | 顶 | 楼主好人 | 0 hours
head	en	0楼 | posted by | on | 楼主
menu	en	home | log in | 首页 | 0 comments | 24 hours
furniture	en	all rights reserved | rights reserved | read more | 联系我们 | page number 0 of 0
call	en	call us today | us today | read more now | 价格优惠
placeholder	en	your text here | text here | lorem ipsum
lorem	la	lorem | ipsum | dolor | sit | a
"""
LISTED = [*phrases.read_phrases(TABLE)]
PIECES = (
    *(
        "bump",
        "Thanks ",
        "thanks for ",
        "sharing",
        "顶",
        "楼主",
        "好人",
        "3楼",
        "hours",
        "Posted by ",
        "on ",
        "home",
        "LOG IN",
    ),
    *(
        " | ",
        "首页",
        "comments ",
        "24 ",
        "1,000 ",
        "7",
        "All ",
        "rights ",
        "reserved ",
        "read more ",
        "now",
        "联系我们",
    ),
    *("page number 1 of 24", "call us today", "价格优惠", "your text here ", "lorem ", "ipsum dolor ", "sit ", "a "),
    *(
        "hahaha",
        "wwww ",
        "xxx",
        "Ахаха ахахаха",
        "ㅋㅋㅋ",
        "+1",
        "word ",
        "wholly other ",
        "\n",
        "\n",
        "\n\n",
        " ",
        "!",
        "。",
        "x" * 130,
    ),
)
texts = st.lists(st.sampled_from(PIECES), max_size=40).map("".join)


def measured(array: pa.Array) -> dict[str, list[float]]:
    return {name: values.tolist() for name, values in phrases.measure(parts_of(array)).items()}


@pytest.fixture(autouse=True)
def small_table(monkeypatch: pytest.MonkeyPatch) -> None:
    tables = phrases.tables_of(TABLE)
    monkeypatch.setattr(phrases, "_shipped", lambda: tables)


@cache
def words_of(text: str) -> tuple[list[tuple[str, int]], list[tuple[int, int, int, int]]]:
    """Words with their kinds; of each line its first byte, bytes, first word and the word after its last."""
    parts = parts_of(pa.array([text], pa.large_string()))
    data = bytes(parts.data)
    words = [
        (data[begin:end].decode().lower(), int(kind))
        for begin, end, kind in zip(parts.words.starts, parts.words.ends, parts.word_kinds, strict=True)
    ]
    lines = [
        (data[begin] if begin < end else 0, int(end - begin), int(first), int(stop))
        for begin, end, first, stop in zip(
            parts.lines.starts, parts.lines.ends, parts.line_words[:-1], parts.line_words[1:], strict=True
        )
    ]
    return words, lines


PHRASE_WORDS = [(bits, tuple(word for word, _ in words_of(phrase)[0])) for bits, phrase in LISTED]


def matches(phrase: tuple[str, ...], words: list[tuple[str, int]]) -> bool:
    return len(phrase) == len(words) and all(
        listed == word or (listed == "0" and kind == WordKind.NUMBER)
        for listed, (word, kind) in zip(phrase, words, strict=True)
    )


def longest(words: list[tuple[str, int]], wanted: int) -> tuple[int, int]:
    found = [(len(p), bits) for bits, p in PHRASE_WORDS if bits & wanted and matches(p, words[: len(p)])]
    length = max((n for n, _ in found), default=0)
    return length, sum({bits for n, bits in found if n == length})


def laughs(word: str, kind: int) -> bool:
    if kind != WordKind.WORD or len(word) < 3:
        return False
    if len(set(word)) == 1:
        return word[0] not in "ivxlcdm"
    return len(word) >= 5 and all(a == b for a, b in zip(word, word[2:], strict=False))


def pieces(words: list[tuple[str, int]], wanted: int) -> Iterator[tuple[int, int, tuple[str, int]]]:
    """A line from left to right: words of each longest phrase and its classes, (1, 0) for a word that begins none."""
    i = 0
    while i < len(words):
        length, bits = longest(words[i:], wanted)
        yield max(length, 1), bits if length else 0, words[i]
        i += max(length, 1)


def line_is(words: list[tuple[str, int]], first: int) -> str:
    """filler, head or text."""
    if len(words) == 1 and first == ord("+"):
        return "filler"
    fillers = heads = unknown = 0
    for length, bits, (word, kind) in pieces(words, FILLER | HEAD):
        if bits & FILLER:
            fillers += length
        elif bits:
            heads += length
        elif kind == WordKind.NUMBER and not fillers:
            heads += 1
        elif len(words) <= MOST_LAUGHING and laughs(word, kind):
            fillers += 1
        else:
            unknown += 1
    if fillers and unknown <= min(1, (fillers + heads) // 3):
        return "filler"
    return "head" if not fillers and unknown <= min(2, heads) else "text"


def begins_listed(words: list[tuple[str, int]]) -> bool:
    return len(words) <= MOST_WORDS and (
        words[0][1] == WordKind.NUMBER
        or any(p[0] == words[0][0] for bits, p in PHRASE_WORDS if bits & phrases.IN_LINES)
        or (len(words) <= MOST_LAUGHING and laughs(*words[0]))
    )


def oracle(text: str) -> dict[str, float]:
    words, lines = words_of(text)
    marked: dict[int, set[int]] = {bits: set() for bits in (FURNITURE, CALL, PLACEHOLDER)}
    number = dict.fromkeys(marked, 0)
    fillers = weight = heads = 0
    for first, size, begin, stop in lines:
        line = words[begin:stop]
        if not line:
            continue
        what = line_is(line, first) if begins_listed(line) else "text"
        if begins_listed(line):
            menu = MENU | FURNITURE
            found = [*pieces(line, menu | CALL | HEAD)]
            if all(bits or kind == WordKind.NUMBER for _, bits, (_, kind) in found):
                at = begin
                for length, bits, _ in found:
                    if bits & menu:
                        marked[FURNITURE].update(range(at, at + length))
                        number[FURNITURE] += 1
                    at += length
        if what == "filler":
            fillers, heads = fillers + 1, 0
        elif what == "head":
            heads += 1
        else:
            weight, heads = weight + 1 + size // BYTES_A_LINE + heads, 0
    for i in range(len(words)):
        new = dict.fromkeys(marked, 0)
        for bits, phrase in sorted(PHRASE_WORDS, key=lambda item: len(item[1])):
            if bits in marked and matches(phrase, words[i : i + len(phrase)]):
                span = set(range(i, i + len(phrase)))
                new[bits] += len(span - marked[bits])
                marked[bits] |= span
        for bits, n in new.items():
            number[bits] += n > 0
    mark_lorem(words, marked[PLACEHOLDER])
    shares = {bits: len(found) / max(len(words), 1) for bits, found in marked.items()}
    return {
        "filler_lines": fillers / max(fillers + weight + heads, 1),
        "furniture_words": shares[FURNITURE] if number[FURNITURE] >= 3 else 0,
        "call_words": shares[CALL] if number[CALL] >= 2 else 0,
        "placeholder_words": shares[PLACEHOLDER],
    }


def mark_lorem(words: list[tuple[str, int]], marked: set[int]) -> None:
    lorem = {phrase for bits, phrase in LISTED if bits == LOREM}
    run: list[int] = []
    for i in range(len(words) + 1):
        if i < len(words) and words[i][0] in lorem:
            run.append(i)
            continue
        if len(run) >= SHORTEST_RUN and 4 * sum(len(words[k][0]) >= phrases.LONG_LETTERS for k in run) >= len(run):
            marked.update(run)
        run = []


@settings(max_examples=300, deadline=None)
@given(texts)
@example("bump\n3楼 顶\n24 hours | 24 comments\nhahaha thanks")
@example("lorem ipsum dolor sit a a a")
def test_every_column_is_as_defined(text: str) -> None:
    """A slow reading word by word finds the same shares."""
    found = {name: values[0] for name, values in measured(pa.array([text], pa.large_string())).items()}
    assert found == {name: pytest.approx(float(np.float32(share))) for name, share in oracle(text).items()}


@settings(max_examples=100, deadline=None)
@given(st.lists(st.one_of(texts, any_text, hostile_text), max_size=5), st.data())
def test_a_batch_is_as_its_documents(documents: list[str], data: st.DataObject) -> None:
    """Shares lie between 0 and 1 and do not depend on what else is in the batch or the buffer."""
    whole = pa.array(documents, pa.large_string())
    found = measured(whole)
    assert all(0 <= value <= 1 for values in found.values() for value in values)
    first = data.draw(st.integers(0, len(documents)))
    length = data.draw(st.integers(0, len(documents) - first))
    assert measured(whole.slice(first, length)) == {
        name: values[first : first + length] for name, values in found.items()
    }
