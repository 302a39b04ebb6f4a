"""What a trainer says by an event becomes a line of the progress ledger, once.

    record("out/progress.jsonl", {"training_run": "my-gpt", "tokens_seen": 20_000_000_000, "step": 9_600,
                                  "checkpoint": "step-9600", "time": "2026-05-20T14:23:22Z"})

Events come late, early, twice and together, so which of them count is decided by reading, from the set of them alone
(`tokenization.progress_reports`). Whether a report with fewer tokens is late, or says that the training went back, is told
by its `time` (when the training stood there, the same each time that the report is sent), or by `attempt` (a number that
grows each time that the training goes back, as a scheduler's count of restarts). Without both it is taken for late.

Costs a reading of the ledger (15 us a line) and an fsync. Anybody who may post an event may send anything: what cannot be
is an `InputError` for the caller to log, and leaves the ledger as it was.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from curation.errors import InputError, RunError, nearest
from tokenization.progress import Entry, ProgressError, ProgressLedger
from tokenization.progress_line import REPORTS, entry_of

__all__ = ["MOST_TOKENS", "record"]

MOST_TOKENS = 10**15
"""No training sees more: a greater number is an error, and would pass thresholds without end."""
_REQUIRED = ("training_run", "tokens_seen", "step")
_FIELDS = (*_REQUIRED, "checkpoint", "checkpoint_sha256", "tokenizer", "token_files", "attempt", "time")
_MASKED = "***"
"""What Airflow's REST API shows in place of a text whose name has `token` in it; the DAG itself is given the text."""
_AHEAD = timedelta(days=1)
"""So far may the trainer's clock be ahead of ours."""


def record(ledger_path: str | os.PathLike[str], report: Mapping[str, Any]) -> Entry | None:
    """Write a report to the ledger; returns its line, or None if the ledger says it already.

    Args:
        ledger_path: as `ProgressLedger` takes it; made if it is not there.
        report: `training_run`, `tokens_seen`, `step`, and as far as they are known `checkpoint` (its path, absolute or
            relative to the ledger's folder, or an id), `checkpoint_sha256`, `tokenizer` (fingerprint), `token_files`
            (seals), `attempt` (whole number), `time` (ISO 8601 with its zone). Other keys are passed over.

    Raises:
        InputError: a value is missing, or cannot be; the message says which.
        RunError: the ledger cannot be read or written: worth trying again.
    """
    ledger = ProgressLedger(ledger_path)
    try:
        entry = _entry(report, ledger.path.parent)
    except (ValueError, RecursionError) as error:  # a list in a list in a list ...
        raise InputError(f"progress report: {error}. Nothing of it was written to {ledger.path}.") from None
    try:
        return ledger.add(entry)
    except ProgressError as error:
        raise RunError(str(error)) from error


def _entry(report: Mapping[str, Any], folder: Path) -> Entry:
    """Raises ValueError."""
    if not isinstance(report, Mapping):
        raise ValueError(f"expected an object with {', '.join(_REQUIRED)}, found {report!r:.80}")
    said = {name: None if report.get(name) == _MASKED else report.get(name) for name in _FIELDS}
    if missing := [name for name in _REQUIRED if said[name] is None]:
        strange = [name for name in report if isinstance(name, str) and name not in _FIELDS]
        hint = next((close for name in missing if (close := nearest(name, strange))), "")
        raise ValueError(f"{', '.join(missing)}: not there{hint}")
    for name in ("training_run", "checkpoint"):
        if isinstance(text := said[name], str) and not text.isprintable():
            raise ValueError(f"{name}: expected a printable text, found {text!r:.80}")
    now = datetime.now(timezone.utc)
    moment = _moment(said["time"], now)
    entry = entry_of(
        {
            "run": said["training_run"],
            "attempt": REPORTS,
            "parent": None,
            "resumed_at": 0,
            "tokens_seen": said["tokens_seen"],
            "step": said["step"],
            "checkpoint": _checkpoint(said["checkpoint"], folder),
            "checkpoint_sha256": said["checkpoint_sha256"],
            "token_files": said["token_files"] if said["token_files"] is not None else (),
            "tokenizer": said["tokenizer"],
            "time": _iso(moment or now),
            "reported": {"attempt": said["attempt"], "time": moment and _iso(moment)},
        }
    )
    if entry.tokens_seen > MOST_TOKENS:
        raise ValueError(f"tokens_seen: expected at most {MOST_TOKENS:.0e}, found {entry.tokens_seen}")
    return entry


def _checkpoint(value: Any, folder: Path) -> Any:
    """A path in the ledger's own folder as the trainer's own lines name it: relative."""
    if not isinstance(value, str) or not Path(value).is_absolute():
        return value
    path, home = Path(os.path.normpath(value)), Path(os.path.normpath(folder.absolute()))
    return str(path.relative_to(home)) if path != home and path.is_relative_to(home) else str(path)


def _moment(value: Any, now: datetime) -> datetime | None:
    """Raises ValueError."""
    if value is None:
        return None
    expected = "expected a moment as 2026-05-20T14:23:22Z, with its zone"
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) and len(value) < 100 else None
        moment = moment.astimezone(timezone.utc) if moment and moment.tzinfo else None
    except (ValueError, OverflowError):
        moment = None
    if moment is None:
        raise ValueError(f"time: {expected}, found {value!r:.80}")
    if moment > now + _AHEAD:
        raise ValueError(f"time: expected none in the future, found {value!r:.80}: set the trainer's clock")
    return moment


def _iso(moment: datetime) -> str:
    return moment.isoformat(timespec="microseconds")
