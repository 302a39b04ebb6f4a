"""The filter perplexity with models whose answers can be worked out by head: scores, rules, policies, digests."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from curation.errors import ConfigError
from curation.filters.perplexity.config import PerplexityConfig
from curation.filters.perplexity.step import Perplexity
from tests.fakes import batch_for
from tests.perplexity_fake import FakeEngine

pytestmark = pytest.mark.usefixtures("fakes")

PLAIN = "x" * 100
"""1 bit a character."""
RICH = "x" * 50 + "?" * 50
"""4.5 bits."""
CALIBRATION = {
    "engine": {"fake": "1.0"},
    "languages": {"eng": {"documents": 1000, "percentiles": {1: 1.0, 30: 1.5, 60: 2.0, 99: 4.0}}},
}


def made(**settings: Any) -> Perplexity:
    return Perplexity(PerplexityConfig.model_validate(settings))


def scored(step: Perplexity, text: str, label: str | None = "eng_Latn") -> dict[str, Any]:
    row: dict[str, Any] = step.score(batch_for(step, [text], [label])).to_pylist()[0]
    return row


def verdict(step: Perplexity, text: str, label: str | None = "eng_Latn") -> str | None:
    """The reason, without the step's name; None where kept."""
    decision = step.decide(step.score(batch_for(step, [text], [label])))
    reason = decision.reason_array(list(step.reasons)).to_pylist()[0]
    assert (reason is None) == bool(decision.keep[0])
    return None if reason is None else str(reason).removeprefix("perplexity.")


def with_bits(bits: float, n: int = 1000) -> str:
    """A text of n characters with so many bits each, from 1 to 8."""
    odd = round(n * (bits - 1) / 7)
    return "?" * odd + "x" * (n - odd)


def test_scores_follow_from_the_sums_of_the_engine() -> None:
    """Perplexity is by token, bits are by character and by byte of what was scored; the share is of the text's bytes."""
    row = scored(made(), "ж" * 60 + "?" * 60 + " " * 60, "rus_Cyrl")
    bits = 60 * 1 + 60 * 8
    assert row["language"] == "rus_Cyrl"
    assert row["model"] == "mul"
    assert row["tokens"] == 120
    assert row["perplexity"] == pytest.approx(2 ** (bits / 120))
    assert row["bits_per_character"] == pytest.approx(bits / 120)
    assert row["bits_per_byte"] == pytest.approx(bits / 180)
    assert row["share_scored"] == pytest.approx(180 / 240)


def test_without_a_language_step_the_main_script_is_the_label() -> None:
    """Cyrillic has a model in the stand-in, Latin has none."""
    assert scored(made(), "ж" * 100, None)["language"] == "und_Cyrl"
    assert scored(made(), "ж" * 100, None)["model"] == "mul"
    assert scored(made(), PLAIN, None)["model"] is None


@pytest.mark.parametrize(
    ("text", "label", "model", "tokens"),
    [
        ("", "und", None, 0),
        ("x", "eng_Latn", "eng", 1),
        ("สวัสดี" * 20, "tha_Thai", None, 0),
        (" \n\t", "eng_Latn", "eng", 0),
    ],
)
def test_what_was_not_read_has_null_scores(text: str, label: str, model: str | None, tokens: int) -> None:
    """Never nan, and no perplexity of nothing."""
    row = scored(made(), text, label)
    assert row["model"] == model
    assert row["tokens"] == tokens
    defined = {
        name: row[name] is not None for name in ("perplexity", "bits_per_character", "bits_per_byte", "share_scored")
    }
    assert set(defined.values()) == {tokens > 0}


@pytest.mark.parametrize("sign", ["~", "#"])
def test_what_is_not_finite_is_null_and_has_its_own_reason(sign: str) -> None:
    """One character without a probability, or one that breaks the model, and nothing can be said; no policy hides it."""
    step = made(short="keep", no_model="keep", max_bits_per_character="off", min_bits_per_character="off")
    row = scored(step, PLAIN + sign)
    assert (row["perplexity"], row["bits_per_character"], row["bits_per_byte"]) == (None, None, None)
    assert row["tokens"] == 101
    assert verdict(step, PLAIN + sign) == "not_finite"
    assert verdict(step, sign) == "not_finite"


