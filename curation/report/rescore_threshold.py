"""Reading a threshold of the re-score: what was asked, what the checkpoint said, what was chosen, what became of it.

The folder is laid out in `curation.rescore`. Whatever is not there yet, or no longer, is empty here; what is damaged becomes
a problem that the page shows. Score files are mapped, one hash each; the runs themselves may be gone.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from curation.errors import CorpusmillError, RunError
from curation.rescore.propose import CHOSEN_SCHEMA
from curation.rescore.score import SCORE_SCHEMA
from curation.run import read_json
from curation.shards import open_table

__all__ = ["ScoredRun", "Threshold", "read_threshold"]


@dataclass
class ScoredRun:
    """One run as the checkpoint read it."""

    run_id: str
    folder: Path
    """Of the run itself, which may be gone."""
    info: dict[str, Any]
    """rescore.json; empty if scoring has not begun."""
    totals: dict[str, Any]
    """_done.json of its scores; empty until they are closed."""
    start: str
    """When the run began; empty if it is gone."""
    scores: pa.Table
    """SCORE_SCHEMA"""
    plan: pa.Table | None
    """language, source, documents, rate."""


@dataclass
class Threshold:
    """Everything that lies in the folder of a threshold."""

    folder: Path
    info: dict[str, Any]
    runs: list[ScoredRun] = field(default_factory=list)
    chosen: pa.Table = field(default_factory=CHOSEN_SCHEMA.empty_table)
    groups: list[dict[str, Any]] = field(default_factory=list)
    """Rows of groups.arrow, in order of language and source."""
    proposal: dict[str, Any] = field(default_factory=dict)
    decision: dict[str, Any] = field(default_factory=dict)
    published: dict[str, Any] = field(default_factory=dict)
    done: dict[str, Any] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    @property
    def root(self) -> Path:
        """Folder of all runs."""
        return self.folder.parents[2]

    def setting(self, section: str) -> dict[str, Any]:
        """A part of the settings; empty where they do not name it."""
        found = (self.info.get("settings") or {}).get(section)
        return found if isinstance(found, dict) else {}


def read_threshold(folder: Path) -> Threshold:
    """Read the folder of a threshold.

    Raises:
        RunError: threshold.json is missing or damaged: it is none.
    """
    folder = folder.resolve()
    info = read_json(folder / "threshold.json")
    if not isinstance(info, dict) or not {"training_run", "threshold"} <= info.keys():
        raise RunError(f"{folder / 'threshold.json'} names no training_run and threshold. It is no threshold.")
    found = Threshold(folder, info)
    for name, path in (
        ("proposal", folder / "chosen" / "proposal.json"),
        ("decision", folder / "decision.json"),
        ("published", folder / "published.json"),
        ("done", folder / "_done.json"),
    ):
        setattr(found, name, _json(found, path))
    for run_id in sorted(str(one) for one in info.get("runs") or []):
        found.runs.append(_scored_run(found, run_id))
    found.chosen = _chosen(found)
    groups = _table(found, folder / "chosen" / "groups.arrow")
    rows: list[dict[str, Any]] = [] if groups is None else groups.to_pylist()
    found.groups = sorted(rows, key=lambda row: (str(row.get("language")), str(row.get("source"))))
    return found


def _json(found: Threshold, path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    try:
        read = read_json(path)
    except CorpusmillError as error:
        found.problems.append(str(error))
        return {}
    if not isinstance(read, dict):
        found.problems.append(f"{path} holds no object: it is damaged.")
        return {}
    return read


def _table(found: Threshold, path: Path) -> pa.Table | None:
    if not path.exists():
        return None
    try:
        return open_table(path).read_all()
    except (CorpusmillError, pa.ArrowException) as error:
        found.problems.append(str(error))
        return None


def _chosen(found: Threshold) -> pa.Table:
    """chosen.arrow, its rows in order of run, shard and row."""
    table = _table(found, found.folder / "chosen" / "chosen.arrow")
    if table is None:
        return CHOSEN_SCHEMA.empty_table()
    missing = [name for name in CHOSEN_SCHEMA.names if name not in table.column_names]
    if missing:
        found.problems.append(f"chosen.arrow lacks {', '.join(missing)}: what was chosen is not shown.")
        return CHOSEN_SCHEMA.empty_table()
    table = table.select(CHOSEN_SCHEMA.names).cast(CHOSEN_SCHEMA)
    return table.sort_by([("run_id", "ascending"), ("shard", "ascending"), ("row", "ascending")])


def _scored_run(found: Threshold, run_id: str) -> ScoredRun:
    folder = found.folder / run_id
    run = found.root / "runs" / run_id
    start = str(_json(found, run / "run.json").get("start") or "")
    made = ScoredRun(run_id, run, _json(found, folder / "rescore.json"), _json(found, folder / "_done.json"), start,
                     SCORE_SCHEMA.empty_table(), _table(found, folder / "plan.arrow"))  # fmt: skip
    parts = []
    # By its markers and not by the run's shards: the run may have been deleted since.
    for path in sorted((folder / "_items").glob("score-*.json")):
        marker = _json(found, path)
        name = path.stem.removeprefix("score-")
        try:
            reader = open_table(folder / "scores" / f"{name}.arrow", marker.get("sha256"), marker.get("rows"))
            part = reader.read_all()
            if part.schema.names != SCORE_SCHEMA.names:
                raise RunError(f"{folder / 'scores' / name}.arrow has the columns {part.schema.names}: it is foreign.")
            parts.append(part.cast(SCORE_SCHEMA))
        except (CorpusmillError, pa.ArrowException) as error:
            found.problems.append(f"These scores are missing below: {error}")
    if parts:
        made.scores = pa.concat_tables(parts)
    if np.any(made.scores.column("doc_id").is_null().to_numpy(zero_copy_only=False)):
        found.problems.append(f"scores of run {run_id} name no document: they are damaged.")
    return made
