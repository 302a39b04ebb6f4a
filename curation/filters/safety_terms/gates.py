"""At which places of a view a term may begin: asked of the tables of first letters before any walk through the trie.

First of all places at once, without a branch, then closer of those that are left: one in ten of English text. 3 to 6 ns a
character.
"""

from __future__ import annotations

import numpy as np

from curation.filters.safety_terms.characters import GATE_AT, GATE_BITS, KIND_AT, LETTER, SIGN
from curation.filters.safety_terms.trie import (
    HALF,
    LONGER_AT,
    SUB,
    WORD,
    TrieAt,
    first_may,
    pair_may,
    quad_may,
    six_may,
    triple_may,
)
from curation.filters.safety_terms.view import GAP_COUNT, MANY
from curation.filters.safety_terms.walk import View, ends_word, info_of
from curation.text.jit import inlined
from curation.text.memory import Int, store64

__all__ = ["list_places", "may_begin"]

EXACT = WORD | SUB | HALF
ALL = EXACT | EXACT << LONGER_AT
INSIDE = SUB | SUB << LONGER_AT


@inlined
def _may_end(may: Int, inside: bool, view: View, i: Int) -> Int:
    """Whether a term may be the letters before solid i. inside: they begin inside of a word."""
    if may & (WORD | SUB | HALF) == 0:
        return False
    if may & SUB:
        return True
    return not inside and (may & HALF != 0 or ends_word(view, i))


@inlined
def may_begin(trie: TrieAt, view: View, i: Int) -> Int:
    """False where no term begins with solid i. A solid before it is there, or the text begins with it."""
    here = info_of(view, i)
    gates = here >> GATE_AT
    may = first_may(trie, gates)
    if may == 0:
        return False
    inside = (
        here & GAP_COUNT == 0
        and here >> KIND_AT & 3 == LETTER
        and i > 0
        and info_of(view, i - 1) >> KIND_AT & 3 == LETTER
    )
    if inside and may & (SUB | SUB << LONGER_AT) == 0:
        return False
    longer = SUB << LONGER_AT if inside else (SUB | WORD) << LONGER_AT
    if here & MANY or _may_end(may, inside, view, i + 1):
        return True
    if may & longer == 0 or i + 1 >= view.n:
        return False
    there = info_of(view, i + 1)
    if there >> KIND_AT & 3 == SIGN:
        return True
    gates = gates << GATE_BITS | there >> GATE_AT
    may = pair_may(trie, gates)
    if may == 0:
        return False
    if _may_end(may, inside, view, i + 2) or (there & MANY and may & longer):
        return True
    if may & longer == 0 or i + 2 >= view.n:
        return False
    return _may_go_on(trie, view, i + 2, gates, inside, longer)


@inlined
def _may_go_on(trie: TrieAt, view: View, i: Int, gates: Int, inside: bool, longer: Int) -> Int:
    """The same for the third letter to the sixth. gates: hashes of the first two."""
    here = info_of(view, i)
    if here >> KIND_AT & 3 == SIGN:
        return True
    gates = gates << GATE_BITS | here >> GATE_AT
    may = triple_may(trie, gates)
    if may == 0:
        return False
    if _may_end(may, inside, view, i + 1) or (here & MANY and may & longer):
        return True
    if may & longer == 0 or i + 1 >= view.n:
        return False
    there = info_of(view, i + 1)
    if there >> KIND_AT & 3 == SIGN:
        return True
    gates = gates << GATE_BITS | there >> GATE_AT
    may = quad_may(trie, gates)
    if may & longer >> LONGER_AT != 0 or there & MANY or i + 3 >= view.n:
        return may & (longer | longer >> LONGER_AT) != 0
    if may & longer == 0:
        return False
    fifth, sixth = info_of(view, i + 2), info_of(view, i + 3)
    if (fifth | sixth) & MANY or fifth >> KIND_AT & 3 == SIGN or sixth >> KIND_AT & 3 == SIGN:
        return True
    return six_may(trie, gates, fifth >> GATE_AT << GATE_BITS | sixth >> GATE_AT) & longer >> LONGER_AT != 0


@inlined
def list_places(trie: TrieAt, view: View, begin: Int, end: Int, places: Int) -> Int:
    """Write down where terms may begin by their first four letters: how many. places: address of int64[PIECE].

    Of nearly no place it can be foretold whether it is one, so there is no branch. `may_begin` then looks closer.
    """
    n = np.int64(0)
    last = info_of(view, begin - 1) if begin > 0 else np.int64(SIGN << KIND_AT)
    here = info_of(view, begin) if begin < view.n else np.int64(0)
    there = info_of(view, begin + 1) if begin + 1 < view.n else np.int64(0)
    after = info_of(view, begin + 2) if begin + 2 < view.n else np.int64(0)
    for i in range(begin, end):
        fourth = info_of(view, min(i + 3, view.n - 1))
        gates = here >> GATE_AT
        may = first_may(trie, gates) & EXACT
        gates = gates << GATE_BITS | there >> GATE_AT
        may |= pair_may(trie, gates) & EXACT
        gates = gates << GATE_BITS | after >> GATE_AT
        may |= triple_may(trie, gates) & EXACT
        may |= quad_may(trie, gates << GATE_BITS | fourth >> GATE_AT)
        inside = (here & GAP_COUNT == 0) & (here >> KIND_AT & 3 == LETTER) & (last >> KIND_AT & 3 == LETTER)
        wanted = ALL - inside * (ALL - INSIDE)
        odd = (
            (here | there | after) & MANY
            | (there >> KIND_AT & 3 == SIGN)
            | (after >> KIND_AT & 3 == SIGN)
            | (fourth >> KIND_AT & 3 == SIGN)
            | (i + 3 >= view.n)
        )
        store64(places + 8 * n, np.int64(i))
        n += np.int64((may & wanted | odd) != 0)
        last, here, there, after = here, there, after, fourth
    return n
