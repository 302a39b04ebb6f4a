"""Draws docs/pipeline.svg, the picture in the README: how a line of crawl becomes tokens, or is accounted for."""

from __future__ import annotations

import sys
from pathlib import Path
from xml.sax.saxutils import escape

TARGET = Path(__file__).resolve().parent.parent / "docs" / "pipeline.svg"
STAGES = (
    ("ingest", "jsonl, parquet,\nArrow, WARC"),
    ("dedup", "exact"),
    ("quality", "html_noise,\nlength"),
    ("pack", "best fit, borders,\nchecksums"),
)
STEP, TOP, HEIGHT = 205, 24, 92
INK, QUIET, KEPT, LOST = "#1f2933", "#62707f", "#2f7d5b", "#b3541e"


def picture() -> str:
    """The SVG as text."""
    width = STEP * len(STAGES) + 270
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} 240" font-family="Helvetica, Arial, sans-serif" role="img">',
        "<title>Lines go through ingest, dedup, quality and pack; whatever leaves the stream is kept with its reason</title>",
        f'<rect width="{width}" height="240" fill="#ffffff"/>',
        _text(20, TOP + 40, "crawl", 17, INK, "bold"),
        _text(20, TOP + 62, "lines in", 13, QUIET),
    ]
    for index, (name, what) in enumerate(STAGES):
        parts += _stage(140 + index * STEP, index, name, what)
    end = 140 + len(STAGES) * STEP
    parts += [
        _text(end, TOP + 40, "tokens.arrow", 17, KEPT, "bold"),
        _text(end, TOP + 62, "one file, mapped", 13, QUIET),
        _text(20, 222, "lines in = documents + quarantined", 14, INK),
        _text(330, 222, "documents = kept + dropped by a named reason", 14, INK),
        _text(720, 222, "kept = packed", 14, INK),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _stage(x: int, index: int, name: str, what: str) -> list[str]:
    """A box, the stream into it (narrower at each stage), and what leaves it downwards."""
    thickness = 30 - 6 * index
    middle = TOP + HEIGHT / 2
    box = STEP - 55
    lost = ("quarantine", "dropped", "dropped", "")[index]
    parts = [
        f'<rect x="{x - 55}" y="{middle - thickness / 2}" width="55" height="{thickness}" fill="{KEPT}" opacity="0.75"/>',
        f'<rect x="{x}" y="{TOP}" width="{box}" height="{HEIGHT}" rx="8" fill="#f4f7f5" stroke="{KEPT}" stroke-width="1.5"/>',
        _text(x + 14, TOP + 28, name, 17, INK, "bold"),
        *[_text(x + 14, TOP + 52 + 19 * row, line, 13, QUIET) for row, line in enumerate(what.split("\n"))],
    ]
    if lost:
        parts += [
            f'<path d="M {x + 40} {TOP + HEIGHT} v 34" stroke="{LOST}" stroke-width="7" opacity="0.8"/>',
            _text(x + 14, TOP + HEIGHT + 54, lost, 14, LOST, "bold"),
            _text(x + 14, TOP + HEIGHT + 72, "place, raw bytes" if index == 0 else "reason, scores", 12, QUIET),
        ]
    if index == len(STAGES) - 1:
        parts.append(f'<rect x="{x + box}" y="{middle - 5}" width="42" height="10" fill="{KEPT}" opacity="0.75"/>')
    return parts


def _text(x: float, y: float, text: str, size: int, colour: str, weight: str = "normal") -> str:
    return f'<text x="{x}" y="{y}" font-size="{size}" fill="{colour}" font-weight="{weight}">{escape(text)}</text>'


if __name__ == "__main__":
    TARGET.write_text(picture(), encoding="utf-8")
    sys.exit(0)
