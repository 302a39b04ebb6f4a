"""Parts of lines that language models are asked about: text in one script, of a length that one question can hold.

Most lines are one part. A line is cut where its script changes, if both sides have enough letters to be
judged: a Chinese sentence with an English one in brackets is two, while the `pull request` that a Chinese
sentence speaks of stays part of it. Long lines are cut at blanks, so that a page without line ends is
judged in pieces as other pages are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from curation.filters.language.blocks import SLACK
from curation.filters.language.folding import fold_line
from curation.filters.language.kinds import N_FACTS
from curation.text import Script, Spans
from curation.text.characters import LETTER, Counts
from curation.text.decode import decode, kind_of
from curation.text.jit import inlined, kernel
from curation.text.memory import Int, address_of
from curation.text.spans import Bytes, Int64s, bounds
from curation.text.tables import CharClass

__all__ = ["CJK_SCRIPTS", "ENOUGH", "Parts", "cut_parts", "fold_parts"]

CJK_SCRIPTS = (Script.HAN, Script.HIRAGANA, Script.KATAKANA, Script.HANGUL, Script.BOPOMOFO)
"""Scripts whose lines are labelled by their characters (`cjk`), never by a model."""

ENOUGH = 20
"""Letters from which on another script within a line is a part of its own."""
WORDS = 3
"""Blanks that such a part must have in a Chinese, Japanese or Korean line: names and terms belong to the line."""
GUEST = 5
"""Latin letters that one letter of another script outweighs where a line's script is asked for."""
LONGEST = 1_500
"""Bytes of a part, at most; the cut is at the last blank before, where there is one."""

N_SCRIPTS = len(Script)
MARK = int(CharClass.MARK)
CJK_MASK = np.zeros(N_SCRIPTS, np.bool_)
CJK_MASK[list(CJK_SCRIPTS)] = True


class Parts(NamedTuple):
    """n parts, in the order of their lines.

    line: int64[n], row of the line. starts, ends: int64[n], bytes in the cleaned text. script: uint8[n], the
    script of most letters. letters: int32[n], letters of that script.
    """

    line: Int64s
    starts: Int64s
    ends: Int64s
    script: npt.NDArray[np.uint8]
    letters: Counts


def cut_parts(data: Bytes, starts: Int64s, ends: Int64s, letters: Counts, cjk: npt.NDArray[np.bool_]) -> Parts:
    """The parts of lines that are not Chinese, Japanese or Korean.

    Args:
        data: uint8[...], cleaned text.
        starts, ends: int64[n_lines], its lines.
        letters: int32[n_lines, len(Script)], letters of each.
        cjk: bool[n_lines], lines whose own label `cjk` has: of these only long stretches in other scripts are parts.

    Raises InputError where a line leaves the data.
    """
    other = np.where(CJK_MASK, 0, letters)
    script = np.where(cjk, other.argmax(axis=1), _main_script(other))
    most = other[np.arange(len(starts)), script]
    mixed = letters.sum(axis=1) > most
    plain = (most > 0) & ~cjk & ~mixed & (ends - starts <= LONGEST)
    rows = np.flatnonzero(~plain & (most > 0) & (~cjk | (most >= ENOUGH)))
    where = Spans(starts[rows], ends[rows], np.zeros(1, np.int64))
    found = _stretches(*bounds(data, where), np.where(cjk[rows], -1, script[rows]))
    plain_rows = np.flatnonzero(plain)
    line = np.concatenate([plain_rows, rows[found[0]]])
    order = np.argsort(line, kind="stable")
    return Parts(
        line[order],
        np.concatenate([starts[plain_rows], found[1]])[order],
        np.concatenate([ends[plain_rows], found[2]])[order],
        np.concatenate([script[plain_rows], found[3]])[order].astype(np.uint8),
        np.concatenate([most[plain_rows], found[4]])[order].astype(np.int32),
    )


def _main_script(letters: Counts) -> Int64s:
    """The script of each line: that of most letters, but Latin only where it has GUEST times those of any other.

    Sentences in Hebrew, Hindi or Thai are full of terms in Latin letters; English ones of no other script's.
    """
    rows = np.arange(len(letters))
    script: Int64s = letters.argmax(axis=1)
    guest = letters.copy()
    guest[:, Script.LATIN] = 0
    host = guest.argmax(axis=1)
    return np.where((script == Script.LATIN) & (guest[rows, host] * GUEST >= letters[rows, script]), host, script)


