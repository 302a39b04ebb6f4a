"""The view of a term, as a list of what must stand in a text, in order. In plain Python: terms are few and short."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import NamedTuple

from curation.filters.safety_terms.characters import (
    ANY_SCRIPT,
    CODE,
    JAMO,
    KIND_AT,
    MANY_FORMS,
    MARK,
    SCRIPT_AT,
    SEPARATOR,
    SIGN,
    SOLID,
    TYPE_AT,
    UNSPACED,
    characters,
)

__all__ = ["HANDLE", "MOST_SOLIDS", "Solid", "spelled", "spelled_context"]

MOST_SOLIDS = 40
"""Letters and digits of the longest term."""
HANDLE = "@"
"""A context word that is the sign itself, as names of accounts and addresses have it."""
FIRST_SYLLABLE, LAST_SYLLABLE = 0xAC00, 0xD7A3


class Solid(NamedTuple):
    """A letter or digit of a term."""

    code: int
    kind: int
    """LETTER, UNSPACED or DIGIT of `characters`; SIGN in HANDLE alone."""
    scripts: int
    """Bits of scripts that it is read as; 0 for those that look like no other."""
    free: bool
    """Whether the term has a blank or sign before it."""

    @property
    def unspaced(self) -> bool:
        return self.kind == UNSPACED


@cache
def _pairs() -> dict[int, int]:
    table = characters()
    return dict(zip(table.pairs.tolist(), table.joined.tolist(), strict=True))


@cache
def entries_of(character: str) -> tuple[int, ...]:
    """What a character is in the view, see `characters`: none, one or several entries."""
    table, code = characters(), ord(character)
    entry = int(table.blocks[int(table.places[code >> 6]) << 6 | code & 63])
    if entry >> TYPE_AT & 0xFF == MANY_FORMS:
        start = entry >> TYPE_AT + 8
        return tuple(int(one) for one in table.pool[start : start + (entry & CODE)])
    return (entry,)


def join(before: int, entry: int) -> int:
    """The entry that a mark or jamo makes with the one before it; 0 for none."""
    code, mark = before & CODE, entry & CODE
    if entry >> TYPE_AT & 0xFF == MARK:
        joined = _pairs().get(code << KIND_AT | mark, 0)
        scripts = ANY_SCRIPT << SCRIPT_AT
        return joined & ~scripts | before & scripts if joined else 0
    if 0x1100 <= code <= 0x1112 and mark <= 0x1175:
        return before - code + FIRST_SYLLABLE + ((code - 0x1100) * 21 + mark - 0x1161) * 28
    if FIRST_SYLLABLE <= code <= LAST_SYLLABLE and (code - FIRST_SYLLABLE) % 28 == 0 and mark >= 0x11A8:
        return before + mark - 0x11A7
    return 0


@lru_cache(maxsize=1 << 16)
def spelled(term: str) -> tuple[Solid, ...]:
    """Letters and digits of a term, at most a few more than it has characters. Signs count as blanks."""
    solids: list[int] = []
    free: list[bool] = []
    gap = True
    for entry in (entry for character in term for entry in entries_of(character)):
        kind = entry >> TYPE_AT & 0xFF
        if kind in (MARK, JAMO) and solids and not gap and (joined := join(solids[-1], entry)):
            solids[-1] = joined
        elif kind == JAMO or (kind == SOLID and entry >> KIND_AT & 3 != SIGN):
            solids.append(entry)
            free.append(gap)
            gap = False
        elif kind in (SEPARATOR, SOLID):
            gap = True
    free[:1] = [False] * len(free[:1])
    return tuple(
        Solid(one & CODE, one >> KIND_AT & 3, one >> SCRIPT_AT & ANY_SCRIPT, blank)
        for one, blank in zip(solids, free, strict=True)
    )


def spelled_context(word: str) -> tuple[Solid, ...]:
    """The same for a context word, which may be HANDLE."""
    return (Solid(ord(HANDLE), SIGN, 0, False),) if word == HANDLE else spelled(word)
