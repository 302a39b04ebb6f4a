"""Settings of the filter `language`: names of languages in any usual form, policies, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from curation.filters.language.config import LanguageConfig

POLICIES = ("no_language", "short", "undecided", "unwanted", "mixed")


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("en", "eng"),
        ("eng", "eng"),
        ("EN", "eng"),
        ("zh", "zho"),
        ("cmn", "zho"),
        ("zho_Hant", "zho_Hant"),
        ("zh-Hant", "zho_Hant"),
        ("zh_Hans", "zho_Hans"),
        ("zh-TW", "zho_Hant"),
        ("zh_tw", "zho_Hant"),
        ("zh-HK", "zho_Hant"),
        ("zh-CN", "zho_Hans"),
        ("zh-SG", "zho_Hans"),
        ("zh-Hant-TW", "zho_Hant"),
        ("zh_hant", "zho_Hant"),
        ("zho_Hani", "zho_Hani"),
        ("sr_Latn", "srp_Latn"),
        ("sr-latn", "srp_Latn"),
        ("en-US", "eng"),
        ("pt-BR", "por"),
        ("sr-Cyrl", "srp_Cyrl"),
        ("no", "nob"),
        ("nn", "nno"),
        ("iw", "heb"),
        ("zsm", "msa"),
        ("id", "ind"),
    ],
)
def test_names_of_languages_become_one_form(given: str, meant: str) -> None:
    """A language may be named as people do; the config holds labels as the scores do."""
    assert LanguageConfig.model_validate({"wanted": [given]}).wanted == (meant,)
    assert LanguageConfig.model_validate({"min_confidence_of": {given: 0.7}}).min_confidence_of == {meant: 0.7}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("english", r"expected a code such as en, eng, eng_Latn or zh-Hant-TW"),
        ("xx", r"'xx' is no code of ISO 639-1"),
        ("", r"expected a code such as en"),
        ("zho_Hnat", r"expected a script it is written in \(Hans, Hant, Hani\), found Hnat"),
        ("en_Cyrl", r"expected a script it is written in \(Latn\), found Cyrl"),
        ("zh-Latn", r"expected a script it is written in .*, found Latn"),
        ("zh-Latn-pinyin", r"expected a script of four letters or a region after it, found 'pinyin'"),
        ("qqq", r"language 'qqq': none of the models knows it"),
        ("zxx", r"zxx is no language"),
        ("und", r"und is no language: say what becomes of such documents with `undecided`"),
        ("12", r"expected a code"),
    ],
)
def test_what_is_no_language_is_refused(name: str, message: str) -> None:
    """A misspelt language would drop everything, so it is refused, and the message shows what is right."""
    with pytest.raises(ValidationError, match=message):
        LanguageConfig.model_validate({"wanted": ["en", name]})
    with pytest.raises(ValidationError, match=message):
        LanguageConfig.model_validate({"min_confidence_of": {name: 0.5}})


@pytest.mark.parametrize("name", ["srp_Latin", "zho_Hantt", "zho_Hnt", "eng_Lat"])
def test_a_misspelt_script_is_refused(name: str) -> None:
    """Serbian in any script is not what `srp_Latin` asks for."""
    with pytest.raises(ValidationError, match="expected a script of four letters or a region after it"):
        LanguageConfig.model_validate({"wanted": [name]})


def test_a_model_of_ones_own_may_know_any_language() -> None:
    """GlotLID knows 1,800 languages: with a model by path a code is taken as it is."""
    config = LanguageConfig.model_validate({"wanted": ["qqq_Latn"], "voters": ["models/glotlid.bin"]})
    assert config.wanted == ("qqq_Latn",)


@pytest.mark.parametrize("pair", [("zh", "zho"), ("zh-TW", "zho_Hant")])
def test_two_thresholds_for_one_language_are_refused(pair: tuple[str, str]) -> None:
    """Two names of one language with two thresholds: one of them would vanish silently."""
    with pytest.raises(ValidationError, match=f"is named more than once, as '{pair[0]}', '{pair[1]}'"):
        LanguageConfig.model_validate({"min_confidence_of": {pair[0]: 0.5, pair[1]: 0.9}})


def test_a_language_and_one_of_its_scripts_may_differ() -> None:
    """Chinese, and Chinese in Traditional characters, are two names."""
    config = LanguageConfig.model_validate({"min_confidence_of": {"zh": 0.5, "zh-TW": 0.9}})
    assert config.min_confidence_of == {"zho": 0.5, "zho_Hant": 0.9}


def test_a_voter_named_twice_is_refused() -> None:
    """It would count twice."""
    with pytest.raises(ValidationError, match="py3langid is named more than once"):
        LanguageConfig.model_validate({"voters": ["py3langid", "corpusmill", "py3langid"]})


@pytest.mark.parametrize("field", POLICIES)
@pytest.mark.parametrize("policy", ["keep", "drop", "route:x", "route:for-review_2", "route:" + "a" * 64])
def test_policies(field: str, policy: str) -> None:
    """Every policy may be keep, drop, or a route with a plain name."""
    assert getattr(LanguageConfig.model_validate({field: policy}), field) == policy


@pytest.mark.parametrize("field", POLICIES)
@pytest.mark.parametrize(
    "policy",
    [
        "",
        "Keep",
        "drop ",
        "route",
        "route:",
        "route:a b",
        "route:../x",
        "route:-x",
        "route:a/b",
        "route:é",
        "route:a\n",
    ],
)
def test_bad_policies_are_refused(field: str, policy: str) -> None:
    """A name that could not be a file's is no route; the message says what is expected and what was found."""
    with pytest.raises(ValidationError) as caught:
        LanguageConfig.model_validate({field: policy})
    message = str(caught.value)
    assert "expected keep, drop or route:NAME (letters, digits, - and _, up to 64), found" in message
    assert repr(policy) in message


def test_too_long_a_route_is_refused() -> None:
    """65 letters are too many."""
    with pytest.raises(ValidationError, match="up to 64"):
        LanguageConfig.model_validate({"mixed": "route:" + "a" * 65})


@pytest.mark.parametrize(
    "settings",
    [
        {"min_confidence": 1.01},
        {"min_confidence": -0.01},
        {"min_confidence": float("nan")},
        {"min_share": 2},
        {"min_confidence_of": {"zh": 1.5}},
        {"min_confidence_of": {"zh": "high"}},
        {"wanted": "en"},
        {"lowest_confidence": 0.5},
    ],
)
def test_numbers_outside_of_shares_and_unknown_keys_are_refused(settings: dict[str, Any]) -> None:
    """Shares and probabilities lie between 0 and 1; a list of languages is a list."""
    with pytest.raises(ValidationError):
        LanguageConfig.model_validate(settings)


def test_defaults_lose_no_language() -> None:
    """Without settings every language is wanted, and what is short or mixed stays."""
    config = LanguageConfig()
    assert config.wanted == ()
    assert (config.short, config.mixed) == ("keep", "keep")
    assert (config.no_language, config.undecided, config.unwanted) == ("drop", "drop", "drop")
    assert config.min_share == 0
