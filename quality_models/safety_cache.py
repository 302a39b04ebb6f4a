"""A folder of the cache that is made once and appears complete or not at all, whoever makes it, and whatever kills it.

    folder = made_once("corpusmill-0123abcd", make)      # make(empty folder) is called where it is not there yet

It is made under a hidden name and renamed; a second process waits for the first. A folder whose files are not those that were
made is made anew. Where the cache lies: $CORPUSMILL_CACHE, else `.cache/corpusmill` of the checkout that the package runs from,
else the user's cache.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from quality_models.lm_folder import digest

__all__ = ["cache_folder", "made_once"]

MADE = "made.json"
"""Checksums of the files of a folder, written last."""
STALE_SECONDS = 24 * 3600
"""Age from which on a half-made folder is a dead process's."""


def cache_folder() -> Path:
    """Where made folders lie; it need not be there."""
    if said := os.environ.get("CORPUSMILL_CACHE"):
        return Path(said).expanduser().absolute()
    checkout = Path(__file__).resolve().parents[1]
    if (checkout / "pyproject.toml").is_file() and os.access(checkout, os.W_OK):
        return checkout / ".cache" / "corpusmill"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "corpusmill"


def made_once(name: str, make: Callable[[Path], None]) -> Path:
    """The folder of a name, which must say everything that decides its content.

    Raises:
        ValueError: it cannot be written (no place, no right); or what `make` raises.
    """
    parent = cache_folder()
    target = parent / name
    if _is_intact(target):
        return target
    try:
        parent.mkdir(parents=True, exist_ok=True)
        with _alone(parent / f".{name}.lock"):
            if not _is_intact(target):
                _make(target, make)
    except OSError as error:
        raise ValueError(
            f"{target}: expected to be able to write a model there once, found {error.strerror or error}; "
            "make room, or name another folder in CORPUSMILL_CACHE"
        ) from error
    return target


def _make(target: Path, make: Callable[[Path], None]) -> None:
    _forget_dead(target)
    made = Path(tempfile.mkdtemp(prefix=f".{target.name}-{os.getpid()}-", suffix=".tmp", dir=target.parent))
    try:
        new = made / "new"
        new.mkdir()
        make(new)
        files = sorted(path for path in new.iterdir())
        sums = {path.name: digest([path]) for path in files}
        (new / MADE).write_text(json.dumps(sums, indent=1) + "\n", encoding="utf-8")
        for path in [*files, new / MADE, new]:
            _sync(path)
        if target.exists() and not _is_intact(target):
            target.rename(made / "damaged")
        try:
            new.rename(target)
        except OSError:
            # Where locks do not work another process may have been faster; what it made is as good.
            if not _is_intact(target):
                raise
        _sync(target.parent)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _is_intact(folder: Path) -> bool:
    """Whether it is there, and its files are those that were written."""
    try:
        sums = json.loads((folder / MADE).read_text(encoding="utf-8"))
        return bool(sums) and all(digest([folder / name]) == found for name, found in sums.items())
    except (OSError, ValueError, AttributeError):
        return False


def _forget_dead(target: Path) -> None:
    """Delete what processes left that were killed while they made this folder."""
    for path in target.parent.glob(f".{target.name}-*.tmp"):
        with contextlib.suppress(FileNotFoundError):
            if time.time() - path.stat().st_mtime > STALE_SECONDS:
                shutil.rmtree(path, ignore_errors=True)


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[None]:
    """No other process of this machine is in here; where the file system knows no locks, one may be."""
    with path.open("ab") as file:
        with contextlib.suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
