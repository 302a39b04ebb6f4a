"""The quality chain on 10,089 documents of 25 languages: what it has to keep and to drop, by itself and beside other tools.

The figures are those asked for when the chain was planned, and floors at what it reaches. Where it falls short of what was asked,
that is an expected failure with the figure of the day, so that reaching it, or losing another, shows. What other tools
reach on the same files stands in bench/results/quality.md, from where the figures of this module were taken.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bench.bench_quality import our_chains
from tests.bench.quality_chain import Judge, named_languages
from tests.bench.quality_gold import Document, Score, languages_with_enough, load_parts, load_texts, score

pytestmark = pytest.mark.slow

KEPT, DROPPED = 0.97, 0.90
"""Asked for: of good text in each language with 50 documents and more, and of junk."""

WHOLE = "`massive` + perplexity"

PEERS = {
    "datatrove as shipped": (0.111, 0.981),
    "datatrove told the language": (0.109, 0.981),
    "FineWeb-2's settings": (0.698, 0.933),
    "NeMo Curator told the language": (0.690, 0.927),
    "Data-Juicer": (0.734, 0.683),
}
"""Good kept, mean of languages, and junk dropped by other tools' chains."""


def folder(test_data: Path, name: str) -> Path:
    if not (test_data / name).is_dir():
        pytest.skip(f"no {name} in the test data at {test_data}: set CORPUSMILL_TEST_DATA to a folder that has it")
    return test_data / name


@pytest.fixture(scope="module")
def documents(test_data: Path) -> list[Document]:
    return load_texts(folder(test_data, "2_text"))


@pytest.fixture(scope="module")
def judge(documents: list[Document]) -> Judge:
    texts = [one.text for one in documents]
    return Judge(texts, named_languages(texts))


def scored(name: str, documents: list[Document], judge: Judge, half: str = "all") -> Score:
    reasons = judge.verdicts(our_chains()[name])
    return score(documents, dict(zip([one.name for one in documents], reasons, strict=True)), half)


@pytest.fixture(scope="module")
def whole(documents: list[Document], judge: Judge) -> Score:
    return scored(WHOLE, documents, judge)


# -- good text --------------------------------------------------------------------------------------

LANGUAGES = (
    "zh", "en", "ja", "de", "lzh", "fr", "es", "ru", "ko", "el", "ro", "pt", "vi", "th", "it", "ca", "nl", "id", "da", "sv",
)  # fmt: skip
"""Those with 50 good documents and more."""


def test_these_are_the_languages_with_enough(documents: list[Document]) -> None:
    """No language with 50 good documents is left out below."""
    assert set(languages_with_enough(documents)) == set(LANGUAGES)


@pytest.mark.parametrize("language", LANGUAGES)
def test_good_text_is_kept(whole: Score, language: str) -> None:
    """97 % of the good documents of each language are kept."""
    kept = whole.good[language]
    print(f"{language}: {kept.hits} of {kept.number} kept ({kept})")
    assert kept.share >= KEPT


# -- junk -------------------------------------------------------------------------------------------


def test_junk_is_dropped(whole: Score) -> None:
    """90 % of junk is dropped, over all classes."""
    print(f"junk: {whole.junk_dropped.hits} of {whole.junk_dropped.number} dropped ({whole.junk_dropped})")
    assert whole.junk_dropped.share >= DROPPED


FLOORS: dict[str, float] = {
    "boilerplate/navigation": 0.93,
    "half-stripped HTML": 0.98,
    "telegram spam": 0.80,
    "spam chat dump": 0.99,
    "repeated n-grams/lines": 0.99,
    "mojibake utf8->latin-1": 0.97,
    "mojibake utf8->cp1252": 0.95,
    "mojibake utf8->cp932": 0.95,
    "mojibake shift_jis->latin-1": 0.95,
    "mojibake koi8-r->cp1251": 0.95,
    "mojibake utf8->gb18030": 0.90,
}
"""Of these classes of junk at least this share is dropped; of all others every document."""


def test_classes_of_junk_are_dropped(whole: Score) -> None:
    """Each class of junk, at least as much of it as on the day that the floors were set."""
    missed = {kind: str(tally) for kind, tally in whole.junk.items() if tally.share < FLOORS.get(kind, 1.0)}
    assert missed == {}


def test_the_half_that_nothing_was_tuned_on(documents: list[Document], judge: Judge) -> None:
    """Held-out documents fare as well: limits fit more than those they were chosen on."""
    held = scored(WHOLE, documents, judge, "held out")
    print(f"held out: good {held.macro_good:.3f}, junk {held.junk_dropped}")
    assert held.macro_good >= KEPT
    assert held.junk_dropped.share >= DROPPED


@pytest.mark.parametrize("peer", PEERS)
def test_better_than_other_tools_on_both(whole: Score, peer: str) -> None:
    """More of good text kept and more junk dropped at once, than by any other tool's chain."""
    kept, dropped = PEERS[peer]
    assert whole.macro_good > kept
    assert whole.junk_dropped.share > dropped


# -- presets ----------------------------------------------------------------------------------------

PRESET_FLOORS: dict[str, tuple[float, float]] = {
    "gopher": (0.89, 0.69),
    "c4": (0.82, 0.73),
    "fineweb": (0.73, 0.93),
    "fineweb2": (0.82, 0.89),
    "massive": (0.99, 0.98),
}
"""Good kept, mean of languages, and junk dropped, by each preset after html_noise and length."""


@pytest.mark.parametrize("preset", PRESET_FLOORS)
def test_presets(documents: list[Document], judge: Judge, preset: str) -> None:
    """Each preset keeps and drops as much as on the day that the floors were set."""
    found = scored(f"`{preset}`", documents, judge)
    kept, dropped = PRESET_FLOORS[preset]
    print(f"{preset}: good {found.macro_good:.3f}, junk {found.junk_dropped}")
    assert found.macro_good >= kept
    assert found.junk_dropped.share >= dropped


# -- parts of pages ---------------------------------------------------------------------------------


def test_main_content_is_kept_and_boilerplate_dropped(test_data: Path) -> None:
    """Of web pages' parts: what is lost of main content is tables, and what is kept of boilerplate long teasers and comments."""
    parts = [one for one in load_parts(folder(test_data, "6_quality")) if one.scale == "web page part"]
    texts = [one.text for one in parts]
    reasons = Judge(texts, named_languages(texts)).verdicts(our_chains()[WHOLE])
    kept = {
        label: sum(reason is None for reason, one in zip(reasons, parts, strict=True) if one.label == label)
        / sum(one.label == label for one in parts)
        for label in ("main content", "boilerplate")
    }
    print(kept)
    assert kept["main content"] >= 0.95
    assert kept["boilerplate"] <= 0.07
