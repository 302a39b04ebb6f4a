"""Which documents of a large crawl are read: by the hash of doc_id, at a rate for each language of each source.

A stratum is a language in a source. The rates are a function of how many documents each stratum holds and of the
settings; whether a document is read is a function of its doc_id and its stratum's rate. So any worker decides alone,
retries agree, and a larger sample with the same seed holds the smaller one.
The rates: first every stratum gets `floor` documents, or all where it has fewer; what is left of the budget goes to all at
one common rate, above what the small ones have already. Costs less than 0.1 us a
document.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = ["drawn", "rates"]

Doubles = npt.NDArray[np.float64]
_Total: TypeAlias = Callable[[float], float]
_STEPS = 200
"""Halvings that find a rate: more than a double has bits."""


def rates(counts: npt.NDArray[np.int64], budget: int | None, floor: int) -> Doubles:
    """The share of each stratum that is read: float64[n_strata], 0 to 1; expected documents are at most the budget.

    Args:
        counts: documents of each stratum.
        budget: documents to read; None: all.
        floor: documents that a stratum gets before the others share the rest; all get fewer where they exceed the budget.
    """
    sizes = counts.astype(np.float64)
    if budget is None or sizes.sum() <= budget:
        return np.ones(len(sizes))
    least = np.minimum(sizes, floor)
    if least.sum() > budget:
        wanted = np.minimum(sizes, _largest(float(floor), lambda f: float(np.minimum(sizes, f).sum()), budget))
    else:
        rate = _largest(1.0, lambda r: float(np.maximum(least, r * sizes).sum()), budget)
        wanted = np.maximum(least, rate * sizes)
    return np.divide(wanted, sizes, out=np.ones(len(sizes)), where=sizes > 0)


def _largest(high: float, total: _Total, budget: int) -> float:
    """The largest number from 0 to `high` whose total is within the budget; totals do not fall."""
    low = 0.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if total(middle) <= budget else (low, middle)
    return low


def drawn(doc_ids: pa.Array, rate: Doubles, seed: int) -> npt.NDArray[np.bool_]:
    """Which documents are read: bool[n].

    Args:
        doc_ids: binary(16)[n], no nulls.
        rate: float64[n], of each one's stratum.
    """
    flat = np.frombuffer(doc_ids.buffers()[1], np.uint8)[16 * doc_ids.offset :][: 16 * len(doc_ids)]
    first = np.ascontiguousarray(flat.reshape(-1, 16)[:, :8]).view("<u8")[:, 0]
    # SplitMix64 (Steele et al. 2014): another order than that of doc_id, which other samples may follow.
    mixed = first ^ np.uint64((seed * 0x9E3779B97F4A7C15) % 2**64)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    chosen: npt.NDArray[np.bool_] = (mixed >> np.uint64(11)).astype(np.float64) * 2.0**-53 < rate
    return chosen
