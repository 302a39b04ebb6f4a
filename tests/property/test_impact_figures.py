"""Figures of a change: laws that hold for any documents whatever."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from curation.impact.counting.figure_types import Corpus, Estimate, Figures, Group, Part
from curation.impact.counting.figures import figures
from tests.impact_oracle import MEASURES, OUTCOMES, Document, compared

SOURCE = st.sampled_from("abc")


@st.composite
def documents(draw: st.DrawFn) -> list[Document]:
    """Up to forty documents, in strata with any weights; equal ones are frequent."""
    weights = draw(st.lists(st.sampled_from([1.0, 1.0, 0.25, 3.7, 1e6]), min_size=4, max_size=4))
    rows: list[tuple[Any, ...]] = draw(
        st.lists(
            st.tuples(
                st.integers(0, 3), st.integers(0, len(OUTCOMES) - 1), st.integers(0, len(OUTCOMES) - 1), SOURCE, SOURCE,
                st.sampled_from([0, 1, 7, 90, 5000, 10**12]), st.sampled_from(["good", "junk", None]),
            ),
            max_size=40,
        )
    )  # fmt: skip
    return [
        {
            "doc_id": place.to_bytes(16, "big"), "shard": 0, "row": place, "id": str(place), "source": source,
            "language": language, "length": "short" if characters < 50 else "long", "label": label,
            "characters": characters, "tokens": characters // 3, "stratum": stratum, "weight": weights[stratum],
            "before": before, "after": after,
        }
        for place, (stratum, before, after, source, language, characters, label) in enumerate(rows)
    ]  # fmt: skip


def told(rows: list[Document], size: Corpus | None = None) -> Figures:
    """Figures with steps that do not depend on the documents' order."""
    return figures(compared(rows), size)


@given(documents(), st.randoms(use_true_random=False))
@settings(max_examples=15, deadline=None)
def test_order_does_not_matter(rows: list[Document], rng: Any) -> None:
    """However documents are shuffled, and however shards are cut, every number is the same to the last bit."""
    shuffled = list(rows)
    rng.shuffle(shuffled)
    moved = [{**one, "shard": place % 3, "row": place} for place, one in enumerate(shuffled)]
    assert told(moved, Corpus(1e12, "tokens")) == told(rows, Corpus(1e12, "tokens"))


@given(documents())
@settings(max_examples=15, deadline=None)
def test_nothing_is_lost_between_tables(rows: list[Document]) -> None:
    """Languages, sources and lengths each add up to all; so do filters with what is kept; and kept + dropped = all."""
    found = told(rows)
    for groups in (found.languages, found.sources, found.lengths):
        assert sum(group.sample for group in groups) == found.totals.sample == len(rows)
        for measure in MEASURES:
            for name in ("before", "leaves", "comes_in", "after"):
                parts = [getattr(group.moves(measure), name) for group in groups]
                whole: Part = getattr(found.totals.moves(measure), name)
                assert sum(part.count for part in parts) == whole.count
                assert math.isclose(sum(part.amount for part in parts), whole.amount, rel_tol=1e-9, abs_tol=1e-9)
    totals = found.totals.documents
    assert sum(line.drops_before.count for line in found.filters) + totals.before.count == len(rows)
    assert sum(line.drops_after.count for line in found.filters) + totals.after.count == len(rows)
    for line in found.filters:
        reasons = [one for one in found.reasons if one.step == line.name]
        assert sum(one.before.count for one in reasons) == line.drops_before.count
        assert sum(one.after.count for one in reasons) == line.drops_after.count
        changes = sum(part.count for part in line.taken_from.values()) + line.leaves["documents"].count
        given = sum(part.count for part in line.given_to.values()) + line.comes_in["documents"].count
        assert line.drops_after.count - line.drops_before.count == changes - given
    assert found.totals.changes_reason.count == sum(
        one["before"] != one["after"] and 0 not in (one["before"], one["after"]) for one in rows
    )


