"""What several measures of a text share, computed once for a batch: words, lines, signs.

Words and lines are those of `curation.text`, in every script: in scripts written without blanks one
character is one word. Costs about 8 ns a byte and 29 bytes of memory a word, 37 a line; batches of 4 MB of
text are as fast as larger ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curation.errors import ConfigError
from curation.filters.rules.sign_visit import N_COUNTS, Line, visit_signs
from curation.filters.rules.word_visit import UNITS, WordKind, visit_words
from curation.text import Script, Spans, buffers, line_hashes
from curation.text.jit import kernel
from curation.text.spans import Bytes, Int64s, bounds

__all__ = ["Hashes", "Int32s", "Line", "Parts", "WordKind", "hashes_of", "parts_in", "parts_of"]

Hashes = npt.NDArray[np.uint64]
Int32s = npt.NDArray[np.int32]


LAST_SPACED = int(WordKind.WORD)


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
    word_kinds: npt.NDArray[np.uint8]
    """uint8[n_words]: `WordKind` of each word."""
    kind_counts: Int64s
    """int64[n, len(WordKind)]: words of each kind."""
    word_sums: Int64s
    """int64[n, 3]: characters of all words, of the words of spaced scripts, and of the longest word."""
    lines: Spans
    """Where the lines are, without the blanks at their ends; blank lines are empty spans."""
    line_hashes: Hashes
    """uint64[n_lines]: XXH64 of each line as its span has it."""
    line_words: Int64s
    """int64[n_lines + 1]: the words of line i are words `line_words[i]:line_words[i + 1]`."""
    line_chars: Int32s
    """int32[n_lines]: characters of each line; 0 for a blank one."""
    line_sentences: Int32s
    """int32[n_lines]: sentences that end in each line."""
    line_flags: npt.NDArray[np.uint8]
    """uint8[n_lines]: `Line` flags of each line, 0 for a blank one."""
    signs: Int64s
    """int64[n, N_COUNTS]: counts of each document by `Count`."""
    characters: Int64s
    """int64[n]: characters that are not blank (class SPACE, NEWLINE, CONTROL)."""
    letters: Int32s
    """int32[n, n_scripts]: letters of each script, as `script_counts` has them."""
    units: npt.NDArray[np.float64]
    """float64[n]: what it says in words of English, as the filter `length` has it."""


def parts_of(texts: pa.Array) -> Parts:
    """The parts of each text of an Arrow string array.

    Raises InputError for any other type, nulls, or damaged offsets.
    """
    return parts_in(*buffers(texts))


def parts_in(data: Bytes, offsets: Int64s) -> Parts:
    """The parts of the documents `data[offsets[d]:offsets[d + 1]]`: data uint8[...], offsets int64[n + 1].

    Raises InputError where a document leaves the data.
    """
    n = len(offsets) - 1
    words, hashes, word_chars, word_kinds, letters = _words(data, offsets)
    line_hash, lines = line_hashes(data, offsets)
    line_chars, line_sentences = (np.empty(len(lines.starts), np.int32) for _ in range(2))
    line_flags = np.empty(len(lines.starts), np.uint8)
    signs = np.zeros((n, N_COUNTS), np.int64)
    visit_signs(data, offsets, *lines, signs, line_chars, line_sentences, line_flags)
    kind_counts, word_sums = np.zeros((n, len(WordKind)), np.int64), np.zeros((n, 3), np.int64)
    _count_words(word_kinds, word_chars, words.offsets, kind_counts, word_sums)
    line_words = np.empty(len(lines.starts) + 1, np.int64)
    _place_words(words.starts, lines.ends, line_words)
    return Parts(
        data=data,
        offsets=offsets,
        words=words,
        hashes=hashes,
        word_chars=word_chars,
        word_kinds=word_kinds,
        kind_counts=kind_counts,
        word_sums=word_sums,
        lines=lines,
        line_hashes=line_hash,
        line_words=line_words,
        line_chars=line_chars,
        line_sentences=line_sentences,
        line_flags=line_flags,
        signs=signs,
        characters=signs[:, 1:8].sum(axis=1),
        letters=letters,
        units=kind_counts @ UNITS,
    )


def hashes_of(words: Sequence[str]) -> Hashes:
    """What each of some words hashes to in `Parts.hashes`: uint64[n].

    Raises ConfigError where an item is not exactly one word of `curation.text`.
    """
    found, hashes, *_ = _words(*buffers(pa.array(words, pa.large_string())))
    counts = np.diff(found.offsets)
    if (counts != 1).any():
        wrong = int(np.flatnonzero(counts != 1)[0])
        raise ConfigError(f"a list of words holds {words[wrong]!r}, which is {counts[wrong]} words: split or drop it")
    return hashes


def _words(data: Bytes, offsets: Int64s) -> tuple[Spans, Hashes, Int32s, npt.NDArray[np.uint8], Int32s]:
    """Spans, hashes, characters and kinds of the words, and letters by script of each document."""
    checked = bounds(data, offsets)
    n = len(offsets) - 1
    most = int((checked[2] - checked[1] + 1).sum()) // 2  # room that is not used is never touched, so costs nothing
    starts, ends = np.empty(most, np.int64), np.empty(most, np.int64)
    hashes, chars, kinds = np.empty(most, np.uint64), np.empty(most, np.int32), np.empty(most, np.uint8)
    of_document = np.zeros(n + 1, np.int64)
    letters = np.zeros((n, len(Script)), np.int32)
    visit_words(*checked, starts, ends, hashes, chars, kinds, of_document, letters)
    for values in (starts, ends, hashes, chars, kinds):
        values.resize(of_document[-1], refcheck=False)
    return Spans(starts, ends, of_document), hashes, chars, kinds, letters


@kernel
def _count_words(kinds: npt.NDArray[np.uint8], chars: Int32s, offsets: Int64s, counts: Int64s, sums: Int64s) -> None:
    """Fill `kind_counts` and `word_sums`. One loop for each figure, since such loops run on many words at once."""
    for row in range(len(offsets) - 1):
        of, sizes = kinds[offsets[row] : offsets[row + 1]], chars[offsets[row] : offsets[row + 1]]
        for kind in range(counts.shape[1]):
            n = 0
            for i in range(len(of)):
                n += of[i] == kind
            counts[row, kind] = n
        total, spaced, longest = 0, 0, np.int32(0)
        for i in range(len(of)):
            total += sizes[i]
            spaced += sizes[i] if of[i] <= LAST_SPACED else 0
            longest = max(longest, sizes[i])
        sums[row, 0], sums[row, 1], sums[row, 2] = total, spaced, longest


@kernel
def _place_words(word_starts: Int64s, line_ends: Int64s, line_words: Int64s) -> None:
    """First word of each line: those that begin before a line's end and in no line before."""
    word = 0
    line_words[0] = 0
    for line in range(len(line_ends)):
        while word < len(word_starts) and word_starts[word] < line_ends[line]:
            word += 1
        line_words[line + 1] = word
