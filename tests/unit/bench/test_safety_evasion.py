"""Laws of the evasion suite: disguises hide a word from equality and not from a reader, and change nothing else."""

from __future__ import annotations

import unicodedata

import pytest

from curation.filters.safety_terms.tables import files_of
from curation.filters.safety_terms.terms import read_terms
from quality_models.safety_labels import CATEGORY_NAMES
from tests.golden.safety_evasion import DISGUISES, load_lookalikes, load_phrases, script_of, variants

WORDS = (
    "online casino",
    "赌博平台开户",
    "オンラインカジノ",
    "казино онлайн",
    "불법 도박",
    "คาสิโนออนไลน์",
    "เว็บพนัน",
    "كازينو",
)


@pytest.mark.parametrize("word", WORDS)
def test_disguises_are_the_same_each_time_and_change_the_text(word: str) -> None:
    """Each disguise has a name of the list, changes the text, and comes out the same again."""
    found = dict(variants(word))
    assert found.keys() <= DISGUISES.keys()
    assert {"zero-width", "spaced", "signs between", "repeated letter"} <= found.keys()
    assert word not in found.values()
    assert dict(variants(word)) == found


@pytest.mark.parametrize("word", WORDS)
def test_what_is_put_between_can_be_taken_out(word: str) -> None:
    """Without what is not seen, signs and blanks, the letters of the word stand there as they were."""
    for name in ("zero-width", "spaced", "signs between", "one sign", "full-width", "mixed case"):
        text = dict(variants(word)).get(name, word)
        folded = unicodedata.normalize("NFKC", text).lower() if name in ("full-width", "mixed case") else text
        letters = [char for char in folded if unicodedata.category(char)[0] in "LMN" and char not in "\u200c\u200d"]
        assert letters == [char for char in word if char != " "], name


def test_a_disguise_that_does_not_fit_is_left_out() -> None:
    """Signs in one gap and Traditional forms are for Chinese, look-alikes and digits for scripts that have them."""
    assert not {"one sign", "Traditional"} & dict(variants("online casino")).keys()
    assert not {"leet", "homoglyphs", "full-width"} & dict(variants("赌博")).keys()
    assert dict(variants("赌博"))["Traditional"] == "賭博"


@pytest.mark.parametrize(
    ("text", "script"),
    [
        ("casino", "Latin"),
        ("VX号", "Han"),
        ("カジノ登録", "kana"),
        ("도박 site", "Hangul"),
        ("ставки", "Cyrillic"),
        ("พนัน", "other"),
        ("18", "Latin"),
    ],
)
def test_scripts(text: str, script: str) -> None:
    """The script that is not Latin names a text, kana before Han."""
    assert script_of(text) == script


def test_phrases_stand_on_no_list() -> None:
    """Over a hundred adverts of known categories, none of which a list has whole; none of them twice."""
    phrases = load_phrases()
    lists = [read_terms(path).terms for path in files_of((), shipped=True)]
    spellings = {spelling.lower() for terms in lists for term in terms for spelling in term.spellings}
    assert len(phrases) >= 100
    assert len({one.text for one in phrases}) == len(phrases)
    assert {one.kind for one in phrases} <= set(CATEGORY_NAMES)
    assert not spellings & {one.text.lower() for one in phrases}


def test_lookalikes_are_many_and_of_many_languages() -> None:
    """180 sentences and more, in ten languages and more, none of them an advert of the suite."""
    cases = load_lookalikes()
    assert len(cases) >= 180
    assert len({one.lang for one in cases}) >= 10
    assert not {one.text for one in cases} & {one.text for one in load_phrases()}
