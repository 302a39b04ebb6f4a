"""Lines that hang together with nothing: menus, chat and ad dumps, rows of numbers.

    loose_lines            lines in runs of three or more loose lines / lines
    loose_line_characters  characters of those lines / characters of all lines
    number_rows            lines of which most words are numbers, two or more / lines

A line is loose if it begins with a letter, says 8 English words or less (in scripts without blanks 40: there a paragraph is
seldom cut into lines), and ends neither a sentence nor in a sign that says that something follows (, ; : and the like,
an opening bracket, a dash, the border of a table), and is not indented. A run ends at any other line, a blank one too. So
headings, which stand between blank lines, list items with bullets or numbers, listings of code and paragraphs with hard line
ends are no loose lines; menus, one-word lists and chats are. Poems without punctuation and bare lists of words are, too:
nothing in a line tells them from menus. All are undefined where there are fewer than 4 lines that are not blank.

A page with menus around an article is no menu. loose_lines is undefined where 300 English words or more stand in lines of
prose (12 words or more, with a sentence that ends the line): of raw pages with an article in them that leaves 18 in 100
above a limit of .3, of what is left of the same pages without the article 86, where by lines alone it were 92 and 96.

Sources: ours; FineWeb's and Gopher's shares of lines with an end mark ask the same of all lines alike. For number_rows Gopher's
and NeMo Curator's shares of words with letters and of digits. Costs 0.5 ns a byte.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curation.filters.rules.parts import Int32s, Line, Parts, WordKind
from curation.filters.rules.word_visit import UNITS
from curation.filters.rules.words import Measures, share
from curation.records import ScoreColumn
from curation.text.decode import decode
from curation.text.jit import inlined, kernel
from curation.text.memory import Int, address_of, byte_at
from curation.text.spans import Bytes, Int64s

__all__ = ["COLUMNS", "measure"]

COLUMNS = (
    ScoreColumn("loose_lines", pa.float32(), "share", "short lines in runs, without sentences, bullets or blank lines"),
    ScoreColumn("loose_line_characters", pa.float32(), "share", "characters of those lines"),
    ScoreColumn("number_rows", pa.float32(), "share", "lines of which most words are numbers"),
)

FEWEST_LINES = 4
RUN = 3
SPACED_UNITS, UNSPACED_UNITS = 8.0, 40.0
ROW_NUMBERS, ROW_SHARE = 2, 0.6
ENDED = int(Line.ENDED | Line.ELLIPSIS)
NUMBER, LETTER, LAST_SPACED = int(WordKind.NUMBER), int(WordKind.LETTER), int(WordKind.WORD)
GOES_ON = np.array(sorted(ord(sign) for sign in ",;:([{=/\\|-–—，、；：（［｛「『《〈【،؛"), np.int64)
"""int64[k]: signs after which something follows."""
PROSE_UNITS, ARTICLE_UNITS = 12.0, 300.0
INDENT = 2
LINES, LOOSE, ROWS, CHARS, LOOSE_CHARS = range(5)


def measure(parts: Parts) -> Measures:
    """The columns of each document: float32[n], masked where undefined."""
    n = len(parts.offsets) - 1
    counts, prose = np.zeros((n, 5), np.int64), np.zeros(n)
    _visit(
        parts.data,
        parts.offsets,
        *parts.lines,
        parts.line_words,
        parts.line_chars,
        parts.line_sentences,
        parts.line_flags,
        parts.words.starts,
        parts.word_kinds,
        UNITS,
        GOES_ON,
        counts,
        prose,
    )
    lines = np.where(counts[:, LINES] < FEWEST_LINES, 0, counts[:, LINES])
    chars = np.where(counts[:, LINES] < FEWEST_LINES, 0, counts[:, CHARS])
    return {
        "loose_lines": share(counts[:, LOOSE], lines, prose < ARTICLE_UNITS),
        "loose_line_characters": share(counts[:, LOOSE_CHARS], chars),
        "number_rows": share(counts[:, ROWS], lines),
    }


@inlined
def _tally(
    kinds: npt.NDArray[np.uint8], weights: npt.NDArray[np.float64], first: Int, last: Int
) -> tuple[Int, Int, Int, Int]:
    """Of the words of a line: numbers, words that are neither numbers nor single letters, units, and whether any is unspaced."""
    numbers, others, units, unspaced = 0, 0, 0.0, 0
    for word in range(first, last):
        kind = np.uint64(kinds[word])
        numbers += kind == NUMBER
        others += kind != NUMBER and kind != LETTER
        if kind > LAST_SPACED:
            unspaced = 1
        units += weights[kind]
    return numbers, others, units, unspaced


@inlined
def _goes_on(first: Int, end: Int, signs: Int64s) -> Int:
    """Whether the last character before an address is one after which something follows."""
    p = end - 1
    while p > first and p > end - 4 and byte_at(p) & 0xC0 == 0x80:
        p -= 1
    code, _ = decode(p, end)
    found = 0
    for sign in signs:
        found |= sign == code
    return found


@inlined
def _is_indented(base: Int, begin: Int, start: Int) -> Int:
    """Whether two blanks, or a tab, stand before a line's first character, in the text that begins at `begin`."""
    if start < begin + INDENT:
        return False
    last, before = byte_at(base + start - 1), byte_at(base + start - 2)
    return last == 0x09 or (last == 0x20 and before in (0x20, 0x09))


@inlined
def _close(run: Int, chars: Int, counts: Int64s) -> None:
    """Count a run of loose lines that has ended, if it is one."""
    if run >= RUN:
        counts[LOOSE] += run
        counts[LOOSE_CHARS] += chars


@kernel
def _visit(
    data: Bytes,
    texts: Int64s,
    starts: Int64s,
    ends: Int64s,
    offsets: Int64s,
    line_words: Int64s,
    chars: Int32s,
    sentences: Int32s,
    flags: npt.NDArray[np.uint8],
    word_starts: Int64s,
    kinds: npt.NDArray[np.uint8],
    weights: npt.NDArray[np.float64],
    signs: Int64s,
    counts: Int64s,
    prose: npt.NDArray[np.float64],
) -> None:
    base = address_of(data)
    for row in range(len(offsets) - 1):
        run, of_run, of_row = 0, 0, counts[row]
        for line in range(offsets[row], offsets[row + 1]):
            if starts[line] == ends[line]:
                _close(run, of_run, of_row)
                run, of_run = 0, 0
                continue
            of_row[LINES] += 1
            of_row[CHARS] += chars[line]
            first, last = line_words[line], line_words[line + 1]
            numbers, others, units, unspaced = _tally(kinds, weights, first, last)
            if units >= PROSE_UNITS and sentences[line] > 0 and flags[line] & ENDED != 0:
                prose[row] += units
            of_row[ROWS] += numbers >= ROW_NUMBERS and numbers >= ROW_SHARE * (numbers + others)
            loose = (
                last > first
                and word_starts[first] == starts[line]
                and kinds[first] != NUMBER
                and flags[line] & ENDED == 0
                and not _is_indented(base, texts[row], starts[line])
                and units <= (UNSPACED_UNITS if unspaced else SPACED_UNITS)
                and not _goes_on(base + starts[line], base + ends[line], signs)
            )
            if loose:
                run += 1
                of_run += chars[line]
            else:
                _close(run, of_run, of_row)
                run, of_run = 0, 0
        _close(run, of_run, of_row)
