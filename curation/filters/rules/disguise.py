"""Letters that are not what they look like: words that mix alphabets, crossed-out and styled letters.

    disguised_letters  letters of words that mix Latin with Cyrillic or Greek, mathematical letters, Han letters with a
                       combining mark / letters

Spam writes "зapaботок" with Latin letters among Cyrillic ones, 𝐅𝐫𝐞𝐞 and 飞͇机͇, so that no list of words finds it. A word is one
of `curation.text`, so that "web-сервер" is two; one of fewer than three characters does not count ("α-x", "µm").
Undefined where there are no letters. Source: ours, after the tables of confusables of Unicode TS 39.
Costs 0.6 ns a byte on mixed text, less where all is ASCII.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curation.filters.rules.parts import Int32s, Parts, WordKind
from curation.filters.rules.words import Measures, share
from curation.records import ScoreColumn
from curation.text.decode import decode
from curation.text.jit import inlined, kernel
from curation.text.memory import Int, address_of, byte_at
from curation.text.spans import Bytes, Int64s

__all__ = ["COLUMNS", "measure"]

COLUMNS = (
    ScoreColumn(
        "disguised_letters", pa.float32(), "share", "letters that mix alphabets in a word, are styled or marked"
    ),
)

FEWEST = 3
HAN = int(WordKind.HAN)
LAST_SPACED = int(WordKind.WORD)


def measure(parts: Parts) -> Measures:
    """The column of each document: float32[n], masked where there is no letter."""
    counts = np.zeros(len(parts.offsets) - 1, np.int64)
    _visit(parts.data, *parts.words, parts.word_chars, parts.word_kinds, counts)
    letters = parts.letters.sum(axis=1, dtype=np.int64)
    return {"disguised_letters": share(np.minimum(counts, letters), letters)}


@inlined
def _alphabet(code: Int) -> Int:
    """1 Latin, 2 Cyrillic or Greek, 4 a mathematical letter, 0 anything else."""
    if 0x41 <= code <= 0x5A or 0x61 <= code <= 0x7A or (0xC0 <= code < 0x250 and code not in (0xD7, 0xF7)):
        return 1
    if 0x370 <= code < 0x530 and code != 0x37E and code != 0x387:
        return 2
    return 4 if 0x1D400 <= code < 0x1D800 else 0


@inlined
def _disguised(p: Int, end: Int) -> Int:
    """Letters of the word from `p` to `end` if it mixes alphabets; else its mathematical letters."""
    seen, letters, styled = 0, 0, 0
    while p < end:
        code, size = decode(p, end)
        alphabet = _alphabet(code)
        seen |= alphabet
        letters += alphabet > 0
        styled += alphabet == 4
        p += size
    return letters if seen & 3 == 3 else styled


@kernel
def _visit(
    data: Bytes,
    starts: Int64s,
    ends: Int64s,
    offsets: Int64s,
    chars: Int32s,
    kinds: npt.NDArray[np.uint8],
    counts: Int64s,
) -> None:
    base = address_of(data)
    for row in range(len(offsets) - 1):
        for word in range(offsets[row], offsets[row + 1]):
            size = ends[word] - starts[word]
            if kinds[word] == HAN:
                counts[row] += (
                    chars[word] > 1 and byte_at(base + ends[word] - 2) & 0xFE == 0xCC
                )  # U+0300 to U+036F, about
            elif kinds[word] <= LAST_SPACED and chars[word] >= FEWEST and size > chars[word]:
                counts[row] += _disguised(base + starts[word], base + ends[word])
