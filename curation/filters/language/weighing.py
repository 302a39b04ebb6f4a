"""Kernels that turn scores of languages into probabilities, and add up what several models say.

A row is worked on where it lies in the fastest memory: copied, padded, and written back once.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from curation.filters.language.exponentials import FAR, add_logs, exp_row, largest_of, padded
from curation.text.jit import inlined, kernel
from curation.text.memory import Int, address_of
from curation.text.spans import Int64s

__all__ = ["add_votes", "likeliest", "soften", "written_only"]

Floats: TypeAlias = npt.NDArray[np.float32]
Int32s: TypeAlias = npt.NDArray[np.int32]
Masks: TypeAlias = npt.NDArray[np.bool_]


def soften(scores: Floats, divisors: Floats) -> None:
    """Make log scores probabilities, in place: each row the softmax of itself / its divisor.

    Args:
        scores: float32[n, k]; a row that contains NaN becomes NaN.
        divisors: float32[n], positive; 0 for rows that become zeros: of those nothing is known.
    """
    _soften(scores, divisors, np.empty(padded(scores.shape[1]), np.float32))


def likeliest(scores: Floats, divisors: Floats) -> tuple[Int32s, Floats]:
    """The column of the largest log score of each row, int32[n], and what `soften` would make of it, float32[n].

    The first of equal ones; -1 and 0 where the divisor is 0.
    """
    best, probability = np.full(len(scores), -1, np.int32), np.zeros(len(scores), np.float32)
    _likeliest(scores, divisors, np.empty(padded(scores.shape[1]), np.float32), best, probability)
    return best, probability


@inlined
def _take(scores: Floats, row: Int, room: Floats) -> None:
    """Copy a row of scores to where it is worked on."""
    for column in range(scores.shape[1]):
        room[column] = scores[row, column]
    for column in range(scores.shape[1], len(room)):
        room[column] = FAR


@kernel
def _soften(scores: Floats, divisors: Floats, room: Floats) -> None:
    at = address_of(room)
    for row in range(len(scores)):
        if divisors[row] == 0:
            scores[row] = 0
            continue
        _take(scores, row, room)
        total = exp_row(at, len(room), largest_of(at, len(room)), np.float32(1) / divisors[row])
        share = np.float32(1) / total
        for column in range(scores.shape[1]):
            scores[row, column] = room[column] * share


@kernel
def _likeliest(scores: Floats, divisors: Floats, room: Floats, best: Int32s, probability: Floats) -> None:
    at = address_of(room)
    for row in range(len(scores)):
        if divisors[row] == 0:
            continue
        _take(scores, row, room)
        largest = largest_of(at, len(room))
        column = 0
        while column < scores.shape[1] - 1 and room[column] != largest:
            column += 1
        best[row] = column
        probability[row] = np.float32(1) / exp_row(at, len(room), largest, np.float32(1) / divisors[row])


def add_votes(totals: Floats, answers: Floats, columns: Int64s, start: Floats, weights: Floats) -> None:
    """Add to each row of `totals` weight * log(start + answers), those of labels that mean one language added up.

    Args:
        totals: float32[n, padded(n_languages)].
        answers: float32[n, n_labels], probabilities.
        columns: int64[n_labels], the language of each label.
        start: float32[padded(n_languages)], positive and not denormal.
        weights: float32[n].

    Raises ValueError for arrays of other shapes.
    """
    width = padded(len(start))
    inside = ((columns >= 0) & (columns < width)).all()
    if not inside or len(start) != width or answers.shape != (len(weights), len(columns)):
        raise ValueError(
            f"votes: expected columns below {len(start)}, a multiple of 16, found {columns}, {answers.shape}"
        )
    if totals.shape != (len(weights), width) or not totals.flags.c_contiguous:
        raise ValueError(f"votes: expected rows of {len(start)} for {len(weights)} parts, found {totals.shape}")
    _add_votes(totals, answers, columns, start, weights, np.empty(len(start), np.float32))


@kernel
def _add_votes(totals: Floats, answers: Floats, columns: Int64s, start: Floats, weights: Floats, given: Floats) -> None:
    at, width = address_of(given), len(given)
    target = address_of(totals.reshape(-1))
    for row in range(len(answers)):
        given[:] = start
        for label in range(len(columns)):
            given[np.uint64(columns[label])] += answers[row, label]
        add_logs(target + 4 * width * row, at, width, weights[row])


@kernel
def written_only(totals: Floats, written: Masks, script: npt.NDArray[np.uint8], impossible: np.float32) -> Floats:
    """Totals of the languages that are written in the script of each row: float32[n, n_languages], else `impossible`.

    written: bool[n_scripts, n_languages]. script: uint8[n].
    """
    found = np.empty((len(totals), written.shape[1]), np.float32)
    for row in range(len(totals)):
        kind = np.int64(script[row])
        for column in range(written.shape[1]):
            found[row, column] = totals[row, column] if written[kind, column] else impossible
    return found
