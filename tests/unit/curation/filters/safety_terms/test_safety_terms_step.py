"""From hits to scores and verdicts: weights, density, peaks, limits, lists that come and go."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pydantic import ValidationError

from curation.errors import ConfigError
from curation.filters.safety_terms import SafetyTerms, SafetyTermsConfig
from curation.filters.safety_terms.harmless import MOST_SHARE, harmless_sentences
from tests.safety_terms_list import step_of, write_list


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write_list(tmp_path)


def judged(step: SafetyTerms, text: str) -> tuple[dict[str, Any], str | None]:
    """Scores and reason of a text."""
    scores = step.score(pa.RecordBatch.from_arrays([pa.array([text], pa.large_string())], names=["text"]))
    decision = step.decide(scores)
    (row,) = scores.to_pylist()
    return row, list(step.reasons)[decision.reason[0]] if decision.reason[0] >= 0 else None


def test_weights_fall(path: Path) -> None:
    """Each further hit of a term weighs half of the one before; another term its whole weight."""
    row, reason = judged(step_of(path), "赌博 赌博 赌博 casino")
    assert (row["gambling_hits"], row["hits"]) == (4, 4)
    assert row["gambling_weight"] == row["gambling_peak"] == 4 + 2 + 1 + 4
    assert row["units"] == 8
    assert row["gambling_density"] == 11 * 200 / 8
    assert reason == "safety_terms.gambling"


def test_density_and_peak(path: Path) -> None:
    """One strong term drops a short text and not a long one; a dense advert drops a long one; weak terms alone none."""
    step, long = step_of(path), "山上的气象站收集雨水，" * 100
    assert judged(step, "今晚赌博")[1] == "safety_terms.gambling"
    assert judged(step, long + "今晚赌博")[1] is None
    assert judged(step, long + "今晚赌博，赌场开户，online casino")[1] == "safety_terms.gambling"
    assert judged(step, "赌博" + long + "赌场开户" + long + "casino")[1] is None
    assert judged(step, "加群上车")[1] is None
    assert judged(step, "。，！ -- 123")[1] is None
    assert judged(step, "")[0]["matched"] is None


def test_limits_by_category(path: Path) -> None:
    """Limits hold for all or for one category; a category may be scored only."""
    text = "今晚赌博"
    assert judged(step_of(path, min_peak=5), text)[1] is None
    assert judged(step_of(path, min_peak=5, categories={"gambling": {"min_peak": 4}}), text)[1] is not None
    off = step_of(path, categories={"gambling": {"drop": False}})
    assert judged(off, text)[1] is None
    assert judged(off, text)[0]["gambling_hits"] == 1
    assert off.off_reasons() == {"safety_terms.gambling"}
    assert "gambling_peak" not in off.thresholds()
    assert off.thresholds()["drugs_peak"] == [4, 12]
    assert off.score_of("safety_terms.self_harm") == "self_harm_peak"


def test_matched(path: Path) -> None:
    """The heaviest hits first, 32 at most, with category, spelling, bytes and rule."""
    row, _ = judged(step_of(path), "一 sex，赌博" + " sex" * 50)
    matched = json.loads(row["matched"])
    assert matched[0] == ["gambling", "赌博", 10, 16, "list.tsv:6"]
    assert matched[1] == ["sexual", "sex", 4, 7, "list.tsv:20"]
    assert len(matched) == 32


def test_terms_switched_off(path: Path) -> None:
    """A spelling that is off is not looked for, however it is written there; one that no list has is an error."""
    assert judged(step_of(path, off=["賭博"]), "赌博 博彩")[0]["gambling_hits"] == 1
    with pytest.raises(ConfigError, match="did you mean 'casino'"):
        step_of(path, off=["casinos"]).ready()


def test_an_absurd_list_is_refused(tmp_path: Path) -> None:
    """A term that ordinary sentences are full of is named, with its place."""
    path = write_list(
        tmp_path,
        "gambling\t4\tword\troulette\nspam\t1\tword\tthe\nspam\t1\tsub\t的\t的 | 年\n".replace("的 | 年", "年"),
    )
    with pytest.raises(ConfigError, match=r"'the' \(list.tsv:2: \d+%\)"):
        step_of(path).ready()
    step_of(path, off=["the"]).ready()
    assert 80 <= len(harmless_sentences()) <= 200
    assert MOST_SHARE == 0.05


def test_lists_are_part_of_the_digest(tmp_path: Path, path: Path) -> None:
    """Checksums change with a file's bytes, and so do the hits of the same object; two files of one name are refused."""
    step = step_of(path)
    before = dict(step.model_checksums())
    assert judged(step, "roulette")[0]["hits"] == 1
    path.write_text("gambling\t4\tword\tpoker room\n", "utf-8")
    assert step.model_checksums() != before
    assert judged(step, "roulette")[0]["hits"] == 0
    (tmp_path / "other").mkdir()
    twin = write_list(tmp_path / "other")
    with pytest.raises(ConfigError, match="different names"):
        SafetyTerms(SafetyTermsConfig(shipped=False, files=(path, twin))).ready()
    path.unlink()
    with pytest.raises(ConfigError, match="correct `files`"):
        step.ready()


def test_configs_that_make_no_sense() -> None:
    """No list at all, and categories that there are not, are refused."""
    with pytest.raises(ConfigError, match="expected a list of terms"):
        SafetyTerms(SafetyTermsConfig(shipped=False)).ready()
    for wrong in (
        {"categories": {"gamling": {}}},
        {"min_peak": 0},
        {"categories": {"hate": {"x": 1}}},
    ):
        with pytest.raises(ValidationError):
            SafetyTermsConfig.model_validate(wrong)


def test_the_shipped_lists_are_fit() -> None:
    """No shipped term is absurd, and harmless sentences are dropped for none."""
    step = SafetyTerms(SafetyTermsConfig())
    step.ready()
    texts = pa.array(harmless_sentences(), pa.large_string())
    assert step.decide(step.score(pa.RecordBatch.from_arrays([texts], names=["text"]))).keep.all()
