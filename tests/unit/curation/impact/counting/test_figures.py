"""The numbers of a sheet: those that a slow count over single documents gives."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from curation.impact.counting.figure_types import Corpus, Figures, Group
from curation.impact.counting.figures import figures, steps_of_both
from curation.impact.facts import KEPT, NOT_JUDGED, Outcome
from tests import impact_oracle as oracle
from tests.impact_oracle import (
    MEASURES,
    OUTCOMES,
    STEPS,
    Document,
    amount,
    compared,
    count,
    documents_of,
    kept,
    ratio,
    reason_counts,
    step_facts,
)

Chosen = Callable[[Document], bool]


def before(one: Document) -> bool:
    return kept(one, "before")


def after(one: Document) -> bool:
    return kept(one, "after")


def leaves(one: Document) -> bool:
    return before(one) and not after(one)


def comes(one: Document) -> bool:
    return after(one) and not before(one)


@pytest.fixture(scope="module", params=[(300, 1, False), (300, 2, True), (40, 3, True), (1, 4, False)])
def both(request: pytest.FixtureRequest) -> tuple[list[Document], Figures]:
    """Documents, and what is told of them."""
    n, seed, weighted = request.param
    documents = documents_of(n, seed, weighted=weighted)
    return documents, figures(compared(documents, population=10_000 if weighted else None))


# -- groups ------------------------------------------------------------------------------------------------------


def check_group(documents: list[Document], group: Group) -> None:
    """Counts, amounts and shares of a group, in each measure."""
    assert group.sample == len(documents)
    for measure in MEASURES:
        moves = group.moves(measure)
        for part, chosen, whole in (
            (moves.before, before, bool),
            (moves.leaves, leaves, before),
            (moves.comes_in, comes, before),
            (moves.after, after, bool),
        ):
            assert part.count == count(documents, chosen, measure)
            assert part.amount == pytest.approx(amount(documents, chosen, measure), rel=1e-12)
            share = ratio(documents, chosen, whole, measure)
            assert (part.share is None) == (share is None)
            assert part.share is None or part.share.value == pytest.approx(share, rel=1e-12)
        moved = ratio(documents, lambda one: leaves(one) or comes(one), before, measure)
        assert (moves.moved is None) == (moved is None) == (moves.net is None)
        if moves.moved is not None and moves.net is not None and moves.leaves.share and moves.comes_in.share:
            assert moves.moved.value == pytest.approx(moved, rel=1e-12)
            assert moves.net.value == pytest.approx(moves.comes_in.share.value - moves.leaves.share.value, abs=1e-12)
        assert moves.after.count == moves.before.count - moves.leaves.count + moves.comes_in.count
    other = [one for one in documents if not before(one) and not after(one) and one["before"] != one["after"]]
    assert group.changes_reason.count == len(other)


def test_totals_are_those_of_the_oracle(both: tuple[list[Document], Figures]) -> None:
    """Documents, characters and tokens: kept before, leaving, coming in, kept after."""
    check_group(both[0], both[1].totals)
    assert both[1].weighted == (len({one["weight"] for one in both[0]}) > 1)


@pytest.mark.parametrize(
    ("field", "key"), [("languages", "language"), ("sources", "source"), ("lengths", "length"), ("labels", "label")]
)
def test_groups_are_those_of_the_oracle(both: tuple[list[Document], Figures], field: str, key: str) -> None:
    """Each with its own documents; together all of them that have such a name."""
    documents, found = both
    groups: tuple[Group, ...] = getattr(found, field)
    assert {group.name for group in groups} == {one[key] for one in documents} - {None}
    for group in groups:
        check_group([one for one in documents if one[key] == group.name], group)


def test_intervals_of_a_group_are_those_of_the_whole_sample(both: tuple[list[Document], Figures]) -> None:
    """How many documents of a stratum are of the language is chance as well: its other documents count as none."""
    documents, found = both
    for group in found.languages:

        def left(one: Document, name: str = group.name) -> bool:
            return leaves(one) and one["language"] == name

        def was(one: Document, name: str = group.name) -> bool:
            return before(one) and one["language"] == name

        for measure in ("documents", "tokens") if found.weighted else ("tokens",):
            share = group.moves(measure).leaves.share
            if share is not None:
                expected = oracle.wilson_share(documents, left, was, measure)
                assert (share.value, share.low, share.high) == pytest.approx(expected, rel=1e-6, abs=1e-9)


def test_what_moves_most_stands_first(both: tuple[list[Document], Figures]) -> None:
    """Languages by documents that leave and come in; lengths from short to long."""
    moved = [group.documents.leaves.amount + group.documents.comes_in.amount for group in both[1].languages]
    assert moved == sorted(moved, reverse=True)
    names = [group.name for group in both[1].lengths]
    assert names == sorted(names, key=("short", "long").index)


def test_small_sources_are_told_together() -> None:
    """The 20 largest by name, the others as one; with 20 there are no others."""
    documents = documents_of(400, 5)
    for place, one in enumerate(documents):
        one["source"] = f"s{place % 60 if place % 2 else place % 10:02d}"
    names = [group.name for group in figures(compared(documents)).sources]
    sizes = {name: sum(one["source"] == name for one in documents) for name in {one["source"] for one in documents}}
    largest = sorted(sizes, key=lambda name: (-sizes[name], name))[:20]
    found = figures(compared(documents)).sources
    assert names[-1] == "(others)"
    assert set(names[:-1]) == set(largest)
    check_group([one for one in documents if one["source"] not in largest], found[-1])
    assert sum(group.sample for group in found) == 400
    few = [one for one in documents if one["source"] in largest]
    assert [group.name for group in figures(compared(few)).sources if group.name == "(others)"] == []


# -- filters and reasons -----------------------------------------------------------------------------------------


def dropped_by(key: str, step: str) -> Chosen:
    return lambda one: OUTCOMES[one[key]].step == step


def test_filters_are_those_of_the_oracle(both: tuple[list[Document], Figures]) -> None:
    """Who drops what leaves, who dropped what comes in, and what goes from one to another."""
    documents, found = both
    assert [one.name for one in found.filters] == list(STEPS)
    for line in found.filters:
        was, now = dropped_by("before", line.name), dropped_by("after", line.name)
        assert (line.drops_before.count, line.drops_after.count) == (count(documents, was), count(documents, now))
        for measure in MEASURES:
            for part, chosen in (
                (line.leaves[measure], lambda one, now=now: before(one) and now(one)),
                (line.comes_in[measure], lambda one, was=was: after(one) and was(one)),
            ):
                assert part.count == count(documents, chosen, measure)
                share = ratio(documents, chosen, before, measure)
                assert (part.share is None and share is None) or part.share.value == pytest.approx(share, rel=1e-12)
        for other in STEPS:
            taken = count(documents, lambda one, other=other, now=now: dropped_by("before", other)(one) and now(one))
            given = count(documents, lambda one, other=other, was=was: dropped_by("after", other)(one) and was(one))
            if other != line.name:
                assert (line.taken_from[other].count if other in line.taken_from else 0) == taken
                assert (line.given_to[other].count if other in line.given_to else 0) == given
        assert line.name not in line.taken_from
    for measure in MEASURES:
        moves = found.totals.moves(measure)
        assert sum(line.leaves[measure].count for line in found.filters) == moves.leaves.count
        assert sum(line.comes_in[measure].count for line in found.filters) == moves.comes_in.count


def test_reasons_are_those_of_the_oracle(both: tuple[list[Document], Figures]) -> None:
    """Every reason of both sides with its share before and after, and what lies between."""
    documents, found = both
    old, new = reason_counts(documents, "before"), reason_counts(documents, "after")
    assert [line.reason for line in found.reasons] == [reason for step in STEPS for reason in oracle.REASONS[step]]
    for line in found.reasons:
        assert (line.before.count, line.after.count) == (old.get(line.reason, 0), new.get(line.reason, 0))
        assert line.sentence == f"it is {line.reason}"
        assert line.before.share is not None
        assert line.after.share is not None
        assert line.difference is not None
        for part, key in ((line.before, "before"), (line.after, "after")):
            share = ratio(documents, lambda one, line=line, key=key: OUTCOMES[one[key]].reason == line.reason, bool)
            assert part.share is not None
            assert part.share.value == pytest.approx(share, rel=1e-12)
        assert line.difference.value == pytest.approx(line.after.share.value - line.before.share.value, abs=1e-12)
        assert line.difference.low <= line.difference.value <= line.difference.high


def test_a_reason_of_one_side_is_told_as_such() -> None:
    """New and gone ones, and those that a setting switches on or off."""
    documents = documents_of(100, 6)
    base = [step_facts("length", 0, config={"too_long": None}), step_facts("safety", 1)]
    new = [step_facts("length", 0, config={"too_short": "keep"}), step_facts("rules", 1, hits={"rules.lines": 3})]
    found = {line.reason: line for line in figures(compared(documents, base, new)).reasons}
    assert {reason: line.state for reason, line in found.items()} == {
        "length.too_short": "switched off",
        "length.too_long": "switched on",
        "rules.lines": "new",
        "rules.words": "new",
        "safety.adult": "gone",
    }
    assert [line.step for line in found.values()] == ["length", "length", "safety", "rules", "rules"]
    assert (found["rules.lines"].hits_before, found["rules.lines"].hits_after) == (None, 3)
    assert found["rules.words"].hits_after == 0


def test_a_reason_that_no_card_names_is_told_all_the_same() -> None:
    """Nothing vanishes: an outcome that a version wrote without listing it stands behind the step's own reasons."""
    documents = documents_of(50, 7)
    outcomes = (*OUTCOMES[:2], Outcome("length", "length.odd"), *OUTCOMES[3:])
    found = figures(compared(documents, outcomes=outcomes)).reasons
    line = next(one for one in found if one.reason == "length.odd")
    assert line.before.count == sum(one["before"] == 2 for one in documents) > 0
    assert line.sentence == ""