def test_an_overflow_of_the_sum_is_not_finite(fakes: dict[str, FakeEngine]) -> None:
    """exp of 1,000 nats a token is beyond a float."""
    fakes["ngram"].scale = 2000
    assert verdict(made(max_bits_per_character="off"), PLAIN) == "not_finite"


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, None),
        ({"short": "drop"}, "too_short"),
        ({"short": "route:short"}, "routed"),
        ({"min_tokens": 10}, "too_high"),
    ],
)
def test_a_short_text_is_judged_by_its_policy_alone(settings: dict[str, Any], expected: str | None) -> None:
    """49 characters of which each is a surprise: no limit holds for it."""
    assert verdict(made(**settings), "?" * 49) == expected


@pytest.mark.parametrize(
    ("settings", "expected"),
    [({}, None), ({"no_model": "drop"}, "no_model"), ({"no_model": "route:unknown"}, "routed")],
)
def test_a_language_without_a_model_has_its_policy(settings: dict[str, Any], expected: str | None) -> None:
    """Whatever its length; text without any letter is none in an unknown language, but short."""
    step = made(**settings)
    assert verdict(step, "?" * 100, "tha_Thai") == expected
    assert verdict(step, "?", "tha_Thai") == expected
    assert verdict(step, "123", "und") is None
    assert verdict(made(no_model="drop", short="drop"), "123", "und") == "too_short"


@pytest.mark.parametrize(
    ("settings", "label", "low", "high"),
    [
        ({}, "eng_Latn", 0.5, 3.0),
        ({}, "zho_Hans", 0.5, 2.0),
        ({}, "rus_Cyrl", 0.5, 4.0),
        ({"max_bits_per_character": 5}, "zho_Hans", 0.5, 5.0),
        ({"max_bits_per_character": "off"}, "zho_Hans", 0.5, math.inf),
        ({"languages": {"zh": {"max_bits_per_character": 6}}}, "zho_Hans", 0.5, 6.0),
        ({"languages": {"zh": {"max_bits_per_character": 6}}}, "eng_Latn", 0.5, 3.0),
        ({"languages": {"zh": {"max_bits_per_character": "off"}}}, "zho_Hant", 0.5, math.inf),
        ({"min_bits_per_character": 1.5}, "eng_Latn", 1.5, 3.0),
        ({"max_perplexity": 4}, "eng_Latn", 0.5, 2.0),
        ({"model": "mine"}, "eng_Latn", -math.inf, math.inf),
        ({"engine": "gpt2", "model": "mine"}, "eng_Latn", -math.inf, math.inf),
    ],
)
def test_limits_by_language(settings: dict[str, Any], label: str, low: float, high: float) -> None:
    """What the config says of the language, of all, and else what ships, which holds for the shipped models alone."""
    step = made(**settings)
    for bits in (1.0, 1.4, 1.9, 2.1, 2.9, 3.1, 3.9, 4.1, 4.9, 5.1, 5.9, 6.1, 8.0):
        expected = "too_low" if bits < low else "too_high" if bits > high else None
        assert verdict(step, with_bits(bits), label) == expected, bits


def test_the_limit_itself_is_kept() -> None:
    """Dropped above and below, as the settings say."""
    exact = "x" * 60
    assert verdict(made(max_bits_per_character=1, min_bits_per_character=1), exact) is None
    assert verdict(made(max_perplexity=2 + 1e-9), exact) is None
    assert verdict(made(max_perplexity=2 - 1e-9), exact) == "too_high"


