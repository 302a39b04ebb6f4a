"""Every sequence once an epoch, files in exact proportion, everything from the place alone."""

from __future__ import annotations

import hashlib
import math
from collections import Counter

import numpy as np
import pytest

from tokenization.order import Ahead, Order, whole_weights


def rows_of(order: Order, first: int, last: int) -> list[tuple[int, int]]:
    files, rows = order.places(first, last)
    return list(zip(files.tolist(), rows.tolist(), strict=True))


@pytest.mark.parametrize("sizes", [[1], [7], [3, 0, 5], [1, 1, 1], [40, 2]])
@pytest.mark.parametrize("shuffle", [True, False])
def test_every_sequence_once_an_epoch(sizes: list[int], shuffle: bool) -> None:
    """Over all files, in each of several epochs; without shuffle in their order, every time."""
    order, total = Order(sizes, seed=3, shuffle=shuffle), sum(sizes)
    everything = [(file, row) for file, size in enumerate(sizes) for row in range(size)]
    epochs = [rows_of(order, epoch * total, (epoch + 1) * total) for epoch in range(4)]
    assert all(sorted(epoch) == everything for epoch in epochs)
    assert not shuffle or total < 8 or len(set(map(tuple, epochs))) == 4
    assert shuffle or all(epoch == everything for epoch in epochs)


@pytest.mark.parametrize("weights", [[1], [1, 1], [7, 3], [1, 1000], [5, 3, 2], [1] * 7, [1, 2, 4, 8, 16, 32, 64, 128]])
def test_shares_are_exact(weights: list[int]) -> None:
    """Each file has had its share, to within half a sequence a level, at every place; and exactly after a round."""
    sizes, levels = [11] * len(weights), math.ceil(math.log2(len(weights)))
    order, whole = Order(sizes, seed=1, weights=weights), sum(weights)
    files, _ = order.places(0, 3 * whole)
    for number, weight in enumerate(weights):
        counts = np.cumsum(files == number)
        wanted = np.arange(1, len(files) + 1) * weight / whole
        assert abs(counts - wanted).max() <= levels / 2 + 1e-9
        assert counts[whole - 1] == weight


def test_each_weighted_file_has_its_own_epochs() -> None:
    """A file is permuted anew whenever it has been read once, however often the others were; two alike differ."""
    order = Order([5, 50, 50], seed=1, weights=[1, 1, 2])
    found = rows_of(order, 0, 400)
    for number, size in enumerate([5, 50, 50]):
        own = [row for file, row in found if file == number]
        epochs = [tuple(own[i : i + size]) for i in range(0, len(own) - size + 1, size)]
        assert all(sorted(epoch) == list(range(size)) for epoch in epochs)
        assert size == 5 or len(set(epochs)) == len(epochs)
    assert [row for file, row in found if file == 1][:50] != [row for file, row in found if file == 2][:50]
    plain = rows_of(Order([5, 50, 50], seed=1, weights=[1, 1, 2], shuffle=False), 0, 40)
    assert [row for file, row in plain if file == 0] == [*range(5), *range(5)]


@pytest.mark.parametrize("weights", [None, [5, 3, 2]])
def test_a_range_is_its_parts(weights: list[int] | None) -> None:
    """Places do not depend on where a question begins or ends; nothing asked is nothing."""
    order = Order([9, 4, 6], seed=2, weights=weights)
    whole = rows_of(order, 0, 100)
    assert whole == [place for i in range(100) for place in rows_of(order, i, i + 1)]
    assert whole[17:61] == rows_of(order, 17, 61)
    assert rows_of(order, 5, 5) == []


def test_counts_beyond_32_bits() -> None:
    """Trillions of sequences, at places near 2**61: no overflow, no array of that size, shares still exact."""
    sizes, first = [10**12, 2**33, 3], 2**61
    order = Order(sizes, seed=1)
    files, rows = order.places(first, first + 1000)
    assert len(set(rows_of(order, first, first + 1000))) == 1000
    assert all(0 <= row < sizes[file] for file, row in zip(files.tolist(), rows.tolist(), strict=True))
    weights = (2**30, 2**30 - 1, 1)
    files, rows = Order(sizes, seed=1, weights=weights).places(first, first + 1000)
    assert all(0 <= row < sizes[file] for file, row in zip(files.tolist(), rows.tolist(), strict=True))
    counts = Counter(files.tolist())
    assert (abs(counts[0] - 500) <= 1, abs(counts[1] - 500) <= 1) == (True, True)


