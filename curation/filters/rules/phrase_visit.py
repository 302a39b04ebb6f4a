"""Kernels of `phrases`: which lines are filler or menus, and which words lie in phrases.

Each word that begins a phrase is followed into the trie for as many words as the longest phrase has, so time is linear
in the text whatever it is made of; most words cost two looks at a bitmap.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from curation.filters.rules.automaton import (
    ANYWHERE,
    Automaton,
    Trie,
    WordsAt,
    classes_at,
    longest,
    may_begin_line,
    may_begin_phrase,
    next_node,
    trie_at,
)
from curation.filters.rules.word_visit import WordKind
from curation.text import Spans
from curation.text.jit import inlined, kernel
from curation.text.memory import Int, address_of, byte_at, load32, load64, store_byte
from curation.text.spans import Bytes, Int64s

__all__ = [
    "CALL",
    "CALLED",
    "CALL_PHRASES",
    "FILLER",
    "FILLERS",
    "FURNISHED",
    "FURNITURE",
    "FURNITURE_PHRASES",
    "HEAD",
    "HELD",
    "LONG",
    "LOREM",
    "MENU",
    "MOST_WORDS",
    "N_COUNTS",
    "PLACEHOLDER",
    "SHORT",
    "TEXT",
    "Lorem",
    "Words",
    "lorem_of",
    "visit_lines",
    "visit_words",
]

Hashes = npt.NDArray[np.uint64]
Int32s = npt.NDArray[np.int32]

FILLER, HEAD, MENU, FURNITURE, CALL, PLACEHOLDER, LOREM = (1 << bit for bit in range(7))
"""Classes of phrases."""
FILLERS, TEXT, FURNISHED, CALLED, HELD, FURNITURE_PHRASES, CALL_PHRASES = range(7)
"""What is counted for each document: lines, words, phrases."""
N_COUNTS = 7

MOST_WORDS = 24
"""Words of the longest phrase, and of the longest line that may be filler or a menu."""
BYTES_A_LINE = 120
"""A line of text weighs 1 and 1 more for every so many bytes: what a line on a page holds, 120 letters or 40 of Han."""
SHORTEST_RUN = 6
"""Words of lorem ipsum without another between them, from which on they count."""
MOST_LAUGHING = 8
"""Words of the longest line that is looked at for laughter."""
SHORT, LONG = 1, 2
"""Words of lorem ipsum; long are those of 5 letters and more."""

OF_MENUS = MENU | FURNITURE | CALL | HEAD
A_NUMBER, A_WORD = int(WordKind.NUMBER), int(WordKind.WORD)
PLUS = 0x2B
CASE = 0x20
"""The bit by which small letters of ASCII differ from capitals."""
ROMAN = sum(1 << (ord(letter) & 31) for letter in "IVXLCDM")


class Lorem(NamedTuple):
    """The words of lorem ipsum."""

    bits: Hashes
    """uint64[256]: a bitmap of them, so that most other words need no look into the table."""
    keys: Hashes
    """uint64[n_slots], a power of two; 0 where the slot is free."""
    sizes: npt.NDArray[np.int64]
    """int64[n_slots]: SHORT or LONG; 0 where the slot is free."""


def lorem_of(words: dict[int, int]) -> Lorem:
    """A table of words of lorem ipsum: hash and size of each."""
    size = 1 << max(4, (4 * len(words)).bit_length())
    bits, keys, sizes = np.zeros(256, np.uint64), np.zeros(size, np.uint64), np.zeros(size, np.int64)
    for word, length in words.items():
        bits[word >> 6 & 255] |= np.uint64(1 << (word & 63))
        slot = word & size - 1
        while keys[slot] != 0:
            slot = slot + 1 & size - 1
        keys[slot], sizes[slot] = word, length
    return Lorem(bits, keys, sizes)


class Words(NamedTuple):
    """The words of all documents, as `Parts` has them, and the text that they are in."""

    data: Bytes
    hashes: Hashes
    kinds: Bytes
    """uint8[n_words]."""
    starts: Int64s
    ends: Int64s
    chars: Int32s


class TextAt(NamedTuple):
    """Where `Words` lie in memory, but for hashes and kinds."""

    data: int
    starts: int
    ends: int
    chars: int


@inlined
def _mark(marked: Int, bit: int, begin: Int, end: Int) -> Int:
    """How many of some words were not marked before; `marked` is an address."""
    new = 0
    for p in range(marked + begin, marked + end):
        if byte_at(p) & bit == 0:
            store_byte(p, byte_at(p) | bit)
            new += 1
    return new


@inlined
def _width(lead: Int) -> Int:
    """Bytes of the character with this first byte."""
    return 1 if lead < 0x80 else 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4


@inlined
def _recurs(p: Int, end: Int, period: Int) -> Int:
    """Whether every byte from p on is that of a period before, capital or small."""
    q = p + period
    while q < end and byte_at(q) | CASE == byte_at(q - period) | CASE:
        q += 1
    return q >= end


@inlined
def _is_roman(letter: Int) -> Int:
    """Whether an ASCII letter, capital or small, is a Roman figure: I, V, X, L, C, D, M."""
    return ROMAN >> (letter & 31) & 1 != 0 and letter < 0x80


@inlined
def _laughs(p: Int, end: Int) -> Int:
    """Whether a word of three letters and more is one letter, or of five and more two by turns: www, ㅋㅋㅋ, hahaha.

    No Roman figures. Of letters outside of ASCII the first may be a capital where two take turns.
    """
    one = _width(byte_at(p))
    if _recurs(p, end, one):
        return not _is_roman(byte_at(p))
    two = one + _width(byte_at(p + one))
    return end - p >= 2 * two + one and _recurs(p if one == 1 else p + one, end, two)


@inlined
def _laughing(words: WordsAt, text: TextAt, i: Int) -> Int:
    """Whether word i is laughter."""
    if byte_at(words.kinds + i) != A_WORD or load32(text.chars + 4 * i) < 3:
        return False
    return _laughs(text.data + np.int64(load64(text.starts + 8 * i)), text.data + np.int64(load64(text.ends + 8 * i)))


@inlined
def _menu_words(trie: Trie, words: WordsAt, begin: Int, stop: Int, marked: Int) -> tuple[Int, Int]:
    """Mark and count words and items of a line that is items of menus, and nothing else but heads and numbers.

    0 of both for any other line.
    """
    found, i = False, begin
    while i < stop:
        length, classes = longest(trie, OF_MENUS, words, i, stop)
        if length == 0 and byte_at(words.kinds + i) != A_NUMBER:
            return 0, 0
        found |= classes & (MENU | FURNITURE) != 0
        i += max(length, 1)
    if not found:
        return 0, 0
    n = items = 0
    i = begin
    while i < stop:
        length, classes = longest(trie, OF_MENUS, words, i, stop)
        if classes & (MENU | FURNITURE):
            n += _mark(marked, FURNITURE, i, i + length)
            items += 1
        i += max(length, 1)
    return n, items


@inlined
def _filler_words(trie: Trie, words: WordsAt, text: TextAt, begin: Int, stop: Int) -> tuple[Int, Int, Int]:
    """How many words of a line are filler, of a head (or numbers before filler), and neither; at most 3 of the last.

    The longest phrase is taken first, from left to right.
    """
    fillers = heads = unknown = 0
    i = begin
    while i < stop and unknown < 3:
        length, classes = longest(trie, FILLER | HEAD, words, i, stop)
        if classes & FILLER:
            fillers += length
        elif length > 0:
            heads += length
        elif byte_at(words.kinds + i) == A_NUMBER and fillers == 0:
            heads += 1
        elif stop - begin <= MOST_LAUGHING and _laughing(words, text, i):
            fillers += 1
        else:
            unknown += 1
        i += max(length, 1)
    return fillers, heads, unknown


@inlined
def _may_be_listed(trie: Trie, words: WordsAt, text: TextAt, begin: Int, stop: Int) -> Int:
    """Whether a line may be filler, a head or a menu: its first word tells that most are not."""
    return stop - begin <= MOST_WORDS and (
        may_begin_line(trie, load64(words.hashes + 8 * begin))
        or byte_at(words.kinds + begin) == A_NUMBER
        or (stop - begin <= MOST_LAUGHING and _laughing(words, text, begin))
    )


@kernel
def visit_lines(
    automaton: Automaton, of: Words, lines: Spans, line_words: Int64s, marked: Bytes, counts: Int64s
) -> None:
    """Count lines that are filler, what other lines weigh, and words of lines that are menus.

    A head (user, date, floor) counts as the line after it. One word that no list has may stand among three: a name.
    """
    trie, marks = trie_at(automaton), address_of(marked)
    words = WordsAt(address_of(of.hashes), address_of(of.kinds))
    text = TextAt(address_of(of.data), address_of(of.starts), address_of(of.ends), address_of(of.chars))
    for row in range(len(lines.offsets) - 1):
        fillers = weight = heads = 0
        for line in range(lines.offsets[row], lines.offsets[row + 1]):
            begin, stop = line_words[line], line_words[line + 1]
            if begin == stop:
                continue
            filler = head = 0
            unknown = 3
            if _may_be_listed(trie, words, text, begin, stop):
                n, items = _menu_words(trie, words, begin, stop, marks)
                counts[row, FURNISHED] += n
                counts[row, FURNITURE_PHRASES] += items
                filler, head, unknown = _filler_words(trie, words, text, begin, stop)
                if stop == begin + 1 and byte_at(text.data + lines.starts[line]) == PLUS:  # "+1"
                    filler, unknown = 1, 0
            if filler > 0 and unknown <= min(1, (filler + head) // 3):
                fillers += 1
                heads = 0
            elif filler == 0 and unknown < 3 and head >= unknown:
                heads += 1
            else:
                weight += 1 + (lines.ends[line] - lines.starts[line]) // BYTES_A_LINE + heads
                heads = 0
        counts[row, FILLERS] = fillers
        counts[row, TEXT] = weight + heads


@inlined
def _size_of(lorem: Lorem, word: Int) -> Int:
    """SHORT or LONG for a word of lorem ipsum, 0 for others."""
    if lorem.bits[word >> np.uint64(6) & np.uint64(255)] >> (word & np.uint64(63)) & np.uint64(1) == 0:
        return np.int64(0)
    mask = np.uint64(len(lorem.keys) - 1)
    slot = word & mask
    while lorem.keys[slot] != 0:
        if lorem.keys[slot] == word:
            return lorem.sizes[slot]
        slot = slot + np.uint64(1) & mask
    return np.int64(0)


@kernel
def visit_words(automaton: Automaton, lorem: Lorem, of: Words, offsets: Int64s, marked: Bytes, counts: Int64s) -> None:
    """Count words in phrases that count everywhere."""
    trie, marks = trie_at(automaton), address_of(marked)
    words = WordsAt(address_of(of.hashes), address_of(of.kinds))
    for row in range(len(offsets) - 1):
        stop = offsets[row + 1]
        run = long_words = furnished = called = held = furniture = calls = 0
        for i in range(offsets[row], stop):
            size = _size_of(lorem, of.hashes[i])
            if size:
                run += 1
                long_words += size == LONG
            elif run > 0:
                held += _end_run(marks, run, long_words, i)
                run = long_words = 0
            if i + 1 < stop and may_begin_phrase(trie, of.hashes[i], of.hashes[i + 1]):
                new = _mark_phrases(trie, words, i, stop, marks)
                furnished, called, held = furnished + new[0], called + new[1], held + new[2]
                furniture += new[0] > 0
                calls += new[1] > 0
        held += _end_run(marks, run, long_words, stop)
        counts[row, FURNISHED] += furnished
        counts[row, CALLED] += called
        counts[row, HELD] += held
        counts[row, FURNITURE_PHRASES] += furniture
        counts[row, CALL_PHRASES] += calls


@inlined
def _end_run(marked: Int, run: Int, long_words: Int, end: Int) -> Int:
    """Words of lorem ipsum in a run of them that ends before a word; 0 where it is too short to tell."""
    if run < SHORTEST_RUN or 4 * long_words < run:
        return 0
    return _mark(marked, PLACEHOLDER, end - run, end)


@inlined
def _mark_phrases(trie: Trie, words: WordsAt, i: Int, stop: Int, marked: Int) -> tuple[Int, Int, Int]:
    """Mark the words of all phrases that begin with word i: new ones of furniture, called, placeholders."""
    furnished = called = held = 0
    node = np.int64(ANYWHERE)
    for k in range(i, stop):
        node = next_node(trie, node, load64(words.hashes + 8 * k), byte_at(words.kinds + k))
        if node < 0:
            break
        classes = classes_at(trie, node)
        if classes & FURNITURE:
            furnished += _mark(marked, FURNITURE, i, k + 1)
        if classes & CALL:
            called += _mark(marked, CALL, i, k + 1)
        if classes & PLACEHOLDER:
            held += _mark(marked, PLACEHOLDER, i, k + 1)
    return furnished, called, held
