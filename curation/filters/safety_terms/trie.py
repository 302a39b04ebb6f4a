"""The trie of all spellings of all terms, and the tables by which the search skips nearly every place of a text.

An edge is labelled with a letter of the view and whether the term has a blank before it. Where a walk may begin
is asked of three small tables first, by hashes of the first, the first two and the first three letters, in which a letter
and what may stand for it are one (`characters.gate_of`). Some 10 us a spelling to make.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from curation.filters.safety_terms.characters import GATE_BITS, LETTER, UNSPACED, gate_of
from curation.filters.safety_terms.spelling import FIRST_SYLLABLE, LAST_SYLLABLE, Solid
from curation.text.jit import inlined
from curation.text.memory import Int, address_of, byte_at, load32, load64

__all__ = [
    "FIRST_AT",
    "LAST_AT",
    "LENGTH_AT",
    "SCRIPTS_AT",
    "SUB",
    "UNBROKEN",
    "WORD",
    "Spelling",
    "Trie",
    "TrieAt",
    "ends_at",
    "first_may",
    "follow",
    "pair_may",
    "triple_may",
    "trie_at",
    "trie_of",
]

ODD = 0x9E3779B97F4A7C15
FREE_AT = 21
NODE_AT = 22
FIRST_BITS = PAIR_BITS = 16
TRIPLE_BITS = 18

WORD, SUB = 1, 2
"""Bits of the tables: a term of mode word, or of mode sub, may begin so (and end, if it is no longer)."""
LONGER_AT = 2
"""The same bits, higher: a longer one."""

UNBROKEN = 2
"""Bit of a spelling's facts, beside WORD: it holds letters of scripts without blanks, so gaps may be anywhere."""
FIRST_AT, LAST_AT, SCRIPTS_AT, LENGTH_AT = 2, 4, 8, 16
"""Where in the facts the kinds of first and last letter, the scripts of which one is needed, and the length stand."""


class Spelling(NamedTuple):
    """One way to write a term or context word."""

    solids: Sequence[Solid]
    word: bool
    """Whether its mode is word."""
    owner: int
    """The row, or the number of rows plus that of the context word."""


class Trie(NamedTuple):
    """A trie, see above."""

    keys: npt.NDArray[np.uint64]
    """uint64[n_slots], a power of two: node and label; 0 where the slot is free."""
    nodes: npt.NDArray[np.int32]
    """int32[n_slots]: the node that a key leads to."""
    offsets: npt.NDArray[np.int32]
    """int32[n_nodes + 1]: the spellings that end at a node are `ending[offsets[node]:offsets[node + 1]]`."""
    ending: npt.NDArray[np.int32]
    owners: npt.NDArray[np.int32]
    """int32[n_spellings]"""
    facts: npt.NDArray[np.int32]
    """int32[n_spellings]: WORD | UNBROKEN | kinds, scripts and length."""
    first: npt.NDArray[np.uint8]
    pair: npt.NDArray[np.uint8]
    triple: npt.NDArray[np.uint8]


def trie_of(spellings: Iterable[Spelling]) -> Trie:
    """The trie of all spellings, whose numbers are their places."""
    edges: dict[int, int] = {}
    ending: list[list[int]] = [[]]
    owners, facts = [], []
    gates = [np.zeros(1 << bits, np.uint8) for bits in (FIRST_BITS, PAIR_BITS, TRIPLE_BITS)]
    for number, (solids, word, owner) in enumerate(spellings):
        node = 0
        for solid in solids:
            node = edges.setdefault(node << NODE_AT | solid.free << FREE_AT | solid.code, len(ending))
            if node == len(ending):
                ending.append([])
        ending[node].append(number)
        owners.append(owner)
        facts.append(_facts(solids, word))
        _open(gates, solids, WORD if word and solids[0].kind == LETTER else SUB)
    keys, nodes = _hash_table(edges)
    offsets = np.cumsum([0, *map(len, ending)])
    flat = [number for numbers in ending for number in numbers]
    as_int32 = (np.array(values, np.int32) for values in (offsets, flat, owners, facts))
    return Trie(keys, nodes, *as_int32, *gates)


