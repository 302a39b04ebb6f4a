"""The plan of a whole token file on disk: made window by window, read sequence by sequence in any order.

Costs the memory of one window while it is made (200 MB for a million documents), and of one block while it is read;
12 to 20 bytes a piece and 8 bytes a sequence of anonymous file (`Spool`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt

from tokenization.packing.plan import Ints, Plan, numbered
from tokenization.packing.spool import Spool

__all__ = ["PlanFile", "Window"]


@dataclass(frozen=True, slots=True)
class Window:
    """Rows that were planned together.

    plan: of these rows; its documents are counted from `first_row`, its sequences from `first_sequence`.
    """

    copy: int
    first_row: int
    first_sequence: int
    plan: Plan


class PlanFile:
    """Plans of consecutive windows. `append` them all, then read. A context manager: it keeps files open."""

    def __init__(self, folder: Path, seq_len: int, n_rows: int) -> None:
        """An empty plan.

        Args:
            folder: on a disk with room for 12 bytes a piece and 8 bytes a sequence.
            n_rows: how many rows will be planned.

        Raises:
            OSError: the files cannot be made.
        """
        self.seq_len = seq_len
        self.cut_documents = 0
        self._stack = ExitStack()
        self._pieces = self._spool(folder, np.int32 if n_rows < 2**31 else np.int64, 3)  # row, start, length
        self._first_piece = self._spool(folder, np.int64, 1)
        self._windows: list[tuple[int, int, int, int, int]] = []  # copy, first row, rows, pieces before, lead

    def __enter__(self) -> PlanFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let the files go."""
        self._stack.close()

    @property
    def n_sequences(self) -> int:
        return len(self._first_piece)

    @property
    def n_pieces(self) -> int:
        return len(self._pieces)

    def append(self, copy: int, first_row: int, plan: Plan) -> None:
        """Add the plan of the rows that follow.

        Raises:
            OSError: the disk is full.
        """
        before = self.n_pieces
        self._windows.append((copy, first_row, plan.n_documents, before, plan.lead))
        self._pieces.append(np.stack([plan.document + first_row, plan.start, plan.length], axis=1))
        self._first_piece.append(plan.first_piece[1 if plan.lead else 0 : -1] + before)
        self.cut_documents += len(np.unique(plan.document[plan.start > 0]))

    def windows(self) -> Iterator[Window]:
        """The windows as they were appended."""
        sequence = 0
        begins = [before for _, _, _, before, _ in self._windows]
        ends = [*begins, self.n_pieces][1:]
        for (copy, first_row, n_rows, before, lead), end in zip(self._windows, ends, strict=True):
            first = sequence - 1 if lead else sequence
            borders = [np.array([before] if lead else [], np.int64)]
            # Sequences of a window begin with one of its pieces; a million at a time are looked at.
            while sequence < self.n_sequences:
                here = self._first_piece.read(sequence, min(sequence + (1 << 20), self.n_sequences))
                n_inside = int(np.searchsorted(here, end))
                borders.append(here[:n_inside])
                sequence += n_inside
                if n_inside < len(here):
                    break
            row, start, length = _columns(self._pieces.read(before, end))
            first_piece = np.concatenate([*borders, [end]]) - before
            plan = Plan(self.seq_len, n_rows, row - first_row, start, length, first_piece, lead)
            yield Window(copy, first_row, first, plan)

    def sequences(self, begin: int, end: int) -> Plan:
        """Neighbouring sequences begin .. end; the documents of the plan are rows."""
        first = self._first_piece.read(begin, min(end + 1, self.n_sequences))
        if end == self.n_sequences:
            first = np.append(first, self.n_pieces)
        a, b = int(first[0]), int(first[-1])
        row, start, length = _columns(self._pieces.read(a, b))
        return Plan(self.seq_len, self.n_pieces, row, start, length, first - a)

    def take(self, sequences: Ints) -> Plan:
        """Some sequences in the order given; the documents of the plan are rows."""
        first = self._first_piece.take(sequences)
        last = np.full(len(sequences), self.n_pieces)
        inside = sequences + 1 < self.n_sequences
        last[inside] = self._first_piece.take(sequences[inside] + 1)
        of, number = numbered(last - first)
        row, start, length = _columns(self._pieces.take(first[of] + number))
        borders = np.concatenate([np.zeros(1, np.int64), np.cumsum(last - first)])
        return Plan(self.seq_len, self.n_pieces, row, start, length, borders)

    def _spool(self, folder: Path, kind: npt.DTypeLike, width: int) -> Spool:
        spool = Spool(folder, kind, width)
        self._stack.callback(spool.close)
        return spool


def _columns(pieces: npt.NDArray[np.integer[Any]]) -> Ints:
    """Row, start and length of pieces: int64[3, n_pieces]."""
    return np.ascontiguousarray(pieces.T, np.int64)
