"""A pass: independent items of one kind of work, with a barrier before and after. A leaf of the package."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Pass", "used"]


@dataclass(frozen=True)
class Pass:
    """Items that may run in any order, on any worker, twice, or not at all if their marker stands."""

    stage: str
    name: str
    """`ingest.read`, `exact.scatter`, `exact`, `html_noise+length`, `pack.encode` ..."""
    n_items: int
    what: str
    """Unit of an item: part, shard, hash range, file."""


def used(markers: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Seconds of all items together, and the highest peak memory."""
    return {
        "seconds": sum(marker["seconds"] for marker in markers),
        "peak_rss_mb": max((marker["peak_rss_mb"] for marker in markers), default=0.0),
    }
