"""The floors under the gold figures: `tests/golden/floors.json`, read with care, checked, raised, and lowered for a reason only.

A figure passes if it is at least its floor less the floor's noise: what may come out otherwise without anything being worse, as
so many of its n texts (see `noise`). Floors are shares rounded down to six digits. The file also pins each gold corpus by its
SHA-256, and keeps, under `removed`, why a floor is no more.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from tests.gate.figures import Figure, Figures

__all__ = [
    "FLOORS",
    "Floor",
    "Floors",
    "FloorsError",
    "Update",
    "broken",
    "family_of",
    "new_figures",
    "read",
    "told",
    "updated",
    "vanished",
    "write",
]

FLOORS = Path(__file__).resolve().parents[1] / "golden" / "floors.json"
DIGITS = 1e6
SAME = 1e-9
"""Shares that differ by less are the same: they went through text."""
SECTIONS = ("corpora", "floors", "removed")


class FloorsError(Exception):
    """The file of floors is damaged, or what was asked of it cannot be done."""


@dataclass(frozen=True)
class Floor:
    """One floor.

    floor, noise, measured: shares; measured is what it was set by, of n texts. reason: why it was lowered, and when; None: it never
    was, or has risen again to where it was. lowered_from: where that was.
    """

    floor: float
    noise: float
    n: int
    measured: float
    reason: str | None = None
    lowered_from: float | None = None

    @property
    def bound(self) -> float:
        """What a figure must reach."""
        return max(0.0, self.floor - self.noise)


@dataclass(frozen=True)
class Floors:
    """corpora: SHA-256 by name. floors: by figure. removed: why there is no floor any more, by figure."""

    corpora: Mapping[str, str] = field(default_factory=dict)
    floors: Mapping[str, Floor] = field(default_factory=dict)
    removed: Mapping[str, str] = field(default_factory=dict)


def family_of(figure: str) -> str:
    return figure.partition(".")[0]


def rounded_down(share: float) -> float:
    return math.floor(share * DIGITS + SAME) / DIGITS


# -- the file ---------------------------------------------------------------------------------------


def read(path: Path = FLOORS) -> Floors:
    """Raises FloorsError: it is not there, or not what `write` writes."""
    try:
        return parse(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise FloorsError(f"{path}: cannot be read: {error}. Take it from git: git checkout -- {path}") from None
    except FloorsError as error:
        raise FloorsError(f"{path}: {error}. Mend it, or take it from git: git checkout -- {path}") from None


def parse(text: str) -> Floors:
    """Floors from JSON. Raises FloorsError."""
    try:
        told = json.loads(text, object_pairs_hook=_once)
    except json.JSONDecodeError as error:
        raise FloorsError(f"no JSON: {error}") from None
    if not isinstance(told, dict) or set(told) != set(SECTIONS):
        raise FloorsError(f"expected an object with {', '.join(SECTIONS)}, found {_keys(told)}")
    for section in SECTIONS:
        if not isinstance(told[section], dict):
            raise FloorsError(f"{section}: expected an object, found {type(told[section]).__name__}")
    for section in ("corpora", "removed"):
        if odd := [name for name, value in told[section].items() if not isinstance(value, str)]:
            raise FloorsError(f"{section}: expected text for {odd[0]!r}")
    return Floors(told["corpora"], {name: _floor(name, one) for name, one in told["floors"].items()}, told["removed"])


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A floor that stands twice would be held at the lower one of two without a word."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise FloorsError(f"{next(name for name in names if names.count(name) > 1)!r} stands twice")
    return found


def _keys(told: Any) -> str:
    return ", ".join(map(repr, told)) if isinstance(told, dict) else type(told).__name__


def _floor(name: str, told: Any) -> Floor:
    expected = [one.name for one in fields(Floor)]
    if not isinstance(told, dict) or set(told) != set(expected):
        raise FloorsError(f"{name}: expected {', '.join(expected)}, found {_keys(told)}")
    for key in ("floor", "noise", "measured"):
        value = told[key]
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
            raise FloorsError(f"{name}: {key} must be a share from 0 to 1, found {value!r}")
    if isinstance(told["n"], bool) or not isinstance(told["n"], int) or told["n"] < 1:
        raise FloorsError(f"{name}: n must be a number of texts, found {told['n']!r}")
    if told["reason"] is not None and not (isinstance(told["reason"], str) and told["reason"].strip()):
        raise FloorsError(f"{name}: reason must be a sentence or null, found {told['reason']!r}")
    if (told["reason"] is None) != (told["lowered_from"] is None):
        raise FloorsError(f"{name}: reason and lowered_from stand together or not at all")
    return Floor(**told)


def told(floors: Floors) -> str:
    """As JSON with a floor on each line, so that a change is a line of the diff."""
    sections = []
    for section in SECTIONS:
        values: Mapping[str, Any] = getattr(floors, section)
        lines = [f"    {_json(name)}: {_json(_plain(value))}" for name, value in sorted(values.items())]
        body = "{\n" + ",\n".join(lines) + "\n  }" if lines else "{}"
        sections.append(f"  {_json(section)}: {body}")
    return "{\n" + ",\n".join(sections) + "\n}\n"


def _plain(value: Any) -> Any:
    return asdict(value) if isinstance(value, Floor) else value


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def write(floors: Floors, path: Path = FLOORS) -> None:
    """All of it or nothing, whenever it is stopped."""
    temporary = path.with_name(f"{path.name}.new")
    temporary.write_text(told(floors), encoding="utf-8")
    temporary.replace(path)


# -- what figures say -------------------------------------------------------------------------------


def broken(floors: Floors, figures: Figures) -> dict[str, tuple[Figure, Floor]]:
    """Figures below their floor and its noise."""
    both = {name: (figure, floors.floors[name]) for name, figure in figures.items() if name in floors.floors}
    return {name: (figure, floor) for name, (figure, floor) in both.items() if figure.share < floor.bound - SAME}


def vanished(floors: Floors, figures: Figures, families: Collection[str]) -> list[str]:
    """Floors of families that were judged, without a figure: nothing holds them."""
    return [name for name in floors.floors if family_of(name) in families and name not in figures]


def new_figures(floors: Floors, figures: Figures) -> list[str]:
    """Figures without a floor. One of nothing reached needs none: there is nothing to lose."""
    return [name for name, figure in figures.items() if name not in floors.floors and figure.hits and figure.n]


# -- raising and lowering ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Update:
    """What becomes of the floors. refused: figures that fell, and were not to be lowered; if there are any, nothing is written."""

    floors: Floors
    raised: tuple[str, ...] = ()
    lowered: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()


def updated(
    floors: Floors,
    figures: Figures,
    families: Collection[str],
    noises: Mapping[str, float],
    *,
    lower: Collection[str] = (),
    reason: str | None = None,
    corpora: Mapping[str, str] | None = None,
) -> Update:
    """Floors at what was measured, where that is more.

    Args:
        families: that were judged; floors of others stay.
        noises: of each figure, as a share; for new floors, for old ones keep theirs.
        lower: patterns of figures whose floors may fall to what was measured, or go with their figures.
        reason: why, with the day.
        corpora: digests to pin.

    Raises:
        FloorsError: a pattern to lower matches nothing that fell, or there is no reason.
    """
    if lower and not reason:
        raise FloorsError("a floor is lowered for a reason only: say it with --reason")
    named = {name: [pattern for pattern in lower if fnmatchcase(name, pattern)] for name in floors.floors}
    made, removed = dict(floors.floors), dict(floors.removed)
    groups: dict[str, list[str]] = {"raised": [], "lowered": [], "added": [], "removed": [], "refused": []}
    used: set[str] = set()
    for name in vanished(floors, figures, families):
        used |= set(named[name])
        if named[name]:
            removed[name] = f"{reason} (the floor was {made.pop(name).floor:g})"
        groups["removed" if named[name] else "refused"].append(name)
    for name, figure in figures.items():
        if name not in made:
            continue
        what, made[name] = _moved(made[name], figure, reason if named[name] else None)
        if what == "lowered":
            used |= set(named[name])
        if what:
            groups[what].append(name)
    if unused := [pattern for pattern in lower if pattern not in used]:
        raise FloorsError(f"nothing fell that {unused[0]!r} names: no floor to lower")
    for name in new_figures(floors, figures):
        groups["added"].append(name)
        share = rounded_down(figures[name].share)
        made[name] = Floor(share, noises[name], figures[name].n, share)
        removed.pop(name, None)
    pinned = {**floors.corpora, **(corpora or {})}
    return Update(Floors(pinned, made, removed), **{key: tuple(sorted(names)) for key, names in groups.items()})


def _moved(floor: Floor, figure: Figure, reason: str | None) -> tuple[str, Floor]:
    """What becomes of a floor, empty if nothing does. reason: it may fall; None: it may not."""
    share = rounded_down(figure.share)
    if not figure.n:  # of none, all are right: that says nothing
        return "", floor
    if share > floor.floor + SAME:
        # A reason to be low stands until the floor is back where it was.
        back = floor.lowered_from is not None and share >= floor.lowered_from - SAME
        said = replace(floor, reason=None, lowered_from=None) if back else floor
        return "raised", replace(said, floor=share, n=figure.n, measured=share)
    if share < floor.floor - SAME and reason is not None:
        highest = max(floor.floor, floor.lowered_from or 0.0)
        return "lowered", replace(floor, floor=share, n=figure.n, measured=share, reason=reason, lowered_from=highest)
    return ("refused" if figure.share < floor.bound - SAME else ""), floor
