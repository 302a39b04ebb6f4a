"""What runs lost through the blacklist since a re-score: their step `blacklisted`, its markers and verdict files.

The step drops by the whole list, all versions up to the one that it pinned. Each verdict names the entry that decided, as
version/row: so it can be told how much the entries of one re-score did. Costs some milliseconds for a run's folder, and 2 us
for each document that was dropped.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import yaml

from curation.errors import CorpusmillError
from curation.shards import open_table

__all__ = ["later_runs"]

STEP = "blacklisted"
_FOLDER = re.compile(rf"\d\d-{STEP}-[0-9a-f]+")


def later_runs(root: Path, version: int | None) -> list[dict[str, Any]]:
    """Runs that pinned this version of the blacklist or a later one, in the order in which they began.

    Args:
        root: folder of all runs.
        version: that the re-score published; None: none, so no run can have lost anything through it.

    Returns:
        Of each: run_id, start, version (null: not known), closed, documents (that reached the step), dropped by reason, kept;
        by_this: documents that an entry of this very version dropped (null: the verdicts do not tell).
    """
    runs = root / "runs"
    if version is None or not runs.is_dir():
        return []
    found = []
    for folder in sorted(runs.iterdir()):
        step = _newest_step(folder / "steps")
        info = _json(folder / "run.json")
        if step is None or not info:
            continue
        done = _json(step / "_done.json")
        pinned = _version(folder, step, done)
        if pinned is not None and pinned < version:
            continue
        dropped = done.get("dropped")
        reasons = {str(name): int(n) for name, n in sorted(dropped.items())} if isinstance(dropped, dict) else {}
        found.append(
            {
                "run_id": folder.name,
                "start": str(info.get("start") or ""),
                "version": pinned,
                "closed": bool(done),
                "documents": int(done.get("docs_in") or 0),
                "kept": int(done.get("docs_kept") or 0),
                "dropped": reasons,
                "by_this": _by_version(step, version) if done else None,
            }
        )
    return sorted(found, key=lambda one: (one["start"], one["run_id"]))


def _json(path: Path) -> dict[str, Any]:
    """A marker; empty where there is none to read, for a run may be written or deleted at this moment."""
    try:
        read = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return read if isinstance(read, dict) else {}


def _newest_step(steps: Path) -> Path | None:
    """The folder of the step; of several, made with other settings, the one that was closed or begun last."""
    if not steps.is_dir():
        return None
    known = [(_changed(one), one.name, one) for one in steps.iterdir() if _FOLDER.fullmatch(one.name)]
    return max(known)[2] if known else None


def _changed(folder: Path) -> float:
    for name in ("_done.json", "_step.json", ""):
        if (folder / name).exists():
            return (folder / name).stat().st_mtime
    return 0.0


def _by_version(step: Path, version: int) -> int | None:
    """Dropped documents whose deciding entry is of a version; None if there is no verdict file, or one does not say."""
    total = 0
    paths = sorted(step.glob("*.arrow"))
    if not paths:
        return None
    for path in paths:
        try:
            table = open_table(path).read_all()
            dropped = table.select(["reason", "matches"]).filter(pc.is_valid(table.column("reason")))
            reasons, matches = (dropped.column(name).to_pylist() for name in ("reason", "matches"))
        except (CorpusmillError, pa.ArrowException, KeyError):
            return None
        for reason, found in zip(reasons, matches, strict=True):
            kind = reason.partition(".")[2]
            entries = [one["entry"] for one in found or [] if one["kind"] == kind]
            total += any(entry.partition("/")[0] == str(version) for entry in entries)
    return total


def _version(folder: Path, step: Path, done: Mapping[str, Any]) -> int | None:
    """The version that the run pinned: what the step says of itself, or the run's config."""
    card = _json(step / "_step.json")
    for config in (done.get("facts"), card.get("config"), _settings(folder)):
        pinned = config.get("version") if isinstance(config, Mapping) else None
        if isinstance(pinned, int) and not isinstance(pinned, bool):
            return pinned
    return None


def _settings(folder: Path) -> Any:
    """Settings of the step in the run's config.yaml."""
    try:
        config = yaml.safe_load((folder / "config.yaml").read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError):
        return None
    steps = config.get("steps") if isinstance(config, dict) else None
    for one in steps if isinstance(steps, list) else []:
        if isinstance(one, dict) and STEP in one:
            return one[STEP]
        if isinstance(one, dict) and (one.get("name") or one.get("step")) == STEP:
            return one
    return None
