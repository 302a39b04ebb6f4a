"""Presets: whose numbers they are, and what becomes of them in scripts without blanks."""

from __future__ import annotations

import pytest

from curation.filters.rules.limits import limit_for
from curation.filters.rules.presets import PRESETS, preset_limits
from curation.filters.rules.rule import BY_NAME


def limit(preset: str, rule: str, label: str = "eng_Latn") -> float | None:
    by_key = preset_limits(preset).get(rule)
    return None if by_key is None else limit_for((by_key,), label)


@pytest.mark.parametrize("name", PRESETS)
def test_presets_name_rules(name: str) -> None:
    """Every limit belongs to a rule; but for `none`, something is on."""
    assert preset_limits(name).keys() <= BY_NAME.keys()
    assert bool(preset_limits(name)) == (name != "none")


@pytest.mark.parametrize(
    ("preset", "rule", "label", "expected"),
    [
        # Rae et al. 2021, table A1, as in datatrove
        ("gopher", "few_units", "eng_Latn", 50),
        ("gopher", "stop_words", "rus_Cyrl", 2),
        ("gopher", "top_2gram", "eng_Latn", 0.2),
        ("gopher", "duplicate_10gram", "eng_Latn", 0.1),
        ("gopher", "end_mark_lines", "eng_Latn", None),
        # in Chinese 2, 5 and 6 words are 3, 8 and 10 characters
        ("gopher", "top_2gram", "zho_Hans", None),
        ("gopher", "top_3gram", "zho_Hans", 0.2),
        ("gopher", "duplicate_5gram", "zho_Hans", None),
        ("gopher", "duplicate_8gram", "und_Hani", 0.15),
        ("gopher", "duplicate_10gram", "zho_Hant", 0.14),
        # in Japanese 2 and 5 words are 4 and 10 characters, in Thai more than a rule looks at
        ("gopher", "top_4gram", "jpn_Jpan", 0.2),
        ("gopher", "duplicate_10gram", "jpn_Jpan", 0.15),
        ("gopher", "duplicate_10gram", "tha_Thai", None),
        ("c4", "kept_sentences", "zho_Hans", 5),
        ("c4", "curly_brackets", "eng_Latn", 0),
        ("c4", "top_2gram", "eng_Latn", None),
        # Penedo et al. 2024
        ("fineweb", "end_mark_lines", "eng_Latn", 0.12),
        ("fineweb", "duplicate_line_characters", "eng_Latn", 0.01),
        ("fineweb", "kept_sentences", "eng_Latn", None),
        # Penedo et al. 2025: of the language, of its script, of all; English as fineweb
        ("fineweb2", "duplicate_lines", "deu_Latn", 0.263),
        ("fineweb2", "duplicate_line_characters", "deu_Latn", 0.1),
        ("fineweb2", "duplicate_paragraphs", "deu_Latn", None),
        ("fineweb2", "short_lines", "deu_Latn", None),
        ("fineweb2", "duplicate_8gram", "zho_Hans", 0.198),
        ("fineweb2", "top_3gram", "und_Hani", 0.256),
        ("fineweb2", "top_4gram", "jpn_Jpan", 0.239),
        ("fineweb2", "end_mark_lines", "ara_Arab", 0.143),
        ("fineweb2", "long_words", "und_Kore", 6),
        ("fineweb2", "short_lines", "eng_Latn", 0.67),
        ("fineweb2", "duplicate_line_characters", "eng_Latn", 0.01),
        ("none", "digits", "eng_Latn", None),
    ],
)
def test_whose_numbers_they_are(preset: str, rule: str, label: str, expected: float | None) -> None:
    """Limits as their authors give them."""
    assert limit(preset, rule, label) == expected
