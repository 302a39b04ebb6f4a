"""What a run reads: inputs found, judged, sorted, and grouped into parts of about equal size.

A part is what one task reads. Plain JSON lines are cut at fixed bytes, so that the same file is cut alike in
every run; other files stay whole; small ones are put together. The order of the arguments never matters, and a
file named twice counts once. Nothing is skipped silently: `Plan.ignored` names every file that is not read.

Costs one stat and one read of 64 kB a file, and for plain files that are cut one read of the whole file, at
about 1.2 GB/s a core (SHA-256 and newline counts, which line numbers need).
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from itertools import chain
from typing import Any

import numpy as np

from curation.errors import InputError
from curation.ingest.config import IngestConfig
from curation.ingest.find import Found, find_inputs
from curation.ingest.forms import HEAD_BYTES, Form, compression_of, encoding_of, form_of, kind_of
from curation.ingest.record import Slice
from curation.ingest.stored import open_source

__all__ = ["Part", "Plan", "PlannedInput", "plan_inputs"]

MAX_PARTS = 4096
"""Slices grow beyond this many parts: each costs a task, a marker and at least one shard."""
_FORMAT = 1
_SCAN_BYTES = 2**22


@dataclass(frozen=True, slots=True)
class PlannedInput:
    """One input file."""

    source: str
    """Absolute path or URL."""
    kind: str
    """jsonl, parquet, arrow, warc, or unknown: such a file ends as one `bad_file` in the quarantine."""
    size: int
    mtime: str
    """Time of the last change, as the store gives it; only compared for equality."""
    sha256: str | None = None
    """Of the whole file, known here only for files that are cut into slices."""


@dataclass(frozen=True, slots=True)
class Part:
    """What one task reads."""

    index: int
    slices: tuple[Slice, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """Inputs in the order of their names, parts in the order of the inputs."""

    inputs: tuple[PlannedInput, ...]
    parts: tuple[Part, ...]
    ignored: tuple[tuple[str, str], ...] = ()
    """Files that were found and are not read, each with the reason."""
    notes: tuple[str, ...] = ()
    """What a person should know about this plan."""

    def to_json(self) -> dict[str, Any]:
        """As plain data; slices are `[number of the input, start, end, first line]`."""
        number = {one.source: index for index, one in enumerate(self.inputs)}
        return {
            "format": _FORMAT,
            "inputs": [asdict(one) for one in self.inputs],
            "parts": [[[number[s.source], s.start, s.end, s.first_line] for s in part.slices] for part in self.parts],
            "ignored": [list(pair) for pair in self.ignored],
            "notes": list(self.notes),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Plan:
        """The inverse of `to_json`.

        Raises:
            InputError: another version of the code wrote it.
        """
        if value.get("format") != _FORMAT:
            raise InputError(
                f"the plan has format {value.get('format')!r}, this version reads {_FORMAT}. Start a new run."
            )
        inputs = tuple(PlannedInput(**one) for one in value["inputs"])
        parts = tuple(
            Part(index, tuple(_slice(inputs[number], start, end, line) for number, start, end, line in slices))
            for index, slices in enumerate(value["parts"])
        )
        return cls(inputs, parts, tuple((a, b) for a, b in value["ignored"]), tuple(value["notes"]))


def _slice(one: PlannedInput, start: int, end: int, first_line: int) -> Slice:
    return Slice(one.source, one.kind, start, end, one.size, first_line)


def plan_inputs(inputs: Sequence[str], config: IngestConfig, workers: int = 1) -> Plan:
    """Find the inputs and cut them into parts. The result depends on the files alone.

    Args:
        inputs: files, folders (read recursively), globs, URLs that fsspec knows (`file://`, `s3://` ...).
        config: format, slice_mb.
        workers: threads that scan files that are cut.

    Raises:
        InputError: an input does not exist or may not be read, or nothing among them can be read.
    """
    found, ignored = find_inputs(inputs)
    notes = [] if found else ["no input files: the run will hold no documents"]
    with ThreadPoolExecutor(max(1, workers)) as threads:
        judged = list(threads.map(functools.partial(_judge, config=config), found))
    planned = [one for one, _ in judged]
    if planned and all(one.kind == "unknown" for one in planned):
        raise InputError(_nothing_to_read(planned))
    slice_bytes = _slice_bytes(sum(one.size for one in planned), config, notes)
    with ThreadPoolExecutor(max(1, workers)) as threads:
        cut = list(threads.map(lambda pair: _cut(pair[0], pair[1], slice_bytes), judged))
    parts = _group([slices for _, slices in cut], slice_bytes)
    return Plan(tuple(one for one, _ in cut), parts, tuple(ignored), tuple(notes))


def _nothing_to_read(planned: Sequence[PlannedInput]) -> str:
    with open_source(planned[0].source) as stream:
        found = kind_of(stream.read(HEAD_BYTES), planned[0].source)[1]
    more = f" (and {len(planned) - 1:,} more)" if len(planned) > 1 else ""
    return (
        f"{planned[0].source}{more}: expected JSON lines (plain, gzip or zstd), parquet, Arrow, or WARC; {found}. "
        "Convert it; or, if it is one of these, say which with ingest.format."
    )


def _slice_bytes(total: int, config: IngestConfig, notes: list[str]) -> int:
    wanted = config.slice_mb * 2**20
    needed = -(-total // (MAX_PARTS - 1))  # every part but the last is full
    if needed <= wanted:
        return wanted
    grown_mb = -(-needed // 2**20)
    notes.append(
        f"slices of {grown_mb:,} MB instead of {config.slice_mb:,} MB, so that there are no more than {MAX_PARTS:,} parts"
    )
    return grown_mb * 2**20


def _judge(found: Found, config: IngestConfig) -> tuple[PlannedInput, bool]:
    """Kind of a file, and whether it can be read from the middle: plain UTF-8 lines only."""
    with open_source(found.source) as stream:
        head = stream.read(HEAD_BYTES)
    kind = kind_of(head, found.source)[0] if config.format == "auto" else config.format
    plain = kind == "jsonl" and compression_of(head, found.source) == "none" and encoding_of(head) == "utf-8"
    lines = plain and form_of(head, whole=len(head) >= found.size) is Form.LINES
    return PlannedInput(found.source, kind, found.size, found.mtime), lines


def _cut(one: PlannedInput, cuttable: bool, slice_bytes: int) -> tuple[PlannedInput, list[Slice]]:
    if not cuttable or one.size <= slice_bytes:
        return one, [_slice(one, 0, one.size, 1)]
    sha256, first_lines = _scan(one, slice_bytes)
    slices = [
        _slice(one, start, min(start + slice_bytes, one.size), line)
        for start, line in zip(range(0, one.size, slice_bytes), first_lines, strict=True)
    ]
    return replace(one, sha256=sha256), slices


def _scan(one: PlannedInput, slice_bytes: int) -> tuple[str, list[int]]:
    """SHA-256 of a file, and for each of its slices the number of the first line that starts in it."""
    hashed = hashlib.sha256()
    first_lines = [1]
    n_newlines, offset, last = 0, 0, b"\n"
    with open_source(one.source) as stream:
        while offset < one.size:
            block = stream.read(min(_SCAN_BYTES, slice_bytes - offset % slice_bytes))
            if not block:
                raise InputError(f"{one.source} became shorter while it was read. Wait until it is complete.")
            hashed.update(block)
            # NumPy and hashlib let other threads run, bytes.count does not.
            n_newlines += int(np.count_nonzero(np.frombuffer(block, np.uint8) == 10))
            offset += len(block)
            last = block[-1:]
            if offset % slice_bytes == 0 and offset < one.size:
                first_lines.append(n_newlines + (1 if last == b"\n" else 2))
    return hashed.hexdigest(), first_lines


def _group(cut: Sequence[Sequence[Slice]], slice_bytes: int) -> tuple[Part, ...]:
    """Slices put together, in order, until a part has `slice_bytes`."""
    parts: list[Part] = []
    held: list[Slice] = []
    held_bytes = 0
    for one in chain.from_iterable(cut):
        held.append(one)
        held_bytes += one.end - one.start
        if held_bytes >= slice_bytes:
            parts.append(Part(len(parts), tuple(held)))
            held, held_bytes = [], 0
    if held:
        parts.append(Part(len(parts), tuple(held)))
    return tuple(parts)
