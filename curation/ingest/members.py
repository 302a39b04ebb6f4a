"""gzip members and zstd frames of one file, one after the other, through damage and out again.

After a fault the reader searches for the next member or frame that really decodes, goes on there, and says
how many stored bytes it skipped. Of gzip, everything up to the fault is delivered by a second, slow pass over
the broken member; of zstd, every block before the fault (a block is 128 KiB at most). A zstd frame is cut
into its blocks here (RFC 8878, section 3.1.1), which bounds memory for any ratio and finds its exact end.
Costs: about 2 ns a decompressed byte, for gzip (ISA-L) as for zstd, the hash of the stored bytes included.
"""

from __future__ import annotations

import zlib
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import Any, cast

import zstandard
from isal import igzip_lib

from curation.ingest.forms import GZIP_MAGIC, MAX_WINDOW_BYTES, ZSTD_MAGIC
from curation.ingest.record import Damage, SliceReport
from curation.ingest.stored import Stored, mark

__all__ = ["read_gzip", "read_zstd", "zstd_frame_end"]

_IsalError = cast(type[Exception], igzip_lib.IsalError)  # the stub calls it an instance
_IN_BYTES = 65_536
_OUT_BYTES = 2**20
_LOOK_BACK = 64
"""The fast decoder may hold a few bytes back: the slow one starts byte by byte this far before the fault."""
_SWALLOWED_BYTES = 2**20
"""How far before a fault the next gzip stream may begin: noise seldom decodes for more than some kB."""
_MAX_BLOCK = 2**17
_RAW_SHOWN = 64

Blocks = Iterator[bytes | Damage]


def _junk(stored: Stored, report: SliceReport, magic: bytes, accept: Any, what: str, streams: int) -> Damage:
    """Skip bytes that are no stream, up to the next one or the end of the file."""
    start, raw = stored.offset, stored.buffer[:_RAW_SHOWN]
    skipped = stored.skip_to(magic, accept)
    if stored.buffer:
        detail = f"{skipped:,} bytes are no {what}; reading went on behind them"
        return mark(report, "corrupt_stream", start, detail, raw)
    if not streams:
        return mark(report, "corrupt_stream", start, f"no {what} was found in {skipped:,} bytes", raw)
    report.notes["trailing_bytes"] = skipped
    return mark(report, "trailing_garbage", start, f"{skipped:,} bytes after the last {what} were not read", raw)


def _fault(
    stored: Stored,
    report: SliceReport,
    reason: str,
    at: int,
    error: str,
    *,
    search_from: int,
    magic: bytes,
    accept: Any,
) -> Damage:
    """Name a fault inside a stream and go to the next stream, if there is one.

    A stream that was cut short swallows the beginning of the next one before it fails, so the search
    begins before the fault, at `search_from`.
    """
    stored.go_back(search_from)
    stored.skip_to(magic, accept)
    skipped = max(stored.offset - at, 0)
    if skipped:
        report.notes["skipped_bytes"] = report.notes.get("skipped_bytes", 0) + skipped
        error += f"; {skipped:,} stored bytes were skipped"
    after = f"reading went on at byte {stored.offset:,}" if stored.buffer else "no readable stream follows"
    return mark(report, reason, at, f"{error}; {after}")


# -- gzip ---------------------------------------------------------------------------------------


def read_gzip(stored: Stored, report: SliceReport) -> Blocks:
    """Decompressed blocks of all gzip members (RFC 1952)."""
    members = 0
    while stored.fill(1):
        stored.fill(len(GZIP_MAGIC))
        if stored.buffer.startswith(GZIP_MAGIC) or (members == 0 and GZIP_MAGIC.startswith(stored.buffer)):
            yield from _gzip_member(stored, report)
            members += 1
        else:
            yield _junk(stored, report, GZIP_MAGIC, _is_gzip_member, "gzip stream", members)


def _gzip_member(stored: Stored, report: SliceReport) -> Blocks:
    start, delivered = stored.offset, 0
    decoder = igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_GZIP)
    block_at = start
    while not decoder.eof:
        block = b""
        if decoder.needs_input:
            block_at = stored.offset
            block = stored.take(_IN_BYTES)
            if not block:
                # The fast decoder holds the last bytes back until it sees more.
                yield from _salvage(stored, start, stored.offset, delivered)
                detail = f"the gzip stream from byte {start:,} on ends too early"
                yield _gzip_fault(stored, report, "truncated_stream", start, stored.offset, detail)
                return
        try:
            out = decoder.decompress(block, _OUT_BYTES)
        except _IsalError:
            at, error = yield from _salvage(stored, start, block_at, delivered)
            yield _gzip_fault(stored, report, "corrupt_stream", start, at, f"gzip: {error}")
            return
        delivered += len(out)
        if out:
            yield out
    stored.give_back(decoder.unused_data)


