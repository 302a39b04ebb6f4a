"""MinHash: datasketch is the oracle of signatures, the formula that of bands, and planted pairs of both."""

from __future__ import annotations

import inspect
import math

import numpy as np
import pytest
from datasketch import LeanMinHash, MinHash, MinHashLSH

from curation.dedup import minhash
from curation.dedup.minhash import EMPTY, Bands, band_keys, candidate_probability, choose_bands, signatures
from curation.dedup.sets import Shingles
from curation.errors import ConfigError, InputError

LOW = np.uint64(0xFFFFFFFF)


def of(documents: list[list[int]]) -> Shingles:
    offsets = np.zeros(len(documents) + 1, np.int64)
    np.cumsum([len(document) for document in documents], out=offsets[1:])
    return Shingles(np.array([value for document in documents for value in document], np.uint64), offsets)


def oracle(document: list[int], num_perm: int) -> MinHash:
    found = MinHash(num_perm, seed=1, scheme="affine32", hashfunc=lambda value: value)
    found.update_batch([value & 0xFFFFFFFF for value in document])
    return found


def random_documents(sizes: list[int], seed: int = 7) -> list[list[int]]:
    source = np.random.default_rng(seed)
    return [source.integers(0, 2**64, size, np.uint64).tolist() for size in sizes]


# ---------------------------------------------------------------- signatures


@pytest.mark.parametrize("num_perm", [1, 2, 16, 63, 64, 65, 100, 128, 256])
def test_signatures_equal_datasketchs(num_perm: int) -> None:
    """Bit for bit, for any number of permutations, any length, and documents longer than a chunk."""
    documents = random_documents([0, 1, 2, 15, 16, 17, 300, minhash.CHUNK - 1, minhash.CHUNK, 2 * minhash.CHUNK + 1, 0])
    got = signatures(of(documents), num_perm)
    assert got.dtype == np.uint32
    assert got.shape == (len(documents), num_perm)
    for document, signature in zip(documents, got, strict=True):
        np.testing.assert_array_equal(signature, oracle(document, num_perm).hashvalues)


@pytest.mark.parametrize(
    "document",
    [
        [2**32 - 1],
        [2**32 - 2, 2**32 - 1, 2**64 - 1],
        list(range(2**32 - 300, 2**32)),
        [0],
        [0, 1, 2**31, 2**31 - 1],
        [2**32, 2**63],
    ],
    ids=["largest", "large", "300 near 2^32", "zero", "signs", "low half zero"],
)
def test_hashes_at_the_edge_of_32_bits(document: list[int]) -> None:
    """B074: products overflow as datasketch's do, for hashes near 2^32 - 1 too."""
    np.testing.assert_array_equal(signatures(of([document]), 128)[0], oracle(document, 128).hashvalues)


def test_only_the_low_half_of_a_shingle_counts() -> None:
    """The high 32 bits change nothing: what datasketch is given are the low ones."""
    (document,) = random_documents([50])
    other = [value ^ (i * 2**40 + 2**63) for i, value in enumerate(document)]
    np.testing.assert_array_equal(*signatures(of([document, other]), 128))


def test_a_signature_is_of_the_set() -> None:
    """Order and repeats of shingles change nothing."""
    (document,) = random_documents([1000])
    found = signatures(of([document, document[::-1], document * 9, sorted(document + document[:500])]), 128)
    assert (found == found[0]).all()


def test_an_empty_document_has_the_empty_signature() -> None:
    """All 2^32 - 1, as datasketch's empty MinHash; also when all documents are empty, or there is none."""
    found = signatures(of([[], [1], []]), 128)
    np.testing.assert_array_equal(found[0], MinHash(128).hashvalues)
    assert (found[[0, 2]] == EMPTY).all()
    assert not (found[1] == EMPTY).all()
    assert (signatures(of([[], []]), 100) == EMPTY).all()
    assert signatures(of([]), 100).shape == (0, 100)


def test_offsets_may_begin_and_end_inside_the_values() -> None:
    """A slice of documents has the signatures it had among the others."""
    found = of(random_documents([5, 70, 0, 300, 9]))
    np.testing.assert_array_equal(
        signatures(Shingles(found.values, found.offsets[1:5]), 64), signatures(found, 64)[1:4]
    )


def test_signatures_can_be_handed_to_datasketch_and_taken_from_it() -> None:
    """They become its MinHash and LeanMinHash, are found in its LSH, and come back unchanged."""
    a, b = random_documents([400, 40])
    found = signatures(of([a, a[:390] + b, b]), 128)
    theirs = [MinHash(hashvalues=row, seed=1, scheme="affine32") for row in found]
    assert theirs[0] == oracle(a, 128)
    index = MinHashLSH(num_perm=128, params=(16, 8))
    index.insert("a", theirs[0])
    assert index.query(theirs[1]) == ["a"]
    assert index.query(theirs[2]) == []
    lean = LeanMinHash(theirs[1])
    payload = bytearray(lean.bytesize())
    lean.serialize(payload)
    np.testing.assert_array_equal(LeanMinHash.deserialize(payload).hashvalues, found[1])


