"""A floor that is lowered by hand is noticed, from one version of the file to the next."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from tests.gate.floors import Floor, Floors, FloorsError, write
from tests.gate.history import fallen, falls, versions

FLOOR = Floor(0.9, 0.01, 100, 0.9)
NAME = "quality.good_kept.zh"
BEFORE = Floors({}, {NAME: FLOOR})
WHY = {"reason": "2030-01-01: why", "lowered_from": 0.9}


@pytest.mark.parametrize(
    ("after", "said"),
    [
        (FLOOR, 0),
        (replace(FLOOR, floor=0.95), 0),
        (replace(FLOOR, floor=0.95, noise=0.06), 0),
        (replace(FLOOR, floor=0.89), 1),
        (replace(FLOOR, noise=0.02), 1),
        (replace(FLOOR, floor=0.8, **WHY), 0),  # type: ignore[arg-type]
        (None, 1),
    ],
)
def test_what_falls_must_say_why(after: Floor | None, said: int) -> None:
    """A lower floor, more noise, a floor that is gone; a reason makes it right."""
    assert len(fallen(BEFORE, Floors({}, {NAME: after} if after else {}))) == said


def test_an_old_reason_is_none() -> None:
    """It was for the fall before."""
    low = Floors({}, {NAME: replace(FLOOR, floor=0.8, **WHY)})  # type: ignore[arg-type]
    lower = Floors({}, {NAME: replace(FLOOR, floor=0.7, **WHY)})  # type: ignore[arg-type]
    assert len(fallen(low, lower)) == 1


def test_a_floor_that_went_for_a_reason_is_fine() -> None:
    """It stands under `removed`."""
    assert fallen(BEFORE, Floors({}, {}, {NAME: "2030-01-01: why"})) == {}


def git(folder: Path, *words: str) -> None:
    command = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", "-C", str(folder), *words]
    subprocess.run(command, check=True, capture_output=True)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file of floors in a git checkout, committed once."""
    git(tmp_path, "init", "-q")
    made = tmp_path / "floors.json"
    write(BEFORE, made)
    commit(made)
    return made


def commit(path: Path) -> None:
    git(path.parent, "add", path.name)
    git(path.parent, "commit", "-q", "-m", "floors")


def test_every_step_of_the_history_is_looked_at(path: Path) -> None:
    """A fall by hand shows before it is committed and after it, whatever is committed behind it, until it is mended."""
    write(Floors({}, {NAME: replace(FLOOR, floor=0.5)}), path)
    assert [one.partition(":")[0] for one in falls(path)] == ["the working tree"]
    commit(path)
    write(Floors({}, {NAME: replace(FLOOR, floor=0.6)}), path)
    commit(path)
    assert len(list(versions(path))) == 4
    assert ["fell from 0.9 less 0.01 to 0.5" in one for one in falls(path)] == [True]
    write(BEFORE, path)
    assert falls(path) == []


def test_a_reason_that_comes_later_mends_a_fall(path: Path) -> None:
    """Beside the floor, as an update would have written it."""
    low = replace(FLOOR, floor=0.5)
    write(Floors({}, {NAME: low}), path)
    commit(path)
    assert len(falls(path)) == 1
    write(Floors({}, {NAME: replace(low, **WHY)}), path)  # type: ignore[arg-type]
    assert falls(path) == []


def test_a_version_that_was_damaged_hides_no_fall(path: Path) -> None:
    """Those beside it are compared; only what lies there now must be whole."""
    path.write_text("{", encoding="utf-8")
    with pytest.raises(FloorsError, match="no JSON"):
        falls(path)
    commit(path)
    write(Floors({}, {NAME: replace(FLOOR, floor=0.5)}), path)
    assert len(falls(path)) == 1


def test_without_git_there_is_no_history(tmp_path: Path) -> None:
    """Of an unpacked archive only what lies there is known."""
    write(BEFORE, tmp_path / "floors.json")
    assert falls(tmp_path / "floors.json") == []


def test_no_floor_of_the_gate_ever_fell_without_a_reason() -> None:
    """The real file, as far back as this checkout goes."""
    assert falls() == []