@given(documents())
@settings(max_examples=15, deadline=None)
def test_the_other_way_round_is_the_mirror(rows: list[Document]) -> None:
    """With the sides changed what left comes in, and what took from others gives to them."""
    mirrored = told([{**one, "before": one["after"], "after": one["before"]} for one in rows])
    found = told(rows)
    for measure in MEASURES:
        a, b = found.totals.moves(measure), mirrored.totals.moves(measure)
        assert (a.leaves.count, a.comes_in.count) == (b.comes_in.count, b.leaves.count)
        same(a.before, b.after)
        same(a.after, b.before)
    for line, other_line in zip(found.filters, mirrored.filters, strict=True):
        assert set(line.taken_from) == set(other_line.given_to)
        for name, part in line.taken_from.items():
            same(part, other_line.given_to[name])
        same(line.drops_before, other_line.drops_after)
    for reason, other_reason in zip(found.reasons, mirrored.reasons, strict=True):
        assert (reason.difference is None) == (other_reason.difference is None)
        if reason.difference is not None and other_reason.difference is not None:
            assert math.isclose(reason.difference.value, -other_reason.difference.value, abs_tol=1e-12)
            assert math.isclose(reason.difference.low, -other_reason.difference.high, rel_tol=1e-6, abs_tol=1e-9)


def same(one: Part, other: Part) -> None:
    """But for what sums in another order differ by."""
    assert one.count == other.count
    assert math.isclose(one.amount, other.amount, rel_tol=1e-12)
    assert (one.share is None) == (other.share is None)
    if one.share is not None and other.share is not None:
        for name in ("value", "low", "high"):
            assert math.isclose(getattr(one.share, name), getattr(other.share, name), rel_tol=1e-6, abs_tol=1e-9)


@given(documents(), st.sampled_from([None, Corpus(1e12, "tokens"), Corpus(1e9, "documents")]))
@settings(max_examples=15, deadline=None)
def test_every_interval_holds_what_was_found(rows: list[Document], size: Corpus | None) -> None:
    """Whatever the weights and lengths: ordered, finite, shares between 0 and 1."""
    found = told(rows, size)
    for group in (found.totals, *found.languages, *found.sources, *found.lengths, *found.labels):
        for measure in MEASURES:
            check(group, measure)
    if found.extrapolation is not None:
        for scaled in (*found.extrapolation.scaled.values(), *found.extrapolation.languages.values()):
            for one in (scaled.before, scaled.leaves, scaled.comes_in, scaled.after):
                assert 0 <= one.low <= one.value <= one.high < math.inf


def check(group: Group, measure: str) -> None:
    moves = group.moves(measure)
    for one in (moves.before.share, moves.leaves.share, moves.after.share):
        assert one is None or 0 <= one.low <= one.value <= one.high <= 1 + 1e-12
    for one in (moves.comes_in.share, moves.moved):
        assert one is None or 0 <= one.low <= one.value <= one.high < math.inf
    net: Estimate | None = moves.net
    assert net is None or -math.inf < net.low <= net.value <= net.high < math.inf


@given(documents(), st.sampled_from([2.0, 0.125, 1024.0]))
@settings(max_examples=15, deadline=None)
def test_weights_are_relative(rows: list[Document], factor: float) -> None:
    """A sample of a corpus twice as large says the same of shares."""
    found = told(rows)
    other = told([{**one, "weight": one["weight"] * factor} for one in rows])
    if found.weighted and other.weighted:
        for group, again in zip((found.totals, *found.languages), (other.totals, *other.languages), strict=True):
            for measure in MEASURES:
                a, b = group.moves(measure), again.moves(measure)
                assert (a.moved, a.net, a.leaves.share) == (b.moved, b.net, b.leaves.share)
                assert b.leaves.amount == a.leaves.amount * factor


@given(documents())
@settings(max_examples=15, deadline=None)
def test_documents_added_that_do_not_move_make_shares_smaller(rows: list[Document]) -> None:
    """Of a sample that is not drawn: more documents that stay never raise the share that leaves, nor its upper bound."""
    plain = [{**one, "weight": 1.0, "stratum": 0} for one in rows]
    stay = {**documents_template(), "before": 0, "after": 0}
    more = [*plain, *({**stay, "doc_id": (1000 + place).to_bytes(16, "big")} for place in range(5))]
    before, after = told(plain).totals.documents.leaves.share, told(more).totals.documents.leaves.share
    assert after is not None
    assert before is None or (after.value <= before.value and after.high <= before.high + 1e-12)


def documents_template() -> Document:
    return {
        "shard": 0, "row": 0, "id": "x", "source": "a", "language": "a", "length": "short", "label": None, "characters": 10,
        "tokens": 3, "stratum": 0, "weight": 1.0,
    }  # fmt: skip


def test_a_comparison_is_not_changed() -> None:
    """Figures only read."""
    comparison = compared([{**documents_template(), "doc_id": bytes(16), "before": 0, "after": 1}])
    same = replace(comparison)
    figures(comparison)
    assert comparison.documents.equals(same.documents)
