"""Which copy stays: the order of priority of documents, as a setting.

A list of criteria; the first that tells two documents apart decides, then the smaller text_id, then the
smaller doc_id. The text_id comes first, so that which *text* is kept does not depend on the file or the
line in which a document stood. No single criterion is right for everyone: "longest" alone keeps the copy
with the menu around it (36 of 37 looked-at cases, marin-community/marin#8114), where a quality score
put before it keeps the clean one.

Each criterion becomes one uint64 for each document, smaller is better, so that priorities of any kind
travel in one column and compare as tuples.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from curation.errors import nearest
from curation.shards import Shard, item_marker, open_table

__all__ = ["CRITERIA", "Priority", "missing_scores", "parsed", "score_of"]

Places = npt.NDArray[np.uint64]

LAST = np.uint64(2**64 - 1)
"""Of a document for which a criterion says nothing: no date, no score, no matching source."""

MILLISECONDS_FROM = 10**11
"""Larger numbers are milliseconds since 1970: as seconds this is the year 5138."""

CRITERIA: Mapping[str, str] = {
    "longest": "more characters first",
    "shortest": "fewer characters first",
    "first": "in the order of the run: by path of the input, then by place in it",
    "newest": "later `date_field` first",
    "oldest": "earlier `date_field` first",
    "source_rank": "the first pattern of `sources` that fits the input's path or the page's address; no fit comes last",
    "highest:STEP.SCORE": "higher score of an earlier step first",
    "lowest:STEP.SCORE": "lower score of an earlier step first",
}


def parsed(criterion: str) -> str:
    """The criterion, if there is such a one.

    Raises:
        ValueError: there is none; the message names the nearest, and config adds the key.
    """
    kind, colon, score = criterion.partition(":")
    known = [name for name in CRITERIA if ":" not in name]
    if colon and kind in ("highest", "lowest") and all(score.partition(".")):
        return criterion
    if colon or kind not in known:
        raise ValueError(
            f"no criterion {criterion!r}{nearest(criterion, known)}: expected one of {', '.join(CRITERIA)}"
        )
    return criterion


def score_of(criterion: str) -> tuple[str, str] | None:
    """Step and score column that a criterion reads, if it reads any."""
    kind, colon, score = criterion.partition(":")
    step, _, column = score.partition(".")
    return (step, column) if colon and kind in ("highest", "lowest") else None


@dataclass(frozen=True)
class Priority:
    """The order of priority of one shard's documents."""

    criteria: Sequence[str]
    sources: Sequence[str]
    date_field: str
    shard_index: int
    shard: Shard
    earlier: Mapping[str, Path]
    """Folders of the steps that ran before, by name."""

    @property
    def width(self) -> int:
        """Values for each document; at least 1, since Arrow has no lists of none."""
        return max(1, len(self.criteria))

    @property
    def needs(self) -> list[str]:
        """Shard columns that the criteria read."""
        needed = []
        for criterion in self.criteria:
            needed += {"newest": ["meta"], "oldest": ["meta"], "source_rank": ["source", "url"]}.get(criterion, [])
        return needed

    def of(self, batch: pa.RecordBatch, rows: npt.NDArray[np.int64]) -> Places:
        """Places of the documents of a batch, which stand in these rows of the shard: uint64[n, width]."""
        places = np.zeros((batch.num_rows, self.width), np.uint64)
        for column, criterion in enumerate(self.criteria):
            places[:, column] = self._one(criterion, batch, rows)
        return places

    def _one(self, criterion: str, batch: pa.RecordBatch, rows: npt.NDArray[np.int64]) -> Places:
        if criterion in ("longest", "shortest"):
            lengths: Places = pc.utf8_length(batch.column("text")).to_numpy().astype(np.uint64)
            return lengths if criterion == "shortest" else LAST - lengths
        if criterion == "first":
            return np.uint64(self.shard_index << 32) + rows.astype(np.uint64)
        if criterion in ("newest", "oldest"):
            return _dates(batch.column("meta"), self.date_field, newest=criterion == "newest")
        if criterion == "source_rank":
            return self._source_ranks(batch)
        score = score_of(criterion)
        assert score is not None, criterion
        return self._scores(*score, rows, highest=criterion.startswith("highest"))

    def _source_ranks(self, batch: pa.RecordBatch) -> Places:
        sources, urls = batch.column("source").to_pylist(), batch.column("url").to_pylist()
        ranks = (_rank(self.sources, source, url) for source, url in zip(sources, urls, strict=True))
        return np.fromiter(ranks, np.uint64, batch.num_rows)

    def _scores(self, step: str, column: str, rows: npt.NDArray[np.int64], *, highest: bool) -> Places:
        folder = self.earlier[step]
        marker = item_marker(folder, self.shard.name)
        table = open_table(folder / f"{self.shard.name}.arrow", marker["verdict_sha256"], self.shard.rows).read_all()
        scores = table.column(column).take(pa.array(rows)).cast(pa.float64())
        values = scores.fill_null(np.nan).to_numpy()
        return np.where(np.isnan(values), LAST, _ordered(values, highest=highest))


def missing_scores(criteria: Sequence[str], earlier: Mapping[str, Sequence[str]], key: str) -> list[str]:
    """A sentence for each criterion that reads a score which no earlier step stores.

    Args:
        earlier: score columns that are numbers, of each step that stands before in the config.
        key: the setting that holds the criteria, for the message.
    """
    sentences = []
    for criterion in criteria:
        step, column = score_of(criterion) or ("", "")
        if step and step not in earlier:
            sentences.append(
                f"{key}: {criterion!r} reads step {step!r}, which does not stand before it in steps"
                f"{nearest(step, earlier)} (there: {', '.join(earlier) or 'nothing'})."
            )
        elif step and column not in earlier[step]:
            sentences.append(
                f"{key}: step {step} has no score {column!r} that is a number{nearest(column, earlier[step])} "
                f"(it has {', '.join(earlier[step]) or 'none'})."
            )
    return sentences


def _rank(patterns: Sequence[str], source: str | None, url: str | None) -> int:
    for rank, pattern in enumerate(patterns):
        if any(name is not None and fnmatchcase(name, pattern) for name in (source, url)):
            return rank
    return int(LAST)


def _dates(meta: pa.Array, field: str, *, newest: bool) -> Places:
    """Seconds since 1970 of a field of the record's other fields; no date that can be read comes last."""
    places = np.full(len(meta), LAST, np.uint64)
    for i, one in enumerate(meta.to_pylist()):
        # The parser of ingest: json gives up on what that one lets pass, objects nested a thousand deep.
        seconds = _seconds(orjson.loads(one).get(field)) if one else None
        if seconds is not None:
            places[i] = _ordered(np.array([seconds]), highest=newest)[0]
    return places


def _seconds(value: Any) -> float | None:
    """A date as ISO 8601 text, or as seconds since 1970, or milliseconds; without a zone it is UTC."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value / 1000 if abs(value) > MILLISECONDS_FROM else float(value)
    if not isinstance(value, str):
        return None
    try:
        date = datetime.fromisoformat(value)
    except ValueError:
        return None
    return (date if date.tzinfo else date.replace(tzinfo=timezone.utc)).timestamp()


def _ordered(values: npt.NDArray[np.float64], *, highest: bool) -> Places:
    """Numbers as uint64 in the same order, or in the opposite one; below LAST in either."""
    bits = (np.where(values == 0, 0.0, values)).astype(np.float64).view(np.uint64)
    negative = bits >> np.uint64(63) == 1
    rising = np.where(negative, ~bits, bits | np.uint64(1 << 63))
    return ~rising if highest else rising
