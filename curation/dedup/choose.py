"""The greedy choice among candidates: which documents stay, and of which kept document each other is a copy.

Documents of a cluster stand in order of priority. One is dropped if a kept one before it has Jaccard >
threshold with it, strictly and in whole numbers, and its partner is the first such. So no two kept
documents are alike, each dropped one has a kept partner, and chains cannot form.

A document is compared with every kept one of its cluster (1 ns each by sketch, and a merge of 0.4 to
0.9 ns a value where the sketches are close), as long as few are kept: that is linear for clusters of
true copies, of any size. A cluster in which many stay, a chain or a template, is searched through
a prefix filter (`prefix_filter.py`). Both give the same.

Memory beside the sets (8 bytes a value): 12 bytes a document; for a cluster that needs the filter, with
n documents of s values, at most n * (16 * ((1 - t) * s + 1) + 4 * s + 60 + 320 * b) bytes, where b is
(1 - t) / (1 + t) * s / 64 rounded up, 8 at most; less where documents are dropped. At t = 0.9 and s = 300
that is a further 0.9 times the sets. What does not fit is compared in blocks, with the same result.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from curation.dedup.overlap import (
    MILLION,
    MOST_WORDS,
    Kept,
    Values,
    add_kept,
    first_kept,
    kept_at,
    new_kept,
    sketch,
    sketch_blocks,
)
from curation.dedup.prefix_filter import build_index, new_lookup, resolve
from curation.dedup.sets import Shingles
from curation.errors import ConfigError, InputError
from curation.text.jit import kernel
from curation.text.memory import Int, address_of
from curation.text.spans import Int64s

__all__ = ["PATIENCE", "SCAN_UP_TO", "choose", "choose_in_blocks"]

SCAN_UP_TO = 1_000
"""Kept documents of a cluster up to which each is looked at: 1 us where sketches tell, 0.3 ms where they do not."""
PATIENCE = 1
"""Entries of the index read for each kept document, before all kept ones are looked at instead."""

Float32s = npt.NDArray[np.float32]


def choose(
    sets: Shingles,
    clusters: Int64s,
    n_fixed: Int64s,
    threshold_ppm: int,
    *,
    scan_up_to: int = SCAN_UP_TO,
    patience: int = PATIENCE,
) -> tuple[Int64s, Float32s]:
    """Choose the kept documents of each cluster.

    Args:
        sets: the distinct values of n documents, ascending in each; cluster after cluster, in a cluster by priority.
        clusters: borders of the clusters: int64[c + 1], from 0 to n.
        n_fixed: int64[c], documents at the start of each cluster that stay in any case (they are of earlier
            runs) and are not compared with each other.
        threshold_ppm: two documents are copies if their Jaccard is above this many millionths; 1 to 999,999.
        scan_up_to, patience: where to change from one way of search to another; no influence on the result.

    Returns:
        partner: int64[n], the first kept document (of all n) with Jaccard > threshold, -1 for a kept one.
        similarity: float32[n], Jaccard with the partner, 1 for a kept one.

    Raises ConfigError for a threshold that is not between, InputError for borders that do not fit.
    A document without values is kept, and is nobody's partner.
    """
    _check(sets, clusters, n_fixed, threshold_ppm)
    n = len(sets.offsets) - 1
    partner, similarity = np.full(n, -1, np.int64), np.ones(n, np.float32)
    stopped = np.full(len(n_fixed), -1, np.int64)
    most = int(np.diff(clusters).max(initial=0))
    _scan_clusters(
        sets.values,
        sets.offsets,
        clusters,
        n_fixed,
        threshold_ppm,
        scan_up_to,
        min(most, scan_up_to),
        partner,
        similarity,
        stopped,
    )
    for c in np.flatnonzero(stopped >= 0):
        first, last = int(clusters[c]), int(clusters[c + 1])
        living = first + np.flatnonzero(partner[first:last] < 0)
        decided = max(int(np.searchsorted(living, stopped[c])), int(n_fixed[c]))
        search = _Search(sets, living, threshold_ppm, patience, rare=2)
        search.resolve(sets, living, decided, partner, similarity)
    return partner, similarity


def _check(sets: Shingles, clusters: Int64s, n_fixed: Int64s, threshold_ppm: int) -> None:
    if not 0 < threshold_ppm < MILLION:
        raise ConfigError(f"threshold: expected more than 0 and less than 1, found {threshold_ppm / MILLION}")
    lengths, n = np.diff(clusters), len(sets.offsets) - 1
    if (
        len(n_fixed) != len(lengths)
        or clusters[0] != 0
        or clusters[-1] != n
        or (lengths < 0).any()
        or (n_fixed < 0).any()
        or (n_fixed > lengths).any()
        or sets.offsets[0] < 0
        or sets.offsets[-1] > len(sets.values)
        or (np.diff(sets.offsets) < 0).any()
    ):
        raise InputError(
            f"clusters: expected rising borders from 0 to the {n} documents, as many n_fixed as clusters and none above its "
            f"cluster, and offsets inside {len(sets.values)} values; found {len(lengths)} clusters up to {clusters[-1]}, "
            f"{len(n_fixed)} n_fixed, offsets up to {sets.offsets[-1]}: cluster and sets are not of the same documents"
        )


@kernel
def _scan_clusters(
    values: Values,
    offsets: Int64s,
    clusters: Int64s,
    n_fixed: Int64s,
    ppm: Int,
    scan_up_to: Int,
    room: Int,
    partner: Int64s,
    similarity: Float32s,
    stopped: Int64s,
) -> None:
    """Decide clusters by comparing with all kept documents; `stopped`: where a cluster had too many of them."""
    documents, starts, sizes = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.int64)
    coarse, fine = np.empty(room * MOST_WORDS, np.uint64), np.empty(room * MOST_WORDS, np.uint64)
    kept = Kept(starts, sizes, documents, coarse, fine)
    mine = np.empty(MOST_WORDS, np.uint64)
    for c in range(len(n_fixed)):
        first, last = clusters[c], clusters[c + 1]
        blocks = sketch_blocks(last - first, offsets[last] - offsets[first], ppm)
        at = kept_at(values, kept, blocks, ppm)
        n_kept = np.int64(0)
        for d in range(first, last):
            start, size = offsets[d], offsets[d + 1] - offsets[d]
            p = at.values + 8 * start
            sketch(p, size, blocks, mine)
            k = shared = np.int64(-1)
            if d >= first + n_fixed[c]:
                k, shared = first_kept(p, size, address_of(mine), at, n_kept)
            if k >= 0:
                partner[d] = kept.documents[k]
                similarity[d] = shared / (size + kept.sizes[k] - shared)
                continue
            if n_kept == scan_up_to:
                stopped[c] = d
                break
            add_kept(kept, n_kept, d, start, size, blocks, mine)
            n_kept += 1


class _Search:
    """Kept documents with their index: of some sets, and growing by more of them."""

    def __init__(self, sets: Shingles, chosen: Int64s, ppm: int, patience: int, *, rare: int) -> None:
        sizes = np.diff(sets.offsets)[chosen]
        self.sets, self.ppm, self.patience = sets, ppm, patience
        self.index = build_index(sets.values, sets.offsets, chosen, ppm, rare=rare)
        self.blocks = sketch_blocks(len(chosen), int(sizes.sum()), ppm)
        self.kept, self.n_kept = new_kept(len(chosen), self.blocks), 0

    def resolve(self, sets: Shingles, chosen: Int64s, n_fixed: int, partner: Int64s, similarity: Float32s) -> None:
        """Decide documents of `sets`; those without a partner are kept if they are of the sets of this search."""
        largest = int(np.diff(sets.offsets)[chosen].max(initial=0))
        self.n_kept = resolve(
            sets.values,
            sets.offsets,
            chosen,
            n_fixed,
            self.sets.values,
            self.kept,
            self.n_kept,
            self.index,
            new_lookup(largest, len(self.kept.starts), self.patience),
            self.blocks,
            self.ppm,
            self.patience,
            sets is self.sets,
            partner,
            similarity,
        )


def choose_in_blocks(
    read: Callable[[Int64s], Shingles],
    sizes: Int64s,
    n_fixed: int,
    threshold_ppm: int,
    max_values: int,
    *,
    patience: int = PATIENCE,
) -> tuple[Int64s, Float32s]:
    """What `choose` gives for one cluster whose sets do not fit into memory together.

    A block of the best documents is chosen from, all others are compared with its kept ones, and the next
    block is made of those that remain. So a document is read once for each block that stays before it; where
    most are copies, nearly once in all.

    Args:
        read: the distinct sets of documents, by place in the order of priority: int64[m] -> Shingles of m.
        sizes: int64[n], values of each document, or more than that.
        n_fixed, threshold_ppm, patience: as in `choose`.
        max_values: values held at once; a single document may be larger.

    Returns `partner` and `similarity` as `choose` does, by place in the order of priority.
    """
    n = len(sizes)
    partner, similarity = np.full(n, -1, np.int64), np.ones(n, np.float32)
    rest = np.arange(n)
    while len(rest):
        block, rest = _split(rest, sizes, max_values // 2)
        sets = read(block)
        fixed = int((block < n_fixed).sum())
        found, close = choose(sets, np.array([0, len(block)]), np.array([fixed]), threshold_ppm, patience=patience)
        partner[block], similarity[block] = np.where(found >= 0, block[found], -1), close
        kept = np.flatnonzero(found < 0)
        search = _Search(sets, kept, threshold_ppm, patience, rare=1)
        search.resolve(sets, kept, len(kept), found, close)
        later = rest[rest >= n_fixed]
        while len(later):
            batch, later = _split(later, sizes, max_values // 2)
            others = read(batch)
            found, close = np.full(len(batch), -1, np.int64), np.ones(len(batch), np.float32)
            search.resolve(others, np.arange(len(batch)), 0, found, close)
            partner[batch], similarity[batch] = np.where(found >= 0, block[found], -1), close
        rest = rest[partner[rest] < 0]
    return partner, similarity


def _split(places: Int64s, sizes: Int64s, max_values: int) -> tuple[Int64s, Int64s]:
    """As many of the first documents as fit, at least one, and the others."""
    fit = int(np.searchsorted(np.cumsum(sizes[places]), max_values, side="right"))
    return places[: max(fit, 1)], places[max(fit, 1) :]
