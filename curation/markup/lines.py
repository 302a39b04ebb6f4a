"""Second pass: lines of script without a script element around them, minified code, embedded data.

What is left of a page is often cut out of the middle of a script, so its tags are gone. Two signs tell it
from a program that somebody shows: it calls the page (`document.`, `googletag.`), or no person wrote its
lines. About 400 MB/s.
"""

from __future__ import annotations

import numpy as np

from curation.markup.bytes import NEWLINE, Int, Kinds, is_blank, is_digit
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
"""Program lines in a row that make a listing."""
MAX_UNBROKEN = 200
"""ASCII bytes without a blank: longer ones are data."""
PATH = signs("MmLlHhVvCcSsQqTtAaZz")
"""Commands of SVG paths."""
CALLS_PER_LINE = 0.1
"""Calls of the page for each line of a listing, from which on it is a page's script."""


@inlined
def _claim(kinds: Kinds, start: Int, end: Int, kind: Int) -> None:
    """Give the unclaimed bytes, and the links among them, to one kind."""
    for k in range(start, end):
        if kinds[k] == TEXT or kinds[k] == LINK:
            kinds[k] = kind


@inlined
def _is_machine_made(data: Bytes, kinds: Kinds, start: Int, end: Int) -> bool:
    """Whether a window of a long line is minified code or data."""
    n = blanks = dense = digits = points = path = ascii_bytes = run = longest = 0
    for k in range(start, end):
        byte = data[k]
        if is_blank(byte):
            blanks += 1
            run = 0
        elif kinds[k] == TEXT:
            n += 1
            run = run + 1 if byte < 128 else 0
            longest = max(longest, run)
            ascii_bytes += byte < 128
            dense += DENSE[byte]
            digits += is_digit(byte)
            points += byte == 45 or byte == 46
            path += PATH[byte]
    if n < MIN_WINDOW or ascii_bytes < 0.95 * n:
        return False
    drawing = path >= 0.03 * n and digits + path + points >= 0.9 * n
    minified = dense >= 0.1 * n and dense + digits >= 0.25 * n and blanks <= 0.1 * (end - start)
    return minified or drawing or longest >= MAX_UNBROKEN


@inlined
def _line_signs(data: Bytes, kinds: Kinds, start: Int, end: Int) -> tuple[Int, bool, bool]:
    """Of a short line: unclaimed bytes, whether it reads as a program, whether a part is a page's script."""
    n = strong = ascii_bytes = 0
    has_script = False
    first = before = 0
    member = False
    for k in range(start, end):
        byte = data[k]
        if is_blank(byte):
            continue
        first = byte if first == 0 else first
        member |= byte == 58 and before == 34
        before = byte
        if kinds[k] == TEXT:
            n += 1
            ascii_bytes += byte < 128
            strong += STRONG[byte]
        has_script |= kinds[k] == SCRIPT
    is_program = n > 0 and ascii_bytes >= 0.8 * n and strong >= PROGRAM_SHARE * n
    is_member = n > 0 and first == 34 and member  # "name": value
    return n, is_program or is_member, has_script


@inlined
def _settle(kinds: Kinds, start: Int, end: Int, n_lines: Int, calls: Int) -> None:
    """Close a run of program lines: a page's script if it calls the page often enough, a listing if never."""
    if calls > 0 and calls >= CALLS_PER_LINE * n_lines:
        _claim(kinds, start, end, SCRIPT)
    elif calls == 0 and n_lines >= MIN_LISTING:
        _claim(kinds, start, end, CODE)


@inlined
def mark_lines(data: Bytes, kinds: Kinds) -> None:
    """Mark what the first pass left: runs of program lines that call the page, and machine-made lines."""
    end = len(data)
    start = run_start = n_lines = calls = np.int64(0)  # see mark_spans
    while start < end:
        stop = start
        while stop < end and data[stop] != NEWLINE:
            stop += 1
        if stop - start > LONG_LINE:
            marked = False
            for left in range(start, stop, WINDOW):
                right = min(left + WINDOW, stop)
                if _is_machine_made(data, kinds, left, right):
                    _claim(kinds, left, right, SCRIPT)
                    marked = True
            breaks, program, script = not marked, False, marked
        else:
            n, program, script = _line_signs(data, kinds, start, stop)
            breaks = n > 0 and not program
        calls += 2 * script
        if program and not breaks:
            n_lines += 1
            calls += page_calls(data, start, stop)
        if breaks:
            _settle(kinds, run_start, start, n_lines, calls)
            run_start, n_lines, calls = stop, 0, 0
        start = stop + 1
    _settle(kinds, run_start, end, n_lines, calls)
