"""Laws of the recounted gold: the step's definition of words in plain Python, and all pairs by it."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.bench.near_gold import Gold, jaccard, shingles
from tests.bench.near_words import own_jaccard, own_shingles, recounted


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        ("", "none", set()),
        ("...\u0301 \u3164", "none", set()),
        ("e\u0301 i\ufe0fx", "word5", {"é ix"}),
        ("One TWO", "word5", {"one two"}),
        ("தமிழ்", "word5", {"தமி ழ்"}),  # its vowel signs are marks, which end words and belong to them
        ("\u0301a b \u0301c", "word5", {"a b c"}),  # a mark that follows nothing
        ("so\u00adft zero\u200bwidth", "word5", {"soft zero width"}),
        ("a\ufe0f b", "word5", {"a b"}),
        ("ΣΟΦΟΣ", "word5", {"σοφοσ"}),
        ("Straße", "word5", {"straße"}),  # simple folding: one for one
        ("ภาษาไทย", "char5", {"ภาษาไ", "าษาไท", "ษาไทย"}),
        ("ที่นี่ดีมาก", "char5", {"ที่นี่ดีมา", "นี่ดีมาก"}),  # a letter with its marks is one
        ("河边的，小店登", "char5", {"河边的小店", "边的小店登"}),
        ("abcdefg 河边的", "word5", {"abcdefg 河边的"}),
    ],
)
def test_folding_is_simple_and_all_unspaced_scripts_are_cut_by_character(
    text: str, kind: str, expected: set[str]
) -> None:
    """As the step's description says."""
    found_kind, found = own_shingles(text)
    assert (found_kind, set(found)) == (kind, expected)


@given(st.text(st.sampled_from("ab Ab.,_1河边的店é한ß"), max_size=80))
def test_other_texts_are_cut_as_in_the_gold(text: str) -> None:
    """Both definitions differ in folding, invisible characters and more unspaced scripts alone."""
    assert own_shingles(text) == shingles(text) or own_shingles(text) == ("none", frozenset())


def test_all_pairs_are_found_by_the_own_definition() -> None:
    """Against all pairs counted one by one, in texts of which the definitions cut some otherwise."""
    greek = "Ο ΛΟΓΟΣ ΤΗΣ ΠΟΛΗΣ ΕΙΝΑΙ ΜΕΓΑΛΟΣ ΚΑΙ ΣΟΦΟΣ".split()
    texts = {
        "a": " ".join(greek * 3),
        "b": " ".join([*greek * 3, "ΤΕΛΟΣ"]),
        "c": " ".join(greek[2:] * 3).lower(),
        "d": "ภาษาไทยเป็นภาษาที่มีระดับเสียงของคำแน่นอน" * 2,
        "e": "ภาษาไทยเป็นภาษาที่มีระดับเสียงของคำแน่นอน" * 2 + "กา",
        "f": "one two three four five six seven",
        "g": "one two three four five six seven eight",
        "h": "one two three four five six seven e\u0301ight",
        "i": "...",
        "j": "!!!\u0301",
    }
    pairs = {pair: round(jaccard(texts[pair[0]], texts[pair[1]]), 4) for pair in combinations(texts, 2)}
    gold = Gold(texts, dict.fromkeys(texts, "?"), {pair: j for pair, j in pairs.items() if j >= 0.5})
    own = {pair: own_jaccard(texts[pair[0]], texts[pair[1]]) for pair in combinations(texts, 2)}
    found = recounted(gold)
    assert found.pairs == {pair: j for pair, j in own.items() if j >= 0.5}
    assert found.exact("a", "b") == own["a", "b"]
    assert found.exact("d", "e") == own["d", "e"] != gold.exact("d", "e")
    assert ("i", "j") in gold.pairs
    assert ("i", "j") not in found.pairs
    planted = recounted(
        Gold(texts, gold.languages, {("a", "b"): gold.pairs["a", "b"], ("f", "g"): 0.75}, complete=False)
    )
    assert planted.pairs == {("a", "b"): own["a", "b"], ("f", "g"): 0.75}
