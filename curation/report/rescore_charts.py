"""Drawings of a re-score as inline SVG: a row of a ridgeline, ridges of all re-scores, quantile bands, two shares.

No script and no outside resource; colours come from the page's style sheet. Every drawing says in words what it shows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from markupsafe import Markup, escape

from curation.report.charts import ticks
from curation.report.excerpt import plain
from curation.report.numbers import short, value
from curation.report.rescore_spread import Bins

__all__ = ["Axis", "Layer", "axis_row", "bands", "common_axis", "ridge_row", "ridges", "shares"]

Doubles = npt.NDArray[np.float64]

ROW_WIDTH, ROW_HEIGHT = 300.0, 48.0
PAD = 4.0


@dataclass(frozen=True, slots=True)
class Layer:
    """A distribution to be drawn, as shares of each bin."""

    name: str
    counts: Doubles
    quantiles: Sequence[float]
    """5, 25, 50, 75, 95 percent; empty if there is nothing."""
    documents: int
    """That were judged."""


@dataclass(frozen=True, slots=True)
class Axis:
    """From where to where all drawings of a table reach."""

    bins: Bins
    first: int
    last: int
    """Bins, both included."""

    @property
    def low(self) -> float:
        return self.bins.low + self.first * self.bins.width

    @property
    def high(self) -> float:
        return self.bins.low + (self.last + 1) * self.bins.width

    def x(self, number: float, left: float, right: float) -> float:
        """Position of a value; what lies beyond stands at the end."""
        part = (number - self.low) / (self.high - self.low)
        return left + min(max(part, 0.0), 1.0) * (right - left)


def common_axis(bins: Bins, layers: Sequence[Layer]) -> Axis:
    """An axis that holds all but a three-hundredth of each layer at either end, and at least eight bins."""
    firsts, lasts = [], []
    for layer in layers:
        total = layer.counts.sum()
        if total:
            cumulative = np.cumsum(layer.counts) / total
            firsts.append(int(np.searchsorted(cumulative, 1 / 300)))
            lasts.append(int(np.searchsorted(cumulative, 1 - 1 / 300)))
    first, last = (max(0, min(firsts) - 1), min(bins.n - 1, max(lasts) + 1)) if firsts else (0, bins.n - 1)
    while last - first < 7:
        first, last = max(0, first - 1), min(bins.n - 1, last + 1)
    return Axis(bins, first, last)


def _curve(layer: Layer, axis: Axis) -> Doubles:
    """Share of each bin of the axis, smoothed; what lies beyond the axis is gathered at its ends.

    By a normal kernel of Silverman's width (1986), so that a group of few documents is not drawn as a comb.
    """
    counts = layer.counts
    inside = counts[axis.first : axis.last + 1].copy()
    inside[0] += counts[: axis.first].sum()
    inside[-1] += counts[axis.last + 1 :].sum()
    spread = (layer.quantiles[3] - layer.quantiles[1]) / 1.34 / axis.bins.width if layer.quantiles else 0.0
    sigma = min(max(0.9 * spread * max(layer.documents, 1) ** -0.2, 0.7), len(inside) / 8)
    reach = math.ceil(3 * sigma)
    kernel = np.exp(-0.5 * (np.arange(-reach, reach + 1) / sigma) ** 2)
    # Mirrored at both ends: nothing is smoothed away beyond the axis.
    padded = np.pad(inside, min(reach, len(inside)), mode="symmetric")
    smooth: Doubles = np.convolve(padded, kernel / kernel.sum(), mode="same")
    start = min(reach, len(inside))
    part: Doubles = smooth[start : start + len(inside)] / max(counts.sum(), 1e-12)
    return part


def _outline(curve: Doubles, left: float, right: float, base: float, height: float, top: float) -> str:
    """Points of a curve above its base; what is taller than the drawing is cut."""
    step = (right - left) / len(curve)
    xs = left + (np.arange(len(curve)) + 0.5) * step
    ys = base - np.minimum(curve / top, 1.04) * height
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in zip(xs, ys, strict=True))
    return f"{left:.1f},{base:.1f} {left:.1f},{ys[0]:.1f} {points} {right:.1f},{ys[-1]:.1f} {right:.1f},{base:.1f}"


def _tallest(curves: Sequence[Doubles]) -> float:
    """What fills the height: the tallest place of any curve, without its ends, where what lies beyond is gathered."""
    inner = [float(curve[2:-2].max()) for curve in curves if len(curve) > 4]
    whole = [float(curve.max()) for curve in curves]
    return max([*(inner if inner and max(inner) > 0.1 * max(whole) else whole), 1e-9])


def ridge_row(axis: Axis, now: Layer, formers: Sequence[Layer], chosen: Doubles | None, what: str, unit: str) -> Markup:
    """One group's distribution filled, the former ones as lines behind it, chosen documents as ticks below.

    Args:
        formers: newest last.
        chosen: documents of each bin that were chosen; None: not shown.
    """
    left, right, base = PAD, ROW_WIDTH - PAD, ROW_HEIGHT - 9
    curves = [_curve(one, axis) for one in (*formers, now)]
    top = _tallest(curves)
    parts = []
    for place, layer in enumerate(formers):
        if layer.counts.sum():
            css = "former last" if place == len(formers) - 1 else "former"
            points = _outline(curves[place], left, right, base, base - 3, top)
            parts.append(f'<polyline class="{css}" points="{points}"><title>{_said(layer.name)}</title></polyline>')
    if now.counts.sum():
        points = _outline(curves[-1], left, right, base, base - 3, top)
        parts.insert(0, f'<polygon class="now" points="{points}"><title>{_said(now.name)}</title></polygon>')
        parts.append(f'<polyline class="now-line" points="{points}"/>')
    if now.quantiles:
        x = axis.x(now.quantiles[2], left, right)
        parts.append(f'<path class="median" d="M{x:.1f} {base:.1f}v-8"/>')
    parts.append(f'<path class="axis" d="M{left} {base:.1f}H{right}"/>')
    if chosen is not None:
        parts += _chosen_ticks(axis, chosen, left, right, base)
    label = f"{what}: {_in_words(now, unit)}" + "".join(f"; {one.name}: {_in_words(one, unit)}" for one in formers[-1:])
    return _svg("ridge", ROW_WIDTH, ROW_HEIGHT, label, parts)


def _chosen_ticks(axis: Axis, chosen: Doubles, left: float, right: float, base: float) -> list[str]:
    parts = []
    for index in np.flatnonzero(chosen).tolist():
        at = axis.bins.low + (index + 0.5) * axis.bins.width
        x = axis.x(at, left, right)
        title = f"{chosen[index]:,.0f} chosen about {value(round(at, 3))}"
        parts.append(f'<path class="chosen" d="M{x:.1f} {base + 2:.1f}v6"><title>{_said(title)}</title></path>')
    return parts


def _in_words(layer: Layer, unit: str) -> str:
    if not layer.quantiles:
        return "nothing judged"
    low, _, middle, _, high = layer.quantiles
    return f"median {value(middle)} {unit}, nine tenths from {value(low)} to {value(high)}"


def axis_row(axis: Axis) -> Markup:
    """The labels of an axis, to stand above the rows of a table."""
    left, right = PAD, ROW_WIDTH - PAD
    parts = []
    for number in ticks(axis.low, axis.high, log=False):
        x = axis.x(number, left, right)
        anchor = "start" if x < left + 8 else "end" if x > right - 8 else "middle"
        parts.append(
            f'<path class="tick" d="M{x:.1f} 14v4"/><text x="{x:.1f}" y="11" text-anchor="{anchor}">{short(number)}</text>'
        )
    return Markup(
        f'<svg class="ridge scale" viewBox="0 0 {ROW_WIDTH:.0f} 18" aria-hidden="true">{"".join(parts)}</svg>'
    )


def ridges(axis: Axis, layers: Sequence[Layer], unit: str) -> Markup:
    """A ridge for each re-score, the newest at the bottom and filled in colour; its median is marked."""
    width, label, row = 520.0, 62.0, min(max(168.0 / len(layers), 26.0), 60.0)
    left, right = label, width - 8
    curves = [_curve(one, axis) for one in layers]
    top = _tallest(curves)
    head = row * 0.6
    height = head + row * len(layers) + 26
    parts = []
    for number in ticks(axis.low, axis.high, log=False):
        x = axis.x(number, left, right)
        parts.append(f'<path class="grid" d="M{x:.1f} 8V{height - 22:.1f}"/>')
        parts.append(f'<text class="tick" x="{x:.1f}" y="{height - 8:.1f}" text-anchor="middle">{short(number)}</text>')
    for place, layer in enumerate(layers):
        base = head + row * (place + 1)
        css = "now" if place == len(layers) - 1 else "then"
        if layer.counts.sum():
            points = _outline(curves[place], left, right, base, row * 1.5, top)
            title = _said(f"{layer.name}: {_in_words(layer, unit)}")
            parts.append(f'<polygon class="{css} ridge-{css}" points="{points}"><title>{title}</title></polygon>')
        parts.append(f'<path class="axis" d="M{left} {base:.1f}H{right}"/>')
        parts.append(
            f'<text class="name" x="{left - 8}" y="{base - 3:.1f}" text-anchor="end">{_said(layer.name)}</text>'
        )
        if layer.quantiles:
            x = axis.x(layer.quantiles[2], left, right)
            parts.append(f'<path class="median" d="M{x:.1f} {base:.1f}v-12"/>')
    label_text = "Distributions, " + "; ".join(f"{one.name}: {_in_words(one, unit)}" for one in layers)
    return _svg("ridge tall", width, height, label_text, parts)


def bands(points: Sequence[tuple[float, str, Sequence[float]]], unit: str) -> Markup:
    """Median, middle half and nine tenths of the documents, over tokens seen.

    Args:
        points: tokens seen, their label, the five quantiles; at least two, in order of tokens.
    """
    width, height, left, right, top, bottom = 520.0, 230.0, 40.0, 508.0, 12.0, 200.0
    low = min(quantiles[0] for _, _, quantiles in points)
    high = max(quantiles[4] for _, _, quantiles in points)
    pad = max((high - low) * 0.06, 1e-3)
    low, high = max(0.0, low - pad), high + pad
    first, last = points[0][0], points[-1][0]

    def x(tokens: float) -> float:
        return left + (tokens - first) / max(last - first, 1) * (right - left)

    def y(number: float) -> float:
        return bottom - (number - low) / (high - low) * (bottom - top)

    def band(css: str, a: int, b: int, title: str) -> str:
        upper = [f"{x(tokens):.1f},{y(quantiles[b]):.1f}" for tokens, _, quantiles in points]
        lower = [f"{x(tokens):.1f},{y(quantiles[a]):.1f}" for tokens, _, quantiles in reversed(points)]
        return f'<polygon class="{css}" points="{" ".join([*upper, *lower])}"><title>{title}</title></polygon>'

    parts = []
    for number in ticks(low, high, log=False):
        parts.append(f'<path class="grid" d="M{left} {y(number):.1f}H{right}"/>')
        parts.append(
            f'<text class="tick" x="{left - 6}" y="{y(number) + 4:.1f}" text-anchor="end">{short(number)}</text>'
        )
    parts += [band("wide-band", 0, 4, "nine tenths of the documents"), band("half-band", 1, 3, "the middle half")]
    parts.append(
        '<polyline class="middle" points="' + " ".join(f"{x(t):.1f},{y(q[2]):.1f}" for t, _, q in points) + '"/>'
    )
    parts += _marks([(x(tokens), y(quantiles[2]), name) for tokens, name, quantiles in points], left, right, bottom)
    label = f"Quantiles of {unit} over tokens seen: " + "; ".join(f"{n}: median {value(q[2])}" for _, n, q in points)
    return _svg("ridge tall bands", width, height, label, parts)


def _marks(medians: Sequence[tuple[float, float, str]], left: float, right: float, bottom: float) -> list[str]:
    """A dot for each re-score, and below as many of their names as there is room for, the last one always."""
    parts = []
    end_of_last = -math.inf
    for place, (x, y, name) in enumerate(medians):
        title = _said(f"{name} tokens")
        parts.append(f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="3.2"><title>{title}</title></circle>')
        half = 3.4 * len(name) + 4
        at = min(max(x, left + half - 12), right - half + 8)
        is_last = place == len(medians) - 1
        if at - half > end_of_last and (is_last or at + half < right - 2 * half):
            parts.append(
                f'<text class="tick" x="{at:.1f}" y="{bottom + 18:.1f}" text-anchor="middle">{_said(name)}</text>'
            )
            end_of_last = at + half
    return parts


def shares(then: float | None, now: float | None, largest: float, words: tuple[str, str]) -> Markup:
    """Two shares on one line: a hollow dot then, a full one now, and what lies between."""
    width, left, right, y = 150.0, 6.0, 144.0, 9.0

    def x(share: float) -> float:
        return left + share / max(largest, 1e-12) * (right - left)

    parts = [f'<path class="axis" d="M{left} {y}H{right}"/>']
    if then is not None and now is not None:
        css = "up" if now >= then else "down"
        parts.append(f'<path class="move {css}" d="M{x(then):.1f} {y}H{x(now):.1f}"/>')
    if then is not None:
        parts.append(f'<circle class="dot" cx="{x(then):.1f}" cy="{y}" r="3.6"/>')
    if now is not None:
        parts.append(f'<circle class="dot full" cx="{x(now):.1f}" cy="{y}" r="3.6"/>')
    label = ", ".join(
        f"{word} {value(round(share, 4), 'share')}"
        for word, share in zip(words, (then, now), strict=True)
        if share is not None
    )
    return _svg("ridge shares", width, 18, label or "not known", parts)


def _said(text: str) -> Markup:
    """Text for an attribute or a title: names come from the crawl."""
    return escape(plain(text))


def _svg(css: str, width: float, height: float, label: str, parts: Sequence[str]) -> Markup:
    return Markup(
        f'<svg class="{css}" viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-label="{_said(label)}">{"".join(parts)}</svg>'
    )
