"""Fingerprints at a small Hamming distance: all pairs are the oracle."""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np
import numpy.typing as npt
import pytest

from curation.dedup import hamming
from curation.dedup.hamming import links, plan_tables, table_key
from curation.errors import ConfigError, InputError

UInt64s = npt.NDArray[np.uint64]

# ---------------------------------------------------------------- tables


@pytest.mark.parametrize(
    ("n_documents", "distance", "expected"),
    [
        (0, 3, (4, 4)),
        (1, 3, (4, 4)),
        (1_000_000, 3, (4, 4)),
        (10_000_000, 3, (4, 4)),
        (90_000_000, 3, (4, 4)),
        (110_000_000, 3, (5, 10)),
        (100_000_000_000, 3, (6, 20)),
        (1_000_000, 0, (1, 1)),
        (10**12, 0, (1, 1)),
        (1_000_000, 1, (2, 2)),
        (10_000, 7, (8, 8)),
        (100_000_000, 7, (10, 120)),
    ],
)
def test_plan(n_documents: int, distance: int, expected: tuple[int, int]) -> None:
    """More documents, more blocks; as many tables as choices of the blocks that agree."""
    assert plan_tables(n_documents, distance) == expected


@pytest.mark.parametrize("distance", range(8))
def test_plans_stay_near_linear(distance: int) -> None:
    """Up to 10^9 documents a plan is never worse than the next, and buckets are smaller than the window."""
    before = 0
    for n in (10**k for k in range(10)):
        blocks, n_tables = plan_tables(n, distance)
        assert blocks >= before
        assert n_tables == comb(blocks, distance)
        assert n / 2 ** hamming._key_bits(blocks, distance) < hamming.WINDOW / 4
        before = blocks


@pytest.mark.parametrize("distance", [-1, 8])
def test_distances_out_of_range_are_refused(distance: int) -> None:
    """ConfigError, for a plan, a key or links."""
    with pytest.raises(ConfigError, match="distance must be 0 to 7"):
        plan_tables(1000, distance)
    with pytest.raises(ConfigError, match="distance must be 0 to 7"):
        table_key(np.zeros(1, np.uint64), 0, 9, distance)


@pytest.mark.parametrize(("table", "blocks"), [(4, 4), (-1, 4), (0, 3), (0, 65)])
def test_tables_that_do_not_exist_are_refused(table: int, blocks: int) -> None:
    """ConfigError names the table."""
    with pytest.raises(ConfigError, match=f"table {table} of {blocks} blocks does not exist at distance 3"):
        links(np.zeros(1, np.uint64), np.zeros(1, np.uint32), 3, table, blocks)


@pytest.mark.parametrize(("blocks", "distance"), [(1, 0), (2, 0), (2, 1), (4, 3), (5, 3), (6, 3), (8, 7), (9, 7)])
def test_any_change_of_few_bits_leaves_some_key_as_it_was(blocks: int, distance: int) -> None:
    """The pigeonhole: for changes of `distance` bits one table's key stays; a key depends on its blocks only."""
    source = np.random.default_rng(5)
    (value,) = source.integers(0, 2**64, 1, np.uint64)
    changes = [source.choice(64, distance, replace=False) for _ in range(500)]
    changes += [np.array(choice) for choice in combinations([0, 12, 13, 31, 32, 51, 52, 63], distance)]
    changed = np.array([value ^ np.uint64(sum(1 << int(bit) for bit in bits)) for bits in changes], np.uint64)
    tables = range(comb(blocks, distance))
    same = np.array(
        [table_key(changed, i, blocks, distance) == table_key(np.array([value]), i, blocks, distance) for i in tables]
    )
    assert same.any(axis=0).all()
    seen: dict[tuple[int, ...], int] = {}
    for table in tables:
        every_bit = value ^ np.uint64(1) << np.arange(64, dtype=np.uint64)
        moves = table_key(every_bit, table, blocks, distance) != table_key(np.array([value]), table, blocks, distance)
        bits = tuple(np.flatnonzero(moves).tolist())
        assert bits not in seen, "two tables with the same blocks"
        assert len(bits) >= hamming._key_bits(blocks, distance)
        seen[bits] = table


@pytest.mark.parametrize(("blocks", "distance"), [(1, 0), (4, 3), (5, 3), (6, 3), (9, 7)])
def test_keys_are_in_the_high_bits(blocks: int, distance: int) -> None:
    """Zeros below, so that a border between two hash ranges never divides a bucket."""
    values = np.random.default_rng(5).integers(0, 2**64, 3000, np.uint64)
    for table in range(comb(blocks, distance)):
        keys = table_key(values, table, blocks, distance)
        bits = int(np.bitwise_or.reduce(keys)).bit_count()
        assert np.bitwise_or.reduce(keys) == np.uint64((1 << 64) - (1 << 64 - bits))
        assert abs(np.mean(keys >= np.uint64(2**63)) - 0.5) < 0.05


# ---------------------------------------------------------------- links


def clusters(n: int, *found: tuple[npt.ArrayLike, npt.ArrayLike]) -> list[int]:
    """For each of n documents the smallest that links join it with."""
    parents = list(range(n))

    def root(i: int) -> int:
        while parents[i] != i:
            i = parents[i]
        return i

    for a, b in found:
        for one, two in zip(np.asarray(a).tolist(), np.asarray(b).tolist(), strict=True):
            low, high = sorted((root(one), root(two)))
            parents[high] = low
    return [root(i) for i in range(n)]


