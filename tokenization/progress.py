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

Costs 0.3 ms and one fsync an append; reading 15 us a line. Needs the standard library only, and a file system
on which `flock` works between the machines that append.
"""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import stat
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, SupportsIndex

from tokenization.progress_line import Entry, ProgressError, contradiction, entry_of, parse_line, to_line

__all__ = ["Attempt", "Entry", "History", "Problem", "ProgressError", "ProgressLedger"]

FILE_NAME = "progress.jsonl"
_LOCK_SECONDS = 60.0
"""A lock is held for one write and one fsync: who waits longer has met a hanging disk or a stopped process."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A line that does not count, and why."""

    line: int
    """From 1."""
    what: str


@dataclass(frozen=True, slots=True)
class History:
    """What a ledger held when it was read."""

    entries: tuple[Entry, ...]
    """In the order in which they were written, of all runs and attempts."""
    problems: tuple[Problem, ...]
    """Lines that are damaged, foreign, or contradict the lines before; they are in no other answer."""
    torn: Problem | None
    """The last line, if it is not whole: a process was killed while it wrote, or is writing now."""

    def lineage(self, run: str | None = None) -> tuple[Entry, ...]:
        """The newest attempt's lines, and before them those that it goes back to; tokens_seen never falls.

        Args:
            run: only attempts of this training are looked at as the newest; None: of any.
        """
        attempts: dict[str, list[Entry]] = {}
        for entry in self.entries:
            attempts.setdefault(entry.attempt, []).append(entry)
        wanted = [lines for lines in attempts.values() if run is None or lines[0].run == run]
        lines = wanted[-1] if wanted else []
        parts: list[list[Entry]] = []
        limit = 2**63
        while lines:
            parts.append([entry for entry in lines if entry.tokens_seen <= limit])
            limit = min(limit, lines[0].resumed_at)
            del attempts[lines[0].attempt]  # attempts that name each other end the walk
            lines = attempts.get(lines[0].parent or "", [])
        return tuple(entry for part in reversed(parts) for entry in part)

    def latest(self, run: str | None = None) -> Entry | None:
        """The last line of the newest lineage; None if there is none."""
        lineage = self.lineage(run)
        return lineage[-1] if lineage else None

    def latest_checkpoint(self, run: str | None = None) -> Entry | None:
        """The last line of the newest lineage that names a checkpoint: where to resume; None if there is none."""
        return next((entry for entry in reversed(self.lineage(run)) if entry.checkpoint is not None), None)

    def of_checkpoint(self, checkpoint: str) -> Entry | None:
        """The last line, of any lineage, that names this checkpoint: where to go back to; None if there is none."""
        return next((entry for entry in reversed(self.entries) if entry.checkpoint == checkpoint), None)

    def thresholds_passed(self, every: int, run: str | None = None) -> Iterator[tuple[int, Entry]]:
        """For k = 1, 2, ..: the first line of the newest lineage with a checkpoint and tokens_seen >= k * every.

        A line that jumps over several thresholds stands for each of them. The answer is a function of the file
        alone: who asks late, twice, or after a restart misses nothing.
        """
        if every < 1:
            raise ValueError(f"every: expected a number of tokens of at least 1, found {every}")
        k = 1
        for entry in self.lineage(run):
            while entry.checkpoint is not None and k * every <= entry.tokens_seen:
                yield k, entry
                k += 1


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
        *lines, rest = data.split(b"\n")
        reading = _Reading(self.path)
        for number, line in enumerate(lines, start=1):
            reading.take(line, number)
        torn = None
        if rest and not reading.take(rest, len(lines) + 1):
            torn = reading.problems.pop()
        return History(tuple(reading.entries), tuple(reading.problems), torn)

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
        _append(self._ledger.path, to_line(entry))
        self._last = entry
        return entry


class _Reading:
    """Lines that were read so far."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.entries: list[Entry] = []
        self.problems: list[Problem] = []
        self._last: dict[str, Entry] = {}

    def take(self, line: bytes, number: int) -> bool:
        """Read a line without its end; false, and a problem, if it does not count. An empty line is nothing."""
        if not line:
            return True
        try:
            entry = parse_line(line)
            last = self._last.get(entry.attempt)
            if last and (fault := contradiction(entry, last)):
                raise ValueError(fault)
        except ProgressError as error:
            raise ProgressError(f"{self.path}, line {number}: {error}.") from None
        except ValueError as error:
            self.problems.append(Problem(number, str(error)))
            return False
        self._last[entry.attempt] = entry
        self.entries.append(entry)
        return True


def _append(path: Path, line: bytes) -> None:
    """Append a line by one write and bring it to the disk; after an error the file is as it was, or ends in a torn line."""
    descriptor = -1
    try:
        folders = [path.parent, *(folder.parent for folder in path.parents if not folder.exists())]
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK, 0o666)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is no regular file")
        _lock(descriptor)
        size = os.fstat(descriptor).st_size
        # Behind a torn line ours begins on a new one.
        whole = not size or os.pread(descriptor, 1, size - 1) == b"\n"
        data = line if whole else b"\n" + line
        if os.write(descriptor, data) != len(data):
            os.ftruncate(descriptor, size)
            raise OSError(errno.ENOSPC, "only a part of the line could be written")
        os.fsync(descriptor)
        for folder in folders if not size else []:
            _fsync_folder(folder)
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        remedy = "Free some space" if full else "Check that its folder is one, can be written to and locked"
        raise ProgressError(
            f"the progress ledger {path} could not be written: {error.strerror}. {remedy}, then append again."
        ) from error
    finally:
        if descriptor >= 0:
            fcntl.flock(descriptor, fcntl.LOCK_UN)  # closing alone would not, if a child was forked meanwhile
            os.close(descriptor)


def _lock(descriptor: int) -> None:
    give_up = time.monotonic() + _LOCK_SECONDS
    while True:
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > give_up:
                raise OSError(errno.EAGAIN, f"another process has held its lock for {_LOCK_SECONDS:.0f} s") from None
            time.sleep(0.005)


def _fsync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
