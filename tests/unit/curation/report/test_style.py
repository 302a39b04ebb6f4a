"""The style sheet: readable in both modes, and nothing in it is loaded from elsewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

CSS = (Path(__file__).resolve().parents[4] / "curation" / "report" / "page.css").read_text(encoding="utf-8")


def colours(css: str) -> dict[str, str]:
    return dict(re.findall(r"--([\w-]+): (#[0-9a-f]{3,6})\b", css))


LIGHT = colours(CSS[: CSS.index("prefers-color-scheme: dark")])
DARK = colours(CSS[CSS.index("prefers-color-scheme: dark") : CSS.index("box-sizing")])


def luminance(colour: str) -> float:
    """Relative luminance as WCAG 2.2 defines it."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("mode", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize("ground", ["paper", "panel"])
@pytest.mark.parametrize("ink", ["ink", "quiet", "kept", "dropped", "quarantined"])
def test_text_has_enough_contrast(mode: dict[str, str], ground: str, ink: str) -> None:
    """WCAG AA: 4.5 to 1 for every colour that text has, on every ground."""
    bright, dim = sorted((luminance(mode[ink]), luminance(mode[ground])), reverse=True)
    assert (bright + 0.05) / (dim + 0.05) >= 4.5


def test_both_modes_name_the_same_colours() -> None:
    assert LIGHT.keys() == DARK.keys()


def test_nothing_is_loaded() -> None:
    assert "url(" not in CSS
    assert "@import" not in CSS
    assert "</" not in CSS
