"""Signatures and fingerprints of any documents equal their slow definitions, and close ones are always linked."""

from __future__ import annotations

import warnings
from math import comb

import numpy as np
import numpy.typing as npt
from datasketch import MinHash
from hypothesis import example, given, settings
from hypothesis import strategies as st

from curation.dedup.hamming import links, plan_tables, table_key
from curation.dedup.minhash import band_keys, candidate_probability, choose_bands, signatures
from curation.dedup.sets import Shingles
from curation.dedup.simhash import fingerprints
from curation.errors import ConfigError

with warnings.catch_warnings():  # of an escape in its source, when that is compiled for the first time
    warnings.simplefilter("ignore")
    from simhash import Simhash

# Any number, and small pools of them, so that documents share and repeat shingles.
HASHES = st.one_of(
    st.integers(0, 2**64 - 1),
    st.sampled_from([0, 1, 2**31, 2**32 - 1, 2**32, 2**63, 2**64 - 1]),
    st.integers(2**32 - 8, 2**32 + 8),
)
DOCUMENTS = st.lists(st.lists(HASHES, max_size=70), max_size=8)


def of(documents: list[list[int]]) -> Shingles:
    offsets = np.zeros(len(documents) + 1, np.int64)
    np.cumsum([len(document) for document in documents], out=offsets[1:])
    return Shingles(np.array([value for document in documents for value in document], np.uint64), offsets)


@given(DOCUMENTS, st.integers(1, 200))
@example([[]], 1)
@example([[2**32 - 1] * 70, [2**64 - 1], []], 65)
@settings(deadline=None)
def test_signatures_equal_datasketchs(documents: list[list[int]], num_perm: int) -> None:
    """Bit for bit, given the low 32 bits of each hash."""
    found = signatures(of(documents), num_perm)
    assert found.shape == (len(documents), num_perm)
    for document, signature in zip(documents, found, strict=True):
        oracle = MinHash(num_perm, seed=1, scheme="affine32", hashfunc=lambda value: value & 0xFFFFFFFF)
        oracle.update_batch(document)
        np.testing.assert_array_equal(signature, oracle.hashvalues)


@given(st.lists(HASHES, max_size=60), st.lists(HASHES, max_size=60))
@settings(deadline=None)
def test_the_signature_of_a_union_is_the_minimum(a: list[int], b: list[int]) -> None:
    """What makes the share of equal places an estimate of the Jaccard similarity."""
    one, two, both = signatures(of([a, b, a + b]), 64)
    np.testing.assert_array_equal(both, np.minimum(one, two))


@given(st.integers(1, 40), st.integers(1, 12), st.data())
@settings(deadline=None)
def test_band_keys_are_equal_exactly_where_bands_are(bands: int, rows: int, data: st.DataObject) -> None:
    """For signatures that differ in any places."""
    width = bands * rows + data.draw(st.integers(0, 5))
    base = np.array(data.draw(st.lists(st.integers(0, 2**32 - 1), min_size=width, max_size=width)), np.uint32)
    other = base.copy()
    for place in data.draw(st.lists(st.integers(0, width - 1), max_size=6)):
        other[place] ^= np.uint32(data.draw(st.integers(1, 2**32 - 1)))
    one, two = band_keys(np.stack([base, other]), bands, rows)
    same = (base[: bands * rows] == other[: bands * rows]).reshape(bands, rows).all(axis=1)
    np.testing.assert_array_equal(one == two, same)


@given(st.floats(0.01, 1), st.integers(1, 512), st.floats(0.5, 0.9999))
@settings(deadline=None)
def test_chosen_bands_keep_the_promise_or_none_could(threshold: float, num_perm: int, recall: float) -> None:
    """They fit, reach the recall, and one row more would not; ConfigError exactly if no rows reach it."""
    curves = [float(candidate_probability(threshold, num_perm // rows, rows)) for rows in range(1, num_perm + 1)]
    try:
        bands, rows = choose_bands(threshold, num_perm, recall)
    except ConfigError:
        assert max(curves) < recall
        return
    assert bands == num_perm // rows
    assert curves[rows - 1] >= recall
    assert all(curve < recall for curve in curves[rows:])


@given(DOCUMENTS)
@example([[], [0] * 256, [2**64 - 1] * 257])
@settings(deadline=None)
def test_fingerprints_equal_the_packages(documents: list[list[int]]) -> None:
    """And exact counting's: a bit is set if more than half of the occurrences have it."""
    for document, value in zip(documents, fingerprints(of(documents)).tolist(), strict=True):
        counts = [sum(hash_ >> bit & 1 for hash_ in document) for bit in range(64)]
        assert value == sum(1 << bit for bit in range(64) if 2 * counts[bit] > len(document))
        if document:
            features = [str(hash_) for hash_ in document]
            oracle = Simhash(features, hashfunc=lambda text: 0 if text == b"test" else int(text))
            assert value == oracle.value


def components(n: int, pairs: list[tuple[int, int]]) -> list[int]:
    """For each of n documents the smallest that pairs join it with."""
    smallest = list(range(n))
    while any(smallest[a] != smallest[b] for a, b in pairs):
        for a, b in pairs:
            smallest[a] = smallest[b] = min(smallest[a], smallest[b])
    return smallest


@given(st.integers(0, 7), st.integers(0, 2), st.lists(HASHES, min_size=1, max_size=6), st.data())
@settings(deadline=None, max_examples=200)
def test_close_fingerprints_are_linked(distance: int, more: int, centres: list[int], data: st.DataObject) -> None:
    """Any flips of bits, any number of blocks: links join exactly what close pairs join."""
    values = [*centres]
    for flips in data.draw(st.lists(st.lists(st.integers(0, 63), max_size=9), max_size=25)):
        values.append(data.draw(st.sampled_from(values)) ^ sum(1 << bit for bit in set(flips)))
    fingerprints_: npt.NDArray[np.uint64] = np.array(values, np.uint64)
    n, blocks = len(values), distance + 1 + min(more, 1 if distance > 4 else 2)
    numbers = np.arange(n, dtype=np.uint32)
    found = []
    for table in range(comb(blocks, distance)):
        a, b = links(fingerprints_, numbers, distance, table, blocks)
        keys = table_key(fingerprints_, table, blocks, distance)
        assert (keys[a] == keys[b]).all()
        found += zip(a.tolist(), b.tolist(), strict=True)
    close = [(i, j) for i in range(n) for j in range(i + 1, n) if (values[i] ^ values[j]).bit_count() <= distance]
    assert set(found) <= set(close)
    assert components(n, found) == components(n, close)


@given(st.integers(0, 2**32), st.integers(0, 7))
def test_any_corpus_has_a_plan(n_documents: int, distance: int) -> None:
    """With tables for every choice of blocks, and never fewer blocks for more documents."""
    blocks, n_tables = plan_tables(n_documents, distance)
    assert distance < blocks <= 64
    assert n_tables == comb(blocks, distance) <= 400
    assert plan_tables(2 * n_documents, distance)[0] >= blocks
