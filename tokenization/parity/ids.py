"""Lists of ids beside each other: where they differ, what one side puts around every text, where it reads special tokens.

Standard library only: a trainer's check must work without the pipeline.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import TypeAlias

__all__ = ["NO_WRAP", "Ids", "Wrap", "common_wrap", "first_difference", "reads_special_tokens", "spells_special"]

Ids: TypeAlias = tuple[int, ...]

LONGEST_LEAD = 4
"""Ids that a tokenizer may put on either side of a text."""
LONGEST_ALIGNED = 4_000
"""Ids around the first and last difference that are aligned to find special tokens; the time is quadratic."""
_LOOKALIKE = re.compile(r"<[|｜][^<>\s]{1,40}[|｜]>|</?[a-zA-Z_]{1,20}>|\[/?[A-Z_]{2,20}\]")


@dataclass(frozen=True, slots=True)
class Wrap:
    """Ids that a tokenizer puts around every text."""

    lead: Ids = ()
    tail: Ids = ()

    def strip(self, ids: Ids) -> Ids:
        """Without them, where they are there."""
        if self.lead and ids[: len(self.lead)] == self.lead:
            ids = ids[len(self.lead) :]
        if self.tail and ids[len(ids) - len(self.tail) :] == self.tail:
            ids = ids[: len(ids) - len(self.tail)]
        return ids


NO_WRAP = Wrap()


def common_wrap(inner: Sequence[Ids], outer: Sequence[Ids]) -> Wrap:
    """What `outer` has around `inner` in most of the texts that have an inner part; nothing where that is not clear."""
    found: Counter[Wrap] = Counter()
    for inside, whole in zip(inner, outer, strict=True):
        room = len(whole) - len(inside)
        if not inside or not 0 <= room <= 2 * LONGEST_LEAD:
            continue
        starts = (start for start in range(min(room, LONGEST_LEAD) + 1) if whole[start : start + len(inside)] == inside)
        start = next(starts, None)
        if start is not None:
            found[Wrap(whole[:start], whole[start + len(inside) :])] += 1
    wraps = found.most_common(1)
    if wraps and 2 * wraps[0][1] > found.total():
        return wraps[0][0]
    # Where ids differ everywhere, what stands around nothing at all is what is put around every text.
    nothing = next((whole for inside, whole in zip(inner, outer, strict=True) if not inside and whole), ())
    if not 0 < len(nothing) <= LONGEST_LEAD:
        return NO_WRAP
    fits = {
        n: sum(whole[:n] == nothing[:n] and whole[len(whole) - len(nothing) + n :] == nothing[n:] for whole in outer)
        for n in range(len(nothing), -1, -1)
    }
    lead = max(fits, key=lambda n: fits[n])
    return Wrap(nothing[:lead], nothing[lead:])


def first_difference(one: Ids, other: Ids) -> int:
    """Place of the first difference; the shorter length where one begins with the other."""
    shared = min(len(one), len(other))
    return next((place for place in range(shared) if one[place] != other[place]), shared)


def spells_special(text: str, names: Sequence[str] = ()) -> bool:
    """Whether a text holds what looks like a special token, or one of these names."""
    return bool(_LOOKALIKE.search(text)) or any(name in text for name in names)


def reads_special_tokens(ours: Ids, theirs: Ids, is_special: Callable[[int], bool]) -> bool:
    """Whether every place at which `theirs` differs holds a special token of theirs."""
    if not any(is_special(index) for index in theirs):
        return False
    head = first_difference(ours, theirs)
    tail = min(first_difference(ours[::-1], theirs[::-1]), len(ours) - head, len(theirs) - head)
    left, right = ours[head : len(ours) - tail], theirs[head : len(theirs) - tail]
    if max(len(left), len(right)) > LONGEST_ALIGNED:
        return False
    if not right:
        # What differs was taken away up to a special token: that swallows blanks beside it (lstrip, rstrip).
        return any(is_special(index) for index in theirs[max(0, head - 1) : head + 1])
    blocks = SequenceMatcher(None, left, right, autojunk=False).get_opcodes()
    return all(
        any(is_special(index) for index in right[max(0, low - 1) : high + 1])
        for kind, _, _, low, high in blocks
        if kind != "equal"
    )
