"""One line of the progress ledger: its fields, what they may hold, and its form on disk.

A line is one JSON object in ASCII. Its first key is `version`, its last one `crc32`: the CRC-32, in hex, of the
bytes before `,"crc32"`. Keys that are not known are passed over, so that a later version may add some. Needs the
standard library only. Costs 15 us a line.
"""

from __future__ import annotations

import json
import operator
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import datetime, timedelta
from typing import Any

from tokenization.errors import TokenizationError

__all__ = ["REPORTS", "Entry", "ProgressError", "Reported", "contradiction", "entry_of", "parse_line", "to_line"]

VERSION = 1
REPORTS = "reports"
"""The attempt of all lines that were reported."""
_CRC = re.compile(rb',"crc32":"([0-9a-f]{8})"}$')
_SHA256 = re.compile(r"[0-9a-f]{64}")
_ATTEMPT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_NAME = re.compile(r".{1,200}", re.DOTALL)
_PATH = re.compile(r".{1,4096}", re.DOTALL)
_TIME = re.compile(r"\d{4}-.{1,40}")


class ProgressError(TokenizationError):
    """The progress ledger cannot be written or read, or a line for it says what cannot be."""


@dataclass(frozen=True, slots=True)
class Reported:
    """What a line says of its place in time that came by an event: neither its place in the file nor `Entry.time` does."""

    attempt: int | None
    """Greater each time that the training goes back to a checkpoint."""
    time: datetime | None
    """UTC, when the training had come so far, by its own clock."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One line: what a training had reached at one moment."""

    run: str
    """Name of the training."""
    attempt: str
    """The process that wrote the line; two lines of one attempt belong to one uninterrupted training."""
    parent: str | None
    """The attempt whose checkpoint this one went on from; None: it began anew, or nobody knows."""
    resumed_at: int
    """tokens_seen of that checkpoint; 0 for a training that began anew."""
    tokens_seen: int
    """Tokens trained on since the very beginning, over all ranks, padding not counted."""
    step: int
    """Optimizer steps since the very beginning."""
    checkpoint: str | None
    """Path, relative to the ledger's folder or absolute, or an id; None: a sign of life without a checkpoint."""
    checkpoint_sha256: str | None
    token_files: tuple[str, ...]
    """Seals of the token files that are trained on (`TokenFile.seal`)."""
    tokenizer: str | None
    """Fingerprint of the tokenizer whose ids they hold; None: a trainer that is not ours did not say."""
    time: datetime
    """UTC, by the writer's clock; order is that of lines, not of clocks."""
    reported: Reported | None = None
    """Of a line that came by an event, late, early or twice; None: lines of its attempt stand in their order."""


def parse_line(line: bytes) -> Entry:
    """A line without its end, as an entry.

    Raises:
        ProgressError: it is whole, but was written by a newer version.
        ValueError: it is damaged, foreign or not whole.
    """
    end = _CRC.search(line)
    if end is None:
        raise ValueError(f"no line of a progress ledger, or not whole: {line[:60]!r}")
    if f"{zlib.crc32(line[: end.start()]):08x}".encode() != end[1]:
        raise ValueError(f"damaged: its CRC-32 does not fit: {line[:60]!r}")
    try:
        data = json.loads(line)
    except RecursionError:
        data = None
    version = data.get("version") if isinstance(data, dict) else None
    if not isinstance(version, int) or version < 1:
        raise ValueError(f"no line of a progress ledger: {line[:60]!r}")
    if version > VERSION:
        # A newer line may say that an attempt is void: to pass over it could pick the wrong checkpoint.
        raise ProgressError(f"version {version}, where this version of corpusmill reads {VERSION}: update it here")
    return entry_of(data)


