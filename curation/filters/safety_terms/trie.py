"""The trie of all spellings of all terms, and the tables by which the search skips nearly every place of a text.

An edge is labelled with a letter of the view and whether the term has a blank before it. Where a walk may begin
is asked of small tables first, by hashes of the first one to four letters and of six, in which a
letter and what may stand for it are one (`characters.gate_of`). Some 10 us a spelling to make.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from curation.errors import ConfigError
from curation.filters.safety_terms.characters import GATE_BITS, LETTER, UNSPACED, gate_of
from curation.filters.safety_terms.spelling import FIRST_SYLLABLE, LAST_SYLLABLE, Solid
from curation.text.jit import inlined
from curation.text.memory import Int, address_of, byte_at, load32, load64

__all__ = [
    "FIRST_AT",
    "FREE_EDGES",
    "HALF",
    "IS_END",
    "IS_LOOSE_END",
    "LAST_AT",
    "LENGTH_AT",
    "SCRIPTS_AT",
    "SUB",
    "TIGHT_EDGES",
    "UNBROKEN",
    "WORD",
    "Spelling",
    "Trie",
    "TrieAt",
    "ends_at",
    "first_may",
    "follow",
    "node_of",
    "pair_may",
    "quad_may",
    "six_may",
    "trie_at",
    "trie_of",
    "triple_may",
]

ODD = 0x9E3779B97F4A7C15
FREE_AT = 21
"""Of a label: whether the term has a blank before the letter."""
NODE_AT = 22
FIRST_BITS = PAIR_BITS = 16
TRIPLE_BITS = QUAD_BITS = SIX_BITS = 18

WORD, SUB, HALF = 1, 2, 4
"""Bits of the tables: these letters may be a term that must begin and end as a word, one that need not begin so, or one that
must begin so but may end anywhere."""
LONGER_AT = 3
"""The same bits, higher: a longer one may begin with them. A term is a WORD for these if its first letter must begin one.
With four letters terms of four and five are whole, and those of six and more longer."""
TIGHT_EDGES, FREE_EDGES, IS_END, ONLY, IS_LOOSE_END = 1, 2, 4, 8, 16
"""Bits of a node: what leads on from it, whether a spelling ends there, whether it has one edge only, and whether a spelling
that ends there may do so inside of a word."""
LABEL_AT, TO_AT = 8, 32
NODE_BITS = 20
"""A slot of the table of edges: node, label, node that it leads to."""
NO_EDGE = 2**64 - 1

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

    edges: npt.NDArray[np.uint64]
    """uint64[n_slots], a power of two: node, label and the node that they lead to; all ones where the slot is free. Only of
    nodes with more than one edge."""
    nodes: npt.NDArray[np.int64]
    """int64[n_nodes]: TIGHT_EDGES | FREE_EDGES | IS_END, and of the only edge of a node ONLY, its label and where it leads."""
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
    quad: npt.NDArray[np.uint8]
    six: npt.NDArray[np.uint8]


def trie_of(spellings: Iterable[Spelling]) -> Trie:
    """The trie of all spellings, whose numbers are their places."""
    spellings = list(spellings)
    codes = sorted({solid.code for spelling in spellings for solid in spelling.solids})
    hashes = dict(zip(codes, gate_of(np.array(codes, np.int64)).tolist(), strict=True))
    edges: dict[int, int] = {}
    ending: list[list[int]] = [[]]
    owners, facts = [], []
    loose: set[int] = set()
    gates = [np.zeros(1 << bits, np.uint8) for bits in (FIRST_BITS, PAIR_BITS, TRIPLE_BITS, QUAD_BITS, SIX_BITS)]
    for number, (solids, word, owner) in enumerate(spellings):
        node = 0
        for solid in solids:
            node = edges.setdefault(node << NODE_AT | solid.free << FREE_AT | solid.code, len(ending))
            if node == len(ending):
                ending.append([])
        ending[node].append(number)
        if not word or solids[-1].kind != LETTER:
            loose.add(node)
        owners.append(owner)
        facts.append(_facts(solids, word))
        _open(gates, [hashes[solid.code] for solid in solids], solids, word)
    offsets = np.cumsum([0, *map(len, ending)])
    flat = [number for numbers in ending for number in numbers]
    return Trie(
        *_edge_tables(edges, [IS_END * bool(e) | IS_LOOSE_END * (i in loose) for i, e in enumerate(ending)]),
        np.array(offsets, np.int32),
        np.array(flat, np.int32),
        np.array(owners, np.int32),
        np.array(facts, np.int32),
        gates[0],
        gates[1],
        gates[2],
        gates[3],
        gates[4],
    )


def _facts(solids: Sequence[Solid], word: bool) -> int:
    unbroken = any(s.kind == UNSPACED and not FIRST_SYLLABLE <= s.code <= LAST_SYLLABLE for s in solids)
    scripts = 0
    if not any(solid.kind == UNSPACED for solid in solids):
        for solid in solids:
            scripts |= solid.scripts
    kinds = solids[0].kind << FIRST_AT | solids[-1].kind << LAST_AT
    return word * WORD | unbroken * UNBROKEN | kinds | scripts << SCRIPTS_AT | len(solids) << LENGTH_AT


def _open(gates: Sequence[npt.NDArray[np.uint8]], hashes: Sequence[int], solids: Sequence[Solid], word: bool) -> None:
    """Let a walk begin where a text has the first letters of a spelling, of which the hashes are given."""
    begins = WORD if word and solids[0].kind == LETTER else SUB
    whole = WORD if begins == WORD and solids[-1].kind == LETTER else SUB if begins == SUB else HALF
    value = 0
    for n, (gate, bits) in enumerate(zip(gates[:4], (FIRST_BITS, PAIR_BITS, TRIPLE_BITS, QUAD_BITS), strict=True), 1):
        if n <= len(solids):
            value = (value << GATE_BITS | hashes[n - 1]) & 2**64 - 1
            is_whole = n == len(solids) or (n == 4 and len(solids) == 5)
            gate[_index(value, bits)] |= (begins if n == 4 else whole) if is_whole else begins << LONGER_AT
    if len(solids) >= 6:
        more = hashes[4] << GATE_BITS | hashes[5]
        gates[4][_index(value * ODD + more & 2**64 - 1, SIX_BITS)] |= begins


def _index(value: int, bits: int) -> int:
    return (value * ODD & 2**64 - 1) >> 64 - bits


def _edge_tables(edges: dict[int, int], nodes: list[int]) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
    """The table of edges, open addressing and less than half full, and the nodes, of which the ends are known.

    Most nodes have one edge, which stands in the node itself; the next node is mostly the next in memory.
    """
    if len(nodes) >= 1 << NODE_BITS:
        raise ConfigError(
            f"lists of terms: expected fewer than {1 << NODE_BITS:,} letters in all, found {len(nodes):,}: use fewer lists"
        )
    of_node = Counter(edge >> NODE_AT for edge in edges)
    size = 1 << max(4, (2 * len(edges)).bit_length())
    slots = np.full(size, NO_EDGE, np.uint64)
    for edge, to in edges.items():
        node, label = edge >> NODE_AT, edge & (1 << NODE_AT) - 1
        nodes[node] |= FREE_EDGES if label >> FREE_AT else TIGHT_EDGES
        if of_node[node] == 1:
            nodes[node] |= ONLY | label << LABEL_AT | to << TO_AT
            continue
        slot = (edge * ODD & 2**64 - 1) >> 40 & size - 1
        while slots[slot] != NO_EDGE:
            slot = slot + 1 & size - 1
        slots[slot] = edge << NODE_BITS | to
    return slots, np.array(nodes, np.int64)


class TrieAt(NamedTuple):
    """Where a trie lies in memory, as kernels pass it on: arrays would be counted at every call."""

    edges: int
    mask: int
    nodes: int
    offsets: int
    ending: int
    owners: int
    facts: int
    first: int
    pair: int
    triple: int
    quad: int
    six: int


@inlined
def trie_at(trie: Trie) -> TrieAt:
    """The addresses of a trie, which must outlive them."""
    return TrieAt(
        address_of(trie.edges),
        len(trie.edges) - 1,
        address_of(trie.nodes),
        address_of(trie.offsets),
        address_of(trie.ending),
        address_of(trie.owners),
        address_of(trie.facts),
        address_of(trie.first),
        address_of(trie.pair),
        address_of(trie.triple),
        address_of(trie.quad),
        address_of(trie.six),
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
    """The same for three letters."""
    return byte_at(trie.triple + _hashed(gates, 64 - TRIPLE_BITS))


@inlined
def quad_may(trie: TrieAt, gates: Int) -> Int:
    """The same for four letters: of terms of four or five the bits are those of what begins with them."""
    return byte_at(trie.quad + _hashed(gates, 64 - QUAD_BITS))


@inlined
def six_may(trie: TrieAt, gates: Int, more: Int) -> Int:
    """Bits of terms of six letters and more: hashes of the first four and of the next two, one behind the other."""
    four = np.int64(np.uint64(gates) * np.uint64(ODD))
    return byte_at(trie.six + _hashed(four + more, 64 - SIX_BITS))


@inlined
def node_of(trie: TrieAt, node: Int) -> Int:
    """What is known of a node: TIGHT_EDGES, FREE_EDGES, IS_END, and what `follow` needs."""
    return np.int64(load64(trie.nodes + 8 * node))


@inlined
def follow(trie: TrieAt, node: Int, about: Int, code: Int, free: Int) -> Int:
    """The node to which a letter leads from a node of which `about` is known; -1 for none.

    free: 1 for the letter after a blank of a term.
    """
    label = free << FREE_AT | code
    if about & ONLY:
        return about >> TO_AT if about >> LABEL_AT & (1 << NODE_AT) - 1 == label else np.int64(-1)
    edge = node << NODE_AT | label
    slot = _hashed(edge, 40) & trie.mask
    while True:
        found = load64(trie.edges + 8 * slot)
        if np.int64(found >> np.uint64(NODE_BITS)) == edge:
            return np.int64(found) & (1 << NODE_BITS) - 1
        if found == np.uint64(NO_EDGE):
            return np.int64(-1)
        slot = slot + 1 & trie.mask


@inlined
def ends_at(trie: TrieAt, node: Int) -> tuple[Int, Int]:
    """Which places of `ending` name the spellings that end at a node."""
    return load32(trie.offsets + 4 * node), load32(trie.offsets + 4 * node + 4)
