"""Closing a step: the conservation law is checked on what lies on disk, then `_done.json` is written.

The law: documents that reached a step = kept + dropped by a named reason, and what reached it is
exactly what the step before kept. It is counted anew from the verdict files; the markers that the
workers wrote must agree with it.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from curation.errors import LawError
from curation.judge import write_step_card
from curation.routes import SET_ASIDE, count_routes, known_routes
from curation.run import fsync_folder, publish, read_json, write_json
from curation.shards import Shard, alive_mask, item_marker, open_table
from curation.steps import PlacedStep
from curation.verdicts import DataSetStep

__all__ = ["close_step", "has_size", "is_closed", "keep_passes", "lost_files", "verdict_tables"]


def is_closed(folder: Path) -> bool:
    """Whether a step's `_done.json` stands and every file it names is there, whole: verdicts, and what lasts of passes.

    A file that is gone or cut opens the step again, so that running the same command repairs it.
    """
    done = folder / "_done.json"
    if not done.exists():
        return False
    if not lost_files(folder):
        return True
    done.unlink(missing_ok=True)
    return False


def lost_files(folder: Path) -> list[Path]:
    """Files of a closed step that are gone or cut; looks at sizes only."""
    marker = read_json(folder / "_done.json")
    told = {f"{item['name']}.arrow": item["bytes"] for item in marker["shards"]} | marker.get("lasting", {})
    return [folder / name for name, n_bytes in told.items() if not has_size(folder / name, n_bytes)]


def has_size(path: Path, n_bytes: int) -> bool:
    """Whether a file is there with this many bytes."""
    try:
        return path.stat().st_size == n_bytes
    except FileNotFoundError:
        return False


def keep_passes(passes: Path, names: Sequence[str], folder: Path) -> None:
    """Give the files of some passes a second name in their step's folder, where they outlast those of the others.

    Nothing is taken away: a try that ends before the step's marker stands leaves all that the next one needs, and two
    tries at once do the same. A link takes no room; where the file system has none, files are copied.

    Args:
        passes: folder in which the files of all passes lie.

    Raises:
        RunError: the disk is full or the folder cannot be written.
        RunError, FileNotFoundError: a file is gone; another try that has closed the step deletes those of its passes.
    """
    for name in names:
        for path in sorted(one for one in (passes / name).rglob("*") if one.suffix in (".arrow", ".json")):
            _link(path, folder / name / path.relative_to(passes / name))
        for kept in (folder / name, folder / name / "_items"):
            if kept.is_dir():
                fsync_folder(kept)


def _link(path: Path, target: Path) -> None:
    """Put a link at `target`, or a copy; what lies there of a close before is replaced, and never gone in between."""
    if target.exists() and target.samefile(path):
        return
    with publish(target, durable=False) as temporary:
        try:
            os.link(path, temporary)
        except FileNotFoundError:
            raise
        except OSError:
            shutil.copyfile(path, temporary)
            with temporary.open("rb+") as stream:
                os.fsync(stream.fileno())
    temporary.unlink(missing_ok=True)  # where another try was faster: a link is not renamed to another of its file


def verdict_tables(placed: PlacedStep, shards: Sequence[Shard]) -> Iterator[pa.Table]:
    """The verdict files of a step, in order, each mapped when it is asked for.

    Raises:
        RunError: a shard has no verdicts yet, or a file is damaged.
    """
    for shard in shards:
        marker = item_marker(placed.folder, shard.name)
        yield open_table(placed.folder / f"{shard.name}.arrow", marker["verdict_sha256"], shard.rows).read_all()


def close_step(
    placed: PlacedStep,
    shards: Sequence[Shard],
    passes: Mapping[str, float] | None = None,
    facts: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Check the law over all shards of a step and write its marker; returns its line of the funnel.

    Args:
        passes: seconds and peak_rss_mb of a data-set step's passes before its verdicts.
        facts: what a step says about itself beside its verdicts; kept in the marker for the report, with the number of
            documents that a filter set aside for each of its named outputs.

    Raises:
        RunError: a shard has no verdicts yet, or a file is damaged.
        LawError: documents were lost or invented, or a drop has no reason.
    """
    write_step_card(placed)
    done = placed.folder / "_done.json"
    if is_closed(placed.folder):
        marker: dict[str, Any] = read_json(done)
        if [s["name"] for s in marker["shards"]] == [s.name for s in shards]:
            return marker
    marker = _marker(placed, shards, passes or {"seconds": 0.0, "peak_rss_mb": 0.0}, facts or {})
    write_json(done, marker)
    return marker


