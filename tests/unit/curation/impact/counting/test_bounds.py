"""Bounds of a change: broken where more moves than the config says, and told so that one knows what to do."""

from __future__ import annotations

import pytest

from curation.config import load_config, parse_config
from curation.errors import ConfigError
from curation.impact.config import ImpactConfig
from curation.impact.counting.bounds import broken_bounds, unchecked_bounds
from curation.impact.counting.figure_types import Figures
from curation.impact.counting.figures import figures
from curation.launch import _job
from curation.pipeline import Pipeline
from tests.fakes import make_run
from tests.impact_oracle import Document, compared, documents_of


def sample(**languages: tuple[int, int, int, int]) -> Figures:
    """Figures of documents by language: how many stay, leave, come in and are dropped on both sides."""
    documents: list[Document] = []
    template = documents_of(1, weighted=False)[0]
    for language, numbers in languages.items():
        for (before, after), n in zip(((0, 0), (0, 1), (1, 0), (1, 1)), numbers, strict=True):
            for _ in range(n):
                place = len(documents)
                one = {"doc_id": place.to_bytes(16, "big"), "language": language, "before": before, "after": after}
                documents.append({**template, **one})
    return figures(compared(documents))


def broken(figures: Figures, **settings: object) -> list[tuple[str, str | None, float]]:
    return [(one.key, one.language, one.found) for one in broken_bounds(figures, ImpactConfig.model_validate(settings))]


def test_a_bound_is_what_may_leave_and_come_in_together() -> None:
    """At the bound it holds, one document more breaks it; both directions count, and do not cancel out."""
    at = sample(eng=(990, 5, 5, 10))  # 10 of 995
    assert broken(at, max_kept_change=10 / 995) == []
    assert broken(at, max_kept_change=0.01) == [("impact.max_kept_change", None, 10 / 995)]
    assert broken(sample(eng=(995, 5, 0, 0)), max_kept_change=0.005) == []
    assert broken(sample(eng=(994, 6, 0, 0)), max_kept_change=0.005) == [("impact.max_kept_change", None, 0.006)]
    assert broken(sample(eng=(1000, 0, 6, 0)), max_kept_change=0.005) == [("impact.max_kept_change", None, 0.006)]


def test_a_small_change_in_all_may_be_a_large_one_in_a_language() -> None:
    """Each language is held to its bound, the worst first; a bound of its own goes before the one of all."""
    found = sample(eng=(960, 40, 0, 0), zho=(95, 5, 0, 0), jpn=(98, 2, 0, 0), kor=(90, 10, 0, 0))
    assert broken(found, max_kept_change=0.1, max_language_change=0.04) == [
        ("impact.max_language_change", "kor", 0.1),
        ("impact.max_language_change", "zho", 0.05),
    ]
    assert broken(found, max_language_change=0.04, languages={"kor": 0.1, "eng": 0.03}) == [
        ("impact.max_language_change", "zho", 0.05),
        ("impact.languages.eng", "eng", 0.04),
    ]
    assert broken(found, languages={"jpn": 0}) == [("impact.languages.jpn", "jpn", 0.02)]


def test_a_language_of_few_documents_is_told_but_not_held() -> None:
    """Unless it has a bound of its own, or is many by the new side: what the base drops wholly must not come in unseen."""
    assert broken(sample(eng=(500, 0, 0, 0), kor=(20, 9, 0, 0)), max_language_change=0.01) == []
    assert broken(sample(kor=(40, 10, 0, 0)), max_language_change=0.01) == [("impact.max_language_change", "kor", 0.2)]
    assert broken(sample(kor=(20, 9, 0, 0)), max_language_change=0.01, least_documents=29) != []
    assert broken(sample(kor=(20, 9, 0, 0)), languages={"kor": 0.01}) == [("impact.languages.kor", "kor", 9 / 29)]
    assert broken(sample(kor=(5, 0, 50, 0)), max_language_change=0.5) == [("impact.max_language_change", "kor", 10.0)]


def test_what_comes_in_where_nothing_was_kept_breaks_any_bound() -> None:
    """Its share is infinite; with nothing on either side nothing is broken."""
    assert broken(sample(kor=(0, 0, 50, 5)), max_language_change=1, max_kept_change=1) == [
        ("impact.max_kept_change", None, float("inf")),
        ("impact.max_language_change", "kor", float("inf")),
    ]
    assert broken(sample(kor=(0, 0, 0, 80)), max_language_change=0, max_kept_change=0) == []
    (one, _) = broken_bounds(sample(kor=(0, 0, 50, 0)), ImpactConfig(max_kept_change=0.1, max_language_change=0.1))
    assert one.text.startswith(
        "50 documents come in, of which the base keeps none; impact.max_kept_change allows 10 %."
    )


