"""A corpus by its size in words, and what a change would mean there."""

from __future__ import annotations

import pytest

from curation.errors import ConfigError
from curation.impact.counting.corpus import corpus_of
from curation.impact.counting.figure_types import Corpus, Extrapolation
from curation.impact.counting.figures import figures
from tests import impact_oracle as oracle
from tests.impact_oracle import MEASURES, Document, amount, compared, documents_of, kept


@pytest.mark.parametrize(
    ("words", "size", "measure"),
    [
        ("2.5Ttokens", 2.5e12, "tokens"),
        ("2.5T tokens", 2.5e12, "tokens"),
        (" 3Bdocuments ", 3e9, "documents"),
        ("3bdocs", 3e9, "documents"),
        ("3Gdocuments", 3e9, "documents"),
        ("300M documents", 3e8, "documents"),
        ("10ktokens", 1e4, "tokens"),
        ("1e9tokens", 1e9, "tokens"),
        ("1,000,000 documents", 1e6, "documents"),
        ("1_000_000documents", 1e6, "documents"),
        ("5tokens", 5, "tokens"),
        ("5ttokens", 5e12, "tokens"),
        ("1 document", 1, "documents"),
        ("1e3ktokens", 1e6, "tokens"),
    ],
)
def test_a_size_in_words_is_read(words: str, size: float, measure: str) -> None:
    """With and without blanks; k, M, B or G, and T in either case."""
    assert corpus_of(words) == Corpus(size, measure)


@pytest.mark.parametrize(
    "words",
    ["", "tokens", "2.5T", "2,5Ttokens", "-3tokens", "0tokens", "nan tokens", "inf tokens", "1e999tokens", "3 words", "1,00tokens",
     "3Btokens and more", "٣tokens", "1e-3tokens", "3PBtokens", "."],
)  # fmt: skip
def test_what_is_no_size_is_refused(words: str) -> None:
    """With what was expected and an example; a decimal comma is not taken for a group of digits."""
    with pytest.raises(ConfigError, match=r"expected a number above 0.*2\.5Ttokens"):
        corpus_of(words)


def before(one: Document) -> bool:
    return kept(one, "before")


def after(one: Document) -> bool:
    return kept(one, "after")


def leaves(one: Document) -> bool:
    return before(one) and not after(one)


def comes(one: Document) -> bool:
    return after(one) and not before(one)


def told(documents: list[Document], corpus: Corpus | None, population: int | None = None) -> Extrapolation:
    found = figures(compared(documents, population=population), corpus).extrapolation
    assert found is not None
    return found


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("measure", ["tokens", "documents"])
def test_numbers_are_those_of_the_sample_to_scale(weighted: bool, measure: str) -> None:
    """In each measure what the sample's sums give, times one factor."""
    documents = documents_of(250, 21, weighted=weighted)
    found = told(documents, Corpus(3e12, measure), population=9999 if weighted else None)
    factor = 3e12 / amount(documents, before, measure)
    assert (found.corpus, found.drawn, set(found.scaled)) == (Corpus(3e12, measure), False, set(MEASURES))
    for one, scaled in found.scaled.items():
        for estimate, chosen in (
            (scaled.before, before),
            (scaled.leaves, leaves),
            (scaled.comes_in, comes),
            (scaled.after, after),
        ):
            assert estimate.value == pytest.approx(factor * amount(documents, chosen, one), rel=1e-9)
            assert estimate.low <= estimate.value <= estimate.high
        is_own = one == measure
        assert (scaled.before.low == scaled.before.high == 3e12) == is_own
    for language, scaled in found.languages.items():
        here = [one for one in documents if one["language"] == language]
        for estimate, chosen in (
            (scaled.before, before),
            (scaled.leaves, leaves),
            (scaled.comes_in, comes),
            (scaled.after, after),
        ):
            assert estimate.value == pytest.approx(factor * amount(here, chosen, measure), rel=1e-9)
            assert estimate.low <= estimate.value <= estimate.high
    moved = [scaled.leaves.value + scaled.comes_in.value for scaled in found.languages.values()]
    assert moved == sorted(moved, reverse=True)


def test_documents_of_a_corpus_of_tokens_are_as_uncertain_as_its_mean_length() -> None:
    """The interval is that of a rate of documents by tokens, not that of a share of documents."""
    documents = documents_of(250, 22)
    found = told(documents, Corpus(1e12, "tokens")).scaled["documents"].leaves
    rate = oracle.poisson_rate(documents, leaves, before, before, "documents", "tokens")
    assert (found.value, found.low, found.high) == pytest.approx([1e12 * one for one in rate], rel=1e-6)


def test_a_drawn_sample_has_a_corpus_of_its_own() -> None:
    """Where no size is asked for: as many documents as its weights stand for."""
    documents = documents_of(250, 23)
    found = told(documents, None, population=5000)
    assert found.drawn
    assert found.corpus == Corpus(pytest.approx(amount(documents, before)), "documents")
    assert found.scaled["documents"].leaves.value == pytest.approx(amount(documents, leaves))
    assert found.scaled["tokens"].leaves.value == pytest.approx(amount(documents, leaves, "tokens"))
    assert figures(compared(documents)).extrapolation is None


def test_only_languages_that_move_are_scaled() -> None:
    """At most 20 of them."""
    names = [f"l{number:02d}" for number in range(40)]
    documents = documents_of(800, 24, languages=names, moving=0.5)
    for one in documents:
        if one["language"] < "l05":
            one["after"] = one["before"]
    found = told(documents, Corpus(1e6, "documents")).languages
    assert len(found) == 20
    assert min(found) >= "l05"
