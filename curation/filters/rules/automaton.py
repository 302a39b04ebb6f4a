"""Phrases found in text by the hashes of their words: a trie in one table, built once, followed by kernels.

A phrase is a sequence of words, in every script: where none are written apart, one character is one word. Since words
are hashed with case folded before (`Parts.hashes`), a step of the trie is one look into a table of 64-bit keys. Two
phrases are never taken for each other but by an accident of 64 bits.

Most words begin no phrase. Which may, a bit tells: one for the first word of a phrase that may fill a line, one for
the first two words of a phrase that is looked for everywhere. Both bitmaps together are 32 KiB.

A word that is one number matches the word "0" of a phrase.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from curation.errors import ConfigError
from curation.filters.rules.word_visit import WordKind
from curation.text.jit import inlined
from curation.text.memory import Int, address_of, byte_at, load32, load64

__all__ = [
    "ANYWHERE",
    "LINE",
    "NUMBER",
    "Automaton",
    "Phrase",
    "Trie",
    "WordsAt",
    "automaton_of",
    "classes_at",
    "longest",
    "may_begin_line",
    "may_begin_phrase",
    "next_node",
    "trie_at",
]

Hashes = npt.NDArray[np.uint64]

LINE, ANYWHERE = 0, 1
"""Roots: of phrases that lines are made of, and of phrases that are looked for at every word."""

NUMBER = np.uint64(0x0D1617)
"""Stands for any number among the words of a phrase."""

A_NUMBER = int(WordKind.NUMBER)
ODD = np.uint64(0x9E3779B97F4A7C15)
ANOTHER_ODD = np.uint64(0xC2B2AE3D27D4EB4F)
BITMAP_BITS = 17
SHIFT = np.uint64(64 - BITMAP_BITS)


class Phrase(NamedTuple):
    """A phrase of one class or more."""

    words: tuple[int, ...]
    """Hashes of its words; NUMBER for any number."""
    classes: int
    """Bits."""
    root: int
    """LINE or ANYWHERE."""


class Automaton(NamedTuple):
    """A trie of phrases."""

    keys: Hashes
    """uint64[n_slots], a power of two: what a node and a word make together (`_key`); 0 where the slot is free."""
    nodes: npt.NDArray[np.int32]
    """int32[n_slots]: the node that a key leads to."""
    classes: npt.NDArray[np.int64]
    """int64[n_nodes]: bits of the classes whose phrases end at a node."""
    firsts: Hashes
    """uint64[2048]: a bitmap of the first words of phrases of lines, least bit first."""
    pairs: Hashes
    """uint64[2048]: a bitmap of the first two words of phrases that are looked for everywhere."""


def automaton_of(phrases: Iterable[Phrase]) -> Automaton:
    """A trie of phrases; of one that is listed twice the classes are joined.

    Raises ConfigError for a phrase without words, and for one to be looked for everywhere that is a single word or has
    a number among its first two.
    """
    edges: dict[tuple[int, int], int] = {}
    classes = [0, 0]
    firsts, pairs = (np.zeros(1 << BITMAP_BITS - 6, np.uint64) for _ in range(2))
    for words, bits, root in phrases:
        if not words or (root == ANYWHERE and (len(words) < 2 or int(NUMBER) in words[:2])):
            raise ConfigError(
                f"a phrase to look for everywhere needs two words that are no numbers, and any phrase one, "
                f"found {len(words)} words (classes {bits:#x}): make it a phrase of lines, or longer"
            )
        node = root
        for word in words:
            node = edges.setdefault((node, word), len(classes))
            if node == len(classes):
                classes.append(0)
        classes[node] |= bits
        if root == ANYWHERE:
            _set(pairs, words[0] ^ words[1] * int(ODD))
        else:
            _set(firsts, words[0])
    keys, nodes = _hash_table(edges)
    return Automaton(keys, nodes, np.array(classes, np.int64), firsts, pairs)


def _set(bitmap: Hashes, value: int) -> None:
    bit = (value & 2**64 - 1) >> int(SHIFT)
    bitmap[bit >> 6] |= np.uint64(1 << (bit & 63))


def _hash_table(edges: dict[tuple[int, int], int]) -> tuple[Hashes, npt.NDArray[np.int32]]:
    """Open addressing, less than half full."""
    size = 1 << max(4, (2 * len(edges)).bit_length())
    keys, nodes = np.zeros(size, np.uint64), np.zeros(size, np.int32)
    for (node, word), to in edges.items():
        key = (word ^ (node + 1) * int(ANOTHER_ODD)) * int(ODD) & 2**64 - 1 or 1
        slot = key >> 40 & size - 1
        while keys[slot] != 0:
            slot = slot + 1 & size - 1
        keys[slot], nodes[slot] = key, to
    return keys, nodes


class Trie(NamedTuple):
    """Where an automaton lies in memory, as kernels pass it on: arrays would be counted at every call."""

    keys: int
    mask: int
    """One less than the number of slots."""
    nodes: int
    classes: int
    firsts: int
    pairs: int


class WordsAt(NamedTuple):
    """Where the words of all documents lie in memory."""

    hashes: int
    kinds: int


@inlined
def trie_at(automaton: Automaton) -> Trie:
    """The addresses of an automaton, which must outlive them."""
    return Trie(
        address_of(automaton.keys),
        len(automaton.keys) - 1,
        address_of(automaton.nodes),
        address_of(automaton.classes),
        address_of(automaton.firsts),
        address_of(automaton.pairs),
    )


@inlined
def _bit(bitmap: Int, value: Int) -> Int:
    bit = np.int64(value >> SHIFT)
    return byte_at(bitmap + (bit >> 3)) >> (bit & 7) & 1 != 0


@inlined
def may_begin_line(trie: Trie, word: Int) -> Int:
    """False where no phrase of lines begins with a word (with a number: ask for NUMBER too)."""
    return _bit(trie.firsts, word)


@inlined
def may_begin_phrase(trie: Trie, word: Int, next_word: Int) -> Int:
    """False where no phrase that is looked for everywhere begins with these two words."""
    return _bit(trie.pairs, word ^ next_word * ODD)


@inlined
def _follow(trie: Trie, node: Int, word: Int) -> Int:
    """The node to which a word leads from a node; -1 for none."""
    key = (word ^ np.uint64(node + 1) * ANOTHER_ODD) * ODD
    key = key if key != 0 else np.uint64(1)
    slot = np.int64(key >> np.uint64(40)) & trie.mask
    while True:
        found = load64(trie.keys + 8 * slot)
        if found == key:
            return load32(trie.nodes + 4 * slot)
        if found == 0:
            return np.int64(-1)
        slot = slot + 1 & trie.mask


@inlined
def next_node(trie: Trie, node: Int, word: Int, kind: Int) -> Int:
    """The node to which a word leads from a node; -1 for none. A number that is not listed is any number."""
    at = _follow(trie, node, word)
    return _follow(trie, node, NUMBER) if at < 0 and kind == A_NUMBER else at


@inlined
def classes_at(trie: Trie, node: Int) -> Int:
    """Classes of the phrases that end at a node."""
    return np.int64(load64(trie.classes + 8 * node))


@inlined
def _longest_from(trie: Trie, node: Int, wanted: Int, words: WordsAt, i: Int, stop: Int) -> tuple[Int, Int]:
    """Of phrases that go on with word i from a node: where the longest ends, 0 for none, and its classes."""
    last, classes = np.int64(0), np.int64(0)
    k = i
    while node >= 0:
        found = classes_at(trie, node)
        if found & wanted:
            last, classes = np.int64(k), found
        if k >= stop:
            break
        node = next_node(trie, node, load64(words.hashes + 8 * k), byte_at(words.kinds + k))
        k += 1
    return last, classes


@inlined
def longest(trie: Trie, wanted: Int, words: WordsAt, i: Int, stop: Int) -> tuple[Int, Int]:
    """The longest phrase of lines of any wanted class that begins with word i and ends before word `stop`.

    How many words it has, 0 for none, and its classes. A number first stands for itself, then for any number.
    """
    first = load64(words.hashes + 8 * i)
    last, classes = np.int64(0), np.int64(0)
    if may_begin_line(trie, first):
        last, classes = _longest_from(trie, _follow(trie, LINE, first), wanted, words, i + 1, stop)
    if last == 0 and byte_at(words.kinds + i) == A_NUMBER:
        last, classes = _longest_from(trie, _follow(trie, LINE, NUMBER), wanted, words, i + 1, stop)
    return max(last - i, 0), classes