def test_weights_count() -> None:
    """One document that stands for many."""
    documents = documents_of(100, weighted=False)
    for place, one in enumerate(documents):
        one |= {
            "before": 0,
            "after": int(place == 0),
            "weight": 100.0 if place == 0 else 1.0,
            "stratum": int(place == 0),
        }
    (found,) = broken_bounds(figures(compared(documents)), ImpactConfig(max_kept_change=0.1))
    assert found.found == pytest.approx(100 / 199)


def test_no_bounds_are_not_broken() -> None:
    """Neither without the section nor with an empty one."""
    everything_leaves = sample(eng=(0, 100, 0, 0))
    assert broken_bounds(everything_leaves, None) == []
    assert broken(everything_leaves) == []
    assert unchecked_bounds(everything_leaves, None) == []


def test_a_broken_bound_says_what_to_do() -> None:
    """Found, interval, counts, language, key, limit, and both ways out; numbers that differ look different."""
    (one,) = broken_bounds(sample(zho=(9899, 101, 0, 0)), ImpactConfig(languages={"zho": 0.01}))
    assert one.text == (
        "1.01 % of the documents of language zho that the base keeps leave or come in (95 %: 0.83 % to 1.23 %; 101 leave and 0 "
        "come in, of 10,000 in the sample); impact.languages.zho allows 1 %. Look at the sheet: if this is what the change is "
        "for, raise the bound in the config in the same change; if not, mend the change."
    )
    (close,) = broken_bounds(sample(eng=(19_999, 2, 0, 0)), ImpactConfig(max_kept_change=0.000099))
    assert "0.01 % of the documents" in close.text
    assert "allows 0.0099 %" in close.text


def test_a_bound_that_nothing_checks_is_named() -> None:
    """A mistyped language would otherwise bound nothing for ever."""
    (text,) = unchecked_bounds(
        sample(eng=(9, 0, 0, 0), zho=(1, 0, 0, 0)), ImpactConfig(languages={"eng": 0.1, "zh": 0.1})
    )
    assert text.startswith("impact.languages.zh bounds nothing: the sample has no document of zh. It has: eng, zho.")


# -- the config's section ----------------------------------------------------------------------------------------

STEPS_ONLY = "name: x\nsteps:\n  - length: {min_units: 20}\npack: {}\n"
BOUNDS = "impact: {max_kept_change: 0.005, languages: {zho: 0.01}}\n"


def test_bounds_change_no_run() -> None:
    """Neither digest nor job, nor what is written into a run's folder: its steps and packed tokens are found again."""
    without, with_bounds = parse_config(STEPS_ONLY), parse_config(STEPS_ONLY + BOUNDS)
    assert with_bounds.top.impact == ImpactConfig(max_kept_change=0.005, languages={"zho": 0.01})
    assert with_bounds.digest() == without.digest()
    assert with_bounds.resolved() == without.resolved()
    assert with_bounds.to_yaml() == without.to_yaml()
    assert "impact" not in parse_config(with_bounds.to_yaml()).resolved()
    listed = [("a.jsonl", 3, "2026-01-01")]
    assert _job(with_bounds, listed, False) == _job(without, listed, False)


def test_the_digest_of_a_config_is_what_it_was() -> None:
    """Written down before there were bounds: runs of earlier versions are found again."""
    config = parse_config("name: x\nsteps: []\n")
    assert sorted(config.resolved()) == ["export", "ingest", "memory_mb", "name", "pack", "steps"]


def test_bounds_change_no_folder_of_a_step(tmp_path: object) -> None:
    """The digests of steps are those of the same config without them."""
    run = make_run(tmp_path, [["a text", "another"]])  # type: ignore[arg-type]
    placed = [Pipeline(run, parse_config(text)).placed for text in (STEPS_ONLY, STEPS_ONLY + BOUNDS)]
    assert [one.folder for one in placed[0]] == [one.folder for one in placed[1]]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("impact: {max_kept_chnge: 0.1}", "unknown key impact.max_kept_chnge.*did you mean 'max_kept_change'"),
        ("impact: {max_kept_change: 5}", "impact.max_kept_change: .*less than or equal to 1, found 5"),
        ("impact: {languages: {zho: -1}}", "impact.languages.zho: .*greater than or equal to 0"),
        ("impact: {least_documents: 0}", "impact.least_documents"),
        ("impact: 5", "impact: expected a mapping"),
    ],
)
def test_wrong_bounds_are_refused(text: str, said: str) -> None:
    """With key, what was expected and what was found."""
    with pytest.raises(ConfigError, match=said):
        parse_config(text)


def test_shipped_configs_have_bounds() -> None:
    """Half a per cent of all, two of a language; any of them can be set on the command line."""
    for name in ("web", "zh-web"):
        assert load_config(name).top.impact == ImpactConfig(max_kept_change=0.005, max_language_change=0.02)
    config = load_config("web", ["impact.languages={zho: 0.5}", "impact.max_kept_change=null"])
    assert config.top.impact == ImpactConfig(max_language_change=0.02, languages={"zho": 0.5})
    assert load_config("demo", ["impact.max_kept_change=0.1"]).top.impact == ImpactConfig(max_kept_change=0.1)
