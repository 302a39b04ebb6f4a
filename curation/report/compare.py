"""Two texts side by side: the place where they begin to differ, and what one has there that the other has not.

Near-copies often differ only after thousands of characters, so what is shown begins shortly before the first
difference. Looks at `COMPARED_BYTES` of each text and marks the words of one excerpt: about 1 ms a pair, whatever
the length of the documents.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from curation.report.excerpt import Excerpt, shown, take

__all__ = ["COMPARED_BYTES", "Comparison", "compare", "first_difference", "mark_differences"]

COMPARED_BYTES = 65_536
"""Bytes of each document of a pair that are searched for the first difference."""
_CONTEXT_BYTES = 200
"""Bytes before the first difference in which a place to begin is looked for."""
_SHOWN_AFTER = 60
"""Characters that must follow the first difference for a beginning of the text to show it."""

_TOKENS = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|\w+|\s+|.", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Pieces of two texts from the same byte on, with the differences marked."""

    left: Excerpt
    right: Excerpt
    left_html: Markup
    right_html: Markup
    note: str
    """Where the two differ, if that is not to be seen from the beginnings."""


def compare(left: bytes, right: bytes, n_left: int, n_right: int) -> Comparison:
    """Compare two documents.

    Args:
        left, right: the first `COMPARED_BYTES` of each, UTF-8.
        n_left, n_right: bytes of the whole documents.
    """
    place = first_difference(left, right)
    begin = 0 if place is None else _where_to_begin(left, place)
    pieces = _piece(left, n_left, begin), _piece(right, n_right, begin)
    note = ""
    if place is None:
        whole = n_left == len(left) and n_right == len(right)
        note = "the same text" if whole else f"no difference in the first {COMPARED_BYTES // 1024} kB"
    elif begin:
        note = f"the same up to byte {place:,}"
    return Comparison(*pieces, *mark_differences(*pieces), note)


def first_difference(left: bytes, right: bytes) -> int | None:
    """The first byte at which two texts differ or one has ended; None where they are equal."""
    n = min(len(left), len(right))
    differs = np.frombuffer(left, np.uint8, n) != np.frombuffer(right, np.uint8, n)
    if differs.any():
        return int(differs.argmax())
    return n if len(left) != len(right) else None


def _where_to_begin(data: bytes, place: int) -> int:
    """Byte from which an excerpt shows the difference at `place`: 0 if the beginning does, else a line or a word before."""
    if len(data[:place].decode("utf-8", "ignore")) + _SHOWN_AFTER <= len(take(data).text):
        return 0
    low = max(0, place - _CONTEXT_BYTES)
    high = max(low, place - _CONTEXT_BYTES // 4)
    found = data.rfind(b"\n", low, high)
    if found < 0:
        found = data.find(b" ", low, high)
    if found >= 0:
        return found + 1
    while low and data[low] & 0xC0 == 0x80:
        low -= 1
    return low


def _piece(data: bytes, n_bytes: int, begin: int) -> Excerpt:
    piece = take(data, begin=min(begin, len(data)))
    return Excerpt(piece.text, piece.cut or len(data) < n_bytes, n_bytes, piece.begin)


def mark_differences(left: Excerpt, right: Excerpt) -> tuple[Markup, Markup]:
    """Both texts as HTML, with the words (characters in Chinese, Japanese, Korean) marked that the other one lacks.

    What follows the end of the other excerpt is not marked if that one was cut there.
    """
    tokens = _TOKENS.findall(left.text), _TOKENS.findall(right.text)
    marked: tuple[list[Markup], list[Markup]] = ([], [])
    operations = difflib.SequenceMatcher(None, *tokens, autojunk=False).get_opcodes()
    for position, (kind, *bounds) in enumerate(operations, start=1):
        beyond = position == len(operations) and (
            (kind == "delete" and right.cut) or (kind == "insert" and left.cut) or (kind == "replace" and left.cut)
        )
        for side in (0, 1):
            text = shown("".join(tokens[side][bounds[2 * side] : bounds[2 * side + 1]]))
            if text:
                marked[side].append(text if kind == "equal" or beyond else Markup("<mark>{}</mark>").format(text))
    return Markup("").join(marked[0]), Markup("").join(marked[1])
