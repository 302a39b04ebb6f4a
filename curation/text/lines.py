"""Where lines and paragraphs begin and end.

A line ends at U+000A and nowhere else. Blanks at either end of it are not part of its span, so a
carriage return before the newline is not, and a blank line is an empty span.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from curation.text.decode import decode, kind_of
from curation.text.hashing import hash_spans
from curation.text.jit import inlined, kernel
from curation.text.memory import Int, address_of, byte_at, bytes_in, count_bits, trailing_zeros
from curation.text.spans import Bytes, Int64s, Spans, Where, bounds
from curation.text.tables import CharClass

__all__ = ["line_hashes", "line_spans", "lines_in", "paragraph_spans"]

SPACE, NEWLINE, CONTROL = int(CharClass.SPACE), int(CharClass.NEWLINE), int(CharClass.CONTROL)


def line_spans(data: Bytes, where: Where) -> Spans:
    """Where the lines of each text are, without blanks at their ends: starts, ends int64[n_lines], offsets int64[n + 1].

    Blank lines are there too, as empty spans. A newline at the end of the text opens no further line.
    """
    checked = bounds(data, where)
    offsets = np.zeros(len(checked[1]) + 1, np.int64)
    np.cumsum(_count_lines(*checked), out=offsets[1:])
    starts, ends = np.empty(offsets[-1], np.int64), np.empty(offsets[-1], np.int64)
    _fill_lines(*checked, starts, ends)
    return Spans(starts, ends, offsets)


def paragraph_spans(data: Bytes, where: Where) -> Spans:
    """Where the paragraphs, maximal runs of lines that are not blank, of each text are.

    Returns starts, ends int64[n_paragraphs], offsets int64[n + 1].
    """
    return Spans(*_paragraphs(*line_spans(data, where)))


def line_hashes(data: Bytes, where: Where, *, seed: int = 0) -> tuple[npt.NDArray[np.uint64], Spans]:
    """XXH64 of each line without the blanks at its ends: uint64[n_lines], and where the lines are.

    All blank lines have one hash, that of no bytes; `spans.starts == spans.ends` tells them.
    """
    lines = line_spans(data, where)
    return hash_spans(data, lines, seed=seed), lines


@inlined
def _is_blank(code: Int) -> Int:
    char_class = kind_of(code) & 15
    return char_class in (SPACE, NEWLINE, CONTROL)


@inlined
def _after_blanks(p: Int, end: Int) -> Int:
    """Address of the first character from `p` on that is not blank, or `end`."""
    while p < end:
        code, length = decode(p, end)
        if not _is_blank(code):
            break
        p += length
    return p


@inlined
def _before_blanks(p: Int, end: Int) -> Int:
    """Address after the last character before `end` that is not blank, or `p`."""
    while p < end:
        last = end - 1
        while last > p and last > end - 4 and byte_at(last) & 0xC0 == 0x80:
            last -= 1
        code, length = decode(last, end)
        if last + length != end or not _is_blank(code):
            break
        end = last
    return end


@inlined
def _line_end(p: Int, end: Int, limit: Int) -> Int:
    """Address of the first newline from `p` on, or `end`."""
    while p + 64 <= limit and p < end:
        at = trailing_zeros(bytes_in(p, 0, 0x0A, 1))
        if at < 64:
            return min(p + at, end)
        p += 64
    while p < end and byte_at(p) != 0x0A:
        p += 1
    return min(p, end)


@inlined
def lines_in(p: Int, end: Int) -> Int:
    """Lines from address `p` to `end`."""
    if p == end:
        return 0
    n = np.int64(byte_at(end - 1) != 0x0A)
    while p + 64 <= end:
        n += count_bits(bytes_in(p, 0, 0x0A, 1))
        p += 64
    while p < end:
        n += byte_at(p) == 0x0A
        p += 1
    return n


@kernel
def _count_lines(data: Bytes, starts: Int64s, ends: Int64s) -> Int64s:
    base = address_of(data)
    counts = np.empty(len(starts), np.int64)
    for row in range(len(starts)):
        counts[row] = lines_in(base + starts[row], base + ends[row])
    return counts


@kernel
def _fill_lines(data: Bytes, starts: Int64s, ends: Int64s, line_starts: Int64s, line_ends: Int64s) -> None:
    base, limit = address_of(data), address_of(data) + len(data)
    n = 0
    for row in range(len(starts)):
        p, end = base + starts[row], base + ends[row]
        while p < end:
            line_end = _line_end(p, end, limit)
            start = _after_blanks(p, line_end)
            line_starts[np.uint64(n)] = start - base
            line_ends[np.uint64(n)] = _before_blanks(start, line_end) - base
            n += 1
            p = line_end + 1


@kernel
def _paragraphs(starts: Int64s, ends: Int64s, offsets: Int64s) -> tuple[Int64s, Int64s, Int64s]:
    paragraph_starts, paragraph_ends = np.empty_like(starts), np.empty_like(starts)
    paragraph_offsets = np.zeros_like(offsets)
    n = 0
    for row in range(len(offsets) - 1):
        blank = True
        for line in range(offsets[row], offsets[row + 1]):
            was_blank, blank = blank, starts[line] == ends[line]
            if not blank:
                if was_blank:
                    paragraph_starts[n] = starts[line]
                    n += 1
                paragraph_ends[n - 1] = ends[line]
        paragraph_offsets[row + 1] = n
    return paragraph_starts[:n].copy(), paragraph_ends[:n].copy(), paragraph_offsets
