"""Second pass: lines of script without a script element around them, minified code, embedded data.

What is left of a page is often cut out of the middle of a script, so its tags are gone. Two signs tell it
from a program that somebody shows: it calls the page (`document.`, `googletag.`), or no person wrote its
lines. About 600 MB/s.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from curation.markup.bytes import NEWLINE, Int, Kinds, is_blank, skip_blanks
from curation.markup.kinds import Kind
from curation.markup.scripts import DENSE, PROGRAM_SHARE, STRONG, page_calls, signs
from curation.text.jit import inlined
from curation.text.spans import Bytes

__all__ = ["mark_lines"]

TEXT, CODE, LINK, SCRIPT = int(Kind.TEXT), int(Kind.CODE), int(Kind.LINK), int(Kind.SCRIPT)

LONG_LINE = 300
"""Bytes. Longer lines are judged by windows, shorter ones as lines of a listing."""
WINDOW = 256
MIN_WINDOW = 64
MIN_LISTING = 3
"""Program lines in a row that make a listing, if half of them hold one of `{};=`: archive lists such as
`November (113)` read as programs by their signs alone."""
MIN_DENSE, MIN_DENSE_OR_DIGITS, MAX_BLANKS = 0.15, 0.25, 0.1
"""Shares of minified code: signs, signs and digits, blanks. In the labelled crawl text no window of 13,301 in
long lines of good documents meets all three (signs reach 0.135 in one of a thousand)."""
MAX_UNBROKEN = 200
"""ASCII bytes without a blank: longer ones are data."""
PATH = signs("MmLlHhVvCcSsQqTtAaZz")
"""Commands of SVG paths."""

CALLS_PER_LINE = 0.1
"""Calls of the page for each line of a listing, from which on it is a page's script."""

FIELD = 9
"""Bits of a count in a tally: up to 511, and LONG_LINE is less."""
BLANK, CHARACTERS, VISIBLE, ASCII, STRONG_SIGNS, DENSE_SIGNS, DIGITS = range(7)
"""Counts in a tally: blanks and characters of any kind, the others of TEXT alone."""


def _weights() -> npt.NDArray[np.uint64]:
    """uint64[256]: what each byte adds to a tally."""
    byte = np.arange(256)
    blank = np.isin(byte, list(b" \t\n\v\f\r"))
    visible = ~blank
    answers = (blank, visible & (byte & 0xC0 != 0x80), visible, visible & (byte < 128), STRONG, DENSE, DIGIT)
    weights = np.zeros(256, np.uint64)
    for number, answer in enumerate(answers):
        weights |= answer.astype(np.uint64) << np.uint64(FIELD * number)
    return weights


DIGIT = signs("0123456789")
ZERO, ONE = np.uint64(0), np.uint64(1)
WEIGHTS: Any = _weights()
MASKS = np.full(len(Kind), (1 << 2 * FIELD) - 1, np.uint64)
"""uint64[n_kinds]: which counts a byte of each kind adds to."""
MASKS[Kind.TEXT] = np.iinfo(np.uint64).max


@inlined
def _claim(kinds: Kinds, start: Int, end: Int, kind: Int) -> None:
    """Give the unclaimed bytes, and the links among them, to one kind."""
    for k in range(start, end):
        if kinds[k] == TEXT or kinds[k] == LINK:
            kinds[k] = kind


@inlined
def _tally(data: Bytes, kinds: Kinds, start: Int, limit: Int, plain: bool) -> tuple[Int, Int]:
    """WEIGHTS summed from `start` to the end of the line, but no further than `limit`; and where that is."""
    total = ZERO
    k, last = np.uint64(start), np.uint64(limit)  # unsigned, so that no index could be negative: twice as fast
    if plain:
        while k < last and data[k] != NEWLINE:
            total += WEIGHTS[data[k]]
            k += ONE
    else:
        while k < last and data[k] != NEWLINE:
            total += WEIGHTS[data[k]] & MASKS[kinds[k]]
            k += ONE
    return total, np.int64(k)


@inlined
def _field(total: Int, number: Int) -> Int:
    """One count of a tally."""
    return np.int64(total >> np.uint64(FIELD * number) & np.uint64((1 << FIELD) - 1))


@inlined
def _is_drawing(data: Bytes, kinds: Kinds, start: Int, end: Int, n: Int, digits: Int) -> bool:
    """Whether a window is the outline of a drawing: numbers and commands."""
    path = points = 0
    for k in range(start, end):
        if kinds[k] == TEXT:
            path += PATH[data[k]]
            points += data[k] == 45 or data[k] == 46
    return bool(path >= 0.03 * n and digits + path + points >= 0.9 * n)


@inlined
def _is_unbroken(data: Bytes, kinds: Kinds, start: Int, end: Int) -> bool:
    """Whether MAX_UNBROKEN unclaimed ASCII bytes stand in a window without a blank."""
    run = 0
    for k in range(start, end):
        if is_blank(data[k]) or (kinds[k] == TEXT and data[k] >= 128):
            run = 0
        elif kinds[k] == TEXT:
            run += 1
            if run >= MAX_UNBROKEN:
                return True
    return False


