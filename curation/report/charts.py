"""Histograms of scores as inline SVG: kept documents above the line, dropped ones below, thresholds drawn in.

No script and no outside resource; colours come from the page's style sheet, so that both modes and the printer
get theirs. A bar names its range and counts when the pointer rests on it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from markupsafe import Markup, escape

from curation.report.numbers import count, short, value
from curation.report.sketch import Bars, Sketch

__all__ = ["histogram", "ticks"]

WIDTH, LEFT, RIGHT = 360.0, 4.0, 356.0
TOP_WITH_THRESHOLDS, TOP = 32.0, 12.0
KEPT_HEIGHT, DROPPED_HEIGHT = 84.0, 52.0
OVERFLOW_WIDTH = 7.0
GAP = 7.0
LETTER = 6.4
"""Width of a letter of a label, more rather than less."""
KEPT_CLEAR, DROPPED_CLEAR = 0.87, 0.73
"""Bars that fill more of their side's height reach the line of text in which it is counted."""
LABEL_ROW = 13.0


class _Axis:
    """Maps a value to x; bars for what lies outside stand at the ends, behind a gap."""

    def __init__(self, bars: Bars) -> None:
        self.log = bars.log
        self.left = LEFT + (OVERFLOW_WIDTH + GAP if sum(bars.below) else 0)
        self.right = RIGHT - (OVERFLOW_WIDTH + GAP if sum(bars.above) else 0)
        self._low, self._high = self._place(bars.edges[0]), self._place(bars.edges[-1])

    def _place(self, number: float) -> float:
        return math.log10(number) if self.log else float(number)

    def x(self, number: float) -> float:
        """Position of a value that lies between the outer edges."""
        part = (self._place(number) - self._low) / (self._high - self._low)
        return self.left + part * (self.right - self.left)

    def holds(self, number: float) -> bool:
        """Whether a value lies between the outer edges."""
        return (number > 0 or not self.log) and self._low <= self._place(number) <= self._high


@dataclass(frozen=True, slots=True)
class _Column:
    """A bar: its documents, and which part of its side's height they fill; it is broken where that is above 1."""

    name: str
    left: float
    width: float
    kept: int
    dropped: int
    up: float
    down: float


def histogram(sketch: Sketch, name: str, unit: str, thresholds: Sequence[float]) -> Markup:
    """One score's distribution as SVG, 360 units wide."""
    bars = sketch.bars(list(thresholds))
    axis = _Axis(bars)
    columns = _columns(bars, axis, unit, whole=sketch.whole)
    lines = [axis.x(threshold) for threshold in thresholds if axis.holds(threshold)]
    dropped, kept = sketch.by_side
    above, below = f"kept {count(kept)}", f"dropped {count(dropped)}"
    top = TOP_WITH_THRESHOLDS if lines else TOP
    sides = []
    if kept:
        place = _free_place(above, [_blocked(c, c.up, c.kept) for c in columns if c.up > KEPT_CLEAR], lines)
        sides.append(_side("kept-text", place, top + 7, above))
        top += 0 if place else LABEL_ROW
    base = top + (KEPT_HEIGHT if kept else 0)
    bottom = base + (DROPPED_HEIGHT if dropped else 0)
    if dropped:
        place = _free_place(below, [_blocked(c, c.down, c.dropped) for c in columns if c.down > DROPPED_CLEAR], lines)
        bottom += 0 if place else LABEL_ROW
        sides.append(_side("dropped-text", place, bottom - 4, below))
    parts, labels = _bars(columns, base)
    parts.append(f'<path class="axis" d="M{LEFT} {base:.1f}H{RIGHT}"/>')
    parts += _tick_labels(axis, bars, bottom, unit)
    parts += _threshold_lines(axis, thresholds, bottom, unit)
    parts += [*labels, *sides]
    label = f"Distribution of {name}: {count(kept)} documents kept, {count(dropped)} dropped"
    if thresholds:
        label += "; threshold " + ", ".join(value(t, unit) for t in thresholds)
    height = bottom + 20
    return Markup(
        f'<svg class="hist" viewBox="0 0 {WIDTH:.0f} {height:.0f}" role="img" aria-label="{escape(label)}">{"".join(parts)}</svg>'
    )


