"""What a line is: text, blank, without letters, code, or navigation.

**Code**: dropped code tokens (5 each), signs that prose has none of (`{}=\\<`, 3 each) and some of (`()[];/&$`, 1
each), together 5 or more, weigh more than 2 in 5 of the letters that are left; a brace at the end counts as a
code token. Ideographs count three times and hangul twice, since each says more than a letter: Chinese that quotes
commands is text.

**Navigation**: at least four short lines in a row (menus, footers, cookie notices; a bar `Home | About` counts
each of its links), where the document has sentences elsewhere, with a quarter as many letters at least. Short is up
to 5 words and 40 letters, or 6 letters of a script without blanks, no punctuation that ends or divides a sentence,
and, from 3 words on, no small letter at the start. A document without sentences, such as a poem, a word list
or a menu alone, has no navigation: its lines are all there is.

Costs about 20 ns a line.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np
import numpy.typing as npt

from curation.filters.language.tokens import (
    CODED,
    LETTERS,
    LOWER,
    MARKS,
    SEPARATORS,
    STOPS,
    UNSPACED,
    UPPER,
    ascii_kind,
)
from curation.text.characters import Counts
from curation.text.jit import inlined, kernel
from curation.text.memory import Int, address_of, byte_at
from curation.text.spans import Bytes, Int64s, Spans
from curation.text.tables import Script

__all__ = ["N_FACTS", "LineKind", "line_kinds"]

N_FACTS = 6


class LineKind(IntEnum):
    """What a line is to language identification; only TEXT counts."""

    TEXT = 0
    BLANK = 1
    NO_LETTERS = 2
    CODE = 3
    NAVIGATION = 4


TEXT, BLANK, NO_LETTERS, CODE, NAVIGATION = map(int, LineKind)
HANGUL = int(Script.HANGUL)
UNSPACED_WEIGHT = 3
"""Letters of a spaced script that say as much as one ideograph."""
MAX_WORDS, MAX_LETTERS, MAX_UNSPACED = 5, 40, 6
CODED_WEIGHT, MIN_CODE = 5, 5
MIN_RUN = 4
MIN_SENTENCE, MIN_MAIN = 40, 100
"""Weight in letters of a line that is main text, and of all such lines of a document."""


@inlined
def _words(p: Int, end: Int) -> Int:
    n = np.int64(p < end)
    while p < end:
        n += byte_at(p) == 0x20
        p += 1
    return n


@inlined
def _is_code(weight: Int, facts: Int64s, last: Int) -> bool:
    score = facts[MARKS] + CODED_WEIGHT * facts[CODED]
    if last == 0x7B or last == 0x7D:
        score += CODED_WEIGHT
    return bool(score >= MIN_CODE and 5 * score > 2 * weight)


@inlined
def _starts_small(p: Int, end: Int) -> bool:
    """Whether the first ASCII letter from address `p` on is a small one, and none outside of ASCII is before it."""
    while p < end and byte_at(p) < 0x80:
        kind = ascii_kind(byte_at(p))
        if kind & (LOWER | UPPER):
            return bool(kind & LOWER)
        p += 1
    return False


@inlined
def _links(
    row: Int, clean: Int, folded: Int, places: npt.NDArray[np.int64], weight: Int, unspaced: Int, bars: Int
) -> Int:
    """How many links of a menu a line without stops could be: 0 for none, more where bars separate them."""
    if weight > MAX_LETTERS * bars or unspaced > MAX_UNSPACED * bars:
        return np.int64(0)
    words = _words(folded + places[2, row], folded + places[3, row])
    if words > MAX_WORDS * bars:
        return np.int64(0)
    if words > 2 and bars == 1 and _starts_small(clean + places[0, row], clean + places[1, row]):
        return np.int64(0)
    return bars


@kernel
def line_kinds(
    data: Bytes,
    spans: Spans,
    clean: Bytes,
    folded: Bytes,
    places: npt.NDArray[np.int64],
    letters: Counts,
    facts: npt.NDArray[np.int64],
) -> npt.NDArray[np.uint8]:
    """A `LineKind` for each line: uint8[n_lines]. Arguments as `lines` makes them."""
    starts, ends, offsets = spans
    base, clean_at, folded_at = address_of(data), address_of(clean), address_of(folded)
    kinds = np.empty(len(starts), np.uint8)
    links = np.empty(len(starts), np.int64)  # of a short line, how many; 0 for others
    for document in range(len(offsets) - 1):
        main, short = 0, 0
        for row in range(offsets[document], offsets[document + 1]):
            links[row] = 0
            if starts[row] == ends[row]:
                kinds[row] = BLANK
                continue
            total, unspaced = facts[row, LETTERS], facts[row, UNSPACED]
            weight = total + (UNSPACED_WEIGHT - 1) * unspaced + letters[row, HANGUL]
            if total == 0 and facts[row, CODED] == 0:
                kinds[row] = NO_LETTERS
                continue
            if total == 0 or _is_code(weight, facts[row], byte_at(base + ends[row] - 1)):
                kinds[row] = CODE
                continue
            kinds[row] = TEXT
            if facts[row, STOPS]:
                main += weight if weight >= MIN_SENTENCE else 0
                continue
            bars = facts[row, SEPARATORS] + 1 if byte_at(base + starts[row]) != 0x7C else 1  # no row of a table
            links[row] = _links(row, clean_at, folded_at, places, weight, unspaced, bars)
            short += weight if links[row] else 0
        if main >= MIN_MAIN and 4 * main >= short:
            _navigate(kinds, links, offsets[document], offsets[document + 1])
    return kinds


@inlined
def _navigate(kinds: npt.NDArray[np.uint8], links: Int64s, first: Int, end: Int) -> None:
    """Mark runs of short lines among a document's."""
    run, start = 0, first
    for row in range(first, end + 1):
        if row < end and (links[row] or kinds[row] == BLANK or kinds[row] == NO_LETTERS):
            run += links[row]
            continue
        if run >= MIN_RUN:
            for line in range(start, row):
                if links[line]:
                    kinds[line] = NAVIGATION
        run, start = 0, row + 1
