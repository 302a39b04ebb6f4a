"""Laws of what safety systems say: margins say the same as verdicts, what is kept is not asked again, what is not asked keeps."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tests.bench.safety_judges import (
    Kept,
    either,
    fasttext_line,
    model_filter,
    only_where,
    said_by_model,
    said_by_terms,
)
from tests.safety_tiny import LABELS, write_classifier

TEXTS = [
    "The library opens at nine and closes at five.",
    "线上赌场注册送彩金，真人荷官在线发牌，提款秒到账",
    "online casino bonus, deposit now and get free spins",
    "",
    "沙发",
    "a long page about gardens and soil. " * 200 + "online casino bonus, free spins, deposit now",
]


def test_margins_of_terms_are_their_verdicts() -> None:
    """A text is dropped where its margin is 0 or more, and only there."""
    said = said_by_terms(TEXTS)
    assert [margin >= 0 for margin in said.margins] == [reason is not None for reason in said.reasons]
    assert said.reasons[1] is not None
    assert said.reasons[0] is None
    assert said.margins[3] == -20
    assert said.scores.num_rows == len(TEXTS)


def test_no_texts() -> None:
    """Nothing is said of nothing."""
    said = said_by_terms([])
    assert (len(said.margins), said.reasons, said.scores.num_rows) == (0, [], 0)


def test_what_is_kept_is_not_asked_again(tmp_path: Path) -> None:
    """Scores are read by text and key, in the order of the texts; another key asks anew."""
    asked: list[str] = []
    schema = pa.schema([("length", pa.int64())])

    def scores(key: str, texts: list[str]) -> list[int]:
        def score(places: list[int]) -> pa.RecordBatch:
            asked.extend(texts[i] for i in places)
            return pa.RecordBatch.from_pylist([{"length": len(texts[i])} for i in places], schema)

        found: list[int] = Kept(tmp_path).scores(key, texts, score, schema).column("length").to_pylist()
        return found

    assert scores("a", ["one", "three"]) == [3, 5]
    assert scores("a", ["three", "seven", "one"]) == [5, 5, 3]
    assert asked == ["one", "three", "seven"]
    assert scores("b", ["one"]) == [3]
    assert asked[3:] == ["one"]
    assert Kept().scores("a", [], lambda places: pa.RecordBatch.from_pylist([], schema), schema).num_rows == 0


def test_either_and_only_where() -> None:
    """Either drops what one of both drops; where a system is not asked, it says nothing, and the other decides."""
    nan = np.nan
    both = either(np.array([1.0, -1.0, nan, nan]), np.array([-2.0, -3.0, 0.5, nan]))
    np.testing.assert_equal(both, [1.0, -1.0, 0.5, nan])
    np.testing.assert_equal(only_where(np.array([True, False]), np.array([1.0, 2.0])), [1.0, nan])


def test_fasttext_reads_characters_as_words() -> None:
    """Han, kana and Hangul stand apart, other words stay whole and small."""
    assert fasttext_line("Online赌场 Bonus\n送18元") == "online 赌 场 bonus 送 18 元"


def test_margins_of_models_are_their_verdicts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of short and long texts, in a language with thresholds of its own or not: 0 and more is dropped; nothing is no margin."""
    monkeypatch.setenv("CORPUSMILL_CACHE", str(tmp_path / "cache"))
    thresholds = {"default": {"gambling": 0.6}, "long": {"gambling": 0.9}, "languages": {"zh": {"hate": 0.2}}}
    safety = {"format": 1, "labels": list(LABELS), "thresholds": thresholds, "max_tokens": 12, "stride": 7}
    folder = write_classifier(tmp_path / "tiny", safety=safety)
    texts = [
        "bet.",
        "赌博网站",
        "a",
        "abc " * 40,
        "the cat sat",
        "赌!",
        "",
        "网站赌博" * 20,
        *(chr(97 + i) * 3 for i in range(20)),
    ]
    languages = ["eng_Latn", "zho_Hans"] * (len(texts) // 2)

    said = said_by_model(model_filter(str(folder), engine="onnx"), texts, languages, [0] * len(texts), Kept(tmp_path))

    with np.errstate(invalid="ignore"):
        assert (said.margins >= 0).tolist() == [reason is not None for reason in said.reasons]
    assert np.isnan(said.margins[6]) or said.reasons[6] is None
    assert 0 < sum(reason is not None for reason in said.reasons) < len(texts)
