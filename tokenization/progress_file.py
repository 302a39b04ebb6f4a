"""The file of a progress ledger, held under a lock: read, and appended to by one write that has reached the disk.

Costs an fsync an append. `flock` must work between the machines that append. Needs the standard library only.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path

from tokenization.durable import fsync_folder
from tokenization.progress_line import ProgressError

__all__ = ["LedgerFile", "opened"]

_LOCK_SECONDS = 60.0
"""A lock is held for a reading, one write and one fsync: who waits longer has met a hanging disk or a stopped process."""


class LedgerFile:
    """A ledger's file while nobody else may append."""

    def __init__(self, descriptor: int, folders: list[Path]) -> None:
        self._descriptor = descriptor
        self._folders = folders

    def read(self) -> bytes:
        """All that is in it."""
        with open(self._descriptor, "rb", closefd=False) as stream:
            stream.seek(0)
            return stream.read()

    def append(self, line: bytes) -> None:
        """Append a line by one write; after an error the file is as it was, or ends in a torn line."""
        size = os.fstat(self._descriptor).st_size
        # Behind a torn line ours begins on a new one.
        whole = not size or os.pread(self._descriptor, 1, size - 1) == b"\n"
        data = line if whole else b"\n" + line
        if os.write(self._descriptor, data) != len(data):
            os.ftruncate(self._descriptor, size)
            raise OSError(errno.ENOSPC, "only a part of the line could be written")
        self.sync()
        for folder in self._folders if not size else []:
            fsync_folder(folder)

    def sync(self) -> None:
        """Bring to the disk what was appended before, by whomever."""
        os.fsync(self._descriptor)


@contextlib.contextmanager
def opened(path: Path) -> Iterator[LedgerFile]:
    """The file, made if it is not there, under its lock.

    Raises:
        ProgressError: it cannot be made, locked, read or written.
    """
    descriptor = -1
    try:
        folders = [path.parent, *(folder.parent for folder in path.parents if not folder.exists())]
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK, 0o666)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is no regular file")
        _lock(descriptor)
        yield LedgerFile(descriptor, folders)
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        remedy = "Free some space" if full else "Check that its folder is one, can be written to and locked"
        raise ProgressError(
            f"the progress ledger {path} could not be written: {error.strerror}. {remedy}, then append again."
        ) from error
    finally:
        if descriptor >= 0:
            fcntl.flock(descriptor, fcntl.LOCK_UN)  # closing alone would not, if a child was forked meanwhile
            os.close(descriptor)


def _lock(descriptor: int) -> None:
    give_up = time.monotonic() + _LOCK_SECONDS
    while True:
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > give_up:
                raise OSError(errno.EAGAIN, f"another process has held its lock for {_LOCK_SECONDS:.0f} s") from None
            time.sleep(0.005)
