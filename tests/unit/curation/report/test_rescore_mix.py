"""Suggested mixing weights: bounded, no more than the data bear, and in a form that `pack.mix` takes."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from curation.pack_config import MixConfig
from curation.report.rescore_mix import MOST, bounded, suggest
from tokenization.packing.mix import Mix


def groups(rows: dict[str, tuple[float, float | None]], *, judged: int = 1000, error: float = 0.001) -> dict[str, Any]:
    """Distributions with tokens and mean loss of each source."""
    found = [
        {
            "name": name,
            "tokens": n,
            "judged": judged,
            "mean_loss": loss,
            "mean_loss_error": None if loss is None else error,
        }
        for name, (n, loss) in rows.items()
    ]
    return {kind: {"groups": found, "rest": None} for kind in ("source", "language")}


@given(st.lists(st.tuples(st.floats(1e-6, 1), st.floats(-7, 7)), min_size=1, max_size=30))
def test_no_share_more_than_doubles_or_halves(pairs: list[tuple[float, float]]) -> None:
    """Whatever the losses; and the shares add up to what they did."""
    import math

    shares = [share for share, _ in pairs]
    found = bounded(shares, [math.exp(x) for _, x in pairs])
    assert sum(found) == pytest.approx(sum(shares), rel=1e-9)
    for before, after in zip(shares, found, strict=True):
        assert before / MOST * (1 - 1e-9) <= after <= before * MOST * (1 + 1e-9)


def test_what_is_learned_faster_gets_more() -> None:
    """In order of how far the loss fell; one step of the gradient, by the formula."""
    then = groups({"/d/fast": (50, 4.0), "/d/slow": (50, 4.0)})
    now = groups({"/d/fast": (50, 3.5), "/d/slow": (50, 3.9)})
    found = suggest(then, now, "source", "file")
    shares = {row["name"]: row["suggested"] for row in found["groups"]}
    assert shares["/d/fast"] / shares["/d/slow"] == pytest.approx(2.718281828**0.4, rel=1e-4)
    assert sum(shares.values()) == pytest.approx(1, abs=1e-5)


def test_differences_within_their_error_change_nothing() -> None:
    then = groups({"a": (30, 4.0), "b": (70, 4.0)}, error=0.2)
    now = groups({"a": (30, 3.5), "b": (70, 3.8)}, error=0.2)
    found = suggest(then, now, "language", "file")
    assert [row["suggested"] for row in found["groups"]] == pytest.approx([0.3, 0.7], abs=1e-6)
    assert found["yaml"] == ""
    assert "stay as they are" in found["yaml_why_not"]


@pytest.mark.parametrize(
    ("then", "now", "why"),
    [
        (None, groups({"a": (1, 2.0), "b": (1, 2.0)}), "no former re-score"),
        (groups({"a": (1, 3.0)}), groups({"a": (1, 2.0)}), "only one source"),
        (groups({"x": (1, 3.0), "y": (1, 3.0)}), groups({"a": (1, 2.0), "b": (1, 2.0)}), "none had 100"),
        (groups({"a": (1, 3.0), "b": (1, 3.0)}, judged=99), groups({"a": (1, 2.0), "b": (1, 2.0)}), "none had 100"),
        (groups({"a": (1, None), "b": (1, 3.0)}), groups({"a": (1, 2.0), "b": (1, 2.0)}), "1 had 100"),
        (groups({}), groups({}), "Nothing was judged"),
        (groups({}), groups({"a": (0, None)}), "Nothing was judged"),
    ],
)
def test_where_nobody_knows_nothing_is_suggested(then: Any, now: Any, why: str) -> None:
    found = suggest(then, now, "source", "file")
    assert why in found["why_not"]
    assert found["yaml"] == ""
    assert all(row["suggested"] is None for row in found["groups"])


HOSTILE = [
    "/d/a[1]*.jsonl",
    "/d/new\nline",
    "/d/'quote\": {x}",
    "/d/\u202ebidi",
    "# no comment",
    "/d/*",
    "!!python/x",
    "/d/a?",
    "~",
    "",
]


@pytest.mark.parametrize("source_by", ["file", "folder"])
def test_the_pasted_text_means_these_groups(source_by: str) -> None:
    """Read as YAML it is a MixConfig, and every source, whatever its name, falls to the pattern with its own share."""
    names = [*HOSTILE, *(f"/d/{n}" for n in range(60)), "/d/1/deeper"]
    then = groups({name: (n + 1, 4.0) for n, name in enumerate(names)})
    now = groups({name: (n + 1, 3.0 + n / 100) for n, name in enumerate(names)})
    found = suggest(then, now, "source", source_by)
    config = MixConfig.model_validate(yaml.safe_load(found["yaml"])["pack"]["mix"])
    mix = Mix(config.by, weights=tuple(config.weights.items()))
    ends = "/page.jsonl" if source_by == "folder" else ""
    wanted: dict[int, float] = {}
    for row in found["groups"]:
        place = int(mix.groups_of([row["name"] + ends])[0])
        wanted[place] = wanted.get(place, 0.0) + row["suggested"]
    assert [weight for _, weight in mix.weights] == pytest.approx(
        [wanted[n] for n in range(len(mix.weights))], abs=1e-5
    )
    assert mix.weights[-1][0] == "*"


def test_domains_cannot_be_pasted_and_scripts_are_the_others() -> None:
    rows = {"eng_Latn": (5, 4.0), "und_Latn": (3, 4.0), "und": (1, 4.0)}
    then, now = groups(rows), groups({**rows, "eng_Latn": (5, 3.0)})
    assert suggest(then, now, "source", "domain")["yaml_why_not"]
    found = yaml.safe_load(suggest(then, now, "language", "domain")["yaml"])["pack"]["mix"]
    assert found["by"] == "language"
    assert list(found["weights"]) == ["eng_Latn", "*"]
