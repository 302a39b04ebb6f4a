"""Facts of safety filters: terms by documents, as counting by hand gives them, whatever the cut into tables."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import curation.safety_facts
from curation.safety_facts import MOST_TERMS, cascade_facts, term_facts

REASONS = ["safety_terms.gambling", "safety_terms.spam"]
Row = tuple[bool | None, str | None, list[list[Any]] | None]


def table(rows: list[Row]) -> pa.Table:
    reason = pa.array([row[1] for row in rows], pa.string()).dictionary_encode()
    matched = [None if row[2] is None else json.dumps(row[2]) for row in rows]
    return pa.table(
        {
            "keep": pa.array([row[0] for row in rows], pa.bool_()),
            "reason": reason,
            "matched": pa.array(matched, pa.string()),
        }
    )


def span(category: str, term: str) -> list[Any]:
    return [category, term, 0, 1, f"zh.tsv:{len(term)}"]


def test_documents_are_counted_once_for_each_term() -> None:
    """However often it stands in one; `alone` only where nothing else of the category is why the document was dropped."""
    rows: list[Row] = [
        (False, REASONS[0], [span("gambling", "a"), span("gambling", "a"), span("spam", "v")]),
        (False, REASONS[0], [span("gambling", "a"), span("gambling", "bb")]),
        (False, REASONS[1], [span("gambling", "a"), span("spam", "v")]),
        (True, None, [span("gambling", "a")]),
        (True, None, None),
        (None, None, None),
    ]
    facts = term_facts([table(rows)])
    assert facts == {
        "terms": {
            "gambling": [
                {"term": "a", "rule": "zh.tsv:1", "documents": 4, "dropped": 3, "alone": 1},
                {"term": "bb", "rule": "zh.tsv:2", "documents": 1, "dropped": 1, "alone": 0},
            ],
            "spam": [{"term": "v", "rule": "zh.tsv:1", "documents": 2, "dropped": 2, "alone": 1}],
        },
        "different_terms": {"gambling": 2, "spam": 1},
    }
    json.dumps(facts)


@given(st.lists(st.lists(st.sampled_from("abcdefgh"), max_size=4), max_size=30), st.integers(1, 7))
def test_any_cut_into_tables_gives_the_same(documents: list[list[str]], size: int) -> None:
    """And the number of documents is that of a plain count."""
    rows: list[Row] = [(True, None, [span("spam", t) for t in terms] or None) for terms in documents]
    whole = term_facts([table(rows)])
    assert whole == term_facts(table(rows[i : i + size]) for i in range(0, len(rows), size))
    counted = Counter(term for terms in documents for term in set(terms))
    assert {line["term"]: line["documents"] for line in whole["terms"].get("spam", [])} == counted


def test_only_the_first_terms_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest is counted; and where there are more than memory is for, that is said."""
    rows: list[Row] = [(True, None, [span("spam", f"t{n:03d}")]) for n in range(100) for _ in range(n)]
    facts = term_facts([table(rows)])
    assert len(facts["terms"]["spam"]) == MOST_TERMS
    assert facts["terms"]["spam"][0]["documents"] == 99
    assert facts["different_terms"] == {"spam": 99}
    assert "forgotten_terms" not in facts
    monkeypatch.setattr(curation.safety_facts, "MAX_TERMS", 40)
    small = term_facts([table(rows[::-1])])
    assert small["forgotten_terms"] > 0
    assert small["terms"]["spam"][0] == facts["terms"]["spam"][0]


def test_nothing_found_is_nothing() -> None:
    assert term_facts([]) == term_facts([table([(True, None, None)])]) == {"terms": {}, "different_terms": {}}


def test_the_estimate_has_an_interval() -> None:
    """Wilson's: 3 of 1,000 is 0.10 to 0.88 %; none of none says nothing."""
    facts = cascade_facts(1000, 3, 50_000)
    assert (facts["estimate"], facts["documents_not_read"]) == (0.003, 50_000)
    assert (facts["low"], facts["high"]) == (pytest.approx(0.00102, rel=0.01), pytest.approx(0.00878, rel=0.01))
    assert cascade_facts(0, 0, 7) | {"audited": 0} == {
        "audited": 0,
        "audited_unsafe": 0,
        "estimate": None,
        "low": 0.0,
        "high": 1.0,
        "documents_not_read": 7,
    }
