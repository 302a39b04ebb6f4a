"""How the items of a pass are shared out to tasks: consecutive items, in few chunks of about equal weight.

A chunk is a short text, `0-7` for items 0 to 7, or `all`: it travels between tasks and stands on their labels.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["CHUNK_MB", "FEW_CHUNKS", "MAX_CHUNKS", "WHOLE", "cut", "items_of"]

CHUNK_MB = 256
"""Text of one mapped task at least. It is worked on for 3 to 25 s a pass; a task itself costs about a second."""
FEW_CHUNKS = 8
"""Up to this many chunks are as small as that, to give cores work; what is beyond comes in chunks four times as large."""
MAX_CHUNKS = 64
"""Mapped tasks of one pass at most; with more text chunks grow, not their number. Airflow's own limit is 1,024."""
WHOLE = "all"


def cut(weights: Sequence[float], chunk_bytes: float) -> list[str]:
    """Consecutive items in chunks of about equal weight; see CHUNK_MB, FEW_CHUNKS, MAX_CHUNKS."""
    total = sum(weights)
    n_wanted = -int(-total // chunk_bytes)
    if n_wanted > FEW_CHUNKS:
        n_wanted = FEW_CHUNKS - (FEW_CHUNKS - n_wanted) // 4
    n_chunks = max(1, min(MAX_CHUNKS, len(weights), n_wanted))
    chunk_of: list[int] = []
    before = 0.0
    for weight in weights:
        middle = before + weight / 2
        chunk_of.append(min(n_chunks - 1, int(middle * n_chunks / total)) if total else 0)
        before += weight
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for index, chunk in enumerate(chunk_of):
        first.setdefault(chunk, index)
        last[chunk] = index
    return [f"{first[chunk]}-{last[chunk]}" for chunk in first]


def items_of(chunk: str, n_items: int) -> range:
    """The items that a chunk of a pass with `n_items` names."""
    if chunk == WHOLE:
        return range(n_items)
    first, _, last = chunk.partition("-")
    return range(int(first), min(int(last) + 1, n_items))
