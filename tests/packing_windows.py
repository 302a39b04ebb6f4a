"""Plans of consecutive windows over plain lengths: what `Assembly.plan` does over selected rows, for tests of the plans alone."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from tokenization.packing import plan as module
from tokenization.packing.plan import Plan, Strategy, cut_window, next_lead, plan_packing

__all__ = ["plan_windows"]


def plan_windows(lengths: npt.ArrayLike, seq_len: int, strategy: Strategy = "best_fit") -> Iterator[tuple[int, Plan]]:
    """Plans of consecutive windows of documents, each with the index of its first document."""
    array = np.ascontiguousarray(lengths, np.int64)
    lead = 0
    for begin in range(0, len(array), module.WINDOW_DOCUMENTS):
        for first, end in cut_window(array[begin : begin + module.WINDOW_DOCUMENTS], seq_len):
            plan = plan_packing(array[begin + first : begin + end], seq_len, strategy, lead)
            lead = next_lead(plan, strategy)
            yield begin + first, plan
