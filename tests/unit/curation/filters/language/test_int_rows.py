"""Rows of whole numbers, added as NumPy adds them."""

from __future__ import annotations

import numpy as np

from curation.filters.language import int_rows
from curation.filters.language.int_rows import LANES, WIDTH
from curation.text.jit import kernel
from curation.text.memory import address_of, store64


@kernel
def add_all(sums: np.ndarray, totals: np.ndarray, row: np.ndarray, unsigned: np.ndarray, signed: np.ndarray) -> None:
    int_rows.add_row(address_of(sums), address_of(row))
    int_rows.add_short_row(address_of(sums), address_of(unsigned))
    for first in range(0, WIDTH, LANES):
        int_rows.add_shorts(address_of(sums) + 4 * first, address_of(signed) + 2 * first)
    int_rows.add_to(address_of(sums) + 4, 5)
    int_rows.add_long_row(address_of(totals), address_of(sums))


@kernel
def write(row: np.ndarray, word: np.ndarray) -> None:
    int_rows.clear_row(address_of(row))
    store64(address_of(word), np.uint64(2**64 - 2))


def test_rows_add_up_at_any_address() -> None:
    """Signed and unsigned, narrow into wide, at addresses that are no multiples of anything; neighbours stay."""
    random = np.random.default_rng(1)
    row, sums = (random.integers(-(2**29), 2**29, WIDTH + 3).astype(np.int32) for _ in range(2))
    totals = random.integers(-(2**60), 2**60, WIDTH + 3)
    unsigned = random.integers(0, 2**16, WIDTH + 3).astype(np.uint16)
    signed = random.integers(-(2**15), 2**15, WIDTH + 3).astype(np.int16)
    expected = sums.astype(np.int64)
    middle = slice(1, WIDTH + 1)
    expected[middle] += row[middle].astype(np.int64) + unsigned[middle] + signed[middle]
    expected[2] += 5
    expected_totals = totals.copy()
    expected_totals[middle] += expected[middle]
    add_all(*(array[middle] for array in (sums, totals, row, unsigned, signed)))
    assert (sums == expected).all()
    assert (totals == expected_totals).all()


def test_rows_are_cleared_and_words_written_and_no_more() -> None:
    """Exactly WIDTH numbers become 0, and 8 bytes are written."""
    row, word = np.full(WIDTH + 2, 7, np.int32), np.zeros(3, np.uint64)
    write(row[1:-1], word[1:-1])
    assert row.tolist() == [7, *[0] * WIDTH, 7]
    assert word.tolist() == [0, 2**64 - 2, 0]
