"""Laws of the scoring of near-duplicate removal: what counts as near, found, rightly dropped, lost and chained."""

from __future__ import annotations

import gzip
import random
from fractions import Fraction
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.bench.near_gold import Gold, Score, jaccard, load_gold, score, shingles


def gold_of(pairs: dict[str, float], names: str = "abcdef") -> Gold:
    """Documents of one letter each; "ab": 0.95 says that a and b are similar."""
    letters = {(pair[0], pair[1]): similarity for pair, similarity in pairs.items()}
    return Gold({name: name for name in names}, dict.fromkeys(names, "en"), letters)


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        ("", "word5", {""}),
        ("...", "word5", {""}),
        ("One two", "word5", {"one two"}),
        ("one two three four five", "word5", {"one two three four five"}),
        ("ONE, two; three—four five_5 ⅷ", "word5", {"one two three four five_5", "two three four five_5 viii"}),
        ("ｆｕｌｌ　ｗｉｄｔｈ", "word5", {"full width"}),
        ("河边的", "char5", {"河边的"}),
        ("河边的，小店登", "char5", {"河边的小店", "边的小店登"}),
        ("한국어 문장", "char5", {"한국어문장"}),
        ("ab 河", "char5", {"ab河"}),  # one of three
        ("abcdefg 河边的", "word5", {"abcdefg 河边的"}),  # three of ten are not more than 30 %
        ("abcdef 河边的", "char5", {"abcde", "bcdef", "cdef河", "def河边", "ef河边的"}),
    ],
)
def test_shingles_are_those_of_the_gold(text: str, kind: str, expected: set[str]) -> None:
    """NFKC, lower case, runs of word characters; characters where more than 30 % are Chinese, Japanese or Korean."""
    found_kind, found = shingles(text)
    assert (found_kind, set(found)) == (kind, expected)


def test_shingles_of_different_kinds_never_match() -> None:
    """Both texts have the one shingle `河边的`, but one of them as characters and one as a word."""
    assert jaccard("河边的", "河边的") == 1
    assert shingles("abcdefg 河边的")[0] != shingles("河边的")[0]
    assert jaccard("abcdefg 河边的", "河边的") == 0


@given(st.text(max_size=60), st.text(max_size=60))
def test_jaccard_is_symmetric_and_one_for_equals(one: str, other: str) -> None:
    """Between 0 and 1, the same both ways, 1 for a text and itself."""
    assert jaccard(one, other) == jaccard(other, one)
    assert 0 <= jaccard(one, other) <= 1
    assert jaccard(one, one) == 1


def words(first: int, last: int) -> str:
    return " ".join(f"w{number}" for number in range(first, last))


@pytest.mark.parametrize(("n_shared", "n_all", "is_near"), [(90, 100, False), (91, 100, True), (89, 100, False)])
def test_near_is_greater_than_the_threshold_and_not_equal(n_shared: int, n_all: int, is_near: bool) -> None:
    """A Jaccard of exactly 0.9 is not near at 0.9, whatever the gold's rounding makes of it."""
    one, other = words(0, n_shared + 4), words(0, n_all + 4)
    assert jaccard(one, other) == n_shared / n_all
    gold = Gold({"a": one, "b": other}, {"a": "en", "b": "en"}, {("a", "b"): 0.9})
    assert (("a", "b") in gold.near(0.9)) is is_near


def test_rounding_is_undone_where_it_hides_the_side() -> None:
    """29 of 32 shingles round to 0.9062: on either side of 0.90622 and 0.90628, by exact count."""
    one, other = words(0, 33), words(0, 36)
    gold = Gold({"a": one, "b": other}, {"a": "en", "b": "en"}, {("a", "b"): 0.9062})
    assert Fraction(29, 32) == jaccard(one, other)
    assert len(gold.near(0.90622)) == 1
    assert len(gold.near(0.90625)) == 0
    assert len(gold.near(0.90628)) == 0