@pytest.mark.parametrize(
    ("settings", "bits", "label", "expected"),
    [
        ({}, 1.4, "eng_Latn", None),
        ({}, 1.9, "eng_Latn", None),
        ({}, 2.1, "eng_Latn", "tail"),
        ({}, 3.5, "eng_Latn", "too_high"),  # a fixed limit comes first
        ({"head": "drop"}, 1.4, "eng_Latn", "head"),
        ({"middle": "drop"}, 1.9, "eng_Latn", "middle"),
        ({"middle": "drop"}, 1.4, "eng_Latn", None),
        ({"tail": "keep"}, 2.1, "eng_Latn", None),
        ({"tail": "route:poor"}, 2.1, "eng_Latn", "routed"),
        ({"head_until": 1, "middle_until": 30}, 1.9, "eng_Latn", "tail"),
        ({}, 3.5, "rus_Cyrl", None),
        ({"uncalibrated": "drop"}, 3.5, "rus_Cyrl", "uncalibrated"),
        ({"uncalibrated": "drop"}, 4.5, "rus_Cyrl", "too_high"),
        ({"uncalibrated": "drop", "min_calibrated": 1001}, 2.1, "eng_Latn", "uncalibrated"),
    ],
)
def test_buckets(settings: dict[str, Any], bits: float, label: str, expected: str | None) -> None:
    """Head to 1.5 bits, middle to 2; a language without calibration has its policy."""
    assert verdict(made(calibration=CALIBRATION, **settings), with_bits(bits), label) == expected


def test_a_short_text_is_in_no_bucket() -> None:
    """Nor is one without a calibration asked for."""
    step = made(calibration=CALIBRATION, head="drop", middle="drop", tail="drop", uncalibrated="drop")
    assert verdict(step, "x" * 49) is None


def test_documents_are_set_aside_for_the_output_of_their_rule() -> None:
    """Each rule may have its own; the first that applies names it."""
    step = made(calibration=CALIBRATION, short="route:short", tail="route:poor", no_model="route:other")
    scores = step.score(
        batch_for(step, ["x", with_bits(2.5), PLAIN, "?" * 100], ["eng_Latn", "eng_Latn", "eng_Latn", "tha_Thai"])
    )
    assert step.route_of(scores) == ["short", "poor", None, "other"]


def test_a_changed_threshold_keeps_the_scores_and_a_changed_reading_does_not() -> None:
    """score_config holds what the models say depends on, and nothing else."""
    plain = made().score_config()
    for settings in (
        {"max_perplexity": 3},
        {"short": "drop"},
        {"min_tokens": 3},
        {"calibration": CALIBRATION},
        {"window": 64, "stride": 32},
        {"languages": {"zh": {"max_perplexity": 3}}},
    ):
        assert made(**settings).score_config() == plain, settings
    neural = made(engine="gpt2", model="m").score_config()
    assert neural != plain
    assert made(engine="gpt2", model="m", stride=64).score_config() != neural
    assert made(engine="gpt2", model="m", dtype="float32").score_config() != neural
    assert made(engine="gpt2", model="elsewhere").score_config() == neural  # its checksum says which model it is


def test_the_digest_names_the_models_and_the_limits_that_ship() -> None:
    """The latter only where they hold."""
    assert set(made().model_checksums()) == {"fake", "perplexity_limits.tsv"}
    assert set(made(model="mine").model_checksums()) == {"fake"}


def test_a_calibration_of_other_models_is_refused() -> None:
    """Before anything is read."""
    made(calibration=CALIBRATION).ready()
    with pytest.raises(ConfigError, match="cannot be compared"):
        made(calibration={**CALIBRATION, "engine": {"fake": "2.0"}}).ready()


def test_thresholds_for_drawings_are_those_of_the_config_and_the_default() -> None:
    """Not a line for each of a hundred languages that ship."""
    assert made().thresholds() == {"bits_per_character": [0.5, 3.0], "tokens": [50]}
    found = made(
        max_perplexity=35, languages={"zh": {"max_bits_per_character": 9}}, min_bits_per_character=1
    ).thresholds()
    assert found == {"bits_per_character": [1.0, 3.0, 9.0], "perplexity": [35.0], "tokens": [50]}
    assert made(model="mine").thresholds() == {"tokens": [50]}


