"""What lies in the files that a side's config names: term lists, models, tokenizers, earlier runs.

A path that stays the same says nothing of what lies there, so the content is part of what names a side's run. Steps of this
code know what else decides their result (`Step.model_checksums`). Of other code nothing is asked: there each file that the
settings name counts. Costs what the steps need to open their models, 0.5 to 1 s for those that ship, which judging needs
anyway; of other code a read of the files, of those above 32 MB a look at size and time.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from curation.config import yaml_mapping
from curation.errors import ConfigError
from curation.impact.sides import Side
from curation.run import file_sha256

__all__ = ["contents_of"]

_LARGE = 32 * 2**20
"""Bytes from which on a file is known by its size and time of change."""


def contents_of(side: Side) -> dict[str, dict[str, str]]:
    """Of this code by step what it says of its models and lists; of other code under "" each path that exists and its digest.

    Raises:
        ConfigError: what a step or the config names is not there, or cannot be read.
    """
    if side.config is not None:
        return {step.name: dict(step.model_checksums()) for step in side.config.steps}
    steps = yaml_mapping(side.text, side.label).get("steps")
    try:
        named = sorted(set(_paths(steps)))
        return {"": {str(path): _digest(path) for path in named}}
    except OSError as error:
        raise ConfigError(f"{error.filename}, which {side.label} names, cannot be read: {error.strerror}.") from error


def _paths(value: Any) -> Iterator[Path]:
    """Absolute paths of files and folders anywhere in plain data; `place_paths` has made those of a config absolute."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, Mapping):
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one
        elif isinstance(one, str) and one.startswith("/") and len(one) < 4096 and "\0" not in one:
            path = Path(one)
            if path != path.parent and path.exists():
                yield path


def _digest(path: Path) -> str:
    """Of a file, or of all files below a folder with their names."""
    if not path.is_dir():
        return _file_digest(path)
    total = hashlib.sha256()
    for folder, folders, files in os.walk(path):
        folders.sort()
        for name in sorted(files):
            file = Path(folder, name)
            total.update(os.fsencode(file.relative_to(path)) + b"\0" + _file_digest(file).encode() + b"\n")
    return total.hexdigest()


def _file_digest(path: Path) -> str:
    about = path.stat()
    return file_sha256(path) if about.st_size <= _LARGE else f"{about.st_size} bytes of {about.st_mtime_ns}"
