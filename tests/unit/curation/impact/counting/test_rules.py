"""Dead and wild rules: named where a rule fires no more, or tenfold; not where it is off, or its documents went elsewhere."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from curation.impact.counting.figure_types import Rules
from curation.impact.counting.figures import figures
from curation.impact.counting.reasons import off_reasons_of
from curation.impact.facts import StepFacts
from curation.run import write_json
from curation.steps import step_class
from tests.impact_oracle import OUTCOMES, Document, compared, documents_of, side, standing, step_facts

TEMPLATE = documents_of(1, weighted=False)[0]
NUMBER = {outcome.reason: place for place, outcome in enumerate(OUTCOMES)}
KEPT = None


def sample(*moves: tuple[str | None, str | None, int]) -> list[Document]:
    """Documents by the reason that they are dropped for before, after, and how many; None is kept."""
    found: list[Document] = []
    for before, after, n in moves:
        for _ in range(n):
            sides = {"before": NUMBER[before], "after": NUMBER[after]}
            found.append({**TEMPLATE, "doc_id": len(found).to_bytes(16, "big"), **sides})
    return found


def rules(
    documents: list[Document], base: Sequence[StepFacts] | None = None, new: Sequence[StepFacts] | None = None
) -> Rules:
    return figures(compared(documents, base, new)).rules


def kinds(found: Rules) -> dict[str, str]:
    return {note.reason: note.kind for note in found.notes}


# -- dead --------------------------------------------------------------------------------------------------------


def test_a_rule_that_fires_no_more_is_dead() -> None:
    """Its documents are kept now, or fall to what stands behind it; from five of them on."""
    found = rules(sample((KEPT, KEPT, 90), ("rules.lines", KEPT, 4), ("rules.lines", "safety.adult", 1)))
    (note,) = found.notes
    assert (note.kind, note.reason, note.before, note.after, note.expected) == ("dead", "rules.lines", 5, 0, 5)
    assert note.times is None
    assert note.text == (
        "rules.lines fires no more: 5 documents of 95 before (5.3 %), 0 of 95 now (0 %), though 5 documents that it should take "
        "still came to it. Look whether its score is there, and whether its comparison is the right way round."
    )
    assert kinds(rules(sample((KEPT, KEPT, 90), ("rules.lines", KEPT, 4)))) == {}


def test_a_rule_whose_documents_are_taken_before_is_not_dead() -> None:
    """By a step before it, or by a rule of its own step that has priority; those that still come to it are what counts."""
    assert kinds(rules(sample((KEPT, KEPT, 90), ("rules.lines", "length.too_short", 19)))) == {}
    assert kinds(rules(sample((KEPT, KEPT, 90), ("rules.words", "rules.lines", 50)))) == {"rules.lines": "often"}
    some = sample((KEPT, KEPT, 90), ("rules.lines", "length.too_short", 50), ("rules.lines", KEPT, 4))
    assert kinds(rules(some)) == {"length.too_short": "often"}
    more = sample((KEPT, KEPT, 90), ("rules.lines", "length.too_short", 50), ("rules.lines", KEPT, 5))
    assert kinds(rules(more)) == {"rules.lines": "dead", "length.too_short": "often"}
    behind = sample((KEPT, KEPT, 90), ("rules.lines", "rules.words", 50))
    assert kinds(rules(behind)) == {"rules.lines": "dead", "rules.words": "often"}


def test_what_is_switched_off_is_not_dead() -> None:
    """A setting that says so is named among those that are off, and nothing else is said of it."""
    documents = sample((KEPT, KEPT, 90), ("rules.lines", KEPT, 30))
    new = standing(documents, "after")
    new[1] = step_facts("rules", 1, docs_in=120, config={"lines": None})
    found = rules(documents, None, new)
    assert (kinds(found), found.off) == ({}, ("rules.lines",))
    new[1] = step_facts("rules", 1, docs_in=120, hits={"rules.words": 0})
    found = rules(documents, None, new)
    assert (kinds(found), found.off) == ({}, ("rules.lines",))
    assert "rules.words" in found.silent


def test_a_rule_of_a_step_that_is_gone_is_not_dead() -> None:
    """The table of reasons says that it is gone."""
    documents = sample((KEPT, KEPT, 90), ("rules.lines", KEPT, 30))
    found = rules(documents, None, [step_facts("length", 0, docs_in=120), step_facts("safety", 1, docs_in=120)])
    assert kinds(found) == {}
    assert all(not reason.startswith("rules") for reason in found.silent)


def test_rules_that_are_counted_are_taken_at_their_count() -> None:
    """A rule that a better one hides fires all the same; one that breaks nowhere any more is dead."""
    documents = sample((KEPT, KEPT, 60), ("rules.words", "rules.lines", 10), ("rules.lines", "rules.lines", 30))

    def steps(**hits: int) -> list[StepFacts]:
        return [step_facts("rules", 0, docs_in=100, hits={f"rules.{name}": n for name, n in hits.items()})]

    assert kinds(rules(documents, steps(lines=30, words=10), steps(lines=40, words=10))) == {}
    (note,) = rules(documents, steps(lines=30, words=10), steps(lines=40, words=0)).notes
    assert (note.kind, note.reason, note.before, note.after, note.expected) == ("dead", "rules.words", 10, 0, 10)
    # Hidden on both sides: only its count says that it is dead.
    assert kinds(rules(documents, steps(lines=30, words=10), steps(lines=0, words=10))) == {"rules.lines": "dead"}
    kept = sample((KEPT, KEPT, 100))
    assert kinds(rules(kept, steps(lines=30, words=9), steps(lines=30, words=0))) == {"rules.words": "dead"}
    fewer = [step_facts("rules", 0, docs_in=50, hits={"rules.lines": 15, "rules.words": 0})]
    assert kinds(rules(kept, steps(lines=30, words=9), fewer)) == {}  # 4.5 expected


def test_counts_of_one_side_alone_are_not_compared() -> None:
    """Where the base's version did not count, what was dropped for a reason is compared with the same."""
    documents = sample((KEPT, KEPT, 60), ("rules.words", "rules.words", 30), ("rules.lines", "rules.lines", 30))
    new = [step_facts("rules", 0, docs_in=120, hits={"rules.lines": 30, "rules.words": 700})]
    assert kinds(rules(documents, [step_facts("rules", 0, docs_in=120)], new)) == {}