def test_the_estimate_is_not_biased() -> None:
    """B074: over 500 pairs at known J the mean error of the estimate is within 3 standard errors of 0."""
    source, num_perm, errors, variance = np.random.default_rng(3), 128, [], 0.0
    for _ in range(500):
        size, shared = int(source.integers(20, 400)), float(source.uniform(0.1, 0.98))
        # Neighbours just under 2^32: the least random input there is.
        pool = source.permutation(np.arange(2**32 - 4 * size, 2**32, dtype=np.uint64)[: 2 * size])
        common = round(size * shared)
        left, right = pool[:size], np.concatenate([pool[:common], pool[size : 2 * size - common]])
        jaccard = common / (2 * size - common)
        one, two = signatures(of([left.tolist(), right.tolist()]), num_perm)
        errors.append(float((one == two).mean()) - jaccard)
        variance += jaccard * (1 - jaccard) / num_perm
    assert abs(np.mean(errors)) < 3 * math.sqrt(variance) / 500


@pytest.mark.parametrize("num_perm", [0, -1, 4097])
def test_an_impossible_number_of_permutations_is_refused(num_perm: int) -> None:
    """ConfigError, before any memory is taken."""
    with pytest.raises(ConfigError, match="num_perm must be 1 to 4096"):
        signatures(of([[1]]), num_perm)


@pytest.mark.parametrize(
    ("values", "offsets"),
    [
        ([1, 2], [0, 3]),
        ([1, 2], [-1, 2]),
        ([1, 2], [0, 2, 1]),
        ([1, 2], []),
    ],
    ids=["beyond", "before", "falling", "none"],
)
def test_offsets_that_leave_the_values_are_refused(values: list[int], offsets: list[int]) -> None:
    """InputError: a kernel must never read there."""
    with pytest.raises(InputError, match="offsets of shingles must rise"):
        signatures(Shingles(np.array(values, np.uint64), np.array(offsets, np.int64)), 16)


@pytest.mark.parametrize(("kind", "offset_kind"), [(np.int64, np.int64), (np.uint32, np.int64), (np.uint64, np.int32)])
def test_other_types_are_refused(kind: type[np.generic], offset_kind: type[np.generic]) -> None:
    """InputError names the types found."""
    with pytest.raises(InputError, match=r"values uint64\[m\] and offsets int64\[n \+ 1\]"):
        signatures(Shingles(np.array([1, 2], kind), np.array([0, 2], offset_kind)), 16)


# ---------------------------------------------------------------- bands


@pytest.mark.parametrize(
    ("bands", "rows", "expected"),
    [
        # J = 0.7, 0.8, 0.85, 0.9, 0.95, to three digits, by hand from 1 - (1 - J^rows)^bands
        (5, 25, [0.001, 0.019, 0.083, 0.311, 0.803]),
        (9, 13, [0.084, 0.399, 0.686, 0.929, 0.998]),
        (10, 12, [0.130, 0.509, 0.784, 0.964, 1.0]),
        (12, 10, [0.291, 0.744, 0.928, 0.994, 1.0]),
        (14, 8, [0.565, 0.924, 0.988, 1.0, 1.0]),
        (16, 8, [0.613, 0.947, 0.994, 1.0, 1.0]),
    ],
)
def test_candidate_probability(bands: int, rows: int, expected: list[float]) -> None:
    """The S curve of the bands in use elsewhere and here."""
    found = candidate_probability([0.7, 0.8, 0.85, 0.9, 0.95], bands, rows)
    np.testing.assert_allclose(found, expected, atol=6e-4)


def test_candidate_probability_is_exact_at_the_ends() -> None:
    """0 and 1 where it must be, and no digits lost where it is tiny."""
    assert candidate_probability([0.0, 1.0], 16, 8).tolist() == [0.0, 1.0]
    assert float(candidate_probability(0.01, 16, 8)) == pytest.approx(16e-16, rel=1e-12)