def _side(css: str, place: float | None, y: float, text: str) -> str:
    """What a side counts, in a free place of its bars or, without one, in a row beyond them."""
    return f'<text class="side {css}" x="{place or RIGHT:.1f}" y="{y:.1f}" text-anchor="end">{text}</text>'


def _free_place(text: str, blocked: Sequence[tuple[float, float]], lines: Sequence[float]) -> float | None:
    """Where a text may end so that it covers no bar, and no threshold's line if that can be: as far right as possible."""
    width = LETTER * len(text)
    for taken in ([*blocked, *((x - 1, x + 1) for x in lines)], blocked):
        for end in sorted((RIGHT, *(left - 3 for left, _ in taken)), reverse=True):
            if end - width >= LEFT and all(right + 3 <= end - width or left >= end for left, right in taken):
                return end
    return None


def _blocked(column: _Column, part: float, n: int) -> tuple[float, float]:
    """From where to where a bar reaches, with the number beside it if it is broken."""
    left, right = column.left, column.left + column.width
    if part <= 1:
        return left, right
    x, anchor = _beside(column)
    width = LETTER * len(count(n))
    return (left, x + width) if anchor == "start" else (x - width, right)


def _columns(bars: Bars, axis: _Axis, unit: str, *, whole: bool) -> list[_Column]:
    """Every bar that is not empty."""
    spans = [(axis.x(a), axis.x(b)) for a, b in zip(bars.edges[:-1], bars.edges[1:], strict=True)]
    counts = [(int(d), int(k)) for d, k in bars.counts.T]
    names = [_range_name(a, b, unit, whole) for a, b in zip(bars.edges[:-1], bars.edges[1:], strict=True)]
    if sum(bars.below):
        spans.append((LEFT, LEFT + OVERFLOW_WIDTH))
        counts.append(bars.below)
        names.append("zero" if bars.log else f"below {value(bars.edges[0], unit)}")
    if sum(bars.above):
        spans.append((RIGHT - OVERFLOW_WIDTH, RIGHT))
        counts.append(bars.above)
        names.append(f"{value(bars.edges[-1], unit)} and more")
    # On a logarithmic axis bars may differ in width: the area is the count.
    widths = np.array([b - a for a, b in spans])
    density = np.array(counts, np.float64) / widths[:, None] * widths.min()
    parts = density / np.array([_full_height(side) for side in density.T])
    return [
        _Column(
            name, left, max(right - left - (1 if right - left > 3 else 0.2), 0.5), kept, dropped, float(up), float(down)
        )
        for (left, right), (dropped, kept), (down, up), name in zip(spans, counts, parts, names, strict=True)
        if dropped or kept
    ]


def _bars(columns: Sequence[_Column], base: float) -> tuple[list[str], list[str]]:
    """A group for every bar: its title, kept part, dropped part; and the numbers of broken bars."""
    parts, labels = [], []
    for c in columns:
        paths = _bar(c.left, c.width, base, -KEPT_HEIGHT, c.up, "k") if c.kept else ""
        paths += _bar(c.left, c.width, base, DROPPED_HEIGHT, c.down, "d") if c.dropped else ""
        labels += [_broken_label(c, base - KEPT_HEIGHT * 0.86, c.kept)] if c.up > 1 else []
        labels += [_broken_label(c, base + DROPPED_HEIGHT * 0.86, c.dropped)] if c.down > 1 else []
        title = f"{c.name}: {count(c.kept)} kept, {count(c.dropped)} dropped"
        parts.append(f"<g><title>{escape(title)}</title>{paths}</g>")
    return parts, labels


def _full_height(density: npt.NDArray[np.float64]) -> float:
    """What fills the height: the tallest bar, or the second one where the tallest would flatten all others."""
    ranked = np.sort(density)[::-1]
    if len(ranked) > 1 and 0 < 6 * ranked[1] < ranked[0]:
        return float(1.5 * ranked[1])
    return max(float(ranked[0]), 1e-12)


