"""Tags, comments, entities: what HTML itself is made of. Functions that `spans` inlines.

Each looks at one place and gives the end of what stands there, or the place itself if it is not that.
Looking ahead is bounded, or remembered, so that a text is read a bounded number of times whatever it holds.
"""

from __future__ import annotations

import numpy as np

from curation.markup.bytes import Int, is_blank, is_digit, is_letter, is_name, knows, lower, name_key, skip_blanks
from curation.markup.kinds import Kind
from curation.markup.words import ATTRIBUTES, ENTITIES, TAGS
from curation.text.jit import inlined
from curation.text.spans import Bytes, Int64s

__all__ = ["MAX_TAG", "comment_end", "declaration_end", "entity_end", "tag_at"]

CODE, BARE_TAG, PAGE_TAG = int(Kind.CODE), int(Kind.BARE_TAG), int(Kind.PAGE_TAG)

MAX_TAG = 4000
"""Bytes of the longest tag that is looked for. Inline images make longer ones; their data count as script."""
MAX_DECLARATION = 300

# What an attribute says about its tag.
NOTHING, PAGE, SOURCE = 0, 1, 2


@inlined
def comment_end(data: Bytes, i: Int, end: Int, ahead: Int64s) -> Int:
    """End of the comment `<!-- ... -->` at `i`, or `i`. `ahead[0]` remembers the next `-->`."""
    if not (i + 3 < end and data[i + 1] == 33 and data[i + 2] == 45 and data[i + 3] == 45):
        return i
    if ahead[0] < i + 4:
        k = i + 4
        while k + 2 < end and not (data[k] == 45 and data[k + 1] == 45 and data[k + 2] == 62):
            k += 1
        ahead[0] = k if k + 2 < end else end
    return ahead[0] + 3 if ahead[0] < end else i


@inlined
def declaration_end(data: Bytes, i: Int, end: Int) -> Int:
    """End of `<!doctype ...>`, `<![if ...]>` or `<![CDATA[ ... >` at `i`, or `i`."""
    if not (i + 2 < end and data[i + 1] == 33 and (data[i + 2] == 91 or data[i + 2] | 32 == 100)):
        return i
    limit = min(end, i + MAX_DECLARATION)
    for k in range(i + 3, limit):
        if data[k] == 62:
            return k + 1
    return i


@inlined
def _quoted_end(data: Bytes, i: Int, limit: Int) -> Int:
    """End of the value after `=` at `i`: behind its closing quote, or `i + 1` if it is not quoted."""
    k = skip_blanks(data, i + 1, limit)
    if k < limit and (data[k] == 34 or data[k] == 39):
        quote = data[k]
        for q in range(k + 1, limit):
            if data[q] == quote:
                return q + 1
    return i + 1


@inlined
def _attribute(data: Bytes, start: Int, stop: Int, limit: Int, known: bool) -> Int:
    """What the attribute named `data[start:stop]` says: PAGE, SOURCE or NOTHING."""
    has_value = stop < limit and data[stop] == 61
    if not has_value and not known:
        return NOTHING
    if has_value and stop + 1 < limit and data[stop + 1] == 123:
        return SOURCE  # attr={...}: JSX, Svelte
    first, second = lower(data[start]), lower(data[start + 1]) if stop - start > 1 else 0
    if first == 118 and second == 45:
        return SOURCE  # v-...: Vue
    if knows(ATTRIBUTES, name_key(data, start, stop, True)):
        return PAGE
    length = stop - start
    if length > 5 and data[start + 4] == 45:
        third, fourth = lower(data[start + 2]), lower(data[start + 3])
        if first == 100 and second == 97 and third == 116 and fourth == 97:
            return PAGE  # data-
        if first == 97 and second == 114 and third == 105 and fourth == 97:
            return PAGE  # aria-
    return PAGE if length > 3 and first == 111 and second == 110 and has_value else NOTHING  # on...


@inlined
def tag_at(data: Bytes, i: Int, end: Int) -> tuple[Int, Int, np.uint64]:
    """End, kind and lower-case name of the tag whose `<` is at `i`; the end is `i` if it is no tag.

    An opening tag of an unknown name without page attributes is none: <stdio.h>, Map<String>, <your name>.
    """
    k = i + 1
    if k < end and data[k] == 47:
        k += 1
    start = k
    dashed = False
    limit = min(end, i + MAX_TAG)
    while k < limit and is_name(data[k]):
        dashed |= data[k] == 45
        k += 1
    name = name_key(data, start, k, True)
    if not (start < k < limit and is_letter(data[start])):
        return i, BARE_TAG, name
    if not (is_blank(data[k]) or data[k] == 62 or data[k] == 47):
        return i, BARE_TAG, name
    known = (dashed and data[i + 1] == 47) or knows(TAGS, name)
    page = source = False
    while k < limit:
        byte = data[k]
        if byte == 62:
            kind = CODE if source else PAGE_TAG if page else BARE_TAG
            return (k + 1 if known or page or source else i), kind, name
        if byte == 60:
            break
        if byte == 61:
            k = _quoted_end(data, k, limit)
            continue
        before = data[k - 1]
        if is_blank(before) or before == 34 or before == 39:
            if is_letter(byte):
                start = k
                while k < limit and is_name(data[k]):
                    k += 1
                said = _attribute(data, start, k, limit, known)
                page |= said == PAGE
                source |= said == SOURCE
                continue
            # @click, :href, #slot, [prop], (event), *ngIf, {...props}: a framework's source
            source |= byte == 64 or byte == 58 or byte == 35 or byte == 91 or byte == 40 or byte == 42 or byte == 123
        k += 1
    return i, BARE_TAG, name


@inlined
def entity_end(data: Bytes, i: Int, end: Int) -> Int:
    """End of the character reference whose `&` is at `i`, or `i`."""
    k = i + 1
    if k < end and data[k] == 35:
        k += 1
        is_hex = k < end and data[k] | 32 == 120
        if is_hex:
            k += 1
        start = k
        while k < end and k - start < 7 and (is_digit(data[k]) or (is_hex and 97 <= data[k] | 32 <= 102)):
            k += 1
        return k + 1 if start < k < end and data[k] == 59 else i
    start = k
    while k < end and k - start < 8 and (is_letter(data[k]) or is_digit(data[k])):
        k += 1
    found = start < k < end and data[k] == 59 and knows(ENTITIES, name_key(data, start, k, False))
    return k + 1 if found else i
