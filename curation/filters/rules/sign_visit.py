"""One visit to the characters of each line: counts by sign, ends of sentences, links, runs, and what kind of line it is.

ASCII is taken 64 bytes at a time, one bit a byte; anything else by character.
"""

from __future__ import annotations

from enum import IntEnum, IntFlag
from typing import Any

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types

from curation.filters.rules.links import is_ascii_word, link_at
from curation.filters.rules.sign_table import (
    BRACKET,
    BULLET,
    CLOSER,
    EMOJI,
    END,
    WATCHED,
    WIDE_END,
    WIDTH,
    WIDTH_UNIT,
    WIDTHS,
    Sign,
    sign_at,
    sign_of,
)
from curation.text.characters import chars_in
from curation.text.decode import ascii_run, decode, low_bits
from curation.text.jit import inlined, kernel
from curation.text.memory import (
    BLOCK,
    WORD,
    Int,
    address_of,
    byte_at,
    bytes_in,
    count_bits,
    instruction,
    trailing_zeros,
)
from curation.text.spans import Bytes, Int64s

__all__ = ["Count", "Line", "visit_signs"]


class Count(IntEnum):
    """Columns of the counts of a document. The first eight are characters in lines, by `Sign`."""

    BLANK = 0
    LETTER = 1
    UPPER = 2
    LOWER = 3
    MARK = 4
    NUMBER = 5
    COMMON = 6
    OTHER = 7
    BRACKET = 8
    EMOJI = 9
    HASH = 10
    CURLY = 11
    ELLIPSIS = 12
    LINK = 13
    LONGEST_RUN = 14
    SENTENCE = 15
    UNENDED = 16
    ALL = 17


class Line(IntFlag):
    """What a line that is not blank may be."""

    ENDED = 1
    """Its last sign, closing quotes and brackets apart, ends a sentence."""
    ELLIPSIS = 2
    """Its last signs, closing quotes and brackets apart, are an ellipsis."""
    BULLET = 4
    """It begins with a bullet."""
    UPPER = 8
    """More than half of its characters are upper case letters."""
    SHORT = 16
    """It says less than `SHORT_WIDTH` characters of English."""


SHORT_WIDTH = 30 * WIDTH_UNIT

N_COUNTS = len(Count)
N_SIGNS = len(Sign)
BLANK, LETTER, UPPER, LOWER = int(Sign.BLANK), int(Sign.LETTER), int(Sign.UPPER), int(Sign.LOWER)
MARK, NUMBER, COMMON, OTHER = int(Sign.MARK), int(Sign.NUMBER), int(Sign.COMMON), int(Sign.OTHER)
N_BRACKETS, N_EMOJI, N_HASHES, N_CURLY = int(Count.BRACKET), int(Count.EMOJI), int(Count.HASH), int(Count.CURLY)
N_ELLIPSES, N_LINK_CHARS, LONGEST = int(Count.ELLIPSIS), int(Count.LINK), int(Count.LONGEST_RUN)
N_SENTENCES, N_UNENDED, N_ALL = int(Count.SENTENCE), int(Count.UNENDED), int(Count.ALL)
ENDED, ELLIPSIS, BULLETED = int(Line.ENDED), int(Line.ELLIPSIS), int(Line.BULLET)
IN_CAPITALS, SHORT = int(Line.UPPER), int(Line.SHORT)
WIDTH_BITS = WIDTH.bit_length() - 1
SPECIAL = BRACKET | EMOJI | WATCHED | END
SOLID = 1 << LETTER | 1 << UPPER | 1 << LOWER | 1 << NUMBER
"""The signs of which a sentence has one at least."""
FEW = 4
"""ASCII runs shorter than this are cheaper by character than as a block."""
TOP = np.uint64(1 << 63)
ONE = np.uint64(1)


