"""The funnel as a picture: a stream of documents that narrows, with what each step took bending away to the right.

Widths are true to the number of documents, so nothing looks smaller than it is; a stream too thin to see keeps a
hairline. The same drawing is made twice, wide and narrow, and the style sheet shows the one that fits the screen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from markupsafe import Markup, escape

from curation.report.numbers import count, share

__all__ = ["Branch", "Level", "draw_funnel"]

MAX_BRANCHES = 6
HAIRLINE = 1.4
NODE = 9.0


@dataclass(frozen=True, slots=True)
class Branch:
    """What a level takes away under one name."""

    name: str
    n: int
    kind: str = "dropped"
    """`dropped` or `quarantined`: the colour."""
    title: str = ""


@dataclass(frozen=True, slots=True)
class Level:
    """A place in the stream: so many arrive, some branch off, the rest flows on."""

    name: str
    n: int
    note: str = ""
    anchor: str = ""
    branches: Sequence[Branch] = field(default=())


@dataclass(frozen=True, slots=True)
class _Layout:
    """Measures of one of the two drawings, in pixels."""

    css: str
    width: float
    stream_left: float
    stream_width: float
    label_x: float
    """Where branches end and their labels begin."""
    row: float
    """Least height between two levels."""
    beside: bool
    """Level names stand left of the stream; else above it."""
    two_lines: bool

    @property
    def label_height(self) -> float:
        return 31 if self.two_lines else 20


_WIDE = _Layout("wide", 1080, 190, 470, 716, 58, beside=True, two_lines=False)
_NARROW = _Layout("narrow", 350, 2, 128, 158, 76, beside=False, two_lines=True)


def draw_funnel(levels: Sequence[Level], summary: str) -> Markup:
    """Both drawings of the funnel.

    Args:
        levels: from the widest to the last; `n` of the first sets the scale.
        summary: what the picture says, for readers who cannot see it.
    """
    return Markup("".join(_draw(levels, summary, layout) for layout in (_WIDE, _NARROW)))


def _draw(levels: Sequence[Level], summary: str, layout: _Layout) -> str:
    scale = layout.stream_width / max(levels[0].n, 1)
    y = 16.0 if layout.beside else 34.0
    streams, branches, nodes = [], [], []
    for position, level in enumerate(levels):
        last = position == len(levels) - 1
        shown = _merge_rest(level.branches)
        gone = sum(branch.n for branch in shown)
        heights = [max(branch.n * scale, layout.label_height) + 5 for branch in shown]
        height = 0.0 if last else max(layout.row, NODE + 6 + sum(heights) + (0 if layout.beside else 30))
        nodes.append(_node(level, y, scale, layout))
        if not last:
            streams.append(_stream(max(level.n - gone, 0), level.n, y, height, scale, layout))
            branches += _branches(shown, level.n, y + NODE, heights, scale, layout)
        y += height
    bottom = y + (30 if layout.beside else 24)
    body = "".join([*streams, *branches, *nodes])
    return (
        f'<svg class="funnel {layout.css}" viewBox="0 0 {layout.width:.0f} {bottom:.0f}" role="group" '
        f'aria-label="{escape(summary)}">{body}</svg>'
    )


def _merge_rest(branches: Sequence[Branch]) -> list[Branch]:
    """The largest branches; the others as one, which its title names."""
    ranked = sorted((branch for branch in branches if branch.n), key=lambda branch: (-branch.n, branch.name))
    if len(ranked) <= MAX_BRANCHES:
        return ranked
    rest = ranked[MAX_BRANCHES - 1 :]
    title = ", ".join(f"{branch.name} {count(branch.n)}" for branch in rest)
    return [
        *ranked[: MAX_BRANCHES - 1],
        Branch(f"{len(rest)} more reasons", sum(branch.n for branch in rest), rest[0].kind, title),
    ]


def _stream(n_after: int, n_before: int, y: float, height: float, scale: float, layout: _Layout) -> str:
    """What flows on to the next level; in the narrow drawing it ends above the next level's name."""
    below = NODE if layout.beside else NODE + 23
    width = max(n_after * scale, HAIRLINE if n_after else 0)
    if not width:
        return ""
    title = f"{count(n_after)} go on, {share(n_after, n_before)} of {count(n_before)}"
    return (
        f'<path class="stream" d="M{layout.stream_left:.1f} {y + NODE:.1f}h{width:.2f}v{height - below:.1f}h-{width:.2f}z">'
        f"<title>{escape(title)}</title></path>"
    )


