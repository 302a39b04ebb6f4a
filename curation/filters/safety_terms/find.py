"""Where terms are in texts: a view is made and searched piece by piece, so that a text of any length takes the same memory.

A piece holds some 16,000 solids; the last of one come again in the next, so that every match and its context stand whole
in the piece in which it begins. Costs 8 to 15 ns a byte in all.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from curation.filters.safety_terms.characters import Characters
from curation.filters.safety_terms.gates import list_places, may_begin
from curation.filters.safety_terms.trie import Trie, TrieAt, trie_at
from curation.filters.safety_terms.view import N_STATE, UNITS, Solids, fill_view, reset, view_at
from curation.filters.safety_terms.walk import ROOM, SPAN, Found, View, may_match, walk
from curation.text.jit import inlined, kernel
from curation.text.memory import Int, address_of
from curation.text.spans import Bytes, Int64s

__all__ = ["NEAR", "Hits", "Rows", "Tries", "find"]

NEAR = 40
"""Solids before and after a match in which its context is looked for."""
PIECE = 1 << 14
BEFORE, AFTER = 512, 512
"""Solids that a piece needs before and after a match: its context, what may cover it, and the context of that."""
assert min(BEFORE, AFTER) > 2 * SPAN + 2 * NEAR + SPAN


class Rows(NamedTuple):
    """What a row asks of its matches and what it weighs. n_rows is the length of each but the last two."""

    categories: npt.NDArray[np.int32]
    weights: npt.NDArray[np.int32]
    is_regex: npt.NDArray[np.bool_]
    near: npt.NDArray[np.int32]
    """Number of a set of context words, -1 for none."""
    unless: npt.NDArray[np.int32]
    sets: npt.NDArray[np.uint8]
    """uint8[n_sets, n_words]: 1 where a word is of a set."""
    n_owners: int
    """As many as there are rows, or words if these are more."""


class Tries(NamedTuple):
    """What is looked for: everywhere, and near what was found."""

    terms: Trie
    words: Trie
    """Of context words; owners are their numbers."""


class Hits(NamedTuple):
    """Hits of n documents, in no order; of a regex, places where a literal stands, with context.

    All but `thirds` are int64[n_hits].
    """

    documents: Int64s
    rows: Int64s
    spellings: Int64s
    starts: Int64s
    """Bytes of the document."""
    ends: Int64s
    units: Int64s
    """Thirds of a unit before it."""
    thirds: Int64s
    """int64[n]: units of each document, in thirds."""

    def taken(self, which: Any) -> Hits:
        """The hits that an index of numpy names."""
        documents, rows, spellings = self.documents[which], self.rows[which], self.spellings[which]
        return Hits(documents, rows, spellings, self.starts[which], self.ends[which], self.units[which], self.thirds)


class _Matches(NamedTuple):
    """Matches of a piece, in the order of their beginnings. Of words the first three columns are used."""

    rows: Int64s
    """Row or word."""
    first: Int64s
    last: Int64s
    spellings: Int64s
    words_before: Int64s
    """Matches of words that begin before it."""
    valid: npt.NDArray[np.int8]
    """1 yes, 0 no, -1 not asked yet."""


@inlined
def _longer(values: Int64s, n: Int) -> Int64s:
    longer = np.empty(2 * len(values), np.int64)
    longer[:n] = values[:n]
    return longer


@inlined
def _search(
    trie: TrieAt, view: View, begin: Int, end: Int, found: Found, owners: Int64s, best: Int64s, stamp: Int,
    places: Int64s, matches: _Matches, n: Int,
) -> tuple[Int, Int, _Matches]:  # fmt: skip
    """Matches that begin with solids `begin` to `end`, after the n that are there: how many there are, the stamp to go on with,
    and the matches, in longer arrays where there was no room."""
    rows, first, last, spellings, before, valid = matches
    n_places = list_places(trie, view, begin, end, address_of(places))
    for place in range(n_places):
        i = places[place]
        if not may_begin(trie, view, i) or not may_match(trie, view, i):
            continue
        stamp += 1
        n_found = walk(trie, view, i, stamp, found)
        if n + n_found > len(rows):
            size = n
            rows, first, last = _longer(rows, size), _longer(first, size), _longer(last, size)
            spellings, before = _longer(spellings, size), _longer(before, size)
            valid = np.empty(len(rows), np.int8)
        for k in range(n_found):
            value = best[owners[k]]
            rows[n], first[n], last[n], spellings[n] = owners[k], i, value >> 32, value & 0xFFFFFFFF
            n += 1
    return n, stamp, _Matches(rows, first, last, spellings, before, valid)


@inlined
def _search_context(
    trie: TrieAt, view: View, begin: Int, end: Int, found: Found, owners: Int64s, best: Int64s, stamp: Int,
    places: Int64s, words: _Matches, matches: _Matches, n: Int, rows: Rows,
) -> tuple[Int, Int, _Matches]:  # fmt: skip
    """Context words that begin with solids `begin` to `end` and near one of n matches that ask for any: see `_search`.

    Everyday words are context, so looking for them in the whole text would cost more than the search for terms.
    """
    n_words, searched = np.int64(0), begin
    for k in range(n):
        row = matches.rows[k]
        if rows.near[row] >= 0 or rows.unless[row] >= 0:
            searched = max(searched, matches.first[k] - NEAR - SPAN)
            stop = min(end, matches.last[k] + NEAR + 1)
            if searched < stop:
                n_words, stamp, words = _search(
                    trie, view, searched, stop, found, owners, best, stamp, places, words, n_words
                )
                searched = stop
    at = 0
    for k in range(n):
        while at < n_words and words.first[at] < matches.first[k]:
            at += 1
        matches.words_before[k] = at
    matches.valid[:n] = -1
    return n_words, stamp, words


@inlined
def _stands_near(
    words: _Matches, n_words: Int, at: Int, begin: Int, end: Int, members: Int, sets: Int, over: Int
) -> Int:
    """Whether a word of a set stands near the match from solid `begin` to `end`; over: or lies over it."""
    numbers, firsts, lasts = words.rows, words.first, words.last
    k = at - 1
    while k >= 0 and firsts[k] >= begin - NEAR - SPAN:
        if sets[members, numbers[k]] and _is_near(firsts[k], lasts[k], begin, end, over):
            return 1
        k -= 1
    k = at
    while k < n_words and firsts[k] <= end + NEAR:
        if sets[members, numbers[k]] and _is_near(firsts[k], lasts[k], begin, end, over):
            return 1
        k += 1
    return 0


@inlined
def _is_near(first: Int, last: Int, begin: Int, end: Int, over: Int) -> Int:
    if over:
        return begin - last <= NEAR and first - end <= NEAR
    return 0 < begin - last <= NEAR or 0 < first - end <= NEAR


@inlined
def _is_valid(k: Int, matches: _Matches, words: _Matches, n_words: Int, rows: Rows) -> Int:
    """Whether match k has its context."""
    if matches.valid[k] < 0:
        row, at = matches.rows[k], matches.words_before[k]
        begin, end = matches.first[k], matches.last[k]
        valid = 1
        if rows.near[row] >= 0:
            valid = _stands_near(words, n_words, at, begin, end, rows.near[row], rows.sets, 0)
        if valid and rows.unless[row] >= 0:
            valid = 1 - _stands_near(words, n_words, at, begin, end, rows.unless[row], rows.sets, 1)
        matches.valid[k] = valid
    return matches.valid[k] == 1


@inlined
def _is_covered(k: Int, n: Int, matches: _Matches, words: _Matches, n_words: Int, rows: Rows) -> Int:
    """Whether match k lies inside of one of another row of its category that weighs as much.

    The loop makes no calls for most others: a call with arrays costs more than the whole comparison.
    """
    firsts, lasts, row_of, categories, weights = (
        matches.first,
        matches.last,
        matches.rows,
        rows.categories,
        rows.weights,
    )
    begin, end, row = firsts[k], lasts[k], row_of[k]
    m = k
    while m > 0 and firsts[m - 1] > begin - SPAN:
        m -= 1
    while m < n and firsts[m] <= begin:
        other = row_of[m]
        if lasts[m] >= end and other != row and categories[other] == categories[row] and not rows.is_regex[other]:
            same = firsts[m] == begin and lasts[m] == end
            wins = weights[other] > weights[row] or (weights[other] == weights[row] and (not same or other < row))
            if wins and _is_valid(m, matches, words, n_words, rows):
                return True
        m += 1
    return False


@inlined
def _moved(solids: Solids, first: Int, n: Int) -> None:
    """Move the solids from `first` on to the front."""
    for i in range(first, n):
        solids.info[i - first] = solids.info[i]
        solids.start[i - first] = solids.start[i]
        solids.end[i - first] = solids.end[i]
        solids.units[i - first] = solids.units[i]


@inlined
def _take(hits: Hits, n: Int, document: Int, k: Int, matches: _Matches, solids: Solids) -> Hits:
    """Write match k as hit n; returns the hits, in longer arrays where there was no room."""
    if n == len(hits.rows):
        hits = Hits(
            _longer(hits.documents, n), _longer(hits.rows, n), _longer(hits.spellings, n), _longer(hits.starts, n),
            _longer(hits.ends, n), _longer(hits.units, n), hits.thirds,
        )  # fmt: skip
    begin, end = matches.first[k], matches.last[k]
    hits.documents[n], hits.rows[n], hits.spellings[n] = document, matches.rows[k], matches.spellings[k]
    hits.starts[n], hits.ends[n], hits.units[n] = solids.start[begin], solids.end[end], solids.units[begin]
    return hits


@inlined
def _empty(n: int) -> Int64s:
    return np.empty(n, np.int64)


class Room(NamedTuple):
    """Memory of `walk.Found`: made by the caller, since kernels hold its addresses only, which keep nothing alive."""

    best: Int64s
    stamps: Int64s
    owners: Int64s
    walks: Int64s


@kernel
def _find(
    data: Bytes, starts: Int64s, ends: Int64s, characters: Characters, tries: Tries, rows: Rows, room: Room
) -> tuple[Hits, int]:
    """Hits, and how many there are."""
    base, terms_in, words_in = address_of(data), trie_at(tries.terms), trie_at(tries.words)
    n_rows = len(rows.categories)
    solids = Solids(_empty(PIECE), _empty(PIECE), _empty(PIECE), _empty(PIECE))
    at = view_at(solids, characters)
    best, owners, state, places = room.best, room.owners, _empty(N_STATE), _empty(PIECE)
    found = Found(address_of(best), address_of(room.stamps), address_of(owners), address_of(room.walks))
    matches = _Matches(_empty(256), _empty(256), _empty(256), _empty(256), _empty(256), np.empty(256, np.int8))
    words = _Matches(_empty(256), _empty(256), _empty(256), _empty(256), _empty(256), np.empty(256, np.int8))
    hits = Hits(_empty(256), _empty(256), _empty(256), _empty(256), _empty(256), _empty(256), _empty(len(starts)))
    last_end, of_document = np.zeros(n_rows, np.int64), np.full(n_rows, -1, np.int64)
    n_hits = stamp = 0
    for document in range(len(starts)):
        reset(state)
        begin, end = base + starts[document], base + ends[document]
        p, n, dropped, fresh = begin, 0, 0, 0
        while True:
            n, p = fill_view(p, begin, end, characters, at, n, PIECE, state)
            is_last = p == end
            view = View(address_of(solids.info), n, 1 if dropped == 0 else 0)
            first = max(fresh - BEFORE, 0 if dropped == 0 else 4)
            stop, limit = (n, n) if is_last else (n - SPAN - 4, n - AFTER)
            n_matches, stamp, matches = _search(
                terms_in, view, first, stop, found, owners, best, stamp, places, matches, 0
            )
            n_words, stamp, words = _search_context(
                words_in, view, first, stop, found, owners, best, stamp, places, words, matches, n_matches, rows
            )
            for k in range(n_matches):
                row, here = matches.rows[k], dropped + matches.first[k]
                if not fresh <= matches.first[k] < limit or not _is_valid(k, matches, words, n_words, rows):
                    continue
                if not rows.is_regex[row]:
                    if of_document[row] == document and here <= last_end[row]:
                        continue
                    if _is_covered(k, n_matches, matches, words, n_words, rows):
                        continue
                    of_document[row], last_end[row] = document, dropped + matches.last[k]
                hits = _take(hits, n_hits, document, k, matches, solids)
                n_hits += 1
            if is_last:
                break
            gone = limit - BEFORE - 4
            _moved(solids, gone, n)
            n, dropped, fresh = n - gone, dropped + gone, limit - gone
        hits.thirds[document] = state[UNITS]
    return hits, n_hits


def find(data: Bytes, starts: Int64s, ends: Int64s, characters: Characters, tries: Tries, rows: Rows) -> Hits:
    """Hits of all rows in all texts."""
    n_owners = rows.n_owners
    room = Room(
        np.empty(n_owners, np.int64),
        np.zeros(n_owners, np.int64),
        np.empty(n_owners, np.int64),
        np.empty(3 * ROOM, np.int64),
    )
    hits, n = _find(data, starts, ends, characters, tries, rows, room)
    return hits.taken(slice(0, n))
