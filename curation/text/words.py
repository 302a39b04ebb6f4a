"""Where words begin and end, in every script.

A word is a run of letters, marks and digits, with single joiners inside (don't, l'eau, 1,234.5), or,
in scripts written without blanks between words, one character with its marks. docs/reference/text.md
has the rules with examples.
"""

from __future__ import annotations

import numpy as np

from curation.text.decode import decode, kind_of
from curation.text.jit import kernel
from curation.text.spans import Bytes, Int64s, Where, bounds
from curation.text.tables import Role, Script

__all__ = ["count_words"]

BREAK, LETTER, DIGIT, UNSPACED = int(Role.BREAK), int(Role.LETTER), int(Role.DIGIT), int(Role.UNSPACED)
MARK, IGNORABLE, JOINER = int(Role.MARK), int(Role.IGNORABLE), int(Role.JOINER)
NUMBER_JOINER, HEBREW_JOINER = int(Role.NUMBER_JOINER), int(Role.HEBREW_JOINER)
HEBREW = int(Script.HEBREW)


def count_words(data: Bytes, where: Where) -> Int64s:
    """Words of each text: int64[n]."""
    return _count_words(*bounds(data, where))


@kernel
def _count_words(data: Bytes, starts: Int64s, ends: Int64s) -> Int64s:
    counts = np.zeros(len(starts), np.int64)
    for row in range(len(starts)):
        i, end = starts[row], ends[row]
        n = 0
        before = 0  # kind of the last letter or digit of the word so far, 0 outside of a word
        joiner = 0  # role of the joiner after it, if any
        while i < end:
            code, length = decode(data, i, end)
            kind = kind_of(code)
            role = kind >> 4 & 15
            if role in (LETTER, DIGIT):
                was = before >> 4 & 15
                joined = joiner == 0 or (
                    joiner == JOINER
                    or (joiner == NUMBER_JOINER and was == DIGIT and role == DIGIT)
                    or (joiner == HEBREW_JOINER and before >> 8 == HEBREW and kind >> 8 == HEBREW)
                )
                if not (joined and was in (LETTER, DIGIT)):
                    n += 1
                before = kind
                joiner = 0
            elif role == UNSPACED:
                n += 1
                before = kind
                joiner = 0
            elif role >= JOINER:
                if joiner == 0 and before >> 4 & 15 != UNSPACED and before != 0:
                    joiner = role
                else:
                    before = 0
                    joiner = 0
            elif role == BREAK:
                before = 0
                joiner = 0
            i += length
        counts[row] = n
    return counts
