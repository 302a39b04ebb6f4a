"""The choice of low scorers by example: limits of languages, groups that are too small, and what a guard leaves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pydantic import ValidationError

from curation.rescore.choose import HIGH, LOW, choose
from curation.rescore.config import ChooseConfig, SampleConfig, ScoreConfig


def scores(*groups: tuple[str, str, list[float]], copy: dict[int, int] | None = None) -> pa.Table:
    """Documents of languages and sources, all of 60 tokens; `loss` is twice the bits per byte; copy: row of whose text."""
    rows = [(language, source, value) for language, source, values in groups for value in values]
    values = [value for _, _, value in rows]
    return pa.table(
        {
            "doc_id": pa.array([n.to_bytes(16, "big") for n in range(len(rows))], pa.binary(16)),
            "text_id": pa.array([(copy or {}).get(n, n).to_bytes(16, "big") for n in range(len(rows))], pa.binary(16)),
            "language": pa.array([language for language, _, _ in rows], pa.string()),
            "source": pa.array([source for _, source, _ in rows], pa.string()),
            "tokens": pa.array([60] * len(rows), pa.int64()),
            "bits_per_byte": pa.array(values, pa.float64()),
            "loss": pa.array([2 * value for value in values], pa.float64()),
        }
    )


def config(**settings: Any) -> ChooseConfig:
    return ChooseConfig.model_validate({"high": {}, "low": {}, "min_documents": 10, **settings})


HUNDRED = [float(n) for n in range(100)]


@pytest.mark.parametrize(
    ("settings", "high", "low"),
    [
        ({"high": {"percentile": 99}, "low": {"percentile": 1}}, {99.0}, {0.0}),
        ({"high": {"percentile": 100}, "low": {"percentile": 0}}, set(), set()),
        ({"high": {"limit": 97.0}}, {98.0, 99.0}, set()),
        ({"high": {"limit": 97.0}, "score": "loss"}, {99.0, 98.0, 97.0, 96.0, 95.0}, set()),
        ({"high": {"percentile": 99, "limit": 150.0}}, set(), set()),
        ({"low": {"percentile": 3, "limit": 1.0}}, set(), {0.0}),
        ({"high": {"limit": 10.0}, "max_share": 0.02}, {98.0, 99.0}, set()),
        ({"languages": {"eng": {"high": {"limit": 98.0}, "low": {}}}}, {99.0}, set()),
        ({"languages": {"zho": {"high": {"limit": 98.0}, "low": {}}}}, set(), set()),
        ({"min_tokens": 61, "high": {"limit": 10.0}}, set(), set()),
        ({"min_documents": 101, "high": {"limit": 10.0}}, set(), set()),
    ],
)
def test_ends(settings: dict[str, Any], high: set[float], low: set[float]) -> None:
    """Of the scores 0 to 99 of one language and source."""
    chosen = choose(scores(("eng_Latn", "a", HUNDRED)), config(**settings))
    assert set(np.array(HUNDRED)[chosen.side == HIGH]) == high
    assert set(np.array(HUNDRED)[chosen.side == LOW]) == low


def test_small_groups_give_nothing_but_are_told() -> None:
    """Nine documents of a source are too few by themselves; with the rest of their language they are judged."""
    table = scores(("eng_Latn", "a", HUNDRED), ("eng_Latn", "b", [500.0] * 9))
    settings = {"high": {"limit": 200.0}, "max_share": 1}
    alone = choose(table, config(**settings, group="language_and_source"))
    assert not alone.side.any()
    assert alone.groups.column("too_few").to_pylist() == [False, True]
    together = choose(table, config(**settings))
    assert (together.side != 0).sum() == 9


def test_a_bad_source_is_held_up_at_its_share() -> None:
    """A source that is all noise loses max_share of it, not all; the table says how much was held back."""
    table = scores(("eng_Latn", "a", HUNDRED), ("eng_Latn", "b", [500.0 + n for n in range(100)]))
    chosen = choose(table, config(high={"limit": 200.0}, max_share=0.1))
    assert (chosen.side != 0).sum() == 10
    assert set(np.flatnonzero(chosen.side)) == set(range(190, 200))
    row = chosen.groups.to_pylist()[1]
    assert (row["source"], row["high_candidates"], row["high_chosen"], row["high_held_back"]) == ("b", 100, 10, 90)


def test_copies_go_together_or_stay() -> None:
    """Noise of a has copies in b: 5 may go of each; the sixth text of b stays in a, too, and one of a alone takes its place."""
    noise = [500.0 + n for n in range(10)]
    table = scores(
        ("eng_Latn", "a", [*HUNDRED[:90], *noise]), ("eng_Latn", "b", [*HUNDRED[:92], *noise[2:]]),
        copy={192 + n: 92 + n for n in range(8)},
    )  # fmt: skip
    chosen = choose(table, config(high={"limit": 200.0}, max_share=0.05))
    assert set(np.flatnonzero(chosen.side)) == {*range(95, 100), *range(195, 200)}
    roomy = choose(table, config(high={"limit": 506.5}, max_share=0.05))
    assert set(np.flatnonzero(roomy.side)) == {97, 98, 99, 197, 198, 199}


def test_a_copy_in_a_source_without_room_holds_its_text_back() -> None:
    """Nothing of a source of ten may go at a twentieth, so neither may its text elsewhere; the next farthest go instead."""
    table = scores(
        ("eng_Latn", "a", [*HUNDRED, 500.0, 501.0]), ("eng_Latn", "b", [*HUNDRED[:9], 501.0]), copy={111: 101}
    )
    chosen = choose(table, config(high={"limit": 200.0}, max_share=0.05))
    assert set(np.flatnonzero(chosen.side)) == {100}
    assert [row["high_held_back"] for row in chosen.groups.to_pylist()] == [1, 1]


def test_a_copy_goes_with_its_text_out_of_a_group_that_would_keep_it() -> None:
    """The same text is noise in one source and normal in another: it is counted where it goes."""
    table = scores(("eng_Latn", "a", [*HUNDRED[:99], 500.0]), ("eng_Latn", "b", [500.0] * 100), copy={150: 99})
    chosen = choose(table, config(high={"percentile": 99}, group="language_and_source", max_share=0.05))
    assert set(np.flatnonzero(chosen.side)) == {99, 150}
    assert [row["high_chosen"] for row in chosen.groups.to_pylist()] == [1, 1]


def test_defaults_take_no_typical_text() -> None:
    """Evenly spread scores have nothing two spreads below their median, so the low end is left alone."""
    chosen = choose(scores(("eng_Latn", "a", [*HUNDRED, *HUNDRED])), ChooseConfig())
    assert not (chosen.side == LOW).any()


def test_nothing_of_nothing() -> None:
    """No documents, no groups, no choice."""
    chosen = choose(scores(), ChooseConfig())
    assert (len(chosen.side), chosen.groups.num_rows, chosen.counts()["judged"]) == (0, 0, 0)


@pytest.mark.parametrize(
    ("kind", "settings", "words"),
    [
        (ChooseConfig, {"high": {"percentile": 1}, "low": {"percentile": 2}}, "must not be more than high"),
        (ChooseConfig, {"max_share": 0}, "max_share"),
        (ChooseConfig, {"languages": {"zho": {}, "zh": {}}}, "stands twice"),
        (ScoreConfig, {"stride": 5}, "stride needs"),
        (ScoreConfig, {"window": 5, "stride": 5}, "stride"),
        (SampleConfig, {"max_documents": 0}, "max_documents"),
        (SampleConfig, {"most": 1}, "most"),
    ],
)
def test_settings_that_cannot_be(kind: Any, settings: dict[str, Any], words: str) -> None:
    """Are refused with the name of the key."""
    with pytest.raises(ValidationError, match=words):
        kind.model_validate(settings)