@pytest.mark.parametrize(
    ("base", "new", "both"),
    [
        ("abc", "abc", "abc"),
        ("abc", "ac", "abc"),
        ("abc", "xabc", "xabc"),
        ("abc", "bc", "abc"),
        ("abcd", "ad", "abcd"),
        ("ab", "ba", "ba"),
        ("", "ab", "ab"),
        ("ab", "", "ab"),
        ("axb", "by", "axby"),
    ],
)
def test_steps_of_both_sides_stand_in_order(base: str, new: str, both: str) -> None:
    """Those of the new side as they stand there; what it lacks behind what stood before it."""
    sides = [[step_facts(name, place) for place, name in enumerate(names)] for names in (base, new)]
    assert "".join(steps_of_both(compared(documents_of(1), *sides))) == both


def test_a_changed_step_is_known() -> None:
    """By settings, version, limits, code or scores; not by its times, or the digest of what stands before it."""
    documents = documents_of(20, 8)

    def changed(**other: object) -> bool:
        sides = [step_facts("length", 0)], [step_facts("length", 0, **other)]
        return figures(compared(documents, *sides)).filters[0].changed

    assert not changed(seconds=9.0, digest="other", docs_in=5, thresholds={"score": (1.0,)})
    different = (
        {"version": 2},
        {"config": {"a": 1}},
        {"code": "x"},
        {"score_digest": "x"},
        {"thresholds": {"score": [2.0]}},
    )
    assert all(changed(**one) for one in different)
    only_new = figures(compared(documents, [], [step_facts("length", 0)])).filters[0]
    assert (only_new.changed, only_new.on_base, only_new.on_new) == (True, False, True)


