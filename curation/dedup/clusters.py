"""Linked documents become clusters, and clusters are dealt out by size.

A cluster is a set of candidates, not a verdict: its documents need not all be near each other, and which of
them are is decided on their texts. What counts here is that every link lies inside one cluster.

Union by smallest number with path halving: the root of a tree is its smallest document, so clusters depend
on the set of links alone, not on their order. Linking by index has the same cost as linking by rank where
the order is not chosen by an enemy (Patwary, Blair, Manne: Experiments on union-find algorithms, 2010), and
needs no ranks: 4 bytes a document. 50 million links take 0.2 s among a million documents and 2.3 s among
50 million, where every step misses the cache.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from curation.dedup.links import Numbers, Words, bits_of
from curation.errors import RunError
from curation.text.jit import inlined, kernel
from curation.text.memory import Int, count_bits

__all__ = ["Clusters", "Forest", "by_item", "spread", "weights_of"]

Int64s: TypeAlias = npt.NDArray[np.int64]
Items: TypeAlias = npt.NDArray[np.int32]
Marks: TypeAlias = npt.NDArray[np.bool_]


class Clusters(NamedTuple):
    """Clusters of two or more documents, in order of their smallest one.

    members: uint32[m], ascending in each cluster. starts: int64[c + 1]; cluster i is
    `members[starts[i]:starts[i + 1]]`.
    """

    members: Numbers
    starts: Int64s


class Forest:
    """Which of n documents hang together. One thread at a time."""

    def __init__(self, n_documents: int) -> None:
        """Every document alone: 4 bytes each.

        Raises:
            InputError: more than 2^32 documents.
        """
        bits_of(n_documents)
        self._parents = np.arange(n_documents, dtype=np.uint32)
        self.n_links = 0
        """Links added so far, also those that told nothing new."""

    def __len__(self) -> int:
        return len(self._parents)

    def add(self, first: Numbers, second: Numbers) -> int:
        """Take in links between documents: uint32[l] and uint32[l].

        Returns how many of them joined two clusters that were apart until then. That depends on the order of
        the links, their sum does not.

        Raises:
            RunError: there is no document of that number; then no link is taken in.
        """
        assert first.dtype == second.dtype == np.uint32
        assert len(first) == len(second)
        largest = max(int(first.max(initial=0)), int(second.max(initial=0)))
        if len(first) and largest >= len(self):
            raise RunError(
                f"a link leads to document {largest}, but the run has {len(self)}: the links are damaged or of "
                "another run. Make them anew."
            )
        self.n_links += len(first)
        return int(_join(self._parents, first, second))

    def clusters(self) -> Clusters:
        """The clusters of two or more documents. Takes 0.2 bytes a document besides the result."""
        shared = np.zeros(len(self) // 64 + 1, np.uint64)
        n_below = _flatten(self._parents, shared)
        before = np.zeros(len(shared), np.uint32)
        n_clusters = _count_before(shared, before)
        # Two numbers more than clusters: while members are filled in, starts[i + 1] is where cluster i goes on.
        starts = np.zeros(n_clusters + 2, np.int64)
        members = np.empty(n_below + n_clusters, np.uint32)
        _fill(self._parents, shared, before, starts, members)
        return Clusters(members, starts[:-1])


def spread(starts: Int64s, weights: Int64s, n_items: int) -> Items:
    """Deal clusters out to items of about equal weight: the item of each cluster, int32[c].

    The heaviest first, each to the item that has least (Graham 1969: at most 4/3 - 1/(3 n_items) times the
    best possible maximum). A cluster is never divided, so one of more than its share makes a heavy item. Of
    equals, the cluster or item with the smaller number goes first. 0.3 us a cluster with 64 items.

    Args:
        starts: int64[c + 1], of the clusters.
        weights: int64[c], such as bytes of text; not negative.
    """
    assert n_items > 0, n_items
    assert len(weights) == len(starts) - 1, (len(weights), len(starts))
    assert weights.min(initial=0) >= 0, "a cluster weighs less than nothing"
    items = np.zeros(len(weights), np.int32)
    _deal(np.argsort(-weights, kind="stable"), weights, np.zeros(n_items, np.int64), items)
    return items


def weights_of(clusters: Clusters, of_documents: Numbers) -> Int64s:
    """Sum of the weights of its members, uint32[n] of all documents, for each cluster: int64[c]."""
    return np.asarray(np.add.reduceat(of_documents[clusters.members], clusters.starts[:-1], dtype=np.int64))


def by_item(clusters: Clusters, items: Items) -> tuple[Numbers, Numbers, Marks]:
    """Members in order of the items of their clusters: item and number of each, uint32[m], and where a cluster begins, bool[m].

    Takes 9 bytes a member and 8 a cluster.
    """
    n = len(clusters.members)
    item, number, first = np.empty(n, np.uint32), np.empty(n, np.uint32), np.empty(n, np.bool_)
    _lay_out(clusters.members, clusters.starts, np.argsort(items, kind="stable"), items, item, number, first)
    return item, number, first


@inlined
def _root(parents: Numbers, document: Int) -> Int:
    """Root of a document's tree. Halves the way: every document on it now hangs from its grandparent."""
    parent = np.uint64(parents[document])
    while parent != document:
        above = np.uint64(parents[parent])
        if above == parent:
            return parent
        parents[document] = above
        document = above
        parent = np.uint64(parents[document])
    return document


