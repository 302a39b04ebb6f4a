"""Terms that are regular expressions: RE2 reads a piece around each place where one of their literals stands.

RE2 takes linear time, whatever the expression. Some 5 us for each piece.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from curation.filters.safety_terms.characters import CODE, Characters
from curation.filters.safety_terms.find import Hits
from curation.filters.safety_terms.tables import Tables
from curation.filters.safety_terms.view import (
    GAP_COUNT,
    GAP_NEWLINE,
    GAP_SENTENCE,
    MOST_FORMS,
    N_STATE,
    Solids,
    fill_view,
    reset,
    view_at,
)
from curation.text.jit import kernel
from curation.text.memory import address_of
from curation.text.spans import Bytes, Int64s

__all__ = ["confirmed"]

BEFORE, AFTER = 160, 320
"""Bytes around a literal in which its expression must match."""
NOWHERE = -1

Row = tuple[int, int, int, int, int, int]


def confirmed(hits: Hits, data: Bytes, starts: Int64s, ends: Int64s, characters: Characters, tables: Tables) -> Hits:
    """The hits, with the matches of expressions in the place of their literals."""
    literal = tables.rows.is_regex[hits.rows] if len(hits.rows) else np.zeros(0, np.bool_)
    if not literal.any():
        return hits
    plain, asked = hits.taken(~literal), hits.taken(literal)
    places: dict[tuple[int, int], list[Row]] = {}
    for hit in np.stack(asked[:-1], axis=1).tolist():
        places.setdefault((hit[0], hit[1]), []).append(hit)
    found: list[Row] = []
    for (document, row), literals in places.items():
        text = data[starts[document] : ends[document]]
        literals.sort(key=lambda hit: (hit[3], hit[4]))
        found += _matches(text, tables.terms[row].regex, literals, characters)
    matched = np.array(found, np.int64).reshape(-1, 6).T
    kept = [np.concatenate([column, new]) for column, new in zip(plain[:-1], matched, strict=True)]
    return Hits._make([*kept, hits.thirds])


@lru_cache(maxsize=4096)
def _compiled(regex: str) -> Any:
    import re2

    return re2.compile(regex)


def _matches(text: Bytes, regex: str, literals: list[Row], characters: Characters) -> Iterator[Row]:
    """A hit for each match that overlaps a literal, at the place of the first such literal."""
    passed = 0
    for first, last in _pieces(text, literals):
        written, begins, ends = _written(text[first:last], characters)
        for match in _compiled(regex).finditer(written):
            inside = [i for i in range(*match.span()) if begins[i] != NOWHERE]
            if not inside:
                continue
            start, end = first + int(begins[inside[0]]), first + int(ends[inside[-1]])
            while passed < len(literals) and literals[passed][4] <= start:
                passed += 1
            if passed < len(literals) and literals[passed][3] < end:
                document, row, spelling, _, _, units = literals[passed]
                yield document, row, spelling, start, end, units


def _pieces(text: Bytes, literals: list[Row]) -> list[tuple[int, int]]:
    """Where to look, in bytes of the text, at borders of characters; pieces that meet are one."""
    pieces: list[tuple[int, int]] = []
    for hit in literals:
        first, last = max(0, hit[3] - BEFORE), min(len(text), hit[4] + AFTER)
        while first > 0 and text[first] & 0xC0 == 0x80:
            first -= 1
        while last < len(text) and text[last] & 0xC0 == 0x80:
            last += 1
        if pieces and first <= pieces[-1][1]:
            pieces[-1] = (pieces[-1][0], max(last, pieces[-1][1]))
        else:
            pieces.append((first, last))
    return pieces


def _written(piece: Bytes, characters: Characters) -> tuple[str, Int64s, Int64s]:
    """The view as a text, and for each of its characters where it begins and ends in the piece; NOWHERE for gaps."""
    codes, begins, ends = _written_codes(piece, characters)
    return codes.astype("<u4").tobytes().decode("utf-32-le"), begins, ends


@kernel
def _written_codes(piece: Bytes, characters: Characters) -> tuple[Int64s, Int64s, Int64s]:
    most = len(piece) * 6 + 2 * MOST_FORMS  # NFKC makes at most 18 characters of one, of three bytes
    solids = Solids(
        np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most, np.int64)
    )
    state = np.empty(N_STATE, np.int64)
    reset(state)
    begin = address_of(piece)
    n, _ = fill_view(begin, begin, begin + len(piece), characters, view_at(solids, characters), 0, most, state)
    codes, begins, ends = np.empty(2 * n, np.int64), np.empty(2 * n, np.int64), np.empty(2 * n, np.int64)
    size = 0
    for i in range(n):
        info = solids.info[i]
        if i > 0 and info & GAP_COUNT:
            codes[size] = 10 if info & (GAP_NEWLINE | GAP_SENTENCE) else 32
            begins[size] = ends[size] = NOWHERE
            size += 1
        codes[size], begins[size], ends[size] = info & CODE, solids.start[i], solids.end[i]
        size += 1
    return codes[:size], begins[:size], ends[:size]
