"""What a crash of the machine must not undo. Costs an fsync: a few milliseconds. Needs the standard library only."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["fsync_folder"]


def fsync_folder(folder: Path) -> None:
    """Bring the names in a folder to the disk: a file that was made or renamed is lost without.

    Raises:
        OSError: it is no folder, or cannot be opened.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