def _bar(left: float, width: float, base: float, height: float, part: float, css: str) -> str:
    """One side of a bar, up (negative height) or down; one that is taller than the drawing is broken."""
    tall = max(min(part, 1.0) * abs(height), 1.0)
    top = base - tall if height < 0 else base
    path = f'<path class="{css}" d="M{left:.1f} {top:.1f}h{width:.1f}v{tall:.1f}h-{width:.1f}z"/>'
    if part <= 1:
        return path
    return f'{path}<path class="gap" d="M{left - 2:.1f} {base + height * 0.8 + 2:.1f}l{width + 4:.1f} -4"/>'


def _beside(column: _Column) -> tuple[float, str]:
    """Where the number of a broken bar stands, and which of its ends is there: on the side where there is room."""
    return (column.left + column.width + 3, "start") if column.left < WIDTH / 2 else (column.left - 3, "end")


def _broken_label(column: _Column, y: float, n: int) -> str:
    x, anchor = _beside(column)
    return f'<text class="side" x="{x:.1f}" y="{y + 4:.1f}" text-anchor="{anchor}">{count(n)}</text>'


def _range_name(low: float, high: float, unit: str, whole: bool) -> str:
    if whole and unit != "share":
        return value(low, unit) if high - low <= 1 else f"{value(low, unit)} to {value(high - 1, unit)}"
    return f"{value(low, unit)} to {value(high, unit)}"


def _tick_labels(axis: _Axis, bars: Bars, bottom: float, unit: str) -> list[str]:
    places = [(axis.x(t), short(t, unit)) for t in ticks(bars.edges[0], bars.edges[-1], log=bars.log)]
    if sum(bars.below):
        places.insert(0, (LEFT + OVERFLOW_WIDTH / 2, "0" if bars.log else "<"))
    if sum(bars.above):
        places.append((RIGHT - OVERFLOW_WIDTH / 2, ">"))
    parts, end = [], -99.0
    for x, label in places:
        half = 3.3 * len(label)
        x_text = min(max(x, LEFT + half), RIGHT - half)
        if x_text - half < end + 4:
            continue
        end = x_text + half
        parts.append(f'<path class="tick" d="M{x:.1f} {bottom:.1f}v4"/>')
        parts.append(
            f'<text class="tick" x="{x_text:.1f}" y="{bottom + 15:.1f}" text-anchor="middle">{escape(label)}</text>'
        )
    return parts


def _threshold_lines(axis: _Axis, thresholds: Sequence[float], bottom: float, unit: str) -> list[str]:
    parts, last = [], -99.0
    row = 0
    for threshold in sorted(set(thresholds)):
        if not axis.holds(threshold):
            continue
        x = axis.x(threshold)
        label = value(threshold, unit)
        half = 3.4 * len(label)
        row = 1 - row if x - last < 2 * half + 6 else 0
        last = x
        y = 11 + 11 * row
        x_text = min(max(x, LEFT + half), RIGHT - half)
        parts.append(
            f'<g><title>threshold {escape(label)}</title><path class="threshold" d="M{x:.1f} {y + 3}V{bottom:.1f}"/>'
            f'<text class="threshold" x="{x_text:.1f}" y="{y}" text-anchor="middle">{escape(label)}</text></g>'
        )
    return parts


def ticks(low: float, high: float, *, log: bool) -> list[float]:
    """Round values between two edges: decades on a logarithmic axis, else steps of 1, 2 or 5."""
    if log:
        first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
        every = max(1, (last - first) // 6)
        decades = [10.0**power for power in range(first, last + 1, every)]
        if len(decades) > 2:
            return decades
        return [m * 10.0**p for p in range(first - 1, last + 1) for m in (1, 2, 5) if low <= m * 10.0**p <= high]
    rough = (high - low) / 5
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)
    first = math.ceil(low / step - 1e-9)
    return [round(i * step, 12) for i in range(first, math.floor(high / step + 1e-9) + 1)]
