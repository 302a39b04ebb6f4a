"""Repeated lines and paragraphs.

    duplicate_lines                 lines that equal an earlier line of the text / lines
    duplicate_line_characters       characters of those / characters of all lines
    duplicate_paragraphs            paragraphs that equal an earlier one / paragraphs
    duplicate_paragraph_characters  characters of those / characters of all paragraphs

Blank lines are no lines here, and the blanks at the ends of a line do not count. A paragraph is a run of lines
between blank ones; two are equal if all their lines are. Where no line is blank, the text is one paragraph.
Source: Gopher (Rae et al. 2021, table A1) and FineWeb (`char_dup_ratio`). datatrove divides by
all characters, blanks among them, and strips no line for Gopher's rule; DCLM and dolma count first occurrences too.
Costs 0.1 ns a byte.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curation.filters.rules.parts import Hashes, Int32s, Parts
from curation.records import ScoreColumn
from curation.text.jit import inlined, kernel
from curation.text.memory import Int
from curation.text.spans import Int64s

__all__ = ["COLUMNS", "measure"]

COLUMNS = (
    ScoreColumn("duplicate_lines", pa.float32(), "share", "lines that equal an earlier one"),
    ScoreColumn("duplicate_line_characters", pa.float32(), "share", "characters in lines that equal an earlier one"),
    ScoreColumn("duplicate_paragraphs", pa.float32(), "share", "paragraphs that equal an earlier one"),
    ScoreColumn(
        "duplicate_paragraph_characters", pa.float32(), "share", "characters in paragraphs that equal an earlier one"
    ),
)
K = np.uint64(0x9E3779B97F4A7C15)


def measure(parts: Parts) -> dict[str, npt.NDArray[np.float32]]:
    """Shares of each document, float32[n]; 0 where it has no line that is not blank."""
    shares = np.zeros((len(parts.offsets) - 1, len(COLUMNS)), np.float32)
    _repeated(parts.line_hashes, parts.line_chars, parts.lines.offsets, shares)
    return {column.name: shares[:, i] for i, column in enumerate(COLUMNS)}


@inlined
def _duplicates(keys: Hashes, chars: Int64s, n: Int, table: Hashes, shares: npt.NDArray[np.float32], to: Int) -> None:
    """Shares of n keys, and of their characters, that occurred before, into `shares[to]` and `shares[to + 1]`.

    No key is 0. `table`: room for the first power of two that is not below 2 `n`.
    """
    bits = 4
    while 1 << bits < 2 * n:
        bits += 1
    mask, shift = (np.uint64(1) << np.uint64(bits)) - np.uint64(1), np.uint64(64 - bits)
    table[: 1 << bits] = 0
    repeated, of_chars, all_chars = 0, 0, 0
    for i in range(n):
        slot = keys[i] * K >> shift
        while table[slot] != 0 and table[slot] != keys[i]:
            slot = slot + np.uint64(1) & mask
        if table[slot] == keys[i]:
            repeated += 1
            of_chars += chars[i]
        table[slot] = keys[i]
        all_chars += chars[i]
    if n > 0:
        shares[to], shares[to + 1] = repeated / n, of_chars / all_chars


@kernel
def _repeated(hashes: Hashes, chars: Int32s, offsets: Int64s, shares: npt.NDArray[np.float32]) -> None:
    longest = 1
    for row in range(len(offsets) - 1):
        longest = max(longest, offsets[row + 1] - offsets[row])
    keys, sizes = np.empty(longest, np.uint64), np.empty(longest, np.int64)
    table = np.empty(max(4 * longest, 16), np.uint64)
    for row in range(len(offsets) - 1):
        n = 0
        for line in range(offsets[row], offsets[row + 1]):
            if chars[line] > 0:
                keys[n], sizes[n] = hashes[line] | np.uint64(1), chars[line]
                n += 1
        _duplicates(keys, sizes, n, table, shares[row], 0)
        n, inside = 0, False
        for line in range(offsets[row], offsets[row + 1]):
            if chars[line] > 0:
                if not inside:
                    keys[n], sizes[n] = np.uint64(1), 0
                    n += 1
                key = (keys[n - 1] ^ hashes[line]) * K
                keys[n - 1] = (key ^ key >> np.uint64(31)) | np.uint64(1)
                sizes[n - 1] += chars[line]
            inside = chars[line] > 0
        _duplicates(keys, sizes, n, table, shares[row], 2)
