"""Lines that came by events: which of them stand, whatever the order in which they came.

A report is one fact. Which reports stand follows from the set of them alone, so late, early and repeated events change nothing.
A later report that has seen fewer tokens takes back those before it that had seen more: the training went back. Of two
reports one is the later one
  - if its `attempt` is greater;
  - if their attempts are the same, or one of them has none: if both have a `time` and its time is later.
So a report with neither takes nothing back and is never taken back: to miss a threshold is worse than to know a
checkpoint more. An attempt that began in the ledger itself takes back the reports of an earlier time that had seen more tokens
than it began with; reports never take back its lines. A report that says what such a line says is that line.

Costs a sort of the reports. Needs the standard library only.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, TypeAlias

from tokenization.progress_line import Entry, Reported

__all__ = ["known", "standing"]

_ALL = 2**63
_Fact: TypeAlias = tuple[str, int, int, str | None]


def known(entry: Entry, lines: Iterable[Entry]) -> bool:
    """Whether a report changes nothing: it is among the lines, or one of an attempt says it."""
    own = [line for line in lines if line.run == entry.run]
    key = _identity(entry)
    return any(line.reported and _identity(line) == key for line in own) or _Said(own).has(entry)


def standing(lines: Sequence[Entry], run: str, begun: Iterable[Entry]) -> list[Entry]:
    """The reports of a run that stand, each once, by their tokens.

    Args:
        lines: all lines of the ledger.
        begun: the first line of each attempt of the newest lineage.
    """
    said = _Said(line for line in lines if line.run == run)
    reports = {_identity(line): line for line in lines if line.run == run and line.reported and not said.has(line)}
    back = _Back(reports.values(), begun)
    stand = [line for line in reports.values() if line.tokens_seen <= back.limit(line)]
    return sorted(stand, key=lambda line: [(part is not None, part) for part in _identity(line)])


def _identity(line: Entry) -> tuple[Any, ...]:
    reported = line.reported or Reported(None, None)
    return (
        line.tokens_seen, line.step, line.checkpoint, line.checkpoint_sha256, reported.attempt, reported.time,
        line.tokenizer, line.token_files,
    )  # fmt: skip


class _Said:
    """What the lines of attempts say."""

    def __init__(self, lines: Iterable[Entry]) -> None:
        self._sums: dict[_Fact, set[str | None]] = {}
        for line in lines:
            if not line.reported:
                self._sums.setdefault(_fact(line), set()).add(line.checkpoint_sha256)

    def has(self, line: Entry) -> bool:
        """Whether they say this; a checksum that one of the two does not give contradicts none."""
        sums = self._sums.get(_fact(line))
        return sums is not None and (None in sums or line.checkpoint_sha256 in (None, *sums))


def _fact(line: Entry) -> _Fact:
    return line.run, line.tokens_seen, line.step, line.checkpoint


class _Back:
    """How far back the training went after each report."""

    def __init__(self, reports: Iterable[Entry], begun: Iterable[Entry]) -> None:
        by_attempt: dict[int | None, list[tuple[datetime, int]]] = {}
        least: dict[int, int] = {}
        for line in reports:
            assert line.reported
            attempt, time = line.reported.attempt, line.reported.time
            if time is not None:
                by_attempt.setdefault(attempt, []).append((time, line.tokens_seen))
            if attempt is not None:
                least[attempt] = min(line.tokens_seen, least.get(attempt, _ALL))
        self._begun = _After([(line.time, line.resumed_at) for line in begun])
        self._every = _After([one for some in by_attempt.values() for one in some])
        self._of = {attempt: _After(some) for attempt, some in by_attempt.items()}
        self._attempts = sorted(least)
        self._least = _least_from([least[attempt] for attempt in self._attempts])

    def limit(self, line: Entry) -> int:
        """Fewest tokens of all that came after a report."""
        assert line.reported
        attempt, time = line.reported.attempt, line.reported.time
        limits = [_ALL]
        if attempt is not None:
            limits.append(self._least[bisect_right(self._attempts, attempt)])
        if time is not None:
            after = [self._every] if attempt is None else [self._of[attempt], self._of.get(None)]
            limits += [one.least(time) for one in (self._begun, *after) if one]
        return min(limits)


class _After:
    """Tokens at moments, and the fewest of them after any moment."""

    def __init__(self, moments: list[tuple[datetime, int]]) -> None:
        moments = sorted(moments)
        self._times = [time for time, _ in moments]
        self._least = _least_from([tokens for _, tokens in moments])

    def least(self, time: datetime) -> int:
        return self._least[bisect_right(self._times, time)]


def _least_from(values: list[int]) -> list[int]:
    """For each place the least value from there on; one more than there are values."""
    least = [_ALL]
    for value in reversed(values):
        least.append(min(value, least[-1]))
    return least[::-1]