def _facts(solids: Sequence[Solid], word: bool) -> int:
    unbroken = any(s.kind == UNSPACED and not FIRST_SYLLABLE <= s.code <= LAST_SYLLABLE for s in solids)
    scripts = 0
    if not any(solid.kind == UNSPACED for solid in solids):
        for solid in solids:
            scripts |= solid.scripts
    kinds = solids[0].kind << FIRST_AT | solids[-1].kind << LAST_AT
    return word * WORD | unbroken * UNBROKEN | kinds | scripts << SCRIPTS_AT | len(solids) << LENGTH_AT


def _open(gates: Sequence[npt.NDArray[np.uint8]], solids: Sequence[Solid], bit: int) -> None:
    """Let a walk begin where a text has the first letters of a spelling."""
    first, pair, triple = gates
    hashes = [int(one) for one in gate_of(np.array([solid.code for solid in solids[:3]], np.int64))]
    longer = bit << LONGER_AT
    first[_index(hashes[0], FIRST_BITS)] |= bit if len(hashes) == 1 else longer
    if len(hashes) > 1:
        pair[_index(hashes[0] << GATE_BITS | hashes[1], PAIR_BITS)] |= bit if len(hashes) == 2 else longer
    if len(hashes) > 2:
        triple[_index((hashes[0] << GATE_BITS | hashes[1]) << GATE_BITS | hashes[2], TRIPLE_BITS)] |= bit


def _index(value: int, bits: int) -> int:
    return (value * ODD & 2**64 - 1) >> 64 - bits


def _hash_table(edges: dict[int, int]) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int32]]:
    """Open addressing, less than half full."""
    size = 1 << max(4, (2 * len(edges)).bit_length())
    keys, nodes = np.zeros(size, np.uint64), np.zeros(size, np.int32)
    for edge, to in edges.items():
        key = (edge + 1) * ODD & 2**64 - 1
        slot = key >> 40 & size - 1
        while keys[slot] != 0:
            slot = slot + 1 & size - 1
        keys[slot], nodes[slot] = key, to
    return keys, nodes


class TrieAt(NamedTuple):
    """Where a trie lies in memory, as kernels pass it on: arrays would be counted at every call."""

    keys: int
    mask: int
    nodes: int
    offsets: int
    ending: int
    owners: int
    facts: int
    first: int
    pair: int
    triple: int


@inlined
def trie_at(trie: Trie) -> TrieAt:
    """The addresses of a trie, which must outlive them."""
    return TrieAt(
        address_of(trie.keys),
        len(trie.keys) - 1,
        address_of(trie.nodes),
        address_of(trie.offsets),
        address_of(trie.ending),
        address_of(trie.owners),
        address_of(trie.facts),
        address_of(trie.first),
        address_of(trie.pair),
        address_of(trie.triple),
    )


@inlined
def _hashed(value: Int, shift: int) -> Int:
    return np.int64(np.uint64(value) * np.uint64(ODD) >> np.uint64(shift))


@inlined
def first_may(trie: TrieAt, gate: Int) -> Int:
    """Bits of what may begin with a letter: WORD and SUB of one letter, and above them of longer ones."""
    return byte_at(trie.first + _hashed(gate, 64 - FIRST_BITS))


@inlined
def pair_may(trie: TrieAt, gates: Int) -> Int:
    """The same for two letters: their hashes one behind the other."""
    return byte_at(trie.pair + _hashed(gates, 64 - PAIR_BITS))


@inlined
def triple_may(trie: TrieAt, gates: Int) -> Int:
    """WORD and SUB of what may begin with three letters."""
    return byte_at(trie.triple + _hashed(gates, 64 - TRIPLE_BITS))


@inlined
def follow(trie: TrieAt, node: Int, code: Int, free: Int) -> Int:
    """The node to which a letter leads; -1 for none. free: 1 for the letter after a blank of a term."""
    key = np.uint64((node << NODE_AT | free << FREE_AT | code) + 1) * np.uint64(ODD)
    slot = np.int64(key >> np.uint64(40)) & trie.mask
    while True:
        found = load64(trie.keys + 8 * slot)
        if found == key:
            return load32(trie.nodes + 4 * slot)
        if found == 0:
            return np.int64(-1)
        slot = slot + 1 & trie.mask


@inlined
def ends_at(trie: TrieAt, node: Int) -> tuple[Int, Int]:
    """Which places of `ending` name the spellings that end at a node."""
    return load32(trie.offsets + 4 * node), load32(trie.offsets + 4 * node + 4)
