"""token_fit: what is counted of each document, and which limit holds for it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pydantic import ValidationError

from curation.errors import ConfigError
from curation.filters.token_fit import TokenFit, TokenFitConfig
from curation.filters.token_fit.vocabulary import open_tokenizer
from tests.fakes import batch_for
from tests.parity_variants import save, small
from tests.token_files import letter_tokenizer, small_bpe, word_tokenizer


def made(**settings: Any) -> TokenFit:
    return TokenFit(TokenFitConfig(**settings))


def scored(step: TokenFit, *texts: str, label: str | None = None) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = step.score(batch_for(step, texts, [label] * len(texts))).to_pylist()
    return found


def row(**values: Any) -> pa.RecordBatch:
    """One row of scores."""
    step = made()
    plain = {
        "language": "zho_Hans",
        "script_known": True,
        "tokens": 100,
        "tokens_per_character": 0.5,
        "tokens_per_byte": 0.2,
        "unknown_share": 0.0,
        "byte_share": 0.0,
        "lost": 0,
        "lost_share": 0.0,
    }
    columns = [pa.array([{**plain, **values}[score.name]], score.type) for score in step.score_columns]
    return pa.RecordBatch.from_arrays(columns, names=[score.name for score in step.score_columns])


def reason(step: TokenFit, **values: Any) -> str | None:
    found: list[str | None] = step.decide(row(**values)).reason_array(list(step.reasons)).to_pylist()
    return found[0]


def test_counts_of_a_byte_level_tokenizer() -> None:
    """Tokens without borders, for each character and byte; a rare character is three parts, a common one a token."""
    plain, rare, empty = scored(made(), "hello world", "龘" * 4, "")

    assert plain["tokens"] == 2
    assert plain["tokens_per_character"] == pytest.approx(2 / 11)
    assert plain["byte_share"] == plain["unknown_share"] == plain["lost_share"] == 0
    assert rare["tokens_per_character"] >= 2
    assert rare["byte_share"] > 0.9
    assert rare["tokens_per_byte"] == pytest.approx(rare["tokens"] / 12)
    assert empty["tokens"] == 0
    assert empty["tokens_per_character"] is empty["byte_share"] is empty["lost_share"] is None


def test_a_replacement_character_is_a_character() -> None:
    """U+FFFD in a text is a whole character, though it is what decoding gives for parts of one."""
    assert scored(made(), "\ufffd" * 20)[0]["byte_share"] == 0


def test_unknown_and_lost(tmp_path: Path) -> None:
    """A vocabulary of words has unknown tokens; one of letters loses what it does not know, and nothing is unknown."""
    word_tokenizer().save(str(tmp_path / "words.json"))
    letter_tokenizer("ab ").save(str(tmp_path / "letters.json"))

    words = scored(made(tokenizer=str(tmp_path / "words.json"), eos="[SEP]"), "a b z z")[0]
    letters = scored(made(tokenizer=str(tmp_path / "letters.json"), eos="</s>"), "ab xyz", "xyz")

    assert (words["tokens"], words["unknown_share"]) == (4, 0.5)
    assert (letters[0]["lost"], letters[0]["unknown_share"]) == (3, 0)
    assert (letters[1]["tokens"], letters[1]["lost_share"], letters[1]["unknown_share"]) == (0, 1, None)


def test_a_text_that_vanishes_is_dropped(tmp_path: Path) -> None:
    """No token is left of it, so that min_tokens would keep it: what is lost is counted instead."""
    letter_tokenizer("ab ").save(str(tmp_path / "letters.json"))
    step = made(tokenizer=str(tmp_path / "letters.json"), eos="</s>")

    decision = step.decide(step.score(batch_for(step, ["z" * 60, "z" * 10])))

    assert decision.reason_array(list(step.reasons)).to_pylist() == ["token_fit.lost", None]


@pytest.mark.parametrize(
    ("label", "known"),
    [
        *[
            (label, True)
            for label in ("eng_Latn", "zho_Hant", "zho_Hani", "jpn_Jpan", "kor_Kore", "tha_Thai", "ben_Beng")
        ],
        *[(label, False) for label in ("khm_Khmr", "und_Mymr", "amh_Ethi", "und", "xxx_Zzzz", "eng")],
    ],
)
def test_scripts_that_the_vocabulary_knows(label: str, known: bool) -> None:
    """By the letters that stand whole in its tokens."""
    assert open_tokenizer("default", None).knows(label) is known


def test_a_small_vocabulary_knows_few_scripts(tmp_path: Path) -> None:
    """600 tokens: Latin letters, and no Chinese."""
    opened = open_tokenizer(str(small(tmp_path)[0]), None)

    assert opened.knows("und_Latn")
    assert not opened.knows("zho_Hans")


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, None),
        ({"byte_share": 0.75}, None),
        ({"byte_share": 0.76}, "token_fit.bytes"),
        ({"tokens_per_character": 1.5}, None),
        ({"tokens_per_character": 1.51}, "token_fit.many_tokens"),
        ({"unknown_share": 0.06}, "token_fit.unknown"),
        ({"lost_share": 0.51, "unknown_share": 0.9, "byte_share": 1.0}, "token_fit.lost"),
        ({"byte_share": 1.0, "tokens": 49}, None),
        ({"byte_share": 1.0, "script_known": False}, None),
        ({"unknown_share": 0.06, "script_known": False}, "token_fit.unknown"),
        ({"byte_share": None, "tokens_per_character": None}, None),
    ],
)
def test_the_limits(values: dict[str, Any], expected: str | None) -> None:
    """Exactly a limit is kept; few tokens are; a script that the tokenizer does not know is, but for what is unknown or lost."""
    assert reason(made(), **values) == expected


@pytest.mark.parametrize(
    ("key", "label", "expected"),
    [
        ("zho_Hans", "zho_Hans", "token_fit.bytes"),
        ("zho", "zho_Hant", "token_fit.bytes"),
        ("und_Hani", "zho_Hans", "token_fit.bytes"),
        ("und_Hani", "und_Hani", "token_fit.bytes"),
        ("zho_Hant", "zho_Hans", None),
        ("eng", "zho_Hans", None),
    ],
)
def test_limits_by_language(key: str, label: str, expected: str | None) -> None:
    """The most telling key counts: label, language, script; others keep the limit for all."""
    step = made(by_language={key: {"max_byte_share": 0.3}})

    assert reason(step, language=label, byte_share=0.5) == expected


def test_a_named_script_is_judged_though_unknown() -> None:
    """Bug B138: limits by language are for those that the tokenizer fits badly, too."""
    step = made(by_language={"khm": {"max_tokens_per_character": 2.5}})

    assert reason(step, language="khm_Khmr", script_known=False, tokens_per_character=2.9) == "token_fit.many_tokens"
    assert reason(step, language="khm_Khmr", script_known=False, tokens_per_character=2.9, byte_share=1.0) is not None
    assert reason(step, language="khm_Khmr", script_known=False, byte_share=1.0) is None
    assert reason(made(unknown_script="drop"), script_known=False, byte_share=1.0) == "token_fit.bytes"


def test_off_is_off() -> None:
    """For all, and for a language; YAML's bare off is off, and true is a mistake."""
    off = made(max_byte_share=False)
    assert off.config.max_byte_share == "off"
    assert reason(off, byte_share=1.0) is None
    assert reason(made(by_language={"zho": {"max_byte_share": "off"}}), byte_share=1.0) is None
    assert "token_fit.bytes" in off.off_reasons()
    assert made().off_reasons() == set()
    with pytest.raises(ValidationError, match="found true"):
        made(max_byte_share=True)
    with pytest.raises(ValidationError, match="stands twice"):
        made(by_language={"zh": {}, "zho": {}})


