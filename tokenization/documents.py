"""The document table beside a token file: where each document's pieces lie, and whether they really lie there.

A table has a row for each document, a token file a row for each sequence, in another order; neither fits into memory.
So both are read once, in their own order, and a hash of each piece (document, place, length) is added up by groups of
rows: equal sums, equal pieces. Where a sum differs, that group alone is compared piece by piece, so that the row can
be named. Needs pyarrow and NumPy only. Costs 0.2 us a document, and 8 bytes for every 65,536 documents.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from tokenization.errors import TokenFileError
from tokenization.layout import Block, Header
from tokenization.places import later_sequences

__all__ = ["GROUP", "PieceSums", "Pieces", "block_pieces", "first_difference", "table_pieces"]

Ints = npt.NDArray[np.int64]

GROUP = 1 << 16
"""Documents whose pieces are added up together."""
_COLUMNS = ("row", "n_tokens", "sequence", "offset", "pieces", "last_sequence", "last_offset")
_MOST_PIECES = 1 << 20
"""Pieces of the table that are worked on at a time."""


class Pieces(NamedTuple):
    """Pieces of documents. Arrays of int64[n_pieces]."""

    row: Ints
    """Of the document."""
    place: Ints
    """Of the first token: sequence * seq_len + position in the sequence."""
    length: Ints

    def of(self, chosen: npt.NDArray[np.bool_]) -> Pieces:
        return Pieces(self.row[chosen], self.place[chosen], self.length[chosen])


def block_pieces(block: Block, first_sequence: int) -> Pieces:
    """The pieces in a block that has passed its check."""
    seq_len = block.tokens.shape[1]
    lengths = block.lengths.astype(np.int64)
    counts = np.diff(block.first_piece)
    before = np.cumsum(lengths) - lengths
    offset = before - np.repeat(before[block.first_piece[:-1]], counts)
    sequence = np.repeat(np.arange(len(counts)), counts) + first_sequence
    return Pieces(block.rows, sequence * seq_len + offset, lengths)


class PieceSums:
    """Sums of hashes of pieces, one for each group of documents: equal if and only if the pieces are, in any order."""

    def __init__(self, documents: int) -> None:
        self.sums = np.zeros(-(-documents // GROUP), np.uint64)

    def add(self, pieces: Pieces) -> None:
        """Rows must be inside 0 .. documents - 1."""
        hashes = _mixed(pieces.row.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15))
        for part in (pieces.place, pieces.length):
            hashes = _mixed(hashes ^ part.astype(np.uint64))
        np.add.at(self.sums, pieces.row // GROUP, hashes)

    def differing(self, other: PieceSums) -> list[int]:
        """Groups whose sums differ."""
        return [int(group) for group in np.flatnonzero(self.sums != other.sums)]


def _mixed(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """The finaliser of splitmix64: every bit of a value decides every bit of the result."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def table_pieces(path: Path, header: Header, group: int | None = None) -> Iterator[Pieces]:
    """The pieces that documents.parquet promises, in its order.

    Args:
        group: only those that may be of this group of documents; None: all.

    Raises:
        TokenFileError: the table cannot be read, is not of this file, or a row of it cannot be true.
    """
    try:
        with pq.ParquetFile(path) as table:
            missing = [name for name in _COLUMNS if name not in table.schema_arrow.names]
            if missing:
                raise TokenFileError(f"has no column {', '.join(missing)}")
            if table.metadata.num_rows != header.documents:
                raise TokenFileError(f"has {table.metadata.num_rows} rows, but the file {header.documents} documents")
            first = 0
            for batch in table.iter_batches(GROUP, columns=list(_COLUMNS)):
                inside = range(first // GROUP, (first + max(1, len(batch)) - 1) // GROUP + 1)
                if group is None or group in inside:
                    yield from _pieces_of_rows(batch, first, header)
                first += len(batch)
    except (pa.ArrowException, OSError, EOFError, UnicodeDecodeError) as error:
        raise TokenFileError(f"cannot be read: {error}") from error


def _pieces_of_rows(batch: pa.RecordBatch, first: int, header: Header) -> Iterator[Pieces]:
    """Pieces of the documents of a batch, whose first row must be `first`."""
    if any(column.null_count or not pa.types.is_integer(column.type) for column in batch.columns):
        raise TokenFileError(f"rows {first} to {first + len(batch) - 1}: there are places that are no whole numbers")
    columns = {name: batch.column(name).to_numpy().astype(np.int64) for name in _COLUMNS}
    _refuse(columns["row"] != np.arange(first, first + len(batch)), first, "is not numbered as its place in the table")
    pieces, seq_len = columns["pieces"], header.seq_len
    most = header.sequences
    for name, least, end in (("sequence", 0, most), ("last_sequence", 0, most), ("pieces", 1, most + 1)):
        wrong = (columns[name] < least) | (columns[name] >= end)
        _refuse(wrong, first, f"has a {name} outside {least} .. {end - 1}")
    for name in ("offset", "last_offset"):
        _refuse((columns[name] < 0) | (columns[name] >= seq_len), first, f"has a {name} outside 0 .. {seq_len - 1}")
    # All pieces but the last run to the end of their sequence.
    before = np.where(pieces > 1, seq_len - columns["offset"] + (pieces - 2) * seq_len, 0)
    last = columns["n_tokens"] - before
    wrong = (last < 1) | (last > seq_len - columns["last_offset"])
    wrong |= (pieces == 1) & (columns["sequence"] != columns["last_sequence"])
    wrong |= (pieces == 1) & (columns["offset"] != columns["last_offset"])
    _refuse(wrong, first, "has places that do not hold its n_tokens")
    ends = np.cumsum(pieces)
    begin = 0
    while begin < len(pieces):
        done = int(ends[begin - 1]) if begin else 0
        end = max(begin + 1, int(np.searchsorted(ends, done + _MOST_PIECES, side="right")))
        yield _expanded({name: column[begin:end] for name, column in columns.items()}, last[begin:end], header)
        begin = end


def _refuse(wrong: npt.NDArray[np.bool_], first: int, what: str) -> None:
    if wrong.any():
        raise TokenFileError(f"row {first + int(wrong.argmax())} {what}")


def _expanded(columns: dict[str, Ints], last: Ints, header: Header) -> Pieces:
    """Each piece of some documents. The first and the last lie where the table says, those between as `places` says."""
    pieces, seq_len = columns["pieces"], header.seq_len
    document = np.repeat(np.arange(len(pieces)), pieces)
    number = np.arange(len(document)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    is_last = number == pieces[document] - 1
    is_first = number == 0
    sequence = columns["sequence"][document]
    between = np.flatnonzero(~is_first & ~is_last)
    sequence[between] = later_sequences(
        sequence[between], number[between], sequences=header.sequences, shuffle_seed=header.shuffle_seed
    )
    beyond = document[between[sequence[between] >= header.sequences]]
    if len(beyond):
        raise TokenFileError(f"row {columns['row'][beyond[0]]} has pieces behind the last sequence")
    place = sequence * seq_len
    place[is_first] += columns["offset"]
    place[is_last] = columns["last_sequence"] * seq_len + columns["last_offset"]
    length = np.full(len(document), seq_len)
    length[is_first] -= columns["offset"]
    length[is_last] = last
    return Pieces(columns["row"][document], place, length)


def first_difference(promised: list[Pieces], found: list[Pieces], seq_len: int) -> str:
    """The first document whose pieces are not as the table promises, in words."""
    sides = []
    for pieces in (promised, found):
        side = np.stack([np.concatenate(parts) for parts in zip(*pieces, strict=True)])
        sides.append([tuple(piece) for piece in side[:, np.lexsort((side[1], side[0]))].T.tolist()])
    # A table may promise one piece twice: that too is a difference.
    lost, extra = (sorted((Counter(a) - Counter(b)).elements()) for a, b in (sides, sides[::-1]))
    row = min(piece[0] for piece in (*lost[:1], *extra[:1]))

    def said(pieces: list[tuple[int, ...]]) -> str:
        mine = [f"{n} tokens in sequence {place // seq_len} at {place % seq_len}" for r, place, n in pieces if r == row]
        return ", ".join(mine[:3]) or "nothing"

    return f"row {row}: the table says {said(lost)}; the token file holds {said(extra)}"
