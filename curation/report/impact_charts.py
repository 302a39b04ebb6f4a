"""Drawings of a change-impact sheet as inline SVG: what leaves and what comes in with their intervals, shares before and after.

No script; colours come from the style sheet. A drawing names its numbers to who cannot see it, and when the pointer rests on it.
"""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup, escape

from curation.impact.counting.figure_types import Estimate
from curation.report.excerpt import plain
from curation.report.impact_numbers import interval, percent

__all__ = ["Scale", "difference", "moves", "scale_of"]

WIDTH, HEIGHT, MIDDLE = 220.0, 22.0, 11.0
MARGIN = 4.0
ROOM = 1.25
"""The drawing reaches so far beyond the largest value; intervals that go further fade at its border."""
LEAST = 0.002
"""A scale is never finer than this share, so that noise does not look like a change."""


class Scale:
    """Maps shares to the left of a line (leaves) and to its right (comes in), both with one unit."""

    def __init__(self, left: float, right: float) -> None:
        self.left, self.right = max(left, 0.0), max(right, 0.0)
        whole = max(self.left + self.right, LEAST)
        room = WIDTH - 2 * MARGIN
        # Each side keeps a tenth, so that the line and a whisker have room where nothing moves.
        self.zero = MARGIN + room * min(max(self.left / whole, 0.1), 0.9)
        self._unit = min(
            (self.zero - MARGIN) / self.left if self.left else float("inf"),
            (WIDTH - MARGIN - self.zero) / self.right if self.right else float("inf"),
            (room * 0.8) / LEAST,
        )

    def x(self, share: float) -> float:
        """Position of a signed share, held within the drawing."""
        return min(max(self.zero + share * self._unit, MARGIN / 2), WIDTH - MARGIN / 2)

    def holds(self, share: float) -> bool:
        return MARGIN / 2 < self.zero + share * self._unit < WIDTH - MARGIN / 2


def scale_of(leaves: Sequence[Estimate | None], comes_in: Sequence[Estimate | None]) -> Scale:
    """The scale that all rows of a table share."""
    sides = [max((one.value for one in side if one is not None), default=0.0) * ROOM for side in (leaves, comes_in)]
    return Scale(*sides)


def moves(scale: Scale, leaves: Estimate | None, comes_in: Estimate | None, of: str) -> Markup:
    """What leaves to the left of the line, what comes in to its right, each with its interval."""
    parts = []
    words = []
    for estimate, sign, css, word in ((leaves, -1, "out", "leaves"), (comes_in, 1, "in", "comes in")):
        if estimate is None:
            continue
        if not estimate.value:  # its interval is in words beside: a whisker at every nothing would look like something
            words.append(f"{word} 0 % ({interval(estimate)})")
            continue
        title = f"{word} {percent(estimate.value)} ({interval(estimate)})"
        words.append(title)
        near, far = sorted((scale.zero, scale.x(sign * estimate.value)))
        bar = f'<path class="{css}" d="M{near:.1f} {MIDDLE - 5}h{far - near:.1f}v10h-{far - near:.1f}z"/>'
        parts.append(f"<g><title>{_said(title)}</title>{bar}{_whisker(scale, sign, estimate)}</g>")
    parts.append(f'<path class="zero" d="M{scale.zero:.1f} 2V{HEIGHT - 2}"/>')
    label = f"{of}: " + ", ".join(words)
    return _svg("moves", label, parts)


def _whisker(scale: Scale, sign: int, estimate: Estimate) -> str:
    ends = [scale.x(sign * end) for end in (estimate.low, estimate.high)]
    path = f"M{ends[0]:.1f} {MIDDLE}H{ends[1]:.1f}"
    if scale.holds(sign * estimate.low) and estimate.low > 0:
        path += f"M{ends[0]:.1f} {MIDDLE - 3}v6"
    if scale.holds(sign * estimate.high):
        path += f"M{ends[1]:.1f} {MIDDLE - 3}v6"
    return f'<path class="whisker" d="{path}"/>'


def difference(largest: float, estimate: Estimate | None, of: str) -> Markup:
    """A difference of shares as a dot on a line with its interval; `largest` is the end of the line on both sides."""
    if estimate is None:
        return Markup("")
    scale = Scale(largest * ROOM, largest * ROOM)
    css = "up" if estimate.low > 0 else "down" if estimate.high < 0 else "none"
    low, high, at = (scale.x(end) for end in (estimate.low, estimate.high, estimate.value))
    parts = [
        f'<path class="zero" d="M{scale.zero:.1f} 2V{HEIGHT - 2}"/>',
        f'<path class="whisker" d="M{low:.1f} {MIDDLE}H{high:.1f}"/>',
        f'<circle class="dot {css}" cx="{at:.1f}" cy="{MIDDLE}" r="4"/>',
    ]
    return _svg("moves", f"{of}: {percent(estimate.value)} ({interval(estimate)})", parts)


def _said(text: str) -> Markup:
    """Text for an attribute or a title: names come from the crawl."""
    return escape(plain(text))


def _svg(css: str, label: str, parts: Sequence[str]) -> Markup:
    return Markup(
        f'<svg class="{css}" viewBox="0 0 {WIDTH:.0f} {HEIGHT:.0f}" role="img" aria-label="{_said(label)}">{"".join(parts)}</svg>'
    )
