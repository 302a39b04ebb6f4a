"""The distribution of a score: exact counters, the same for any cut, and bars that hold every document."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from curation.report.sketch import MAX_BARS, Sketch

VALUES = arrays(np.float64, st.integers(0, 200), elements=st.floats(-1e6, 1e6))


def sketch_of(values: object, keep: object = None) -> Sketch:
    sketch = Sketch()
    data = np.asarray(values, np.float64)
    sketch.add(data, np.ones(len(data), np.bool_) if keep is None else np.asarray(keep, np.bool_))
    return sketch


@given(VALUES, st.lists(st.floats(-1e6, 1e6), max_size=3))
@example(np.array([8.5, 1.0]), [2.225073858507203e-309])
def test_every_document_is_in_one_bar(values: np.ndarray, thresholds: list[float]) -> None:
    """Bars, and what is counted below and above them, add up to all documents."""
    keep = np.arange(len(values)) % 3 > 0
    sketch = sketch_of(values, keep)
    bars = sketch.bars(thresholds)
    found = bars.counts.sum(axis=1) + np.array(bars.below) + np.array(bars.above)
    assert found.tolist() == [int((~keep).sum()), int(keep.sum())]
    assert (np.diff(bars.edges) > 0).all()
    assert bars.counts.shape[1] <= 3 * MAX_BARS


@given(VALUES, st.integers(0, 200))
def test_any_cut_gives_the_same_sketch(values: np.ndarray, cut: int) -> None:
    whole, parts = sketch_of(values), Sketch()
    for part in (values[cut:], values[:cut]):
        parts.add(part, np.ones(len(part), np.bool_))
    for q in (0.0, 0.1, 0.5, 0.99, 1.0):
        assert np.array_equal(whole.quantile(q), parts.quantile(q), equal_nan=True)
    assert np.array_equal(whole.bars([]).counts, parts.bars([]).counts)


def test_quantiles_are_within_a_thousandth() -> None:
    values = np.random.default_rng(1).lognormal(5, 2, 20_000)
    sketch = sketch_of(values)
    for q in (0.05, 0.5, 0.95):
        assert sketch.quantile(q) == pytest.approx(np.quantile(values, q), rel=2e-3)


@pytest.mark.parametrize("values", [range(4097), [-5, -1, 0, 3, 4096], [0.5, 0.25, 1.5]])
def test_whole_numbers_and_simple_fractions_are_exact(values: object) -> None:
    data = np.array(list(values), np.float64)  # type: ignore[call-overload]
    sketch = sketch_of(data)
    found = [sketch.quantile((i + 0.5) / len(data)) for i in range(len(data))]
    assert found == sorted(data.tolist())


@pytest.mark.parametrize("threshold", [0.3, 0.12, 0.1, 0.7])
def test_a_value_at_a_threshold_stands_above_it(threshold: float) -> None:
    """The rounding of float32 does not move a document over the line that is drawn."""
    values = np.array([0.0, threshold, 1.0], np.float32).astype(np.float64)
    bars = sketch_of(values).bars([threshold])
    bar = np.flatnonzero(bars.counts[1])[1]
    assert bars.edges[bar + 1] > threshold
    assert bars.edges[bar] <= threshold + 1e-9


def test_undefined_values_are_counted_apart() -> None:
    """nan, as null scores come, and infinite ones."""
    sketch = sketch_of([1.0, np.nan, np.inf, 2.0], [True, False, True, True])
    assert sketch.undefined.tolist() == [1, 1]
    assert sketch.total == 2


@pytest.mark.parametrize(
    ("values", "log"),
    [
        (np.random.default_rng(2).lognormal(6, 2, 5000), True),
        (np.random.default_rng(2).uniform(0, 1, 5000), False),
        (np.random.default_rng(2).normal(100, 10, 5000), False),
        (np.random.default_rng(2).normal(0, 10, 5000), False),
        (np.zeros(100), False),
        ([0] * 900 + [500] * 100, True),
    ],
)
def test_the_axis_follows_the_data(values: object, log: bool) -> None:
    """Wide, positive and skewed: logarithmic. Everything else: linear."""
    assert sketch_of(values).bars([]).log is log


def test_no_value_at_all() -> None:
    sketch = Sketch()
    assert sketch.bars([1.0]).counts.sum() == 0
    assert np.isnan(sketch.quantile(0.5))


@pytest.mark.parametrize("value", [0.0, 1.0, -1.0, 1e-30, 1e30, 3.4e38, 1e300, -1e300])
def test_one_value_has_a_bar(value: float) -> None:
    """Whatever its size."""
    bars = sketch_of([value] * 5).bars([])
    assert bars.counts.sum() + sum(bars.below) + sum(bars.above) == 5
