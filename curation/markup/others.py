"""What else is no prose: marked code, links, template marks, shortcodes, style properties. `spans` inlines these.

As in `tags`, each gives the end of what stands at one place, or the place itself.
"""

from __future__ import annotations

from curation.markup.bytes import NEWLINE, Int, is_blank, is_letter, is_name, knows, name_key
from curation.markup.words import SHORTCODES, STYLE
from curation.text.jit import inlined
from curation.text.spans import Bytes, Int64s

__all__ = [
    "backtick_end",
    "fence_end",
    "link_end",
    "link_start",
    "shortcode_end",
    "style_end",
    "style_start",
    "template_end",
]

MAX_INLINE = 400
MAX_TEMPLATE = 300
MAX_PROPERTY = 40
MAX_VALUE = 200
MAX_SCHEME = 10
MAX_FENCE = 8
"""Longer fences are held for this long, which bounds how often a text is searched for their ends."""

BACKTICK, TILDE = 96, 126


@inlined
def _fence_start(data: Bytes, i: Int, end: Int) -> Int:
    """First byte of the line at `i` that is no blank and no `>` of a quotation."""
    while i < end and (data[i] == 32 or data[i] == 9 or data[i] == 62):
        i += 1
    return i


@inlined
def _run(data: Bytes, i: Int, end: Int, byte: Int) -> Int:
    """How often `byte` stands at `i`."""
    k = i
    while k < end and data[k] == byte:
        k += 1
    return k - i


@inlined
def fence_end(data: Bytes, i: Int, end: Int, ahead: Int64s) -> Int:
    """End of the fenced code block that opens in the line at `i`, or `i`.

    `ahead[1]` and `ahead[2]` remember the shortest fence of backticks and of tildes that is never closed.
    """
    start = _fence_start(data, i, end)
    if start >= end or not (data[start] == BACKTICK or data[start] == TILDE):
        return i
    mark = data[start]
    length = min(_run(data, start, end, mark), MAX_FENCE)
    slot = 1 if mark == BACKTICK else 2
    if length < 3 or length >= ahead[slot]:
        return i
    k = start + _run(data, start, end, mark)
    while k < end and data[k] != NEWLINE:
        if data[k] == BACKTICK and mark == BACKTICK:
            return i  # ```code``` in a line of prose
        k += 1
    while k < end:
        k = _fence_start(data, k + 1, end)
        if k < end and data[k] == mark and _run(data, k, end, mark) >= length:
            k += _run(data, k, end, mark)
            while k < end and (data[k] == 32 or data[k] == 9 or data[k] == 13):
                k += 1
            if k >= end or data[k] == NEWLINE:
                return k
        while k < end and data[k] != NEWLINE:
            k += 1
    ahead[slot] = length
    return i


@inlined
def backtick_end(data: Bytes, i: Int, end: Int) -> tuple[Int, Int]:
    """End of the code in backticks at `i` (or `i`), and where to go on: behind the backticks if they open nothing."""
    length = _run(data, i, end, BACKTICK)
    k = i + length
    limit = min(end, i + MAX_INLINE)
    while k < limit and data[k] != NEWLINE:
        run = _run(data, k, end, BACKTICK)
        if run == length:
            return k + run, k + run
        k += max(run, 1)
    return i, i + length


@inlined
def template_end(data: Bytes, i: Int, end: Int) -> Int:
    """End of `{{ }}`, `{% %}`, `<? ?>` or `<% %>` at `i` within its line, or `i`."""
    opening, inner = data[i], data[i + 1] if i + 1 < end else 0
    if opening == 123:
        if (inner != 123 and inner != 37) or (inner == 123 and i + 2 < end and data[i + 2] == 123):
            return i  # of a row of braces the last two open
        last, closing = (125 if inner == 123 else 37), 125
    else:
        if inner != 63 and inner != 37:
            return i
        last, closing = inner, 62
    for k in range(i + 2, min(end, i + MAX_TEMPLATE) - 1):
        if data[k] == NEWLINE:
            break
        if data[k] == last and data[k + 1] == closing:
            return k + 2
    return i


@inlined
def shortcode_end(data: Bytes, i: Int, end: Int) -> Int:
    """End of `[name ...]` or `[/name]` of a known shortcode at `i` within its line, or `i`."""
    k = i + 1
    if k < end and data[k] == 47:
        k += 1
    start = k
    while k < end and k - start < 40 and is_name(data[k]):
        k += 1
    if k >= end or not (data[k] == 93 or data[k] == 61 or data[k] == 32):
        return i
    if not knows(SHORTCODES, name_key(data, start, k, False)):
        return i
    for q in range(k, min(end, i + MAX_TEMPLATE)):
        if data[q] == NEWLINE:
            break
        if data[q] == 93:
            return i if q + 1 < end and data[q + 1] == 40 else q + 1  # [url](...) is a Markdown link
    return i


@inlined
def link_end(data: Bytes, i: Int, end: Int) -> Int:
    """End of the address whose `://` is at `i`, with the `)` after it, or `i`."""
    if not (i + 2 < end and data[i + 1] == 47 and data[i + 2] == 47):
        return i
    k = i + 3
    while k < end:
        byte = data[k]
        if is_blank(byte) or byte >= 128 or byte == 34 or byte == 39 or byte == 60 or byte == 62:
            break
        if byte == 41:
            return k + 1
        if byte == 93 or byte == 125 or byte == BACKTICK:
            break
        k += 1
    return k


@inlined
def link_start(data: Bytes, i: Int) -> Int:
    """Start of the link whose `://` is at `i`: its scheme, with the `](` of Markdown before it."""
    start = i
    while start > 0 and i - start < MAX_SCHEME and is_letter(data[start - 1]):
        start -= 1
    return start - 2 if start > 1 and data[start - 1] == 40 and data[start - 2] == 93 else start


@inlined
def style_start(data: Bytes, i: Int) -> Int:
    """Start of the style property whose `:` is at `i`, or `i`."""
    start = i
    while start > 0 and i - start < MAX_PROPERTY and (is_letter(data[start - 1]) or data[start - 1] == 45):
        start -= 1
    if start == i:
        return i
    if start > 0:
        before = data[start - 1]
        if not (is_blank(before) or before == 123 or before == 59):
            return i
    name = start
    if data[name] == 45:  # -webkit-, -moz-
        name += 1
        while name < i and data[name] != 45:
            name += 1
        name += 1
    stop = name
    while stop < i and is_letter(data[stop]):
        stop += 1
    return start if knows(STYLE, name_key(data, name, stop, False)) else i


@inlined
def style_end(data: Bytes, i: Int, end: Int) -> Int:
    """End of the value after the `:` at `i`, with its `;` or `}`, or `i`."""
    for k in range(i + 1, min(end, i + MAX_VALUE)):
        byte = data[k]
        if byte == NEWLINE or byte == 123:
            break
        if byte == 59 or byte == 125:
            return k + 1 if k > i + 1 else i
    return i
