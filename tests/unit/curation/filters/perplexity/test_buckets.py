"""Calibrations: percentiles of a language, by its label or code, and never another's."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.filters.perplexity.buckets import Calibration, LanguageCalibration, edges_of
from curation.filters.perplexity.histogram import BITS_STEP, BitsHistogram

ENGLISH = {"documents": 1000, "percentiles": {1: 1.0, 30: 2.0, 60: 3.0, 99: 4.0}}
CALIBRATION = Calibration.model_validate(
    {
        "languages": {
            "eng": ENGLISH,
            "zho": {"documents": 500, "percentiles": {1: 5.0, 99: 6.0}},
            "zho_Hant": {"documents": 20, "percentiles": {1: 7.0, 99: 8.0}},
            "und_Latn": {"documents": 900, "percentiles": {1: 9.0, 99: 10.0}},
        }
    }
)


@pytest.mark.parametrize(
    ("percentile", "bits"),
    [(0, -math.inf), (1, 1), (15.5, 1.5), (30, 2), (45, 2.5), (99, 4), (99.9, 4), (100, math.inf)],
)
def test_between_two_percentiles_lies_a_straight_line(percentile: float, bits: float) -> None:
    """Beyond the outermost known ones nothing is made up, and 0 and 100 hold every document."""
    assert LanguageCalibration.model_validate(ENGLISH).at(percentile) == pytest.approx(bits)


@pytest.mark.parametrize(
    ("label", "least", "first"),
    [
        ("eng_Latn", 100, 1),
        ("zho_Hans", 100, 5),
        ("zho_Hant", 100, 5),  # 20 documents are too few, so the language counts
        ("zho_Hant", 10, 7),
        ("deu_Latn", 1, None),  # und_Latn is what could not be named, not every language in Latin letters
        ("und_Latn", 1, 9),
        ("und", 1, None),
        ("eng_Latn", 1001, None),
    ],
)
def test_a_label_has_its_own_percentiles_or_its_language_s(label: str, least: int, first: float | None) -> None:
    """With enough documents behind them; a script never stands for a language."""
    found = CALIBRATION.of(label, least)
    assert (found and found.at(1)) == first


def test_edges_follow_the_labels() -> None:
    """A row for each document, nan where there is no calibration; no documents, no rows."""
    edges = edges_of(CALIBRATION, pa.array(["zho_Hans", "deu_Latn", "eng_Latn", "zho_Hans"]), (1, 99), 100)
    np.testing.assert_array_equal(edges, [[5, 6], [np.nan, np.nan], [1, 4], [5, 6]])
    assert edges_of(CALIBRATION, pa.array([], pa.string()), (1, 99), 100).shape == (0, 2)


@given(st.lists(st.floats(0, 70), min_size=1, max_size=200), st.lists(st.floats(0, 100), min_size=1, max_size=5))
def test_percentiles_of_a_histogram_are_those_of_the_documents(bits: list[float], wanted: list[float]) -> None:
    """The smallest value that so many percent do not exceed, to half a step; any order and any cut gives the same."""
    whole, first, second = BitsHistogram(), BitsHistogram(), BitsHistogram()
    whole.add(np.array(bits))
    first.add(np.array(bits[: len(bits) // 2]))
    second.add(np.array(bits[len(bits) // 2 :]))
    second.merge(first)

    found = whole.percentiles(wanted)

    assert whole.documents == len(bits)
    assert second.percentiles(wanted) == found
    expected = np.percentile(np.minimum(bits, 64), wanted, method="inverted_cdf")
    np.testing.assert_allclose(found, expected, atol=BITS_STEP / 2 + 1e-9)
