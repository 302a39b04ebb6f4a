"""The cascade: the second model reads the undecided band and a sample, decides in the band, and says how the two differ."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from curation.filters.perplexity.config import PerplexityConfig
from curation.filters.perplexity.facts import SIGMAS
from curation.filters.perplexity.step import Perplexity
from curation.wilson import wilson
from tests.fakes import batch_for
from tests.perplexity_fake import FakeEngine

pytestmark = pytest.mark.usefixtures("fakes")

CALIBRATION = {
    "engine": {"fake": "1.0"},
    "languages": {"eng": {"documents": 1000, "percentiles": {1: 1.0, 30: 1.5, 60: 2.0, 99: 4.0}}},
}


def made(*, cascade: dict[str, Any], **settings: Any) -> Perplexity:
    settings = {"max_bits_per_character": 2.5, **settings}
    cascade = {"model": "m", "low": 2, "high": 3, "sample_share": 0, **cascade}
    return Perplexity(PerplexityConfig.model_validate({**settings, "cascade": cascade}))


def with_bits(bits: float, tag: str = "") -> str:
    """A text of 1,000 characters and a tag, with so many bits each, from 1 to 8."""
    odd = round(1000 * (bits - 1) / 7)
    return "?" * odd + "x" * (1000 - odd) + tag


def judged(step: Perplexity, texts: list[str], label: str = "eng_Latn") -> tuple[list[str], list[str | None]]:
    """Why each was asked about, and its reason."""
    scores = step.score(batch_for(step, texts, [label] * len(texts)))
    reasons = step.decide(scores).reason_array(list(step.reasons)).to_pylist()
    return scores.column("asked").to_pylist(), [reason and reason.removeprefix("perplexity.") for reason in reasons]


def test_only_the_band_is_asked_about(fakes: dict[str, FakeEngine]) -> None:
    """Its edges belong to it; the second model sees nothing else, and its columns are null elsewhere."""
    step = made(cascade={})
    texts = [with_bits(bits) for bits in (1.5, 1.993, 2.001, 2.6, 2.995, 3.01, 5)]
    scores = step.score(batch_for(step, texts, ["eng_Latn"] * 7))
    assert scores.column("asked").to_pylist() == ["no", "no", "band", "band", "band", "no", "no"]
    assert fakes["gpt2"].read == texts[2:5]
    assert scores.column("neural_model").to_pylist() == [None, None, "eng", "eng", "eng", None, None]
    assert scores.column("neural_tokens").to_pylist() == [None, None, 2000, 2000, 2000, None, None]
    first = scores.column("bits_per_character").to_numpy(zero_copy_only=False)[2:5]
    second = scores.column("neural_bits_per_character").to_numpy(zero_copy_only=False)[2:5]
    np.testing.assert_allclose(second, first * 1.1, rtol=1e-5)


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({}, [None, None, None, None, "too_high"]),
        ({"max_bits_per_character": 2.5}, [None, None, "too_high", "too_high", "too_high"]),
        ({"max_perplexity": 2.4}, [None, None, "too_high", "too_high", "too_high"]),
        ({"min_bits_per_character": 2.5}, [None, "too_low", None, None, "too_high"]),
        ({"languages": {"eng": {"max_bits_per_character": 3.0}}}, [None, None, None, "too_high", "too_high"]),
    ],
)
def test_in_the_band_the_second_model_s_limits_decide(limits: dict[str, Any], expected: list[str | None]) -> None:
    """They say ten percent more than the first model; outside of the band the first one's limit of 2.5 holds."""
    texts = [with_bits(bits) for bits in (1.9, 2.1, 2.6, 2.9, 3.1)]
    assert judged(made(cascade=limits), texts)[1] == expected


def test_the_sample_changes_no_verdict() -> None:
    """Documents that the first model decides are read to be compared, not to be judged anew."""
    texts = [with_bits(bits, f" {number}") for number, bits in enumerate((1.5, 1.5, 4, 4))]
    asked, reasons = judged(made(cascade={"sample_share": 1, "max_bits_per_character": 0.1}), texts)
    assert asked == ["sample"] * 4
    assert reasons == [None, None, "too_high", "too_high"]


def test_the_sample_is_drawn_by_the_text_alone() -> None:
    """Whatever stands beside it; about the share that is wanted; a larger share holds the smaller one."""
    texts = ["x" * 60 + f"{number}" for number in range(2000)]
    asked = judged(made(cascade={"sample_share": 0.1}), texts)[0]
    assert 150 <= asked.count("sample") <= 250
    backwards = judged(made(cascade={"sample_share": 0.1}), texts[::-1])[0]
    assert backwards[::-1] == asked
    more = judged(made(cascade={"sample_share": 0.2}), texts)[0]
    assert all(b == "sample" for a, b in zip(asked, more, strict=True) if a == "sample")
    assert "sample" not in judged(made(cascade={"sample_share": 0}), texts)[0]


def test_what_the_first_model_cannot_judge_is_not_asked_about(fakes: dict[str, FakeEngine]) -> None:
    """Too short, no model, not finite: their policies and reasons decide, with the sample at its largest."""
    step = made(cascade={"sample_share": 1, "low": 0, "high": 9})
    assert judged(step, ["?" * 49, with_bits(2) + "~"]) == (["no", "no"], [None, "not_finite"])
    assert judged(step, ["?" * 100], "tha_Thai") == (["no"], [None])
    assert fakes["gpt2"].read == []


