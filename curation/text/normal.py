"""Characters under NFKC and simple case folding, without making a new text.

NFKC (UAX #15) changes single characters by a table, and then puts neighbours together (`e` and an
acute accent) or marks in order. The first needs no more than a look-up, and nearly all text needs
nothing else. Where the second might be needed, which `is_settled` finds as UAX #15 proposes, the
kernel gives up on that one text; its caller runs `normalise`, some ten times slower, and calls again.

`normal_forms.tsv`, written by tools/make_unicode_tables.py, holds for ranges of code points (first,
last, step) one thing that is to be known:

| what | value |
| --- | --- |
| shift | distance to the one other character that NFKC makes of it |
| form | the characters that NFKC makes of it; none for what is never seen (soft hyphen, variation selectors): it vanishes |
| order | its canonical combining class |
| first | it may be the first, in whole or in part, of two characters that become one |
| second | it may be the second |

At import (50 ms) all of it, case folding and the word characters of `tables` become one int64 a character.

A word character is a letter or number of any script, or `_`. These are the matches of `\\w` in Python,
without Hangul fillers, which are invisible, and with the code points reserved for ideographs. A mark that
NFKC does not join to a letter is none.
"""

from __future__ import annotations

import unicodedata

import numpy as np
import numpy.typing as npt

from curation.text.decode import decode
from curation.text.jit import inlined, kernel
from curation.text.memory import Int, address_of
from curation.text.spans import Bytes
from curation.text.tables import (
    FOLD_BLOCKS,
    FOLD_INDEX,
    KIND_BLOCKS,
    KIND_INDEX,
    N_CODE_POINTS,
    CharClass,
    Role,
    Script,
    table_rows,
    two_level,
)

__all__ = [
    "BREAK",
    "FORM_BLOCKS",
    "FORM_INDEX",
    "KIND",
    "MARK",
    "POOL",
    "SEVERAL",
    "UNSETTLED",
    "UNSPACED",
    "VALUE_AT",
    "WORD",
    "folded",
    "form_of",
    "is_settled",
    "normalise",
    "order_of",
    "parts",
    "script_bit",
]

BREAK, WORD, UNSPACED, MARK = range(4)
"""What a character is to words: none of them, of one, of one in a script that may be cut by character, a mark."""
KIND = 3
FIRST, SECOND = 1 << 2, 1 << 3
SEVERAL = 1 << 4
"""The form is none or several characters, `POOL[start:start + count]`."""
LONGER = 1 << 5
"""The form has more letters, numbers and marks than its UTF-8 has bytes: a kernel may have no room for them."""
ORDER_AT, COUNT_AT, SCRIPT_AT, VALUE_AT = 8, 16, 24, 32
UNSETTLED = SECOND | LONGER | 0xFF << ORDER_AT
MOST_MARKS = 1000
"""Marks in a row that `normalise` keeps in one piece: putting n of them in order takes n * n steps."""

Table = npt.NDArray[np.int64]


def _flat(index: npt.NDArray[np.uint16], blocks: npt.NDArray[np.generic]) -> Table:
    """int64[N_CODE_POINTS] of a two-level table."""
    return blocks.reshape(-1, 64)[index].reshape(-1).astype(np.int64)


def _word_kinds() -> Table:
    """int64[N_CODE_POINTS]: BREAK, WORD, or UNSPACED with its script."""
    known = _flat(KIND_INDEX, KIND_BLOCKS)
    classes, roles, scripts = known & 15, known >> 4 & 15, known >> 8
    kinds = np.full(N_CODE_POINTS, BREAK, np.int64)
    kinds[(classes == CharClass.LETTER) | (classes == CharClass.NUMBER)] = WORD
    unspaced = np.flatnonzero((roles == Role.UNSPACED) | (scripts == Script.HANGUL))
    kinds[unspaced] = UNSPACED | scripts[unspaced] << SCRIPT_AT
    kinds[classes == CharClass.MARK] = MARK
    kinds[ord("_")] = WORD
    return kinds


