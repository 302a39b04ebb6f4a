"""What a line is: text, blank, without letters, code, or navigation.

**Code**: marks that code is made of (`{}()[];=<>/\\|&#$`, outside of addresses) and dropped code tokens weigh
more than a third of the letters that are left; a line that ends as code does (`{`, `}`, `;`) needs less.
Ideographs count three times, since they say more than a letter: Chinese that quotes commands stays text.

**Navigation**: at least four short lines in a row (menus, footers, cookie notices; a bar `Home | About` counts
each of its links), where the document has sentences elsewhere. Short is up to 5 words and 40 letters, or 12
letters of a script without blanks, and no punctuation that ends or divides a sentence. A document without
sentences, such as a poem, a word list or a menu alone, has no navigation: its lines are all there is.

Costs about 20 ns a line.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np
import numpy.typing as npt

from curation.filters.language.tokens import CODED, LETTERS, MARKS, SEPARATORS, STOPS, UNSPACED
from curation.text.jit import inlined, kernel
from curation.text.memory import Int, address_of, byte_at
from curation.text.spans import Bytes, Int64s, Spans

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
UNSPACED_WEIGHT = 3
"""Letters of a spaced script that say as much as one ideograph."""
MAX_WORDS, MAX_LETTERS, MAX_UNSPACED = 5, 40, 12
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
    marks, coded = facts[MARKS] - facts[SEPARATORS], facts[CODED]
    if last == 0x7B or last == 0x7D or (last == 0x3B and marks > 1):
        marks += 3
    return bool(3 * (3 * marks + coded) > weight and marks + coded > 3)


@kernel
def _line_kinds(
    data: Bytes,
    spans: Spans,
    folded: Bytes,
    places: npt.NDArray[np.int64],
    facts: npt.NDArray[np.int64],
) -> npt.NDArray[np.uint8]:
    starts, ends, offsets = spans
    base, folded_at = address_of(data), address_of(folded)
    kinds = np.empty(len(starts), np.uint8)
    links = np.empty(len(starts), np.int64)  # of a short line, how many; 0 for others
    for document in range(len(offsets) - 1):
        main = 0
        for row in range(offsets[document], offsets[document + 1]):
            links[row] = 0
            if starts[row] == ends[row]:
                kinds[row] = BLANK
                continue
            total, unspaced = facts[row, LETTERS], facts[row, UNSPACED]
            weight = total + (UNSPACED_WEIGHT - 1) * unspaced
            if _is_code(weight, facts[row], byte_at(base + ends[row] - 1)):
                kinds[row] = CODE
                continue
            if total == 0:
                kinds[row] = NO_LETTERS
                continue
            kinds[row] = TEXT
            bars = facts[row, SEPARATORS] + 1
            if facts[row, STOPS]:
                main += weight if weight >= MIN_SENTENCE else 0
            elif weight <= MAX_LETTERS * bars and unspaced <= MAX_UNSPACED * bars:
                words = _words(folded_at + places[2, row], folded_at + places[3, row])
                links[row] = bars if words <= MAX_WORDS * bars else 0
        if main >= MIN_MAIN:
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


def line_kinds(
    data: Bytes,
    spans: Spans,
    folded: Bytes,
    places: npt.NDArray[np.int64],
    facts: npt.NDArray[np.int64],
) -> npt.NDArray[np.uint8]:
    """A `LineKind` for each line: uint8[n_lines]. Arguments as `lines` makes them."""
    return _line_kinds(data, spans, folded, places, facts)
