"""What the crawl says, made safe to print: a terminal obeys escape sequences, and a reader believes what he sees.

Line breaks, control characters, and marks that turn the direction of writing or take no room are shown as escapes;
letters, signs and blanks of every script stay as they are. A leaf of the package: imports nothing of it.
"""

from __future__ import annotations

import logging
import unicodedata

__all__ = ["PlainFormatter", "printable", "printable_lines"]

_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def printable(text: str) -> str:
    """The text on one line, whatever is not printable in it escaped (`\\n`, `\\u001b`, `\\U000e0001`)."""
    return text if text.isprintable() else "".join(_shown(character) for character in text)


def printable_lines(text: str) -> str:
    """The same, but line breaks stay line breaks."""
    return "\n".join(printable(line) for line in text.split("\n"))


def _shown(character: str) -> str:
    # Zs: a wide blank of Chinese text is no danger; the line and paragraph separators are Zl and Zp.
    if character.isprintable() or unicodedata.category(character) == "Zs":
        return character
    code = ord(character)
    return _SHORT.get(character) or (f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}")


class PlainFormatter(logging.Formatter):
    """Log lines may name what the crawl holds."""

    def format(self, record: logging.LogRecord) -> str:
        return printable_lines(super().format(record))
