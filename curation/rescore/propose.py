"""What a threshold would put on the blacklist: chosen over all its runs together, written down before anybody decides.

    <threshold>/chosen/
      entries.arrow    what would be appended, as it would be (`curation.blacklist.entries.SCHEMA`)
      groups.arrow     `Chosen.groups`: of each language and source, how many were judged, chosen and held back, and the limits
      chosen.arrow     a row a chosen document, copies too: where it stands, its end and score
      proposal.json    counts, checksums of the three, identity; written last

A function of the scores and of what was fixed when the threshold began, its time included: another try writes the same
bytes. Costs what `choose` and `entries_of_all` cost.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import datetime
from functools import reduce
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from curation.errors import RunError
from curation.ids import digest8
from curation.rescore.choose import HIGH, LOW, REASONS, Chosen, choose
from curation.rescore.entries import entries_of_all
from curation.rescore.score import Rescore
from curation.rescore.threshold import Threshold
from curation.run import file_sha256, read_json, write_json
from curation.shards import batches, open_table, write_table
from curation.terminal import printable

__all__ = ["CHOSEN_SCHEMA", "chosen_table", "proposal_of", "propose", "told"]

CHOSEN_SCHEMA = pa.schema(
    [
        pa.field("run_id", pa.string()),
        pa.field("shard", pa.string()),
        pa.field("row", pa.int64()),
        pa.field("doc_id", pa.binary(16)),
        pa.field("side", pa.int8()),  # 1: high, -1: low
        pa.field("score", pa.float64()),  # the one that decided: bits per byte, or loss
        pa.field("language", pa.string()),
        pa.field("source", pa.string()),
        pa.field("url", pa.string()),
    ]
)
SAMPLES, SAMPLE_LETTERS, TOLD_GROUPS = 3, 160, 30
"""Samples of each end of a group, letters of each, and groups that `told` shows: a page that somebody reads."""
_TABLES = ("entries", "groups", "chosen")


def propose(threshold: Threshold) -> dict[str, Any]:
    """Close the re-scores of a threshold and choose, unless that is done; returns proposal.json.

    Raises:
        RunError: a shard is not scored yet, or is not what it was.
        LawError: documents were lost.
    """
    rescores = threshold.rescores()
    closed = [one.close() for one in rescores]
    inputs = digest8([*(one.identity for one in rescores), threshold.begun_with.choose.model_dump(mode="json")])
    stands = proposal_of(threshold)
    if stands is not None and stands.get("inputs") == inputs:
        return stands
    config = threshold.begun_with.choose
    scores = [one.scores() for one in rescores]
    together = pa.concat_tables(scores)
    chosen = choose(together, config)
    when = datetime.fromisoformat(threshold.info["begun"])
    tables = {
        "entries": entries_of_all(rescores, scores, chosen, config, when),
        "groups": chosen.groups,
        "chosen": chosen_table([one.run.run_id for one in rescores], scores, chosen, config.score),
    }
    for name, table in tables.items():
        write_table(_path(threshold, name), table)
    names = ("documents", "left_out", "read", "judged", "unread", "not_finite", "tokens")
    counts = {**{name: sum(one[name] for one in closed) for name in names}, **chosen.counts()}
    keys: list[bytes] = tables["entries"].column("key").to_pylist()
    proposal = {
        "inputs": inputs,
        # With the entries, so that a decision is about what was shown, whatever another release makes of the same scores.
        "identity": digest8([inputs, hashlib.sha256(b"".join(keys)).hexdigest()]),
        "counts": {**counts, "entries": tables["entries"].num_rows},
        "files": {f"{name}.arrow": file_sha256(_path(threshold, name)) for name in tables},
    }
    write_json(threshold.folder / "chosen" / "proposal.json", proposal)
    return proposal


def proposal_of(threshold: Threshold) -> dict[str, Any] | None:
    """proposal.json, if it stands and its files are what it says."""
    path = threshold.folder / "chosen" / "proposal.json"
    if not path.exists():
        return None
    try:
        proposal: dict[str, Any] = read_json(path)
        for name in _TABLES:
            open_table(_path(threshold, name), proposal["files"][f"{name}.arrow"])
    except (RunError, KeyError, TypeError):
        return None
    return proposal


def read_proposed(threshold: Threshold, name: str) -> pa.Table:
    """entries, groups or chosen, held against its checksum."""
    proposal = read_json(threshold.folder / "chosen" / "proposal.json")
    return open_table(_path(threshold, name), proposal["files"][f"{name}.arrow"]).read_all()


def _path(threshold: Threshold, name: str) -> Path:
    return threshold.folder / "chosen" / f"{name}.arrow"


def chosen_table(run_ids: Sequence[str], scores: Sequence[pa.Table], chosen: Chosen, score: str) -> pa.Table:
    """chosen.arrow: `chosen` speaks of the scores of all runs, one after the other; `score` names the one that decided."""
    parts = [CHOSEN_SCHEMA.empty_table()]
    start = 0
    for run_id, table in zip(run_ids, scores, strict=True):
        side = chosen.side[start : start + table.num_rows]
        start += table.num_rows
        rows = np.flatnonzero(side)
        taken = table.take(pa.array(rows))
        columns = {
            "run_id": pa.repeat(pa.scalar(run_id), len(rows)),
            "side": pa.array(side[rows], pa.int8()),
            "score": taken.column(score),
        }
        arrays = [
            columns.get(name, taken.column(name) if name in taken.column_names else None)
            for name in CHOSEN_SCHEMA.names
        ]
        parts.append(pa.table(arrays, schema=CHOSEN_SCHEMA))
    return pa.concat_tables(parts).combine_chunks()


# -- for a person ------------------------------------------------------------------------------


def told(threshold: Threshold) -> str:
    """What would be blacklisted, with samples, as plain text for somebody who decides: nothing in it is a command.

    Every line is printable and stands by itself, whatever the crawl holds.
    """
    proposal = read_json(threshold.folder / "chosen" / "proposal.json")
    counts, entry = proposal["counts"], threshold.info["entry"]
    lines = [
        f"{counts['entries']:,} entries from {counts['judged']:,} judged documents of {len(threshold.info['runs'])} runs,",
        f"by the checkpoint of {entry['tokens_seen']:,} tokens ({entry['checkpoint']}).",
        "",
    ]
    chosen = read_proposed(threshold, "chosen")
    groups = [row for row in read_proposed(threshold, "groups").to_pylist() if row["high_chosen"] or row["low_chosen"]]
    groups.sort(key=lambda row: (-row["high_chosen"] - row["low_chosen"], row["language"], row["source"]))
    samples = {
        (place, side): _samples(chosen, group, side)
        for place, group in enumerate(groups[:TOLD_GROUPS])
        for end, side in (("high", HIGH), ("low", LOW))
        if group[f"{end}_chosen"]
    }
    texts = _beginnings(threshold, [row for rows in samples.values() for row in rows])
    for place, group in enumerate(groups[:TOLD_GROUPS]):
        lines += [f"{group['language']}  {group['source']}  ({group['judged']:,} judged)"]
        for end, side in (("high", HIGH), ("low", LOW)):
            if not group[f"{end}_chosen"]:
                continue
            held = f", {group[f'{end}_held_back']:,} held back" if group[f"{end}_held_back"] else ""
            lines.append(f"  {REASONS[side]}: {group[f'{end}_chosen']:,}, beyond {group[f'{end}_limit']:.3f}{held}")
            lines += [f"    {row['score']:.3f}  {texts[_place(row)]}" for row in samples[place, side]]
        lines.append("")
    if len(groups) > TOLD_GROUPS:
        lines.append(f"and {len(groups) - TOLD_GROUPS} more languages and sources: see chosen/groups.arrow")
    return "\n".join(printable(line) for line in lines)


def _samples(chosen: pa.Table, group: dict[str, Any], side: int) -> list[dict[str, Any]]:
    """Some documents of an end: the farthest out, one in the middle, and the nearest to the limit."""
    names = ("language", "source")
    mine = chosen.filter(
        reduce(pc.and_, [pc.equal(chosen["side"], side), *(pc.equal(chosen[n], group[n]) for n in names)])
    )
    ranked = mine.sort_by([("score", "descending" if side == HIGH else "ascending"), ("doc_id", "ascending")])
    places = sorted({round(k * (ranked.num_rows - 1) / (SAMPLES - 1)) for k in range(SAMPLES)})
    found: list[dict[str, Any]] = ranked.take(pa.array(places)).to_pylist()
    return found


def _place(row: dict[str, Any]) -> tuple[str, str, int]:
    return row["run_id"], row["shard"], row["row"]


def _beginnings(threshold: Threshold, rows: Sequence[dict[str, Any]]) -> dict[tuple[str, str, int], str]:
    """How the texts of some documents begin, by `_place`; each run is opened once, and each shard read once."""
    found: dict[tuple[str, str, int], str] = {}
    for run_id, of_run in groupby(sorted(map(_place, rows)), key=itemgetter(0)):
        shards = {one.name: one for one in Rescore.open(threshold.folder / run_id).shards}
        for name, of_shard in groupby(of_run, key=itemgetter(1)):
            wanted = [row for _, _, row in of_shard]
            for start, batch in batches(shards[name], ["text"]):
                for row in wanted:
                    if start <= row < start + batch.num_rows:
                        text = batch.column(0)[row - start].as_py()
                        found[run_id, name, row] = text[:SAMPLE_LETTERS] + ("..." if len(text) > SAMPLE_LETTERS else "")
            if lost := [row for row in wanted if (run_id, name, row) not in found]:
                raise RunError(f"{shards[name].path} has no row {lost[0]}, which was scored. Score the run anew.")
    return found
