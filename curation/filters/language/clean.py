"""One line without what has no language: kernel functions that write its words, blanks and punctuation.

Costs 1 to 5 ns a byte. Text of ASCII letters and plain punctuation goes 64 bytes at a time; anything else by
token, a run of characters without blanks, which ends at ideographs, kana, hangul, Thai and other letters
that are written without blanks, at punctuation outside of ASCII and at `<`. A token in which nothing is
suspicious is copied; for the others see `tokens`. Letters, combining marks and punctuation stay, all else
(numbers, symbols, emoji, characters that are none) is one blank.

Rules of our own, chosen by looking at what they drop from the labelled crawl text and web pages of the test data.
"""

from __future__ import annotations

import numpy as np

from curation.filters.language.blocks import copy, copy64
from curation.filters.language.tokens import (
    LOWER,
    MARKS,
    PLAIN,
    SEPARATORS,
    UNFIT,
    UPPER,
    ascii_kind,
    careful,
    is_token_letter,
    mark_weight,
)
from curation.text.decode import ascii_run, decode, kind_of, low_bits
from curation.text.jit import inlined
from curation.text.memory import Int, byte_at, bytes_in, count_bits, store_byte, trailing_zeros
from curation.text.normal import ORDER_AT, SECOND, UNSETTLED, form_of, is_settled, order_of
from curation.text.spans import Int64s
from curation.text.tables import CharClass, Role, Script

__all__ = ["clean_line"]

LETTER, MARK, PUNCTUATION, CONTROL = (
    int(CharClass.LETTER),
    int(CharClass.MARK),
    int(CharClass.PUNCTUATION),
    int(CharClass.CONTROL),
)
SPACE, SYMBOL, EMOJI = int(CharClass.SPACE), int(CharClass.SYMBOL), int(CharClass.EMOJI)
IGNORABLE, HANGUL = int(Role.IGNORABLE), int(Script.HANGUL)
UNSPACED_LETTER = LETTER | int(Role.UNSPACED) << 4
ZWNJ, ZWJ = 0x200C, 0x200D
LONGEST_TAG = 1000
"""Bytes. Beyond, a `<` and a `>` on one line are taken for signs of their own."""
MOST_MARKS = 32
"""Marks in a row that are looked at; more stand in no language and stay as they are."""


@inlined
def _before(p: Int, start: Int) -> Int:
    """Code point of the character that ends at address `p`, or -1 at the line's start."""
    if p <= start:
        return np.int64(-1)
    at = p - 1
    while at > start and at > p - 4 and byte_at(at) & 0xC0 == 0x80:
        at -= 1
    return decode(at, p)[0]


@inlined
def _unsettled(code: Int, p: Int, start: Int) -> bool:
    """Whether the mark `code` at address `p` has to be joined with what stands before it, or to be moved."""
    form = form_of(code)
    if form & UNSETTLED == 0:
        return False
    order, own_order = 0, True
    for _ in range(MOST_MARKS):
        before = _before(p, start)
        if before < 0:
            return bool(form & 0xFF << ORDER_AT) and order_of(form) < order
        other = form_of(before)
        if own_order:
            order, own_order = order_of(other), False
        if order_of(other) == 0:
            return bool(form & (SECOND | 0xFF << ORDER_AT)) and not is_settled(form, other, order)
        p -= 1
        while p > start and byte_at(p) & 0xC0 == 0x80:
            p -= 1
    return False


@inlined
def _is_part(code: Int) -> bool:
    """A letter or mark outside of ASCII, of a script with blanks between words."""
    kind = kind_of(code)
    return code >= 0x80 and (kind & 15 == MARK or is_token_letter(kind))


@inlined
def _joins(p: Int, length: Int, start: Int, end: Int) -> bool:
    """Whether the zero-width joiner at address `p` stands inside of a word."""
    before = _before(p, start)
    if before < 0x80 or p + length >= end:
        return False
    return _is_part(before) and _is_part(decode(p + length, end)[0])


