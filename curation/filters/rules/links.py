"""Addresses of the web in a line: `scheme://...` and `www....`."""

from __future__ import annotations

from curation.text.jit import inlined
from curation.text.memory import Int, byte_at

__all__ = ["is_ascii_word", "link_at"]


@inlined
def is_ascii_word(byte: Int) -> Int:
    """Whether a byte is an ASCII letter or digit."""
    return 0x61 <= byte | 0x20 <= 0x7A or 0x30 <= byte <= 0x39


@inlined
def _is_link_byte(byte: Int) -> Int:
    """ASCII that an address may hold: neither blank nor one of " < > [ ] ( ) { } | \\ ^ `."""
    if byte <= 0x22 or (byte >= 0x7B and byte != 0x7E):
        return byte == 0x21
    return byte not in (0x28, 0x29, 0x3C, 0x3E, 0x5B, 0x5C, 0x5D, 0x5E, 0x60)


@inlined
def link_at(p: Int, begin: Int, end: Int, seen: Int) -> tuple[Int, Int]:
    """Where the search for links may go on, and the characters of the link whose colon, or first w, is at `p`: 0 for none.

    `seen` is where the last link ended: what lies before it is not looked at again.
    """
    if p < seen:
        return seen, 0
    first, body = p, p
    if byte_at(p) == 0x3A:
        if p + 3 >= end or byte_at(p + 1) != 0x2F or byte_at(p + 2) != 0x2F:
            return seen, 0
        floor = max(begin, seen, p - 10)
        while first > floor and (is_ascii_word(byte_at(first - 1)) or byte_at(first - 1) in (0x2B, 0x2D, 0x2E)):
            first -= 1
        if first == p:
            return seen, 0
        body = p + 3
    else:
        if p + 4 >= end or byte_at(p + 1) | 0x20 != 0x77 or byte_at(p + 2) | 0x20 != 0x77 or byte_at(p + 3) != 0x2E:
            return seen, 0
        if p > begin and is_ascii_word(byte_at(p - 1)):
            return seen, 0
        body = p + 4
    q = body
    while q < end and _is_link_byte(byte_at(q)):
        q += 1
    stop = q
    while stop > body and byte_at(stop - 1) in (0x21, 0x27, 0x2A, 0x2C, 0x2E, 0x3A, 0x3B, 0x3F, 0x5F):
        stop -= 1
    return q, stop - first if stop > body else 0