# -- labels ------------------------------------------------------------------------------------------------------


def test_labels_say_how_good_a_change_is(both: tuple[list[Document], Figures]) -> None:
    """Of what leaves, how much is junk; of what comes in, how much is good."""
    documents = [one for one in both[0] if one["label"]]
    labelled = both[1].labelled
    if not documents:
        assert labelled is None
        return
    assert labelled is not None
    assert labelled.labelled == len(documents)
    for part, moves, is_good in (
        (labelled.leaves_good, leaves, True),
        (labelled.leaves_junk, leaves, False),
        (labelled.comes_in_good, comes, True),
        (labelled.comes_in_junk, comes, False),
    ):

        def chosen(one: Document, moves: Chosen = moves, is_good: bool = is_good) -> bool:
            return moves(one) and (one["label"] == "good") == is_good

        assert part.count == count(documents, chosen)
        share = ratio(documents, chosen, moves)
        assert (part.share is None and share is None) or part.share.value == pytest.approx(share)


def test_without_labels_nothing_is_said_of_them() -> None:
    """None, instead of a table of nothing."""
    documents = [{**one, "label": None} for one in documents_of(30, 9)]
    found = figures(compared(documents))
    assert found.labelled is None
    assert found.labels == ()


# -- cost --------------------------------------------------------------------------------------------------------


