"""Whether floors fell between the versions of their file that git has: a floor that is lowered by hand says no reason."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.gate.floors import FLOORS, SAME, Floors, FloorsError, parse

__all__ = ["fallen", "falls", "versions"]

HERE = "the working tree"
MOST = 50
"""Versions that are looked at; older ones were looked at in their time."""


def fallen(before: Floors, after: Floors) -> dict[str, str]:
    """A sentence for each floor that fell, or went, without a new reason beside it. What counts is the floor less its noise."""
    said = {}
    for name, old in before.floors.items():
        new = after.floors.get(name)
        if new is None:
            if after.removed.get(name) == before.removed.get(name):
                said[name] = f"{name}: its floor of {old.floor:g} is gone, and `removed` does not say why"
        elif new.bound < old.bound - SAME and (new.reason is None or new.reason == old.reason):
            said[name] = (
                f"{name}: fell from {old.floor:g} less {old.noise:g} to {new.floor:g} less {new.noise:g} without a reason"
            )
    return said


def versions(path: Path = FLOORS) -> Iterator[tuple[str, str]]:
    """Name and text of each version, oldest first, the file as it lies there last; of a folder without git only that one."""
    asked = ["git", "-C", str(path.parent), "log", "--first-parent", f"-{MOST}", "--format=%H", "--", path.name]
    found = subprocess.run(asked, capture_output=True, text=True, check=False)
    for commit in reversed(found.stdout.split() if found.returncode == 0 else []):
        shown = subprocess.run(
            ["git", "-C", str(path.parent), "show", f"{commit}:./{path.name}"],
            capture_output=True,
            text=True,
            check=False,
        )
        if shown.returncode == 0:  # else that commit removed it, or a shallow clone ends there
            yield commit[:9], shown.stdout
    yield HERE, path.read_text(encoding="utf-8")


def falls(path: Path = FLOORS) -> list[str]:
    """A sentence for each floor that fell without a reason and is not back where it was.

    Raises FloorsError: the file as it lies there cannot be read.
    """
    said: dict[str, str] = {}
    right = Floors()  # each floor as it last stood rightly
    for name, text in versions(path):
        try:
            after = parse(text)
        except FloorsError as error:
            if name == HERE:
                raise FloorsError(f"{path}: {error}") from None
            continue  # the gate of its day stopped it; what stands before it holds for what stands behind it
        wrong = fallen(right, after)
        said = {figure: said.get(figure, f"{name}: {sentence}") for figure, sentence in wrong.items()}
        kept = {figure: right.floors[figure] for figure in wrong}
        right = Floors(after.corpora, {**after.floors, **kept}, after.removed)
    return list(said.values())
