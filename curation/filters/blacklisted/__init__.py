"""Is the document blacklisted: by its text, as a near copy, by its URL or by its domain?"""

from __future__ import annotations

from curation.filters.blacklisted.config import BlacklistedConfig
from curation.filters.blacklisted.step import Blacklisted

__all__ = ["Blacklisted", "BlacklistedConfig"]
