"""From hits to scores: counts, weights that fall as a term comes again, and the heaviest stretch of each category.

Linear in the hits of a document.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from curation.filters.safety_terms.find import Hits
from curation.filters.safety_terms.tables import Tables
from curation.text.jit import inlined, kernel
from curation.text.memory import Int
from curation.text.spans import Int64s
from quality_models.safety_labels import CATEGORY_NAMES

__all__ = ["STRETCH", "Weights", "in_order", "weigh"]

Doubles = npt.NDArray[np.float64]
Weights = tuple[Int64s, Doubles, Doubles, Doubles]

STRETCH = 200
"""Units of the stretch whose weight is `peak`, and for which `density` is given."""
N_CATEGORIES = len(CATEGORY_NAMES)
MOST_HALVINGS = 30
"""A term that comes more often weighs no more: so sums of halves stay exact."""


def in_order(hits: Hits) -> Hits:
    """Hits by document, and in each by place."""
    order = np.lexsort((hits.rows, hits.ends, hits.starts, hits.units, hits.documents))
    return hits.taken(order)


def weigh(hits: Hits, tables: Tables) -> Weights:
    """Counts, weights and peaks of each document by category, [n, n_categories], and the weight of each hit, [n_hits].

    The hits must be `in_order`.
    """
    n = len(hits.thirds)
    offsets = np.searchsorted(hits.documents, np.arange(n + 1))
    counts = np.zeros((n, N_CATEGORIES), np.int64)
    weights, peaks = np.zeros((n, N_CATEGORIES)), np.zeros((n, N_CATEGORIES))
    of_hits = np.zeros(len(hits.rows))
    seen = np.zeros(max(1, len(tables.terms)), np.int64)
    _weigh(
        offsets,
        hits.rows,
        hits.units,
        tables.rows.categories,
        tables.rows.weights,
        seen,
        counts,
        weights,
        peaks,
        of_hits,
    )
    return counts, weights, peaks, of_hits


@inlined
def _share(weight: Int, seen: Int) -> Int:
    """What one more hit of a term weighs."""
    return weight / 2.0**seen if seen < MOST_HALVINGS else 0.0


@kernel
def _weigh(
    offsets: Int64s,
    rows: Int64s,
    units: Int64s,
    categories: npt.NDArray[np.int32],
    of_rows: npt.NDArray[np.int32],
    seen: Int64s,
    counts: npt.NDArray[np.int64],
    weights: Doubles,
    peaks: Doubles,
    of_hits: Doubles,
) -> None:
    """`seen` is 0 for all rows before and after."""
    for document in range(len(offsets) - 1):
        begin, end = offsets[document], offsets[document + 1]
        for i in range(begin, end):
            row = rows[i]
            of_hits[i] = _share(of_rows[row], seen[row])
            seen[row] += 1
            counts[document, categories[row]] += 1
            weights[document, categories[row]] += of_hits[i]
        for i in range(begin, end):
            seen[rows[i]] = 0
        _find_peaks(begin, end, rows, units, categories, of_rows, seen, peaks[document])


@inlined
def _find_peaks(
    begin: Int,
    end: Int,
    rows: Int64s,
    units: Int64s,
    categories: npt.NDArray[np.int32],
    of_rows: npt.NDArray[np.int32],
    seen: Int64s,
    peaks: Doubles,
) -> None:
    """The greatest weight of hits that begin within a stretch, by category, of one document."""
    now = np.zeros(N_CATEGORIES)
    first = begin
    for i in range(begin, end):
        while units[i] - units[first] >= 3 * STRETCH:
            row = rows[first]
            seen[row] -= 1
            now[categories[row]] -= _share(of_rows[row], seen[row])
            first += 1
        row = rows[i]
        now[categories[row]] += _share(of_rows[row], seen[row])
        seen[row] += 1
        peaks[categories[row]] = max(peaks[categories[row]], now[categories[row]])
    for i in range(first, end):
        seen[rows[i]] = 0