@pytest.mark.parametrize("threshold", [0.49, 1.01])
def test_thresholds_below_the_gold_are_refused(threshold: float) -> None:
    """The gold has nothing below 0.5; nothing is above 1."""
    with pytest.raises(ValueError, match=r"from 0.5 to 1"):
        gold_of({}).near(threshold)


CHAIN = {"ab": 0.95, "bc": 0.95, "ac": 0.85, "de": 0.99}


@pytest.mark.parametrize(
    ("kept", "missed", "wrong", "orphaned", "lost"),
    [
        ("abcdef", ["ab", "bc", "de"], "", 0, 0),
        ("acdf", [], "", 0, 0),
        ("bdf", [], "", 0, 0),
        ("adf", [], "c", 1, 0),  # c went for b, which went for a: a chain
        ("bd", [], "f", 0, 0),  # f is like nothing
        ("bf", [], "de", 2, 1),
        ("", [], "abcdef", 5, 2),
    ],
)
def test_what_is_found_wrong_and_lost(kept: str, missed: list[str], wrong: str, orphaned: int, lost: int) -> None:
    """Of a near pair one must go; what goes must be near what stays; of a group one must stay."""
    found = score(gold_of(CHAIN), kept, 0.9)
    assert [w.one + str(w.other) for w in found.missed] == missed
    assert "".join(w.one for w in found.wrongly_removed) == wrong
    assert (found.orphaned, len(found.lost), found.groups, found.pairs) == (orphaned, lost, 2, 3)
    assert found.recall == 1 - len(missed) / 3
    assert found.precision == (1 - len(wrong) / (6 - len(kept)) if len(kept) < 6 else 1)


def test_a_wrong_removal_names_the_most_similar_kept_document() -> None:
    """So that it can be looked at: with its language, and no partner where the gold has none."""
    found = score(gold_of(CHAIN), "ad", 0.9)
    assert [str(wrong) for wrong in found.wrongly_removed] == ["c a 0.8500 en", "f - < 0.5 en"]


def test_partners_are_checked_by_their_own_similarity() -> None:
    """A partner must be kept and near: a chain a-b-c is not a reason, nor is a document that went itself."""
    found = score(gold_of(CHAIN), "adf", 0.9, {"b": "a", "c": "a", "e": "d"})
    assert [str(wrong) for wrong in found.chained] == ["c a 0.8500 en"]
    assert found.partner_removed == []
    found = score(gold_of(CHAIN), "adf", 0.9, {"b": "a", "c": "b", "e": "f"})
    assert [str(wrong) for wrong in found.chained] == ["e f < 0.5 en"]
    assert [wrong.one for wrong in found.partner_removed] == ["c"]


@pytest.mark.parametrize(
    ("kept", "partners", "message"),
    [
        ("abx", None, "not in the gold, such as 'x'"),
        ("abcde", {"f": "y"}, "not in the gold, such as 'y'"),
        ("abcd", {"f": "a"}, "'e'"),
        ("abcdef", {"f": "a"}, "'f'"),
    ],
)
def test_other_corpora_and_missing_partners_are_refused(
    kept: str, partners: dict[str, str] | None, message: str
) -> None:
    """Ids of another corpus, or partners that do not match what was removed, are no score at all."""
    with pytest.raises(ValueError, match=message):
        score(gold_of(CHAIN), kept, 0.9, partners)


def test_planted_copies_say_nothing_about_what_was_dropped_wrongly() -> None:
    """An incomplete gold counts misses; partners that it does not know are counted from the texts."""
    texts = {"a": words(0, 60), "b": words(0, 61), "c": words(0, 62), "d": words(100, 160)}
    planted = Gold(texts, dict.fromkeys(texts, "en"), {("a", "b"): 0.9825}, complete=False)
    found = score(planted, ["a"], 0.9, {"b": "a", "c": "a", "d": "a"})
    assert (found.recall, found.wrongly_removed) == (1, [])
    assert [wrong.one for wrong in found.chained] == ["d"]