def test_each_document_s_own_limit_is_told() -> None:
    """The nearer one of two; nan where none is."""
    step = made(
        languages={"zh": {"max_perplexity": 7, "min_bits_per_character": "off", "max_bits_per_character": "off"}}
    )
    scores = step.score(
        batch_for(step, [with_bits(1), with_bits(2.5), with_bits(2)], ["eng_Latn", "eng_Latn", "zho_Hans"])
    )
    found = step.limits_of(scores)
    np.testing.assert_array_equal(found["bits_per_character"], [0.5, 3.0, np.nan])
    np.testing.assert_array_equal(found["perplexity"], [np.nan, np.nan, 7.0])


def test_the_edges_of_buckets_are_limits_too() -> None:
    """A document at the end of the middle is shown that end, and not a fixed limit that is far from it."""
    step = made(calibration=CALIBRATION)
    labels = ["eng_Latn", "eng_Latn", "eng_Latn", "rus_Cyrl"]
    scores = step.score(batch_for(step, [with_bits(bits) for bits in (2.1, 1.4, 2.9, 2.1)], labels))
    np.testing.assert_array_equal(step.limits_of(scores)["bits_per_character"], [2.0, 1.5, 3.0, 0.5])


def test_no_document_and_a_slice() -> None:
    """An empty batch has all columns; a slice is judged as what it shows."""
    step = made()
    empty = step.score(batch_for(step, []))
    assert empty.num_rows == 0
    assert empty.schema.types == [score.type for score in step.score_columns]
    whole = batch_for(step, [PLAIN, RICH, "ж" * 99], ["eng_Latn", "eng_Latn", "rus_Cyrl"])
    assert step.score(whole.slice(1, 2)).equals(step.score(whole).slice(1, 2))


def test_facts_count_every_document_once() -> None:
    """By language, with percentiles of what was judged; and why the others were not."""
    step = made()
    texts = [PLAIN] * 3 + [RICH, "x", PLAIN + "~", "?" * 100, "ж" * 100]
    labels = ["eng_Latn"] * 6 + ["tha_Thai", "rus_Cyrl"]
    scores = step.score(batch_for(step, texts, labels))
    decision = step.decide(scores)
    table = pa.table({"keep": pa.array(decision.keep), **{name: scores.column(name) for name in scores.schema.names}})
    dead = table.slice(0, 1).set_column(0, "keep", pa.array([None], pa.bool_()))

    found = step.facts(iter([table.slice(0, 5), pa.concat_tables([table.slice(5), dead])]))

    assert found["documents"] == 8
    assert found["judged"] == 5
    assert found["not_judged"] == {"too short": 1, "no model": 1, "not finite": 1}
    assert found["models"] == {"eng": 6, "mul": 1}
    english = found["languages"][0]
    assert {name: english[name] for name in ("language", "documents", "judged", "too_low", "too_high")} == {
        "language": "eng_Latn",
        "documents": 6,
        "judged": 4,
        "too_low": 0,
        "too_high": 1,
    }
    assert (english["p1"], english["p50"], english["p99"]) == (1.0, 1.0, 4.5)
    assert [line["language"] for line in found["languages"]] == ["eng_Latn", "rus_Cyrl", "tha_Thai"]
    assert "p50" not in found["languages"][2]
    assert "alarms" not in found


def test_an_alarm_says_when_much_could_not_be_judged() -> None:
    """A quarter or more of a hundred documents."""
    step = made()
    scores = step.score(batch_for(step, ["x"] * 30 + [PLAIN] * 70, ["eng_Latn"] * 100))
    table = pa.table({"keep": pa.array([True] * 100), **{name: scores.column(name) for name in scores.schema.names}})
    alarms = step.facts(iter([table]))["alarms"]
    assert alarms == ["30% of 100 documents could not be judged (too short 30): their policies decided instead."]
    assert "alarms" not in step.facts(iter([table.slice(0, 99)]))