@kernel
def _join(parents: Numbers, first: Numbers, second: Numbers) -> Int:
    n_joined = np.int64(0)
    for i in range(np.uint64(len(first))):
        one, other = _root(parents, np.uint64(first[i])), _root(parents, np.uint64(second[i]))
        if one < other:
            parents[other] = one
            n_joined += 1
        elif other < one:
            parents[one] = other
            n_joined += 1
    return n_joined


@kernel
def _flatten(parents: Numbers, shared: Words) -> Int:
    """Hang every document from its root, and set the bit of each root that is not alone.

    Parents are smaller than children, so a document's parent hangs from its root by the time it is read.
    Returns the number of documents that are no roots.
    """
    n_below = np.int64(0)
    for i in range(np.uint64(len(parents))):
        if parents[i] != i:
            root = parents[np.uint64(parents[i])]
            parents[i] = root
            shared[np.uint64(root) >> np.uint64(6)] |= np.uint64(1) << (np.uint64(root) & np.uint64(63))
            n_below += 1
    return n_below


@kernel
def _count_before(shared: Words, before: Numbers) -> Int:
    """Bits before each word of 64. Returns the number of all."""
    n = np.int64(0)
    for i in range(np.uint64(len(shared))):
        before[i] = n
        n += count_bits(shared[i])
    return n


@inlined
def _cluster(parents: Numbers, shared: Words, before: Numbers, document: Int) -> Int:
    """The cluster of a document, which is the rank of its root's bit, or -1 if it is alone."""
    root = np.uint64(parents[document])
    word, bit = shared[root >> np.uint64(6)], np.uint64(1) << (root & np.uint64(63))
    if word & bit == np.uint64(0):
        return np.int64(-1)
    return np.int64(before[root >> np.uint64(6)]) + count_bits(word & bit - np.uint64(1))


@kernel
def _fill(parents: Numbers, shared: Words, before: Numbers, starts: Int64s, members: Numbers) -> None:
    """Counting sort of the documents by cluster."""
    for i in range(np.uint64(len(parents))):
        cluster = _cluster(parents, shared, before, i)
        if cluster >= 0:
            starts[np.uint64(cluster + 2)] += 1
    for i in range(1, len(starts)):
        starts[i] += starts[i - 1]
    for i in range(np.uint64(len(parents))):
        cluster = _cluster(parents, shared, before, i)
        if cluster >= 0:
            place = starts[np.uint64(cluster + 1)]
            members[np.uint64(place)] = i
            starts[np.uint64(cluster + 1)] = place + 1


@kernel
def _deal(order: Int64s, weights: Int64s, loads: Int64s, items: Items) -> None:
    """Give clusters in that order to the least loaded item, from a heap of (load, item)."""
    n_items = len(loads)
    heap = np.arange(n_items)
    for cluster in order:
        item = heap[0]
        items[cluster] = item
        loads[item] += weights[cluster]
        hole = 0
        while True:
            child = 2 * hole + 1
            if child >= n_items:
                break
            if child + 1 < n_items and _is_less(loads, heap[child + 1], heap[child]):
                child += 1
            if not _is_less(loads, heap[child], item):
                break
            heap[hole] = heap[child]
            hole = child
        heap[hole] = item


@kernel
def _lay_out(
    members: Numbers, starts: Int64s, order: Int64s, items: Items, item: Numbers, number: Numbers, first: Marks
) -> None:
    n = 0
    for cluster in order:
        for i in range(starts[cluster], starts[cluster + 1]):
            item[n], number[n], first[n] = items[cluster], members[i], i == starts[cluster]
            n += 1


@inlined
def _is_less(loads: Int64s, one: Int, other: Int) -> bool:
    return bool(loads[one] < loads[other] or (loads[one] == loads[other] and one < other))
