"""Spans of terms: read as they were written, and whatever else stands in the column is left out."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.matched_spans import MatchedSpan, different_terms, read_spans

SPANS = [
    ["gambling", "赌场", 3, 9, "terms/zh.tsv:14"],
    ["spam", "vx", 12, 14, "C:\\own\\my.tsv:2"],
    ["gambling", "赌场", 20, 26, "terms/zh.tsv:14"],
]


def test_spans_come_back_in_their_order() -> None:
    found = read_spans(json.dumps(SPANS))
    assert found == [MatchedSpan(*span) for span in SPANS]
    assert [span.place for span in found] == ["zh.tsv:14", "my.tsv:2", "zh.tsv:14"]
    assert [(span.term, times) for span, times in different_terms(found)] == [("赌场", 2), ("vx", 1)]


@pytest.mark.parametrize(
    "cell",
    [
        None,
        "",
        "null",
        "{}",
        "[[]]",
        "not json",
        '[["a","b",1,2]]',
        '[["a","b",2,1,"c"]]',
        '[["a","b",-1,1,"c"]]',
        '[["a","b",true,2,"c"]]',
        '[["a","b",1.5,2,"c"]]',
        '[["a",3,1,2,"c"]]',
        f'[["a","b",1,{2**63},"c"]]',
        f'[["a","b",1,{10**40},"c"]]',
    ],
)
def test_what_is_no_span_is_left_out(cell: str | None) -> None:
    """A file of another version, or a damaged one, breaks no page."""
    assert read_spans(cell) == []


@given(st.text())
def test_any_text_can_be_read(cell: str) -> None:
    read_spans(cell)
