"""Floors only rise: what passes, what is refused, what is written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.gate.figures import Figure, counted, mean_of
from tests.gate.floors import (
    FLOORS,
    Floor,
    Floors,
    FloorsError,
    broken,
    new_figures,
    parse,
    read,
    told,
    updated,
    vanished,
    write,
)

KEPT = "quality.good_kept.zh"
FLOOR = Floor(0.9, 0.01, 100, 0.9)
HELD = Floors({"2_text": "ab"}, {KEPT: FLOOR})
QUALITY = ("quality",)


def figures(hits: int, n: int = 100) -> dict[str, Figure]:
    return {KEPT: Figure(hits, n)}


# -- checking ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("hits", "holds"), [(100, True), (90, True), (89, True), (88, False), (0, False)])
def test_a_figure_may_fall_by_the_noise_and_no_further(hits: int, holds: bool) -> None:
    """One text of a hundred is this floor's noise: 89 pass, 88 do not."""
    assert (broken(HELD, figures(hits)) == {}) == holds


def test_a_figure_that_nothing_measures_any_more_is_named() -> None:
    """A filter's figure that is dropped with its code leaves a floor that nothing holds; families that were not judged do not."""
    assert vanished(HELD, {}, QUALITY) == [KEPT]
    assert vanished(HELD, {}, ("near",)) == []


def test_a_figure_without_a_floor_is_named() -> None:
    """A new language or class shows, unless nothing of it is reached, or there is nothing of it."""
    fresh = {
        KEPT: Figure(90, 100),
        "quality.a.b": Figure(1, 2),
        "quality.a.c": Figure(0, 2),
        "quality.a.d": Figure(0, 0),
    }
    assert new_figures(HELD, fresh) == ["quality.a.b"]


# -- raising and lowering ---------------------------------------------------------------------------


def test_what_is_reached_becomes_the_floor() -> None:
    """A better figure raises its floor, with its noise as it was; a new one is added with the noise it is given."""
    update = updated(HELD, {**figures(95), "quality.a.b": Figure(1, 3)}, QUALITY, {"quality.a.b": 0.2})
    assert update.floors.floors == {
        KEPT: Floor(0.95, 0.01, 100, 0.95),
        "quality.a.b": Floor(0.333333, 0.2, 3, 0.333333),
    }
    assert (update.raised, update.added, update.refused) == ((KEPT,), ("quality.a.b",), ())


def test_a_fall_within_noise_moves_nothing() -> None:
    """So that floors do not creep down, one text at a time."""
    update = updated(HELD, figures(89), QUALITY, {})
    assert update.floors == HELD
    assert update.refused == ()


def test_a_fall_is_refused_without_a_reason() -> None:
    """The floor stays, and the figure is named; so is one that is gone."""
    assert updated(HELD, figures(80), QUALITY, {}).refused == (KEPT,)
    assert updated(HELD, {}, QUALITY, {}).refused == (KEPT,)
    with pytest.raises(FloorsError, match="for a reason only"):
        updated(HELD, figures(80), QUALITY, {}, lower=[KEPT])


def test_a_floor_falls_with_a_reason_and_remembers_from_where() -> None:
    """The reason stands beside it until it is back where it was."""
    low = updated(
        HELD, figures(80), QUALITY, {}, lower=["quality.good_kept.*"], reason="2030-01-01: less is more"
    ).floors
    assert low.floors[KEPT] == Floor(0.8, 0.01, 100, 0.8, "2030-01-01: less is more", 0.9)
    lower = updated(low, figures(70), QUALITY, {}, lower=[KEPT], reason="2030-01-02: again").floors
    assert lower.floors[KEPT] == Floor(0.7, 0.01, 100, 0.7, "2030-01-02: again", 0.9)
    half_way = updated(lower, figures(85), QUALITY, {}).floors
    assert half_way.floors[KEPT] == Floor(0.85, 0.01, 100, 0.85, "2030-01-02: again", 0.9)
    back = updated(half_way, figures(90), QUALITY, {}).floors
    assert back.floors[KEPT] == FLOOR


def test_a_floor_goes_with_a_reason_which_stays() -> None:
    """Of a figure that is no more, and until there is one again."""
    gone = updated(HELD, {}, QUALITY, {}, lower=[KEPT], reason="2030-01-01: no such language").floors
    assert (dict(gone.floors), dict(gone.removed)) == ({}, {KEPT: "2030-01-01: no such language (the floor was 0.9)"})
    again = updated(gone, figures(50), QUALITY, {KEPT: 0.0}).floors
    assert (again.floors[KEPT].floor, dict(again.removed)) == (0.5, {})


@pytest.mark.parametrize("pattern", [KEPT, "quality.good_kept.z?", "near.*", "nonsense"])
def test_a_pattern_to_lower_must_name_what_fell(pattern: str) -> None:
    """A reason for nothing is a mistake: the figure is as it was, within its noise and raised, or there is none."""
    with pytest.raises(FloorsError, match="nothing fell"):
        updated(HELD, figures(95), QUALITY, {}, lower=[pattern], reason="why")


