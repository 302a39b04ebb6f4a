"""Puts windows of text into batches of fixed shapes, so that no window's numbers depend on its neighbours.

A matrix product sums in an order that may depend on the size of the matrices: the same window, in a batch of three and
in a batch of four, gets other last bits. In bf16 and int8 these show. So each window is padded to one of a few lengths,
and each length has a fixed number of rows, filled up with rows of padding where windows are missing: whatever else is
judged with it, whatever the batch that the caller cut, a window is computed by the same operations on the same shapes.
Padding stands behind the window, where a causal model cannot see it, and its predictions are not looked at.

Costs: padding of less than a third of a short window and an eighth of a long one, and for each length below half of
`tokens` less than one batch of rows of padding. Lengths at or above that have one row: nothing is filled.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

__all__ = ["Batch", "Shape", "batches", "shapes"]

SMALLEST = 32


class Shape(NamedTuple):
    """Rows and tokens a row of a batch."""

    rows: int
    length: int


class Batch(NamedTuple):
    """Numbers of the windows in the rows of a batch; rows beyond them are padding."""

    windows: list[int]
    shape: Shape


def shapes(window: int, tokens: int) -> list[Shape]:
    """The shapes for windows of up to `window` tokens, shortest first, of about `tokens` tokens each.

    Lengths are 32 and then powers of two and what lies half way between them up to 256, from there on every 128,
    with the window itself as the longest.
    """
    lengths = []
    length = SMALLEST
    while length < window:
        lengths.append(length)
        if length >= 256:
            length += 128
        else:
            power = length & (length - 1) == 0
            length = length * 3 // 2 if power else length * 4 // 3
    lengths.append(window)
    return [Shape(max(1, tokens // length), length) for length in lengths]


def batches(lengths: Sequence[int], allowed: Sequence[Shape]) -> Iterator[Batch]:
    """Every window in one batch, of the shortest shape that holds it; windows of a shape keep their order.

    lengths: tokens of each window. allowed: as `shapes` gives them; the last holds the longest window.
    """
    by_shape: list[list[int]] = [[] for _ in allowed]
    limits = [shape.length for shape in allowed]
    for number, length in enumerate(lengths):
        by_shape[next(index for index, limit in enumerate(limits) if length <= limit)].append(number)
    # Longest first: where several are computed at once, the short ones fill the end.
    for shape, members in sorted(zip(allowed, by_shape, strict=True), key=lambda pair: -pair[0].length):
        for start in range(0, len(members), shape.rows):
            yield Batch(members[start : start + shape.rows], shape)