def test_the_limit_of_each_row() -> None:
    """limits_of gives the number that applied, nan where none did."""
    step = made(by_language={"eng": {"max_byte_share": 0.2}}, max_unknown_share="off")
    batch = pa.Table.from_batches(
        [row(language="eng_Latn"), row(language="zho_Hans"), row(language="khm_Khmr", script_known=False)]
    )

    limits = step.limits_of(batch.combine_chunks().to_batches()[0])

    np.testing.assert_array_equal(limits["byte_share"], [0.2, 0.75, np.nan])
    np.testing.assert_array_equal(limits["unknown_share"], [np.nan] * 3)
    assert step.thresholds()["byte_share"] == [0.2, 0.75]


def test_the_tokenizer_is_part_of_the_digest(tmp_path: Path) -> None:
    """One tokenizer has one checksum wherever it lies; another one, or another EOS, has another."""
    one, _ = small(tmp_path / "one")
    same = save(tmp_path / "two", json.loads(small_bpe()))
    checksums = [made(tokenizer=str(path)).model_checksums() for path in (one, same)]

    assert checksums[0] == checksums[1] != made().model_checksums()
    assert made(tokenizer=str(one), eos="<|pad|>").model_checksums() != checksums[0]


def test_a_tokenizer_that_is_not_there() -> None:
    """An error of the config before anything is read."""
    with pytest.raises(ConfigError, match="step token_fit: tokenizer: no tokenizer 'nowhere'"):
        made(tokenizer="nowhere").ready()


def test_facts() -> None:
    """How the tokenizer fits each language, and an alarm for scripts that it does not know."""
    step = made()
    texts = ["plain English text of some words, " * 3] * 30 + ["ហាងតូចនៅក្បែរទន្លេបានប្តូរដំបូលថ្មី" * 3] * 25
    scores = step.score(batch_for(step, texts))
    keep = pa.array([*step.decide(scores).keep.tolist()])
    table = pa.Table.from_batches([scores]).append_column("keep", keep)
    unread = table.slice(0, 1).set_column(table.num_columns - 1, "keep", pa.nulls(1, pa.bool_()))

    facts = step.facts(iter([table, unread]))

    english, khmer = facts["languages"]
    assert (english["language"], english["documents"], english["kept"]) == ("und_Latn", 30, 30)
    assert english["tokens"] == sum(scores.column("tokens").to_pylist()[:30])
    assert english["tokens_per_character"] == pytest.approx(english["tokens"] / (30 * len(texts[0])), abs=1e-3)
    assert khmer["script_known"] is False
    assert khmer["byte_share"] > 0.9
    assert facts["alarms"][0].startswith(
        "25 documents are in scripts of which tokenizer 'default' has hardly any letter"
    )
    assert "alarms" not in step.facts(iter([table.slice(0, 30)]))
