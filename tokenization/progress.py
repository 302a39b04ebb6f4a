"""The progress ledger: how far a training has come, as lines of JSON that a trainer appends and the re-score reads.

    ledger = ProgressLedger("out/progress.jsonl")
    attempt = ledger.begin("my-gpt", tokenizer=file.metadata.tokenizer.fingerprint, token_files=[file.seal])
    attempt.append(tokens_seen=10_240_000, step=100, checkpoint="step-100.pt")      # after each checkpoint

    for k, entry in ledger.thresholds_passed(every=10**10):     # the reader: level-triggered, may ask at any time
        print(k, ledger.path.parent / entry.checkpoint)

Nothing is ever changed but by appending. A line is one write under a lock, and is fsynced before `append` returns;
its last key is a CRC-32 of the rest. So a killed process or a cut file costs at most the last line, and a damaged
line is reported, never believed. Which line counts is decided by reading:

An **attempt** is one process that trains. One that resumes from a checkpoint names the attempt that wrote it and
`resumed_at`, the checkpoint's tokens_seen, which may be less than that attempt reached. The newest attempt is the one
that began last, even if an older process still writes. Its **lineage** is its own lines, before them its parent's up
to `resumed_at`, and so on: along a lineage tokens_seen never falls.

A trainer that keeps no attempt says how far it is by `report`, in the order of its training (`corpusmill progress`), or by
events, in any order (`add`; which of them count: `progress_reports`).

Costs 0.3 ms and one fsync an append; reading 15 us a line, which `report` and `add` do each time. Needs the standard
library only, and a file system on which `flock` works between the machines that append.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, SupportsIndex

from tokenization.progress_file import opened
from tokenization.progress_history import History, Problem, history_of
from tokenization.progress_line import REPORTS, Entry, ProgressError, contradiction, entry_of, to_line
from tokenization.progress_reports import known

__all__ = ["Attempt", "Entry", "History", "Problem", "ProgressError", "ProgressLedger"]

FILE_NAME = "progress.jsonl"
_TOLD = "told-"
"""Attempts begin so whose lines `ProgressLedger.report` wrote: it goes on with no others, whose process may live."""


class ProgressLedger:
    """A ledger's file. Any number of processes may read and append at once."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Name a ledger; nothing is opened or made yet.

        Args:
            path: the file, or a folder that exists: then `progress.jsonl` in it.
        """
        self.path = Path(path)
        if self.path.is_dir():
            self.path /= FILE_NAME

    def begin(
        self,
        run: str,
        *,
        tokenizer: str,
        token_files: Sequence[str],
        after: Entry | None = None,
        tokens_seen: SupportsIndex = 0,
        step: SupportsIndex = 0,
    ) -> Attempt:
        """Append the first line of a new attempt, which makes it the newest one; on one rank only.

        Args:
            run: name of the training.
            tokenizer: `TokenFile.metadata.tokenizer.fingerprint`.
            token_files: `TokenFile.seal` of each file.
            after: the line of the checkpoint that it goes on from (`History.latest_checkpoint`, `of_checkpoint`).
            tokens_seen, step: where a training stands that goes on from a checkpoint without a line; with `after`
                its own count.

        Raises:
            ProgressError: a value cannot be, or the line cannot be written.
        """
        if after:
            tokens_seen, step = after.tokens_seen, after.step
        attempt = Attempt(
            self,
            run=run,
            attempt=secrets.token_hex(8),
            parent=after.attempt if after else None,
            resumed_at=tokens_seen,
            token_files=token_files,
            tokenizer=tokenizer,
        )
        checkpoint, sha256 = (after.checkpoint, after.checkpoint_sha256) if after else (None, None)
        attempt.append(tokens_seen, step, checkpoint, sha256=sha256)
        return attempt

    def report(
        self,
        run: str,
        *,
        tokens_seen: SupportsIndex,
        step: SupportsIndex,
        checkpoint: str | os.PathLike[str] | None = None,
        sha256: str | None = None,
        tokenizer: str | None = None,
        token_files: Sequence[str] | None = None,
    ) -> Entry | None:
        """Append what a trainer says that keeps no `Attempt`; None if the newest lineage of the run says it already.

        Reports are taken in the order in which they come: fewer tokens than the newest line has are a training that
        went back. They begin a new attempt, which goes on from the last line before them.

        Args:
            tokenizer, token_files: as of `begin`; None: those of the line before.

        Raises:
            ProgressError: a value cannot be, the tokenizer is another one than before, or the line cannot be written.
        """
        data = {
            "run": run,
            "attempt": _TOLD + secrets.token_hex(6),
            "parent": None,
            "resumed_at": tokens_seen,
            "tokens_seen": tokens_seen,
            "step": step,
            "checkpoint": None if checkpoint is None else os.fspath(checkpoint),
            "checkpoint_sha256": sha256,
            "token_files": token_files or (),
            "tokenizer": tokenizer,
            "time": datetime.now(timezone.utc).isoformat(timespec="microseconds"),
        }
        try:
            told = entry_of(data)
            with opened(self.path) as file:
                lineage = history_of(file.read(), self.path).lineage(run)
                if any(_says(line, told) for line in lineage):
                    file.sync()
                    return None
                entry = _placed(told, lineage)
                file.append(to_line(entry))
        except ProgressError:
            raise
        except ValueError as error:
            raise ProgressError(f"no line for the progress ledger {self.path}: {error}.") from None
        return entry

    def add(self, entry: Entry) -> Entry | None:
        """Append a line that was reported by an event (`Entry.reported`), unless it is known: then None.

        Raises:
            ProgressError: the ledger cannot be read or written.
        """
        if entry.attempt != REPORTS:
            raise ValueError(f"expected a line that was reported, found one of attempt {entry.attempt}")
        with opened(self.path) as file:
            if known(entry, history_of(file.read(), self.path).entries):
                file.sync()
                return None
            file.append(to_line(entry))
        return entry

    def read(self) -> History:
        """Everything in the file; one that is not there yet is empty.

        Raises:
            ProgressError: the file cannot be read, or a whole line was written by a newer version.
        """
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            data = b""
        except OSError as error:
            raise ProgressError(f"the progress ledger {self.path} cannot be read: {error.strerror}.") from error
        return history_of(data, self.path)

    def latest(self, run: str | None = None) -> Entry | None:
        """`History.latest` of what the file holds now."""
        return self.read().latest(run)

    def thresholds_passed(self, every: int, run: str | None = None) -> Iterator[tuple[int, Entry]]:
        """`History.thresholds_passed` of what the file holds now."""
        return self.read().thresholds_passed(every, run)

    def __repr__(self) -> str:
        return f"ProgressLedger({str(self.path)!r})"


class Attempt:
    """The lines of one training process; `ProgressLedger.begin` makes it."""

    def __init__(self, ledger: ProgressLedger, **same: Any) -> None:
        self._ledger = ledger
        self._same = same
        self._last: Entry | None = None

    @property
    def id(self) -> str:
        """Differs from that of any other attempt: good in names of checkpoints, so that none is ever overwritten."""
        return str(self._same["attempt"])

    def append(
        self,
        tokens_seen: SupportsIndex,
        step: SupportsIndex,
        checkpoint: str | os.PathLike[str] | None = None,
        *,
        sha256: str | None = None,
    ) -> Entry:
        """Append a line; it has reached the disk when this returns.

        Args:
            tokens_seen: tokens trained on since the very beginning, over all ranks, padding not counted.
            step: optimizer steps since the very beginning.
            checkpoint: its path (relative to the ledger's folder, or absolute) or id, written completely before.
            sha256: its checksum, in hex.

        Raises:
            ProgressError: a value cannot be, tokens_seen or step falls, or the disk is full or cannot be written.
        """
        data = {
            **self._same,
            "tokens_seen": tokens_seen,
            "step": step,
            "checkpoint": None if checkpoint is None else os.fspath(checkpoint),
            "checkpoint_sha256": sha256,
            "time": datetime.now(timezone.utc).isoformat(timespec="microseconds"),
        }
        try:
            entry = entry_of(data)
            if self._last and (fault := contradiction(entry, self._last)):
                raise ValueError(fault)
        except ValueError as error:
            raise ProgressError(f"no line for the progress ledger {self._ledger.path}: {error}.") from None
        with opened(self._ledger.path) as file:
            file.append(to_line(entry))
        self._last = entry
        return entry


def _placed(told: Entry, lineage: Sequence[Entry]) -> Entry:
    """A report in the attempt that it belongs to: the last one, if `report` wrote it; else one that goes on from a line.

    Raises:
        ValueError: it contradicts the lines before.
    """
    said = next((line for line in reversed(lineage) if line.tokenizer), None)
    if said and told.tokenizer not in (None, said.tokenizer):
        raise ValueError(
            f"tokenizer: expected {str(said.tokenizer)[:16]}..., as in the lines before, found {str(told.tokenizer)[:16]}...: "
            "another tokenizer is another training, so give it another name"
        )
    if said:
        told = replace(told, tokenizer=said.tokenizer, token_files=told.token_files or said.token_files)
    last = lineage[-1] if lineage else None
    if last and last.attempt.startswith(_TOLD) and last.tokens_seen <= told.tokens_seen:
        entry = replace(told, attempt=last.attempt, parent=last.parent, resumed_at=last.resumed_at)
        if fault := contradiction(entry, last):
            raise ValueError(fault)
        return entry
    before = next((line for line in reversed(lineage) if line.tokens_seen <= told.tokens_seen), None)
    return replace(told, parent=before.attempt, resumed_at=before.tokens_seen) if before else told


def _says(line: Entry, entry: Entry) -> bool:
    """Whether a line says what another one does; a checksum that nobody gave contradicts none."""
    same = all(getattr(line, name) == getattr(entry, name) for name in ("tokens_seen", "step", "checkpoint"))
    return same and entry.checkpoint_sha256 in (None, line.checkpoint_sha256)
