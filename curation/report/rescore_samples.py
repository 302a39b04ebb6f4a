"""Documents that a re-score put on the blacklist, to be read: the farthest out at either end, and some by chance.

Chosen by score, or by a hash of doc_id, so that every build shows the same ones; of each text a few hundred bytes are read
from its run's shards, masked as in the report of a run. A run that is gone has no samples, and the page says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from markupsafe import Markup

from curation.errors import CorpusmillError
from curation.report.excerpt import shown
from curation.report.numbers import noun, value
from curation.report.rescore_threshold import Threshold
from curation.report.samples import Place, Sampled, priorities, read_samples, salted
from curation.run import Run
from curation.shards import Shard, shards_of

__all__ = ["ChosenSample", "SampleList", "sample_chosen"]

N_FARTHEST, N_BY_CHANCE = 6, 8
ENDS = {1: ("noise", "bits per byte very high"), -1: ("boilerplate", "bits per byte very low")}


@dataclass(frozen=True)
class ChosenSample:
    """A document that was chosen."""

    document: Sampled
    text: Markup
    run_id: str
    score: str
    language: str


@dataclass(frozen=True)
class SampleList:
    """Samples of one end, chosen in one way."""

    title: str
    note: str
    samples: Sequence[ChosenSample]
    open: bool
    missing: int
    """Samples that could not be read."""


def sample_chosen(threshold: Threshold, score: str) -> list[SampleList]:
    """Lists of samples, noise first; empty if nothing was chosen. What cannot be read becomes a problem of the threshold.

    Args:
        score: what `score` of chosen.arrow is: bits_per_byte or loss.
    """
    chosen = threshold.chosen
    side = chosen.column("side").to_numpy()
    unit = "bits per byte" if score == "bits_per_byte" else "nats a token"
    keys = priorities(_ids(chosen))
    picked: list[tuple[str, str, list[int], bool]] = []
    for end, (name, _) in ENDS.items():
        rows = np.flatnonzero(side == end)
        far = chosen.column("score").to_numpy()[rows] * -end
        farthest = rows[np.lexsort((keys[rows], far))][:N_FARTHEST]
        others = np.setdiff1d(rows, farthest)
        by_chance = others[np.argsort(salted(keys[others], f"rescore {end}"), kind="stable")][:N_BY_CHANCE]
        n = noun(len(rows), "document")
        what = f"{'highest' if end > 0 else 'lowest'} {unit} of {n}"
        picked.append((f"{name}, the farthest out", what, farthest.tolist(), True))
        picked.append((f"{name}, by chance", f"of the other {len(others):,}", by_chance.tolist(), False))
    read = _read(threshold, sorted({row for _, _, rows, _ in picked for row in rows}))
    return [
        SampleList(
            title, note, [read[row] for row in rows if row in read], opened, sum(row not in read for row in rows)
        )
        for title, note, rows, opened in picked
        if rows
    ]


def _ids(chosen: pa.Table) -> pa.Array:
    column = chosen.column("doc_id").combine_chunks()
    return pa.concat_arrays(column.chunks) if isinstance(column, pa.ChunkedArray) else column


def _read(threshold: Threshold, rows: Sequence[int]) -> dict[int, ChosenSample]:
    """The documents of rows of chosen.arrow, run after run."""
    table = threshold.chosen.take(pa.array(rows, pa.int64())).to_pylist()
    found: dict[int, ChosenSample] = {}
    for run_id in sorted({one["run_id"] for one in table}):
        try:
            shards = shards_of(Run.find(threshold.root / "runs" / run_id))
            places = _places(shards, run_id, table, rows)
            documents = read_samples(shards, places.values())
        except (CorpusmillError, pa.ArrowException, OSError) as error:
            threshold.problems.append(f"no samples of run {run_id}: {error}")
            continue
        for row, one in zip(rows, table, strict=True):
            document = documents.get(places[row]) if row in places else None
            if document is None or document.doc_id != one["doc_id"].hex():
                if one["run_id"] == run_id:
                    threshold.problems.append(f"run {run_id} no longer holds document {one['doc_id'].hex()}.")
                continue
            score = value(one["score"]) if one["score"] is not None else "-"
            text = shown(document.text.text)
            found[row] = ChosenSample(document, text, run_id, score, one["language"] or "")
    return found


def _places(
    shards: Sequence[Shard], run_id: str, table: Sequence[dict[str, object]], rows: Sequence[int]
) -> dict[int, Place]:
    """Where the rows of one run stand."""
    numbers = {shard.name: number for number, shard in enumerate(shards)}
    return {
        row: (numbers[str(one["shard"])], int(str(one["row"])))
        for row, one in zip(rows, table, strict=True)
        if one["run_id"] == run_id and one["shard"] in numbers
    }
