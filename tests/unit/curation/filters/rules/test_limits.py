"""Limits by rule and label."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest

from curation.filters.rules.limits import limit_for, limits_by_row, read_limits, read_rows, read_wide
from curation.filters.rules.rule import BY_NAME

LAYERS = ({"zho_Hant": 3.0, "und_Hani": None}, {"": 1.0, "zho": 2.0, "und_Hani": 4.0, "deu": None})


@pytest.mark.parametrize(
    ("label", "limit"),
    [
        ("zho_Hant", 3.0),
        ("zho_Hans", None),
        ("deu_Latn", None),
        ("eng_Latn", 1.0),
        ("und_Latn", 1.0),
        ("und", 1.0),
    ],
)
def test_the_nearest_key_of_the_first_layer_decides(label: str, limit: float | None) -> None:
    """A layer above is asked with all its keys before the one below; None turns the rule off."""
    assert limit_for(LAYERS, label) == limit


def test_limits_of_documents() -> None:
    """One limit for each row of a column of labels; nan where the rule is off, nothing where it is off for all."""
    labels = pa.array(["zho_Hant", "deu_Latn", "eng_Latn", "zho_Hant"])

    found = limits_by_row({"a": LAYERS, "b": ({"jpn": 1.0},)}, labels)

    assert list(found) == ["a"]
    assert found["a"].dtype == np.float32
    np.testing.assert_array_equal(found["a"], np.float32([3, math.nan, 1, 3]))
    assert limits_by_row({"a": LAYERS}, pa.array([], pa.string())) == {}


def test_a_slice_of_labels() -> None:
    """Rows are those that the slice shows."""
    labels = pa.array(["zho_Hant", "eng_Latn", "zho_Hant"]).slice(1)

    assert limits_by_row({"a": LAYERS}, labels)["a"].tolist() == [1, 3]


def test_the_tables_that_ship() -> None:
    """Rules that exist, limits that can be broken or are plainly none, a default for each rule of the wide one."""
    for limits in (read_wide("fineweb2.tsv"), read_limits("limits.tsv")):
        assert limits.keys() <= BY_NAME.keys()
        for rule, by_key in limits.items():
            assert "" in by_key, rule
            for limit in by_key.values():
                assert limit is None or (limit >= 0 and (BY_NAME[rule].unit != "share" or limit <= 1)), rule


def test_stop_words_are_words() -> None:
    """A list names a label once and its words once, in small letters."""
    rows = read_rows("stop_words.tsv")

    assert len({row["label"] for row in rows}) == len(rows)
    for row in rows:
        words = row["words"].split(" ")
        assert len(set(words)) == len(words) >= 5
        assert [word.casefold() for word in words] == words
