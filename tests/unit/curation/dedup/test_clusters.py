"""Clusters: what hangs together, in which order it is told, and how it is dealt out."""

from __future__ import annotations

import tracemalloc
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pytest

from curation.dedup.buckets import cluster_table
from curation.dedup.clusters import Clusters, Forest, by_item, spread, weights_of
from curation.dedup.facts import CLUSTER_BYTES
from curation.errors import InputError, RunError


def numbers(*values: int) -> npt.NDArray[np.uint32]:
    return np.array(values, np.uint32)


def as_lists(clusters: Clusters) -> list[list[int]]:
    members, starts = clusters
    assert members.dtype == np.uint32
    assert starts.dtype == np.int64
    assert starts[0] == 0
    assert starts[-1] == len(members)
    return [members[i:j].tolist() for i, j in pairwise(starts)]


def clusters_of(n: int, links: list[tuple[int, int]]) -> list[list[int]]:
    forest = Forest(n)
    forest.add(numbers(*(a for a, _ in links)), numbers(*(b for _, b in links)))
    return as_lists(forest.clusters())


CASES: list[tuple[str, int, list[tuple[int, int]], list[list[int]]]] = [
    ("no documents", 0, [], []),
    ("no links", 5, [], []),
    ("a link to itself", 3, [(1, 1)], []),
    ("a pair", 3, [(2, 0)], [[0, 2]]),
    ("a pair twice, both ways", 3, [(0, 2), (2, 0), (0, 2)], [[0, 2]]),
    ("a chain, from its end", 5, [(3, 4), (2, 3), (1, 2), (0, 1)], [[0, 1, 2, 3, 4]]),
    ("two stars joined late", 6, [(0, 2), (0, 4), (1, 3), (1, 5), (5, 4)], [[0, 1, 2, 3, 4, 5]]),
    ("in order of the smallest", 7, [(6, 5), (1, 4), (0, 3)], [[0, 3], [1, 4], [5, 6]]),
    ("the last document", 64, [(62, 63)], [[62, 63]]),
    ("a root in the 65th place", 130, [(64, 129), (63, 65)], [[63, 65], [64, 129]]),
]


@pytest.mark.parametrize(("name", "n", "links", "expected"), CASES, ids=[name for name, *_ in CASES])
def test_clusters(name: str, n: int, links: list[tuple[int, int]], expected: list[list[int]]) -> None:
    """Two or more documents that links join, ascending; clusters in order of their smallest one."""
    assert clusters_of(n, links) == expected


def test_links_may_come_in_parts() -> None:
    """Clusters may be asked for at any time; links are counted, also those that join nothing."""
    forest = Forest(6)
    assert forest.add(numbers(0, 0, 2), numbers(1, 1, 2)) == 1
    assert as_lists(forest.clusters()) == [[0, 1]]
    assert forest.add(numbers(), numbers()) == 0
    assert forest.add(numbers(4, 5, 5), numbers(5, 1, 0)) == 2
    assert as_lists(forest.clusters()) == as_lists(forest.clusters()) == [[0, 1, 4, 5]]
    assert forest.n_links == 6
    assert len(forest) == 6


def test_read_only_links() -> None:
    """Links come from memory-mapped files."""
    first, second = numbers(0), numbers(1)
    first.flags.writeable = second.flags.writeable = False
    forest = Forest(2)

    assert forest.add(first, second) == 1


@pytest.mark.parametrize(("first", "second"), [(numbers(0, 3), numbers(1, 0)), (numbers(0, 0), numbers(1, 2**32 - 1))])
def test_a_link_to_nowhere(first: npt.NDArray[np.uint32], second: npt.NDArray[np.uint32]) -> None:
    """A document that the run does not have is refused before any link is taken in."""
    forest = Forest(3)
    with pytest.raises(RunError, match=r"document \d+, but the run has 3"):
        forest.add(first, second)

    assert as_lists(forest.clusters()) == []
    assert forest.n_links == 0


def test_too_many_documents() -> None:
    """Documents whose numbers do not fit are refused before memory is taken for them."""
    with pytest.raises(InputError, match="at most"):
        Forest(2**32 + 1)


