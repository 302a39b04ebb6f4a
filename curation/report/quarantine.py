"""Samples of what could not be read: the place, what the parser said, and the raw bytes.

Entries are chosen by a hash of their place, so that the same run shows the same ones. At most `MAX_BYTES` of the
quarantine are looked at, the same share of each file; the counts come from the markers and not from here.
"""

from __future__ import annotations

import base64
import hashlib
import heapq
from dataclasses import dataclass
from pathlib import Path

import orjson

from curation.report.excerpt import Excerpt, hex_dump, take

__all__ = ["Quarantined", "sample_quarantine"]

MAX_BYTES = 200_000_000
EACH = 4


@dataclass(frozen=True, slots=True, order=True)
class Quarantined:
    """One record of the quarantine."""

    key: int
    reason: str
    file: str
    line: int | None
    byte_offset: int | None
    detail: str
    text: str
    is_hex: bool
    cut: bool
    n_bytes: int
    """Of the whole record."""


def sample_quarantine(folder: Path, each: int = EACH) -> tuple[dict[str, list[Quarantined]], list[str]]:
    """At most `each` records of every reason, and what was odd about the files."""
    paths = sorted(folder.glob("*.jsonl")) if folder.is_dir() else []
    total = sum(path.stat().st_size for path in paths)
    share = min(1.0, MAX_BYTES / total) if total else 1.0
    held: dict[str, list[Quarantined]] = {}
    problems = []
    for path in paths:
        budget = path.stat().st_size * share + 1
        with path.open("rb") as stream:
            for number, row in enumerate(stream, start=1):
                budget -= len(row)
                try:
                    entry = _entry(orjson.loads(row))
                except (ValueError, KeyError, TypeError) as error:
                    problems.append(
                        f"{path.name}, line {number} is no quarantine entry: {type(error).__name__}: {error}"
                    )
                    break
                held[entry.reason] = heapq.nsmallest(each, [*held.get(entry.reason, []), entry])
                if budget < 0:
                    break
    if share < 1:
        problems.append(f"The quarantine samples come from the first {share:.0%} of each quarantine file.")
    return dict(sorted(held.items())), problems


def _entry(row: dict[str, object]) -> Quarantined:
    place = f"{row['file']}\0{row['line']}\0{row['byte_offset']}\0{row['reason']}"
    raw = row.get("raw")
    if isinstance(raw, str):
        data, binary = raw.encode("utf-8", "surrogatepass"), False
    else:
        data, binary = base64.b64decode(str(row.get("raw_base64") or "")), True
    length = row.get("raw_length")
    n_bytes = length if isinstance(length, int) else len(data)
    if binary:
        text, is_hex, cut = hex_dump(data), True, n_bytes > 64
    else:
        excerpt: Excerpt = take(data, 300)
        text, is_hex, cut = excerpt.text, False, excerpt.cut or n_bytes > len(data)
    line, offset = row["line"], row["byte_offset"]
    return Quarantined(
        key=int.from_bytes(hashlib.sha256(place.encode("utf-8", "surrogatepass")).digest()[:8], "big"),
        reason=str(row["reason"]),
        file=str(row["file"]),
        line=line if isinstance(line, int) else None,
        byte_offset=offset if isinstance(offset, int) else None,
        detail=str(row.get("detail") or ""),
        text=text,
        is_hex=is_hex,
        cut=cut,
        n_bytes=n_bytes,
    )
