"""The block on perplexity: every number is that of the facts, and facts of another version break nothing."""

from __future__ import annotations

from typing import Any

import pytest

from curation.report.perplexity_view import perplexity_view
from curation.report.step_facts import facts_view
from curation.routes import SET_ASIDE

FACTS: dict[str, Any] = {
    "documents": 1000,
    "judged": 960,
    "not_judged": {"too short": 30, "no model": 10, "not finite": 0},
    "models": {"eng": 600, "mul": 390},
    "languages": [
        {
            "language": "eng_Latn",
            "documents": 600,
            "judged": 590,
            "too_low": 3,
            "too_high": 12,
            "p5": 1.5,
            "p50": 2,
            "p95": 2.75,
        },
        {"language": "tha_Thai", "documents": 10, "judged": 0, "too_low": 0, "too_high": 0},
    ],
    "cascade": {
        "asked": 110,
        "not_asked": 890,
        "band": {"documents": 100, "answered": 100, "differ": 25, "interval": [0.17, 0.34]},
        "sample": {
            "documents": 10,
            "answered": 10,
            "kept_by_the_first_alone": 1,
            "dropped_by_the_first_alone": 2,
            "differ": 3,
            "interval": [0.1078, 0.6032],
        },
        "tokens_read": 5000,
        "tokens_saved": 45_000,
    },
}


def lines(facts: dict[str, Any]) -> dict[str, str]:
    return {
        fact.name: f"{fact.value} {fact.note}".strip().replace("\N{NO-BREAK SPACE}", " ")
        for fact in perplexity_view(facts).facts
    }


def test_everything_that_was_counted_is_said() -> None:
    """What was judged, by which model, why not; what the second model was asked, and what it saved."""
    assert lines(FACTS) == {
        "judged": "960 of 1,000 documents 96.0 %",
        "not judged: too short": "30 documents fewer tokens than min_tokens could be scored",
        "not judged: no model": "10 documents no model knows the language",
        "models": "eng 600, mul 390 documents that each has read",
        "second model asked": "110 documents 11.0 %: the undecided band, and a sample of the others",
        "in the band": "100 documents where it decides; in 25.0 % the first said the other",
        "the two differ in the sample": "3 of 10 documents the second would drop 1 that the first keeps, and keep 2 that it "
        "drops; of all that the first decides alone between 10.8 % and 60.3 % would change (95 % interval)",
        "tokens that it read": "5,000",
        "tokens saved": "about 45,000 90.0 % of what it would read without the first",
    }


def test_each_language_has_a_bar_and_its_bits() -> None:
    """Percentiles where something was judged; limits where they dropped something."""
    found = [(row.name, row.n, row.note.replace("\N{NO-BREAK SPACE}", " ")) for row in perplexity_view(FACTS).counts]
    assert found == [
        ("eng_Latn", 600, "1.5 / 2 / 2.75; too low 3; too high 12"),
        ("tha_Thai", 10, "none could be judged"),
    ]


def test_an_empty_sample_says_what_to_do() -> None:
    """No interval of nothing."""
    cascade = {**FACTS["cascade"], "sample": {"documents": 0, "answered": 0, "differ": 0, "interval": [0.0, 1.0]}}
    found = lines({**FACTS, "cascade": cascade})
    assert found["in the sample"] == "no document raise cascade.sample_share to see how often the two differ"


@pytest.mark.parametrize(
    "facts",
    [
        {},
        {"documents": "many"},
        {"documents": 0, "judged": 0, "not_judged": [], "models": None, "languages": {"eng": 1}},
        {"languages": [None, {}, {"documents": 3}]},
        {"cascade": {"asked": 1, "not_asked": 0, "band": 3, "sample": {"answered": 1, "interval": "?"}}},
    ],
)
def test_facts_of_another_version_break_nothing(facts: dict[str, Any]) -> None:
    """What is not there, or is something else, is left out."""
    perplexity_view(facts)


def test_what_is_set_aside_is_said_too() -> None:
    """With the command that writes it, before what the view says."""
    view = facts_view("perplexity", {**FACTS, SET_ASIDE: {"poor": 7}})
    assert view is not None
    assert (view.facts[0].name, view.facts[0].value) == ("set aside for poor", "7 documents")
    assert view.facts[1].name == "judged"