@instruction
def same_as_before(typing_context: Any, address: Any) -> Any:
    """Which of the 64 bytes from an address on equal the byte before them: uint64. Reads one byte before the address."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        def block(place: Any) -> Any:
            loaded = builder.load(builder.inttoptr(place, BLOCK.as_pointer()))
            loaded.align = 1
            return loaded

        equal = builder.icmp_unsigned("==", block(args[0]), block(builder.sub(args[0], ir.Constant(WORD, 1))))
        return builder.bitcast(equal, WORD)

    return types.uint64(types.int64), generate


@inlined
def _ends_here(q: Int, end: Int, wide: Int) -> Int:
    """Whether the end mark before address `q` ends a sentence: after closers comes a blank, or nothing, or it is wide."""
    while q < end:
        sign, length = sign_at(q, end)
        if sign & END:
            return False  # the next mark decides
        if sign & CLOSER == 0:
            return wide or sign & 7 == BLANK
        q += length
    return True


@inlined
def _runs(same: Int, run: Int, length: Int, longest: Int) -> tuple[Int, Int]:
    """From the bytes that equal the one before: the length of the run that is open after them, and the longest so far."""
    if same == 0:
        return 1, longest
    if same & ONE:
        longest = max(longest, length + trailing_zeros(~same))
    left, inside = same, 1
    while left != 0:
        left &= left >> ONE
        inside += 1
    longest = max(longest, inside)
    same <<= np.uint64(64 - run)
    open_run = 0
    while open_run < run and same & TOP:
        same <<= ONE
        open_run += 1
    return length + run if open_run == run else open_run + 1, longest


@inlined
def _ascii_ends(p: Int, marks: Int, solid: Int, begin: Int, end: Int, fresh: Int, counts: Int64s) -> Int:
    """Count the ends of sentences and the ellipses among ASCII marks; returns whether a sentence is open after them."""
    while marks != 0:
        bit = marks & (~marks + ONE)
        q = p + trailing_zeros(marks)
        marks ^= bit
        following = byte_at(q + 1) if q + 1 < end else 0x20
        if byte_at(q) == 0x2E and following != 0x2E and q - 2 >= begin:
            counts[N_ELLIPSES] += byte_at(q - 1) == 0x2E and byte_at(q - 2) == 0x2E
        if is_ascii_word(following):
            continue
        if (fresh != 0 or solid & (bit - ONE) != 0) and _ends_here(q + 1, end, False):
            counts[N_SENTENCES] += 1
            fresh = 0
            solid &= ~(bit - ONE)
    return fresh != 0 or solid != 0


@inlined
def _ascii_signs(p: Int, mask: Int, counts: Int64s) -> tuple[Int, Int, Int]:
    """Count up to 64 ASCII signs; returns which are letters or digits, which are blank, and which may begin a link."""
    letters = bytes_in(p, 0x20, 0x61, 26) & mask
    digits = bytes_in(p, 0, 0x30, 10) & mask
    blanks = (bytes_in(p, 0, 0x00, 0x21) | bytes_in(p, 0, 0x7F, 1)) & mask
    common = bytes_in(p, 0, 0x21, 2) | bytes_in(p, 0, 0x25, 5) | bytes_in(p, 0, 0x2C, 4) | bytes_in(p, 0, 0x3A, 2)
    common = (common | bytes_in(p, 0, 0x3F, 1)) & mask
    others = mask & ~(letters | digits | blanks | common)
    upper = count_bits(bytes_in(p, 0, 0x41, 26) & mask)
    counts[UPPER] += upper
    counts[LOWER] += count_bits(letters) - upper
    counts[NUMBER] += count_bits(digits)
    counts[BLANK] += count_bits(blanks)
    counts[COMMON] += count_bits(common)
    brackets = bytes_in(p, 0, 0x28, 2) & mask
    if others != 0:
        curly = (bytes_in(p, 0, 0x7B, 1) | bytes_in(p, 0, 0x7D, 1)) & mask
        brackets |= curly | (bytes_in(p, 0, 0x5B, 1) | bytes_in(p, 0, 0x5D, 1)) & mask
        counts[OTHER] += count_bits(others)
        counts[N_CURLY] += count_bits(curly)
        counts[N_HASHES] += count_bits(bytes_in(p, 0, 0x23, 1) & mask)
    counts[N_BRACKETS] += count_bits(brackets)
    ws = bytes_in(p, 0x20, 0x77, 1)
    links = (ws & (ws >> ONE | TOP) | bytes_in(p, 0, 0x3A, 1)) & mask
    return letters | digits, blanks, links


@inlined
def _special(p: Int, length: Int, code: Int, sign: Int, same: Int, end: Int, fresh: Int, counts: Int64s) -> Int:
    """Count a character that has any bit beside its sign; returns whether a sentence is open after it."""
    if sign & BRACKET:
        counts[N_BRACKETS] += 1
    if sign & EMOJI:
        counts[N_EMOJI] += 1
    if sign & WATCHED:
        if code == 0x23:
            counts[N_HASHES] += 1
        elif code in (0x7B, 0x7D):
            counts[N_CURLY] += 1
        elif code in (0x2E, 0x3002, 0x30FB):
            if same >= 3 and (p + length == end or decode(p + length, end)[0] != code):
                counts[N_ELLIPSES] += 1
        elif code > 0x80 and (p + length == end or decode(p + length, end)[0] != code):
            counts[N_ELLIPSES] += 1
    if sign & END and fresh != 0 and _ends_here(p + length, end, sign & WIDE_END != 0):
        counts[N_SENTENCES] += 1
        return 0
    return fresh


@inlined
def _add(packed: Int, counts: Int64s) -> None:
    """Add the eight counts of 8 bits each."""
    for sign in range(8):
        counts[sign] += np.int64(packed >> np.uint64(8 * sign) & np.uint64(0xFF))


@inlined
def _line(begin: Int, end: Int, limit: Int, is_open: Int, counts: Int64s) -> tuple[Int, Int, Int]:
    """Count the characters of a line; returns how many, how wide, and whether a sentence is open after them."""
    p, seen, few = begin, begin, begin + 1
    before, same, n, width, longest = -1, 0, 0, 0, 1
    packed, n_packed, fresh = np.uint64(0), 0, np.int64(is_open)
    while p < end:
        if p >= few and byte_at(p) < 0x80:
            run = ascii_run(p, end, limit) if p + 1 < end and byte_at(p + 1) < 0x80 else 1
            if run >= FEW:
                mask = low_bits(run)
                solid, blanks, links = _ascii_signs(p, mask, counts)
                same, longest = _runs(same_as_before(p) & mask & ~blanks, run, same, longest)
                marks = (bytes_in(p, 0, 0x2E, 1) | bytes_in(p, 0, 0x21, 1) | bytes_in(p, 0, 0x3F, 1)) & mask
                fresh = np.int64(_ascii_ends(p, marks, solid, begin, end, fresh, counts))
                while links != 0:
                    seen, n_chars = link_at(p + trailing_zeros(links), begin, end, seen)
                    counts[N_LINK_CHARS] += n_chars
                    links &= links - ONE
                p += run
                n += run
                width += run * WIDTH_UNIT
                before = byte_at(p - 1)
                continue
            few = p + run
        code, length = decode(p, end)
        sign = sign_of(code)
        packed += ONE << np.uint64((sign & 7) << 3)
        n_packed += 1
        same = same + 1 if code == before else 1
        before = code
        longest = max(longest, same if sign & 7 != BLANK else 1)
        fresh |= SOLID >> (sign & 7) & 1
        if sign & SPECIAL:
            fresh = np.int64(_special(p, length, code, sign, same, end, fresh, counts))
            if sign & WATCHED and (code == 0x3A or code | 0x20 == 0x77):
                seen, n_chars = link_at(p, begin, end, seen)
                counts[N_LINK_CHARS] += n_chars
        if n_packed == 255:
            _add(packed, counts)
            packed, n_packed = np.uint64(0), 0
        width += WIDTHS[np.uint64(sign >> WIDTH_BITS)]
        p += length
        n += 1
    _add(packed, counts)
    counts[LONGEST] = max(counts[LONGEST], longest)
    return n, width, fresh != 0


@inlined
def _char_before(p: Int, begin: Int) -> Int:
    """Address of the character that ends at `p` > `begin`."""
    q = p - 1
    while q > begin and q > p - 4 and byte_at(q) & 0xC0 == 0x80:
        q -= 1
    return q


@inlined
def _is_quoted(begin: Int, end: Int) -> Int:
    """Whether a line ends in 」 or 』: what is said in Japanese ends so, without a full stop."""
    code = decode(_char_before(end, begin), end)[0]
    return code in (0x300D, 0x300F)


@inlined
def _ending(begin: Int, end: Int) -> Int:
    """ENDED and ELLIPSIS of a line, by its last character that closes nothing; and ENDED of one that a quotation ends."""
    quoted = _is_quoted(begin, end)
    while end > begin:
        q = _char_before(end, begin)
        code = decode(q, end)[0]
        sign = sign_of(code)
        if sign & CLOSER == 0:
            break
        end = q
    if end == begin:
        return 0
    flags = ENDED if sign & END or quoted else 0
    if sign & WATCHED:
        if code in (0x2E, 0x3002, 0x30FB):
            size = end - q
            for i in range(1, 3):
                if q - i * size < begin or decode(q - i * size, end)[0] != code:
                    return flags
            return flags | ELLIPSIS
        if code > 0x80:
            return flags | ELLIPSIS
    return flags


@inlined
def _bullet(begin: Int, end: Int) -> Int:
    code, length = decode(begin, end)
    sign = sign_of(code)
    if sign & BULLET == 0:
        return 0
    if code in (0x2A, 0x2B, 0x2D, 0x2013) and begin + length < end and sign_at(begin + length, end)[0] & 7 != BLANK:
        return 0
    return BULLETED


@kernel
def visit_signs(
    data: Bytes,
    offsets: Int64s,
    starts: Int64s,
    ends: Int64s,
    of_document: Int64s,
    counts: Int64s,
    line_chars: npt.NDArray[np.int32],
    line_sentences: npt.NDArray[np.int32],
    line_flags: npt.NDArray[np.uint8],
) -> None:
    """Fill the counts, int64[n, N_COUNTS], zeroed, and the facts of each line; `of_document` are the offsets of the lines."""
    base, limit = address_of(data), address_of(data) + len(data)
    for row in range(len(offsets) - 1):
        mine = counts[row]
        fresh = False
        mine[N_ALL] = chars_in(base + offsets[row], base + offsets[row + 1], limit)
        for line in range(of_document[row], of_document[row + 1]):
            begin, end = base + starts[line], base + ends[line]
            if fresh and (begin == end or sign_at(begin, end)[0] & 7 != LOWER):
                mine[N_UNENDED] += 1
                fresh = False
            if begin == end:
                line_chars[line], line_sentences[line], line_flags[line] = 0, 0, 0
                continue
            sentences, upper = mine[N_SENTENCES], mine[UPPER]
            n, width, fresh = _line(begin, end, limit, fresh, mine)
            if fresh and _is_quoted(begin, end):
                mine[N_SENTENCES] += 1
                fresh = False
            flags = _ending(begin, end) | _bullet(begin, end) | (SHORT if width <= SHORT_WIDTH else 0)
            line_flags[line] = flags | (IN_CAPITALS if (mine[UPPER] - upper) * 2 > n else 0)
            line_chars[line] = n
            line_sentences[line] = mine[N_SENTENCES] - sentences
        mine[N_UNENDED] += fresh
