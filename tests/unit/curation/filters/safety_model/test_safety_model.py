"""The filter safety_model: who is asked, what is dropped, what the report says; with the real engine on a tiny model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pydantic import ValidationError

from curation.errors import ConfigError
from curation.filters.safety_model import SafetyModel, SafetyModelConfig, step
from curation.filters.safety_model.config import COLUMN_NAMES
from tests.safety_tiny import LABELS, write_classifier

TEXTS = ["bet.", "赌博网站", "a", "abc " * 40, "the cat sat", "赌!", "", "网站赌博" * 20]
SAFETY: dict[str, Any] = {
    "format": 1,
    "labels": list(LABELS),
    "thresholds": {"default": {"gambling": 0.6}, "long": {"gambling": 0.9}, "languages": {"zh": {"hate": 0.2}}},
    "max_tokens": 12,
    "stride": 7,
}


class Linear:
    """Stands for the fast model: a text is as suspicious as it has exclamation marks."""

    identity = "of the fast model"


@pytest.fixture(autouse=True)
def fast(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CORPUSMILL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(step, "open_linear_model", Linear)
    monkeypatch.setattr(
        step, "suspicion", lambda texts, model: np.array([text.as_py().count("!") for text in texts], np.float32)
    )


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., SafetyModel]:
    """The filter with a tiny model and the given settings."""
    folder = write_classifier(tmp_path / "tiny", safety=SAFETY)
    return lambda **settings: SafetyModel(SafetyModelConfig(model=str(folder), engine="onnx", **settings))


def batch_of(
    texts: Sequence[str], labels: Sequence[str | None] | None = None, hits: Sequence[int | None] | None = None
) -> Any:
    columns = [
        pa.array(texts, pa.large_string()),
        pa.array(labels or [None] * len(texts), pa.string()),
        pa.array(hits or [None] * len(texts), pa.int32()),
    ]
    return pa.RecordBatch.from_arrays(columns, names=list(SafetyModel.needs))


def verdicts(judge: SafetyModel, scores: pa.RecordBatch) -> list[str | None]:
    found = judge.decide(scores).reason_array(list(judge.reasons)).to_pylist()
    assert isinstance(found, list)
    return found


def test_everything_is_read(make: Callable[..., SafetyModel]) -> None:
    """Scores are greatest and mean of the windows that the model itself gives; nothing for what has no tokens."""
    judge = make(scope="all")
    judge.ready()

    scores = judge.score(batch_of(TEXTS))

    assert scores.schema.names == [score.name for score in judge.score_columns]
    assert scores.schema.types == [score.type for score in judge.score_columns]
    from quality_models.safety_model import open_safety_model

    said = open_safety_model(judge.config.model, "onnx").probabilities(TEXTS)
    for number, row in enumerate(scores.to_pylist()):
        mine = said.text == number
        assert row["asked"] == "all"
        assert row["windows"] == mine.sum()
        if not mine.any():
            assert {key for key, value in row.items() if value is not None} == {"language", "asked", "windows"}
            continue
        for place, label in enumerate(LABELS):
            assert row[label] == said.probabilities[mine, place].max()
            expected = np.average(said.probabilities[mine, place], weights=said.tokens[mine])
            assert row[f"{label}_mean"] == pytest.approx(expected, abs=1e-6)
        assert row["drugs"] is row["other_mean"] is None
        excess = said.probabilities[mine] - np.array([0.6, 0.5, 0.5], np.float32)
        window, place = np.unravel_index(excess.argmax(), excess.shape)
        worst = [row["worst_begin"], row["worst_end"], row["worst_label"]]
        assert worst == [said.begin[mine][window], said.end[mine][window], LABELS[place]]


def test_the_cascade_asks_for_what_needs_it(make: Callable[..., SafetyModel]) -> None:
    """Terms first, then what is suspicious, then a draw by the text; what is not read is kept without scores."""
    texts = ["a!", "b!", "c", "d"]
    judge = make(cascade={"suspicious": 1, "audit_share": 0})
    scores = judge.score(batch_of(texts, hits=[2, None, 0, None]))

    assert scores.column("asked").to_pylist() == ["terms", "linear", "no", "no"]
    assert scores.column("gambling").is_null().to_pylist() == [False, False, True, True]
    assert scores.column("windows").to_pylist() == [1, 1, 0, 0]
    assert verdicts(judge, scores)[2:] == [None, None]
    whole = make(scope="all").score(batch_of(texts))
    assert (
        scores.slice(0, 2).select(["gambling", "worst_end"]).equals(whole.slice(0, 2).select(["gambling", "worst_end"]))
    )


def test_the_audit_is_a_draw_by_the_text(make: Callable[..., SafetyModel]) -> None:
    """About its share, the same in any order."""
    texts = [f"text {number}" for number in range(2000)]
    judge = make(cascade={"audit_share": 0.1})

    drawn = judge._asked(batch_of(texts)) == "audit"

    assert 140 < drawn.sum() < 260
    assert np.array_equal(judge._asked(batch_of(texts[::-1])) == "audit", drawn[::-1])


def scores_with(judge: SafetyModel, rows: Sequence[dict[str, Any]]) -> pa.RecordBatch:
    empty = judge.score(batch_of([]))
    full = [{"language": "und", "asked": "all", "windows": 1} | row for row in rows]
    return pa.RecordBatch.from_pylist(full, empty.schema)


@pytest.mark.parametrize(
    ("row", "settings", "reason"),
    [
        ({"gambling": 0.6, "gambling_mean": 0.6}, {}, "gambling"),
        ({"gambling": 0.59, "gambling_mean": 0.59}, {}, None),
        ({"gambling": 0.8, "gambling_mean": 0.3, "windows": 5}, {}, None),
        ({"gambling": 0.9, "gambling_mean": 0.3, "windows": 5}, {}, "gambling"),
        ({"gambling": 0.7, "gambling_mean": 0.6, "windows": 5}, {}, "gambling"),
        ({"spam": 0.76, "spam_mean": 0.1, "windows": 2}, {}, "spam"),
        ({"spam": 0.74, "spam_mean": 0.1, "windows": 2}, {}, None),
        ({"hate": 0.3, "hate_mean": 0.3}, {}, None),
        ({"hate": 0.3, "hate_mean": 0.3, "language": "zho_Hans"}, {}, "hate"),
        ({"hate": 0.3, "hate_mean": 0.3, "language": "zho_Hans"}, {"thresholds": {"hate": 0.4}}, None),
        ({"hate": 0.3, "hate_mean": 0.3, "language": "eng_Latn"}, {"languages": {"en": {"hate": 0.3}}}, "hate"),
        ({"gambling": 0.99, "gambling_mean": 0.99}, {"thresholds": {"gambling": "off"}}, None),
        ({"gambling": 0.99, "gambling_mean": 0.1, "windows": 3}, {"long_thresholds": {"gambling": "off"}}, None),
        ({"gambling": 0.95, "gambling_mean": 0.1, "windows": 3}, {"long_thresholds": {"gambling": 0.96}}, None),
        ({"gambling": 0.9, "hate": 0.9}, {}, "gambling"),
        ({"windows": 0, "asked": "no"}, {}, None),
    ],
)
def test_thresholds(
    make: Callable[..., SafetyModel], row: dict[str, Any], settings: dict[str, Any], reason: str | None
) -> None:
    """One window against the usual one; several against that of long documents, and their mean against the usual one."""
    judge = make(scope="all", **settings)

    assert verdicts(judge, scores_with(judge, [row])) == [f"safety_model.{reason}" if reason else None]


def test_thresholds_are_told(make: Callable[..., SafetyModel]) -> None:
    """To the report: those that apply, and which reasons cannot occur."""
    judge = make(scope="all", thresholds={"spam": "off"})

    assert judge.thresholds()["gambling"] == [0.6, 0.9]
    assert "spam" not in judge.thresholds()
    assert judge.off_reasons() == {f"safety_model.{name}" for name in COLUMN_NAMES if name not in ("gambling", "hate")}
    rows = [{"language": "und"}, {"windows": 2}, {"language": "zho_Hant"}]
    limits = judge.limits_of(scores_with(judge, rows))
    np.testing.assert_array_equal(limits["gambling"], [0.6, 0.9, 0.6])
    np.testing.assert_array_equal(limits["gambling_mean"], [np.nan, 0.6, np.nan])
    np.testing.assert_array_equal(limits["hate"], [0.5, 0.75, 0.2])
    np.testing.assert_array_equal(limits["spam"], [np.nan] * 3)


def test_labels_of_others(tmp_path: Path) -> None:
    """A label that means nothing here must be said; several of a category count as their greatest; safe ones do not."""
    folder = str(write_classifier(tmp_path / "m", labels=["LABEL_0", "Hate", "insult", "odd"]))

    def make(labels: dict[str, str]) -> SafetyModel:
        return SafetyModel(SafetyModelConfig(model=folder, engine="onnx", scope="all", labels=labels))

    with pytest.raises(ConfigError, match="found nothing for LABEL_0, insult, odd"):
        make({}).ready()
    with pytest.raises(ConfigError, match=r"expected labels of .*, found LABEL_9"):
        make({"LABEL_9": "safe"}).ready()
    labels = {"LABEL_0": "safe", "insult": "hate", "odd": "other"}
    scores = make(labels).score(batch_of(TEXTS))
    from quality_models.safety_model import open_safety_model

    said = open_safety_model(folder, "onnx").with_windows(None, None, 64).probabilities(TEXTS[:1]).probabilities[0]
    row = scores.to_pylist()[0]
    assert (row["hate"], row["other"], row["spam"]) == (max(said[1], said[2]), said[3], None)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"thresholds": {"gambing": 0.5}}, "did you mean 'gambling'"),
        ({"thresholds": {"spam": 1.5}}, "less than or equal to 1"),
        ({"labels": {"x": "bad"}}, "no category 'bad'"),
        ({"window": 64, "stride": 65}, "must not be more than window"),
        ({"scope": "some"}, "'cascade' or 'all'"),
    ],
)
def test_wrong_settings(settings: dict[str, Any], message: str) -> None:
    """Are refused with what is known."""
    with pytest.raises(ValidationError, match=message):
        SafetyModelConfig.model_validate(settings)


def test_what_is_missing_is_a_config_error(tmp_path: Path) -> None:
    """Before anything is read."""
    with pytest.raises(
        ConfigError, match=r"step safety_model: .*expected the folder of a language model, found nothing"
    ):
        SafetyModel(SafetyModelConfig(model=str(tmp_path / "none"))).ready()


def test_numbers_that_are_none_stop_the_run(make: Callable[..., SafetyModel], monkeypatch: pytest.MonkeyPatch) -> None:
    """nan never passes for a low probability."""
    from quality_models.safety_settings import SafetySettings

    monkeypatch.setattr(SafetySettings, "probabilities", lambda self, logits: logits * np.float32("nan"))
    with pytest.raises(ConfigError, match="found nan"):
        make(scope="all").score(batch_of(["a"]))


def test_facts(make: Callable[..., SafetyModel]) -> None:
    """Who was asked why, what was dropped, and the audit's estimate; documents that were dropped before do not count."""
    judge = make()
    rows = [{"asked": "terms"}, {"asked": "audit", "share_read": 0.5, "windows": 3}, {"asked": "audit"}]
    rows += [{"asked": "no", "windows": 0}] * 4
    scores = pa.Table.from_batches([scores_with(judge, rows)])
    keep = pa.array([False, False, True, True, True, True, None])

    found = judge.facts(iter([scores.add_column(0, "keep", keep)]))

    assert found["documents"] == 6
    assert found["asked"]["audit"] == {"documents": 2, "dropped": 1}
    assert (found["windows"], found["partly_read"]) == (5, 1)
    assert found["cascade"]["audited"] == 2
    assert found["cascade"]["audited_unsafe"] == 1
    assert found["cascade"]["documents_not_read"] == 3
    assert 0 < found["cascade"]["low"] < 0.5 < found["cascade"]["high"] < 1
    assert "cascade" not in make(scope="all").facts(iter([]))


def test_checksums(make: Callable[..., SafetyModel]) -> None:
    """The fast model decides only where there is a cascade; thresholds are no part of what changes scores."""
    assert make().model_checksums()["linear model"] == Linear.identity
    assert "linear model" not in make(scope="all").model_checksums()
    assert make(thresholds={"spam": 0.9}).score_config() == make().score_config()
    assert make(max_windows=3).score_config() != make().score_config()


def test_a_bare_off_in_yaml_is_off_and_not_zero() -> None:
    """YAML makes false of it, and false would be the threshold 0, by which every document is dropped."""
    config = SafetyModelConfig.model_validate({"thresholds": {"spam": False}, "languages": {"zho": {"hate": False}}})
    assert config.thresholds == {"spam": "off"}
    assert config.languages == {"zho": {"hate": "off"}}
    with pytest.raises(ValueError, match="found true"):
        SafetyModelConfig.model_validate({"thresholds": {"spam": True}})
