"""The drawings: well formed, inside their box, true to scale."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from curation.report.charts import histogram, ticks
from curation.report.funnel_chart import Branch, Level, draw_funnel
from curation.report.sketch import Sketch

RNG = np.random.default_rng(3)
DATA = {
    "lognormal": RNG.lognormal(5, 2, 3000),
    "share": RNG.beta(1, 9, 3000),
    "mostly zero": np.where(RNG.random(3000) < 0.95, 0, RNG.random(3000)),
    "negative": RNG.normal(0, 3, 3000),
    "whole": RNG.integers(0, 12, 3000).astype(np.float64),
    "one": np.array([7.0]),
    "huge": np.array([1e30, 1.0, 0.0]),
}


@pytest.mark.parametrize("kept", ["all", "none", "some"])
@pytest.mark.parametrize("name", DATA)
def test_a_histogram_stays_in_its_box(name: str, kept: str) -> None:
    """Valid XML; every bar between the edges of the view; a title for each bar."""
    values = DATA[name]
    sketch = Sketch()
    sketch.add(values, {"all": values == values, "none": values != values, "some": values < np.median(values)}[kept])
    svg = ElementTree.fromstring(str(histogram(sketch, name, "share", [0.5, 3.0])))
    _, _, width, height = map(float, svg.attrib["viewBox"].split())
    bars = [path for path in svg.iter("path") if path.attrib["class"] in "kd"]
    assert bars
    for path in bars:
        x, y, w, h = map(float, re.fullmatch(r"M(\S+) (\S+)h(\S+)v(\S+)h-\S+z", path.attrib["d"]).groups())  # type: ignore[union-attr]
        assert x >= 0
        assert x + w <= width + 0.1
        assert y >= 0
        assert y + h <= height
    assert len(list(svg.iter("title"))) >= len({path.attrib["d"].split(" ")[0] for path in bars})


TALL = {
    "rising": 0.9 + 0.1 * RNG.beta(3, 1, 1506),
    "level": RNG.random(3000),
    "high at both ends": np.tile([0.0, 1.0], 700),
    "broken at the end": np.concatenate([RNG.random(150), np.full(2850, 1.0)]),
    "broken at the start": np.concatenate([RNG.random(150), np.zeros(2850)]),
}


@pytest.mark.parametrize("kept", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("name", DATA | TALL)
def test_what_a_side_counts_covers_no_bar(name: str, kept: float) -> None:
    """`dropped 1,506` stands where bars are short, else in a row of its own, and inside the drawing."""
    values = (DATA | TALL)[name]
    sketch = Sketch()
    sketch.add(values, np.random.default_rng(5).random(len(values)) < kept)
    svg = ElementTree.fromstring(str(histogram(sketch, name, "share", [0.9])))
    height = float(svg.attrib["viewBox"].split()[3])
    bars = [path.attrib for path in svg.iter("path") if path.attrib["class"] in "kd"]
    boxes = [list(map(float, re.findall(r"-?[0-9.]+", bar["d"])))[:4] for bar in bars]
    counted = [text for text in svg.iter("text") if text.attrib["class"].startswith("side ")]
    assert len(counted) == len({bar["class"] for bar in bars})
    for text in counted:
        right, line = float(text.attrib["x"]), float(text.attrib["y"])
        left, above = right - 6.4 * len(text.text or ""), line - 8
        assert left >= 0
        assert above >= 0
        assert line < height - 12
        covered = [b for b in boxes if b[0] < right and b[0] + b[2] > left and b[1] < line and b[1] + b[3] > above]
        assert not covered


def test_titles_count_every_document() -> None:
    sketch = Sketch()
    sketch.add(DATA["lognormal"], DATA["lognormal"] > 50)
    titles = re.findall(r"([\d,]+) kept, ([\d,]+) dropped</title>", str(histogram(sketch, "x", "words", [50])))
    totals = [sum(int(pair[side].replace(",", "")) for pair in titles) for side in (0, 1)]
    assert totals == [int((DATA["lognormal"] > 50).sum()), int((DATA["lognormal"] <= 50).sum())]


@pytest.mark.parametrize("low", [-1e6, -3.0, 0.0, 1e-3, 97.0])
@pytest.mark.parametrize("span", [1e-6, 0.5, 7.0, 1e9])
def test_ticks_are_few_and_inside(low: float, span: float) -> None:
    found = ticks(low, low + span, log=False)
    assert 1 <= len(found) <= 12
    assert all(low - 1e-6 * span <= t <= low + span * (1 + 1e-6) for t in found)


def test_decades_are_ticks() -> None:
    assert ticks(1, 1e5, log=True) == [1, 10, 100, 1e3, 1e4, 1e5]
    assert ticks(20, 90, log=True) == [20, 50]


def test_the_funnel_is_true_to_scale() -> None:
    """Widths of the levels are proportional to documents, in both drawings."""
    levels = [
        Level("in", 1000, "1,000"),
        Level("a", 600, "600", "step-1", [Branch("a.x", 350)]),
        Level("kept", 250, "250"),
    ]
    for svg, full in zip(drawings(levels), (470, 128), strict=True):
        widths = [float(rect.attrib["width"]) for rect in svg.iter("rect")]
        assert widths == pytest.approx([full, 0.6 * full, 0.25 * full], abs=0.01)


def drawings(levels: list[Level]) -> list[ElementTree.Element]:
    return list(ElementTree.fromstring(f"<div>{draw_funnel(levels, 'a funnel')}</div>"))


@pytest.mark.parametrize(
    "levels",
    [
        [Level("in", 0, "0"), Level("kept", 0, "0")],
        [Level("in", 5, "5", "", [Branch("all", 5)]), Level("kept", 0, "0")],
        [Level("in", 10**9, "", "", [Branch("one", 1, "quarantined")]), Level("kept", 10**9 - 1, "")],
        [Level("in", 900, "", "", [Branch(f"r{i}", 30) for i in range(30)]), Level("kept", 0, "")],
        [Level("<b>" * 20, 3, "&", "x", [Branch("</text>" * 20, 1, "dropped", '"')]), Level("kept", 2, "")],
    ],
)
def test_any_funnel_can_be_drawn(levels: list[Level]) -> None:
    """Nothing, everything gone at once, one of a billion, thirty reasons, names that are markup: inside the box."""
    for svg in drawings(levels):
        _, _, width, height = map(float, svg.attrib["viewBox"].split())
        for path in svg.iter("path"):
            numbers = [float(n) for n in re.findall(r"-?\d+\.?\d*", path.attrib["d"])]
            assert all(abs(n) <= max(width, height) + 1 for n in numbers)


def test_rare_reasons_are_one_branch_that_names_them() -> None:
    branches = [Branch(f"r{i}", 100 - i) for i in range(10)]
    wide, _ = drawings([Level("in", 1000, "", "", branches), Level("kept", 45, "")])
    titles = [title.text or "" for title in wide.iter("title")]
    rest = next(title for title in titles if title.startswith("5 more reasons"))
    assert all(f"r{i} {100 - i}" in rest for i in range(5, 10))
