"""Paths in settings as a reader of a sheet needs them: where a file lies on one machine is no difference between two sides.

The base's files are unpacked from a revision into `impact/trees/<commit>-...`; the new side's lie in the working tree. So the
same file of a repository has two paths, and what differs is what stands in it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from curation.steps import STEPS, step_class

__all__ = ["holds_paths", "relative_paths"]

_UNPACKED = re.compile(r"/.*/impact/trees/[0-9a-f]{40}(?:-[0-9a-f]+)?/(.+)", re.DOTALL)
LEAST_PARTS = 2
"""Of a path that lies in no revision: its folder and its name."""


def holds_paths(step: str, key: str) -> bool:
    """Whether a setting (`files`, `cascade.model`) may hold paths; of a step that only other code has it may."""
    if step not in STEPS:
        return True
    config = step_class(step).Config
    return any(key == one or key.startswith(f"{one}.") for one in config.paths | config.names_or_paths)


def relative_paths(before: Any, after: Any) -> tuple[Any, Any]:
    """Two values of one setting with their absolute paths made short: alike where they mean the same file of a repository."""
    paths = {one for value in (before, after) for one in _paths(value)}
    unpacked = {path: found[1] for path in paths if (found := _UNPACKED.fullmatch(os.path.normpath(path)))}
    names: dict[str, str] = {}
    for path in paths:
        own = os.path.normpath(path)
        same = (one for one in sorted(unpacked.values(), key=len, reverse=True) if own.endswith(f"/{one}"))
        if path in unpacked:
            names[path] = unpacked[path]
        elif (name := next(same, None)) is not None:
            names[path] = name
    rest = sorted({os.path.normpath(path) for path in paths - names.keys()})
    tails = dict(zip(rest, _tails(rest), strict=True))
    names |= {path: tails[os.path.normpath(path)] for path in paths - names.keys()}
    return _named(before, names), _named(after, names)


def _paths(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        if value.startswith("/") and "\n" not in value:
            yield value
    elif isinstance(value, Mapping):
        for one in value.values():
            yield from _paths(one)
    elif isinstance(value, Sequence):
        for one in value:
            yield from _paths(one)


def _tails(paths: Sequence[str]) -> list[str]:
    """Ends of different paths, long enough to tell them apart."""
    parts = [PurePosixPath(path).parts for path in paths]
    for n in range(LEAST_PARTS, max(map(len, parts), default=LEAST_PARTS) + 1):
        if len({one[-n:] for one in parts}) == len(parts):
            return [
                path if len(one) <= n + 1 else f".../{'/'.join(one[-n:])}"
                for path, one in zip(paths, parts, strict=True)
            ]
    return list(paths)


def _named(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return names.get(value, value)
    if isinstance(value, Mapping):
        return {key: _named(one, names) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_named(one, names) for one in value]
    return value