@inlined
def _is_machine_made(data: Bytes, kinds: Kinds, start: Int, end: Int, total: Int) -> bool:
    """Whether a window of a long line, with this tally, is minified code or data."""
    n, ascii_bytes = _field(total, VISIBLE), _field(total, ASCII)
    if n < MIN_WINDOW or ascii_bytes < 0.95 * n:
        return False
    dense, digits, blanks = _field(total, DENSE_SIGNS), _field(total, DIGITS), _field(total, BLANK)
    if dense >= MIN_DENSE * n and dense + digits >= MIN_DENSE_OR_DIGITS * n and blanks <= MAX_BLANKS * (end - start):
        return True
    if digits >= 0.3 * n and _is_drawing(data, kinds, start, end, n, digits):
        return True
    return ascii_bytes >= MAX_UNBROKEN and _is_unbroken(data, kinds, start, end)


@inlined
def _is_member(data: Bytes, start: Int, end: Int) -> bool:
    """Whether a line reads `"name": value`."""
    first = skip_blanks(data, start, end)
    if first >= end or data[first] != 34:
        return False
    before = 0
    for k in range(first, end):
        if data[k] == 58 and before == 34:
            return True
        if not is_blank(data[k]):
            before = data[k]
    return False


@inlined
def _is_program(data: Bytes, start: Int, end: Int, total: Int) -> bool:
    """Whether a short line, with this tally, reads as a program."""
    n = _field(total, VISIBLE)
    if n == 0:
        return False
    if _field(total, ASCII) >= 0.8 * n and _field(total, STRONG_SIGNS) >= PROGRAM_SHARE * n:
        return True
    return _is_member(data, start, end)


@inlined
def _has_script(data: Bytes, kinds: Kinds, start: Int, end: Int) -> bool:
    """Whether a part of a line is a page's script."""
    k = start
    while k < end and (kinds[k] != SCRIPT or is_blank(data[k])):
        k += 1
    return bool(k < end)


@inlined
def _is_statement(data: Bytes, kinds: Kinds, start: Int, end: Int) -> bool:
    """Whether a line holds one of `{};=`."""
    k = start
    while k < end and not (kinds[k] == TEXT and (data[k] == 59 or data[k] == 61 or data[k] == 123 or data[k] == 125)):
        k += 1
    return bool(k < end)


@inlined
def _settle(kinds: Kinds, start: Int, end: Int, n_lines: Int, n_statements: Int, calls: Int) -> None:
    """Close a run of program lines: a page's script if it calls the page often enough, a listing if never."""
    if calls > 0 and calls >= CALLS_PER_LINE * n_lines:
        _claim(kinds, start, end, SCRIPT)
    elif calls == 0 and n_lines >= MIN_LISTING and 2 * n_statements >= n_lines:
        _claim(kinds, start, end, CODE)


@inlined
def _mark_long_line(data: Bytes, kinds: Kinds, start: Int, stop: Int, plain: bool, is_row: bool) -> tuple[Int, Int]:
    """Mark the machine-made windows of a long line; returns how many there are, and the line's characters.

    The row of a table is never machine-made.
    """
    n_marked = n_chars = 0
    for left in range(start, stop, WINDOW):
        right = min(left + WINDOW, stop)
        total, _ = _tally(data, kinds, left, right, plain)
        n_chars += _field(total, CHARACTERS)
        if not is_row and _is_machine_made(data, kinds, left, right, total):
            _claim(kinds, left, right, SCRIPT)
            n_marked += 1
    return n_marked, n_chars


@inlined
def mark_lines(data: Bytes, kinds: Kinds, found: Int) -> Int:
    """Mark what the first pass left: runs of program lines that call the page, and machine-made lines.

    `found` are the kinds that the first pass found. Returns the text's characters without blanks.
    """
    end = len(data)
    plain = found == 0
    scripted = found & 1 << SCRIPT != 0
    start = run_start = n_lines = n_statements = calls = n_chars = np.int64(0)  # see mark_spans
    while start < end:
        total, stop = _tally(data, kinds, start, min(end, start + LONG_LINE + 1), plain)
        program = script = False
        first = skip_blanks(data, start, stop)
        is_row = first < stop and data[first] == 124  # | a Markdown table |
        if stop - start > LONG_LINE:
            while stop < end and data[stop] != NEWLINE:
                stop += 1
            n_marked, chars = _mark_long_line(data, kinds, start, stop, plain, is_row)
            script = n_marked > 0
            breaks = not script
        else:
            chars = _field(total, CHARACTERS)
            program = not is_row and _is_program(data, start, stop, total)
            script = scripted and _has_script(data, kinds, start, stop)
            breaks = _field(total, VISIBLE) > 0 and not program
        n_chars += chars
        calls += 2 * script
        if program:
            n_lines += 1
            n_statements += _is_statement(data, kinds, start, stop)
            calls += page_calls(data, start, stop)
        if breaks:
            _settle(kinds, run_start, start, n_lines, n_statements, calls)
            run_start = stop
            n_lines = n_statements = calls = np.int64(0)
        start = stop + 1
    _settle(kinds, run_start, end, n_lines, n_statements, calls)
    return n_chars
