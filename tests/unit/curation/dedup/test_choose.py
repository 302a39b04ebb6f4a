"""The greedy choice: strictness, order, fixed documents, hostile sets, and the arithmetic below it."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest

from curation.dedup.choose import choose, choose_in_blocks
from curation.dedup.overlap import (
    MILLION,
    MOST_WORDS,
    needed,
    overlap,
    reach,
    sketch,
    sketch_blocks,
)
from curation.dedup.sets import Shingles
from curation.errors import ConfigError, InputError

ENDLESS = 10**5
SEARCHES = {
    "scan": {"scan_up_to": ENDLESS},
    "lists": {"scan_up_to": 0, "patience": ENDLESS},
    "lists-then-scan": {"scan_up_to": 0, "patience": 1},
    "scan-then-lists": {"scan_up_to": 5, "patience": ENDLESS},
}
WAYS = [pytest.param(way, id=name) for name, way in SEARCHES.items()]


def shingles(sets: Sequence[Sequence[int] | range]) -> Shingles:
    """Sets as arrays."""
    offsets = np.cumsum([0, *(len(one) for one in sets)])
    return Shingles(np.array([value for one in sets for value in sorted(one)], np.uint64), offsets.astype(np.int64))


def partners(
    sets: Sequence[Sequence[int] | range], way: dict[str, int], *, ppm: int = 900_000, fixed: int = 0
) -> list[int]:
    """Partners of one cluster."""
    found = choose(shingles(sets), np.array([0, len(sets)]), np.array([fixed]), ppm, **way)[0]
    return [int(one) for one in found]


def definition(sets: Sequence[Sequence[int]], ppm: int) -> list[int]:
    """The first kept partner of each document, from plain sets."""
    found, kept = list[int](), list[int]()
    plain = [frozenset(one) for one in sets]
    for i, one in enumerate(plain):
        shared = ((k, len(one & plain[k])) for k in kept)
        partner = next((k for k, n in shared if n * MILLION > ppm * (len(one) + len(plain[k]) - n)), -1)
        found.append(partner)
        if partner < 0:
            kept.append(i)
    return found


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("one", "other", "ppm", "partner"),
    [
        (range(10), range(9), 900_000, -1),  # exactly 9/10
        (range(10), range(9), 899_999, 0),
        (range(9), range(10), 900_000, -1),
        (range(9), range(10), 899_999, 0),
        (range(20), range(1, 20), 900_000, 0),  # 19/20
        (range(19), range(1, 20), 900_000, -1),  # 18/20 = 9/10
        (range(300), range(100), 333_333, 0),  # 1/3 is a little more
        (range(300), range(100), 333_334, -1),
        (range(2), range(1), 500_000, -1),
        (range(2), range(1), 499_999, 0),
        (range(1), range(1), 999_999, 0),
        (range(10**6 + 1), range(10**6), 999_999, -1 + 1),  # 0.999999000001
        (range(10**6), range(1, 10**6), 999_999, -1),  # 0.999999
        (range(5), range(5, 10), 1, -1),
        (range(5), range(4, 9), 1, 0),  # 1/9, at the lowest threshold
    ],
)
def test_the_threshold_is_strict(one: range, other: range, ppm: int, partner: int, way: dict[str, int]) -> None:
    """Jaccard equal to the threshold is no copy; any more is."""
    assert partners([one, other], way, ppm=ppm) == [-1, partner]


@pytest.mark.parametrize("way", WAYS)
def test_the_first_kept_is_the_partner(way: dict[str, int]) -> None:
    """Not the closest one, and never one that was dropped."""
    first, second = range(100), range(3, 103)  # 97/103
    third = [*range(8), *range(16, 108)]  # with the first: 92/108
    assert partners([first, second, third, range(100), range(2, 102)], way, ppm=900_000) == [-1, 0, -1, 0, 0]
    assert partners([first, range(9, 109), range(5, 105)], way, ppm=900_000) == [-1, -1, 0]


@pytest.mark.parametrize("way", WAYS)
def test_chains_do_not_collapse(way: dict[str, int]) -> None:
    """Of A ~ B ~ C ~ D, where only neighbours are alike, the dropped ones are alike with a kept one."""
    windows = [range(3 * i, 3 * i + 100) for i in range(40)]  # neighbours: 97/103, next but one: 94/106
    assert partners(windows, way) == [-1 if i % 2 == 0 else i - 1 for i in range(40)]


@pytest.mark.parametrize("way", WAYS)
def test_fixed_documents_stay_and_drop_others(way: dict[str, int]) -> None:
    """They are not compared with each other, and come first as partners."""
    same = range(50)
    assert partners([same] * 5, way, fixed=3) == [-1, -1, -1, 0, 0]
    assert partners([same] * 5, way, fixed=5) == [-1] * 5
    many = [same] * 12
    assert partners(many, way, fixed=11) == [-1] * 11 + [0]


@pytest.mark.parametrize("way", WAYS)
def test_clusters_do_not_see_each_other(way: dict[str, int]) -> None:
    """Partners are numbers of documents of the call; similarity is 1 for a kept document."""
    sets = shingles([range(10), range(10), range(10), range(10), range(1, 20), range(20)])
    partner, similarity = choose(sets, np.array([0, 1, 1, 4, 6]), np.array([0, 0, 1, 0]), 900_000, **way)
    assert partner.tolist() == [-1, -1, 1, 1, -1, 4]
    assert similarity.tolist() == [1, 1, 1, 1, 1, np.float32(0.95)]


@pytest.mark.parametrize("way", WAYS)
def test_empty_documents_match_nothing(way: dict[str, int]) -> None:
    """Neither each other nor anything, at any threshold."""
    assert partners([[], [1], [], [1], []], way, ppm=1) == [-1, -1, -1, 1, -1]
    assert partners([[], [], []], way) == [-1, -1, -1]


@pytest.mark.parametrize("way", WAYS)
def test_nothing_to_choose_from(way: dict[str, int]) -> None:
    """No cluster, and clusters without documents, give nothing."""
    nothing = Shingles(np.zeros(0, np.uint64), np.zeros(1, np.int64))
    assert len(choose(nothing, np.zeros(1, np.int64), np.zeros(0, np.int64), 900_000, **way)[0]) == 0
    assert len(choose(nothing, np.zeros(3, np.int64), np.zeros(2, np.int64), 900_000, **way)[0]) == 0


@pytest.mark.parametrize("way", WAYS)
def test_a_huge_set_among_short_ones(way: dict[str, int]) -> None:
    """300,000 values beside 1 and 50: found by its copy, and by nothing else."""
    huge, tiny, short = range(300_000), [7], range(50)
    sets = [
        huge,
        tiny,
        short,
        *([value] for value in range(30)),
        range(100, 300_000),
        range(49),
        range(20_000, 300_000),
    ]
    expected = [-1, -1, -1, *([-1] * 7), 1, *([-1] * 22), 0, 2, 0]
    assert partners(sets, way) == expected


@pytest.mark.parametrize("way", WAYS)
def test_many_identical_sets(way: dict[str, int]) -> None:
    """20,000 copies of one document have one partner."""
    values = np.arange(40, dtype=np.uint64)
    sets = Shingles(np.tile(values, 20_000), np.arange(0, 800_001, 40))
    found = choose(sets, np.array([0, 20_000]), np.array([0]), 900_000, scan_up_to=way["scan_up_to"])[0]
    assert found.tolist() == [-1] + [0] * 19_999


def crawl(kind: str, rng: np.random.Generator) -> list[list[int]]:
    """300 documents of 20 to 80 values of which many share more than the classes of sizes begin with."""
    fresh = iter(rng.integers(0, 2**64, 10**5, dtype=np.uint64).tolist())
    base = [next(fresh) for _ in range(60)]
    found = []
    for _ in range(300):
        if kind == "template":
            found.append([*base[: rng.integers(40, 60)], *(next(fresh) for _ in range(rng.integers(0, 9)))])
        elif kind == "pool":
            found.append(rng.permutation(np.array(base, np.uint64))[: rng.integers(45, 61)].tolist())
        else:
            one = list(found[rng.integers(max(0, len(found) - 20), len(found))]) if found else base
            one = rng.permutation(np.array(one, np.uint64))[rng.integers(0, 4) :].tolist()
            found.append([*one, *(next(fresh) for _ in range(rng.integers(0, 5)))])
    return found


@pytest.mark.parametrize("ppm", [500_000, 800_000, 900_000, 950_000, 990_000])
@pytest.mark.parametrize("kind", ["template", "pool", "chain"])
def test_clusters_with_frequent_values(kind: str, ppm: int) -> None:
    """Where values are in dozens of sets, so that their lists are split by size, nothing is missed."""
    sets = crawl(kind, np.random.default_rng(ppm))
    expected = definition(sets, ppm)
    for name, way in SEARCHES.items():
        assert partners(sets, way, ppm=ppm) == expected, name


@pytest.mark.parametrize("max_values", [1, 500, 10**6])
@pytest.mark.parametrize("n_fixed", [0, 30])
def test_blocks_read_little_and_change_nothing(n_fixed: int, max_values: int) -> None:
    """The result is that of the whole, and what is read at once stays below half the limit."""
    sets = crawl("chain", np.random.default_rng(5))[:60]
    whole = shingles(sets)

    def read(places: npt.NDArray[np.int64]) -> Shingles:
        found = shingles([sets[place] for place in places])
        assert len(places) == 1 or len(found.values) <= max_values // 2
        return found

    expected = choose(whole, np.array([0, len(sets)]), np.array([n_fixed]), 900_000)
    found = choose_in_blocks(read, np.diff(whole.offsets), n_fixed, 900_000, max_values)
    assert found[0].tolist() == expected[0].tolist()
    assert found[1].tolist() == expected[1].tolist()


@pytest.mark.parametrize("ppm", [-1, 0, MILLION, MILLION + 1])
def test_a_threshold_must_be_a_share(ppm: int) -> None:
    """0 would join what shares one shingle, 1 nothing: both are refused."""
    with pytest.raises(ConfigError, match="more than 0 and less than 1"):
        partners([range(3)], {}, ppm=ppm)
    with pytest.raises(ConfigError, match="more than 0 and less than 1"):
        choose_in_blocks(lambda places: shingles([range(3)]), np.array([3]), 0, ppm, 10)


@pytest.mark.parametrize(
    ("borders", "n_fixed"),
    [([0, 2], [0]), ([0, 4], [0]), ([1, 3], [0]), ([0, 2, 1, 3], [0] * 3), ([0, 3], [4]), ([0, 3], [])],
)
def test_borders_must_fit(borders: list[int], n_fixed: list[int]) -> None:
    """Clusters that are not those of the documents are refused, not read past."""
    with pytest.raises(InputError, match="not of the same documents"):
        choose(shingles([range(3)] * 3), np.array(borders), np.array(n_fixed, np.int64), 900_000)


@pytest.mark.parametrize("ppm", [1, 333_333, 500_000, 899_999, 900_000, 999_999])
def test_needed_and_reach_say_the_same(ppm: int) -> None:
    """Both are the definition of Jaccard > threshold."""
    for shared in range(1, 40):
        for total in range(2 * shared, 120):
            alike = Fraction(shared, total - shared) > Fraction(ppm, MILLION)
            assert (shared >= needed(total, ppm)) == alike == (total <= reach(shared, ppm))


@pytest.mark.parametrize("size", [0, 1, 31, 32, 33, 63, 64, 65, 100, 400, 2000])
@pytest.mark.parametrize("share", [0, 0.3, 0.9, 0.97, 1])
def test_overlap_counts_what_is_shared(size: int, share: float) -> None:
    """Exactly, from any length on, and -1 as soon as too little is left."""
    rng = np.random.default_rng(size)
    for extra in (0, 1, 40, size):
        one = np.unique(rng.integers(0, 2**64, size, dtype=np.uint64))
        other = np.concatenate([one[rng.random(len(one)) < share], rng.integers(0, 2**64, extra, dtype=np.uint64)])
        other = np.unique(other)
        shared = len(np.intersect1d(one, other))
        for least in {0, 1, shared - 1, shared, shared + 1, len(one), len(other)} - {-1}:
            found = overlap(one.ctypes.data, len(one), other.ctypes.data, len(other), least)
            assert found == (shared if shared >= least else -1)
            assert found == overlap(other.ctypes.data, len(other), one.ctypes.data, len(one), least)


@pytest.mark.parametrize("blocks", [1, 2, 8])
def test_sketches_never_differ_more_than_sets(blocks: int) -> None:
    """Coarse or fine, the bits that differ are no more than the values that do, and nearly all of few."""
    rng = np.random.default_rng(blocks)
    base = rng.integers(0, 2**64, 3000, dtype=np.uint64)
    for differing in (0, 1, 5, 40, 1000):
        one, other = np.sort(base[:2000]), np.sort(base[differing : 2000 + differing // 2])
        sketches = np.zeros((2, MOST_WORDS), np.uint64)
        for row, values in zip(sketches, (one, other), strict=True):
            sketch(values.ctypes.data, len(values), blocks, row)
        apart = len(np.setxor1d(one, other))
        bits = np.bitwise_count(sketches[0] ^ sketches[1])
        coarse, fine = int(bits[: blocks * 8].sum()), int(bits[blocks * 8 : blocks * 40].sum())
        assert coarse <= fine <= apart
        assert fine >= min(apart, 40) * 0.9


def test_sketches_are_for_clusters_that_need_them() -> None:
    """None for pairs; more bits the more two copies may differ, up to a limit."""
    assert [sketch_blocks(n, n * 300, 900_000) for n in (2, 3, 4, 10**6)] == [0, 0, 1, 1]
    assert [sketch_blocks(100, 100 * size, 900_000) for size in (0, 1_000, 3_000, 10**6)] == [1, 1, 3, 8]
