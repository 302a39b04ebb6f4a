"""The view of a text, piece by piece: letters, digits and signs that may stand for letters, with the gaps before them.

    info   what it is (`characters`: code, kind, scripts), MANY, and the gap before it
    start  first byte of the text
    end    byte after the last
    units  thirds of a unit in the text before it

A letter three times or more in a row is one solid with MANY. Costs 4 to 8 ns a character.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from curation.filters.safety_terms.characters import (
    ANY_SCRIPT,
    BLANK,
    CODE,
    GATE_AT,
    GATE_BITS,
    GATE_ODD,
    JAMO,
    KIND_AT,
    MANY_FORMS,
    MARK,
    NEWLINE,
    SCRIPT_AT,
    SENTENCE,
    SEPARATOR,
    SIGN,
    SOLID,
    TYPE_AT,
    UNSPACED,
    WIDE,
    Characters,
)
from curation.filters.safety_terms.spelling import FIRST_SYLLABLE, LAST_SYLLABLE
from curation.text.decode import decode
from curation.text.jit import inlined
from curation.text.memory import Int, address_of, byte_at, load64, store64
from curation.text.spans import Int64s

__all__ = [
    "COUNT_AT",
    "GAP_BLANK",
    "GAP_COUNT",
    "GAP_NEWLINE",
    "GAP_SENTENCE",
    "MANY",
    "MOST_FORMS",
    "N_STATE",
    "UNITS",
    "Solids",
    "ViewAt",
    "fill_view",
    "reset",
    "view_at",
]


SCRIPTS = ANY_SCRIPT << SCRIPT_AT
MANY = 1 << 31
"""It stands three times or more."""
COUNT_AT = 32
GAP_COUNT = 15 << COUNT_AT
"""How many separators stand before it, 15 for more."""
GAP_BLANK, GAP_NEWLINE, GAP_SENTENCE = 1 << 36, 1 << 37, 1 << 38
"""Whether a blank or line break, a line break, a sentence sign is among them."""
MOST_FORMS = 24
"""More than the characters that NFKC makes of one."""

WAITING, WAITING_START, WAITING_END, WAITING_GAP, GAP, UNITS, N_STATE = range(7)
"""What is carried on: the last solid, which a mark may still join (0: none), the gap before it, the gap since, thirds so far."""


class Solids(NamedTuple):
    """Room for a piece of a view."""

    info: Int64s
    start: Int64s
    end: Int64s
    units: Int64s


class ViewAt(NamedTuple):
    """Where solids and the table of characters lie in memory: arrays would be counted at every call."""

    info: int
    start: int
    end: int
    units: int
    places: int
    blocks: int
    pool: int
    ascii: int
    """Where in `blocks` the entries of ASCII stand, one after another."""


@inlined
def view_at(solids: Solids, characters: Characters) -> ViewAt:
    """The addresses of both, which must outlive them."""
    return ViewAt(
        address_of(solids.info),
        address_of(solids.start),
        address_of(solids.end),
        address_of(solids.units),
        address_of(characters.places),
        address_of(characters.blocks),
        address_of(characters.pool),
        address_of(characters.blocks) + 8 * (np.int64(characters.places[0]) << 6),
    )


@inlined
def reset(state: Int64s) -> None:
    """Begin a text."""
    for i in range(N_STATE):
        state[i] = 0


@inlined
def _entry(at: ViewAt, code: Int) -> Int:
    """The table's entry of a code point."""
    place = at.places + 2 * (code >> 6)
    block = byte_at(place) | byte_at(place + 1) << 8
    return np.int64(load64(at.blocks + 8 * (block << 6 | code & 63)))


