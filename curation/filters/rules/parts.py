"""What several measures of a text share, computed once for a batch: words, lines, and what is in them.

Words and lines are those of `curation.text`, in every script: in scripts written without blanks one
character is one word. Costs about 5 ns a byte, and 28 bytes of memory a word.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curation.filters.length import LETTERS_PER_UNIT
from curation.text import (
    CharClass,
    Script,
    Spans,
    buffers,
    class_counts,
    count_chars,
    line_hashes,
    script_counts,
    word_hashes,
    word_spans,
)
from curation.text.spans import Bytes, Int64s

__all__ = ["Hashes", "Int32s", "Parts", "hashes_of", "parts_of"]

Hashes = npt.NDArray[np.uint64]
Int32s = npt.NDArray[np.int32]

EXCESS = np.zeros(len(Script))
"""float64[n_scripts]: how much more than its units a letter adds to the count of words."""
for _script, _letters in LETTERS_PER_UNIT.items():
    EXCESS[_script] = 1 - 1 / _letters

BLANK = [int(CharClass.SPACE), int(CharClass.NEWLINE), int(CharClass.CONTROL)]


class Parts(NamedTuple):
    """The parts of n documents.

    Spans hold places in `data`; part i of document d is in rows `spans.offsets[d]:spans.offsets[d + 1]`.
    """

    data: Bytes
    """uint8[...]: UTF-8 of all documents, the whole Arrow buffer."""
    offsets: Int64s
    """int64[n + 1]: document d is `data[offsets[d]:offsets[d + 1]]`."""
    words: Spans
    """Where the words are."""
    hashes: Hashes
    """uint64[n_words]: hash of each word under simple case folding; see `hashes_of`."""
    word_chars: Int32s
    """int32[n_words]: characters of each word."""
    lines: Spans
    """Where the lines are, without the blanks at their ends; blank lines are empty spans."""
    line_hashes: Hashes
    """uint64[n_lines]: XXH64 of each line as its span has it."""
    line_words: Int64s
    """int64[n_lines + 1]: the words of line i are words `line_words[i]:line_words[i + 1]`."""
    line_chars: Int32s
    """int32[n_lines]: characters of each line."""
    characters: Int64s
    """int64[n]: characters that are not blank (class SPACE, NEWLINE, CONTROL)."""
    letters: Int32s
    """int32[n, n_scripts]: letters of each script, as `script_counts` has them."""
    units: npt.NDArray[np.float64]
    """float64[n]: what it says in words of English, as the filter `length` has it."""


def parts_of(texts: pa.Array) -> Parts:
    """The parts of each text of an Arrow string array without nulls."""
    data, offsets = buffers(texts)
    words = word_spans(data, offsets)
    hashes = word_hashes(data, offsets, folded=True).values
    line_hash, lines = line_hashes(data, offsets)
    letters = script_counts(data, offsets)
    classes = class_counts(data, offsets)
    visible = classes.sum(axis=1, dtype=np.int64) - classes[:, BLANK].sum(axis=1, dtype=np.int64)
    n_words = np.diff(words.offsets)
    return Parts(
        data=data,
        offsets=offsets,
        words=words,
        hashes=hashes,
        word_chars=count_chars(data, words).astype(np.int32),
        lines=lines,
        line_hashes=line_hash,
        line_words=np.append(np.searchsorted(words.starts, lines.starts), len(words.starts)),
        line_chars=count_chars(data, lines).astype(np.int32),
        characters=visible,
        letters=letters,
        units=np.maximum(n_words - letters @ EXCESS, 0),
    )


def hashes_of(words: Sequence[str]) -> Hashes:
    """What each of some words hashes to in `Parts.hashes`: uint64[n].

    Raises ValueError where an item is not exactly one word of `curation.text`.
    """
    hashes = word_hashes(*buffers(pa.array(words, pa.large_string())), folded=True)
    counts = np.diff(hashes.offsets)
    if (counts != 1).any():
        wrong = int(np.flatnonzero(counts != 1)[0])
        raise ValueError(f"a list of words holds {words[wrong]!r}, which is {counts[wrong]} words: split or drop it")
    return hashes.values