def entry_of(data: Mapping[str, Any]) -> Entry:
    """Values of a line, checked; unknown keys are passed over.

    Raises:
        ValueError: what is wrong with which key.
    """
    missing = [field.name for field in fields(Entry) if field.name not in data and field.name != "reported"]
    if missing:
        raise ValueError(f"{', '.join(missing)}: not there")
    files = data["token_files"]
    if isinstance(files, str) or not isinstance(files, Sequence):
        raise ValueError(f"token_files: expected a list of seals, found {files!r:.60}")
    entry = Entry(
        run=_text("run", data["run"], _NAME),
        attempt=_text("attempt", data["attempt"], _ATTEMPT),
        parent=_text_or_none("parent", data["parent"], _ATTEMPT),
        tokens_seen=_count("tokens_seen", data["tokens_seen"]),
        resumed_at=_count("resumed_at", data["resumed_at"]),
        step=_count("step", data["step"]),
        checkpoint=_text_or_none("checkpoint", data["checkpoint"], _PATH),
        checkpoint_sha256=_text_or_none("checkpoint_sha256", data["checkpoint_sha256"], _SHA256),
        token_files=tuple(_text("token_files", seal, _SHA256) for seal in files),
        tokenizer=_text_or_none("tokenizer", data["tokenizer"], _SHA256),
        time=_moment(data["time"]),
        reported=_reported(data.get("reported")),
    )
    if (entry.attempt == REPORTS) != (entry.reported is not None):
        raise ValueError(f"attempt: {REPORTS!r} stands for lines that were reported, and for them alone")
    if entry.tokens_seen < entry.resumed_at:
        raise ValueError(f"tokens_seen: {entry.tokens_seen}, less than {entry.resumed_at}, where the attempt began")
    if entry.parent == entry.attempt:
        raise ValueError(f"parent: attempt {entry.attempt!r} names itself")
    return entry


def _reported(value: Any) -> Reported | None:
    if value is None:
        return None
    if not isinstance(value, Mapping):
        raise ValueError(f"reported: expected an object, found {value!r:.60}")
    attempt, time = value.get("attempt"), value.get("time")
    return Reported(None if attempt is None else _count("attempt", attempt), None if time is None else _moment(time))


def _moment(value: Any) -> datetime:
    moment = datetime.fromisoformat(_text("time", value, _TIME))
    if moment.utcoffset() != timedelta(0):
        raise ValueError(f"time: expected UTC, found {value!r}")
    return moment


def _text(name: str, value: Any, form: re.Pattern[str]) -> str:
    if not isinstance(value, str) or not form.fullmatch(value):
        raise ValueError(f"{name}: expected a text of the form {form.pattern}, found {value!r:.80}")
    return value


def _text_or_none(name: str, value: Any, form: re.Pattern[str]) -> str | None:
    return None if value is None else _text(name, value, form)


def _count(name: str, value: Any) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        number = -1
    if isinstance(value, bool) or not 0 <= number < 2**63:
        huge = isinstance(value, int) and value.bit_length() > 100  # Python refuses to write some of them
        found = f"one of {value.bit_length()} bits" if huge else f"{value!r:.60}"
        raise ValueError(f"{name}: expected a whole number from 0 to 2^63 - 1, found {found}")
    return number


def contradiction(entry: Entry, last: Entry) -> str:
    """What of a line cannot be, given the last one of its attempt; empty if nothing."""
    for name in ("tokens_seen", "step"):
        now, before = getattr(entry, name), getattr(last, name)
        if now < before:
            return (
                f"{name} falls from {before} to {now} within attempt {entry.attempt}: "
                "a training that goes back to a checkpoint begins a new attempt"
            )
    for name in ("run", "parent", "resumed_at"):
        if getattr(entry, name) != getattr(last, name):
            return f"{name} changes within attempt {entry.attempt}, to {getattr(entry, name)!r}"
    return ""


def to_line(entry: Entry) -> bytes:
    data = {"version": VERSION, **asdict(entry), "time": entry.time.isoformat(timespec="microseconds")}
    if (reported := data.pop("reported")) is not None:
        moment = reported["time"] and reported["time"].isoformat(timespec="microseconds")
        data["reported"] = {**reported, "time": moment}
    # ASCII: a path that is not UTF-8 keeps its escapes, and no line end but ours can stand in a line.
    covered = json.dumps(data, separators=(",", ":")).encode("ascii")[:-1]
    return covered + b',"crc32":"%08x"}\n' % zlib.crc32(covered)
