"""The sizes of a text, all from one visit while it lies in the processor's cache."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from curation.text.characters import letters_in
from curation.text.jit import kernel
from curation.text.lines import lines_in
from curation.text.memory import address_of
from curation.text.spans import Bytes, Int64s, Where, bounds
from curation.text.tables import Script
from curation.text.words import HANDFUL, words_in

__all__ = ["Profile", "profile"]

N_SCRIPTS = len(Script)


class Profile(NamedTuple):
    """Sizes of n texts."""

    n_bytes: Int64s
    """int64[n]: bytes of UTF-8."""
    n_chars: Int64s
    """int64[n]: characters (code points), as `count_chars` has them."""
    n_words: Int64s
    """int64[n]: words, as `count_words` has them."""
    n_lines: Int64s
    """int64[n]: lines, blank ones too, as `line_spans` has them."""
    letters: npt.NDArray[np.int32]
    """int32[n, len(Script)]: letters of each script, as `script_counts` has them."""


def profile(data: Bytes, where: Where) -> Profile:
    """Bytes, characters, words, lines and letters by script of each text."""
    return Profile(*_profile(*bounds(data, where)))


@kernel
def _profile(data: Bytes, starts: Int64s, ends: Int64s) -> tuple[Int64s, Int64s, Int64s, Int64s, npt.NDArray[np.int32]]:
    base, limit = address_of(data), address_of(data) + len(data)
    places = np.empty(HANDFUL, np.int64), np.empty(HANDFUL, np.int64)
    n = len(starts)
    chars, words, lines = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    letters = np.zeros((n, N_SCRIPTS), np.int32)
    for row in range(n):
        p, end = base + starts[row], base + ends[row]
        chars[row] = letters_in(p, end, limit, letters[row])
        words[row] = words_in(p, end, limit, places)
        lines[row] = lines_in(p, end)
    return ends - starts, chars, words, lines, letters
