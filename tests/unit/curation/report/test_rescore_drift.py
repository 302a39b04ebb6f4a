"""Drift between two re-scores: the model's progress is none, a changed crawl is, and chance is called chance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.report.rescore_drift import chance, drift, stability
from curation.report.rescore_spread import BINS, QUANTILES


def group(name: str, values: Any, documents: int | None = None) -> dict[str, Any]:
    """A group as facts.json holds it."""
    values = np.asarray(values, np.float64)
    ranked = np.sort(values)
    quantiles = (
        [float(ranked[max(0, int(np.ceil(q / 100 * len(ranked))) - 1)]) for q in QUANTILES] if len(ranked) else []
    )
    middle = quantiles[2] if quantiles else 0.0
    counts = np.bincount(BINS["centred"].of(values - middle), minlength=BINS["centred"].n)
    return {
        "name": name, "documents": len(values) if documents is None else documents, "judged": len(values),
        "bits_per_byte": {"quantiles": quantiles, "centred": {"first": 0, "counts": counts.tolist()}},
    }  # fmt: skip


def crawl(languages: Mapping[str, Any], rest: Any = None) -> dict[str, Any]:
    groups = [group(name, values) for name, values in languages.items()]
    return {"language": {"groups": groups, "rest": rest}, "source": {"groups": groups, "rest": rest}}


def normal(n: int, centre: float, width: float = 0.4, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(centre, width, n)


def rows(found: dict[str, Any], kind: str = "language") -> dict[str, Any]:
    return {row["name"]: row for row in found[kind]["groups"]}


def test_what_all_have_in_common_is_progress() -> None:
    """Three languages fall alike, and one half as much again: nothing drifts but that one's level, and no shape."""
    then = crawl({name: normal(2000, 2.0, seed=n) for n, name in enumerate("abcd")})
    now = crawl({name: normal(2000, 1.4 if name == "d" else 1.6, seed=9 + n) for n, name in enumerate("abcd")})
    found = drift(then, now)
    assert found["progress"] == pytest.approx(0.4, abs=0.05)
    assert {row["verdict"] for row in rows(found).values()} == {"steady"}
    assert rows(found)["d"]["own_shift"] == pytest.approx(-0.2, abs=0.06)
    assert abs(rows(found)["a"]["own_shift"]) < 0.05
    assert found["language"]["shares"] == pytest.approx(0, abs=1e-9)


def test_a_crawl_of_other_languages_is_no_progress() -> None:
    """The whole median falls because an easy language grew; within languages nothing moved."""
    hard, easy = normal(4000, 3.0), normal(4000, 1.0)
    found = drift(crawl({"hard": hard, "easy": easy[:500]}), crawl({"hard": hard[:500], "easy": easy}))
    assert found["progress"] == pytest.approx(0, abs=0.05)
    assert found["language"]["shares"] > 0.25


def test_another_shape_is_drift_and_a_small_sample_is_not() -> None:
    """Half of the documents gone noisy is strong; 120 documents of the same distribution are chance."""
    mixed = np.concatenate([normal(1000, 1.5), normal(1000, 3.5, seed=4)])
    found = rows(
        drift(crawl({"a": normal(2000, 2.0), "b": normal(2000, 2.0)}), crawl({"a": mixed, "b": normal(2000, 1.8)}))
    )
    assert found["a"]["verdict"] == "strong"
    assert found["b"]["verdict"] == "steady"
    verdicts = [
        rows(drift(crawl({"a": normal(120, 2, seed=s)}), crawl({"a": normal(120, 2, seed=s + 500)})))["a"]["verdict"]
        for s in range(100)
    ]
    assert verdicts.count("strong") + verdicts.count("moderate") <= 2
    assert verdicts.count("chance") > 5


@pytest.mark.parametrize(
    ("then", "now", "verdict"),
    [
        ({"a": normal(500, 2)}, {"b": normal(500, 2)}, "new"),
        ({"a": normal(500, 2), "b": []}, {"b": normal(500, 2)}, "too few"),
        ({"b": normal(99, 2)}, {"b": normal(500, 2)}, "too few"),
        ({"b": np.full(500, 2.0)}, {"b": np.full(500, 1.0)}, "steady"),
    ],
)
def test_what_cannot_be_compared_is_said(then: Any, now: Any, verdict: str) -> None:
    """With one language, progress and a change of the crawl are one number, and no shift is called the group's own."""
    found = drift(crawl(then), crawl(now))
    assert rows(found)["b"]["verdict"] == verdict
    assert rows(found)["b"]["own_shift"] is None
    assert found["progress_groups"] <= 1


def test_a_name_beyond_the_largest_is_not_called_new() -> None:
    found = drift(crawl({"a": normal(500, 2)}, {"documents": 90, "groups": 9}), crawl({"b": normal(500, 2)}))
    assert (rows(found)["b"]["verdict"], rows(found)["b"]["share_then"]) == ("not told apart", None)
    assert rows(found)["a"]["verdict"] == "gone"


def test_nothing_then_or_now() -> None:
    empty = {kind: {"groups": [], "rest": None} for kind in ("language", "source")}
    assert drift(empty, empty)["progress"] is None
    assert drift(empty, crawl({"a": normal(500, 2)}))["language"]["shares"] is None


counts = st.lists(st.integers(0, 10_000), min_size=3, max_size=3).map(lambda one: np.array(one, np.float64))


@given(counts, counts)
def test_the_index_is_a_distance(then: Any, now: Any) -> None:
    """Never negative, none between equal shares, the same in both directions up to the half documents that are added."""
    assert stability(then, now) >= -1e-12
    assert stability(then, then) == pytest.approx(0, abs=1e-12)
    assert stability(then, now) == pytest.approx(stability(now, then))


def test_chance_is_that_of_chi_square() -> None:
    """The 99.9th percentile of nine degrees of freedom is 27.877 (any table)."""
    assert chance(10, 1000, 1000) == pytest.approx(27.877 / 500, rel=0.01)
