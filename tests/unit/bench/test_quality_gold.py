"""Laws of the scoring of quality filtering: what counts as kept and dropped, and how rankings are judged."""

from __future__ import annotations

import json
import math
from itertools import product
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from tests.bench.quality_gold import (
    Document,
    Part,
    area_under_curve,
    half_of,
    languages_with_enough,
    load_pages,
    load_parts,
    load_texts,
    matched_area,
    ranking,
    score,
    sentence_length,
)

numbers = st.lists(st.integers(-5, 5).map(float), min_size=1, max_size=12)


def write(path: Path, *rows: dict[str, object]) -> None:
    with zstandard.open(path, "wt", encoding="utf-8") as out:
        out.writelines(json.dumps(row) + "\n" for row in rows)


def document(name: str, quality: str, language: str | None = "en", kind: str = "") -> Document:
    return Document(name, name, language, quality, kind)


def test_good_counts_by_language_and_junk_by_class() -> None:
    """Kept of good, dropped of junk; what is neither is told apart and counts in none of them."""
    documents = [
        document("a", "good"),
        document("b", "good"),
        document("c", "good", "zh"),
        document("d", "junk", "zh", "SEO spam"),
        document("e", "junk", None, "SEO spam"),
        document("f", "junk", None, "gibberish"),
        document("g", "neutral"),
        document("h", "degraded", kind="ALL CAPS"),
    ]
    reasons = {"b": "length.too_short", "d": "rules.promotion", "f": "rules.odd_pairs", "h": "rules.upper_case"}
    found = score(documents, {one.name: reasons.get(one.name) for one in documents})
    assert {name: (one.hits, one.number) for name, one in found.good.items()} == {"en": (1, 2), "zh": (1, 1)}
    assert {name: (one.hits, one.number) for name, one in found.junk.items()} == {
        "SEO spam": (1, 2),
        "gibberish": (1, 1),
    }
    assert {name: one.share for name, one in found.others.items()} == {"neutral": 1, "degraded: ALL CAPS": 0}
    assert found.macro_good == 0.75
    assert found.good_kept.share == pytest.approx(2 / 3)
    assert found.junk_dropped.share == pytest.approx(2 / 3)
    assert found.macro_junk == 0.75
    assert found.reasons == {"length.too_short": 1}
    assert found.least_good(["zh", "en", "de"])[0] == "en"


def test_a_document_without_a_verdict_is_an_error() -> None:
    """A chain that lost a document must not look as if it had kept it."""
    with pytest.raises(KeyError):
        score([document("a", "good")], {})


@given(st.lists(st.text(max_size=8), max_size=20, unique=True))
def test_halves_part_the_documents(names: list[str]) -> None:
    """Each document is in one half, and always in the same."""
    documents = [document(name, "good") for name in names]
    verdicts = dict.fromkeys(names)
    parts = [score(documents, verdicts, half).good_kept.number for half in ("development", "held out")]
    assert sum(parts) == score(documents, verdicts).good_kept.number == len(names)
    assert all(half_of(name) in ("development", "held out") for name in names)


def test_halves_are_by_the_first_byte_of_the_hash() -> None:
    """SHA-256 of `a` begins with ca, of `b` with 3e, of `c` with 2e, of `d` with 18, of `f` with 25."""
    assert [half_of(name) for name in "abcdf"] == ["development"] * 4 + ["held out"]


def test_languages_with_enough() -> None:
    """Good documents with a language count, most first."""
    documents = [document(str(n), "good", "zh" if n < 4 else "en") for n in range(7)]
    documents += [document("j", "junk", "de"), document("n", "good", None)]
    assert languages_with_enough(documents, 3) == ["zh", "en"]
    assert languages_with_enough(documents, 4) == ["zh"]


@given(numbers, numbers)
def test_area_is_the_share_of_pairs(better: list[float], worse: list[float]) -> None:
    """As counted pair by pair, ties as half; the other way round it is the rest."""
    pairs = [(high > low) + (high == low) / 2 for high, low in product(better, worse)]
    assert area_under_curve(better, worse) == pytest.approx(sum(pairs) / len(pairs))
    assert area_under_curve(worse, better) == pytest.approx(1 - area_under_curve(better, worse))