def test_costs_stand_side_by_side() -> None:
    """Milliseconds a document that was scored; nothing where scores were saved ones; times where both measured enough."""
    documents = documents_of(30, 10)
    base = [
        step_facts("length", 0, seconds=1.0, scored=1000, docs_in=1000),
        step_facts("rules", 1, seconds=0.1, scored=0, docs_in=900),
        step_facts("safety", 2, seconds=3.0, scored=None, docs_in=600),
    ]
    new = [
        step_facts("length", 0, seconds=3.0, scored=500, docs_in=1000),
        step_facts("rules", 1, scored=900, docs_in=900),
    ]
    lines = {line.name: line for line in figures(compared(documents, base, new)).costs}
    length, rules, safety = (lines[name] for name in STEPS)
    assert (length.before.ms_per_document, length.after.ms_per_document, length.times) == (1.0, 6.0, 6.0)
    assert (rules.before.ms_per_document, rules.before.from_saved_scores, rules.times) == (None, True, None)
    assert (safety.before.ms_per_document, safety.before.from_saved_scores, safety.after) == (5.0, False, None)
    busy = [step_facts("length", 0, seconds=9.0, cpu_seconds=2.0, scored=1000)]
    at_rest = [step_facts("length", 0, seconds=1.0, cpu_seconds=1.0, scored=1000)]
    (line,) = figures(compared(documents, at_rest, busy)).costs
    assert line.times == 2.0, (
        "of the processor where both sides tell it: another job on the machine makes no filter slower"
    )
    silent = [step_facts("length", 0, seconds=0.01, scored=None)]
    assert figures(compared(documents, silent, at_rest)).costs[0].times is None, "its scores may have been taken over"
    few = [step_facts("length", 0, scored=19)]
    assert figures(compared(documents, few, few)).costs[0].times is None
    none = [step_facts("length", 0, docs_in=0, scored=0, seconds=0.0)]
    line = figures(compared(documents, none, none)).costs[0]
    assert line.before is not None
    assert not line.before.from_saved_scores


# -- edges -------------------------------------------------------------------------------------------------------


def test_the_same_on_both_sides_moves_nothing() -> None:
    """All moves are 0, each with an upper bound that is not."""
    documents = [{**one, "after": one["before"]} for one in documents_of(200, 11)]
    found = figures(compared(documents), Corpus(1e9, "tokens"))
    for group in (found.totals, *found.languages, *found.sources, *found.lengths, *found.labels):
        for measure in MEASURES:
            moves = group.moves(measure)
            assert (moves.leaves.count, moves.comes_in.count) == (0, 0)
            assert moves.moved is None or (moves.moved.value, moves.moved.low) == (0, 0)
            assert moves.moved is None or moves.moved.high > 0
            assert moves.net is None or moves.net.low < 0 < moves.net.high
    assert found.rules.notes == ()
    assert all(line.difference is not None and line.difference.value == 0 for line in found.reasons)


def test_an_empty_sample_has_figures() -> None:
    """Zeros and no shares, instead of a division by nothing."""
    found = figures(compared([]), Corpus(1e9, "tokens"))
    assert (found.totals.sample, found.totals.documents.moved, found.languages, found.extrapolation) == (
        0,
        None,
        (),
        None,
    )
    assert [line.before.share for line in found.reasons] == [None] * 5


def test_a_base_that_keeps_nothing_has_no_shares() -> None:
    """What comes in is counted all the same."""
    documents = [{**one, "before": 1} for one in documents_of(50, 12)]
    found = figures(compared(documents), Corpus(1e9, "documents"))
    assert found.totals.documents.comes_in.count == sum(after(one) for one in documents) > 0
    assert found.totals.documents.comes_in.share is None
    assert found.extrapolation is None


def test_documents_without_a_language_are_a_group() -> None:
    """Nothing vanishes from the table of languages."""
    documents = documents_of(90, 13, languages=("eng", NOT_JUDGED))
    groups = figures(compared(documents)).languages
    assert sum(group.sample for group in groups) == 90
    assert NOT_JUDGED in {group.name for group in groups}


@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_documents_is_none_of_its_business(seed: int) -> None:
    """The very same numbers, to the last bit."""
    documents = documents_of(150, seed)
    shuffled = list(documents)
    random.Random(seed).shuffle(shuffled)
    one, other = (figures(compared(rows, population=900), Corpus(3e12, "tokens")) for rows in (documents, shuffled))
    assert one == other


def test_numbers_of_outcomes_are_names_only() -> None:
    """Another order of outcomes behind KEPT gives the same figures."""
    documents = documents_of(150, 14)
    outcomes = (KEPT, *reversed(OUTCOMES[1:]))
    place = [outcomes.index(outcome) for outcome in OUTCOMES]
    moved = [{**one, "before": place[one["before"]], "after": place[one["after"]]} for one in documents]
    steps = compared(documents)
    other = replace(compared(moved, outcomes=outcomes), base=steps.base, new=steps.new)
    assert figures(other) == figures(steps)
