"""What of a packed file has been blacklisted since: the documents, the sequences that hold them, and what is lost with these.

The step `blacklisted` itself says which documents: by text_id from documents.parquet, and where the run's shards are
there, by URL, domain and near copy too. A document that is packed several times counts as one, with copies.

Costs 2 us a document; with shards a checksum of each (1 GB/s), 8 us a URL and 20 to 40 us a near comparison. Memory: 1 byte a
document, 9 with shards, and 50 for each that is found.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from curation.blacklist.layer import keys_of
from curation.errors import InputError, RunError
from curation.filters.blacklisted.step import Blacklisted
from curation.run import Run, file_sha256, read_json
from curation.shards import batches, shards_of

if TYPE_CHECKING:
    from tokenization.mask import Mask
    from tokenization.reader import TokenFile

__all__ = ["Found", "find_listed", "mask_of", "run_of"]

Int64s = npt.NDArray[np.int64]
Label = tuple[str, str]
"""How a document was found (text, near, url, domain), and the reason of the entry."""
_ROWS = 1 << 16
_AT_ONCE = 1 << 14
"""Sequences whose documents are looked at together."""


@dataclass
class Found:
    """Rows of documents.parquet that are blacklisted."""

    listed: npt.NDArray[np.int16]
    """int16[documents]: number of the label, -1: it is not blacklisted."""
    labels: dict[Label, int] = field(default_factory=dict)
    """Each with its number, in the order of the numbers: 0, 1, 2, .."""
    looked_at: dict[str, bool] = field(default_factory=dict)
    """What was compared: text, url (with domains), near."""

    def number(self, label: Label) -> int:
        number = self.labels.setdefault(label, len(self.labels))
        if number > np.iinfo(np.int16).max:
            raise InputError("the blacklist gives more than 32,768 reasons: too many to tell apart.")
        return number


def run_of(file: TokenFile, given: Path | None) -> tuple[Run | None, str]:
    """The run whose shards hold the documents of a file; else why there is none.

    Raises:
        RunError: the one that was given is another one.
    """
    wanted = file.metadata.run_id
    for folder in [given] if given is not None else list(file.path.absolute().parents[:4]):
        if not (folder / "run.json").is_file():
            continue
        run = Run(folder)
        if run.run_id == wanted and (run.shards / "_done.json").is_file():
            missing = [path for path in map(run.shard_path, run.shard_names()) if not path.is_file()]
            return (run, "") if not missing else (None, f"{missing[0]} is not there")
        if given is not None:
            raise RunError(f"{given} is the run {run.run_id}, but the file was packed by {wanted}, or has no shards.")
    if given is not None:
        raise RunError(f"{given} is no folder of a run: expected that of {wanted}, with run.json.")
    return None, f"the run {wanted} does not lie above the file"


def find_listed(file: TokenFile, step: Blacklisted, run: Run | None, *, urls: bool) -> Found:
    """The documents of a file that a step drops.

    Args:
        run: whose shards hold the documents; None: they are found by text_id alone.
        urls: whether the blacklist knows any.

    Raises:
        RunError: the table or a shard is missing, damaged, or of something else.
    """
    table = _Table(file)
    near = run is not None and step.config.near
    found = Found(np.full(file.metadata.documents, -1, np.int16))
    found.looked_at = {"text": True, "url": run is not None, "near": near}
    by_text = Blacklisted(step.config.model_copy(update={"near": False}))
    for first, batch in table.batches(["text_id"]):
        n = batch.num_rows
        asked = [pa.nulls(n, pa.large_string()), batch.column("text_id"), pa.nulls(n, pa.string())]
        for row, label in _dropped(by_text, pa.RecordBatch.from_arrays(asked, names=["text", "text_id", "url"])):
            found.listed[first + row] = found.number(label)
    if run is not None and (urls or near):
        _find_in_shards(table, step if near else by_text, run, found)
    return found


def _find_in_shards(table: _Table, step: Blacklisted, run: Run, found: Found) -> None:
    packed = np.sort(
        np.concatenate([_high(batch) for _, batch in table.batches(["doc_id"])] or [np.zeros(0, np.uint64)])
    )
    labels: dict[bytes, Label] = {}
    columns = ["doc_id", "text_id", "url", *(["text"] if step.config.near else [])]
    for shard in shards_of(run):
        for _, batch in batches(shard, columns):
            rows = np.flatnonzero(_among(_high(batch), packed))
            some = batch if len(rows) == batch.num_rows else batch.take(pa.array(rows))
            if not step.config.near:  # nothing looks at texts then, so none are copied
                some = some.append_column("text", pa.nulls(len(rows), pa.large_string()))
            for row, label in _dropped(step, some):
                labels[some.column("doc_id")[row].as_py()] = label
    wanted = np.sort(keys_of(pa.array(list(labels), pa.binary(16)))[0])
    for first, batch in table.batches(["doc_id"]) if labels else ():
        for row in np.flatnonzero(_among(_high(batch), wanted)).tolist():
            name = labels.get(batch.column("doc_id")[row].as_py())
            if name is not None and found.listed[first + row] < 0:
                found.listed[first + row] = found.number(name)


def _high(batch: pa.RecordBatch) -> npt.NDArray[np.uint64]:
    return keys_of(batch.column("doc_id"))[0]


def _among(values: npt.NDArray[np.uint64], ascending: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
    """Which values are there."""
    if not len(ascending):
        return np.zeros(len(values), np.bool_)
    places = np.minimum(np.searchsorted(ascending, values), len(ascending) - 1)
    same: npt.NDArray[np.bool_] = ascending[places] == values
    return same


def _dropped(step: Blacklisted, batch: pa.RecordBatch) -> Iterator[tuple[int, Label]]:
    """Rows that the step drops, each with how and why."""
    scores = step.score(batch)
    decision = step.decide(scores)
    matches = scores.column("matches")
    for row in np.flatnonzero(~np.asarray(decision.keep)).tolist():
        kind = list(step.reasons)[int(decision.reason[row])].partition(".")[2]
        yield row, (kind, next(one["reason"] for one in matches[row].as_py() if one["kind"] == kind))


class _Table:
    """documents.parquet beside a token file; held against manifest.json, if that lies there too."""

    def __init__(self, file: TokenFile) -> None:
        self.path, self.rows = file.path.with_name("documents.parquet"), file.metadata.documents
        if not self.path.is_file():
            raise RunError(
                f"{self.path} is not there: it says which documents the token file holds. Copy it beside it."
            )
        manifest = file.path.with_name("manifest.json")
        if manifest.is_file():
            told = read_json(manifest)["files"]
            there = {"seal": file.seal, "sha256": file_sha256(self.path)}
            if there != {"seal": told["tokens.arrow"]["seal"], "sha256": told["documents.parquet"]["sha256"]}:
                raise RunError(f"{manifest} speaks of other files than lie beside it. Copy the folder again.")

    def batches(self, columns: list[str]) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Rows of the table with the number of the first."""
        try:
            with pq.ParquetFile(self.path) as table:
                kinds = [table.schema_arrow.field(name).type for name in columns]
                if table.metadata.num_rows != self.rows or kinds != [pa.binary(16)] * len(columns):
                    raise RunError(
                        f"{self.path} is not the table of the token file, which holds {self.rows:,} documents."
                    )
                first = 0
                for batch in table.iter_batches(_ROWS, columns=columns):
                    yield first, batch
                    first += batch.num_rows
        except (pa.ArrowException, OSError, KeyError) as error:
            raise RunError(f"{self.path} cannot be read: {error}. Copy it again, or pack again.") from error

    def copies(self) -> npt.NDArray[np.bool_]:
        """Which rows are further copies of a document: bool[documents]."""
        with pq.ParquetFile(self.path) as table:
            parts = [batch.column(0).to_numpy() > 0 for batch in table.iter_batches(_ROWS, columns=["epoch"])]
        return np.concatenate(parts) if parts else np.zeros(0, np.bool_)


