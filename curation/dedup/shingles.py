"""Shingles: what of a document is compared with other documents.

A text is put into NFKC and simple case folding. Its words are runs of word characters (`\\w`: letters
and numbers of every script, `_`); everything else ends a word. A mark that NFKC does not join to a letter
is the last of its word: so Hindi and Thai are cut where `\\w` cuts them, and differ where only a vowel
does. A shingle is `size` words in a row. Where more than 30 % of the word characters are Han, kana, Hangul
or of another script that is cut by character, it is `size` word characters in a row instead, whatever stands
between them. A document of fewer than `size` units, but one, is one shingle; one without any has none.
Word and character shingles are never equal, so two copies on different sides of the 30 % are not found.

Values are 64-bit hashes with all bits mixed. A word is hashed as the LEB128 of its code points, eight
bytes at a time, which for ASCII are its bytes; a shingle is a polynomial of its units' hashes, mixed.
They are the same on every machine, and a test holds some fast, since signatures of them are kept.

A second of one core shingles 700 MB of English, 440 of Chinese, 420 of Russian; 20 to 80 MB of texts in
which letters and marks must be joined or put in order (NFD, Arabic with all vowels), since Python does
that.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curation.dedup.sets import Shingles
from curation.dedup.unit_hashes import absorb, ascii_words, end_word, go_on, ideographs, two_byte_letters
from curation.errors import ConfigError
from curation.text.decode import decode
from curation.text.jit import inlined, kernel
from curation.text.memory import Int, address_of, byte_at, bytes_in, count_bits
from curation.text.normal import (
    BREAK,
    KIND,
    MARK,
    POOL,
    SEVERAL,
    UNSPACED,
    WORD,
    folded,
    form_of,
    is_settled,
    normalise,
    order_of,
    parts,
    script_bit,
)
from curation.text.spans import Bytes, Int64s, bounds, buffers
from curation.text.tables import UNSPACED_SCRIPTS, Script

__all__ = ["BY_CHARACTER", "shingles", "shingles_at"]

Hashes: TypeAlias = npt.NDArray[np.uint64]


BY_CHARACTER = tuple(sorted(script.name.lower() for script in (*UNSPACED_SCRIPTS, Script.HANGUL, Script.OTHER)))
"""Scripts that can be cut by character: those written without blanks (`other`: rare ones, such as Tangut), and Hangul."""

UNSPACED_PERCENT = 30
"""A document with a larger share of unspaced scripts is cut by character."""

P3, P4 = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53)  # of MurmurHash3's finaliser
BASE = np.uint64(0x9FB21C651E98DF27)
"""Of the polynomial. It is 3 modulo 4, so that exchanged units change all bits but few."""
WORD_SEED, CHARACTER_SEED = np.uint64(0x2545F4914F6CDD1D), np.uint64(0x8CB92BA72F3D8DD7)

HAN = int(Script.HAN)

BEYOND = 72
"""Bytes that are read at once, in part beyond the 64 that are looked at."""


def shingles(text: pa.Array, size: int = 5, by_character: Iterable[str] = BY_CHARACTER) -> Shingles:
    """Every shingle of each text, in reading order; none for a text without a word character.

    text: string or large_string without nulls. by_character: the scripts that are cut by character.
    Raises InputError for any other text, ConfigError for size < 1.
    """
    data, offsets = buffers(text)
    return shingles_at(*bounds(data, offsets), size, by_character)


def shingles_at(
    data: Bytes, starts: Int64s, ends: Int64s, size: int, by_character: Iterable[str], room: Hashes | None = None
) -> Shingles:
    """Shingles of the texts data[starts[i]:ends[i]], as `shingles` has them.

    room: uint64, where the values are put if it is long enough (one for each byte of text is). They are good until
    the next call with the same room; fresh memory for each call would cost a fifth of its time.
    """
    if size < 1:
        raise ConfigError(f"a shingle has 1 unit or more, not {size}: set the shingle size to 5, as is usual")
    scripts = np.uint64(sum(1 << Script[name.upper()] for name in by_character))
    found, unsettled = _run(data, starts, ends, size, scripts, True, room)
    if len(unsettled) == 0:
        return found
    texts = [data[starts[row] : ends[row]].tobytes().decode("utf-8", "replace") for row in unsettled.tolist()]
    normal = bounds(*buffers(pa.array(map(normalise, texts), pa.large_string())))
    return _insert(found, _run(*normal, size, scripts, False, None)[0], unsettled)


def _run(
    data: Bytes, starts: Int64s, ends: Int64s, size: int, scripts: np.uint64, checked: bool, room: Hashes | None
) -> tuple[Shingles, Int64s]:
    """Shingles, and the rows of texts that have none yet, since they must be normalised before."""
    # No text has more units than bytes. Room that is not used is never touched, so costs no memory.
    most = int((ends - starts).sum())
    values = np.empty(most, np.uint64) if room is None or len(room) < most else room
    borders = np.zeros(len(starts) + 1, np.int64)
    settled = np.empty(len(starts), np.bool_)
    _fill(data, starts, ends, size, scripts, checked, values, borders, settled)
    if values is room:
        values = values[: borders[-1]]
    else:
        values.resize(borders[-1], refcheck=False)
    return Shingles(values, borders), np.flatnonzero(~settled)


def _insert(found: Shingles, second: Shingles, rows: Int64s) -> Shingles:
    """`found` with the shingles of `second` in the given rows, which have none."""
    lengths = np.diff(found.offsets)
    lengths[rows] = np.diff(second.offsets)
    pieces, at = [], 0
    for i, row in enumerate(rows.tolist()):
        stop = found.offsets[row]
        pieces += [found.values[at:stop], second.values[second.offsets[i] : second.offsets[i + 1]]]
        at = stop
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return Shingles(np.concatenate([*pieces, found.values[at:]]), offsets)


@inlined
def _mix(h: Int) -> Int:
    h = (h ^ h >> np.uint64(33)) * P3
    h = (h ^ h >> np.uint64(33)) * P4
    return h ^ h >> np.uint64(33)


@inlined
def _next(p: Int, end: Int, at: Int, stop: Int) -> tuple[Int, Int, Int]:
    """The next character, of POOL[at:stop] or else at address `p`, and new p and at."""
    if at < stop:
        return POOL[np.uint64(at)], p, at + 1
    if byte_at(p) < 0x80:
        return byte_at(p), p + 1, at
    code, length = decode(p, end)
    return code, p + length, at


@inlined
def _words(p: Int, end: Int, limit: Int, scripts: Int, checked: bool, out: Hashes, n: Int) -> tuple[Int, Int, Int]:
    """Hashes of the words from address `p` to `end`, to out[n:].

    Returns where they end in `out`, how many word characters there are, and how many of the scripts in the mask.
    The first is -1 if the text must be normalised before; not so unless `checked`.
    """
    letters, unspaced = 0, 0
    is_open, is_marked, word = False, False, (np.uint64(0), np.uint64(0), 0)
    starter, order = 0, 0  # form of the last character of order 0, order of the last one
    at, stop = 0, 0  # characters to come from POOL
    while p < end or at < stop:
        if at >= stop and byte_at(p) < 0x80 and not is_open and p + BEYOND <= limit:
            went, n, found = ascii_words(p, end, out, n)
            if went > p:
                p, letters = went, letters + found
                starter, order = form_of(byte_at(p - 1)), 0
                continue
        if at >= stop and not is_marked:
            went, word = two_byte_letters(p, end, word)
            if went > p:
                letters += went - p >> 1
                p, is_open = went, True
                starter, order = form_of((byte_at(p - 2) & 0x1F) << 6 | byte_at(p - 1) & 0x3F), 0
                continue
        code, p, at = _next(p, end, at, stop)
        form = form_of(code)
        if checked and not is_settled(form, starter, order):
            return -1, letters, unspaced
        if form & SEVERAL:
            at, stop = parts(form)
            continue
        order = order_of(form)
        starter = form if order == 0 else starter
        kind = form & KIND
        if is_open and (kind == BREAK or (is_marked and kind != MARK)):
            out[np.uint64(n)] = end_word(word)
            n, is_open, word = n + 1, False, (np.uint64(0), np.uint64(0), 0)
        if kind in (WORD, UNSPACED) or (kind == MARK and is_open):
            letters, unspaced = letters + (kind != MARK), unspaced + script_bit(form, scripts)
            is_open, is_marked, word = True, kind == MARK, go_on(word, folded(code, form))
    if is_open:
        out[np.uint64(n)] = end_word(word)
        n += 1
    return n, letters, unspaced


@inlined
def _characters(p: Int, end: Int, scripts: Int, checked: bool, out: Hashes, n: Int) -> tuple[Int, Int, Int]:
    """Hashes of the word characters from address `p` to `end`, to out[n:]. Returns what `_words` does."""
    letters, unspaced = 0, 0
    han = np.int64(scripts >> np.uint64(HAN) & np.uint64(1))
    is_open = False
    starter, order = 0, 0
    at, stop = 0, 0
    while p < end or at < stop:
        if at >= stop:
            went, n = ideographs(p, end, CHARACTER_SEED, out, n)
            if went > p:
                letters, unspaced = letters + (went - p) // 3, unspaced + (went - p) // 3 * han
                p, starter, order, is_open = went, 0, 0, True
                continue
        code, p, at = _next(p, end, at, stop)
        form = form_of(code)
        if checked and not is_settled(form, starter, order):
            return -1, letters, unspaced
        if form & SEVERAL:
            at, stop = parts(form)
            continue
        order = order_of(form)
        starter = form if order == 0 else starter
        kind = form & KIND
        if kind == MARK and is_open:
            out[np.uint64(n - 1)] = absorb(out[np.uint64(n - 1)], np.uint64(folded(code, form)))
        elif kind in (WORD, UNSPACED):
            out[np.uint64(n)] = absorb(CHARACTER_SEED, np.uint64(folded(code, form)))
            letters, unspaced = letters + 1, unspaced + script_bit(form, scripts)
            n, is_open = n + 1, True
        else:
            is_open = False
    return n, letters, unspaced


@inlined
def _looks_unspaced(p: Int, end: Int) -> Int:
    """A guess, from 64 bytes in the middle, whether a text is cut by character: a wrong one costs time only."""
    middle = p + (end - p - 64 >> 1)
    return middle >= p and count_bits(bytes_in(middle, 0, 0xE3, 11)) > 8


@inlined
def _combine(out: Hashes, first: Int, stop: Int, size: Int, seed: Int) -> Int:
    """Units out[first:stop] to shingles, in place; returns where these end."""
    if first == stop:
        return first
    width = min(size, stop - first)
    top, total = np.uint64(1), np.uint64(0)
    for i in range(first, first + width):
        top *= BASE
        total = total * BASE + out[np.uint64(i)]
    for i in range(first, stop - width):
        leaves, comes = out[np.uint64(i)], out[np.uint64(i + width)]
        out[np.uint64(i)] = _mix(total ^ seed)
        total = total * BASE + comes - leaves * top
    out[np.uint64(stop - width)] = _mix(total ^ seed)
    return stop - width + 1


@kernel
def _fill(
    data: Bytes,
    starts: Int64s,
    ends: Int64s,
    size: int,
    scripts: np.uint64,
    checked: bool,
    out: Hashes,
    offsets: Int64s,
    settled: npt.NDArray[np.bool_],
) -> None:
    base, limit = address_of(data), address_of(data) + len(data)
    n = 0
    for row in range(len(starts)):
        p, end = base + starts[row], base + ends[row]
        by_character = _looks_unspaced(p, end)
        stop, letters, unspaced = 0, 0, 0
        for _ in range(2):  # as guessed, and, if that was wrong, the other way
            if by_character:
                stop, letters, unspaced = _characters(p, end, scripts, checked, out, n)
            else:
                stop, letters, unspaced = _words(p, end, limit, scripts, checked, out, n)
            is_unspaced = 100 * unspaced > UNSPACED_PERCENT * letters
            if stop < 0 or is_unspaced == by_character:
                break
            by_character = is_unspaced
        settled[row] = stop >= 0
        if stop >= 0:
            n = _combine(out, n, stop, size, CHARACTER_SEED if by_character else WORD_SEED)
        offsets[row + 1] = n