def test_area_of_undefined_scores() -> None:
    """An undefined score is below all others and ties with itself; of none there is no area."""
    nan = float("nan")
    assert area_under_curve([1.0], [nan]) == 1
    assert area_under_curve([nan], [1.0]) == 0
    assert area_under_curve([nan], [nan]) == 0.5
    assert math.isnan(area_under_curve([], [1.0]))


@given(numbers, numbers)
def test_matched_pairs_are_those_of_nearly_equal_size(better: list[float], worse: list[float]) -> None:
    """The longer has at most a tenth more; with equal sizes all pairs count, and the area is the usual one."""
    area, number = matched_area(better, worse, ([7.0] * len(better), [7.0] * len(worse)))
    assert number == len(better) * len(worse)
    assert area == pytest.approx(area_under_curve(better, worse))


def test_matched_pairs_leave_out_other_sizes() -> None:
    """Only the pair of 100 and 109 characters counts; without any there is no area."""
    area, number = matched_area([5.0, 0.0], [1.0, 9.0], ([100.0, 300.0], [109.0, 120.0]))
    assert (area, number) == (1.0, 1)
    area, number = matched_area([5.0], [1.0], ([100.0], [200.0]))
    assert math.isnan(area)
    assert number == 0


def test_length_ranks_all_pairs_and_says_nothing_of_equal_ones() -> None:
    """A ranking by length is right about every pair here, and undecided about those of one length."""
    better = [Part(str(n), "x" * n, "good", "s", "") for n in (100, 200)]
    worse = [Part(str(n), "x" * n, "bad", "s", "") for n in (100, 20)]
    area, near, number = ranking(better, worse, lambda one: float(len(one.text)))
    assert (area, near, number) == (3.5 / 4, 0.5, 1)


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("", 0),
        ("one two three", 3),
        ("One two. Three four!\nfive\n\n", 5 / 3),
        ('He said "no." Then he left.', 3),
        ("3.5 m", 2),
    ],
)
def test_sentence_length(text: str, length: float) -> None:
    """Words between ends of sentences or lines; empty pieces do not count."""
    assert sentence_length(text) == pytest.approx(length)


def test_the_gold_is_joined_by_id(tmp_path: Path) -> None:
    """Texts come in the order of their files; `und`, `code` and no language are all none."""
    write(
        tmp_path / "gold.jsonl.zst",
        {"id": "b", "lang": "und", "quality": "junk", "kind": "very short"},
        {"id": "a", "lang": "zh", "quality": "good", "source": "s"},
    )
    write(tmp_path / "crawl-00.jsonl.zst", {"id": "a", "text": "甲"})
    write(tmp_path / "crawl-01.jsonl.zst", {"id": "b", "text": "!"})
    assert load_texts(tmp_path) == [
        Document("a", "甲", "zh", "good", "", "s"),
        Document("b", "!", None, "junk", "very short", ""),
    ]


def test_parts_and_pages(tmp_path: Path) -> None:
    """A scale's name without its explanation, the page or topic as group; a page's lines by whether they are main."""
    write(
        tmp_path / "labelled.jsonl.zst",
        {"id": "q1", "text": "t", "label": "advanced", "scale": "reading level (editor-written)", "topic": "x"},
        {"id": "q2", "text": "u", "label": -0.5, "scale": "BT_easiness (teachers)"},
    )
    assert load_parts(tmp_path) == [
        Part("q1", "t", "advanced", "reading level", "x"),
        Part("q2", "u", "-0.5", "BT_easiness", ""),
    ]
    write(
        tmp_path / "page_lines.jsonl.zst",
        {"id": "p", "lines": ["Home", "A text.", "©"], "main": [0, 1, 0], "main_char_share": 0.6},
    )
    (page,) = load_pages(tmp_path)
    assert (page.main, page.others, page.whole, page.share) == ("A text.", "Home\n©", "Home\nA text.\n©", 0.6)
