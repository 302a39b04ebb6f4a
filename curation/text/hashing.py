"""XXH64 of parts of a text, as https://github.com/Cyan4973/xxHash specifies it.

The values equal those of any other XXH64 with the same seed. Words are short, so what counts is how
soon the function ends: a word of some 5 bytes takes about 8 ns.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from curation.text.decode import decode, fold_of
from curation.text.jit import inlined, kernel
from curation.text.memory import Int, address_of, byte_at, load64, store_byte
from curation.text.spans import Bytes, Int64s, Where, bounds

__all__ = ["hash_spans", "xxh64", "xxh64_folded"]

P1 = np.uint64(0x9E3779B185EBCA87)
P2 = np.uint64(0xC2B2AE3D27D4EB4F)
P3 = np.uint64(0x165667B19E3779F9)
P4 = np.uint64(0x85EBCA77C2B2AE63)
P5 = np.uint64(0x27D4EB2F165667C5)

EVERY_HIGH_BIT = np.uint64(0x8080808080808080)
UP_TO_A = np.uint64(0x3F3F3F3F3F3F3F3F)  # 0x80 - "A" in every byte
UP_TO_BEYOND_Z = np.uint64(0x2525252525252525)  # 0x80 - "["


def hash_spans(data: Bytes, where: Where, *, seed: int = 0) -> npt.NDArray[np.uint64]:
    """XXH64 of the bytes of each text: uint64[n]."""
    return _hash_spans(*bounds(data, where), np.uint64(seed))


@inlined
def _rotate(x: Int, n: int) -> Int:
    return x << np.uint64(n) | x >> np.uint64(64 - n)


@inlined
def _round(lane: Int, word: Int) -> Int:
    return _rotate(lane + word * P2, 31) * P1


@inlined
def _merge(h: Int, lane: Int) -> Int:
    return (h ^ _round(np.uint64(0), lane)) * P1 + P4


@inlined
def _lower(word: Int) -> Int:
    """ASCII capitals of 8 bytes to small letters. Wrong where a byte is not ASCII."""
    capitals = (word + UP_TO_A) & ~(word + UP_TO_BEYOND_Z) & EVERY_HIGH_BIT
    return word | capitals >> np.uint64(2)


@inlined
def _long(p: Int, stop: Int, seed: Int, folded: bool, seen: Int) -> tuple[Int, Int, Int]:
    """The lanes of 32 bytes each: hash so far, where they end, and all bits seen."""
    a, b, c, d = seed + P1 + P2, seed + P2, seed, seed - P1
    while p + 32 <= stop:
        w, x, y, z = load64(p), load64(p + 8), load64(p + 16), load64(p + 24)
        seen |= w | x | y | z
        if folded:
            w, x, y, z = _lower(w), _lower(x), _lower(y), _lower(z)
        a, b, c, d = _round(a, w), _round(b, x), _round(c, y), _round(d, z)
        p += 32
    h = _rotate(a, 1) + _rotate(b, 7) + _rotate(c, 12) + _rotate(d, 18)
    return _merge(_merge(_merge(_merge(h, a), b), c), d), p, seen


@inlined
def _last_bytes(p: Int, n: Int, limit: Int) -> Int:
    """The n < 8 bytes from address `p` on, zeros above them: uint64. The data may be read up to `limit`."""
    if p + 8 <= limit:
        return load64(p) & (np.uint64(1) << np.uint64(8 * n)) - np.uint64(1)
    word = np.uint64(0)
    for i in range(n):
        word |= np.uint64(byte_at(p + i)) << np.uint64(8 * i)
    return word


@inlined
def _tail(h: Int, word: Int, n: Int) -> Int:
    """Mix in the last n < 8 bytes. Selects, not jumps: the lengths of words cannot be foreseen."""
    if n & 4:
        h = _rotate(h ^ (word & np.uint64(0xFFFFFFFF)) * P1, 23) * P2 + P3
        word >>= np.uint64(32)
    for i in range(3):
        mixed = _rotate(h ^ (word >> np.uint64(8 * i) & np.uint64(0xFF)) * P5, 11) * P1
        h = mixed if n & 3 > i else h
    return h


@inlined
def _xxh64(p: Int, stop: Int, limit: Int, seed: Int, folded: bool) -> tuple[Int, Int]:
    """XXH64 of the bytes from address `p` to `stop`, and the bitwise or of all words read on the way."""
    h, seen, n = seed + P5, np.uint64(0), np.uint64(stop - p)
    if p + 32 <= stop:
        h, p, seen = _long(p, stop, seed, folded, seen)
    h += n
    while p + 8 <= stop:
        word = load64(p)
        seen |= word
        h ^= _round(np.uint64(0), _lower(word) if folded else word)
        h = _rotate(h, 27) * P1 + P4
        p += 8
    word = _last_bytes(p, stop - p, limit)
    seen |= word
    h = _tail(h, _lower(word) if folded else word, stop - p)
    h = (h ^ h >> np.uint64(33)) * P2
    h = (h ^ h >> np.uint64(29)) * P3
    return h ^ h >> np.uint64(32), seen


@inlined
def xxh64(p: Int, stop: Int, limit: Int, seed: Int) -> Int:
    """XXH64 of the bytes from address `p` to `stop`: uint64. The data may be read up to `limit`."""
    return _xxh64(p, stop, limit, seed, False)[0]


@inlined
def xxh64_folded(p: Int, stop: Int, limit: Int, seed: Int, scratch: Bytes) -> Int:
    """XXH64 of the characters from `p` to `stop` under simple case folding: uint64.

    `scratch` has room for 3 bytes for every 2 of the text, the most that folding can make of them.
    """
    lead = byte_at(p)
    if stop - p == 3 and 0xE3 <= lead <= 0xE9:  # one of U+3000 to U+9FFF: none has case, and CJK is made of them
        return xxh64(p, stop, limit, seed)
    if lead < 0x80:
        h, seen = _xxh64(p, stop, limit, seed, True)
        if seen & EVERY_HIGH_BIT == 0:
            return h
    return _fold_and_hash(p, stop, limit, seed, address_of(scratch))


@inlined
def _fold_and_hash(p: Int, stop: Int, limit: Int, seed: Int, scratch: Int) -> Int:
    q = p
    while q < stop:
        code, length = decode(q, stop)
        if fold_of(code) != 0:
            break
        q += length
    if q == stop:  # most words of most scripts
        return xxh64(p, stop, limit, seed)
    q = scratch
    while p < stop:
        code, length = decode(p, stop)
        q = _encode(code + fold_of(code), q)
        p += length
    return xxh64(scratch, q, q, seed)


@inlined
def _encode(code: Int, q: Int) -> Int:
    """Write a character at address `q`; returns the address after it."""
    if code < 0x80:
        store_byte(q, code)
        return q + 1
    if code < 0x800:
        store_byte(q, 0xC0 | code >> 6)
        store_byte(q + 1, 0x80 | code & 0x3F)
        return q + 2
    if code < 0x10000:
        store_byte(q, 0xE0 | code >> 12)
        store_byte(q + 1, 0x80 | code >> 6 & 0x3F)
        store_byte(q + 2, 0x80 | code & 0x3F)
        return q + 3
    store_byte(q, 0xF0 | code >> 18)
    store_byte(q + 1, 0x80 | code >> 12 & 0x3F)
    store_byte(q + 2, 0x80 | code >> 6 & 0x3F)
    store_byte(q + 3, 0x80 | code & 0x3F)
    return q + 4


@kernel
def _hash_spans(data: Bytes, starts: Int64s, ends: Int64s, seed: np.uint64) -> npt.NDArray[np.uint64]:
    base, limit = address_of(data), address_of(data) + len(data)
    hashes = np.empty(len(starts), np.uint64)
    for row in range(len(starts)):
        hashes[row] = xxh64(base + starts[row], base + ends[row], limit, seed)
    return hashes
