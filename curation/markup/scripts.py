"""Telling programs from prose, and scripts of a page from other programs. Functions that kernels inline."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from curation.markup.bytes import NEWLINE, Int, is_blank, is_digit, is_letter, is_name, knows, name_key, skip_blanks
from curation.markup.kinds import Kind
from curation.markup.words import PAGE_SCRIPT, packed
from curation.text.jit import inlined
from curation.text.spans import Bytes, Int64s

__all__ = ["DENSE", "PROGRAM_SHARE", "STRONG", "element_at", "page_calls", "signs"]

BARE_TAG, PAGE_TAG = int(Kind.BARE_TAG), int(Kind.PAGE_TAG)
CODE, SCRIPT, CSS = int(Kind.CODE), int(Kind.SCRIPT), int(Kind.CSS)

SCRIPT_NAME = np.uint64(packed("script"))
STYLE_NAME = np.uint64(packed("style"))
IMPORT = np.uint64(packed("import"))
EXPORT = np.uint64(packed("export"))

PROGRAM_SHARE = 0.06
"""Signs of programs in non-blank bytes. In the labelled crawl text 98 of 100 lines of prose have less, and of
script elements of leaked pages the median has 0.096; what has less but calls the page counts all the same."""


def signs(characters: str) -> npt.NDArray[np.bool_]:
    """bool[256]: which bytes are among these ASCII characters."""
    table = np.zeros(256, np.bool_)
    table[list(characters.encode())] = True
    return table


STRONG = signs("{}[]();=<>|&+*$_\\")
"""Signs that programs are full of and prose is not."""
DENSE = signs("{}[]();=<>|&+*$_\\\"':,!")
"""Signs of minified programs and data."""


@inlined
def page_calls(data: Bytes, start: Int, end: Int) -> Int:
    """How many words of PAGE_SCRIPT stand before `.`, `(`, `[`, `=` or a quote."""
    n = 0
    k = start
    while k < end:
        byte = data[k]
        if not (is_letter(byte) or byte == 95 or byte == 64):
            k += 1
            continue
        stop = k + 1
        while stop < end and (is_letter(data[stop]) or is_digit(data[stop]) or data[stop] == 95):
            stop += 1
        if stop < end and knows(PAGE_SCRIPT, name_key(data, k, stop, False)):
            after = data[stop]
            n += after == 46 or after == 40 or after == 91 or after == 61 or after == 34 or after == 39
        k = stop
    return n


@inlined
def _is_program(data: Bytes, start: Int, end: Int) -> bool:
    """Whether the content of a script element is a program: empty, dense in signs, or calling the page."""
    n = strong = 0
    for k in range(start, end):
        if not is_blank(data[k]):
            n += 1
            strong += STRONG[data[k]]
    return strong >= PROGRAM_SHARE * n or page_calls(data, start, end) > 0


@inlined
def _is_module(data: Bytes, start: Int, end: Int) -> bool:
    """Whether a line begins with `import ` or `export `: no browser runs that in a plain script."""
    line_start = True
    k = start
    while k < end:
        if line_start:
            k = skip_blanks(data, k, end)
            if k + 6 < end and data[k + 6] == 32:
                key = name_key(data, k, k + 6, False)
                if key in (IMPORT, EXPORT):
                    return True
            if k >= end:
                break
        line_start = data[k] == NEWLINE
        k += 1
    return False


@inlined
def _next_mark(data: Bytes, i: Int, end: Int, name: np.uint64) -> Int:
    """Where the next `<name` or `</name` stands, from `i`; `end` if nowhere."""
    k = i
    while k < end:
        if data[k] == 60:
            start = k + 2 if k + 1 < end and data[k + 1] == 47 else k + 1
            stop = start
            while stop < end and is_name(data[stop]):
                stop += 1
            if name_key(data, start, stop, True) == name:
                return k
            k = max(stop, k + 1)
        else:
            k += 1
    return end


@inlined
def element_at(data: Bytes, after: Int, end: Int, name: np.uint64, kind: Int, ahead: Int64s) -> tuple[Int, Int]:
    """End and kind of the script or style element whose opening tag ends at `after`.

    Without a closing tag, or where the content is prose (a lesson that says "between <script> and
    </script>"), only the tag itself counts. `ahead[3]` and `ahead[4]` remember the next tags.
    """
    slot = 3 if name == SCRIPT_NAME else 4
    if ahead[slot] < after:
        ahead[slot] = _next_mark(data, after, end, name)
    close = ahead[slot]
    whole = SCRIPT if name == SCRIPT_NAME else CSS
    if close + 1 >= end or data[close + 1] != 47:
        first = skip_blanks(data, after, end)
        if kind == PAGE_TAG and close >= end and first < end and (data[first] == 123 or data[first] == 91):
            return end, whole  # data that the end of the text cuts off
        return after, whole if kind == PAGE_TAG else kind
    stop = close
    while stop < end and stop < close + 20 and data[stop] != 62:
        stop += 1
    stop = min(stop + 1, end)
    if kind == PAGE_TAG:
        return stop, whole
    if kind == CODE or _is_module(data, after, close):
        return stop, CODE
    return (stop, whole) if _is_program(data, after, close) else (after, kind)