def _marker(
    placed: PlacedStep, shards: Sequence[Shard], passes: Mapping[str, float], facts: Mapping[str, Any]
) -> dict[str, Any]:
    """What `_done.json` will say, counted from the verdict files."""
    dropped: Counter[str] = Counter()
    totals: Counter[str] = Counter()
    set_aside = Counter(dict.fromkeys(known_routes(placed.step), 0))
    seconds, peak = passes["seconds"], passes["peak_rss_mb"]
    items = []
    for shard in shards:
        item = item_marker(placed.folder, shard.name)
        set_aside.update(count_routes(placed.step, _check_shard(placed, shard, item)))
        dropped.update(item["dropped"])
        totals.update({key: item[key] for key in ("docs_in", "kept", "bytes_in", "bytes_kept")})
        seconds += item["seconds"]
        peak = max(peak, item["peak_rss_mb"])
        items.append(_item_line(placed, shard, item))
    return {
        "name": placed.name,
        "digest": placed.digest,
        "docs_in": totals["docs_in"],
        "docs_kept": totals["kept"],
        "dropped": {reason: dropped[reason] for reason in placed.step.reasons if dropped[reason]},
        **{key: totals[key] for key in ("bytes_in", "bytes_kept")},
        "seconds": round(seconds, 3),
        "peak_rss_mb": round(peak, 1),
        "facts": {**facts, **({SET_ASIDE: dict(set_aside)} if set_aside else {})},
        "lasting": _lasting(placed),
        "shards": items,
    }


def _lasting(placed: PlacedStep) -> dict[str, int]:
    """Size of each file that lasts of a data-set step's passes, and of its marker, by its name in the step's folder."""
    passes = placed.step.lasting if isinstance(placed.step, DataSetStep) else ()
    markers = [path for name in passes for path in sorted((placed.folder / name / "_items").glob("*.json"))]
    files = [path for marker in markers for path in (marker.parents[1] / f"{marker.stem}.arrow", marker)]
    return {str(path.relative_to(placed.folder)): path.stat().st_size for path in files}


def _item_line(placed: PlacedStep, shard: Shard, item: Mapping[str, Any]) -> dict[str, Any]:
    n_bytes = (placed.folder / f"{shard.name}.arrow").stat().st_size
    return {
        "name": shard.name,
        "rows": shard.rows,
        "kept": item["kept"],
        "bytes": n_bytes,
        "sha256": item["verdict_sha256"],
    }


def _check_shard(placed: PlacedStep, shard: Shard, item: dict[str, Any]) -> pa.Table:
    """Count one verdict file again and hold it against the step before and its own marker; returns what is in it."""
    before = alive_mask(placed.previous, shard)
    reader = open_table(placed.folder / f"{shard.name}.arrow", item["verdict_sha256"], shard.rows)
    table = reader.read_all()
    looked_at = table.column("keep").is_valid().to_numpy().astype(np.bool_)
    keep = table.column("keep").fill_null(False).to_numpy().astype(np.bool_)
    has_reason = table.column("reason").is_valid().to_numpy().astype(np.bool_)
    where = f"step {placed.name}, shard {shard.name}"
    if not np.array_equal(looked_at, before):
        raise LawError(
            f"{where}: the step before kept {int(before.sum())} documents, but {int(looked_at.sum())} were judged "
            f"({int((looked_at != before).sum())} rows differ). Delete {placed.folder} and run the same command again."
        )
    if not np.array_equal(has_reason, looked_at & ~keep):
        raise LawError(
            f"{where}: {int((has_reason != (looked_at & ~keep)).sum())} documents are dropped without a reason or kept with one."
        )
    counted = {row["values"]: row["counts"] for row in pc.value_counts(table.column("reason").drop_null()).to_pylist()}
    if counted != item["dropped"]:
        raise LawError(f"{where}: the verdict file drops {counted}, its marker says {item['dropped']}.")
    n_dropped = sum(counted.values())
    if (
        item["docs_in"] != item["kept"] + n_dropped
        or item["kept"] != int(keep.sum())
        or item["docs_in"] != int(before.sum())
    ):
        raise LawError(
            f"{where}: {item['docs_in']} documents in, {item['kept']} kept, {n_dropped} dropped; "
            f"the verdict file says {int(before.sum())} in, {int(keep.sum())} kept."
        )
    return table
