"""A curve of a probability as inline SVG, with the threshold drawn in. Colours come from the page's style sheet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup, escape

from curation.report.numbers import NBSP, share

__all__ = ["Point", "draw_curve"]

WIDTH, HEIGHT = 360.0, 150.0
LEFT, RIGHT, TOP, BOTTOM = 40.0, 350.0, 20.0, 128.0


class Point(NamedTuple):
    """A place on the curve; both from 0 to 1."""

    x: float
    y: float


def draw_curve(line: Sequence[Point], marked: Sequence[Point], threshold: float | None, name: str) -> Markup:
    """A curve from (0, 0) to (1, 1).

    Args:
        line: points of the line, by x.
        marked: points that get a dot and a title.
        threshold: drawn as a dashed line; what lies right of it is shaded.
        name: what the curve is, for readers who cannot see it.
    """
    parts = []
    if threshold is not None and 0 <= threshold <= 1:
        at = _x(threshold)
        parts.append(f'<rect class="beyond" x="{at:.1f}" y="{TOP}" width="{RIGHT - at:.1f}" height="{BOTTOM - TOP}"/>')
    for level in (0.0, 0.5, 1.0):
        y = _y(level)
        parts.append(f'<path class="{"axis" if not level else "grid"}" d="M{LEFT} {y:.1f}H{RIGHT}"/>')
        parts.append(
            f'<text class="tick" x="{LEFT - 5}" y="{y + 4:.1f}" text-anchor="end">{100 * level:.0f}{NBSP}%</text>'
        )
    for tick in (0.0, 0.2, 0.4, 0.6, 0.8, 1.0):
        x = _x(tick)
        parts.append(f'<path class="tick" d="M{x:.1f} {BOTTOM}v4"/>')
        parts.append(f'<text class="tick" x="{x:.1f}" y="{BOTTOM + 16}" text-anchor="middle">{tick:g}</text>')
    if threshold is not None and 0 <= threshold <= 1:
        x_text = min(max(at, LEFT + 12), RIGHT - 12)
        parts.append(
            f'<g><title>threshold {threshold:g}</title><path class="threshold" d="M{at:.1f} {TOP - 4}V{BOTTOM}"/>'
            f'<text class="threshold" x="{x_text:.1f}" y="{TOP - 8}" text-anchor="middle">{threshold:g}</text></g>'
        )
    path = "L".join(f"{_x(point.x):.1f} {_y(point.y):.2f}" for point in line)
    parts.append(f'<path class="curve" d="M{path}"/>')
    for point in marked:
        title = f"Jaccard {point.x:g}: {share(point.y, 1)}"
        parts.append(
            f'<circle class="dot" cx="{_x(point.x):.1f}" cy="{_y(point.y):.2f}" r="3"><title>{title}</title></circle>'
        )
    label = f"{name}: " + ", ".join(f"{share(point.y, 1)} at {point.x:g}" for point in marked)
    return Markup(
        f'<svg class="hist" viewBox="0 0 {WIDTH:.0f} {HEIGHT:.0f}" role="img" aria-label="{escape(label)}">{"".join(parts)}</svg>'
    )


def _x(x: float) -> float:
    return LEFT + x * (RIGHT - LEFT)


def _y(y: float) -> float:
    return BOTTOM - y * (BOTTOM - TOP)