# -- wild --------------------------------------------------------------------------------------------------------


def test_a_rule_that_fires_tenfold_is_named() -> None:
    """With how many times and how sure that is; exactly ten times is not more than that."""
    (note,) = rules(sample((KEPT, KEPT, 900), ("rules.lines", "rules.lines", 4), (KEPT, "rules.lines", 40))).notes
    assert (note.kind, note.before, note.after) == ("often", 4, 44)
    assert note.times is not None
    assert note.times.value == 11
    assert note.times.low == pytest.approx(4.11, abs=0.01)
    assert note.times.high == pytest.approx(29.5, abs=0.1)
    assert note.text.startswith(
        "rules.lines fires 11 times as often: 4 documents of 944 before (0.4 %), 44 of 944 now (4.7 %)."
    )
    assert rules(sample((KEPT, KEPT, 900), ("rules.lines", "rules.lines", 4), (KEPT, "rules.lines", 36))).notes == ()


def test_a_rule_that_never_fired_before_is_named_from_20_documents_on() -> None:
    """Fewer may be what the change is for; how many times as often has no end."""
    (note,) = rules(sample((KEPT, KEPT, 900), (KEPT, "rules.lines", 20))).notes
    assert (note.kind, note.before, note.after) == ("often", 0, 20)
    assert note.times is not None
    assert note.times.value == note.times.high == math.inf
    assert note.times.low == pytest.approx(20 / 3.8414588)
    assert "although it never fired before: 0 documents of 920" in note.text
    assert rules(sample((KEPT, KEPT, 900), (KEPT, "rules.lines", 19))).notes == ()


def test_a_rule_that_fires_a_tenth_as_often_is_named() -> None:
    """Of 20 or more that still come to it; exactly a tenth is not less."""
    (note,) = rules(sample((KEPT, KEPT, 900), ("rules.lines", KEPT, 39), ("rules.lines", "rules.lines", 3))).notes
    assert (note.kind, note.before, note.after, note.expected) == ("seldom", 42, 3, 42)
    assert note.times is not None
    assert note.times.value == pytest.approx(3 / 42)
    assert note.times.low < 3 / 42 < note.times.high < 1
    assert note.text.startswith(
        "rules.lines fires 14 times less often: 42 documents of 942 before (4.5 %), 3 of 942 now (0.3 %)."
    )
    assert rules(sample((KEPT, KEPT, 900), ("rules.lines", KEPT, 27), ("rules.lines", "rules.lines", 3))).notes == ()
    assert rules(sample((KEPT, KEPT, 900), ("rules.lines", KEPT, 18), ("rules.lines", "rules.lines", 1))).notes == ()


