"""Thresholds keep what they promise, also on the rows where nothing can be promised."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from quality_models.safety_calibration import (
    FEWEST,
    LEAST,
    NEVER,
    average_precision,
    fit_platt,
    mean_average_precision,
    measured,
    measures,
    precise,
    quiet,
    thresholds_of,
)


@pytest.mark.parametrize(
    ("scores", "hits", "wanted"),
    [
        ([3, 2, 1], [1, 1, 0], 1.0),
        ([3, 2, 1], [0, 0, 1], 1 / 3),
        ([3, 2, 1], [1, 0, 1], (1 + 2 / 3) / 2),
        ([1, 1, 1, 1], [1, 0, 0, 1], 0.5),
        ([1], [1], 1.0),
    ],
)
def test_average_precision_by_hand(scores: list[float], hits: list[float], wanted: float) -> None:
    """Known values; equal scores count together, so that the order of rows is no matter."""
    assert average_precision(np.array(scores, float), np.array(hits, float)) == pytest.approx(wanted)


def test_average_precision_without_hits() -> None:
    """Nothing to find is nan, and left out of the mean."""
    assert math.isnan(average_precision(np.array([1.0, 2.0]), np.zeros(2)))
    scores = np.array([[1.0, 5.0], [2.0, 1.0]])
    assert mean_average_precision(scores, np.array([[0, 1], [0, 0]])) == 1.0
    assert mean_average_precision(scores, np.zeros((2, 2))) == 0.0


def test_platt_finds_the_slope_that_made_the_labels() -> None:
    """Labels drawn with known a and b give them back; it is monotone, and hard cases do not fail."""
    draw = np.random.default_rng(1)
    logits = draw.normal(0, 3, 20_000)
    hits = draw.random(20_000) < 1 / (1 + np.exp(-(0.7 * logits - 1)))
    assert fit_platt(logits, hits) == pytest.approx((0.7, -1), abs=0.06)
    separable = fit_platt(np.array([-20.0, -10, 10, 20]), np.array([0, 0, 1, 1]))
    assert separable[0] > 0
    assert all(map(math.isfinite, separable))
    assert fit_platt(np.array([1.0, 2.0]), np.zeros(2)) == (1.0, 0.0)
    assert fit_platt(-logits, hits) == (1.0, 0.0), "a model that is wrong is not turned round"


@given(
    hnp.arrays(np.float32, 80, elements=st.sampled_from([round(n / 20, 2) for n in range(21)])),
    hnp.arrays(np.int8, 80, elements=st.integers(0, 1)),
    st.sampled_from([0.5, 0.8, 0.95]),
)
@settings(max_examples=60, deadline=None)
def test_precise_keeps_its_promise_and_is_lowest(scores: np.ndarray, hits: np.ndarray, wanted: float) -> None:
    """At the threshold the precision is reached among enough rows; no lower score does so."""
    threshold = precise(scores, hits, wanted)
    reached = []
    for score in np.unique(scores):
        flagged = scores >= score
        if flagged.sum() >= FEWEST and hits[flagged].mean() >= wanted:
            reached.append(float(score))
    if not reached:
        assert threshold == NEVER
    else:
        np.testing.assert_array_equal(scores >= np.float32(threshold), scores >= np.float32(min(reached)))


@given(
    hnp.arrays(np.float32, (60, 3), elements=st.floats(0, 1, width=32)),
    st.sampled_from([0.0, 0.01, 0.05, 0.3, 1.0]),
)
@settings(max_examples=60, deadline=None)
def test_quiet_flags_no_more_than_its_share(windows: np.ndarray, share: float) -> None:
    """All labels together flag at most the share, but for texts of probability 1, over which no threshold lies."""
    limits = quiet(windows, share)
    flagged = ((windows >= limits) & (windows < 1)).any(axis=1)
    assert flagged.sum() <= share * len(windows) + 1e-9
    assert ((limits >= 0) & (limits <= 1)).all()


def test_quiet_uses_what_it_may() -> None:
    """Labels that flag the same texts do not halve what each may flag."""
    column = np.linspace(0, 0.9, 1000, dtype=np.float32)
    same = np.stack([column, column], 1)
    assert (same >= quiet(same, 0.1)).any(axis=1).sum() == 100
    apart = np.stack([column, column[::-1]], 1)
    assert (apart >= quiet(apart, 0.1)).any(axis=1).sum() == 100
    assert quiet(np.empty((0, 2), np.float32), 0.1).tolist() == [0, 0]


def test_thresholds_are_the_stricter_of_both_promises() -> None:
    """Harmless windows raise a threshold, long documents that for long ones, and neither lowers one."""
    draw = np.random.default_rng(2)
    hits = (draw.random((2000, 1)) < 0.5).astype(np.float32)
    scores = (0.5 * draw.random((2000, 1)) + 0.5 * hits).astype(np.float32)
    languages = ["zho"] * 900 + ["eng"] * 790 + ["kor"] * 10 + [""] * 300
    none = np.empty((0, 1), np.float32)
    given_ = {"precision": 0.9, "share": 0.01}
    free = thresholds_of(("spam",), scores, hits, languages, windows=none, documents=none, **given_)
    assert free.default["spam"] == free.long["spam"] == LEAST
    assert set(free.languages) == {"zho", "eng"}, "ten rows are too few, and rows of no known language make none"
    windows = np.linspace(0, 0.7, 1000, dtype=np.float32)[:, None]
    documents = np.linspace(0, 0.9, 1000, dtype=np.float32)[:, None]
    held = thresholds_of(("spam",), scores, hits, languages, windows=windows, documents=documents, **given_)
    assert held.default["spam"] == pytest.approx(0.693, abs=0.002)
    assert held.long["spam"] == pytest.approx(0.891, abs=0.002)
    assert all(of["spam"] >= 0.69 for of in held.languages.values())


def test_what_cannot_be_promised_is_off_and_said() -> None:
    """A label that is never precise gets threshold 1 and a note."""
    scores = np.linspace(0, 0.99, 200, dtype=np.float32)[:, None]
    hits = (np.arange(200) % 2 == 0).astype(np.float32)[:, None]
    none = np.empty((0, 1), np.float32)
    found = thresholds_of(
        ("hate",), scores, hits, ["eng"] * 200, precision=0.99, share=0.1, windows=none, documents=none
    )
    assert found.default == {"hate": NEVER}
    assert "hate" in found.notes[0]


def test_measures_by_language() -> None:
    """Precision, recall and F1 at the threshold, over all rows and in each language that has hits."""
    scores = np.array([[0.9], [0.8], [0.2], [0.7]])
    hits = np.array([[1], [0], [1], [0]])
    found = measures(("spam",), scores, hits, ["zho", "zho", "zho", "eng"], {"spam": 0.75})
    assert found["all"]["spam"][:5] == (4, 2, 0.5, 0.5, 0.5)
    assert set(found) == {"all", "zho"}
    assert math.isnan(measured(np.array([0.1]), np.array([1]), 0.5).precision)
