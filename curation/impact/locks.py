"""Locks between commands that work below one root at once: whoever comes second waits, and then finds the work done."""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
from collections.abc import Iterator
from pathlib import Path

from curation.errors import RunError

__all__ = ["hold", "is_free", "unused", "waiting_lock"]

log = logging.getLogger("corpusmill")


@contextlib.contextmanager
def waiting_lock(root: Path, name: str) -> Iterator[int]:
    """Hold a lock for this process, which waits until nobody else holds it; it goes with the process, even when killed.

    Yields the lock's file descriptor: a process that is given it holds the lock too, as long as it lives.

    Args:
        root: folder of all that `impact` keeps; locks lie in `locks/` there.

    Raises:
        RunError: the folder cannot be written.
    """
    path = root / "locks" / f"{name}.lock"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        stream = path.open("w")
    except OSError as error:
        raise RunError(f"{path} could not be written: {error.strerror or error}. Choose another --root.") from error
    with stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            log.info("waiting for another command that is at the same work (%s)", name)
            fcntl.flock(stream, fcntl.LOCK_EX)
        yield stream.fileno()


_HELD: dict[tuple[str, int], int] = {}
"""Locks of what this process makes use of: (path, process) -> file descriptor, open until the process ends."""


def hold(own: Path, kind: str, name: str) -> None:
    """Keep a run, tree or sample from being deleted, from now on until this process ends. Waits for one that is being deleted.

    Hold first, look whether it is there then.

    Args:
        own: folder of all that `impact` keeps.
        kind: `runs`, `trees` or `samples`.

    Raises:
        RunError: the lock cannot be written.
    """
    path = _in_use(own, kind, name)
    key = (str(path), os.getpid())
    if key in _HELD and _is_file(path, _HELD[key]):
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        fcntl.flock(descriptor, fcntl.LOCK_SH)
    except OSError as error:
        raise RunError(f"{path} could not be written: {error.strerror or error}. Choose another --root.") from error
    _HELD[key] = descriptor


@contextlib.contextmanager
def unused(own: Path, kind: str, name: str) -> Iterator[bool]:
    """Yields whether no process holds a run, tree or sample; as long as this lasts, none can begin to."""
    path = _in_use(own, kind, name)
    with contextlib.ExitStack() as stack:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            stream = stack.enter_context(path.open("w"))
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            free = False
        else:
            free = True
        yield free


def _in_use(own: Path, kind: str, name: str) -> Path:
    return own / "locks" / f"{kind}-{name}.in-use"


def _is_file(path: Path, descriptor: int) -> bool:
    """Whether an open file is still the one at the path: the folder may have been deleted and made anew."""
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except OSError:
        return False


def is_free(root: Path, name: str) -> bool:
    """Whether nobody holds a lock right now."""
    path = root / "locks" / f"{name}.lock"
    try:
        with path.open("w") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True