def test_shares_are_of_what_came_to_the_step() -> None:
    """Twelve times as many documents of twelve times as many that came to it is nothing odd."""
    documents = sample(
        ("length.too_long", KEPT, 1100),
        (KEPT, KEPT, 98),
        ("rules.lines", "rules.lines", 2),
        ("length.too_long", "rules.lines", 22),
    )
    assert "rules.lines" not in kinds(rules(documents))


def test_dead_rules_stand_first() -> None:
    """The others in the order of steps."""
    documents = sample(
        (KEPT, KEPT, 900), (KEPT, "length.too_short", 30), ("safety.adult", KEPT, 10), ("rules.lines", KEPT, 10)
    )
    assert [note.reason for note in rules(documents).notes] == ["rules.lines", "safety.adult", "length.too_short"]


# -- silent and new ones -----------------------------------------------------------------------------------------


def test_rules_of_which_the_sample_says_nothing_are_listed() -> None:
    """They fired on neither side; a rule that is new and fired is not among them, and is not wild either."""
    documents = sample((KEPT, KEPT, 90), ("length.too_short", "length.too_short", 1), (KEPT, "safety.adult", 50))
    found = rules(documents, [step_facts("length", 0, docs_in=141), step_facts("rules", 1, docs_in=140)])
    assert found.silent == ("length.too_long", "rules.lines", "rules.words")
    assert found.notes == ()
    found = rules(documents)
    assert found.silent == ("length.too_long", "rules.lines", "rules.words")
    assert kinds(found) == {"safety.adult": "often"}


# -- off ---------------------------------------------------------------------------------------------------------


def test_a_run_says_itself_which_rules_are_off(tmp_path: Path) -> None:
    """What its report found counts, if it is of these verdicts; a step's own settings are asked else."""
    step = step_facts("rules", 0, config={"lines": "off"})
    one = side("x", step)
    assert off_reasons_of(one, step) == {"rules.lines"}
    write_json(
        tmp_path / "report" / "usual.json",
        {"steps": {"rules": {"digest": step.digest, "off": ["rules.words", "rules.x"]}}},
    )
    there = type(one)(one.label, None, "", tmp_path, (step,))
    assert off_reasons_of(there, step) == {"rules.words"}
    write_json(tmp_path / "report" / "usual.json", {"steps": {"rules": {"digest": "other", "off": ["rules.words"]}}})
    assert off_reasons_of(there, step) == {"rules.lines"}
    write_json(tmp_path / "report" / "usual.json", {"steps": {"rules": {"digest": step.digest, "alarms": []}}})
    assert off_reasons_of(there, step) == {"rules.lines"}


def test_a_step_of_this_code_is_asked_itself() -> None:
    """It knows more than its settings show; of other code nobody asks it."""
    kind = step_class("language")
    settings = kind.Config().model_dump(mode="json")
    step = step_facts("language", 0, reasons=dict(kind.reasons), config=settings)
    assert off_reasons_of(side("x", step), step) == set(kind(kind.Config()).off_reasons() or ()) | {"language.routed"}
    other = replace(side("x", step), commit="1" * 40)
    assert "language.low_share" not in off_reasons_of(other, step)


def test_a_step_whose_reasons_all_have_limits_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """It might open a model for that."""
    kind = step_class("safety_model")
    monkeypatch.setattr(kind, "off_reasons", lambda self: pytest.fail("it was asked"))
    limits = {reason.partition(".")[2]: [0.5] for reason in kind.reasons}
    settings = kind.Config().model_dump(mode="json")
    step = step_facts("safety_model", 0, reasons=dict(kind.reasons), config=settings, thresholds=limits)
    assert off_reasons_of(side("x", step), step) == set()


def test_what_is_set_aside_needs_an_output() -> None:
    """Without one in the settings the reason cannot be given."""
    reasons = {"rules.lines": "x", "rules.routed": "y"}
    without = step_facts("rules", 0, reasons=reasons)
    assert off_reasons_of(side("x", without), without) == {"rules.routed"}
    routed = step_facts("rules", 0, reasons=reasons, config={"mixed": {"zho": "route:later"}})
    assert off_reasons_of(side("x", routed), routed) == set()
