"""What a step says about itself: a view where there is one, a plain table elsewhere, nothing where nothing is said."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.report.step_facts import VIEWS, alarms_of, facts_view

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=8,
)


def test_a_step_without_facts_has_no_block() -> None:
    """Most steps, and every step of a run from before there were facts."""
    for step in ("exact", "near", "unheard_of"):
        assert facts_view(step, {}) is None


def test_a_step_without_a_view_gets_a_table() -> None:
    """Numbers, words and short lists in one line each; alarms stand elsewhere, long lists nowhere."""
    facts = {
        "n_rings": 12345,
        "mode": "fast",
        "by_kind": {"a": 1, "b": 0.5},
        "exact": True,
        "alarms": ["too many"],
        "long": list(range(50)),
        "deep": [[[{}]]],
        "none": None,
    }
    view = facts_view("unheard_of", facts)
    assert view is not None
    lines = [(fact.name, fact.value) for fact in view.facts]
    assert lines == [("n rings", "12,345"), ("mode", "fast"), ("by kind", "a 1, b 0.5"), ("exact", "yes")]
    assert facts_view("unheard_of", {"alarms": ["x"]}) is None


@pytest.mark.parametrize("facts", [{}, {"alarms": None}, {"alarms": "text"}, {"alarms": {}}, {"alarms": [1, None]}])
def test_what_is_no_list_of_sentences_alarms_nobody(facts: dict[str, Any]) -> None:
    assert alarms_of(facts) == []


def test_alarms_are_sentences() -> None:
    assert alarms_of({"alarms": ["one", "two"]}) == ["one", "two"]


@pytest.mark.parametrize("step", [*VIEWS, "unheard_of"])
@given(data=st.data())
def test_facts_of_another_version_make_no_view_fail(step: str, data: st.DataObject) -> None:
    """Whatever JSON stands there, under the names that a view knows or others."""
    known = ["threshold", "shingle", "keep", "num_perm", "bands", "rows", "simhash_distance", "curve", "documents"]
    known += ["without_shingles", "earlier_documents", "links", "clusters", "largest_cluster", "found_by", "alarms"]
    facts = data.draw(st.dictionaries(st.sampled_from(known) | st.text(max_size=4), JSON, max_size=10))
    facts_view(step, json.loads(json.dumps(facts)))


@pytest.mark.parametrize("text", ["1e999", "-1e999", "1e308", "1" + "0" * 400, "-1", "0", "true"])
def test_numbers_that_no_step_writes_make_no_view_fail(text: str) -> None:
    """JSON holds numbers beyond any float, and those of a damaged file may be of any size and sign."""
    names = ["shingle", "num_perm", "bands", "rows", "simhash_distance", "documents", "without_shingles"]
    names += ["earlier_documents", "clusters", "largest_cluster"]
    numbers = {name: json.loads(text) for name in names}
    nested = {"links": {"both": json.loads(text)}, "found_by": {"both": json.loads(text)}}
    curve = [[0, 0], [0.5, 0.1], [json.loads(text), 1], [1, 1]]
    for threshold in (0.9, 1 - 2**-53, json.loads(text)):
        facts = {**numbers, **nested, "threshold": threshold, "curve": curve}
        for step in (*VIEWS, "unheard_of"):
            facts_view(step, facts)
        for name in facts:
            facts_view("near", {"threshold": 0.9, name: facts[name]})
