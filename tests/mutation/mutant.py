"""A mutant: one deliberate fault in a step, put in and taken out again in this process; no file is ever changed."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

__all__ = ["CLASSES", "Mutant", "clear_caches", "replaced"]

CLASSES = ("threshold", "table", "comparison", "logic", "side", "reason", "constant", "scoring")
"""What a fault is: a setting or a line of a table moved, a comparison or the join of two broken, a rule turned to its other
side, a reason that never fires, a constant of scoring moved, a draw of other faults in the code that scores."""


@dataclass(frozen=True)
class Mutant:
    """One fault of one step."""

    step: str
    of: str
    """One of CLASSES."""
    name: str
    """What is changed and how, such as `min_units 16 -> 19.2`; unique within the step and class."""
    apply: Callable[[], AbstractContextManager[None]]
    """While it is entered, the step has the fault."""
    scores: bool = False
    """Whether scores may change, so that `decide` alone does not tell."""
    concerns: Callable[[Mapping[str, Any]], bool] = lambda settings: True
    """Which settings of the step it can matter to: under others nothing need be asked."""
    table: str | None = None
    """The file beside the step that holds what is changed, if that is a table."""


@contextmanager
def replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    """An attribute, or an entry of a dict, with another value for a while."""
    if isinstance(owner, dict):
        before = owner[name]
        owner[name] = value
        try:
            yield
        finally:
            owner[name] = before
    else:
        before = getattr(owner, name)
        setattr(owner, name, value)
        try:
            yield
        finally:
            setattr(owner, name, before)


def clear_caches(names: set[tuple[str, str]]) -> None:
    """Empty the caches of functions given as (module, qualified name): what they remember was computed without the fault."""
    for found in gc.get_objects():
        if type(found).__name__ == "_lru_cache_wrapper":
            wrapped = found.__wrapped__
            if (wrapped.__module__, wrapped.__qualname__) in names:
                found.cache_clear()
