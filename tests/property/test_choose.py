"""Laws of the greedy choice: equal to plain sets and fractions, whichever way it searches."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.dedup.choose import choose, choose_in_blocks
from curation.dedup.sets import Shingles

Sets = list[frozenset[int]]

ENDLESS = 10**5
WAYS = {
    "scan": {"scan_up_to": ENDLESS},
    "lists": {"scan_up_to": 0, "patience": ENDLESS},
    "lists, then scan": {"scan_up_to": 0, "patience": 1},
    "scan, then lists": {"scan_up_to": 3, "patience": ENDLESS},
}


def shingles(sets: Sequence[frozenset[int]]) -> Shingles:
    """Sets as arrays."""
    offsets = np.cumsum([0, *(len(one) for one in sets)])
    return Shingles(np.array([value for one in sets for value in sorted(one)], np.uint64), offsets.astype(np.int64))


def oracle(cluster: Sets, n_fixed: int, threshold: Fraction) -> tuple[list[int], list[Fraction]]:
    """The first kept partner of each document, and their Jaccard, by the definition."""
    partner, similarity, kept = [], [], list[int]()
    for i, one in enumerate(cluster):
        found, close = -1, Fraction(1)
        for k in kept if i >= n_fixed else []:
            jaccard = Fraction(len(one & cluster[k]), len(one | cluster[k]) or 1)
            if jaccard > threshold:
                found, close = k, jaccard
                break
        if found < 0:
            kept.append(i)
        partner.append(found)
        similarity.append(close)
    return partner, similarity


values = st.one_of(st.integers(0, 40), st.integers(0, 2**64 - 1))


@st.composite
def clusters(draw: st.DrawFn) -> Sets:
    """Sets as crawls have them: copies with changes, sliding windows, a template, identical ones, and any."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    kind = draw(st.sampled_from(["copies", "windows", "template", "subsets", "same", "any", "mixed"]))
    n, size = draw(st.one_of(st.integers(1, 14), st.integers(1, 60))), draw(st.integers(1, 60))
    fresh = iter(rng.integers(0, 2**64, 4096, dtype=np.uint64).tolist())
    base = [next(fresh) for _ in range(size)]
    if kind == "any":
        return draw(st.lists(st.frozensets(values, max_size=60), min_size=1, max_size=14))
    if kind == "same":
        return [frozenset(base)] * n
    if kind == "windows":
        step = draw(st.integers(1, 4))
        run = base + [next(fresh) for _ in range(n * step)]
        return [frozenset(run[i * step : i * step + size]) for i in rng.permutation(n)]
    if kind == "template":
        own = draw(st.integers(0, 12))
        return [frozenset(base + [next(fresh) for _ in range(own)]) for _ in range(n)]
    if kind == "subsets":
        return [frozenset(rng.permutation(base)[: rng.integers(max(1, size - 6), size + 1)].tolist()) for _ in range(n)]
    found = list[frozenset[int]]()
    for i in range(n):
        one = sorted(found[rng.integers(len(found))]) if found and kind == "copies" else list(base)
        if kind == "mixed" and i % 3 == 0:
            one = [next(fresh) for _ in range(int(rng.integers(0, 60)))]
        lost, new = rng.integers(0, 1 + len(one) // 8, 2)
        found.append(
            frozenset(rng.permutation(np.array(one, np.uint64))[lost:].tolist() + [next(fresh) for _ in range(new)])
        )
    return found


def borderline(sets: Sets) -> list[int]:
    """Thresholds exactly at, and one millionth below and above, Jaccards that occur."""
    found = set()
    for one in sets[:6]:
        for other in sets[:6]:
            jaccard = Fraction(len(one & other), len(one | other) or 1)
            found |= {int(jaccard * 10**6) + d for d in (-1, 0, 1)}
    return sorted(ppm for ppm in found if 500_000 <= ppm < 10**6) or [900_000]


@st.composite
def problems(draw: st.DrawFn) -> tuple[list[Sets], list[int], int]:
    """Some clusters, how many of each are fixed, and a threshold."""
    some = draw(st.lists(clusters(), min_size=1, max_size=3))
    fixed = [draw(st.one_of(st.just(0), st.integers(0, len(one)))) for one in some]
    ppm = draw(st.one_of(st.sampled_from(borderline(some[0])), st.integers(500_000, 999_999), st.integers(1, 999_999)))
    return some, fixed, ppm


def check(
    partner: npt.NDArray[np.int64], similarity: npt.NDArray[np.float32], expected: Sets, fixed: int, ppm: int
) -> None:
    """Compare one cluster with the oracle."""
    right, close = oracle(expected, fixed, Fraction(ppm, 10**6))
    assert partner.tolist() == right
    assert similarity.tolist() == [np.float32(float(one)) for one in close]


@pytest.mark.parametrize("way", WAYS)
@given(problem=problems())
@settings(max_examples=150, deadline=None)
def test_the_choice_equals_the_definition(way: str, problem: tuple[list[Sets], list[int], int]) -> None:
    """Partner and similarity of every document are those of plain sets and fractions."""
    some, fixed, ppm = problem
    borders = np.cumsum([0, *(len(one) for one in some)])
    partner, similarity = choose(
        shingles([one for cluster in some for one in cluster]), borders, np.array(fixed), ppm, **WAYS[way]
    )
    for first, last, cluster, n_fixed in zip(borders[:-1], borders[1:], some, fixed, strict=True):
        mine = partner[first:last]
        check(np.where(mine < 0, -1, mine - first), similarity[first:last], cluster, n_fixed, ppm)


@given(problem=problems(), max_values=st.sampled_from([1, 30, 100, 400]), patience=st.sampled_from([1, ENDLESS]))
@settings(max_examples=150, deadline=None)
def test_blocks_do_not_matter(problem: tuple[list[Sets], list[int], int], max_values: int, patience: int) -> None:
    """A cluster compared block by block gets the same result, and no more is read at once than allowed."""
    (cluster, *_), (n_fixed, *_), ppm = problem

    def read(places: npt.NDArray[np.int64]) -> Shingles:
        found = shingles([cluster[place] for place in places])
        assert len(places) == 1 or len(found.values) <= max_values
        return found

    sizes = np.array([len(one) for one in cluster])
    partner, similarity = choose_in_blocks(read, sizes, n_fixed, ppm, max_values, patience=patience)
    check(partner, similarity, cluster, n_fixed, ppm)
