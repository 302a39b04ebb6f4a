"""Settings of `rules`: what is accepted, what is refused and how, and the limits that they come to."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from curation.config import parse_config
from curation.errors import ConfigError
from curation.filters.rules.config import RulesConfig, RulesSettings, limits_of
from curation.filters.rules.limits import limit_for
from curation.filters.rules.rule import BY_NAME, RULES


def config_of(**settings: Any) -> RulesSettings:
    return RulesConfig.model_validate(settings)


def limit(config: RulesSettings, rule: str, label: str) -> float | None:
    return limit_for(limits_of(config).get(rule, ()), label)


def test_every_rule_is_a_key() -> None:
    """The keys are the preset, the languages and the rules; each says what it is and where it comes from."""
    assert set(RulesConfig.model_fields) == {"preset", "languages", *BY_NAME}
    for rule in RULES:
        about = RulesConfig.model_fields[rule.name].description
        assert about is not None
        assert rule.measure in about
        assert rule.source in about


@pytest.mark.parametrize("value", [None, False, "off"])
def test_a_rule_is_turned_off(value: Any) -> None:
    """null, off (which YAML reads as false) and "off" are the same: the rule is off in all languages."""
    config = config_of(preset="gopher", duplicate_lines=value)

    assert config.model_dump()["duplicate_lines"] == "off"
    assert limit(config, "duplicate_lines", "eng_Latn") is None
    assert limit(config, "duplicate_paragraphs", "eng_Latn") == 0.3


def test_a_number_is_for_all_languages() -> None:
    """It stands above what the preset says of single ones."""
    config = config_of(preset="fineweb2", duplicate_lines=0.5)

    assert {limit(config, "duplicate_lines", label) for label in ("deu_Latn", "zho_Hans", "und_Thai", "und")} == {0.5}


def test_the_nearest_of_the_users_limits_decides() -> None:
    """Label, language, script, all: and any of them before the preset, however near the preset's is."""
    config = config_of(
        preset="fineweb2",
        duplicate_lines=0.5,
        languages={
            "zh": {"duplicate_lines": 0.6},
            "zho_Hant": {"duplicate_lines": "off"},
            "und-latn": {"top_2gram": 0.9},
        },
    )

    assert limit(config, "duplicate_lines", "zho_Hans") == 0.6
    assert limit(config, "duplicate_lines", "zho_Hant") is None
    assert limit(config, "duplicate_lines", "jpn_Jpan") == 0.5
    assert limit(config, "top_2gram", "deu_Latn") == 0.9
    assert limit(config, "top_2gram", "rus_Cyrl") == 0.184


def test_only_rules_that_are_named() -> None:
    """The preset `none` turns everything off; a limit for one language alone leaves the others free."""
    config = config_of(preset="none", languages={"de": {"upper_case": 0.2}})

    assert list(limits_of(config)) == ["upper_case"]
    assert limit(config, "upper_case", "deu_Latn") == 0.2
    assert limit(config, "upper_case", "fra_Latn") is None


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("{duplicate_line: 0.3}", "unknown key steps.rules.duplicate_line (did you mean 'duplicate_lines'?)"),
        (
            "{preset: gofer}",
            "expected a preset (massive, gopher, c4, fineweb, fineweb2, none) (did you mean 'gopher'?)",
        ),
        ("{duplicate_lines: 30}", "steps.rules.duplicate_lines: expected a share from 0 to 1, found 30"),
        ("{longest_word: -1}", "steps.rules.longest_word: expected no negative number, found -1"),
        ("{digits: on}", "steps.rules.digits: expected a number (share) or off, found True"),
        ("{digits: .nan}", "steps.rules.digits: expected a number (share) or off, found nan"),
        ("{languages: [zh]}", "expected a mapping of languages, such as {zho: {duplicate_lines: 0.4}}"),
        ("{languages: {zh: 0.3}}", "zh: expected a mapping of rules and limits"),
        ("{languages: {zh: {digit: 1}}}", "zh: there is no rule 'digit' (did you mean 'digits'?)"),
        ("{languages: {zh: {digits: 3}}}", "zh.digits: expected a share from 0 to 1"),
        ("{languages: {zh: {digits: preset}}}", "zh.digits: expected a number (share) or off"),
        ("{languages: {zoh: {digits: 1}}}", "no label has the language 'zoh'"),
        ("{languages: {no: {digits: 1}}}", "YAML reads no as false: write 'no' in quotes, or nob"),
        ("{languages: {und: {digits: 1}}}", "give its script, such as und_Latn"),
        ("{languages: {und_Hans: {digits: 1}}}", "no text has the label 'und_Hans' (did you mean 'und_Hani'?)"),
        ("{languages: {eng_Cyrl: {digits: 1}}}", "no text has the label 'eng_Cyrl' (did you mean 'eng_Latn'?)"),
        ("{stop_words: 9}", "steps.rules.stop_words: expected 8 or less: no text is searched for more, found 9"),
        ("{languages: {zh: {}, zho: {}}}", "zho is named more than once"),
        ("{languages: {chinese: {}}}", "expected a language or label, such as zh, zho, zho_Hant or und_Hani"),
    ],
)
def test_what_is_refused(settings: str, message: str) -> None:
    """One sentence with the key, what was expected, and the nearest known name."""
    with pytest.raises(ConfigError) as caught:
        parse_config(f"steps: [rules: {settings}]")

    assert message in str(caught.value)


def test_set_on_the_command_line() -> None:
    """`--set` reaches a rule, and a rule of one language."""
    overrides = ["rules.duplicate_lines=0.4", "rules.languages.zh.digits=off", "rules.preset=gopher"]

    step = parse_config("steps: [rules]", overrides=overrides).steps[0]

    assert isinstance(step.config, RulesSettings)
    assert step.config.preset == "gopher"
    assert limit(step.config, "duplicate_lines", "eng_Latn") == 0.4
    assert step.config.languages == {"zho": {"digits": "off"}}


def test_what_is_resolved_is_read_again() -> None:
    """The YAML that a run stores gives the same config; so does pickle."""
    config = parse_config("steps: [rules: {digits: off, top_2gram: 0.3, languages: {zh: {digits: 0.1}}}]")

    again = parse_config(config.to_yaml())

    assert again.steps[0].config == config.steps[0].config == pickle.loads(pickle.dumps(config.steps[0].config))


def test_limits_decide_the_digest() -> None:
    """Two ways to write the same limits are one config; another number is another."""
    assert config_of(preset="c4").deciding() != config_of(preset="gopher").deciding()
    assert config_of(digits=0.2).deciding() != config_of(digits=0.3).deciding()
    assert config_of(preset="gopher", digits="off").deciding() == config_of(preset="gopher").deciding()