def test_figures_of_nothing_move_no_floor() -> None:
    """A precision of nothing dropped is 1, and says nothing."""
    assert updated(HELD, {KEPT: Figure(0, 0)}, QUALITY, {}).floors == HELD


@given(st.lists(st.integers(0, 100), min_size=1, max_size=8))
def test_no_row_of_updates_without_reasons_lowers_a_floor(row: list[int]) -> None:
    """Whatever is measured in between."""
    floors = HELD
    for hits in row:
        update = updated(floors, figures(hits), QUALITY, {})
        if not update.refused:
            assert update.floors.floors[KEPT].floor >= floors.floors[KEPT].floor
            floors = update.floors


@given(st.integers(0, 5000), st.integers(1, 5000))
def test_a_floor_holds_what_it_was_set_by(hits: int, n: int) -> None:
    """Without noise, and after it went through the file: the same figure passes, and one hit less does not."""
    hits = min(hits, n)
    made = updated(Floors(), {KEPT: Figure(hits, n)}, QUALITY, {KEPT: 0.0}).floors
    kept = parse(told(made))
    assert kept == made
    assert broken(kept, {KEPT: Figure(hits, n)}) == {}
    if hits:
        assert KEPT in broken(kept, {KEPT: Figure(hits - 1, n)})


# -- the file ---------------------------------------------------------------------------------------


def test_the_file_is_a_line_a_floor_and_comes_back(tmp_path: Path) -> None:
    """In the order of names, so that a diff shows what moved."""
    floors = Floors({"b": "1", "a": "2"}, {"x.y.二": FLOOR, "x.y.a": FLOOR}, {"x.z.c": "why"})
    path = tmp_path / "floors.json"
    write(floors, path)
    assert read(path) == floors
    lines = path.read_text(encoding="utf-8").splitlines()
    assert [line.strip()[:9] for line in lines if "noise" in line] == ['"x.y.a": ', '"x.y.二": ']
    assert list(tmp_path.iterdir()) == [path]


GOOD = {"floor": 0.5, "noise": 0, "n": 2, "measured": 0.5, "reason": None, "lowered_from": None}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no JSON"),
        ('{"corpora": {}, "floors": {}, "rem', "no JSON"),
        ("[]", "found list"),
        ('{"corpora": {}, "floors": {}}', "expected an object with corpora, floors, removed"),
        ('{"corpora": [], "floors": {}, "removed": {}}', "corpora: expected an object, found list"),
        ('{"corpora": {"a": 1}, "floors": {}, "removed": {}}', "expected text for 'a'"),
        ('{"corpora": {}, "floors": {"a": 1}, "removed": {}}', "a: expected floor, noise"),
        ('{"corpora": {}, "floors": {"a": {}, "a": {}}, "removed": {}}', "'a' stands twice"),
        *(
            (json.dumps({"corpora": {}, "floors": {"x.y.z": {**GOOD, **odd}}, "removed": {}}), message)
            for odd, message in (
                ({"floor": 1.5}, "floor must be a share"),
                ({"floor": float("nan")}, "floor must be a share"),
                ({"floor": "1"}, "floor must be a share"),
                ({"noise": -0.1}, "noise must be a share"),
                ({"measured": True}, "measured must be a share"),
                ({"n": 0}, "n must be a number"),
                ({"n": 2.5}, "n must be a number"),
                ({"reason": " "}, "reason must be a sentence"),
                ({"reason": "why"}, "stand together"),
                ({"more": 1}, "expected floor, noise"),
            )
        ),
    ],
)
def test_a_damaged_file_is_refused(tmp_path: Path, text: str, message: str) -> None:
    """With its path, what is wrong, and what to do: a floor that is not read would hold nothing."""
    path = tmp_path / "floors.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(FloorsError, match=message) as error:
        read(path)
    assert str(path) in str(error.value)
    assert "git checkout" in str(error.value)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    """Not taken for one without floors."""
    with pytest.raises(FloorsError, match="cannot be read"):
        read(tmp_path / "floors.json")


def test_the_shipped_file_is_as_the_gate_writes_it() -> None:
    """So that an update changes the lines of what moved alone."""
    assert told(read()) == FLOORS.read_text(encoding="utf-8")


# -- figures ----------------------------------------------------------------------------------------


def test_figures_count() -> None:
    """Hits of n; a mean of shares weighs each the same; of nothing all is right."""
    assert counted([True, False, True]) == Figure(2, 3)
    assert mean_of([Figure(1, 1), Figure(0, 3)]) == Figure(2, 4)
    assert mean_of([]) == Figure(0, 0)
    assert Figure(0, 0).share == 1
