"""Measures of the words of a text, and how many words of a list it has.

    words                words; in scripts without blanks between words, letters (`curation.text`)
    units                what it says in words of English, as the filter `length` has it
    mean_word_length     characters of the words of spaced scripts, numbers among them / those words
    letter_words         words with a letter of any script / words
    single_letter_words  words that are one letter / words with a letter; both of spaced scripts
    longest_word         characters of the longest word; of unspaced scripts each letter is one
    word_entropy         entropy of the first 256 words by frequency / the entropy that as many different ones would have
    hash_per_word        # signs / units
    ellipsis_per_word    ellipses / units. An ellipsis is a run of "…" or "⋯", or of three or more of one of . 。 ・

mean_word_length and single_letter_words are undefined (null) where less than half of the words are of spaced
scripts; letter_words and the two counts a word where there are no words; word_entropy where there are less than 16.

Sources: Gopher (Rae et al. 2021, section A.1.1) for all but three: single_letter_words finds text with its letters spaced
out; longest_word is NeMo Curator's and C4's (1,000); word_entropy is RedPajama-V2's unigram entropy, made independent of
length. It is 1 where no word repeats; on labelled crawl text good prose has .70 to .93, keyword stuffing and tables of numbers
.5 to .7, random letters 1. What Gopher divides by words is divided by units here, so that Chinese is measured as English is;
datatrove divides by words as a tokenizer of the language finds them, takes "letters" for Python's isalpha, and
counts "......" as two ellipses. dolma takes the median length.
Costs 0.2 ns a byte beside the parts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curation.filters.rules.parts import Hashes, Int32s, Parts, WordKind, hashes_of
from curation.filters.rules.sign_visit import Count
from curation.records import ScoreColumn
from curation.text.jit import kernel
from curation.text.memory import Int
from curation.text.spans import Int64s

__all__ = ["COLUMNS", "Measures", "WordLists", "distinct_of", "measure", "share", "word_lists"]

Measures = dict[str, "np.ma.MaskedArray[tuple[int], np.dtype[np.float32]] | npt.NDArray[np.generic]"]
SPACED = [int(WordKind.NUMBER), int(WordKind.LETTER), int(WordKind.WORD)]
EMPTY = np.uint64(0)
FEWEST, FIRST = 16, 256
"""Words from which on there is an entropy, and how many of them it is of: it falls with the length of a text."""
SLOTS = 1_024
K = np.uint64(0x9E3779B97F4A7C15)
TIMES_LOG = np.array([n * math.log(n) if n else 0.0 for n in range(FIRST + 1)])

COLUMNS = (
    ScoreColumn("words", pa.int64(), "words", "words; in scripts without blanks, letters"),
    ScoreColumn("units", pa.float32(), "English words", "what it says, in words of English"),
    ScoreColumn("mean_word_length", pa.float32(), "characters", "mean length of the words of scripts with blanks"),
    ScoreColumn("letter_words", pa.float32(), "share", "words with a letter"),
    ScoreColumn("single_letter_words", pa.float32(), "share", "words of one letter, in scripts with blanks"),
    ScoreColumn("longest_word", pa.int32(), "characters", "longest word"),
    ScoreColumn("word_entropy", pa.float32(), "share", "entropy of the first 256 words, of the most that it could be"),
    ScoreColumn("hash_per_word", pa.float32(), "per English word", "# signs"),
    ScoreColumn("ellipsis_per_word", pa.float32(), "per English word", "ellipses"),
)


class WordLists(NamedTuple):
    """Lists of words to look for, as `word_lists` makes them.

    keys: uint64[n_lists, size], hash tables with open addressing, 0 for an empty slot; size is a power of two.
    """

    keys: Hashes


def measure(parts: Parts) -> Measures:
    """The columns of each document: arrays of n, masked where undefined."""
    kinds, sums = parts.kind_counts, parts.word_sums
    words, spaced = kinds.sum(axis=1), kinds[:, SPACED].sum(axis=1)
    lettered = kinds[:, WordKind.LETTER] + kinds[:, WordKind.WORD]
    is_spaced = 2 * spaced >= words
    return {
        "words": words,
        "units": parts.units.astype(np.float32),
        "mean_word_length": share(sums[:, 1], spaced, is_spaced),
        "letter_words": share(words - kinds[:, WordKind.NUMBER], words),
        "single_letter_words": share(kinds[:, WordKind.LETTER], lettered, is_spaced),
        "longest_word": sums[:, 2].astype(np.int32),
        "word_entropy": _entropy_of(parts),
        "hash_per_word": share(parts.signs[:, Count.HASH], parts.units),
        "ellipsis_per_word": share(parts.signs[:, Count.ELLIPSIS], parts.units),
    }


def share(
    part: npt.NDArray[np.generic], whole: npt.NDArray[np.generic], defined: npt.NDArray[np.bool_] | bool = True
) -> np.ma.MaskedArray[tuple[int], np.dtype[np.float32]]:
    """float32[n]: part / whole, masked where whole is 0 or it is not defined."""
    wrong = (whole == 0) | ~np.asarray(defined)
    values = np.divide(part, np.where(whole == 0, 1, whole)).astype(np.float32)
    return np.ma.MaskedArray(values, mask=wrong)


def _entropy_of(parts: Parts) -> np.ma.MaskedArray[tuple[int], np.dtype[np.float32]]:
    entropy = np.zeros(len(parts.offsets) - 1, np.float32)
    _entropy(parts.hashes, parts.words.offsets, entropy)
    return np.ma.MaskedArray(entropy, mask=np.diff(parts.words.offsets) < FEWEST)


def word_lists(lists: Sequence[Sequence[str]]) -> WordLists:
    """Lists of words, made ready for `distinct_of`. Words are compared under simple case folding.

    Raises ConfigError where an item is not exactly one word.
    """
    hashes = [np.unique(hashes_of(words)) for words in lists]
    size = 16
    while size < 2 * max((len(some) for some in hashes), default=0):
        size *= 2
    keys = np.zeros((len(lists), size), np.uint64)
    for row, some in zip(keys, hashes, strict=True):
        for key in some:
            slot = int(key) & size - 1
            while row[slot] != EMPTY:
                slot = slot + 1 & size - 1
            row[slot] = key
    return WordLists(keys)


def distinct_of(parts: Parts, of_document: Int64s, lists: WordLists, *, enough: int = 2**31 - 1) -> Int32s:
    """How many words of its list each document has, each word counted once: int32[n].

    of_document: int64[n], row of the list for each document; -1 for none, which counts 0. The search ends where `enough`
    are found, which makes it nearly free: most texts have ten of the commonest words of their language in the first line.
    """
    found = np.zeros(len(of_document), np.int32)
    _distinct(parts.hashes, parts.words.offsets, of_document, lists.keys, enough, found)
    return found


@kernel
def _entropy(hashes: Hashes, offsets: Int64s, entropy: npt.NDArray[np.float32]) -> None:
    """(ln m - sum(c ln c) / m) / ln m, for m words of which each occurs c times."""
    keys, counts, last = np.empty(SLOTS, np.uint64), np.zeros(SLOTS, np.int64), np.full(SLOTS, -1, np.int64)
    mask, shift = np.uint64(SLOTS - 1), np.uint64(64 - 10)
    for row in range(len(offsets) - 1):
        m = min(offsets[row + 1] - offsets[row], FIRST)
        if m < FEWEST:
            continue
        repeats = 0.0
        for word in range(offsets[row], offsets[row] + m):
            slot = hashes[word] * K >> shift
            while last[slot] == row and keys[slot] != hashes[word]:
                slot = slot + np.uint64(1) & mask
            if last[slot] != row:
                keys[slot], counts[slot], last[slot] = hashes[word], 0, row
            repeats -= TIMES_LOG[counts[slot]]
            counts[slot] += 1
            repeats += TIMES_LOG[counts[slot]]
        entropy[row] = max(0.0, 1.0 - repeats / TIMES_LOG[m])


@kernel
def _distinct(hashes: Hashes, offsets: Int64s, of_document: Int64s, keys: Hashes, enough: Int, found: Int32s) -> None:
    size = keys.shape[1]
    mask = np.uint64(size - 1)
    seen = np.empty(size, np.bool_)
    for row in range(len(of_document)):
        if of_document[row] < 0:
            continue
        mine, n = keys[of_document[row]], 0
        seen[:] = False
        for word in range(offsets[row], offsets[row + 1]):
            slot = hashes[word] & mask
            while mine[slot] != EMPTY and mine[slot] != hashes[word]:
                slot = slot + np.uint64(1) & mask
            if mine[slot] != EMPTY and not seen[slot]:
                seen[slot] = True
                n += 1
                if n >= enough:
                    break
        found[row] = n
