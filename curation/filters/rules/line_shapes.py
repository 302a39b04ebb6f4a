"""Measures of the lines of a text and of the sentences in them. Blank lines are no lines here.

    bullet_lines       lines that begin with a bullet / lines; - * + and the en dash only before a blank
    ellipsis_lines     lines that end in an ellipsis / lines
    end_mark_lines     lines that end in the end mark of a sentence, of any script / lines; undefined where half of
                       the letters are Thai or Lao, which have none
    short_lines        lines that say 30 characters of English or less / lines
    longest_line       characters of the longest line
    mean_line_length   characters / lines
    newlines_per_word  (lines - 1) / units
    sentences          sentences that end in an end mark
    unended_sentences  sentences without one / sentences; undefined as end_mark_lines is, and where there are none
    kept_sentences     sentences in lines that C4 keeps: with an end mark, no ellipsis, 3 units or more, no word of
                       more than 1,000 characters, not the word "javascript", none of its six phrases of policies
    removable_words    words in lines of which RefinedWeb removes nearly all / words: more than half of the characters
                       are capitals, or what has letters says less than 1.5 units (one word, digits only, "3 likes")

"End" means: closing quotes, brackets and Markdown's marks of emphasis may follow; 」 or 』 at the end of a line is one
itself, since Japanese puts no full stop before it. A sentence is a stretch with a letter or
digit, up to an end mark that a blank follows (in East Asian text: anything), or to the end of the line; it goes on
in the next line if that begins with a small letter, as in text with hard line ends. In a line a letter of an unspaced
script weighs 6 / LETTERS_PER_UNIT characters (6: an English word and a blank), a mark nothing.

Sources: Gopher (bullet_lines, ellipsis_lines), FineWeb (end_mark_lines, short_lines, newlines_per_word), Data-Juicer
(longest_line, mean_line_length), C4 (sentences, kept_sentences), NeMo Curator (unended_sentences), RefinedWeb and DCLM
(removable_words). Peers know fewer marks: datatrove's C4 keeps lines that end in . ? ! " ' only, its Gopher knows two bullets,
its FineWeb counts blank lines as line breaks. Costs 0.2 ns a byte beside the parts.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curation.filters.rules.parts import Hashes, Int32s, Line, Parts, hashes_of
from curation.filters.rules.sign_visit import Count
from curation.filters.rules.word_visit import UNITS, WordKind
from curation.filters.rules.words import Measures, share
from curation.records import ScoreColumn
from curation.text.jit import inlined, kernel
from curation.text.memory import Int
from curation.text.spans import Int64s
from curation.text.tables import Script

__all__ = ["COLUMNS", "measure"]

COLUMNS = (
    ScoreColumn("bullet_lines", pa.float32(), "share", "lines that begin with a bullet"),
    ScoreColumn("ellipsis_lines", pa.float32(), "share", "lines that end in an ellipsis"),
    ScoreColumn("end_mark_lines", pa.float32(), "share", "lines that end as sentences do; null for Thai and Lao"),
    ScoreColumn("short_lines", pa.float32(), "share", "lines that say 30 characters of English or less"),
    ScoreColumn("longest_line", pa.int32(), "characters", "longest line"),
    ScoreColumn("mean_line_length", pa.float32(), "characters", "mean length of the lines that are not blank"),
    ScoreColumn("newlines_per_word", pa.float32(), "per English word", "line breaks, blank lines left out"),
    ScoreColumn("sentences", pa.int64(), "sentences", "sentences with an end mark"),
    ScoreColumn("unended_sentences", pa.float32(), "share", "sentences without an end mark; null for Thai and Lao"),
    ScoreColumn("kept_sentences", pa.int64(), "sentences", "sentences with an end mark in lines that C4 keeps"),
    ScoreColumn("removable_words", pa.float32(), "share", "words in lines of capitals, digits, counters or one word"),
)

C4_WORDS = ("javascript", "use", "policy", "cookies", "terms", "of", "privacy", "cookie", "uses")
"""Words of what C4 removes a line for: "javascript" and six phrases; the first four end one of them."""
JAVASCRIPT, USE, POLICY, COOKIES, TERMS, OF, PRIVACY, COOKIE, USES = range(9)

FEW_UNITS = 1.5
C4_UNITS, C4_WORD = 3.0, 1_000
ENDED, ELLIPSIS, BULLET = int(Line.ENDED), int(Line.ELLIPSIS), int(Line.BULLET)
IN_CAPITALS, SHORT = int(Line.UPPER), int(Line.SHORT)
NUMBER = int(WordKind.NUMBER)
WITHOUT_MARKS = [int(Script.THAI), int(Script.LAO)]
LINES, BULLETS, ELLIPSES, ENDS, SHORTS, LONGEST, CHARS, KEPT, REMOVABLE = range(9)


def measure(parts: Parts) -> Measures:
    """The columns of each document: arrays of n, masked where undefined."""
    n = len(parts.offsets) - 1
    sums = np.zeros((n, 9), np.int64)
    _sum_lines(parts.line_flags, parts.line_chars, parts.lines.offsets, sums)
    _judge_lines(
        parts.line_flags,
        parts.line_chars,
        parts.line_sentences,
        parts.line_words,
        parts.lines.offsets,
        parts.hashes,
        parts.word_kinds,
        parts.word_chars,
        parts.word_sums,
        _c4_words(),
        sums,
    )
    lines, sentences = sums[:, LINES], parts.signs[:, Count.SENTENCE]
    unended = parts.signs[:, Count.UNENDED]
    marked = 2 * parts.letters[:, WITHOUT_MARKS].sum(axis=1) < np.maximum(parts.letters.sum(axis=1), 1)
    return {
        "bullet_lines": share(sums[:, BULLETS], lines),
        "ellipsis_lines": share(sums[:, ELLIPSES], lines),
        "end_mark_lines": share(sums[:, ENDS], lines, marked),
        "short_lines": share(sums[:, SHORTS], lines),
        "longest_line": sums[:, LONGEST].astype(np.int32),
        "mean_line_length": share(sums[:, CHARS], lines),
        "newlines_per_word": share(np.maximum(lines - 1, 0), parts.units),
        "sentences": sentences,
        "unended_sentences": share(unended, sentences + unended, marked),
        "kept_sentences": sums[:, KEPT],
        "removable_words": share(sums[:, REMOVABLE], np.diff(parts.words.offsets)),
    }


@kernel
def _sum_lines(flags: npt.NDArray[np.uint8], chars: Int32s, offsets: Int64s, sums: Int64s) -> None:
    for row in range(len(offsets) - 1):
        mine = sums[row]
        for line in range(offsets[row], offsets[row + 1]):
            flag, size = np.int64(flags[line]), np.int64(chars[line])
            mine[LINES] += size > 0
            mine[BULLETS] += flag & BULLET != 0
            mine[ELLIPSES] += flag & ELLIPSIS != 0
            mine[ENDS] += flag & ENDED != 0
            mine[SHORTS] += flag & SHORT != 0
            mine[LONGEST] = max(mine[LONGEST], size)
            mine[CHARS] += size


@cache
def _c4_words() -> Hashes:
    """Hashes of `C4_WORDS`: uint64[9]. Not at import, since that would compile a kernel."""
    return hashes_of(C4_WORDS)


@inlined
def _is_policy(hashes: Hashes, first: Int, word: Int, known: Hashes) -> Int:
    """Whether "javascript" or a phrase of policies ends at a word of the line that begins with word `first`."""
    this = hashes[word]
    if this == known[JAVASCRIPT]:
        return True
    before = hashes[word - 1] if word > first else np.uint64(0)
    before_that = hashes[word - 2] if word > first + 1 else np.uint64(0)
    if this == known[POLICY]:  # privacy policy, cookie policy
        return before == known[PRIVACY] or before == known[COOKIE]
    if this == known[COOKIES]:  # uses cookies, use cookies, use of cookies
        return before == known[USES] or before == known[USE] or (before == known[OF] and before_that == known[USE])
    return this == known[USE] and before == known[OF] and before_that == known[TERMS]  # terms of use


@inlined
def _has_any(hashes: Hashes, known: Hashes) -> Int:
    """Whether any word can end a phrase of policies: most texts have none, and none of their lines is looked through."""
    a, b, c, d = known[JAVASCRIPT], known[USE], known[POLICY], known[COOKIES]
    found = 0
    for i in range(len(hashes)):
        found += (hashes[i] == a) | (hashes[i] == b) | (hashes[i] == c) | (hashes[i] == d)
    return found > 0


@inlined
def _breaks_c4(hashes: Hashes, chars: Int32s, first: Int, last: Int, known: Hashes) -> Int:
    """Whether the words of a line have one that is too long, "javascript" or a phrase of policies."""
    n = 0
    for word in range(first, last):
        n += chars[word] > C4_WORD or _is_policy(hashes, first, word, known)
    return n > 0


@inlined
def _says(kinds: npt.NDArray[np.uint8], first: Int, last: Int, least: float, numbers: bool) -> Int:
    """Whether words, or those with letters, say so many units at least."""
    units = 0.0
    for word in range(first, last):
        if numbers or kinds[word] != NUMBER:
            units += UNITS[np.uint64(kinds[word])]
            if units >= least:
                return True
    return False


@kernel
def _judge_lines(
    flags: npt.NDArray[np.uint8],
    line_chars: Int32s,
    sentences: Int32s,
    line_words: Int64s,
    offsets: Int64s,
    hashes: Hashes,
    kinds: npt.NDArray[np.uint8],
    chars: Int32s,
    word_sums: Int64s,
    known: Hashes,
    sums: Int64s,
) -> None:
    """Kept sentences and removable words of each document."""
    for row in range(len(offsets) - 1):
        mine = sums[row]
        words = hashes[line_words[offsets[row]] : line_words[offsets[row + 1]]]
        has_long, has_any = word_sums[row, 2] > C4_WORD, _has_any(words, known)
        for line in range(offsets[row], offsets[row + 1]):
            if line_chars[line] == 0:
                continue
            first, last = line_words[line], line_words[line + 1]
            if flags[line] & IN_CAPITALS or not _says(kinds, first, last, FEW_UNITS, False):
                mine[REMOVABLE] += last - first
            is_kept = sentences[line] > 0 and flags[line] & (ENDED | ELLIPSIS) == ENDED
            if is_kept and _says(kinds, first, last, C4_UNITS, True):
                suspect = has_long or (has_any and _has_any(hashes[first:last], known))
                mine[KEPT] += 0 if suspect and _breaks_c4(hashes, chars, first, last, known) else sentences[line]