def planted(n: int, seed: int = 1) -> UInt64s:
    """Random fingerprints, of which a third have a copy at distance 0 to 9, some in chains and some many times."""
    source = np.random.default_rng(seed)
    values = source.integers(0, 2**64, n, np.uint64)
    for i in range(2 * n // 3, n):
        bits = source.choice(64, int(source.integers(0, 10)), replace=False)
        values[i] = values[int(source.integers(0, i))] ^ np.uint64(sum(1 << int(bit) for bit in bits))
    values[-20:-10] = values[3]
    values[-10:] = 0
    return source.permutation(values)


@pytest.mark.parametrize(
    ("distance", "plans"), [(0, [1, 2]), (1, [2, 3, 4]), (2, [3, 5]), (3, [4, 5, 6]), (5, [6, 7]), (7, [8, 9])]
)
def test_links_join_what_all_pairs_join(distance: int, plans: list[int]) -> None:
    """Every pair within the distance is joined, and nothing else, whatever the number of blocks."""
    values = planted(3000)
    numbers = np.arange(3000, dtype=np.uint32)
    close = [np.flatnonzero(np.bitwise_count(values ^ value) <= distance) for value in values]
    expected = clusters(3000, *((np.full(len(js), i), js) for i, js in enumerate(close)))
    assert len(set(expected)) < 2900
    for blocks in plans:
        found = [links(values, numbers, distance, i, blocks) for i in range(comb(blocks, distance))]
        for a, b in found:
            assert a.dtype == b.dtype == np.uint32
            assert (a < b).all()
            assert (np.bitwise_count(values[a] ^ values[b]) <= distance).all()
        assert clusters(3000, *found) == expected


def test_links_are_a_function_of_the_set() -> None:
    """Neither order of documents nor hash ranges change them."""
    values, numbers = planted(3000), np.random.default_rng(2).permutation(9000)[:3000].astype(np.uint32)
    order = np.random.default_rng(3).permutation(3000)
    for blocks, table in ((4, 0), (4, 3), (5, 7), (6, 11)):
        whole = links(values, numbers, 3, table, blocks)
        np.testing.assert_array_equal(links(values[order], numbers[order], 3, table, blocks), whole)
        keys = table_key(values, table, blocks, 3)
        for n_ranges in (2, 3, 7):
            parts = []
            for i in range(n_ranges):
                low, high = (i << 64) // n_ranges, (((i + 1) << 64) // n_ranges) - 1
                inside = (keys >= np.uint64(low)) & (keys <= np.uint64(high))
                parts.append(links(values[inside], numbers[inside], 3, table, blocks))
            a, b = (np.concatenate(side) for side in zip(*parts, strict=True))
            by_number = np.lexsort((b, a))
            np.testing.assert_array_equal((a[by_number], b[by_number]), whole)


def test_equal_fingerprints_are_a_star() -> None:
    """100,000 equal ones: one link each to the smallest number, from table 0 alone."""
    numbers = np.random.default_rng(2).permutation(100_000).astype(np.uint32) + np.uint32(5)
    a, b = links(np.full(100_000, 77, np.uint64), numbers, 3, 0, 4)
    assert (a == 5).all()
    np.testing.assert_array_equal(b, np.arange(6, 100_005))
    assert [len(links(np.full(9, 77, np.uint64), numbers[:9], 3, i, 4)[0]) for i in (1, 2, 3)] == [0, 0, 0]


def test_a_bucket_of_k_gives_at_most_k_less_one_links() -> None:
    """2^14 fingerprints of which each is close to many: a tree, not all pairs."""
    values = np.arange(2**14, dtype=np.uint64)
    a, b = links(values, np.arange(2**14, dtype=np.uint32), 3, 3, 4)
    assert len(a) == 2**14 - 1
    assert set(clusters(2**14, (a, b))) == {0}


def test_a_hot_bucket_is_bounded() -> None:
    """105,000 distinct fingerprints in one bucket: neighbours in order are found, pairs beyond the window are not."""
    n = 35_000
    assert n > hamming.WINDOW
    low = np.arange(n, dtype=np.uint64) * np.uint64(34)  # no two of them differ in one bit alone
    values = np.concatenate([low, low | np.uint64(1), low | np.uint64(1 << 31)])
    numbers = np.arange(3 * n, dtype=np.uint32)
    a, b = links(values, numbers, 1, 1, 2)
    np.testing.assert_array_equal(a, np.arange(n))
    np.testing.assert_array_equal(b, np.arange(n, 2 * n))
    order = np.random.default_rng(5).permutation(3 * n)
    np.testing.assert_array_equal(links(values[order], numbers[order], 1, 1, 2), (a, b))


@pytest.mark.parametrize("n", [0, 1, 2, 15, 16, 17, 33])
def test_few_documents(n: int) -> None:
    """The edge of the array is never taken for a fingerprint: 0 and all ones are not close to it."""
    for value in (0, 2**64 - 1):
        values = np.full(n, value, np.uint64)
        a, b = links(values, np.arange(n, dtype=np.uint32), 7, 0, 8)
        assert (a.tolist(), b.tolist()) == ([0] * max(0, n - 1), list(range(1, n)))
    a, b = links(np.uint64(1) << np.arange(n, dtype=np.uint64), np.arange(n, dtype=np.uint32), 1, 0, 2)
    assert len(a) == 0  # two bits apart


def test_each_fingerprint_needs_a_number() -> None:
    """InputError: a kernel must never read beyond the shorter array."""
    with pytest.raises(InputError, match="each fingerprint needs a number"):
        links(np.zeros(3, np.uint64), np.zeros(2, np.uint32), 3, 0, 4)
