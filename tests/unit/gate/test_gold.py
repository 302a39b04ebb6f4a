"""Filters are judged on gold with scores that are computed once, whatever of them is changed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pytest

from curation.filters.length import Length, LengthConfig
from curation.verdicts import Filter
from tests.bench.quality_gold import Document
from tests.gate.documents import by_reason, good_kept, junk_dropped
from tests.gate.figures import Figure
from tests.gate.gold import Gold, MissingDataError

SENTENCE = "a few plain words of a text that is as long as others of its kind, "
TEXTS = [SENTENCE, SENTENCE * 3, "too short", ""]
DOCUMENTS = [
    Document("a", TEXTS[0], "en", "good", ""),
    Document("b", TEXTS[1], "en", "good", ""),
    Document("c", TEXTS[2], "en", "junk", "very short"),
    Document("d", TEXTS[3], None, "short", ""),
]


class Counting(Length):
    """`length` that counts how often it scores."""

    calls: ClassVar[list[int]] = []

    def score(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        self.calls.append(batch.num_rows)
        return super().score(batch)


@pytest.fixture
def gold(tmp_path: Path) -> Gold:
    Counting.calls.clear()
    made = Gold(tmp_path)
    made.__dict__["documents"] = DOCUMENTS
    return made


def kept(gold: Gold, step: Filter) -> list[bool]:
    texts = gold.texts("some", lambda: TEXTS)
    return [bool(keep) for keep in gold.judged(texts, "length", {"length": step}).decision.keep]


def test_scores_are_computed_once_for_all_thresholds(gold: Gold) -> None:
    """Another threshold, and another class with other ways to decide, are judged on the same scores."""
    assert kept(gold, Counting(LengthConfig())) == [True, True, False, False]
    assert kept(gold, Counting(LengthConfig(min_units=1))) == [True, True, True, False]
    assert kept(gold, Length(LengthConfig(min_units=40))) == [False, True, False, False]
    assert Counting.calls == [4]


def test_rescoring_computes_anew_and_forgets(gold: Gold) -> None:
    """Within, scores are those of the changed code; afterwards the former ones are back."""

    class Longer(Length):
        def score(self, batch: pa.RecordBatch) -> pa.RecordBatch:
            found = super().score(batch)
            units = pa.array([1e5] * batch.num_rows, pa.float32())
            return pa.RecordBatch.from_arrays([units, *found.columns[1:]], names=found.schema.names)

    before = kept(gold, Counting(LengthConfig()))
    assert kept(gold, Longer(LengthConfig())) == before
    with gold.rescoring("length"):
        assert kept(gold, Longer(LengthConfig())) == [True, True, True, False]
    assert kept(gold, Longer(LengthConfig())) == before


def test_other_settings_are_made_with_the_changed_class(gold: Gold) -> None:
    """Where a family asks for settings of its own, a change of settings is not seen, and a change of code is."""
    texts = gold.texts("some", lambda: TEXTS)
    judged = gold.judged(texts, "length", {"length": Counting(LengthConfig(min_units=1))}, {"min_units": 40})
    assert isinstance(judged.step, Counting)
    assert judged.step.config.min_units == 40


def test_kept_scores_serve_another_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are read from the folder while code and texts are the same, and computed anew for other texts and other code."""

    def asked(texts: list[str]) -> int:
        Counting.calls.clear()
        made = Gold(tmp_path, tmp_path / "kept")
        some = made.texts("some", lambda: texts)
        scores = made.judged(some, "length", {"length": Counting(LengthConfig())}).scores
        assert scores.equals(Length(LengthConfig()).score(pa.record_batch({"text": some.column})))
        return sum(Counting.calls)

    assert [asked(TEXTS), asked(TEXTS), asked(TEXTS[:2])] == [4, 0, 2]
    monkeypatch.setattr("tests.gate.gold._code", lambda: "other code")
    assert asked(TEXTS) == 4


def test_gold_that_is_not_there_is_said(tmp_path: Path) -> None:
    """With the folder, and what to set."""
    with pytest.raises(MissingDataError, match=f"no 2_text at {tmp_path}: set CORPUSMILL_TEST_DATA"):
        _ = Gold(tmp_path).documents


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (
            lambda reasons: good_kept("x.kept", DOCUMENTS, reasons),
            {"x.kept.others": Figure(1, 2)},
        ),
        (
            lambda reasons: junk_dropped("x.junk", DOCUMENTS, reasons),
            {"x.junk.very short": Figure(1, 1), "x.junk.all": Figure(1, 1)},
        ),
    ],
)
def test_documents_are_counted_by_what_they_are(
    count: Callable[[list[str | None]], dict[str, Figure]], expected: dict[str, Figure]
) -> None:
    """Languages with few good documents together; what is neither good nor junk nowhere."""
    assert count(["length.too_short", None, "length.too_short", "length.no_words"]) == expected


def test_reasons_are_counted_among_junk_and_good(gold: Gold) -> None:
    """Each reason: junk that it names, good documents that it does not."""
    found = by_reason("length", gold, {"length": Counting(LengthConfig(min_units=40))})
    assert found["length.junk_for.too_short"] == Figure(1, 1)
    assert found["length.good_spared.too_short"] == Figure(1, 2)
    assert found["length.junk_for.no_words"] == Figure(0, 1)