def test_where_the_second_model_fails_it_is_said(fakes: dict[str, FakeEngine]) -> None:
    """No number in the band is a reason of its own; in the sample it is nothing."""
    fakes["gpt2"].scale = np.nan
    step = made(cascade={"sample_share": 1})
    assert judged(step, [with_bits(2.2), with_bits(1.5)])[1] == ["not_finite", None]


def test_where_the_second_model_cannot_judge_the_first_decides(fakes: dict[str, FakeEngine]) -> None:
    """It scored no token: as if there were no band."""
    fakes["gpt2"].tokens_per_letter = 0
    assert judged(made(cascade={}), [with_bits(2.2), with_bits(2.8)])[1] == [None, "too_high"]


def test_a_band_in_percentiles_follows_the_language() -> None:
    """From the 30th to the 60th are 1.5 to 2 bits; a language without calibration is not asked about."""
    step = made(cascade={"unit": "percentile", "low": 30, "high": 60}, calibration=CALIBRATION, tail="keep")
    texts = [with_bits(bits) for bits in (1.4, 1.6, 1.9, 2.1)]
    assert judged(step, texts)[0] == ["no", "band", "band", "no"]
    assert judged(step, texts, "rus_Cyrl")[0] == ["no"] * 4
    everything = made(cascade={"unit": "percentile", "low": 0, "high": 100}, calibration=CALIBRATION, tail="keep")
    assert judged(everything, texts)[0] == ["band"] * 4


def test_in_the_band_no_bucket_drops() -> None:
    """Buckets are the first model's rule."""
    step = made(cascade={}, calibration=CALIBRATION, max_bits_per_character="off")
    assert judged(step, [with_bits(2.2), with_bits(3.3)])[1] == [None, "tail"]


def test_the_band_and_the_sample_are_part_of_the_scores() -> None:
    """They decide which scores of the second model there are; its limits decide none."""
    plain = made(cascade={}).score_config()
    for same in ({"max_perplexity": 9}, {"languages": {"eng": {"max_perplexity": 3}}}, {"model": "elsewhere"}):
        assert made(cascade=same).score_config() == plain, same
    for other in ({"low": 1}, {"high": 4}, {"sample_share": 0.5}, {"stride": 64}, {"engine": "ctranslate2"}):
        assert made(cascade=other).score_config() != plain, other
    assert made(cascade={}, min_tokens=20).score_config() != plain
    percentile = {"unit": "percentile", "low": 30, "high": 60}
    changed = {**CALIBRATION, "languages": {"eng": {"documents": 1000, "percentiles": {1: 1.0, 99: 4.0}}}}
    with_one = made(cascade=percentile, calibration=CALIBRATION).score_config()
    assert made(cascade=percentile, calibration=changed).score_config() != with_one
    of_another_run = {**CALIBRATION, "run_id": "web-20260520-142322-8c4a"}
    assert made(cascade=percentile, calibration=of_another_run).score_config() == with_one


def test_both_models_are_in_the_digest() -> None:
    """The second one's checksums under names of their own."""
    assert made(cascade={}).model_checksums() == {
        "fake": "1.0",
        "second model: fake": "1.1",
        "perplexity_limits.tsv": made(cascade={}).model_checksums()["perplexity_limits.tsv"],
    }


def test_limits_of_both_models_are_told() -> None:
    """Each for its own score."""
    step = made(cascade={"max_perplexity": 9, "max_bits_per_character": 2.7})
    found = step.limits_of(step.score(batch_for(step, [with_bits(2.4)], ["eng_Latn"])))
    assert {name: values.tolist() for name, values in found.items() if name != "perplexity"} == {
        "bits_per_character": [2.5],
        "neural_bits_per_character": [2.7],
        "neural_perplexity": [9.0],
    }


def test_facts_say_how_often_the_two_differ_and_what_was_saved() -> None:
    """Counts by hand: the first drops above 2.5 bits, the second above 2.5 of its own, which are 2.27 of the first's."""
    step = made(cascade={"sample_share": 0.5, "low": 2.3, "high": 2.6, "max_bits_per_character": 2.5})
    texts = [with_bits(bits, f"{number}") for number, bits in enumerate([1.5, 2.28, 2.4, 2.55, 4.0] * 40)]
    scores = step.score(batch_for(step, texts, ["eng_Latn"] * len(texts)))
    table = pa.table({"keep": [True] * len(texts), **{name: scores.column(name) for name in scores.schema.names}})

    found = step.facts(iter([table]))["cascade"]

    asked = scores.column("asked").to_pylist()
    drawn = [why == "sample" for why in asked]
    assert found["band"] == {
        "documents": 80,
        "answered": 80,
        "kept_by_the_first_alone": 40,
        "dropped_by_the_first_alone": 0,
        "differ": 40,
        "interval": [round(edge, 6) for edge in wilson(40, 80, SIGMAS)],
    }
    differing = sum(drawn[place] for place in range(1, 200, 5))
    assert found["sample"]["documents"] == found["sample"]["answered"] == sum(drawn)
    assert 40 < sum(drawn) < 80
    assert found["sample"]["kept_by_the_first_alone"] == found["sample"]["differ"] == differing > 0
    assert found["asked"] == 80 + sum(drawn)
    assert found["not_asked"] == 120 - sum(drawn)
    lengths = np.array([len(text) for text in texts])
    was_asked = np.array(asked) != "no"
    assert found["tokens_read"] == 2 * lengths[was_asked].sum()
    assert found["tokens_saved"] == 2 * lengths[~was_asked].sum()
