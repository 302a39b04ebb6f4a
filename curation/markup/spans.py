"""First pass over a text: every tag, script, entity, style, template mark and piece of marked code in it.

From left to right; at each place the first rule that fits takes the bytes up to its end. About 750 MB/s.
"""

from __future__ import annotations

import numpy as np

from curation.markup.bytes import NEWLINE, Int, Kinds, fill, is_blank
from curation.markup.kinds import Kind
from curation.markup.others import (
    backtick_end,
    fence_end,
    link_end,
    link_start,
    shortcode_end,
    style_end,
    style_start,
    template_end,
)
from curation.markup.scripts import SCRIPT_NAME, STYLE_NAME, element_at
from curation.markup.tags import comment_end, declaration_end, entity_end, tag_at
from curation.text.jit import inlined
from curation.text.spans import Bytes, Int64s

__all__ = ["AHEAD", "mark_spans"]

TEXT, CODE, LINK, PAGE_TAG = int(Kind.TEXT), int(Kind.CODE), int(Kind.LINK), int(Kind.PAGE_TAG)
ENTITY, CSS, TEMPLATE = int(Kind.ENTITY), int(Kind.CSS), int(Kind.TEMPLATE)

AHEAD = 5
"""Slots of what is remembered about the text ahead: next `-->`, shortest open fences, next script, next style."""
FAR = 1 << 60
MAX_SELECTOR = 1000

SPECIAL = np.zeros(256, np.bool_)
SPECIAL[[NEWLINE, ord("`"), ord("<"), ord("&"), ord("{"), ord("["), ord(":")]] = True


@inlined
def _angle(data: Bytes, i: Int, end: Int, ahead: Int64s) -> tuple[Int, Int]:
    """End and kind of what opens with the `<` at `i`."""
    stop = comment_end(data, i, end, ahead)
    if stop > i:
        return stop, PAGE_TAG
    stop = declaration_end(data, i, end)
    if stop > i:
        return stop, PAGE_TAG
    stop = template_end(data, i, end)
    if stop > i:
        return stop, TEMPLATE
    stop, kind, name = tag_at(data, i, end)
    if stop > i and data[i + 1] != 47 and name in (SCRIPT_NAME, STYLE_NAME):
        return element_at(data, stop, end, name, kind, ahead)
    return stop, kind


@inlined
def _span(data: Bytes, i: Int, end: Int, ahead: Int64s) -> tuple[Int, Int, Int, Int]:
    """Start, end and kind of what stands at `i` (start = end: nothing), and where to go on."""
    byte = data[i]
    start = stop = i
    kind = TEXT
    if byte == 60:
        stop, kind = _angle(data, i, end, ahead)
    elif byte == 38:
        stop, kind = entity_end(data, i, end), ENTITY
    elif byte == 96:
        stop, after = backtick_end(data, i, end)
        return i, stop, CODE, after
    elif byte == 123:
        stop, kind = template_end(data, i, end), TEMPLATE
    elif byte == 91:
        stop, kind = shortcode_end(data, i, end), TEMPLATE
    elif byte == 58:
        stop, kind = link_end(data, i, end), LINK
        if stop > i:
            start = link_start(data, i)
        else:
            start = style_start(data, i)
            stop, kind = (style_end(data, i, end) if start < i else i), CSS
            start = start if stop > i else i
    return start, stop, kind, max(stop, i + 1)


@inlined
def _mark_selectors(data: Bytes, kinds: Kinds, end: Int) -> None:
    """Give the selector before a block of style properties, and the braces around it, to CSS."""
    for i in range(end):
        if data[i] == 123 and kinds[i] == TEXT:
            k = i + 1
            while k < end and is_blank(data[k]):
                k += 1
            if k >= end or kinds[k] != CSS:
                continue
            start = i
            while start > 0 and i - start < MAX_SELECTOR and kinds[start - 1] == TEXT:
                before = data[start - 1]
                if before == 123 or before == 125 or before == 59 or before == NEWLINE:
                    break
                start -= 1
            fill(kinds, start, i + 1, CSS)
        elif data[i] == 125 and kinds[i] == TEXT:
            k = i - 1
            while k >= 0 and is_blank(data[k]):
                k -= 1
            if k >= 0 and kinds[k] == CSS:
                kinds[i] = CSS


@inlined
def mark_spans(data: Bytes, kinds: Kinds, ahead: Int64s) -> Int:
    """Mark the bytes of one text; returns which kinds it holds now, bit k for kind k.

    `kinds` is all TEXT before, and at least as long as the text.
    """
    end = len(data)
    ahead[0] = ahead[3] = ahead[4] = -1
    ahead[1] = ahead[2] = FAR
    found = np.int64(0)
    i = np.int64(0)  # not 0: the functions below would be compiled twice, once for that very number
    line_start = True
    while i < end:
        if line_start:
            line_start = False
            stop = fence_end(data, i, end, ahead)
            if stop > i:
                fill(kinds, i, stop, CODE)
                found |= 1 << CODE
                i = stop
                continue
        byte = data[i]
        if not SPECIAL[byte]:
            i += 1
            continue
        if byte == NEWLINE:
            line_start = True
            i += 1
            continue
        start, stop, kind, after = _span(data, i, end, ahead)
        if stop > start:
            fill(kinds, start, stop, kind)
            found |= 1 << kind
        i = after
    if found & 1 << CSS:
        _mark_selectors(data, kinds, end)
    return found