def _gzip_fault(stored: Stored, report: SliceReport, reason: str, start: int, at: int, error: str) -> Damage:
    search_from = max(start + 1, at - _SWALLOWED_BYTES)
    return _fault(stored, report, reason, at, error, search_from=search_from, magic=GZIP_MAGIC, accept=_is_gzip_member)


def _salvage(stored: Stored, start: int, block_at: int, delivered: int) -> Generator[bytes, None, tuple[int, str]]:
    """Deliver what a broken member holds beyond the `delivered` bytes, up to the fault or the end of the file.

    Returns:
        The stored byte at which decoding fails, and the decoder's words.
    """
    decoder = zlib.decompressobj(31)
    slow_from = max(block_at - _LOOK_BACK, start)
    at, seen, kept = start, 0, []
    for block in stored.reread(start, stored.offset):
        fast = max(min(slow_from - at, len(block)), 0)
        pieces = [block[:fast]] if fast else []
        pieces += [block[i : i + 1] for i in range(fast, len(block))]
        for piece in pieces:
            try:
                for out in _inflate(decoder, piece):
                    kept.append(out[max(delivered - seen, 0) :])
                    seen += len(out)
            except zlib.error as error:
                yield b"".join(kept)
                return at, str(error).removeprefix("Error -3 while decompressing data: ")
            at += len(piece)
        yield b"".join(kept)
        kept.clear()
    return at, "the decoders disagree"


def _inflate(decoder: Any, block: bytes) -> Iterator[bytes]:
    while block:
        yield decoder.decompress(block, _OUT_BYTES)
        block = decoder.unconsumed_tail


def _is_gzip_member(head: bytes) -> bool:
    if len(head) < 18 or head[3] & 0xE0:
        return False
    decoder = zlib.decompressobj(31)
    try:
        out = decoder.decompress(head, 4096)
    except zlib.error:
        return False
    return bool(out) or decoder.eof


# -- zstd ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _FrameHead:
    n_bytes: int
    window: int
    checksum: bool


def _frame_head(head: bytes) -> _FrameHead | None:
    """Length, window and checksum flag of a frame's head (RFC 8878, section 3.1.1.1); None if it is not one."""
    if len(head) < 6 or not head.startswith(ZSTD_MAGIC) or head[4] & 0b1000:
        return None
    flags = head[4]
    single = bool(flags & 0b100000)
    size_bytes = (1 if single else 0, 2, 4, 8)[flags >> 6]
    n_bytes = 5 + (not single) + (0, 1, 2, 4)[flags & 3] + size_bytes
    if single:
        window = int.from_bytes(head[n_bytes - size_bytes : n_bytes], "little") + (256 if size_bytes == 2 else 0)
    else:
        base = 1 << (10 + (head[5] >> 3))
        window = base + (base >> 3) * (head[5] & 7)
    return _FrameHead(n_bytes, window, bool(flags & 0b100))


def zstd_frame_end(body: memoryview, at: int) -> int:
    """Where the frame or skippable frame that begins at `at` ends, found by its blocks' heads and not unpacked.

    Returns:
        More than `len(body)` if the frame is cut short, `at` if none begins there.
    """
    head = bytes(body[at : at + 18])
    if _is_skippable(head):
        return at + 8 + int.from_bytes(head[4:8], "little") if len(head) >= 8 else len(body) + 1
    frame = _frame_head(head)
    if frame is None:
        return len(body) + 1 if head.startswith(ZSTD_MAGIC) else at
    at += frame.n_bytes
    last = False
    while not last and at + 3 <= len(body):
        value = int.from_bytes(body[at : at + 3], "little")
        last = bool(value & 1)
        at += 3 + (1 if (value >> 1) & 3 == 1 else value >> 3)
    return at + 4 * frame.checksum if last else len(body) + 1


def _is_skippable(head: bytes) -> bool:
    return len(head) >= 4 and head[1:4] == b"\x2a\x4d\x18" and head[0] >> 4 == 5


