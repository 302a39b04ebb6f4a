"""Laws of the scoring of safety filtering: what counts as found, how thresholds and intervals are worked out, which rows are gold."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from tests.bench.safety_gold import (
    Counts,
    Row,
    average_precision,
    best_f1,
    capped,
    counts,
    load_own,
    load_public,
    load_shared,
    load_suite,
    ranks,
    recall_at,
)

scored = st.lists(st.tuples(st.booleans(), st.integers(-3, 3).map(float)), min_size=1, max_size=12)


def split(rows: list[tuple[bool, float]]) -> tuple[list[bool], np.ndarray]:
    return [one for one, _ in rows], np.array([value for _, value in rows])


def test_counts_of_a_system() -> None:
    """0 and more is dropped; a system that was not asked keeps."""
    found = counts([True, True, True, False, False], np.array([0.0, -1.0, np.nan, 2.0, -2.0]))
    assert found == Counts(found=1, missed=2, wrong=1, kept=1)
    assert (found.precision, found.recall, found.f1, found.false_alarms) == (0.5, 1 / 3, 0.4, 0.5)


def test_counts_of_nothing() -> None:
    """Without unsafe rows there is no recall and no F1, without a drop no precision, without harmless rows no false alarm."""
    assert math.isnan(counts([False], np.array([1.0])).recall)
    assert math.isnan(counts([False], np.array([1.0])).f1)
    assert math.isnan(counts([True], np.array([-1.0])).precision)
    assert counts([True], np.array([-1.0])).f1 == 0
    assert math.isnan(counts([True], np.array([1.0])).false_alarms)


@given(scored)
def test_the_best_threshold_is_the_best_of_all(rows: list[tuple[bool, float]]) -> None:
    """No threshold gives a greater F1 than the one that is found, and that one gives it."""
    truth, values = split(rows)
    f1, threshold = best_f1(truth, values)
    if not any(truth):
        assert math.isnan(f1)
        return
    every = [counts(truth, values, float(one)).f1 for one in {*values.tolist()}]
    assert f1 == pytest.approx(max(every))
    assert counts(truth, values, threshold).f1 == pytest.approx(f1)


@given(scored)
def test_ranking_is_a_share_of_pairs(rows: list[tuple[bool, float]]) -> None:
    """The area under the curve is counted pair by pair; average precision lies in (0, 1] and is 1 for a perfect order."""
    truth, values = split(rows)
    high, low = [v for t, v in rows if t], [v for t, v in rows if not t]
    if high and low:
        pairs = [(a > b) + 0.5 * (a == b) for a in high for b in low]
        assert ranks(truth, values) == pytest.approx(sum(pairs) / len(pairs))
    if high:
        assert 0 < average_precision(truth, values) <= 1
        assert average_precision(truth, np.where(truth, 1.0, 0.0)) == 1


@given(scored)
def test_recall_at_a_precision_holds_it(rows: list[tuple[bool, float]]) -> None:
    """Some threshold has that recall and the precision, weighed as if both classes were as many; no threshold has more."""
    truth, values = split(rows)
    if len(set(truth)) < 2:
        assert math.isnan(recall_at(truth, values))
        return
    fine = [0.0]
    for one in {*values.tolist()}:
        found = counts(truth, values, float(one))
        if found.recall and found.recall >= 0.9 * (found.recall + found.false_alarms) - 1e-12:
            fine.append(found.recall)
    assert recall_at(truth, values) == pytest.approx(max(fine))


def row(name: str, text: str, unsafe: bool = True, group: str = "g") -> Row:
    return Row(name, text, "en", unsafe, ("spam",) if unsafe else (), group, "part")


def test_rows_are_capped_by_group_and_label() -> None:
    """A text counts once; of each group and label no more than asked, the same ones whatever the order."""
    rows = [row(str(i), f"text {i % 8}", unsafe=i % 2 == 0) for i in range(24)]
    found = capped(rows, 3)
    assert len(found) == 6
    assert sorted(one.text for one in found) == sorted(one.text for one in capped(rows[::-1], 3))
    assert len({one.text for one in found}) == 6


def test_what_is_gold_of_the_shared_set(tmp_path: Path) -> None:
    """Sources and topics that were trained on are left out; harmless rows by hand carry no label."""
    rows = [
        {"source": "handmade", "category": "gambling ad", "unsafe": 1},
        {"source": "handmade", "category": "useful forum reply", "unsafe": 0, "hard_negative": True},
        {"source": "thu-coai/COLDataset:train", "category": "offensive:region", "unsafe": 1},
        {"source": "thu-coai/COLDataset:train", "category": "offensive:race", "unsafe": 1},
        {"source": "t-davidson/hate-speech-and-offensive-language", "category": "hate", "unsafe": 1},
        {"source": "kocohub/korean-hate-speech:train", "category": "comment hate=none", "unsafe": 0},
    ]
    with zstandard.open(tmp_path / "labelled.jsonl.zst", "wt", encoding="utf-8") as out:
        for i, one in enumerate(rows):
            out.write(json.dumps({"id": str(i), "text": f"t{i}", "lang": "zh", **one}) + "\n")
    found = load_shared(tmp_path)
    assert [(one.name, one.group, one.labels) for one in found] == [
        ("0", "by hand, adverts", ("gambling",)),
        ("1", "by hand, harmless", ()),
        ("2", "COLD region", ("hate",)),
        ("5", "Korean comments", ()),
    ]
    assert [one.hard for one in found] == [False, True, False, False]


def test_only_held_out_rows_of_files_are_gold(tmp_path: Path) -> None:
    """Of both kinds of files the rows of the split test; riddles and usual words are apart; HateCheck's harmless rows are hard."""
    path = tmp_path / "rows.jsonl"
    rows = [
        {"text": "a", "lang": "en", "labels": ["spam"], "pattern": "en_test:1", "split": "test", "source": "x"},
        {"text": "b", "lang": "en", "labels": [], "pattern": "en_test_usual:1", "split": "test", "source": "x"},
        {
            "text": "c",
            "lang": "en",
            "labels": [],
            "pattern": "en_rows:1",
            "split": "train",
            "source": "surge-ai/toxicity",
        },
    ]
    path.write_text("".join(json.dumps(one) + "\n" for one in rows), encoding="utf-8")
    assert [(one.group, one.part, one.hard) for one in load_own(path)] == [
        ("own en", "spam", False),
        ("own en, usual words", "harmless", True),
    ]
    assert [(one.group, one.hard) for one in load_public(path)] == [("HateCheck en", False), ("HateCheck en", True)]


def test_the_suite_is_gold() -> None:
    """Adverts are unsafe and have a category, look-alikes are hard negatives; in Chinese and English there are both."""
    rows = load_suite()
    assert all(one.unsafe == bool(one.labels) == (not one.hard) for one in rows)
    for lang in ("zh", "zh-Hant", "en", "ja"):
        assert {one.unsafe for one in rows if one.lang == lang} == {True, False}
