"""Threads that each work on a part of a batch, on a CPU: one core a thread, and they meet once a step.

torch's own threads meet within each product of matrices. Where another program takes a core for a while, all of them wait
for the one that has lost it: measured beside one busy process on two cores, products ran slower on two threads than on one.
On a GPU there is one thread: this one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import torch

__all__ = ["Workers"]

Item = TypeVar("Item")
Result = TypeVar("Result")


class Workers:
    """As many threads as torch would use. torch gets one for itself until `close`."""

    def __init__(self, device: Any) -> None:
        self.threads = torch.get_num_threads() if device.type == "cpu" else 1
        self.pool = (
            ThreadPoolExecutor(self.threads, "safety", torch.set_num_threads, (1,)) if self.threads > 1 else None
        )

        self.before = torch.get_num_threads()
        if self.pool:
            torch.set_num_threads(1)

    def close(self) -> None:
        """Give torch its threads back."""
        if self.pool:
            self.pool.shutdown()
        torch.set_num_threads(self.before)

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """Results in the order of the items."""
        return self.pool.map(function, items) if self.pool else map(function, items)