def read_zstd(stored: Stored, report: SliceReport) -> Blocks:
    """Decompressed blocks of all zstd frames; skippable frames are skipped."""
    frames = 0
    decompressor = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW_BYTES)
    while stored.fill(1):
        stored.fill(18)
        head = stored.buffer[:18]
        if head.startswith(ZSTD_MAGIC) or (frames == 0 and ZSTD_MAGIC.startswith(head)):
            yield from _zstd_frame(stored, report, decompressor)
        elif _is_skippable(head):
            yield from _skippable(stored, report)
        else:
            yield _junk(stored, report, ZSTD_MAGIC, _is_zstd_frame, "zstd frame", frames)
        frames += 1


def _skippable(stored: Stored, report: SliceReport) -> Blocks:
    left = int.from_bytes(stored.take(8)[4:], "little")
    while left:
        taken = len(stored.take(min(left, _OUT_BYTES)))
        if not taken:
            yield mark(report, "truncated_stream", stored.offset, f"a skippable zstd frame lacks {left:,} bytes")
            return
        left -= taken


def _zstd_frame(stored: Stored, report: SliceReport, decompressor: Any) -> Blocks:
    start = stored.offset
    head = _frame_head(stored.buffer[:18])
    if head is not None and head.window > MAX_WINDOW_BYTES:
        stored.take(head.n_bytes)
        stored.skip_to(ZSTD_MAGIC, _is_zstd_frame)
        detail = f"a zstd frame asks for a window of {head.window:,} bytes; {MAX_WINDOW_BYTES:,} is the most"
        yield mark(report, "bad_file", start, detail)
        return
    decoder = decompressor.decompressobj()
    pending: list[bytes] = []
    size = 0
    at = stored.offset
    try:
        for piece in _frame_pieces(stored, head):
            out = decoder.decompress(piece)
            at = stored.offset
            size += len(out)
            pending.append(out)
            if size >= _OUT_BYTES:
                yield b"".join(pending)
                pending, size = [], 0
        fault = None
    except EOFError:
        fault = "truncated_stream", f"the zstd frame from byte {start:,} on ends too early"
    except (zstandard.ZstdError, _BadBlockError) as error:
        fault = "corrupt_stream", f"zstd: {error}"
    yield b"".join(pending)
    if fault:
        search_from = max(at, start + 1)
        yield _fault(
            stored, report, fault[0], at, fault[1], search_from=search_from, magic=ZSTD_MAGIC, accept=_is_zstd_frame
        )


class _BadBlockError(ValueError):
    """The head of a frame or block cannot be right."""


def _frame_pieces(stored: Stored, head: _FrameHead | None) -> Iterator[bytes]:
    """A frame's head, its blocks one by one, its checksum.

    Raises:
        EOFError: the file ends inside the frame.
        _BadBlockError: the head of the frame or of a block breaks the format.
    """
    if head is None:
        if not stored.fill(18):
            raise EOFError
        raise _BadBlockError("the head of the frame breaks the format")
    yield _whole(stored, head.n_bytes)
    last = False
    while not last:
        block = _whole(stored, 3)
        value = int.from_bytes(block, "little")
        last, kind, size = bool(value & 1), (value >> 1) & 3, value >> 3
        if kind == 3 or size > _MAX_BLOCK:
            raise _BadBlockError("the head of a block breaks the format")
        yield block + _whole(stored, 1 if kind == 1 else size)
    if head.checksum:
        yield _whole(stored, 4)


def _whole(stored: Stored, n_bytes: int) -> bytes:
    taken = stored.take(n_bytes)
    if len(taken) < n_bytes:
        raise EOFError
    return taken


def _is_zstd_frame(head: bytes) -> bool:
    frame = _frame_head(head)
    if frame is None or frame.window > MAX_WINDOW_BYTES:
        return False
    at = frame.n_bytes
    value = int.from_bytes(head[at : at + 3], "little")
    kind, size = (value >> 1) & 3, value >> 3
    if kind == 3 or size > _MAX_BLOCK:
        return False
    body = head[at + 3 : at + 3 + (1 if kind == 1 else size)]
    try:
        decoder = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW_BYTES).decompressobj()
        decoder.decompress(head[:at] + head[at : at + 3] + body)
    except zstandard.ZstdError:
        return False
    return True
