"""Distributions of a re-score: what counts as judged, what a sampled row stands for, and in which bins."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.report.rescore_spread import BINS, MAX_GROUPS, dense, scored, spreads
from curation.report.rescore_threshold import read_threshold
from tests.rescore_fake import Page, Score, make_run, make_threshold


@pytest.fixture(autouse=True)
def _fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.fsync", lambda descriptor: None)


def level(page: Page, number: int) -> Score:
    """A hundred levels, from 1 to 2 bits per byte."""
    bits = 1 + (number % 100) / 100
    return bits, bits * 3, 200


def spread_of(root: Path, pages: list[Page], score: Any = level, **options: Any) -> dict[str, Any]:
    make_run(root, "crawl", pages, shard_rows=options.get("shard_rows", 1000))
    folder = make_threshold(root, "gpt", 10**10, [("crawl", pages)], score, **options)
    return spreads(scored(read_threshold(folder)))


def test_what_is_judged_and_where_it_lies(tmp_path: Path) -> None:
    """Null scores, infinite ones, and those of few tokens count as read only; quantiles are scores that occur."""
    odd: list[Score] = [None, (float("inf"), 1.0, 99), (float("nan"), 1.0, 99), (1.0, float("nan"), 99), (9.0, 9.0, 49)]
    pages = [Page(f"page {n}") for n in range(105)]
    found = spread_of(tmp_path, pages, lambda page, n: odd[n - 100] if n >= 100 else level(page, n))["all"]
    assert (found["documents"], found["read"], found["judged"]) == (105, 105, 100)
    assert found["bits_per_byte"]["quantiles"] == [1.04, 1.24, 1.49, 1.74, 1.94]
    counts = dense(BINS["bits_per_byte"], found["bits_per_byte"]["counts"])
    assert counts.sum() == 100
    assert np.flatnonzero(counts).tolist() == list(range(20, 40))
    assert dense(BINS["centred"], found["bits_per_byte"]["centred"]).sum() == 100


def test_a_sampled_stratum_weighs_what_it_holds(tmp_path: Path) -> None:
    """Of 90 easy pages a tenth was read, of 10 hard ones all: the median is that of the easy ones, shares are of the crawl."""
    pages = [Page(f"p{n}", source="/d/easy" if n < 90 else "/d/hard") for n in range(100)]
    found = spread_of(
        tmp_path, pages, lambda page, n: (1.0 if n < 90 else 5.0, 2.0, 99), read=lambda page, n: n >= 90 or n % 10 == 0
    )
    assert found["all"]["bits_per_byte"]["quantiles"] == [1, 1, 1, 1, 5]
    assert [(one["name"], one["documents"], one["read"]) for one in found["source"]["groups"]] == [
        ("/d/easy", 90, 9),
        ("/d/hard", 10, 10),
    ]
    assert found["all"]["tokens"] == 9900


def test_a_source_of_which_nothing_was_read_is_there(tmp_path: Path) -> None:
    """With its documents: the shares of the crawl are those of the crawl."""
    pages = [Page(f"p{n}", source="/d/read" if n < 60 else "/d/unread") for n in range(100)]
    found = spread_of(tmp_path, pages, read=lambda page, n: n < 60)["source"]["groups"]
    assert [(one["name"], one["documents"], one["read"]) for one in found] == [
        ("/d/read", 60, 60),
        ("/d/unread", 40, 0),
    ]
    assert found[1]["bits_per_byte"]["quantiles"] == []


def test_the_smaller_groups_are_one(tmp_path: Path) -> None:
    """Of 2,000 sources the largest are told apart; nothing of the rest is lost."""
    pages = [Page(f"p{n}", source=f"/d/{n % 2000:04d}") for n in range(2400)]
    found = spread_of(tmp_path, pages)["source"]
    assert len(found["groups"]) == MAX_GROUPS
    assert found["rest"]["groups"] == 2000 - MAX_GROUPS
    for name in ("documents", "judged", "tokens"):
        assert sum(one[name] for one in [*found["groups"], found["rest"]]) == {"tokens": 480_000}.get(name, 2400)


def test_shards_and_runs_do_not_show(tmp_path: Path) -> None:
    """The same documents cut into other shards give the same bytes of facts."""
    pages = [Page(f"p{n}", ("eng_Latn", "zho_Hans")[n % 2], f"/d/{n % 3}") for n in range(700)]
    read = {"read": lambda page, n: n % 7 > 0}
    one = spread_of(tmp_path / "a", pages, shard_rows=1000, **read)
    other = spread_of(tmp_path / "b", pages, shard_rows=100, **read)
    assert json.dumps(one["language"]) == json.dumps(other["language"])
    assert json.dumps(one["all"]) == json.dumps(other["all"])


def test_mean_loss_is_of_what_stays(tmp_path: Path) -> None:
    """Documents that were chosen do not count; a token is a token, in long documents and short ones."""
    pages = [Page(f"p{n}") for n in range(200)]
    found = spread_of(
        tmp_path,
        pages,
        lambda page, n: (9.0, 99.0, 100) if n == 5 else (1.0, 2.0 if n % 2 else 3.0, 300 if n % 2 else 100),
    )
    assert found["all"]["chosen_high"] == 1
    assert found["all"]["mean_loss"] == pytest.approx((99 * 300 * 2 + 100 * 100 * 3) / (99 * 300 + 100 * 100), rel=1e-5)


def test_nothing_at_all(tmp_path: Path) -> None:
    folder = make_threshold(tmp_path, "gpt", 10**10, [], level, state="no_documents", version=None)
    found = spreads(scored(read_threshold(folder)))
    assert found["all"]["judged"] == 0
    assert found["all"]["bits_per_byte"]["quantiles"] == []
    assert found["language"] == {"groups": [], "rest": None}


@given(st.lists(st.floats(-1e300, 1e300), max_size=50))
def test_every_finite_score_has_a_bin(values: list[float]) -> None:
    for bins in BINS.values():
        places = bins.of(np.array(values))
        assert ((places >= 0) & (places < bins.n)).all()