@pytest.mark.parametrize(
    ("threshold", "num_perm", "bands"),
    [
        (0.5, 128, Bands(64, 2)),
        (0.7, 128, Bands(32, 4)),
        (0.8, 128, Bands(25, 5)),
        (0.85, 128, Bands(18, 7)),
        (0.9, 64, Bands(10, 6)),
        (0.9, 128, Bands(16, 8)),
        (0.9, 256, Bands(21, 12)),
        (0.95, 128, Bands(10, 12)),
        (1.0, 128, Bands(1, 128)),
    ],
)
def test_choose_bands(threshold: float, num_perm: int, bands: Bands) -> None:
    """The most rows that keep the promise at the threshold: no larger number of rows does."""
    assert choose_bands(threshold, num_perm) == bands
    assert candidate_probability(threshold, *bands) >= 0.999
    for rows in range(bands.rows + 1, num_perm + 1):
        assert candidate_probability(threshold, num_perm // rows, rows) < 0.999


def test_less_recall_gives_more_rows() -> None:
    """The promise is a parameter: 12 x 10 keeps 99 %, 9 x 14 keeps 90 % at 0.9."""
    assert choose_bands(0.9, 128, recall=0.99) == Bands(12, 10)
    assert choose_bands(0.9, 128, recall=0.9) == Bands(9, 14)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0.01, 128), "128 permutations find a pair at Jaccard 0.01 with probability 0.7237483 at most"),
        ((0.9, 2), "raise num_perm or the threshold"),
        ((0.0, 128), r"threshold must be in \(0, 1\]"),
        ((1.1, 128), r"threshold must be in \(0, 1\]"),
        ((math.nan, 128), r"threshold must be in \(0, 1\]"),
        ((0.9, 128, 1.0), r"recall in \(0, 1\)"),
        ((0.9, 0), "num_perm must be 1 to 4096"),
    ],
)
def test_bands_that_cannot_be_are_refused(arguments: tuple[float, ...], message: str) -> None:
    """ConfigError says what is possible."""
    with pytest.raises(ConfigError, match=message):
        choose_bands(*arguments)  # type: ignore[arg-type]


def test_keys_are_equal_where_all_rows_are() -> None:
    """One place changed changes the key of its band and no other; places beyond the bands count nowhere."""
    (signature,) = signatures(of(random_documents([100])), 128)
    changed = np.repeat(signature[None], 128, axis=0)
    changed[np.arange(128), np.arange(128)] ^= np.uint32(1)
    same = band_keys(changed, 25, 5) == band_keys(signature[None], 25, 5)
    for place in range(128):
        assert np.flatnonzero(~same[place]).tolist() == ([place // 5] if place < 125 else [])


def test_each_band_has_its_own_salt() -> None:
    """A signature that is the same number everywhere still has different keys, and so has the empty one."""
    for number in (0, 1, EMPTY):
        assert len(np.unique(band_keys(np.full((1, 128), number, np.uint32), 64, 2))) == 64


def test_order_of_rows_counts() -> None:
    """Keys are of places, not of sets of numbers."""
    assert len(np.unique(band_keys(np.array([[1, 2, 3], [2, 1, 3], [3, 2, 1], [1, 3, 2]], np.uint32), 1, 3))) == 4


def test_all_bits_of_keys_are_mixed() -> None:
    """Keys of small numbers fill every byte of the 64 bits evenly, so any hash range may be cut from them."""
    keys = band_keys(np.arange(40_000, dtype=np.uint32).reshape(-1, 2), 1, 2)[:, 0]
    assert len(np.unique(keys)) == 20_000
    for shift in range(0, 64, 8):
        counts = np.bincount((keys >> np.uint64(shift) & np.uint64(255)).astype(np.int64), minlength=256)
        chi_square = ((counts - 20_000 / 256) ** 2 / (20_000 / 256)).sum()
        assert 255 - 5 * math.sqrt(510) < chi_square < 255 + 5 * math.sqrt(510)


@pytest.mark.parametrize(("bands", "rows"), [(16, 9), (0, 8), (16, 0), (129, 1)])
def test_bands_that_do_not_fit_are_refused(bands: int, rows: int) -> None:
    """ConfigError: a shorter last band would be another curve."""
    with pytest.raises(ConfigError, match="bands of"):
        band_keys(np.zeros((3, 128), np.uint32), bands, rows)


def test_pairs_at_the_threshold_become_candidates() -> None:
    """B063: of 400 pairs each at J = 0.95 and 0.91, the chosen bands find >= 99 % and >= 95 %."""
    source = np.random.default_rng(11)
    bands = choose_bands(0.9, 128)
    for common, alone, least in ((380, 10, 0.99), (364, 18, 0.95)):
        found = 0
        for _ in range(400):
            pool = source.integers(0, 2**64, common + 2 * alone, np.uint64)
            assert common / len(pool) == {380: 0.95, 364: 0.91}[common]
            both = of([pool[: common + alone].tolist(), [*pool[:common].tolist(), *pool[-alone:].tolist()]])
            one, two = band_keys(signatures(both, 128), *bands)
            found += bool((one == two).any())
        assert found >= 400 * least


def test_the_product_does_not_import_its_oracle() -> None:
    """datasketch is for tests only."""
    assert "import datasketch" not in inspect.getsource(minhash)
    assert "from datasketch" not in inspect.getsource(minhash)
