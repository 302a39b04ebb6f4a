"""Hashes of the words and characters that shingles are made of, while a text is read: functions that its kernel inlines.

A word is hashed as the LEB128 of its code points, eight bytes at a time, which for ASCII are its bytes. So a word
can be hashed by 64 bits of ASCII, by letters of two bytes, or by any character, and the hash is the same.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from curation.text.decode import low_bits
from curation.text.jit import inlined
from curation.text.memory import Int, byte_at, bytes_in, count_bits, load32, load64, trailing_zeros
from curation.text.normal import FORM_BLOCKS, FORM_INDEX, KIND, SEVERAL, UNSETTLED, VALUE_AT, WORD

__all__ = ["absorb", "ascii_words", "end_word", "go_on", "ideographs", "two_byte_letters"]

Hashes = npt.NDArray[np.uint64]

P1, P2 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)


@inlined
def absorb(h: Int, block: Int) -> Int:
    h = (h ^ block) * P1
    return h ^ h >> np.uint64(32)


@inlined
def _mix_word(h: Int) -> Int:
    h *= P2
    return h ^ h >> np.uint64(29)


@inlined
def _leb128(code: Int) -> tuple[Int, Int]:
    """A code point as LEB128, and how many bits that has."""
    if code < 0x80:
        return np.uint64(code), 8
    if code < 0x4000:
        return np.uint64(code & 0x7F | 0x80 | code >> 7 << 8), 16
    return np.uint64(code & 0x7F | 0x80 | (code >> 7 & 0x7F | 0x80) << 8 | code >> 14 << 16), 24


@inlined
def go_on(word: tuple[Int, Int, Int], code: Int) -> tuple[Int, Int, Int]:
    """One more character of a word: hash of its full blocks, the block that is not full, and the bits in that."""
    h, block, bits = word
    coded, width = _leb128(code)
    block |= coded << np.uint64(bits)
    bits += width
    if bits >= 64:
        h = absorb(h, block)
        bits -= 64
        block = coded >> np.uint64(width - bits)
    return h, block, bits


@inlined
def end_word(word: tuple[Int, Int, Int]) -> Int:
    """Hash of a word."""
    h, block, bits = word
    return _mix_word(absorb(h, block) if bits > 0 else h)


@inlined
def _lower(word: Int) -> Int:
    """ASCII capitals of 8 bytes to small letters. Wrong where a byte is not ASCII."""
    above_a, above_z = word + np.uint64(0x3F3F3F3F3F3F3F3F), word + np.uint64(0x2525252525252525)
    return word | (above_a & ~above_z & np.uint64(0x8080808080808080)) >> np.uint64(2)


@inlined
def _ascii_word(p: Int, stop: Int) -> Int:
    """Hash of a word of ASCII from address `p` to `stop`. 7 bytes beyond it may be read."""
    h = np.uint64(0)
    while stop - p > 8:
        h = absorb(h, _lower(load64(p)))
        p += 8
    return _mix_word(absorb(h, _lower(load64(p) & low_bits(8 * (stop - p)))))


@inlined
def ascii_words(p: Int, end: Int, out: Hashes, n: Int) -> tuple[Int, Int, Int]:
    """Words of the 64 ASCII bytes from `p` on, or as many as there are: where to go on, new n, word characters.

    Where a word goes on beyond, it is left, and reading goes on at its start: at `p` for nothing done.
    """
    one = np.uint64(1)
    run = min(trailing_zeros(bytes_in(p, 0, 0x80, 0x80)), end - p)
    solid = bytes_in(p, 0x20, 0x61, 26) | bytes_in(p, 0, 0x30, 10) | bytes_in(p, 0, 0x5F, 1)
    solid &= low_bits(run)
    starts, stops = solid & ~(solid << one), solid << one & ~solid
    if p + run < end:
        stops &= low_bits(run)  # what follows decides whether a word ends here
    while stops != 0:
        start, stop = trailing_zeros(starts), trailing_zeros(stops)
        out[np.uint64(n)] = _ascii_word(p + start, p + stop)
        n += 1
        starts &= starts - one
        stops &= stops - one
    if starts != 0:
        run = trailing_zeros(starts)
        solid &= (one << np.uint64(run)) - one
    return p + run, n, count_bits(solid)


def _plain_letters() -> npt.NDArray[np.uint64]:
    """uint64[0x800]: LEB128, of 16 bits, of the folded form of letters that no neighbour changes; 0 for all others."""
    codes = np.arange(0x800)
    forms = FORM_BLOCKS[FORM_INDEX[codes >> 6].astype(np.int64) << 6 | codes & 63]
    plain = codes + (forms >> VALUE_AT)
    coded = plain & 0x7F | 0x80 | plain >> 7 << 8
    is_plain = (forms & (KIND | SEVERAL | UNSETTLED) == WORD) & (plain >= 0x80) & (codes >= 0x80) & (plain < 0x4000)
    return np.where(is_plain, coded, 0).astype(np.uint64)


PLAIN_LETTERS = _plain_letters()


@inlined
def two_byte_letters(p: Int, end: Int, word: tuple[Int, Int, Int]) -> tuple[Int, tuple[Int, Int, Int]]:
    """Letters of two bytes from `p` on, as Cyrillic, Greek and Arabic are made of: where to go on, and the word."""
    h, block, bits = word
    while p + 2 <= end:
        lead, second = byte_at(p), byte_at(p + 1)
        if lead < 0xC2 or lead > 0xDF or second & 0xC0 != 0x80:
            break
        coded = PLAIN_LETTERS[np.uint64((lead & 0x1F) << 6 | second & 0x3F)]
        if coded == 0:
            break
        block |= coded << np.uint64(bits)
        bits += 16
        if bits >= 64:
            h = absorb(h, block)
            bits -= 64
            block = coded >> np.uint64(16 - bits)
        p += 2
    return p, (h, block, bits)


@inlined
def ideographs(p: Int, end: Int, seed: Int, out: Hashes, n: Int) -> tuple[Int, Int]:
    """Hashes of the ideographs U+4E00 to U+9FFF from `p` on, which no form changes: where to go on, new n."""
    while p + 4 <= end:
        word = load32(p)
        code = (word & 0x0F) << 12 | word >> 2 & 0xFC0 | word >> 16 & 0x3F
        if word & 0xC0C0F0 != 0x8080E0 or code < 0x4E00 or code > 0x9FFF:
            break
        out[np.uint64(n)] = absorb(seed, np.uint64(code))
        n += 1
        p += 3
    return p, n
