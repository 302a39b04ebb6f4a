"""One part of the plan: its slices become shards and a quarantine file, then a marker.

A part is a function of its input and of the config: done twice, or at once by two workers, it gives the same
bytes under the same names. The marker is written last; whoever finds a valid one does nothing. Costs about
10 ns a byte of input, 100 MB/s a core (see tests/bench/bench_ingest.py).

The conservation law is checked for every slice: the records that the reader cut apart are the documents in the
shards plus the entries in the quarantine.
"""

from __future__ import annotations

import importlib.metadata
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from curation.errors import CorpusmillError, LawError, RunError
from curation.ids import digest8
from curation.ingest.config import LIMITS, IngestConfig
from curation.ingest.forms import HEAD_BYTES, kind_of
from curation.ingest.outputs import QuarantineWriter, ShardWriter
from curation.ingest.plan import Part
from curation.ingest.record import Damage, Document, Slice, SliceReport
from curation.ingest.stored import Stored, mark
from curation.run import file_sha256, peak_memory, read_json, write_json

__all__ = ["READERS", "ingest_part", "marker_path", "part_digest"]

VERSION = 1
"""Raised whenever the same input and config give other shards, so that markers of older code do not count."""

Reader = Callable[[Slice, IngestConfig, SliceReport], Iterator[Document | Damage]]


def _jsonl(part: Slice, config: IngestConfig, report: SliceReport) -> Iterator[Document | Damage]:
    from curation.ingest.jsonl import read_jsonl

    return read_jsonl(part, config, report)


def _columnar(part: Slice, config: IngestConfig, report: SliceReport) -> Iterator[Document | Damage]:
    from curation.ingest.columnar import read_columnar

    return read_columnar(part, config, report)


def _warc(part: Slice, config: IngestConfig, report: SliceReport) -> Iterator[Document | Damage]:
    from curation.ingest.warc import read_warc

    return read_warc(part, config, report)


def _unknown(part: Slice, config: IngestConfig, report: SliceReport) -> Iterator[Document | Damage]:
    """A file of no known kind: one entry that says so, whatever lies in it."""
    with Stored(part, report) as stored:
        stored.fill(HEAD_BYTES)
        head = stored.buffer[:HEAD_BYTES]
        found = kind_of(head, part.source)[1] or "nothing was recognised"
        yield mark(
            report,
            "bad_file",
            0,
            f"expected JSON lines (plain, gzip or zstd), parquet, Arrow, or WARC; {found}. "
            "Convert it, or leave it out; if it is one of these, say which with ingest.format",
            head[:64],
        )
        stored.drain()


READERS: dict[str, Reader] = {
    "jsonl": _jsonl,
    "parquet": _columnar,
    "arrow": _columnar,
    "warc": _warc,
    "unknown": _unknown,
}
"""The reader of each kind of input, imported when it is first used."""


def marker_path(shards: Path, index: int) -> Path:
    """Where a part's marker lies."""
    return shards / "_items" / f"{index:05d}.json"


def part_digest(part: Part, config: IngestConfig) -> str:
    """Digest of all that decides what a part's shards hold."""
    deciding = config.model_dump(mode="json", exclude=set(LIMITS))
    crawl = any(one.kind == "warc" for one in part.slices)
    extractors = {name: _version(name) for name in _EXTRACTORS} if crawl else {}
    slices = [asdict(one) for one in part.slices]
    return digest8({"version": VERSION, "config": deciding, "slices": slices, **extractors})


_EXTRACTORS = ("resiliparse", "trafilatura")
"""They decide what a page's text is: after an upgrade its parts are made anew, so that no run mixes two versions."""


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def ingest_part(part: Part, *, shards: Path, quarantine: Path, config: IngestConfig) -> dict[str, Any]:
    """Read the slices of a part and write its shards, its quarantine file and its marker.

    Args:
        part: from the plan.
        shards: folder of shards; the marker goes to its `_items`.
        quarantine: folder of quarantine files.
        config: the run's ingest settings.

    Returns:
        The marker: part, digest, shards, inputs, seconds, peak_rss_mb; with `reused` true if it stood already.

    Raises:
        InputError: an input is gone, may not be read, or has changed since the plan.
        RunError: the store or the disk failed; a retry may help.
        LawError: a reader lost or invented records.
    """
    digest = part_digest(part, config)
    path = marker_path(shards, part.index)
    marker = _valid_marker(path, digest, shards, quarantine)
    if marker is not None:
        return {**marker, "reused": True}
    sources = list(dict.fromkeys(one.source for one in part.slices))
    kept_bytes = config.quarantine_raw_kb * 1024
    with (
        peak_memory() as used,
        QuarantineWriter(quarantine / f"{part.index:05d}.jsonl", kept_bytes) as bad,
        ShardWriter(shards, part.index, sources, config.shard_mb * 2**20) as writer,
    ):
        inputs = []
        for one in part.slices:
            writer.begin_source(sources.index(one.source))
            inputs.append(_ingest_slice(one, config, writer, bad))
        writer.finish()
    _remove_strangers(shards, part.index, {shard["name"] for shard in writer.written})
    marker = {
        "part": part.index,
        "digest": digest,
        "shards": writer.written,
        "inputs": inputs,
        "seconds": round(used["seconds"], 3),
        "peak_rss_mb": round(used["peak_rss_mb"], 1),
    }
    write_json(path, marker)
    return marker


