"""Blocks of bytes in, whole lines out: only byte 0x0A ends a line.

A line belongs to the slice in which it starts, and is read to its end even beyond the slice. Lines are
cut by one `bytes.split` a block, about 0.2 ns a byte. Memory: a block, plus the longest line up to the limit;
of a longer line only the first bytes are held while its length is counted.

This is also where records are counted, before anyone judges them: the left side of the conservation law.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from curation.ingest.forms import BOM
from curation.ingest.record import Damage, Slice, SliceReport

__all__ = ["LineBlock", "cut_lines", "is_blank"]


@dataclass(frozen=True, slots=True)
class LineBlock:
    """Consecutive whole lines without their newlines, blank ones included."""

    lines: list[bytes]
    offset: int
    """Where the first of them starts in the decompressed input."""
    number: int
    """1-based number of the first of them."""
    body: bytes
    """All of them as one text."""
    cut_off: bool = False
    """Whether the block is one last line that no newline ended."""


def is_blank(line: bytes) -> bool:
    """Whether a line holds nothing but white space and byte order marks: no record."""
    while line.startswith(BOM):
        line = line[len(BOM) :]
    return not line or line.isspace()


class _Cutter:
    """The line that is still open, and where it stands."""

    def __init__(self, part: Slice, report: SliceReport, limit: int, kept_bytes: int) -> None:
        self.end = part.end if part.end < part.size else None
        self.report = report
        self.limit = limit
        self.kept_bytes = kept_bytes
        self.open: list[bytes] = []
        self.open_bytes = 0
        self.offset = 0
        self.number = part.first_line
        self.too_long = False
        self.ends_with_cr = False

    def starts_beyond_end(self) -> bool:
        return self.end is not None and self.offset >= self.end

    def hold(self, rest: bytes) -> None:
        """Add to the open line; once it is too long, keep its first bytes only."""
        if not rest:
            return
        room = self.kept_bytes - self.open_bytes if self.too_long else len(rest)
        if room > 0:
            self.open.append(rest[:room])
        self.open_bytes += len(rest)
        self.ends_with_cr = rest[-1:] == b"\r"
        if self.open_bytes > self.limit and not self.too_long:
            self.too_long = True
            self.open = [b"".join(self.open)[: self.kept_bytes]]

    def close_long(self, rest: bytes, newline: int) -> Damage:
        """End a line that is too long with its last bytes."""
        self.hold(rest)
        damage = self.long_line(b"".join(self.open), self.open_bytes)
        self.report.records += 1
        if newline and self.ends_with_cr:
            self._note_crlf(1)
        self._reset(self.open_bytes + newline)
        return damage

    def _note_crlf(self, count: int) -> None:
        self.report.notes["crlf"] = self.report.notes.get("crlf", 0) + count

    def long_line(self, raw: bytes, length: int, offset: int | None = None, number: int | None = None) -> Damage:
        return Damage(
            "too_long",
            self.number if number is None else number,
            self.offset if offset is None else offset,
            raw[: self.kept_bytes],
            f"the record has {length:,} bytes, max_record_mb allows {self.limit:,}",
            length,
        )

    def _reset(self, taken: int, n_lines: int = 1) -> None:
        self.offset += taken
        self.number += n_lines
        self.open, self.open_bytes, self.too_long = [], 0, False

    def close(self, rest: bytes, *, cut_off: bool = False) -> Iterator[LineBlock | Damage]:
        """End the open line with `rest`, which may hold more whole lines; the last newline is left out."""
        self.open.append(rest)
        body = b"".join(self.open)
        if self.end is not None:
            # The first newline at or behind the slice's last byte ends the slice's last line.
            last = body.find(b"\n", max(self.end - 1 - self.offset, 0))
            body = body if last < 0 else body[:last]
        lines = body.split(b"\n")
        long = len(body) > self.limit and max(map(len, lines)) > self.limit
        if long or BOM in body:
            blank = sum(len(line) <= self.limit and is_blank(line) for line in lines)
        else:
            blank = lines.count(b"") + sum(map(bytes.isspace, lines))
        self.report.blank_lines += blank
        self.report.records += len(lines) - blank
        if b"\r" in body and (n_crlf := body.count(b"\r\n") + (body[-1:] == b"\r" and not cut_off)):
            self._note_crlf(n_crlf)
        if long:
            yield from self._one_by_one(lines, cut_off)
        else:
            yield LineBlock(lines, self.offset, self.number, body, cut_off)
        self._reset(len(body) + (not cut_off), len(lines))

    def _one_by_one(self, lines: list[bytes], cut_off: bool) -> Iterator[LineBlock | Damage]:
        offset = self.offset
        for number, line in enumerate(lines, self.number):
            if len(line) > self.limit:
                yield self.long_line(line, len(line), offset, number)
            else:
                yield LineBlock([line], offset, number, line, cut_off)  # cut_off only where it is the only line
            offset += len(line) + 1


def cut_lines(
    blocks: Iterable[bytes | Damage], part: Slice, report: SliceReport, *, limit: int, kept_bytes: int
) -> Iterator[LineBlock | Damage]:
    """Cut a slice's bytes into lines; count records and blank lines.

    Args:
        blocks: bytes from `part.start` on, or from the byte before it where that is not 0; a Damage in between
            ends the open line, which comes out as `cut_off`.
        part: the slice.
        report: its `records`, `blank_lines` and `notes["crlf"]` are filled.
        limit: bytes of a line at most; a longer one comes out as a Damage `too_long`.
        kept_bytes: bytes of such a line that are kept.
    """
    cutter = _Cutter(part, report, limit, kept_bytes)
    stream = iter(blocks)
    if part.start > 0:
        stream = _from_first_line(stream, part, cutter)
    for block in stream:
        if isinstance(block, Damage):
            yield from _cut_off(cutter)
            yield block
            continue
        if cutter.starts_beyond_end():
            return
        if cutter.too_long:
            first = block.find(b"\n")
            if first < 0:
                cutter.hold(block)
                continue
            yield cutter.close_long(block[:first], 1)
            block = block[first + 1 :]
        last = block.rfind(b"\n")
        if last >= 0:
            if cutter.starts_beyond_end():
                return
            yield from cutter.close(block[:last])
        cutter.hold(block[last + 1 :])
    if not cutter.starts_beyond_end():
        yield from _cut_off(cutter)


def _cut_off(cutter: _Cutter) -> Iterator[LineBlock | Damage]:
    if cutter.too_long:
        yield cutter.close_long(b"", 0)
    elif cutter.open:
        yield from cutter.close(b"", cut_off=True)


def _from_first_line(stream: Iterator[bytes | Damage], part: Slice, cutter: _Cutter) -> Iterator[bytes | Damage]:
    """Skip the end of a line that began before the slice."""
    offset = part.start - 1
    for block in stream:
        assert isinstance(block, bytes), "a plain slice has no damage"
        newline = block.find(b"\n")
        if newline >= 0:
            cutter.offset = offset + newline + 1
            if not cutter.starts_beyond_end():
                yield block[newline + 1 :]
                yield from stream
            return
        offset += len(block)
        if offset >= part.end:
            return