def test_a_long_chain_is_no_deep_tree() -> None:
    """A chain of 300,000, linked in any order, is not walked anew for each link: that would take minutes."""
    n = 300_000
    chain = np.arange(n - 1, dtype=np.uint32)
    for order in (chain, chain[::-1].copy(), np.random.default_rng(1).permutation(chain)):
        forest = Forest(n)
        assert forest.add(order, order + np.uint32(1)) == n - 1
        assert forest.add(np.full(n, n - 1, np.uint32), np.arange(n, dtype=np.uint32)[::-1].copy()) == 0
        members, starts = forest.clusters()
        assert starts.tolist() == [0, n]
        assert np.array_equal(members, np.arange(n))


def dealt(weights: list[int], n_items: int) -> list[int]:
    found = spread(np.arange(len(weights) + 1, dtype=np.int64), np.array(weights, np.int64), n_items)
    assert found.dtype == np.int32
    return [int(item) for item in found]


@pytest.mark.parametrize(
    ("weights", "n_items", "expected"),
    [
        ([], 3, []),
        ([5], 3, [0]),
        ([1, 2, 3], 1, [0, 0, 0]),
        ([5, 5, 5], 3, [0, 1, 2]),
        ([1, 9, 4, 4], 2, [1, 0, 1, 1]),
        ([2, 3, 4, 5, 6], 2, [0, 0, 1, 1, 0]),  # 6 | 5; 6 | 9; 9 | 9; 11 | 9
        ([2**61, 2**61, 1], 2, [0, 1, 0]),
        ([0, 0, 7], 2, [1, 1, 0]),
    ],
)
def test_the_heaviest_goes_first(weights: list[int], n_items: int, expected: list[int]) -> None:
    """Each cluster goes to the item with the least so far; of equals, to the first."""
    assert dealt(weights, n_items) == expected


def test_a_giant_has_an_item_for_itself() -> None:
    """A cluster heavier than all others together is not divided, and nothing is added to it."""
    weights = [1000, *[1] * 500, 3]
    found = dealt(weights, 4)

    assert [place for place, item in enumerate(found) if item == found[0]] == [0]
    loads = np.bincount(found, weights=weights)
    assert loads[1:].max() - loads[1:].min() <= 1


def test_weights_must_belong_to_the_clusters() -> None:
    """Weights of other clusters, or below zero, are a fault of the program."""
    starts = np.array([0, 2, 4], np.int64)
    with pytest.raises(AssertionError):
        spread(starts, np.array([1], np.int64), 2)
    with pytest.raises(AssertionError, match="less than nothing"):
        spread(starts, np.array([1, -1], np.int64), 2)
    with pytest.raises(AssertionError):
        spread(starts, np.array([1, 1], np.int64), 0)


def test_members_lie_by_item() -> None:
    """Whole clusters, in order of their items and then of their own numbers; a mark where each begins."""
    clusters = Clusters(np.array([0, 4, 1, 2, 3, 5, 6], np.uint32), np.array([0, 2, 5, 7]))

    item, number, first = by_item(clusters, np.array([1, 0, 1], np.int32))

    assert item.tolist() == [0, 0, 0, 1, 1, 1, 1]
    assert number.tolist() == [1, 2, 3, 0, 4, 5, 6]
    assert np.flatnonzero(first).tolist() == [0, 3, 5]


def test_weights_are_summed_by_cluster() -> None:
    """Beyond 32 bits, too; no clusters have no weights."""
    clusters = Clusters(numbers(0, 3, 1, 2), np.array([0, 2, 4]))

    assert weights_of(clusters, numbers(2**32 - 1, 5, 6, 2**32 - 1)).tolist() == [2**33 - 2, 11]
    assert weights_of(Clusters(numbers(), np.array([0])), numbers(1, 2)).tolist() == []


def test_what_a_document_takes_is_what_preflight_says() -> None:
    """Peak memory from links to the table, in the worst case: all documents in pairs."""
    n = 400_000
    evens = np.arange(0, n, 2, dtype=np.uint32)
    of_documents = np.full(n, 300, np.uint32)
    for counted in (False, True):  # first without: kernels are loaded once
        tracemalloc.start()
        forest = Forest(n)
        forest.add(evens, evens + np.uint32(1))
        clusters = forest.clusters()
        del forest
        items = spread(clusters.starts, weights_of(clusters, of_documents), 16)
        assert cluster_table(clusters, items).num_rows == n
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert not counted or peak < n * (CLUSTER_BYTES + 1)
