"""Which documents are packed, how often and in which order: rows of a token file, as documents of the parts.

    all kept documents -> holdout: each once, in order
                       -> train:   copy 0 of all, copy 1 of all that have one, ..

Copy k of every document follows copy k - 1, and no sequence spans two copies, so a document never meets itself in a
sequence. Costs two or three passes over the parts' identities, 2 bytes a document and 4 bytes a row on disk
(`Spool`), and memory for a million documents at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tokenization.packing.mix import Mix, chosen, copies, epochs_of_weights, hash_of
from tokenization.packing.parts import Ints, Parts, Totals
from tokenization.packing.spool import Spool

__all__ = ["Rows", "Selection"]

CHUNK = 1 << 20
"""Documents looked at together."""


@dataclass
class Rows:
    """The rows of one side. Counts are of rows: a document that is packed twice counts twice.

    epochs: where copies begin, and the end: copy k is rows epochs[k] .. epochs[k + 1].
    mix: one entry a group, as the header holds it; empty where every document is packed once.
    """

    split: str
    documents: int
    """Documents with at least one row."""
    totals: Totals
    mix: tuple[Mapping[str, Any], ...]
    epochs: tuple[int, ...]
    _rows: Spool | None
    """Document of each row; None: row i is document i."""

    def __len__(self) -> int:
        return self.epochs[-1]

    @property
    def is_plain(self) -> bool:
        """Whether row i is document i."""
        return self._rows is None

    def documents_of(self, begin: int, end: int) -> Ints:
        """Documents of rows begin .. end: int64."""
        return np.arange(begin, end) if self._rows is None else self._rows.read(begin, end).astype(np.int64)

    def take(self, rows: Ints) -> Ints:
        """Documents of some rows: int64."""
        return rows if self._rows is None else self._rows.take(rows).astype(np.int64)

    def windows(self, size: int) -> Iterator[tuple[int, int, int]]:
        """Ranges of at most `size` rows of one copy: (copy, begin, end)."""
        for copy, (first, last) in enumerate(zip(self.epochs[:-1], self.epochs[1:], strict=True)):
            for begin in range(first, last, size):
                yield copy, begin, min(begin + size, last)


class Selection:
    """Both sides of the documents of some parts. A context manager: it keeps files open.

    sides: `all`, or `train` and `holdout`.
    documents: with a row on one side.
    left_out: documents without a row on either side, by epochs of 0 or a fraction.
    """

    def __init__(self, parts: Parts, folder: Path, *, mix: Mix | None = None, holdout_share: float = 0.0) -> None:
        """Decide about every document.

        Args:
            folder: on a disk with room for 2 bytes a document and 4 bytes a row.
            holdout_share: share of texts held out, 0 to below 1.

        Raises:
            MixError: the mixture cannot be made of these documents.
            TokenFileError: a part was cut or replaced meanwhile.
            OSError: the disk is full.
        """
        self._parts, self._folder, self._mix, self._share = parts, folder, mix, holdout_share
        self._stack = ExitStack()
        try:
            self.sides = self._decide()
        except BaseException:
            self._stack.close()
            raise
        self.documents = sum(side.documents for side in self.sides)
        self.left_out = len(parts) - self.documents

    def __enter__(self) -> Selection:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def _decide(self) -> tuple[Rows, ...]:
        parts = self._parts
        if self._mix is None and not self._share:
            return (Rows("all", len(parts), parts.totals, (), (0, len(parts)), None),)
        epochs = self._epochs()
        names = ("train", "holdout") if self._share else ("all",)
        tallies = [_Tally(self._mix) for _ in names]
        spools = [self._spool(np.uint16) for _ in names]
        for first, batch in parts.batches():
            lengths = parts.lengths.read(first, first + batch.num_rows).astype(np.int64)
            held, groups = self._held(batch), self._groups(batch)
            often = epochs[groups] if groups is not None else np.ones(len(lengths))
            packed = copies(hash_of(_ids(batch, "doc_id")), often)
            # What is left out by epochs of 0 is left out everywhere; other held-out texts are packed once.
            counts = [np.where(held, 0, packed), held & (often > 0)][: len(names)]
            for tally, spool, count in zip(tallies, spools, counts, strict=True):
                spool.append(count.astype(np.uint16))
                tally.add(count.astype(np.int64), lengths, batch, groups)
        return tuple(self._rows(*side, epochs) for side in zip(names, tallies, spools, strict=True))

    def _epochs(self) -> npt.NDArray[np.float64]:
        """Epochs of each group; of weights, by the tokens that there are on the side of training."""
        mix = self._mix
        if mix is None:
            return np.ones(1)
        if mix.epochs:
            return np.array([*(epochs for _, epochs in mix.epochs), 1.0])
        tokens = np.zeros(len(mix.patterns), np.int64)
        for first, batch in self._parts.batches():
            groups = self._groups(batch)
            assert groups is not None
            lengths = self._parts.lengths.read(first, first + batch.num_rows).astype(np.int64)
            np.add.at(tokens, groups, np.where(self._held(batch), 0, lengths))
        return np.array(epochs_of_weights(tokens.tolist(), mix))

    def _held(self, batch: pa.RecordBatch) -> npt.NDArray[np.bool_]:
        return chosen(hash_of(_ids(batch, "text_id")), self._share)

    def _groups(self, batch: pa.RecordBatch) -> Ints | None:
        if self._mix is None:
            return None
        names = pc.dictionary_encode(batch.column(self._mix.by))
        groups = self._mix.groups_of(names.dictionary.to_pylist())
        of_each: Ints = groups[names.indices.to_numpy()]
        return of_each

    def _rows(self, split: str, tally: _Tally, counts: Spool, epochs: npt.NDArray[np.float64]) -> Rows:
        """Lay the copies of one side out: copy 0 of all, copy 1, .."""
        rows = self._spool(np.int32 if len(counts) < 2**31 else np.int64)
        borders = [0]
        for copy in range(tally.most):
            for begin in range(0, len(counts), CHUNK):
                here = counts.read(begin, min(begin + CHUNK, len(counts)))
                rows.append(np.flatnonzero(here > copy) + begin)
            borders.append(len(rows))
        mix = () if split == "holdout" else tally.groups(self._mix, epochs)
        return Rows(split, tally.documents, tally.totals, mix, tuple(borders) if tally.most else (0, 0), rows)

    def _spool(self, dtype: npt.DTypeLike) -> Spool:
        spool = Spool(self._folder, dtype)
        self._stack.callback(spool.close)
        return spool


class _Tally:
    """Counts of one side."""

    def __init__(self, mix: Mix | None) -> None:
        self.documents = self.most = 0
        self.totals = Totals()
        n_groups = 0 if mix is None else len(mix.patterns)
        self._rows, self._tokens = np.zeros(n_groups, np.int64), np.zeros(n_groups, np.int64)

    def add(self, counts: Ints, lengths: Ints, batch: pa.RecordBatch, groups: Ints | None) -> None:
        self.documents += int(np.count_nonzero(counts))
        self.most = max(self.most, int(counts.max(initial=0)))
        self.totals.tokens += int((lengths * counts).sum())
        self.totals.unknown += int((batch.column("unknown").to_numpy() * counts).sum())
        self.totals.characters += int((batch.column("characters").to_numpy() * counts).sum())
        self.totals.lost += int((batch.column("lost").to_numpy() * counts).sum())
        if groups is not None:
            np.add.at(self._rows, groups, counts)
            np.add.at(self._tokens, groups, lengths * counts)

    def groups(self, mix: Mix | None, epochs: npt.NDArray[np.float64]) -> tuple[Mapping[str, Any], ...]:
        """What the header says of the mixture."""
        if mix is None:
            return ()
        weights = dict(mix.weights)
        return tuple(
            {"name": name, "weight": weights.get(name), "epochs": times, "documents": rows, "tokens": tokens}
            for name, times, rows, tokens in zip(
                mix.patterns, epochs.tolist(), self._rows.tolist(), self._tokens.tolist(), strict=True
            )
        )


def _ids(batch: pa.RecordBatch, name: str) -> npt.NDArray[np.uint8]:
    """A column of 16-byte ids as uint8[n, 16]."""
    column = batch.column(name)
    buffer = column.buffers()[1]
    if buffer is None or not len(column):
        return np.zeros((0, 16), np.uint8)
    return np.frombuffer(buffer, np.uint8).reshape(-1, 16)[column.offset : column.offset + len(column)]
