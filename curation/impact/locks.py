"""Locks between commands that work below one root at once: whoever comes second waits, and then finds the work done."""

from __future__ import annotations

import contextlib
import fcntl
import logging
from collections.abc import Iterator
from pathlib import Path

from curation.errors import RunError

__all__ = ["is_free", "waiting_lock"]

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
