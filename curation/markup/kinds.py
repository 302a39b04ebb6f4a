"""What a byte of a text can belong to."""

from __future__ import annotations

from enum import IntEnum

__all__ = ["Kind"]


class Kind(IntEnum):
    """Columns of `kind_counts`. Numbers are never reused."""

    TEXT = 0
    """Prose, and whatever nothing else claims."""
    CODE = 1
    """Code that its author marked as such: fenced, in backticks, or a script that no browser would run."""
    LINK = 2
    """The address of a link after its scheme."""
    BARE_TAG = 3
    """A tag without attributes of a page: as likely an example as a left-over."""
    PAGE_TAG = 4
    """A tag with attributes that a server writes for a browser, a comment, a doctype."""
    SCRIPT = 5
    """Page scripts, JSON-LD, minified code, embedded data."""
    ENTITY = 6
    """Character references."""
    CSS = 7
    """Style sheets."""
    TEMPLATE = 8
    """Marks of template engines and shortcodes."""