def _valid_marker(path: Path, digest: str, shards: Path, quarantine: Path) -> dict[str, Any] | None:
    """The marker at `path`, if it speaks of this very part and its files are whole."""
    try:
        marker: dict[str, Any] = read_json(path)
    except RunError:  # none, or broken by a disk: the part is done anew
        return None
    if not isinstance(marker, dict) or marker.get("digest") != digest:
        return None
    for shard in marker["shards"]:
        file = shards / f"{shard['name']}.arrow"
        if not file.is_file() or file.stat().st_size != shard["file_bytes"] or file_sha256(file) != shard["sha256"]:
            return None
    has_damage = any(one["quarantined"] or one["damaged"] for one in marker["inputs"])
    return marker if not has_damage or (quarantine / f"{marker['part']:05d}.jsonl").is_file() else None


def _remove_strangers(shards: Path, index: int, names: set[str]) -> None:
    """Remove shards of this part that an earlier try with another config or code has left."""
    for path in shards.glob(f"{index:05d}-*.arrow"):
        if path.stem not in names:
            path.unlink(missing_ok=True)


def _ingest_slice(one: Slice, config: IngestConfig, writer: ShardWriter, bad: QuarantineWriter) -> dict[str, Any]:
    """Read one slice to its end; what it held, as the marker says it."""
    report = SliceReport()
    documents = 0
    quarantined: Counter[str] = Counter()
    example: Damage | None = None
    failed = False
    add = writer.add
    for item in _guarded(READERS[one.kind], one, config, report):
        if type(item) is Document:
            add(item)
            documents += 1
            continue
        assert isinstance(item, Damage)
        bad.add(one.source, item)
        failed = failed or item.detail.startswith(_FAILED)
        example = example or item
        if not item.whole_file:
            quarantined[item.reason] += 1
        elif item.reason not in report.damaged:
            report.damaged.append(item.reason)
    if failed and (unread := report.records - documents - quarantined.total()) > 0:
        # They were cut apart before the reader failed; the entry about the failure speaks for them.
        quarantined["bad_file"] += unread
    _check_law(one, report, documents, quarantined)
    return {
        "source": one.source,
        "kind": one.kind,
        "start": one.start,
        "end": one.end,
        "size": one.size,
        "sha256": report.sha256 or _stored_sha256(one),
        "records": report.records,
        "documents": documents,
        "blank_lines": report.blank_lines,
        "quarantined": dict(sorted(quarantined.items())),
        "damaged": list(dict.fromkeys(report.damaged)),
        "notes": dict(sorted(report.notes.items())),
        "example": _place(example),
    }


_FAILED = "the reader failed: "


def _guarded(reader: Reader, one: Slice, config: IngestConfig, report: SliceReport) -> Iterator[Document | Damage]:
    """What a reader yields; if it fails on what it reads, a Damage that says so, and the run goes on."""
    try:
        yield from reader(one, config, report)
    except (CorpusmillError, MemoryError):
        raise
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        detail = f"{_FAILED}{type(error).__name__}: {error} (in {frame.name}, line {frame.lineno})"
        yield Damage("bad_file", None, None, b"", detail, whole_file=True)


def _check_law(one: Slice, report: SliceReport, documents: int, quarantined: Mapping[str, int]) -> None:
    bad = sum(quarantined.values())
    if report.records != documents + bad:
        raise LawError(
            f"{one.source} [{one.start}, {one.end}): {report.records:,} records were read, but {documents:,} documents "
            f"and {bad:,} quarantined ones came out. This is a fault of the {one.kind} reader; please report it with the file."
        )


def _stored_sha256(one: Slice) -> str:
    """Hash of a slice whose reader did not finish."""
    report = SliceReport()
    with Stored(one, report) as stored:
        stored.drain()
    return report.sha256 if (one.start, one.end) == (0, one.size) else ""


def _place(damage: Damage | None) -> dict[str, Any] | None:
    if damage is None:
        return None
    return {"line": damage.line, "byte_offset": damage.byte_offset, "reason": damage.reason, "detail": damage.detail}
