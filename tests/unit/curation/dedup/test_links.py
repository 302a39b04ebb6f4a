"""Links: packed keys, hash ranges, the bits that are given up, stars, and how many links are false."""

from __future__ import annotations

from collections import defaultdict
from itertools import combinations, pairwise

import numpy as np
import numpy.typing as npt
import pytest

from curation.dedup.links import (
    Words,
    bits_of,
    false_links,
    links_of_keys,
    pack,
    repack,
    slice_of,
    sort_words,
    window,
)
from curation.errors import InputError, RunError


def words(*pairs: tuple[int, int], bits: int) -> Words:
    return np.array([key << bits | number for key, number in pairs], np.uint64)


def as_pairs(links: tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32]]) -> list[tuple[int, int]]:
    first, second = links
    assert first.dtype == second.dtype == np.uint32
    return list(zip(first.tolist(), second.tolist(), strict=True))


def keys_at_random(n: int, bands: int, seed: int = 0) -> Words:
    return np.random.default_rng(seed).integers(0, 2**64, (n, bands), dtype=np.uint64)


@pytest.mark.parametrize(("n", "bits"), [(0, 0), (1, 0), (2, 1), (3, 2), (256, 8), (257, 9), (10**9, 30), (2**32, 32)])
def test_bits_of_numbers(n: int, bits: int) -> None:
    """Numbers 0 to n - 1 take the bits of n - 1."""
    assert bits_of(n) == bits


def test_too_many_documents() -> None:
    """Numbers of more than 32 bits are refused, not cut."""
    with pytest.raises(InputError, match=r"at most 4,294,967,296 documents, not 4,294,967,297"):
        bits_of(2**32 + 1)


BUCKETS: list[tuple[str, list[tuple[int, int]], list[tuple[int, int]]]] = [
    ("nothing", [], []),
    ("one key", [(5, 1)], []),
    ("different keys", [(5, 1), (6, 1), (7, 2)], []),
    ("a pair, smallest first", [(5, 3), (5, 1)], [(1, 3)]),
    ("a star, never all pairs", [(5, 4), (5, 2), (5, 7), (5, 3)], [(2, 3), (2, 4), (2, 7)]),
    ("a document twice in a bucket", [(5, 2), (5, 2)], []),
    ("the centre twice", [(5, 2), (5, 3), (5, 2)], [(2, 3)]),
    ("another one twice", [(5, 3), (5, 2), (5, 3)], [(2, 3)]),
    ("two buckets in order of key", [(9, 1), (2, 3), (9, 0), (2, 2)], [(2, 3), (0, 1)]),
    ("the same link from two buckets", [(2, 0), (2, 1), (9, 0), (9, 1)], [(0, 1), (0, 1)]),
    ("keys and numbers at their ends", [(2**61 - 1, 7), (0, 7), (2**61 - 1, 0), (0, 0)], [(0, 7), (0, 7)]),
]


@pytest.mark.parametrize(("name", "pairs", "expected"), BUCKETS, ids=[name for name, _, _ in BUCKETS])
def test_a_bucket_is_a_star(name: str, pairs: list[tuple[int, int]], expected: list[tuple[int, int]]) -> None:
    """k documents with one key give k - 1 links from the smallest number, each once, none to itself."""
    assert as_pairs(links_of_keys(words(*pairs, bits=3), 3)) == expected


@pytest.mark.parametrize("number_bits", [0, 1, 31, 32])
def test_any_width_of_numbers(number_bits: int) -> None:
    """Only the key part is compared, whatever it leaves to the number: none at 0 bits, half at 32."""
    last = (1 << number_bits) - 1
    found = links_of_keys(words((7, last), (7, 0), (8, last), (9, 0), bits=number_bits), number_bits)

    assert as_pairs(found) == ([(0, last)] if number_bits else [])


def test_a_hot_bucket_is_not_quadratic() -> None:
    """A key of 300,000 documents gives 299,999 links."""
    first, second = links_of_keys(np.arange(300_000, dtype=np.uint64)[::-1].copy(), 20)

    assert not first.any()
    assert np.array_equal(second, np.arange(1, 300_000))


@pytest.mark.parametrize("n", [0, 1, 2, 3, 5, 100])
@pytest.mark.parametrize("bands", [1, 16])
def test_packing_keeps_high_bits_and_position(n: int, bands: int) -> None:
    """Each key is there once with its document's position in its low bits; the words are sorted."""
    keys = keys_at_random(n, bands)
    bits = bits_of(n)
    packed = pack(keys)

    expected = sorted(key >> bits << bits | i for i, row in enumerate(keys.tolist()) for key in row)
    assert packed.dtype == np.uint64
    assert packed.tolist() == expected