def mask_of(file: TokenFile, found: Found, facts: dict[str, Any]) -> Mask:
    """The mask of the sequences that hold a blacklisted document, whose facts count what was found and what is lost.

    Raises:
        RunError: the table does not say where the documents lie.
    """
    from tokenization.documents import table_pieces
    from tokenization.mask import Mask

    table = _Table(file)
    parts = [np.stack(pieces.of(found.listed[pieces.row] >= 0)) for pieces in table_pieces(table.path, file.metadata)]
    rows, places, lengths = np.concatenate(parts, axis=1) if parts else np.zeros((3, 0), np.int64)
    sequences, where = np.unique(places // file.metadata.seq_len, return_inverse=True)
    tokens = np.zeros(len(sequences), np.int64)
    np.add.at(tokens, where, lengths)
    others = _others(file, found, sequences, tokens)
    listed = found.listed[~table.copies()]
    counts = {
        "documents": int(np.count_nonzero(listed >= 0)),
        "copies": int(np.count_nonzero(found.listed >= 0)),
        "sequences": len(sequences),
        "tokens": int(tokens.sum()),
        "other_tokens": int(others.sum()),
        "tokens_of_file": file.metadata.tokens,
        "reasons": _by_reason(found, listed, found.listed[rows], where, lengths),
    }
    told = {**facts, "run_id": file.metadata.run_id, "looked_at": found.looked_at, **counts}
    return Mask.of(file, sequences, facts=told, columns={"blacklisted_tokens": tokens, "other_tokens": others})


def _by_reason(
    found: Found, firsts: npt.NDArray[np.int16], labels: npt.NDArray[np.int16], where: Int64s, lengths: Int64s
) -> list[dict[str, Any]]:
    """What is counted of each label, in one pass over all, however many labels there are.

    Args:
        firsts: labels of the documents that are no further copy of another, -1 for none.
        labels: of each piece of a listed document, with where (number of its sequence) and lengths (its tokens).
    """
    n = len(found.labels)
    tokens = np.zeros(n, np.int64)
    np.add.at(tokens, labels, lengths)
    width = int(where.max(initial=0)) + 1
    counted = {
        "documents": np.bincount(firsts[firsts >= 0], minlength=n),
        "copies": np.bincount(found.listed[found.listed >= 0], minlength=n),
        "sequences": np.bincount(np.unique(labels.astype(np.int64) * width + where) // width, minlength=n),
        "tokens": tokens,
    }
    return [
        {"found_by": kind, "reason": reason, **{name: int(counts[number]) for name, counts in counted.items()}}
        for (kind, reason), number in found.labels.items()
    ]


def _others(file: TokenFile, found: Found, sequences: Int64s, tokens: Int64s) -> Int64s:
    """Tokens of other documents in some sequences: int64[n]."""
    others = np.zeros(len(sequences), np.int64)
    for begin in range(0, len(sequences), _AT_ONCE):
        some = slice(begin, begin + _AT_ONCE)
        counts, lengths, doc_rows = file.pieces(sequences[some])
        inside = (doc_rows >= 0) & (doc_rows < len(found.listed))
        bad = inside & (found.listed[np.where(inside, doc_rows, 0)] >= 0)
        starts = np.cumsum(counts) - counts
        listed = np.add.reduceat(np.where(bad, lengths, 0), starts, dtype=np.int64)
        if not inside.all() or not np.array_equal(listed, tokens[some]):
            raise RunError(
                f"documents.parquet beside {file.path} does not say where its documents lie: it is not of this file, or one of "
                "them is damaged. `corpusmill verify` says more."
            )
        others[some] = np.add.reduceat(lengths, starts, dtype=np.int64) - listed
    return others