@inlined
def _scan(p: Int, start: Int, end: Int, settled: bool) -> tuple[Int, Int, Int]:
    """Where the token at address `p` ends; 0 if all of it may stay, 1 if not, UNFIT; and its marks of code."""
    flags, last, lowers, marks = 0, 0, 0, 0
    while p < end:
        byte = byte_at(p)
        if byte < 0x80:
            kind = ascii_kind(byte)
            if kind == 0:
                break
            if kind & PLAIN == 0 or ((last == 0x2E or last == 0x3A) and kind & (LOWER | UPPER)):
                flags = 1
            if (kind & UPPER and lowers) or (last == 0x28 and byte == 0x29) or (last == 0x3A and byte == 0x3A):
                flags = 1
            marks += mark_weight(kind)
            lowers = kind & LOWER
            last = byte
            p += 1
            continue
        code, length = decode(p, end)
        kind = kind_of(code)
        if kind & 15 == MARK:
            if not settled and _unsettled(code, p, start):
                return p, np.int64(UNFIT), np.int64(0)
        elif code in (ZWNJ, ZWJ):
            if not _joins(p, length, start, end):
                break
        elif not is_token_letter(kind):
            break
        flags |= last == 0x2E  # as in www.пример.рф
        last, lowers = 0x80, 0
        p += length
    return p, np.int64(flags), np.int64(marks)


@inlined
def _tag_end(p: Int, end: Int) -> Int:
    """Address after the markup tag that begins with the `<` at address `p`, or `p` if it is none."""
    if p + 2 >= end or not (ascii_kind(byte_at(p + 1)) & (LOWER | UPPER) or byte_at(p + 1) in (0x2F, 0x21, 0x3F)):
        return p
    if byte_at(p + 2) >= 0x80:  # it could be a mark, and no ASCII letter before it
        return p
    at, stop = p + 1, min(end, p + LONGEST_TAG)
    while at < stop:
        byte = byte_at(at)
        if byte == 0x3E:
            return at + 1
        if byte == 0x3C:
            return p
        at += 1
    return p


@inlined
def _highest(mask: Int) -> Int:
    """Index of the highest one of a mask that is not 0."""
    mask |= mask >> np.uint64(1)
    mask |= mask >> np.uint64(2)
    mask |= mask >> np.uint64(4)
    mask |= mask >> np.uint64(8)
    mask |= mask >> np.uint64(16)
    mask |= mask >> np.uint64(32)
    return count_bits(mask) - 1


@inlined
def _plain_run(p: Int, end: Int, run: Int, facts: Int64s) -> tuple[Int, Int]:
    """Bytes from address `p` on that are whole tokens which stay as they are, and bytes to go on by.

    0, 0 if the first token is none, or no token ends within the `run` ASCII bytes that may be read.
    """
    one = np.uint64(1)
    letters = bytes_in(p, 0x20, 0x61, 26)
    uppers = bytes_in(p, 0, 0x41, 26)
    blanks = bytes_in(p, 0, 0x20, 1)
    points = bytes_in(p, 0, 0x2E, 1) | bytes_in(p, 0, 0x3A, 1)
    brackets = bytes_in(p, 0, 0x28, 2)
    colons = bytes_in(p, 0, 0x3A, 2)
    # ! " ' ( ) , - . : ; ?
    signs = (
        bytes_in(p, 0, 0x21, 2) | bytes_in(p, 0, 0x27, 3) | bytes_in(p, 0, 0x2C, 3) | colons | bytes_in(p, 0, 0x3F, 1)
    )
    odd = ~(letters | blanks | signs)
    odd |= (points << one) & (letters | points)
    odd |= ((letters & ~uppers) << one) & uppers | (brackets << one) & brackets | (blanks << one) & blanks
    n = min(trailing_zeros(odd), run)
    if n == run and p + run == end and byte_at(p + run - 1) != 0x20:
        stop, step = run, run
    else:
        gaps = blanks & low_bits(n) if n else np.uint64(0)
        if gaps == 0:
            return np.int64(0), np.int64(0)
        stop = _highest(gaps)
        step = stop + 1
    if stop:
        facts[MARKS] += count_bits((brackets | bytes_in(p, 0, 0x3B, 1)) & low_bits(stop))
    return np.int64(stop), np.int64(step)