def test_packing_leaves_the_keys_alone() -> None:
    """The keys are the caller's, in whatever order they lie in memory."""
    keys = keys_at_random(50, 4)
    before = keys.copy()
    packed = pack(keys)

    assert np.array_equal(keys, before)
    assert np.array_equal(packed, pack(np.asfortranarray(keys)))
    assert not np.shares_memory(packed, keys)


@pytest.mark.parametrize("n_items", [1, 2, 3, 7, 64, 1000])
def test_hash_ranges_part_every_file_alike(n_items: int) -> None:
    """Ranges that follow one another share nothing, leave nothing out, and part no key from its equal."""
    keys = keys_at_random(40, 2)
    borders = [(item << 64) // n_items for item in range(n_items + 1)]
    # Keys around every border, where files of different widths could disagree.
    near = [min(max(border + d, 0), 2**64 - 1) for border in borders[:100] for d in (-(2**32), -1, 0, 1, 2**31, 2**32)]
    keys = np.concatenate([keys, np.array(near, np.uint64).reshape(-1, 2)])
    item_of: dict[int, set[int]] = defaultdict(set)
    for n_more in (0, 5_000, 300_000):  # the same keys in files whose positions take 8, 13 and 19 bits
        packed = pack(np.concatenate([keys, np.full((n_more, 2), 2**63, np.uint64)]))
        parts = [slice_of(packed, low, high) for low, high in pairwise(borders)]

        assert np.array_equal(np.concatenate(parts), packed)
        for item, part in enumerate(parts):
            for top in (part >> np.uint64(32)).tolist():
                item_of[top].add(item)
    assert {len(items) for items in item_of.values()} == {1}


def test_a_slice_is_a_view_of_read_only_memory_too() -> None:
    """Files are memory-mapped: slicing copies nothing and needs no write access."""
    packed = pack(keys_at_random(100, 2))
    packed.flags.writeable = False
    part = slice_of(packed, 1 << 62, 1 << 63)

    assert np.shares_memory(part, packed)
    assert ((part >> np.uint64(62)) == 1).all()
    assert len(repack(part, 7, 10, 500)) == len(part)


@pytest.mark.parametrize(
    ("low", "high", "n"), [(0, 0, 0), (0, 1 << 64, 4), (1 << 64, 1 << 64, 0), (0, 1 << 63, 2), (1 << 63, 1 << 64, 2)]
)
def test_borders_at_the_ends(low: int, high: int, n: int) -> None:
    """2^64 is a border like any other, though no word can hold it."""
    packed = np.array([0, 2**63 - 1, 2**63, 2**64 - 1], np.uint64)

    assert len(slice_of(packed, low, high)) == n


def test_fewer_bits_decide_where_fewer_make_the_key() -> None:
    """With 8 border bits no range parts words that agree in these."""
    packed = np.sort(keys_at_random(500, 4).reshape(-1))
    parts = [slice_of(packed, (i << 64) // 7, (i + 1 << 64) // 7, border_bits=8) for i in range(7)]

    assert np.array_equal(np.concatenate(parts), packed)
    tops = [set((part >> np.uint64(56)).tolist()) for part in parts]
    assert all(not one & other for one, other in combinations(tops, 2))


def test_repacking_gives_global_numbers() -> None:
    """The number becomes base + position, and the key loses its lowest bits, no others."""
    packed = words((0b1011, 2), (0b1010, 3), (2**60 - 1, 15), bits=4)
    found = repack(packed, 4, 6, 40)

    assert found.tolist() == words((0b10, 42), (0b10, 43), (2**58 - 1, 55), bits=6).tolist()


def test_repacking_into_given_memory() -> None:
    """Files of one range are written one after the other into one array."""
    packed = pack(keys_at_random(8, 2))
    whole = np.zeros(20, np.uint64)
    found = repack(packed, 3, 5, 4, out=whole[2:18])

    assert np.shares_memory(found, whole)
    assert np.array_equal(whole[2:18], repack(packed, 3, 5, 4))
    assert not whole[[0, 1, 18, 19]].any()


def test_a_number_that_needs_more_bits_is_refused() -> None:
    """A file of another run would put its documents' numbers into the keys of others."""
    with pytest.raises(RunError, match=r"document 7 of a file that begins at number 25 .* 5 bits"):
        repack(words((1, 3), (2, 7), bits=3), 3, 5, 25)
    assert len(repack(words((1, 3), (2, 6), bits=3), 3, 5, 25)) == 2


SPARE: list[tuple[int, int, int, int, int]] = [
    (0, 1 << 64, 10, 20, 0),
    (0, 1 << 63, 10, 20, 1),
    (1 << 63, 1 << 64, 10, 20, 1),
    (1 << 62, 3 << 62, 10, 20, 1),  # over the middle: no leading bit in common, yet one to spare
    (5 << 54, 6 << 54, 10, 20, 10),
    (5 << 54, 6 << 54, 12, 20, 8),  # the widest file has no more bits
    (5 << 54, 6 << 54, 20, 20, 0),
    ((1 << 64) // 3, (2 << 64) // 3, 10, 20, 1),
    (7, 9, 10, 20, 0),  # a range between two borders is empty
    (1 << 64, 1 << 64, 0, 0, 0),
]


@pytest.mark.parametrize(("low", "high", "from_bits", "to_bits", "expected"), SPARE)
def test_window(low: int, high: int, from_bits: int, to_bits: int, expected: int) -> None:
    """A range spares the bits it does not need, as far as every file has others to give."""
    assert window(low, high, from_bits, to_bits) == expected


def test_windows_tell_more_keys_apart() -> None:
    """Two keys that differ only below the bits of plain words stay apart in a narrow range."""
    packed = words((5 << 50 | 1, 0), (5 << 50 | 2, 1), bits=10)
    within = window(5 << 60, 6 << 60, 10, 14)

    assert as_pairs(links_of_keys(repack(packed, 10, 14, 0), 14)) == [(0, 1)]
    assert as_pairs(links_of_keys(repack(packed, 10, 14, 0, within=within), 14)) == []


def test_a_range_is_told_apart_wherever_it_begins() -> None:
    """In a range over a power of two, no two keys become equal because of the bits that are spared."""
    low, high = 3 << 61, 5 << 61
    tops = np.arange(low >> 54, high >> 54, dtype=np.uint64) << np.uint64(54)
    found = repack(tops, 0, 20, 0, within=window(low, high, 0, 20))

    assert window(low, high, 0, 20) == 2
    assert len(np.unique(found)) == len(tops)


def test_false_links_are_as_many_as_foretold() -> None:
    """Keys at random, of which few bits are left: the links between them are those of the formula."""
    n, bands = 4096, 16
    for number_bits in (40, 44):
        keys = keys_at_random(n, bands) >> np.uint64(number_bits) << np.uint64(number_bits)
        flat = np.sort((keys | np.arange(n, dtype=np.uint64)[:, None]).reshape(-1))
        same = int((flat[1:] >> np.uint64(number_bits) == flat[:-1] >> np.uint64(number_bits)).sum())
        expected = false_links(n, bands, 64 - number_bits)

        assert abs(same - expected) < 5 * expected**0.5 + 1


@pytest.mark.parametrize(
    ("documents", "bits", "expected"),
    [
        *[(10**6, 44, 7.3), (10**6, 50, 0.11), (10**6, 54, 0.0071)],
        *[(10**8, 37, 9.3e6), (10**8, 43, 1.46e5), (10**8, 47, 9095)],
        *[(10**9, 34, 7.45e9), (10**9, 40, 1.16e8), (10**9, 44, 7.28e6)],
        *[(0, 44, 0.0), (1, 64, 0.0)],
    ],
)
def test_the_table_of_false_links(documents: int, bits: int, expected: float) -> None:
    """The figures in the module's docstring are those of its function."""
    assert false_links(documents, 16, bits) == pytest.approx(expected, rel=0.04, abs=1e-16)


SORTED: list[tuple[str, Words]] = [
    ("none", np.zeros(0, np.uint64)),
    ("one", np.array([5], np.uint64)),
    ("all equal", np.full(1000, 2**63 + 5, np.uint64)),
    ("one byte differs: an odd number of passes", np.arange(256, dtype=np.uint64)[::-1] << np.uint64(16)),
    ("two bytes differ", np.arange(60_000, dtype=np.uint64)[::-1].copy()),
    ("at random", keys_at_random(3000, 5).reshape(-1)),
    ("one hot key", np.where(np.arange(5000) % 10, np.uint64(2**40), keys_at_random(5000, 1)[:, 0])),
    ("the ends", np.array([2**64 - 1, 0, 2**63, 2**63 - 1], np.uint64)),
]


@pytest.mark.parametrize(("name", "values"), SORTED, ids=[name for name, _ in SORTED])
def test_sorting(name: str, values: Words) -> None:
    """Words are sorted in place, as NumPy sorts them."""
    found = values.copy()
    sort_words(found)

    assert np.array_equal(found, np.sort(values))
