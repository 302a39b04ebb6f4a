"""UTF-8 to code points and their kinds, one character at a time: functions that other kernels inline.

Addresses are absolute (`memory.address_of`), so that a step is one addition. Valid UTF-8 is expected,
since Arrow strings are. Invalid bytes are read as U+FFFD, one for each maximal subpart, as
`bytes.decode("utf-8", "replace")` does it; they never make a kernel read at or beyond `end`, or stand
still: every step is 1 to 4 bytes.
"""

from __future__ import annotations

import numpy as np

from curation.text.jit import inlined
from curation.text.memory import Int, byte_at, bytes_in, load32, trailing_zeros
from curation.text.tables import FOLD_BLOCKS, FOLD_INDEX, KIND_BLOCKS, KIND_INDEX

__all__ = ["ascii_run", "decode", "fold_of", "kind_of", "low_bits"]

REPLACEMENT = 0xFFFD


@inlined
def _continues(p: Int, end: Int) -> Int:
    return p < end and byte_at(p) & 0xC0 == 0x80


@inlined
def decode(p: Int, end: Int) -> tuple[Int, Int]:
    """Code point and length in bytes of the character at address `p` < `end`."""
    if p + 4 <= end:  # what nearly every character that is not ASCII is: 2 or 3 bytes, valid, not the last
        word = load32(p)
        if word & 0xC0C0F0 == 0x8080E0:
            code = (word & 0x0F) << 12 | word >> 2 & 0xFC0 | word >> 16 & 0x3F
            if 0x800 <= code < 0xD800 or code >= 0xE000:
                return code, 3
        elif word & 0xC0E0 == 0x80C0 and word & 0x1E:
            return (word & 0x1F) << 6 | word >> 8 & 0x3F, 2
    return _decode(p, end)


@inlined
def _decode(p: Int, end: Int) -> tuple[Int, Int]:
    """Code point and length in bytes of the character at address `p` < `end`."""
    lead = byte_at(p)
    if lead < 0x80:
        return lead, 1
    if lead < 0xC2 or not _continues(p + 1, end):
        return REPLACEMENT, 1
    second = byte_at(p + 1) & 0x3F
    if lead < 0xE0:
        return (lead & 0x1F) << 6 | second, 2
    code = (lead & 0x0F) << 6 | second
    if lead < 0xF0:
        # overlong below U+0800, surrogates U+D800 to U+DFFF
        if code < 0x20 or 0x360 <= code < 0x380:
            return REPLACEMENT, 1
        if not _continues(p + 2, end):
            return REPLACEMENT, 2
        return code << 6 | byte_at(p + 2) & 0x3F, 3
    # overlong below U+10000, beyond U+10FFFF
    if lead > 0xF4 or code < 0x10 or code >= 0x110:
        return REPLACEMENT, 1
    if not _continues(p + 2, end):
        return REPLACEMENT, 2
    if not _continues(p + 3, end):
        return REPLACEMENT, 3
    return (code << 6 | byte_at(p + 2) & 0x3F) << 6 | byte_at(p + 3) & 0x3F, 4


@inlined
def kind_of(code: Int) -> Int:
    """class | role << 4 | script << 8 of a code point."""
    block = np.int64(KIND_INDEX[np.uint64(code >> 6)])
    return np.int64(KIND_BLOCKS[np.uint64(block << 6 | code & 63)])


@inlined
def fold_of(code: Int) -> Int:
    """Distance from a code point to what simple case folding makes of it; 0 for most."""
    block = np.int64(FOLD_INDEX[np.uint64(code >> 6)])
    return np.int64(FOLD_BLOCKS[np.uint64(block << 6 | code & 63)])


@inlined
def ascii_run(p: Int, end: Int, limit: Int) -> Int:
    """How many of the next 64 bytes, up to `end`, are ASCII before the first that is not.

    0 where 64 bytes cannot be read at once, because the data end at address `limit`.
    """
    if p + 64 > limit:
        return 0
    return min(trailing_zeros(bytes_in(p, 0, 0x80, 0x80)), end - p)


@inlined
def low_bits(n: Int) -> Int:
    """A mask of n ones, 1 <= n <= 64: uint64."""
    return ~np.uint64(0) >> np.uint64(64 - n)