def _records() -> tuple[Table, Table]:
    """int64[N_CODE_POINTS]: kind | FIRST ... LONGER | order << 8 | count << 16 | script << 24 | value << 32, and the pool.

    value is the distance to the folded form, or the form's start in the pool.
    """
    codes = np.arange(N_CODE_POINTS)
    forms, facts = codes.copy(), np.zeros(N_CODE_POINTS, np.int64)
    bits = {"first": FIRST, "second": SECOND}
    several: list[tuple[int, list[int]]] = []
    for first, last, step, what, value in table_rows("normal_forms.tsv")[1]:
        where = slice(int(first, 16), int(last, 16) + 1, int(step))
        if what == "shift":
            forms[where] += int(value)
        elif what == "form":
            several += ((code, [int(c, 16) for c in value.split()]) for code in codes[where].tolist())
        else:
            facts[where] |= bits[what] if what in bits else int(value) << ORDER_AT
    folds = codes + _flat(FOLD_INDEX, FOLD_BLOCKS)
    moved = np.flatnonzero(forms != codes)  # to look up only these few is five times as fast
    folds[moved], facts[moved] = folds[forms[moved]], facts[forms[moved]]
    kinds, changed = _word_kinds(), np.flatnonzero(folds != codes)
    kinds[changed] = kinds[folds[changed]]
    records = kinds | facts | folds - codes << VALUE_AT
    pool: list[int] = []
    for code, form in several:
        longer = LONGER if np.count_nonzero(records[form] & KIND) > len(chr(code).encode()) else 0
        records[code] = SEVERAL | longer | len(form) << COUNT_AT | len(pool) << VALUE_AT
        pool += form
    return records, np.array(pool, np.int64)


_flat_records, POOL = _records()
FORM_INDEX, FORM_BLOCKS = two_level(_flat_records)
del _flat_records


@inlined
def form_of(code: Int) -> Int:
    """All that is known of a code point, in one int64: KIND, SEVERAL and more."""
    block = np.int64(FORM_INDEX[np.uint64(code >> 6)])
    return np.int64(FORM_BLOCKS[np.uint64(block << 6 | code & 63)])


@inlined
def folded(code: Int, form: Int) -> Int:
    """The one character that a character without SEVERAL becomes, case folded."""
    return code + (form >> VALUE_AT)


@inlined
def script_bit(form: Int, scripts: Int) -> Int:
    """1 if a character without SEVERAL is UNSPACED and its script's bit stands in the mask `scripts`, whose bit 0 does not."""
    return np.int64(scripts >> np.uint64(form >> SCRIPT_AT & 63) & np.uint64(1))


@inlined
def parts(form: Int) -> tuple[Int, Int]:
    """Where the characters of a form with SEVERAL lie in POOL. Each has a form of its own, never SEVERAL."""
    start = form >> VALUE_AT
    return start, start + (form >> COUNT_AT & 0xFF)


@inlined
def order_of(form: Int) -> Int:
    """Canonical combining class, 0 to 254."""
    return form >> ORDER_AT & 0xFF


@inlined
def is_settled(form: Int, starter: Int, order: Int) -> bool:
    """Whether NFKC leaves a character where it stands and what it is, but for its own form.

    `starter` is the form of the last character before it whose order is 0, `order` that of the one
    right before it. For most characters both questions are one test of `form`.
    """
    if form & UNSETTLED == 0:
        return True
    own = order_of(form)
    return not (form & LONGER or (form & SECOND and starter & FIRST) or (own != 0 and own < order))


def normalise(text: str) -> str:
    """NFKC of a text, as the running Python has it.

    In more than 1,000 marks in a row, an invisible mark (U+034F) stands after each 1,000, as Unicode's
    Stream-Safe Text Format has it after 30: so a text made for it cannot take hours.
    """
    data = np.frombuffer(text.encode(), np.uint8)
    if _most_marks(data) > MOST_MARKS:
        pieces, run = [], 0
        for character in text:
            run = run + 1 if unicodedata.combining(unicodedata.normalize("NFKD", character)[-1]) else 0
            pieces.append(character if run % MOST_MARKS or not run else character + "\u034f")
        text = "".join(pieces)
    return unicodedata.normalize("NFKC", text)


@kernel
def _most_marks(data: Bytes) -> int:
    """The longest run of characters whose order is not 0, or of whose parts one may be so."""
    p, end = address_of(data), address_of(data) + len(data)
    longest, run = 0, 0
    while p < end:
        code, length = decode(p, end)
        form = form_of(code)
        run = run + 1 if order_of(form) != 0 or form & SEVERAL else 0
        longest = max(longest, run)
        p += length
    return longest