@inlined
def fill_view(
    p: Int, begin: Int, end: Int, characters: Characters, at: ViewAt, n: Int, most: Int, state: Int64s
) -> tuple[Int, Int]:
    """Solids from address `p` on, after the n that are there, until `most` are or the text ends at address `end`.

    Returns how many there are, and where to go on. At the end nothing is left waiting.
    """
    waiting, start, stop, before = state[WAITING], state[WAITING_START], state[WAITING_END], state[WAITING_GAP]
    gap, units = state[GAP], state[UNITS]
    while p < end and n < most - MOST_FORMS:
        code, length = byte_at(p), np.int64(1)
        if code < 0x80:
            entry = np.int64(load64(at.ascii + 8 * code))
        else:
            code, length = decode(p, end)
            entry = _entry(at, code)
        part, parts = np.int64(0), np.int64(1)
        if entry >> TYPE_AT & 0xFF == MANY_FORMS:
            part, parts = entry >> TYPE_AT + 8, (entry >> TYPE_AT + 8) + (entry & CODE)
            entry = np.int64(load64(at.pool + 8 * part))
        while part < parts:
            kind, joined = entry >> TYPE_AT & 0xFF, np.int64(0)
            if kind >= MARK and waiting != 0 and gap == 0:
                joined = _join(waiting, entry, kind, characters)
            if joined != 0:
                waiting, stop = joined, p + length - begin
            elif kind in (SOLID, JAMO):
                if waiting != 0:
                    n = _settle(at, n, waiting, before, start, stop, units)
                    units += _units(waiting)
                waiting, start, stop = entry, p - begin, p + length - begin
                before, gap = gap, np.int64(0)
            elif kind == SEPARATOR:
                gap = _wider(gap, entry)
            part += 1
            if part < parts:
                entry = np.int64(load64(at.pool + 8 * part))
        p += length
    if p == end and waiting != 0:
        n = _settle(at, n, waiting, before, start, stop, units)
        units += _units(waiting)
        waiting = np.int64(0)
    state[WAITING], state[WAITING_START], state[WAITING_END], state[WAITING_GAP] = waiting, start, stop, before
    state[GAP], state[UNITS] = gap, units
    return n, p


@inlined
def _units(entry: Int) -> Int:
    """Thirds of a unit that a solid is."""
    if entry >> KIND_AT & 3 == SIGN:
        return 0
    return 3 if entry & WIDE else 1


@inlined
def _wider(gap: Int, entry: Int) -> Int:
    """A gap with one separator more."""
    gap += 1 << COUNT_AT if gap & GAP_COUNT != GAP_COUNT else 0
    if entry & (BLANK | NEWLINE | SENTENCE):
        gap |= GAP_BLANK if entry & BLANK else 0
        gap |= GAP_NEWLINE if entry & NEWLINE else 0
        gap |= GAP_SENTENCE if entry & SENTENCE else 0
    return gap


@inlined
def _join(before: Int, entry: Int, kind: Int, characters: Characters) -> Int:
    """The entry that a mark or jamo makes with the one before it; 0 for none."""
    code, mark = before & CODE, entry & CODE
    if kind == MARK:
        key = code << KIND_AT | mark
        place = np.searchsorted(characters.pairs, key)
        if place < len(characters.pairs) and characters.pairs[place] == key:
            return characters.joined[place] & ~SCRIPTS | before & SCRIPTS
        return 0
    syllable = 0
    if 0x1100 <= code <= 0x1112 and mark <= 0x1175:
        syllable = FIRST_SYLLABLE + ((code - 0x1100) * 21 + mark - 0x1161) * 28
    elif FIRST_SYLLABLE <= code <= LAST_SYLLABLE and (code - FIRST_SYLLABLE) % 28 == 0 and mark >= 0x11A8:
        syllable = code + mark - 0x11A7
    if syllable == 0:
        return 0
    kept = before & ((1 << TYPE_AT + 8) - 1) & ~CODE
    return kept | syllable | (syllable * GATE_ODD & (1 << GATE_BITS) - 1) << GATE_AT


@inlined
def _settle(at: ViewAt, n: Int, entry: Int, gap: Int, start: Int, end: Int, units: Int) -> Int:
    """Write down a solid; returns the number of solids."""
    info = entry & ~(0xFF << TYPE_AT) | gap
    if gap == 0 and n > 0 and entry >> KIND_AT & 3 <= UNSPACED:
        last = np.int64(load64(at.info + 8 * n - 8))
        if (last ^ info) & CODE == 0:
            if last & MANY:
                store64(at.info + 8 * n - 8, last | info & SCRIPTS)
                store64(at.end + 8 * n - 8, end)
                return n
            before = np.int64(load64(at.info + 8 * n - 16)) if n > 1 else np.int64(0)
            if n > 1 and last & GAP_COUNT == 0 and (before ^ info) & CODE == 0 and before & MANY == 0:
                store64(at.info + 8 * n - 16, before | MANY | (info | last) & SCRIPTS)
                store64(at.end + 8 * n - 16, end)
                return n - 1
    store64(at.info + 8 * n, info)
    store64(at.start + 8 * n, start)
    store64(at.end + 8 * n, end)
    store64(at.units + 8 * n, units)
    return n + 1
