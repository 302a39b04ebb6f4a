"""Exponentials, logarithms and their sums are those of NumPy in double precision."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from curation.filters.language.exponentials import FAR, add_logs, exp_row, largest_of, logistic_row, padded
from curation.text.jit import kernel
from curation.text.memory import address_of

Floats = npt.NDArray[np.float32]


@kernel
def exp_all(row: Floats, origin: float, factor: float) -> float:
    total: float = exp_row(address_of(row), len(row), origin, factor)
    return total


@kernel
def logistic_all(row: Floats) -> None:
    logistic_row(address_of(row), len(row))


@kernel
def largest(row: Floats) -> float:
    found: float = largest_of(address_of(row), len(row))
    return found


@kernel
def add_all_logs(target: Floats, source: Floats, weight: float) -> None:
    add_logs(address_of(target), address_of(source), len(source), weight)


def some(low: float, high: float) -> Floats:
    """Floats over a range, with what is near 0, and 0."""
    rng = np.random.default_rng(1)
    near = rng.normal(0, 1e-4, 1 << 10)
    return np.concatenate([rng.uniform(low, high, 1 << 16), near, np.zeros(16)]).astype(np.float32)


@pytest.mark.parametrize(("origin", "factor"), [(0.0, 1.0), (3.0, 1.0), (88.0, 0.25), (-5.0, -0.5)])
def test_exponentials(origin: float, factor: float) -> None:
    """Within 2e-7 of e ** ((x - origin) * factor), and their sum to 1e-5; e ** 0 is exactly 1."""
    x = some(-80, 80)
    scaled = (x - np.float32(origin)) * np.float32(factor)
    scaled = scaled.astype(np.float64)
    keep = np.abs(scaled) < 87
    row = x.copy()
    row[~keep] = origin
    expected = np.exp(np.where(keep, scaled, 0))
    total = exp_all(row, origin, factor)
    np.testing.assert_allclose(row, expected, rtol=2e-7)
    assert total == pytest.approx(expected.sum(), rel=1e-5)
    assert (row[~keep | (scaled == 0)] == 1).all()


def test_exponentials_of_what_is_no_usual_number() -> None:
    """What is far below is nearly nothing, NaN stays, and nothing becomes infinite."""
    row = np.array([FAR, -np.inf, -200, 200, np.inf, np.nan, *[0] * 10], np.float32)
    assert np.isnan(exp_all(row, 0, 1))
    assert (row[:3] < 1e-37).all()
    assert (row[3:5] > 1e38).all()
    assert np.isfinite(row[:5]).all()
    assert np.isnan(row[5])


def test_logistic() -> None:
    """Within 2e-7 of 1 / (1 + e ** -x)."""
    x = some(-80, 80)
    row = x.copy()
    logistic_all(row)
    np.testing.assert_allclose(row, 1 / (1 + np.exp(-x.astype(np.float64))), rtol=2e-7)


def test_logarithms_are_added_with_a_weight() -> None:
    """To a row that holds something already; of numbers from 1e-37 to 1e37."""
    x = np.exp(some(-85, 85))
    x[:3] = 1, np.nextafter(np.float32(1), np.float32(0)), np.sqrt(np.float32(0.5))
    total = np.full(len(x), 2, np.float32)
    add_all_logs(total, x, 0.5)
    np.testing.assert_allclose(total, 2 + 0.5 * np.log(x.astype(np.float64)), rtol=1e-6, atol=3e-7)


def test_largest() -> None:
    """In any lane."""
    for place in range(48):
        row = np.full(48, FAR, np.float32)
        row[place] = -3
        assert largest(row) == -3


def test_padded() -> None:
    """The next multiple of 16."""
    assert [padded(n) for n in (0, 1, 16, 17)] == [0, 16, 16, 32]
