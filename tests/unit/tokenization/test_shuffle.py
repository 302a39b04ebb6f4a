"""The permutation is a bijection, frozen by known answers, and as mixed as a shuffle should be."""

from __future__ import annotations

import math
from collections import Counter
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokenization.shuffle import Permutation

KNOWN = {
    (1, 0, 0): [0],
    (10, 0, 0): [8, 5, 2, 9, 0, 6, 7, 1, 3, 4],
    (1000, 7, 3): [393, 369, 517, 258, 711, 49, 875, 622],
    (100_000, 7, 0): [90102, 69202, 60453, 81945, 25702, 48522, 43717, 16186],
    (10**12, 7, 3): [112480063585, 781504662127, 436768957290, 279634272300],
    (2**62, -1, 0): [601079946633322547, 1441846499416415156, 3126057605473882503, 3175882072744875698],
}


@pytest.mark.parametrize(("arguments", "answers"), KNOWN.items())
def test_known_answers(arguments: tuple[int, int, int], answers: list[int]) -> None:
    """Frozen: another number here would be another order of every run that is resumed."""
    permutation = Permutation(*arguments)
    numbers = range(len(answers))
    assert [permutation(i) for i in numbers] == answers
    assert permutation.many(np.array(numbers, np.int64)).tolist() == answers


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 5, 24, 25, 26, 97, 4096, 4097, 65_537])
@pytest.mark.parametrize("epoch", [0, 1])
def test_every_number_once(n: int, epoch: int) -> None:
    """A bijection for squares, primes and their neighbours, on both sides of the border between round counts."""
    numbers = np.arange(n)
    permutation = Permutation(n, 11, epoch)
    there = permutation.many(numbers)
    assert (there.dtype, sorted(there.tolist())) == (np.int64, numbers.tolist())
    assert np.array_equal(permutation.inverse_many(there), numbers)


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 2**62), st.integers(), st.integers(0, 100), st.data())
def test_one_is_as_many_and_back(n: int, seed: int, epoch: int, data: st.DataObject) -> None:
    """One number at a time, many at once and the way back agree, up to 2**62 numbers and for any seed."""
    numbers = data.draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=20))
    permutation = Permutation(n, seed, epoch)
    there = [permutation(i) for i in numbers]
    assert permutation.many(np.array(numbers)).tolist() == there
    assert all(0 <= i < n for i in there)
    assert [permutation.inverse(i) for i in there] == numbers
    assert permutation.inverse_many(np.array(there)).tolist() == numbers


@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_every_order_is_as_likely(n: int) -> None:
    """All n! orders appear over seeds, none more often than chance allows (chi-square, 5 sigma; seeds are fixed)."""
    seeds, orders = 1_200, math.factorial(n)
    found = Counter(tuple(Permutation(n, seed).many(np.arange(n)).tolist()) for seed in range(seeds))
    assert set(found) == set(permutations(range(n)))
    expected = seeds / orders
    chi_square = sum((count - expected) ** 2 / expected for count in found.values())
    assert chi_square < (orders - 1) + 5 * math.sqrt(2 * (orders - 1))


def test_neighbours_are_parted() -> None:
    """In a permutation of 10**12, a million places are spread evenly and say nothing about the next."""
    there = Permutation(10**12, 1).many(np.arange(10**6)).astype(np.float64) / 10**12
    counts = np.histogram(there, 100, (0, 1))[0]
    assert abs(counts - 10**4).max() < 5 * 100
    assert abs(np.corrcoef(there[1:], there[:-1])[0, 1]) < 0.005


def test_epochs_and_seeds_differ() -> None:
    """Another seed, epoch or size is another order; the same ones are the same."""
    orders = {
        tuple(Permutation(100 + more, seed, epoch).many(np.arange(20)).tolist())
        for more, seed, epoch in np.ndindex(2, 5, 5)
    }
    assert len(orders) == 50
    assert repr(Permutation(5, 1, 2)) == "Permutation(5, seed=1, epoch=2)"
    assert len(Permutation(5, 1)) == 5


def test_shapes_and_types() -> None:
    """The shape is kept, any whole type is taken, what was given is not changed, nothing gives nothing."""
    permutation = Permutation(100, 1)
    given_ = np.arange(6, dtype=np.int32).reshape(2, 3)
    there = permutation.many(given_)
    assert (there.shape, there.dtype, given_[0, 0]) == ((2, 3), np.int64, 0)
    assert permutation.many([]).shape == (0,)
    assert int(permutation.many(np.int64(3))) == permutation(np.int64(3))  # type: ignore[arg-type]


@pytest.mark.parametrize("number", [-1, 10, 2**70])
def test_outside_is_named(number: int) -> None:
    """An IndexError with the range, one by one and in arrays; sizes that do not fit are a ValueError."""
    permutation = Permutation(10, 0)
    for ask in (permutation, permutation.inverse):
        with pytest.raises(IndexError, match=r"range\(10\)"):
            ask(number)
    if number < 2**63:
        with pytest.raises(IndexError, match=r"range\(10\)"):
            permutation.many(np.array([0, number]))
    with pytest.raises(TypeError):
        permutation.many(np.array([0.5]))
    with pytest.raises(TypeError):
        permutation(0.5)  # type: ignore[arg-type]
    for n in (-1, 2**62 + 1):
        with pytest.raises(ValueError, match="expected 0 to 2"):
            Permutation(n, 0)
