"""Counting the characters of each kind."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from curation.markup.bytes import Int, Kinds
from curation.markup.kinds import Kind
from curation.markup.lines import mark_lines
from curation.markup.spans import AHEAD, mark_spans
from curation.text.jit import inlined, kernel
from curation.text.spans import Bytes, Int64s, Where, bounds

__all__ = ["kind_counts", "kinds_of"]

N_KINDS = len(Kind)
TEXT = int(Kind.TEXT)


@inlined
def _is_character(byte: Int) -> bool:
    """Whether a byte begins a character that is no ASCII blank."""
    return bool((byte & 0xC0 != 0x80) & (byte != 32) & ((byte < 9) | (byte > 13)))


def kind_counts(data: Bytes, where: Where) -> Int64s:
    """Characters of each kind in each text, without ASCII blanks and line ends: int64[n, len(Kind)]."""
    return _kind_counts(*bounds(data, where))


def kinds_of(text: str) -> Kinds:
    """The kind of each byte of one text in UTF-8: uint8[n_bytes]. For explaining and for tests."""
    data = np.frombuffer(text.encode("utf-8"), np.uint8)
    return _kinds_of(*bounds(data, np.array([0, len(data)], np.int64))[:1])


@kernel
def _kinds_of(data: Bytes) -> Kinds:
    kinds = np.zeros(len(data), np.uint8)
    mark_lines(data, kinds, mark_spans(data, kinds, np.zeros(AHEAD, np.int64)))
    return kinds


@kernel
def _kind_counts(data: Bytes, starts: Int64s, ends: Int64s) -> npt.NDArray[np.int64]:
    counts = np.zeros((len(starts), N_KINDS), np.int64)
    longest = 0
    for row in range(len(starts)):
        longest = max(longest, ends[row] - starts[row])
    kinds = np.zeros(longest, np.uint8)
    ahead = np.zeros(AHEAD, np.int64)
    for row in range(len(starts)):
        text = data[starts[row] : ends[row]]
        n = len(text)
        kinds[:n] = 0
        visible = mark_lines(text, kinds, mark_spans(text, kinds, ahead))
        for i in range(np.uint64(n)):
            if kinds[i] != TEXT:
                counts[row, kinds[i]] += _is_character(text[i])
        counts[row, TEXT] = visible - counts[row].sum()
    return counts
