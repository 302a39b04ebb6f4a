"""Links and clusters against slow oracles: a dictionary of keys, and a walk over the graph."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable
from itertools import pairwise
from random import Random

import numpy as np
import numpy.typing as npt
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.dedup.clusters import Forest, spread
from curation.dedup.links import Words, bits_of, links_of_keys, pack, repack, slice_of, sort_words, window

Link = tuple[int, int]

FEW_KEYS = st.one_of(
    st.sampled_from([0, 1, 2**31, 2**32 - 1, 2**32, 2**63 - 1, 2**63, 2**64 - 1, (1 << 64) // 3]),
    st.integers(0, 2**64 - 1),
    st.integers(0, 40).map(lambda n: n << 58),
)
"""Keys that are often equal, and those at which ranges end."""


@st.composite
def graphs(draw: st.DrawFn) -> tuple[int, list[Link]]:
    n = draw(st.integers(1, 200))
    number = st.integers(0, n - 1)
    return n, draw(st.lists(st.tuples(number, number), max_size=150))


@st.composite
def files(draw: st.DrawFn) -> list[Words]:
    """Band keys uint64[n, 3] of some files."""
    row = st.tuples(FEW_KEYS, FEW_KEYS, FEW_KEYS)
    made = draw(st.lists(st.lists(row, max_size=12), min_size=1, max_size=4))
    return [np.array(rows, np.uint64).reshape(-1, 3) for rows in made]


def components(n: int, links: Iterable[Link]) -> list[list[int]]:
    """Connected components of two or more, by breadth-first search: the oracle."""
    near: dict[int, list[int]] = defaultdict(list)
    for a, b in links:
        near[a].append(b)
        near[b].append(a)
    seen: set[int] = set()
    found = []
    for start in range(n):
        if start in seen:
            continue
        seen.add(start)
        queue, members = deque([start]), []
        while queue:
            document = queue.popleft()
            members.append(document)
            new = set(near[document]) - seen
            seen |= new
            queue.extend(new)
        if len(members) > 1:
            found.append(sorted(members))
    return found


def forest_of(n: int, links: list[Link]) -> Forest:
    forest = Forest(n)
    ends = np.array(links, np.uint32).reshape(-1, 2).T.copy()
    forest.add(ends[0], ends[1])
    return forest


def as_lists(forest: Forest) -> list[list[int]]:
    members, starts = forest.clusters()
    return [members[i:j].tolist() for i, j in pairwise(starts)]


def pairs(links: tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32]]) -> list[Link]:
    return list(zip(links[0].tolist(), links[1].tolist(), strict=True))


@settings(deadline=None)
@given(graphs())
def test_clusters_are_components(graph: tuple[int, list[Link]]) -> None:
    """Clusters are the components of the graph, in order of their smallest document."""
    n, links = graph
    forest = forest_of(n, links)

    assert as_lists(forest) == components(n, links)
    assert forest.n_links == len(links)


@settings(deadline=None)
@given(graphs(), st.randoms(use_true_random=False), st.integers(1, 5))
def test_the_order_of_links_does_not_matter(graph: tuple[int, list[Link]], random: Random, parts: int) -> None:
    """Shuffled, turned round and added in several parts, they give the same clusters and as many joins."""
    n, links = graph
    whole = forest_of(n, links)
    shuffled = [(b, a) for a, b in links]
    random.shuffle(shuffled)
    forest = Forest(n)
    joins = 0
    for part in range(parts):
        ends = np.array(shuffled[part::parts], np.uint32).reshape(-1, 2).T.copy()
        joins += forest.add(ends[0], ends[1])

    assert as_lists(forest) == as_lists(whole)
    assert joins == sum(len(cluster) - 1 for cluster in as_lists(whole))


@settings(deadline=None)
@given(st.integers(0, 32), st.data())
def test_links_are_stars_of_a_dictionary(number_bits: int, data: st.DataObject) -> None:
    """Each key's smallest number is linked once to each other of its numbers."""
    number = st.integers(0, min(2**number_bits - 1, 6))
    drawn = data.draw(st.lists(st.tuples(FEW_KEYS.map(lambda key: key >> number_bits), number), max_size=40))
    buckets: dict[int, set[int]] = defaultdict(set)
    for key, document in drawn:
        buckets[key].add(document)
    words = np.array([key << number_bits | document for key, document in drawn], np.uint64)

    expected = [(min(found), other) for _, found in sorted(buckets.items()) for other in sorted(found)[1:]]
    assert pairs(links_of_keys(words, number_bits)) == expected


@settings(deadline=None)
@given(files(), st.sampled_from([1, 2, 3, 5, 16, 64, 1000]), st.booleans(), st.integers(0, 4))
def test_equal_keys_are_linked_in_any_number_of_ranges(
    made: list[Words], n_items: int, narrow: bool, more_bits: int
) -> None:
    """Whatever the files, ranges and bits: documents with an equal key end up in one cluster.

    And the only links besides are those between keys that agree in all bits that were left of them.
    """
    n = sum(len(keys) for keys in made)
    to_bits = bits_of(n) + more_bits
    widest = max(bits_of(len(keys)) for keys in made)
    bases = np.cumsum([0, *(len(keys) for keys in made)]).tolist()
    packed = [pack(keys) for keys in made]
    found: list[Link] = []
    for item in range(n_items):
        low, high = (item << 64) // n_items, ((item + 1) << 64) // n_items
        within = window(low, high, widest, to_bits) if narrow else 0
        words = [
            repack(slice_of(part, low, high), bits_of(len(keys)), to_bits, base, within=within)
            for part, keys, base in zip(packed, made, bases, strict=False)
        ]
        found += pairs(links_of_keys(np.concatenate(words), to_bits))

    everything = [(key, document) for document, row in enumerate(np.concatenate(made).tolist()) for key in row]
    full, cut = star(everything, 0), star(everything, to_bits)
    joined = {frozenset(cluster) for cluster in components(n, found)}
    for a, b in full:
        assert a == b or any({a, b} <= cluster for cluster in joined)
    left = components(n, cut)
    assert all(any(cluster <= set(other) for other in left) for cluster in joined)
    assert narrow or joined == {frozenset(cluster) for cluster in left}


def star(keys: list[tuple[int, int]], lost_bits: int) -> list[Link]:
    """Links between documents whose keys agree above the bits that are lost."""
    first: dict[int, int] = {}
    return [(first.setdefault(key >> lost_bits, document), document) for key, document in keys]


@settings(deadline=None)
@given(st.lists(FEW_KEYS, max_size=300))
def test_sorting_is_sorting(values: list[int]) -> None:
    """Words are sorted as Python sorts them."""
    words = np.array(values, np.uint64)
    sort_words(words)

    assert words.tolist() == sorted(values)


@settings(deadline=None)
@given(st.lists(st.one_of(st.integers(0, 5), st.integers(0, 10**12)), max_size=80), st.integers(1, 20))
def test_dealing_is_longest_processing_time(weights: list[int], n_items: int) -> None:
    """The heap deals as a plain search for the least loaded item does."""
    loads = [0] * n_items
    expected = [0] * len(weights)
    for cluster in sorted(range(len(weights)), key=lambda cluster: -weights[cluster]):
        item = loads.index(min(loads))
        expected[cluster] = item
        loads[item] += weights[cluster]
    found = spread(np.arange(len(weights) + 1, dtype=np.int64), np.array(weights, np.int64), n_items)

    assert found.tolist() == expected