# -- on the real gold -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def gold(test_data: Path) -> Gold:
    """The gold of the test data."""
    return load_gold(test_data / "3_neardup")


def test_the_oracle_agrees_with_the_gold(gold: Gold) -> None:
    """Every 40th pair, and all whose rounded value is a round threshold, recounted: equal to four digits."""
    pairs = [
        pair for place, (pair, j) in enumerate(gold.pairs.items()) if place % 40 == 0 or round(j, 4) in (0.7, 0.8, 0.9)
    ]
    assert len(pairs) > 350
    wrong = [pair for pair in pairs if abs(gold.exact(*pair) - gold.pairs[pair]) > 0.500001e-4]
    assert wrong == []


def test_the_oracle_counts_the_shingles_of_the_gold(gold: Gold, test_data: Path) -> None:
    """Kind and number of shingles of every 20th document, as the gold's table of groups has them."""
    with gzip.open(test_data / "3_neardup" / "gold_groups.tsv.gz", "rt", encoding="utf-8") as file:
        rows = [line.rstrip("\n").split("\t") for line in file][1::20]
    found = [(kind, str(len(made))) for kind, made in (shingles(gold.texts[row[0]]) for row in rows)]
    assert found == [(row[4], row[3]) for row in rows]


def test_keeping_the_first_of_near_documents_is_a_perfect_score(gold: Gold) -> None:
    """Going through the corpus and keeping what is near nothing kept yet has no fault; one change makes one."""
    near = gold.near(0.9)
    partners_of: dict[str, list[str]] = {}
    for one, other in near:
        partners_of.setdefault(one, []).append(other)
        partners_of.setdefault(other, []).append(one)
    kept: dict[str, None] = {}
    partners: dict[str, str] = {}
    for name in gold.texts:
        partner = next((other for other in partners_of.get(name, []) if other in kept), None)
        if partner is None:
            kept[name] = None
        else:
            partners[name] = partner
    found = score(gold, kept, 0.9, partners)
    assert (found.recall, found.precision) == (1, 1)
    assert faults(found) == (0, 0, 0, 0, 0)
    assert found.removed == len(partners) > 2000

    name, partner = next(iter(partners.items()))
    far = next(other for other in kept if other != partner and other not in partners_of.get(name, []))
    assert faults(score(gold, kept, 0.9, {**partners, name: far})) == (0, 0, 0, 1, 0)
    lone = next(other for other in kept if other not in partners_of)
    worse = score(gold, kept.keys() - {lone}, 0.9)
    assert faults(worse) == (0, 1, 0, 0, 0)
    back = score(gold, {*kept, name}, 0.9)
    assert faults(back)[0] == sum(other in kept for other in partners_of[name])


def faults(found: Score) -> tuple[int, ...]:
    lists = (found.missed, found.wrongly_removed, found.lost, found.chained, found.partner_removed)
    return tuple(len(one) for one in lists)


def test_the_gold_misses_no_pair_of_a_sample(gold: Gold) -> None:
    """All pairs of 250 documents, half of them from similar pairs, against the oracle."""
    rng = random.Random(7)
    names = {name for pair in rng.sample(sorted(gold.pairs), 60) for name in pair}
    names |= set(rng.sample(sorted(gold.texts), 250 - len(names)))
    made = {name: shingles(gold.texts[name]) for name in sorted(names)}
    found = set()
    for one, other in combinations(made, 2):
        (kind, left), (other_kind, right) = made[one], made[other]
        if kind == other_kind and min(len(left), len(right)) >= 0.5 * max(len(left), len(right)):
            shared = len(left & right)
            if shared / (len(left) + len(right) - shared) >= 0.5:
                found.add((one, other))
    assert found == {pair for pair in gold.pairs if set(pair) <= names}
