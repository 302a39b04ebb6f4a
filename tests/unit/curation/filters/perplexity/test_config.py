"""Settings of perplexity: what fits together, what is refused, and what a limit of a language is."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from curation.config import parse_config
from curation.errors import ConfigError
from curation.filters.perplexity.config import PerplexityConfig

CALIBRATION = {
    "kind": "corpusmill perplexity calibration 1",
    "engine": {"eng": "00"},
    "languages": {"eng": {"documents": 1000, "percentiles": {1: 1.0, 30: 2.0, 60: 3.0, 99: 4.0}}},
}


def test_a_limit_is_that_of_the_label_then_the_language_then_the_script_then_all() -> None:
    """null asks the next one, and `off` is an answer."""
    config = PerplexityConfig.model_validate(
        {
            "max_perplexity": 40,
            "languages": {
                "und_Hani": {"max_perplexity": 10, "max_bits_per_character": 9},
                "zh": {"max_perplexity": 20},
                "zho_Hant": {"max_bits_per_character": "off"},
            },
        }
    )
    found = {
        label: (config.limit("max_perplexity", label), config.limit("max_bits_per_character", label))
        for label in ("zho_Hant", "zho_Hans", "und_Hani", "lzh_Hani", "eng_Latn", "und")
    }
    assert found == {
        "zho_Hant": (20, "off"),
        "zho_Hans": (20, 9),
        "und_Hani": (10, 9),
        "lzh_Hani": (10, 9),
        "eng_Latn": (40, None),
        "und": (40, None),
    }


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"languages": {"zh": {}, "zho": {}}}, "'zh', 'zho'"),
        ({"languages": {"Latn": {}}}, "expected a code such as en"),
        ({"languages": {"und_latn": {}}}, "und"),
        ({"window": 100, "stride": 100}, "less than the window"),
        ({"max_perplexity": 0}, "greater than 0"),
        ({"max_perplexity": float("inf")}, "finite"),
        ({"min_bits_per_character": 3, "max_bits_per_character": 2}, "must not be more than"),
        ({"head_until": 70}, "head_until (70) must not be more than middle_until (60)"),
        ({"tail": "forget"}, "expected keep, drop or route:NAME"),
        ({"engine": "gpt2", "model": {"eng": "a"}}, "one model for all languages"),
        ({"engine": "gpt2", "dtype": "int8"}, "does not compute in int8"),
        ({"engine": "kenlm"}, "'ngram', 'gpt2' or 'ctranslate2'"),
        ({"cascade": {"model": "m", "low": 3, "high": 2}}, "low (3) must not be more than high (2)"),
        ({"cascade": {"model": "m", "low": 30, "high": 60, "unit": "percentile"}}, "needs `calibration`"),
        ({"cascade": {"low": 1, "high": 2}}, "Field required"),
        ({"cascade": {"engine": "ngram", "model": "m", "low": 1, "high": 2}}, "'gpt2' or 'ctranslate2'"),
        ({"calibration": "no-such-file.yaml"}, "`corpusmill calibrate` writes one"),
        ({"calibration": {**CALIBRATION, "kind": "?"}}, "expected 'corpusmill perplexity calibration 1'"),
        (
            {"calibration": {"languages": {"eng": {"documents": 9, "percentiles": {1: 2.0, 99: 1.0}}}}},
            "do not fall from one percentile to the next",
        ),
        ({"calibration": {"languages": {"eng": {"documents": 9, "percentiles": {1: 2.0, 101: 3.0}}}}}, "0 to 100"),
    ],
)
def test_what_does_not_fit_is_refused(settings: dict[str, Any], message: str) -> None:
    """The message says what was expected."""
    with pytest.raises(ValidationError) as error:
        PerplexityConfig.model_validate(settings)
    assert message in str(error.value)


def test_a_calibration_file_becomes_part_of_the_config(tmp_path: Path) -> None:
    """As JSON or YAML; the resolved config needs no file, and has the same digest."""
    (tmp_path / "a.json").write_text(json.dumps(CALIBRATION), encoding="utf-8")
    (tmp_path / "a.yaml").write_text(
        "kind: corpusmill perplexity calibration 1\nengine: {eng: '00'}\n"
        "languages: {eng: {documents: 1000, percentiles: {1: 1, 30: 2, 60: 3, 99: 4}}}\n",
        encoding="utf-8",
    )
    given = PerplexityConfig.model_validate({"calibration": CALIBRATION})
    for name in ("a.json", "a.yaml"):
        read = PerplexityConfig.model_validate({"calibration": str(tmp_path / name)})
        assert read == given
        assert read.deciding() == given.deciding()
    assert PerplexityConfig.model_validate(json.loads(json.dumps(given.model_dump(mode="json")))) == given
    assert pickle.loads(pickle.dumps(given)) == given


@pytest.mark.parametrize("content", [b"[1, 2]", b"{", b"\xff\xfe", b"a: ["])
def test_a_file_that_is_no_calibration_is_refused(tmp_path: Path, content: bytes) -> None:
    """By a message with the file's name."""
    path = tmp_path / "odd.yaml"
    path.write_bytes(content)
    with pytest.raises(ValidationError, match=r"odd\.yaml"):
        PerplexityConfig.model_validate({"calibration": str(path)})


def test_the_reading_is_what_decides_scores() -> None:
    """Windows and numbers of a neural model do; of n-grams nothing does; policies and limits never do."""
    assert PerplexityConfig(max_perplexity=3, window=64, stride=32).reading() == {"engine": "ngram"}
    neural = PerplexityConfig(engine="gpt2", model="m", window=64, stride=32, dtype="float32")
    assert neural.reading() == {
        "engine": "gpt2",
        "window": 64,
        "stride": 32,
        "bos": "every_window",
        "max_windows": 8,
        "bos_token": "",
        "dtype": "float32",
        "device": "auto",
    }


def test_errors_of_a_whole_config_name_the_key() -> None:
    """As every step's do."""
    with pytest.raises(ConfigError, match=r"steps\.perplexity\.max_perplexety.*did you mean 'max_perplexity'"):
        parse_config("steps: [perplexity: {max_perplexety: 3}]")