def _branches(
    shown: Sequence[Branch], n: int, y: float, heights: Sequence[float], scale: float, layout: _Layout
) -> list[str]:
    """Branches of one level, from the right edge of the stream: the largest one on top."""
    parts = []
    right = layout.stream_left + n * scale
    target = y + 6
    for branch, height in zip(shown, heights, strict=True):
        width = max(branch.n * scale, HAIRLINE)
        left = max(right - branch.n * scale, layout.stream_left)
        middle = target + (height - 5) / 2
        path = _bend(left, max(right, left + width), y, middle - width / 2, width, layout.label_x)
        part = share(branch.n, n)
        title = f"{branch.name}: {count(branch.n)} of {count(n)}, {part}" + (
            f" - {branch.title}" if branch.title else ""
        )
        parts.append(
            f'<g class="branch {branch.kind}"><title>{escape(title)}</title><path d="{path}"/>'
            + _branch_label(branch, part, middle, layout)
            + "</g>"
        )
        target += height
        right -= branch.n * scale
    return parts


def _bend(left: float, right: float, y: float, target: float, width: float, end: float) -> str:
    """A band that comes from above between `left` and `right`, turns, and runs to x = `end` at y = `target`."""
    outer = min(18.0, max(target - y, 2.0))
    inner = outer + (right - left)
    return (
        f"M{left:.2f} {y:.1f}V{max(target + width - inner, y):.2f}"
        f"Q{left:.2f} {target + width:.2f} {min(left + inner, end - 1):.2f} {target + width:.2f}H{end:.1f}V{target:.2f}"
        f"H{min(right + outer, end - 1):.2f}Q{right:.2f} {target:.2f} {right:.2f} {max(target - outer, y):.2f}V{y:.1f}z"
    )


def _branch_label(branch: Branch, part: str, middle: float, layout: _Layout) -> str:
    x = layout.label_x + 8
    if layout.two_lines:
        return (
            f'<text x="{x}" y="{middle - 3:.1f}">{escape(_cut(branch.name, 29))}</text>'
            f'<text class="amount" x="{x}" y="{middle + 11:.1f}">{count(branch.n)} · {escape(part)}</text>'
        )
    return (
        f'<text x="{x}" y="{middle + 4.5:.1f}">{escape(_cut(branch.name, 40))}'
        f'<tspan class="amount" dx="8">{count(branch.n)} · {escape(part)}</tspan></text>'
    )


def _node(level: Level, y: float, scale: float, layout: _Layout) -> str:
    """The bar of a level with its name and number."""
    width = max(level.n * scale, HAIRLINE if level.n else 0)
    bar = (
        f'<rect class="node" x="{layout.stream_left:.1f}" y="{y:.1f}" width="{width:.2f}" height="{NODE}"/>'
        if width
        else ""
    )
    if layout.beside:
        x = layout.stream_left - 16
        text = (
            f'<text class="level" x="{x}" y="{y + 9:.1f}" text-anchor="end">{escape(_cut(level.name, 24))}</text>'
            f'<text class="amount" x="{x}" y="{y + 26:.1f}" text-anchor="end">{escape(level.note)}</text>'
        )
    else:
        text = (
            f'<text class="level" x="{layout.stream_left}" y="{y - 7:.1f}">{escape(_cut(level.name, 24))}'
            f'<tspan class="amount" dx="8">{escape(level.note)}</tspan></text>'
        )
    body = f"<g><title>{escape(level.name)}: {escape(level.note)}</title>{bar}{text}</g>"
    return f'<a href="#{escape(level.anchor)}">{body}</a>' if level.anchor else body


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"
