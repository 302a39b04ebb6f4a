"""SimHash: the package simhash and exact counting are the oracles."""

from __future__ import annotations

import inspect
import warnings

import numpy as np
import pyarrow as pa
import pytest

from curation.dedup import hamming, simhash
from curation.dedup.sets import Shingles
from curation.dedup.shingles import shingles
from curation.dedup.simhash import MIN_SHINGLES, fingerprints
from curation.errors import InputError

with warnings.catch_warnings():  # of an escape in its source, when that is compiled for the first time
    warnings.simplefilter("ignore")
    from simhash import Simhash


def of(documents: list[list[int]]) -> Shingles:
    offsets = np.zeros(len(documents) + 1, np.int64)
    np.cumsum([len(document) for document in documents], out=offsets[1:])
    return Shingles(np.array([value for document in documents for value in document], np.uint64), offsets)


def oracle(document: list[int]) -> int:
    """The package's value for features with these hashes, each of weight 1. It hashes b"test" once, to try."""
    features = [str(value) for value in document]
    return int(Simhash(features, hashfunc=lambda text: 0 if text == b"test" else int(text)).value)


def counted(document: list[int]) -> int:
    """The definition, with exact counts."""
    bits = np.unpackbits(np.array(document, ">u8").view(np.uint8).reshape(-1, 8), axis=1)
    return int.from_bytes(np.packbits(2 * bits.sum(0, dtype=np.int64) > len(document)).tobytes(), "big")


def random_hashes(n: int, seed: int = 7) -> list[int]:
    return np.random.default_rng(seed).integers(0, 2**64, n, np.uint64).tolist()


# ---------------------------------------------------------------- fingerprints


def test_fingerprints_equal_the_packages() -> None:
    """For any length up to 70, where groups, rests and ties all occur, and for some longer ones."""
    documents = [random_hashes(n, n) for n in [*range(1, 71), 127, 128, 129, 255, 256, 257, 1023, 4096, 5000]]
    got = fingerprints(of(documents))
    assert got.dtype == np.uint64
    assert got.tolist() == [oracle(document) for document in documents]


@pytest.mark.parametrize("n", [255, 256, 257, 65_535, 65_536, 1_000_000])
def test_one_shingle_many_times(n: int) -> None:
    """B059: counters do not overflow, whatever the number of equal features."""
    one, other = random_hashes(2)
    found = fingerprints(of([[one] * n, [one] * n + [other] * (n - 1), [one] * n + [other] * n])).tolist()
    assert found == [one, one, one & other]


def test_a_sentence_repeated_equals_exact_counts() -> None:
    """B059: 12 words 300 times, and a Chinese text of 300 repeats: 64-bit values, equal to exact counting's."""
    texts = ["the quick brown fox jumps over the lazy dog and runs away. " * 300, "今天的天气非常好我们" * 300]
    found = shingles(pa.array(texts, pa.large_string()))
    for i, value in enumerate(fingerprints(found).tolist()):
        document = found.values[found.offsets[i] : found.offsets[i + 1]].tolist()
        assert len(document) > 2900
        assert value == counted(document) == oracle(document)


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ([], 0),
        ([0], 0),
        ([2**64 - 1], 2**64 - 1),
        ([2**64 - 1, 0], 0),
        ([2**64 - 1, 2**64 - 1, 0], 2**64 - 1),
        ([0b1100, 0b1010], 0b1000),
        ([0b1100, 0b1010, 0b1001], 0b1000),
        ([0b110, 0b101, 0b011], 0b111),
        ([2**63, 2**63, 1], 2**63),
    ],
    ids=["empty", "zero", "ones", "tie", "2 of 3", "a tie is 0", "one of 3", "two of 3", "highest bit"],
)
def test_a_bit_needs_more_than_half(document: list[int], expected: int) -> None:
    """By hand: strictly more than half of the occurrences; ties and nothing are 0."""
    assert fingerprints(of([document])).tolist() == [expected]


def test_neither_order_nor_neighbours_matter() -> None:
    """A document's value depends on its own multiset of shingles: no counter is carried over to the next."""
    documents = [random_hashes(n, n) for n in (3000, 0, 17, 1, 64, 0, 200)]
    alone = [int(fingerprints(of([document]))[0]) for document in documents]
    assert fingerprints(of(documents)).tolist() == alone
    assert fingerprints(of([sorted(document) for document in documents[::-1]])).tolist() == alone[::-1]
    found = of(documents)
    assert fingerprints(Shingles(found.values, found.offsets[2:6])).tolist() == alone[2:5]


def test_no_documents() -> None:
    """None in, none out."""
    assert fingerprints(of([])).tolist() == []


def test_offsets_that_leave_the_values_are_refused() -> None:
    """InputError: a kernel must never read there."""
    with pytest.raises(InputError, match="offsets of shingles must rise"):
        fingerprints(Shingles(np.zeros(2, np.uint64), np.array([0, 3], np.int64)))


def test_texts_without_words_have_no_fingerprint_to_compare() -> None:
    """B058: they have fewer shingles than `MIN_SHINGLES`, which is what keeps their equal values out of `links`."""
    texts = ["", "!!!", "🎉🎉", "😀", "【】", "。、", "\u0301"]
    found = shingles(pa.array(texts, pa.large_string()))
    assert np.diff(found.offsets).tolist() == [0] * len(texts)
    assert fingerprints(found).tolist() == [0] * len(texts)
    assert MIN_SHINGLES > 0


def test_short_texts_look_far_though_they_are_near() -> None:
    """B061: one character of 29 changed is beyond any distance, and such texts are below `MIN_SHINGLES`."""
    texts = [
        "今天上午我们一起去了城市中心的图书馆借了三本关于历史的书籍",
        "今天上午我们一起去了城市中心的图书馆借了五本关于历史的书籍",
        "那家新开的餐厅味道不错但是价格偏高而且周末总是需要排长队呢",
    ]
    found = shingles(pa.array(texts, pa.large_string()))
    one, changed, other = fingerprints(found)
    assert hamming.MAX_DISTANCE < np.bitwise_count(one ^ changed) < np.bitwise_count(one ^ other)
    assert (np.diff(found.offsets) < MIN_SHINGLES).all()


def test_the_product_does_not_import_its_oracle() -> None:
    """The package is for tests only."""
    assert "import simhash" not in inspect.getsource(simhash)
    assert "from simhash" not in inspect.getsource(simhash)