@inlined
def _blank(out: Int, o: Int, gap: bool) -> Int:
    """Write a blank if one is owed and it is not the line's first character."""
    if gap and o > out:
        store_byte(o, 0x20)
        o += 1
    return o


@inlined
def _is_clear(p: Int, start: Int) -> bool:
    """Whether what stands before address `p` leaves no token that could go on there."""
    before = _before(p, start)
    if before < 0x80:
        return bool(before <= 0x20)
    return kind_of(before) & 15 in (SPACE, SYMBOL, EMOJI)


@inlined
def _other(
    p: Int, length: Int, code: Int, start: Int, limit: Int, out: Int, o: Int, gap: bool, settled: bool
) -> tuple[Int, bool]:
    """Write or skip the character at address `p`, not ASCII and of no token. Returns the new `o`, or UNFIT, and `gap`."""
    kind = kind_of(code)
    char_class = kind & 15
    if char_class in (LETTER, MARK, PUNCTUATION):
        if (
            not settled
            and (char_class == MARK or (kind >> 8 == HANGUL and code < 0xAC00))
            and _unsettled(code, p, start)
        ):
            return np.int64(UNFIT), gap
        return copy(p, length, _blank(out, o, gap), limit), False
    if char_class == CONTROL and kind >> 4 & 15 == IGNORABLE and code != ZWNJ and code != ZWJ:
        if not settled and not _is_clear(p, start):
            return np.int64(UNFIT), gap
        return o, gap
    return o, True


@inlined
def clean_line(p: Int, end: Int, limit: Int, out: Int, settled: bool, facts: Int64s) -> Int:
    """Write the line from address `p` to `end` without what has no language to address `out`.

    Returns the address after it, or UNFIT. Writes at most 3 bytes for every 2 (see `tokens.careful`).
    `facts` counts what `kinds` judges by.
    """
    start, o, gap = p, out, False
    while p < end:
        byte = byte_at(p)
        if byte >= 0x80:
            code, length = decode(p, end)
            kind = kind_of(code)
            if kind & 0xFF == UNSPACED_LETTER:  # none of these joins with what stands before it
                o, gap = copy(p, length, _blank(out, o, gap), limit), False
                p += length
                continue
            # a mark after a gap begins a token, as it would in what is written
            if not (is_token_letter(kind) or (kind & 15 == MARK and (gap or o == out))):
                facts[SEPARATORS] += code in (0xB7, 0xBB, 0x2022, 0x203A, 0xFF5C)
                o, gap = _other(p, length, code, start, limit, out, o, gap, settled)
                if o == UNFIT:
                    return np.int64(UNFIT)
                p += length
                continue
        elif ascii_kind(byte) == 0:
            after = _tag_end(p, end) if byte == 0x3C else p
            facts[MARKS] += 3 * (byte == 0x3C and after == p)
            p, gap = max(after, p + 1), True
            continue
        else:
            run = ascii_run(p, end, limit)
            n, step = _plain_run(p, end, run, facts) if run > 1 else (0, 0)
            if n > 0:
                o = _blank(out, o, gap)
                copy64(p, o)
                o += n
                gap = step > n
                p += step
                continue
        stop, flags, marks = _scan(p, start, end, settled)
        if flags == UNFIT:
            return np.int64(UNFIT)
        if flags == 0:
            facts[MARKS] += marks
            o, gap = copy(p, stop - p, _blank(out, o, gap), limit), False
        else:
            o, gap = careful(p, stop, out, o, gap, facts)
        p = stop
    return o
