"""All terms that begin at one place of a view: a walk through the trie that may branch, and then what a whole match must keep.

It branches where a digit or sign may stand for a letter, after a letter that stands many times, and where terms have a
blank; the trie has an edge for hardly any of these. A walk ends with the longest term, so it costs no more for a longer text.
The rules stand in words in `terms` and the reference.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from curation.filters.safety_terms.characters import (
    ANY_SCRIPT,
    CODE,
    DIGIT,
    KIND_AT,
    LETTER,
    SCRIPT_AT,
    SENTENCE,
    SIGN,
    STAND_INS,
    UNSPACED,
)
from curation.filters.safety_terms.spelling import FIRST_SYLLABLE, LAST_SYLLABLE
from curation.filters.safety_terms.trie import (
    FIRST_AT,
    FREE_EDGES,
    IS_END,
    IS_LOOSE_END,
    LAST_AT,
    LENGTH_AT,
    SCRIPTS_AT,
    TIGHT_EDGES,
    UNBROKEN,
    WORD,
    TrieAt,
    ends_at,
    follow,
    node_of,
)
from curation.filters.safety_terms.view import COUNT_AT, GAP_BLANK, GAP_COUNT, GAP_NEWLINE, GAP_SENTENCE, MANY
from curation.text.jit import inlined
from curation.text.memory import Int, load32, load64, store64

__all__ = ["ROOM", "SPAN", "Found", "View", "walk"]

SPAN = 128
"""Most solids from the first to the last of a match."""
FREE_GAP, TIGHT_GAP = 6, 3
"""Most separators where a term has a blank, and elsewhere."""
ROOM = 1024
"""Walks that may be open at once. Each letter of a term leaves fewer than ten open, and a term has 40 at most."""

STAND_AT, PLACE_AT, STRICT_AT, GAPS_AT, CUT_AT, MUST_AT, SEEN_AT = 0, 8, 16, 24, 32, 40, 48
"""Where in the facts of a walk its counts stand: letters stood for; places, strict ones, strict ones with a gap, cut ones;
1 if the cuts need that all are; and the scripts seen."""

_FIRST_STANDS = np.zeros(256, np.int64)
_SECOND_STANDS = np.zeros(256, np.int64)
for _sign, _letters in STAND_INS.items():
    _FIRST_STANDS[ord(_sign) & 255] = ord(_letters[0])
    _SECOND_STANDS[ord(_sign) & 255] = ord(_letters[1]) if len(_letters) > 1 else 0


class View(NamedTuple):
    """The solids of a piece of a text: address of `Solids.info`, how many, and 1 if the text begins with the first."""

    info: int
    n: int
    is_start: int


class Found(NamedTuple):
    """Addresses of int64 arrays: what was found at this place, of each owner the shortest."""

    best: int
    """int64[n_owners]: last solid << 32 | number of the spelling."""
    stamp: int
    """int64[n_owners]: the place for which `best` holds."""
    owners: int
    """int64[n_owners]: owners found at this place."""
    room: int
    """int64[3 * ROOM]: open walks: node, last solid, facts."""


@inlined
def info_of(view: View, i: Int) -> Int:
    """What solid i is."""
    return np.int64(load64(view.info + 8 * i))


@inlined
def _kind(info: Int) -> Int:
    return info >> KIND_AT & 3


@inlined
def _count(info: Int) -> Int:
    return (info & GAP_COUNT) >> COUNT_AT


@inlined
def ends_word(view: View, i: Int) -> Int:
    """Whether a term that must end as a word, with a letter, may do so before solid i."""
    if i >= view.n:
        return True
    info = info_of(view, i)
    return info & GAP_COUNT != 0 or _kind(info) != LETTER


@inlined
def may_match(trie: TrieAt, view: View, start: Int) -> Int:
    """False where no walk from solid `start` comes to an end of a term.

    Goes one way only and as far as that is the only one: so that most walks need not be made.
    """
    node, i = np.int64(0), start
    while True:
        info = info_of(view, i)
        if info & MANY or _kind(info) >= DIGIT:
            return True
        about, free, tight = node_of(trie, node), np.int64(-1), np.int64(-1)
        if about & FREE_EDGES and i > start:
            free = follow(trie, node, about, info & CODE, 1)
        if about & TIGHT_EDGES and (_count(info) <= TIGHT_GAP or i == start):
            tight = follow(trie, node, about, info & CODE, 0)
        if free >= 0 and tight >= 0:
            return True
        node = max(free, tight)
        if node < 0:
            return False
        i += 1
        end = node_of(trie, node)
        if end & IS_END and (end & IS_LOOSE_END or ends_word(view, i)):
            return True
        if i >= view.n or _count(info_of(view, i)) > FREE_GAP:
            return False


@inlined
def walk(trie: TrieAt, view: View, start: Int, stamp: Int, found: Found) -> Int:
    """Find what begins with solid `start`; returns how many owners were found. `stamp` is another one for each place."""
    n, met = _walk(trie, view, start, 1, stamp, found, 0)
    if met and _kind(info_of(view, start)) != SIGN:
        n, met = _walk(trie, view, start, 0, stamp, found, n)
    return n


@inlined
def _walk(trie: TrieAt, view: View, start: Int, signs: Int, stamp: Int, found: Found, n: Int) -> tuple[Int, Int]:
    """The walks with signs read as letters, or (signs 0) as separators: owners found, and 1 if the reading mattered."""
    n_open, met = _spread(trie, info_of(view, start), start, 0, node_of(trie, 0), 0, 0, found.room, 0), 0
    while n_open > 0:
        n_open -= 1
        at = found.room + 24 * n_open
        node, here, facts = np.int64(load64(at)), np.int64(load64(at + 8)), np.int64(load64(at + 16))
        about = node_of(trie, node)
        if about & IS_END and (about & IS_LOOSE_END or ends_word(view, here + 1)):
            first, last = ends_at(trie, node)
            for i in range(first, last):
                n = _finish(trie, view, start, here, facts, load32(trie.ending + 4 * i), stamp, found, n)
        if about & (TIGHT_EDGES | FREE_EDGES) == 0:
            continue
        info = info_of(view, here)
        if info & MANY and about & TIGHT_EDGES:
            more = follow(trie, node, about, info & CODE, 0)
            if more >= 0:
                n_open = _push(found.room, n_open, more, here, facts)
        there, gap = _next(view, here, signs)
        if there < view.n and there - start < SPAN and _count(gap) <= FREE_GAP:
            met |= 1 if _kind(info_of(view, there)) == SIGN else 0
            n_open = _step(trie, view, node, here, there, gap, facts, about, found.room, n_open)
    return n, met


@inlined
def _next(view: View, here: Int, signs: Int) -> tuple[Int, Int]:
    """The next solid and the gap before it; signs that are separators are skipped, not more than a gap may hold."""
    there = here + 1
    if there >= view.n:
        return there, np.int64(0)
    info = info_of(view, there)
    gap = info & (GAP_COUNT | GAP_BLANK | GAP_NEWLINE | GAP_SENTENCE)
    while signs == 0 and _kind(info) == SIGN and _count(gap) <= FREE_GAP:
        there += 1
        if there >= view.n:
            return there, gap
        sentence = GAP_SENTENCE if info & SENTENCE else 0
        info = info_of(view, there)
        other = info & (GAP_COUNT | GAP_BLANK | GAP_NEWLINE | GAP_SENTENCE)
        count = min(_count(gap) + _count(other) + 1, 15)
        gap = (gap | other | sentence) & ~GAP_COUNT | count << COUNT_AT
    return there, gap


@inlined
def _step(
    trie: TrieAt, view: View, node: Int, here: Int, there: Int, gap: Int, facts: Int, about: Int, room: Int, n_open: Int
) -> Int:
    """Open the walks that go on with solid `there`; returns how many are open."""
    count = _count(gap)
    cut = 1 if gap & (GAP_SENTENCE | GAP_NEWLINE) else 0
    facts += 1 << PLACE_AT | cut << CUT_AT
    info = info_of(view, there)
    if about & FREE_EDGES:
        free = facts | 1 << MUST_AT if gap & GAP_SENTENCE else facts
        n_open = _spread(trie, info, there, node, about, 1, free, room, n_open)
    if about & TIGHT_EDGES and count <= TIGHT_GAP:
        code, before = info & CODE, info_of(view, here) & CODE
        korean = FIRST_SYLLABLE <= code <= LAST_SYLLABLE or FIRST_SYLLABLE <= before <= LAST_SYLLABLE
        is_gap = gap & GAP_BLANK != 0 if korean else count > 0
        tight = facts | 1 << MUST_AT if cut else facts
        tight += 1 << STRICT_AT | (1 if is_gap else 0) << GAPS_AT
        n_open = _spread(trie, info, there, node, about, 0, tight, room, n_open)
    return n_open


@inlined
def _spread(
    trie: TrieAt, info: Int, place: Int, node: Int, about: Int, free: Int, facts: Int, room: Int, n_open: Int
) -> Int:
    """Open a walk for each way to read a solid: as itself, and as what it may stand for."""
    code, kind = info & CODE, _kind(info)
    facts |= (info >> SCRIPT_AT & ANY_SCRIPT) << SEEN_AT
    to = follow(trie, node, about, code, free)
    if to >= 0:
        n_open = _push(room, n_open, to, place, facts)
    if kind >= DIGIT and (code < 256 or kind == SIGN):
        for letter in (_FIRST_STANDS[code & 255], _SECOND_STANDS[code & 255]):
            if letter != 0:
                to = follow(trie, node, about, letter, free)
                if to >= 0:
                    n_open = _push(room, n_open, to, place, facts + (1 << STAND_AT))
    return n_open


@inlined
def _push(room: Int, n_open: Int, node: Int, place: Int, facts: Int) -> Int:
    at = room + 24 * n_open
    store64(at, np.int64(node))
    store64(at + 8, np.int64(place))
    store64(at + 16, np.int64(facts))
    return n_open + 1


@inlined
def _finish(
    trie: TrieAt, view: View, start: Int, end: Int, facts: Int, number: Int, stamp: Int, found: Found, n: Int
) -> Int:
    """Note a spelling that was matched to its end, if the match counts; returns how many owners were found."""
    owner = load32(trie.owners + 4 * number)
    is_new = np.int64(load64(found.stamp + 8 * owner)) != stamp
    value = end << 32 | number
    if not is_new and np.int64(load64(found.best + 8 * owner)) <= value:
        return n
    if not _is_whole(view, start, end, facts, load32(trie.facts + 4 * number)):
        return n
    store64(found.best + 8 * owner, np.int64(value))
    if is_new:
        store64(found.stamp + 8 * owner, np.int64(stamp))
        store64(found.owners + 8 * n, np.int64(owner))
        n += 1
    return n


@inlined
def _is_whole(view: View, start: Int, end: Int, facts: Int, term: Int) -> Int:
    """Whether a match of all letters of a term counts."""
    length = term >> LENGTH_AT
    if 2 * (facts >> STAND_AT & 255) > length:
        return False
    gaps, strict = facts >> GAPS_AT & 255, facts >> STRICT_AT & 255
    if term & UNBROKEN:
        gaps = 0
    if gaps != 0 and (strict < 2 or not (gaps == strict or (strict >= 4 and gaps == strict - 1))):
        return False
    if facts >> MUST_AT & 1 and (length < 3 or facts >> CUT_AT & 255 < facts >> PLACE_AT & 255):
        return False
    scripts = term >> SCRIPTS_AT & ANY_SCRIPT
    if scripts != 0 and facts >> SEEN_AT & scripts == 0:
        return False
    return term & WORD == 0 or _is_word(view, start, end, gaps, term)


@inlined
def _is_word(view: View, start: Int, end: Int, gaps: Int, term: Int) -> Int:
    """Whether a match is not part of a longer word, nor of a longer row of single letters."""
    first, last = info_of(view, start), info_of(view, end)
    if (
        start > 0
        and _count(first) == 0
        and _touches(term >> FIRST_AT & 3, _kind(first), _kind(info_of(view, start - 1)))
    ):
        return False
    if end + 1 < view.n:
        after = info_of(view, end + 1)
        if _count(after) == 0 and _touches(term >> LAST_AT & 3, _kind(last), _kind(after)):
            return False
    if gaps == 0:
        return True
    if start > 0 and _is_near(first) and _is_single(view, start - 1):
        return False
    return not (end + 1 < view.n and _is_near(info_of(view, end + 1)) and _is_single(view, end + 1))


@inlined
def _touches(letter: Int, solid: Int, neighbour: Int) -> Int:
    """Whether the neighbour goes on with the word: a letter with a letter, a digit with a digit. Kinds."""
    if letter == UNSPACED:
        return False
    return (neighbour == LETTER and letter == LETTER) or (neighbour == DIGIT and solid == DIGIT)


@inlined
def _is_near(info: Int) -> Int:
    """Whether a few blanks or signs and no line break stand before a solid."""
    return 1 <= _count(info) <= TIGHT_GAP and info & (GAP_SENTENCE | GAP_NEWLINE) == 0


@inlined
def _is_single(view: View, place: Int) -> Int:
    """Whether a solid is a letter by itself."""
    info = info_of(view, place)
    if _kind(info) != LETTER or info & MANY:
        return False
    if _count(info) == 0 and not (place == 0 and view.is_start):
        return False
    return place + 1 >= view.n or _count(info_of(view, place + 1)) > 0
