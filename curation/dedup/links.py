"""Equal band keys become links between documents: candidates for near-duplicates.

A word of 64 bits holds a key in its high bits and a document's number in its low ones, so one sort of plain
numbers brings equal keys together with their documents in order. A bucket of k documents gives k - 1 links
from its smallest number to the others, a star, never k^2 pairs. A link is a proposal, never a verdict.

Cutting keys makes different ones equal now and then. Such a false link costs a check of two documents, but
many of them tie clusters together that have nothing in common. Two unrelated keys of which b bits are left
are equal with probability 2^-b, so n documents with k bands have about (n k)^2 / 2^(b + 1) false links.
For 16 bands, with 64 bits less those of the document's number, and with those of the hash range spared:

    documents   number     one range: bits, false links     64 ranges        1,024 ranges
    10^6        20 bits    44   7.3                         50   0.1         54   0.007
    10^8        27 bits    37   9.3e6 (9 per 100)           43   1.5e5       47   9,100
    10^9        30 bits    34   7.5e9 (7 per document)      40   1.2e8       44   7.3e6

So the keys of one hash range are shifted up by the bits that need not be told apart there (`window`), which
wins back as many low ones; `false_links` says what is left. Keep it below one for 100 documents: at 7 for each
document, one false cluster holds nearly all of the corpus.

Costs 8 to 21 ns a key to sort and 1 to 4 ns for the links; 16 bytes of memory a key while it is sorted, and then
8 and 8 a link.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from curation.errors import InputError, RunError
from curation.text.jit import kernel
from curation.text.memory import Int

__all__ = [
    "MAX_NUMBER_BITS",
    "Numbers",
    "Words",
    "bits_of",
    "false_links",
    "links_of_keys",
    "pack",
    "repack",
    "slice_of",
    "sort_words",
    "window",
]

Words: TypeAlias = npt.NDArray[np.uint64]
"""Keys in the high bits, numbers of documents in the low ones."""

Numbers: TypeAlias = npt.NDArray[np.uint32]
"""Numbers of documents, from 0."""

MAX_NUMBER_BITS = 32


def bits_of(n_documents: int) -> int:
    """Bits that the numbers of so many documents take: 0 to 32.

    Raises:
        InputError: more than 2^32 documents.
    """
    bits = max(n_documents - 1, 0).bit_length()
    if bits > MAX_NUMBER_BITS:
        raise InputError(
            f"near-duplicates are found among at most {1 << MAX_NUMBER_BITS:,} documents, not {n_documents:,}: "
            "divide the input into runs, and compare each with the earlier ones"
        )
    return bits


def false_links(n_documents: int, bands: int, key_bits: int) -> float:
    """Links to expect between documents of which no band is equal, when `key_bits` of each key are compared.

    `key_bits` is 64 less the bits of the numbers, plus the bits of the window.
    """
    n_keys = n_documents * bands
    return n_keys * max(n_keys - 1, 0) / 2 / 2.0**key_bits


def pack(keys: Words) -> Words:
    """The band keys of a file's documents with their positions in it, sorted: uint64[n * bands].

    Args:
        keys: uint64[n, bands]. Their low `bits_of(n)` bits are given up for the position.
    """
    positions = np.arange(len(keys), dtype=np.uint64)[:, None]
    words = (keys & ~_low(bits_of(len(keys))) | positions).reshape(-1)
    sort_words(words)
    return words


def slice_of(packed: Words, low: int, high: int, *, border_bits: int = 64 - MAX_NUMBER_BITS) -> Words:
    """The sorted words whose keys lie in the hash range [low, high) of 2^64: a view.

    Both borders are cut down to their `border_bits` leading bits, which every file has whatever its
    positions take. So equal keys of two files fall into the same range, and ranges that follow one another
    share nothing and leave nothing out. Some are empty if there are more ranges than borders.

    Args:
        border_bits: leading bits that decide about a range, where fewer than 32 bits make the key.
    """
    begin, end = (_border(value, border_bits) for value in (low, high))
    first = int(np.searchsorted(packed, np.uint64(begin))) if begin >> 64 == 0 else len(packed)
    last = int(np.searchsorted(packed, np.uint64(end))) if end >> 64 == 0 else len(packed)
    return packed[first:last]


def window(low: int, high: int, from_bits: int, to_bits: int) -> int:
    """Leading bits of a key that are not needed to tell the keys of [low, high), as `slice_of` cuts it, apart.

    A range no longer than 2^(64 - s) has no two numbers that agree in their low 64 - s bits, wherever it begins.

    Args:
        from_bits: bits of the positions in the file that has the most of them. Bits of a key that this file
            gave up must not be compared in others, or equal keys would differ.
        to_bits: bits of the numbers of all documents.
    """
    begin, end = (_border(value, 64 - MAX_NUMBER_BITS) for value in (low, high))
    common = 64 - (end - begin - 1).bit_length() if end > begin else 0
    return min(common, to_bits - from_bits)


def repack(
    packed: Words, from_bits: int, to_bits: int, base: int, *, within: int = 0, out: Words | None = None
) -> Words:
    """A file's words with the numbers of its documents among all, no longer in order: uint64[m].

    Args:
        packed: uint64[m], words of `pack`, or some of them.
        from_bits: bits of the positions in this file, `bits_of` its documents.
        to_bits: bits of all numbers. Each key loses `to_bits - from_bits - within` of its low bits.
        base: number of the file's first document.
        within: leading bits of the keys to give up instead, the `window` of the hash range: the same for all files.
        out: uint64[m] to write to, if it is there already.

    Raises:
        RunError: a document has a number of more than `to_bits` bits.
    """
    assert 0 <= from_bits <= to_bits <= MAX_NUMBER_BITS, (from_bits, to_bits)
    assert 0 <= within <= to_bits - from_bits, (within, from_bits, to_bits)
    out = np.empty(len(packed), np.uint64) if out is None else out
    assert out.dtype == packed.dtype == np.uint64
    assert len(out) == len(packed)
    seen = _repack(packed, _low(from_bits), _low(to_bits), np.uint64(base), np.uint64(within), out)
    if int(seen) >> to_bits:
        largest = int((packed & _low(from_bits)).max())
        raise RunError(
            f"document {largest} of a file that begins at number {base} needs more than the {to_bits} bits of all "
            "numbers: the signatures are damaged or of another run. Make them anew."
        )
    return out


def links_of_keys(words: Words, number_bits: int) -> tuple[Numbers, Numbers]:
    """Links between documents with equal keys: uint32[l] and uint32[l], the smallest of the bucket and another.

    A document that has a key twice counts once. Within a bucket no link comes twice, in several it may. The
    links are in order of (key, second document), so they depend on the set of words only.

    Args:
        words: uint64[m], keys above `number_bits` bits of the number. Sorted in place.
    """
    assert 0 <= number_bits <= MAX_NUMBER_BITS, number_bits
    sort_words(words)
    bits = np.uint64(number_bits)
    n_links = _count_links(words, bits)
    first, second = np.empty(n_links, np.uint32), np.empty(n_links, np.uint32)
    _fill_links(words, bits, _low(number_bits), first, second)
    return first, second


def sort_words(words: Words) -> None:
    """Sort in place, by radix: 8 to 21 ns a word, however the words are distributed, and 8 bytes for each.

    NumPy's sort is as fast where it takes its AVX2 path, but 4 to 5 times slower on AMD's processors with
    AVX-512 (NumPy 2.4.6), and which path it takes is not ours to choose.
    """
    _sort(words, np.empty_like(words))


def _low(bits: int) -> np.uint64:
    """Mask of the low bits."""
    return np.uint64((1 << bits) - 1)


def _border(value: int, bits: int) -> int:
    """A border from 0 to 2^64, cut down to its leading bits."""
    return value >> 64 - bits << 64 - bits


@kernel
def _repack(
    packed: Words, positions: np.uint64, numbers: np.uint64, base: np.uint64, shift: np.uint64, out: Words
) -> np.uint64:
    """Fill `out`. Returns the bitwise or of all numbers."""
    seen = np.uint64(0)
    for i in range(np.uint64(len(packed))):
        number = (packed[i] & positions) + base
        seen |= number
        out[i] = packed[i] << shift & ~numbers | number
    return seen


@kernel
def _count_links(words: Words, bits: np.uint64) -> Int:
    """Neighbours with equal keys and different numbers: as many as links, because the words are sorted."""
    n = np.int64(0)
    for i in range(np.uint64(1), np.uint64(len(words))):
        difference = words[i] ^ words[i - np.uint64(1)]
        n += (difference != np.uint64(0)) & (difference >> bits == np.uint64(0))
    return n


@kernel
def _fill_links(words: Words, bits: np.uint64, numbers: np.uint64, first: Numbers, second: Numbers) -> None:
    n = np.uint64(0)
    bucket: Int = np.uint64(0)  # where the bucket begins
    for i in range(np.uint64(1), np.uint64(len(words))):
        difference = words[i] ^ words[i - np.uint64(1)]
        if difference >> bits != np.uint64(0):
            bucket = i
        elif difference != np.uint64(0):
            first[n] = words[bucket] & numbers
            second[n] = words[i] & numbers
            n += np.uint64(1)


@kernel
def _sort(words: Words, spare: Words) -> None:
    """Radix sort by the eight bytes of a word, lowest first; a byte that all words share takes no pass."""
    n, n_bytes, bits, low = np.uint64(len(words)), np.uint64(8), np.uint64(8), np.uint64(255)
    places = np.zeros((8, 256), np.int64)
    for i in range(n):
        word = words[i]
        for byte in range(n_bytes):
            places[byte, word >> byte * bits & low] += 1
    in_spare = False
    for byte in range(n_bytes):
        place, most = np.int64(0), np.int64(0)
        for value in range(np.uint64(256)):
            count = places[byte, value]
            places[byte, value] = place
            place += count
            most = max(most, count)
        if most == len(words):
            continue
        source, target = (spare, words) if in_spare else (words, spare)
        for i in range(n):
            word = source[i]
            value = word >> byte * bits & low
            place = places[byte, value]
            target[np.uint64(place)] = word
            places[byte, value] = place + 1
        in_spare = not in_spare
    if in_spare:
        words[:] = spare
