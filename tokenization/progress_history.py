"""What a progress ledger says: its lines as they stand in the file, and which of them count.

Costs 15 us a line. Needs the standard library only.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from tokenization.progress_line import REPORTS, Entry, ProgressError, contradiction, parse_line
from tokenization.progress_reports import standing

__all__ = ["History", "Problem", "history_of"]


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

        Reports that stand (`progress_reports`) are among them, by their tokens. A report that says no tokenizer has that of
        the other lines of its run, if they have one.

        Args:
            run: only attempts of this training are looked at as the newest; None: of any.
        """
        if run is None:
            run = self._newest_run()
        attempts: dict[str, list[Entry]] = {}
        for entry in self.entries:
            if not entry.reported:
                attempts.setdefault(entry.attempt, []).append(entry)
        own = [name for name, lines in attempts.items() if lines[0].run == run]
        lines = attempts[own[-1]] if own else []
        parts: list[list[Entry]] = []
        begun: list[Entry] = []
        limit = 2**63
        while lines:
            parts.append([entry for entry in lines if entry.tokens_seen <= limit])
            first = lines[0]
            begun.append(first)
            limit = min(limit, first.resumed_at)
            del attempts[first.attempt]  # attempts that name each other end the walk
            lines = attempts.get(_parent(first, own), [])
        direct = [entry for part in reversed(parts) for entry in part]
        reports = [] if run is None else standing(self.entries, run, begun)
        return self._with_tokenizer(heapq.merge(direct, reports, key=lambda entry: entry.tokens_seen), run)

    def _newest_run(self) -> str | None:
        """The run of the attempt that began last; reports of a run are one."""
        begun = {(entry.attempt, entry.run): None for entry in self.entries}
        return next((run for _, run in reversed(begun)), None)

    def _with_tokenizer(self, lineage: Iterator[Entry], run: str | None) -> tuple[Entry, ...]:
        said = {entry.tokenizer for entry in self.entries if entry.run == run and entry.tokenizer}
        tokenizer = said.pop() if len(said) == 1 else None
        return tuple(entry if entry.tokenizer else replace(entry, tokenizer=tokenizer) for entry in lineage)

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
        alone: who asks late, twice, or after a restart misses nothing. A report that comes late may be the earlier line
        that stands for a threshold from then on.
        """
        if every < 1:
            raise ValueError(f"every: expected a number of tokens of at least 1, found {every}")
        k = 1
        for entry in self.lineage(run):
            while entry.checkpoint is not None and k * every <= entry.tokens_seen:
                yield k, entry
                k += 1


def _parent(first: Entry, own: list[str]) -> str:
    """The attempt before the one that begins with a line; before one that goes on from a report, that which began before it."""
    if first.parent != REPORTS:
        return first.parent or ""
    place = own.index(first.attempt) if first.attempt in own else 0
    return own[place - 1] if place else ""


def history_of(data: bytes, path: Path) -> History:
    """What the bytes of a ledger say.

    Raises:
        ProgressError: a whole line was written by a newer version.
    """
    *lines, rest = data.split(b"\n")
    reading = _Reading(path)
    for number, line in enumerate(lines, start=1):
        reading.take(line, number)
    torn = None
    if rest and not reading.take(rest, len(lines) + 1):
        torn = reading.problems.pop()
    return History(tuple(reading.entries), tuple(reading.problems), torn)


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
            last = None if entry.reported else self._last.get(entry.attempt)
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