@kernel
def _stretches(data: Bytes, starts: Int64s, ends: Int64s, scripts: Int64s) -> Int64s:
    """int64[5, n]: row, start, end, script and letters of each part.

    `scripts`: the main script of each row, -1 for Chinese, Japanese and Korean ones. A stretch of one script is a part if it
    is in the row's main script, or has letters enough; in rows with -1, letters and words enough. What is too short goes with
    the part before it. From four fifths of LONGEST on, the first blank ends a stretch.
    """
    base = address_of(data)
    found = np.empty((5, 64), np.int64)
    n = 0
    for row in range(len(starts)):
        p, end = base + starts[row], base + ends[row]
        begin, last, script, count, blanks = p, p, -1, 0, 0
        while p < end:
            code, length = decode(p, end)
            kind = kind_of(code)
            letter = kind & 15 == LETTER
            size = p - begin
            full = size >= LONGEST - 4 or (size >= LONGEST * 4 // 5 and code == 0x20)
            if count and ((letter and kind >> 8 != script) or full):
                n, found = _add(found, n, row, begin - base, last - base, script, count, blanks, scripts[row])
                begin, count, blanks = p, 0, 0
            if letter:
                script, last = kind >> 8, p + length
                count += 1
            elif count and kind & 15 == MARK and last == p:
                last = p + length
            elif count == 0:
                begin = p + length
            elif code == 0x20:
                blanks += 1
            p += length
        if count:
            n, found = _add(found, n, row, begin - base, last - base, script, count, blanks, scripts[row])
    return found[:, :n].copy()


@inlined
def _add(
    found: Int64s, n: Int, row: Int, start: Int, end: Int, script: Int, count: Int, blanks: Int, main: Int
) -> tuple[Int, Int64s]:
    """Add a stretch to the parts, or to the last one, if it is a part at all."""
    if script != main and (count < ENOUGH or CJK_MASK[np.uint64(script)] or (main < 0 and blanks < WORDS)):
        return n, found
    if n and found[0, n - 1] == row and found[3, n - 1] == script and end - found[1, n - 1] <= LONGEST:
        found[2, n - 1] = end
        found[4, n - 1] += count
        return n, found
    if n == found.shape[1]:
        more = np.empty((5, 2 * n), np.int64)
        more[:, :n] = found
        found = more
    found[0, n], found[1, n], found[2, n], found[3, n], found[4, n] = row, start, end, script, count
    return n + 1, found


def fold_parts(data: Bytes, starts: Int64s, ends: Int64s) -> tuple[Bytes, Int64s, Int64s]:
    """Parts in lower case with letters and marks only: their bytes, starts and ends. See `folding`.

    Raises InputError where a part leaves the data.
    """
    places = np.zeros((2, len(starts)), np.int64)
    folded = _fold(*bounds(data, Spans(starts, ends, np.zeros(1, np.int64))), places)
    return folded, places[0], places[1]


@kernel
def _fold(data: Bytes, starts: Int64s, ends: Int64s, places: Int64s) -> Bytes:
    total = 0
    for i in range(len(starts)):
        total += ends[i] - starts[i]
    room = total + total // 2 + 2 * SLACK
    # A copy of all parts, since `fold_line` reads up to 64 bytes on; see there for the room it needs.
    text, folded = np.empty(total + SLACK, np.uint8), np.empty(room, np.uint8)
    text[total:] = 0
    out, p = address_of(folded), address_of(text)
    limit = p + len(text)
    letters, facts = np.zeros(N_SCRIPTS, np.int32), np.zeros(N_FACTS, np.int64)
    o, copied = out, 0
    for i in range(len(starts)):
        size = ends[i] - starts[i]
        text[copied : copied + size] = data[starts[i] : ends[i]]
        places[0, i] = o - out
        o = fold_line(p + copied, p + copied + size, limit, o, True, letters, facts)
        places[1, i] = o - out
        copied += size
    return folded[: o - out]
