"""What `impact` keeps for the next time, bounded: of each kind the 20 that were of use last."""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Collection
from pathlib import Path

from curation.impact.locks import is_free, unused
from curation.impact.seeds import CODE_FILE

__all__ = ["KEPT_OF_EACH", "prune"]

KEPT_OF_EACH = 20
_KINDS = ("runs", "trees", "samples", "tokens")
_STALE_SECONDS = 86_400
"""Age from which on a hidden name is what a killed command left."""


def prune(own: Path, used: Collection[Path], keep: int = KEPT_OF_EACH) -> None:
    """Delete what has been of no use for the longest time; what any command makes use of (`locks.hold`) stays.

    Args:
        own: folder of all that `impact` keeps.
        used: runs, trees and samples that are of use now.
    """
    for kind in _KINDS:
        there = list((own / kind).glob("*"))
        for path in [
            one for one in there if one.name.startswith(".") and time.time() - _last_use(one) > _STALE_SECONDS
        ]:
            _delete(path)
        kept = sorted((one for one in there if not one.name.startswith(".")), key=_last_use, reverse=True)
        for path in [one for one in kept[keep:] if one not in used]:
            with unused(own, kind, path.name) as free:
                if free and (kind != "runs" or is_free(own, path.name)):
                    _delete(path)


def _last_use(path: Path) -> float:
    for one in (path / CODE_FILE, path):
        with contextlib.suppress(OSError):
            return one.stat().st_mtime
    return 0.0


def _delete(path: Path) -> None:
    """Give it another name first, so that nobody finds half of it."""
    gone = path.with_name(f".{path.name.lstrip('.')}.gone")
    with contextlib.suppress(OSError):
        shutil.rmtree(gone, ignore_errors=True)
        path.rename(gone)
        if gone.is_dir():
            shutil.rmtree(gone, ignore_errors=True)
        else:
            gone.unlink()
