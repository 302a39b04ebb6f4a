"""The blacklist: a numbered, append-only history of what a curation run must not let in.

Costs: see `blacklist`. The layout on disk: see `history`.
"""

from __future__ import annotations

from curation.blacklist.blacklist import Blacklist
from curation.blacklist.history import append
from curation.blacklist.snapshot import compact

__all__ = ["Blacklist", "append", "compact"]