@pytest.mark.parametrize(
    ("weights", "wholes"),
    [
        ([1, 1], (1, 1)),
        ([0.7, 0.2, 0.1], (7, 2, 1)),
        ([0.5, 0.25], (2, 1)),
        ([1 / 3, 2 / 3], (1, 2)),
        ([1e-9, 1.0], (1, 2**30 - 1)),
        ([2e9, 1e9], (2, 1)),
        ([math.pi, math.e], None),
    ],
)
def test_whole_weights(weights: list[float], wholes: tuple[int, ...] | None) -> None:
    """Decimal fractions are exact, others right to a billionth."""
    found = whole_weights(weights)
    assert wholes is None or found == wholes
    assert sum(found) < 2**31
    assert found[0] / sum(found) == pytest.approx(weights[0] / sum(weights), abs=2e-9)


@pytest.mark.parametrize("weight", [0, -1, math.nan, math.inf])
def test_weights_that_are_none(weight: float) -> None:
    """Named by number."""
    with pytest.raises(ValueError, match=r"weights\[1\] is "):
        whole_weights([1, weight])


@pytest.mark.parametrize("weights", [None, [2, 1, 1]])
@pytest.mark.parametrize("size", [0, 1, 7, 1000, 1024, 3000])
def test_read_ahead_gives_the_same_places(weights: list[int] | None, size: int) -> None:
    """In order, with gaps, backwards: always those of the order, in arrays of their own."""
    order = Order([40, 25, 900], seed=3, weights=weights)
    ahead = Ahead(order)
    starts = [0, size, 2 * size, 2 * size, 5 * size, 5 * size + 3, 10**15, 1, 1023]
    for start in starts:
        found, expected = ahead.places(start, start + size), order.places(start, start + size)
        assert all(np.array_equal(one, other) for one, other in zip(found, expected, strict=True))
        for array in found:
            array[:] = -1


@pytest.mark.parametrize(
    ("sizes", "seed", "shuffle", "weights", "some", "digest"),
    [
        ([40], 1, True, None, [(0, 3), (0, 2), (0, 5), (0, 31), (0, 13)], "5fdfdd7502d40c24"),
        ([40, 0, 25], 3, True, None, [(0, 13), (0, 8), (2, 23), (2, 17), (0, 27)], "0f481f1cec6fac3f"),
        ([40, 25], 3, True, (3, 1), [(1, 3), (0, 39), (0, 1), (0, 26), (1, 12)], "dc44dd4cc44ab33d"),
        ([40, 25], 3, False, (3, 1), [(1, 9), (0, 29), (0, 30), (0, 31), (1, 10)], "f1de737c566dd5a2"),
        ([5000, 7], 2**70, True, None, [(0, 4567), (0, 4430), (0, 4844), (0, 4491), (0, 4626)], "03519ec9e8f4eda3"),
        ([5000, 7, 900], -5, True, (5, 3, 2), [(0, 156), (1, 1), (0, 1412), (1, 6), (0, 766)], "7e46cdbe10f35f7d"),
    ],
)
def test_the_order_is_frozen(
    sizes: list[int],
    seed: int,
    shuffle: bool,
    weights: tuple[int, ...] | None,
    some: list[tuple[int, int]],
    digest: str,
) -> None:
    """A training of today goes on with any later version, with no mask and with one that is empty."""
    whole = Order(sizes, seed=seed, shuffle=shuffle, weights=weights)
    for order in (whole, whole.without([]), whole.without([(7, [np.zeros(0, np.int64)] * len(sizes))])):
        assert rows_of(order, 38, 43) == some
        numbers = np.stack(order.places(0, 3000)).astype("<i8").tobytes()
        assert hashlib.sha256(numbers).hexdigest()[:16] == digest


def test_rows_left_out_beyond_32_bits() -> None:
    """A million of a trillion rows, from a place near 2**61 on: no walk, no array of that size."""
    n, first = 10**12, 2**61
    masked = np.arange(0, n, 10**6)
    whole = Order([n], seed=1)
    order = whole.without([(first, [masked])])
    before, after = (rows_of(one, first - 500, first) for one in (whole, order))
    assert before == after
    expected = [one for one in rows_of(whole, first, first + 1010) if one[1] % 10**6]
    assert rows_of(order, first, first + 1000) == expected[:1000]


def test_masked_rows_stay_out_with_shares_exact() -> None:
    """Half of one file and a tenth of another: each file has its turns where it had them."""
    sizes, weights = [20, 30, 10], (5, 3, 2)
    whole = Order(sizes, seed=4, weights=weights)
    masks = [np.arange(0, 20, 2), np.array([3, 4, 5]), np.zeros(0, np.int64)]
    order = whole.without([(37, masks)])
    assert rows_of(order, 0, 37) == rows_of(whole, 0, 37)
    files, rows = order.places(37, 2000)
    assert np.array_equal(files, whole.places(37, 2000)[0])
    for number, masked in enumerate(masks):
        assert not np.isin(rows[files == number], masked).any()
        assert set(rows[files == number].tolist()) == set(range(sizes[number])) - set(masked.tolist())
    with pytest.raises(ValueError, match="nothing remains"):
        whole.without([(0, masks), (9, [np.arange(1, 20, 2), masks[2], masks[2]])])
