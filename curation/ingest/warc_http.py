"""The HTTP response inside a WARC record: its head, its body with transfer and content encodings undone.

Archives are liberal: many store the body already unchunked or unpacked and keep the header that says otherwise.
So an encoding whose very beginning does not fit is taken as already undone; one that breaks later is damage. A body
that merely ends too early keeps what came, and always says so: `body_truncated` in `repairs`. All gzip members and
zstd frames of a body are read (RFC 1952, 2.2; RFC 8878, 3.1); other bytes behind them are `body_trailing_bytes`.
Costs 15 us a response beside decompression. RFC 9110, RFC 9112.
"""

from __future__ import annotations

import importlib
import re
import zlib
from dataclasses import dataclass, field

from curation.ingest.forms import MAX_WINDOW_BYTES, ZSTD_MAGIC
from curation.ingest.members import zstd_frame_end

__all__ = ["HttpError", "Response", "TooLongError", "parse_response", "type_and_charset"]

_STATUS = re.compile(rb"\s{0,8}HTTP/\d(?:\.\d)?[ \t]+(\d{3})\b")
_END_OF_HEAD = re.compile(rb"\r?\n\r?\n")
_CHUNK = re.compile(rb"[ \t]{0,8}([0-9A-Fa-f]{1,8})[ \t]{0,8}(?:;[^\r\n]{0,256})?\r?\n")
_LENGTH_DIGITS = 16
"""A longer Content-Length is nonsense."""


class HttpError(ValueError):
    """The response cannot be read; says why."""


class TooLongError(HttpError):
    """There is more packed in the body than is allowed."""


@dataclass(slots=True)
class Response:
    """A response, its body as a browser would see it."""

    status: int
    fields: dict[str, str]
    """By lower-case name, the first of each."""
    body: bytes
    head: bytes
    repairs: list[str] = field(default_factory=list)
    """What was found to be other than the head says: keys for `SliceReport.notes`."""


def parse_response(block: bytes, max_bytes: int) -> Response:
    """Parse a response and undo its encodings.

    Args:
        block: the content of a WARC response record.
        max_bytes: longest body after unpacking.

    Raises:
        HttpError: no status line, an encoding that is unknown or damaged, or too much in it.
    """
    status = _STATUS.match(block)
    if not status:
        raise HttpError(f"the response begins with {block[:40]!r}, not with a status line")
    found = _END_OF_HEAD.search(block)
    end = found.end() if found else len(block)
    head = block[:end]
    response = Response(int(status.group(1)), _fields(head), block[end:], head)
    if "chunked" in response.fields.get("transfer-encoding", "").lower():
        response.body = _unchunked(response)
    codings = [part.strip().lower() for part in response.fields.get("content-encoding", "").split(",")]
    codings = [coding for coding in codings if coding not in ("", "identity", "none", "utf-8")]
    if not codings and "transfer-encoding" not in response.fields and len(response.body) < _declared_length(response):
        response.repairs.append("body_truncated")
    for coding in reversed(codings):
        response.body = _unpacked(response, coding, max_bytes)
    return response


def _declared_length(response: Response) -> int:
    value = response.fields.get("content-length", "")
    return int(value) if value.isascii() and value.isdigit() and len(value) < _LENGTH_DIGITS else 0


def _fields(head: bytes) -> dict[str, str]:
    fields: dict[str, str] = {}
    name = ""
    for line in head.decode("latin-1").split("\n")[1:]:
        line = line.rstrip("\r")
        if line[:1] in (" ", "\t") and name:
            fields[name] = f"{fields[name]} {line.strip()}"
        elif ":" in line:
            key, _, value = line.partition(":")
            name = key.strip().lower()
            fields.setdefault(name, value.strip())
    return fields


def type_and_charset(value: str) -> tuple[str, str]:
    """Media type in lower case and charset of a Content-Type field; "" where it says nothing."""
    kind, _, rest = value.partition(";")
    charset = re.search(r"charset\s{0,8}=\s{0,8}[\"']?([^\s\"';,]{1,40})", rest, re.I)
    return kind.split(",")[0].strip().lower(), charset.group(1) if charset else ""


def _unchunked(response: Response) -> bytes:
    """The body without chunk heads (RFC 9112, section 7.1), or as it stands if it has none."""
    body, at = response.body, 0
    pieces: list[bytes] = []
    while True:
        chunk = _CHUNK.match(body, at)
        if not chunk:
            response.repairs.append("chunks_broken" if pieces else "chunks_absent")
            # The heads cannot be trusted any more: nothing is lost by keeping the rest as it stands.
            return b"".join(pieces) + body[at:]
        size = int(chunk.group(1), 16)
        if size == 0:
            return b"".join(pieces)
        start = chunk.end()
        pieces.append(body[start : start + size])
        at = start + size
        if at >= len(body):
            response.repairs.append("body_truncated")
            return b"".join(pieces)
        at += 2 if body.startswith(b"\r\n", at) else body.startswith(b"\n", at)


def _unpacked(response: Response, coding: str, max_bytes: int) -> bytes:
    """The body with one content coding undone (RFC 9110, section 8.4.1), or as it stands if it has none."""
    body = response.body
    decode = _DECODERS.get(coding)
    if decode is None:
        raise HttpError(f"its content encoding is {coding[:40]!r}")
    if not body:
        return body
    try:
        out, whole, n_unused = decode(body, max_bytes + 1)
    except _NotPackedError:
        response.repairs.append("content_encoding_absent")
        return body
    if len(out) > max_bytes:
        raise TooLongError(f"more than {max_bytes} bytes are packed in {len(body)} bytes of {coding}")
    if not whole:
        response.repairs.append("body_truncated")
    if n_unused:
        response.repairs.append("body_trailing_bytes")
    return out


class _NotPackedError(ValueError):
    """The bytes do not begin like the coding that the head names."""


_Unpacked = tuple[bytes, bool, int]
"""What came out, whether the stream was whole, and how many bytes behind it are no stream."""


def _gzip(body: bytes, limit: int) -> _Unpacked:
    if not body.startswith(b"\x1f\x8b"):
        raise _NotPackedError
    return _zlib(body, limit, 31)


def _deflate(body: bytes, limit: int) -> _Unpacked:
    """RFC 9110 says zlib, many servers send the bare stream."""
    if body[0] & 15 == 8 and int.from_bytes(body[:2], "big") % 31 == 0:
        return _zlib(body, limit, 15)
    if _looks_like_text(body):
        raise _NotPackedError
    return _zlib(body, limit, -15)


def _zlib(body: bytes, limit: int, wbits: int) -> _Unpacked:
    pieces: list[bytes] = []
    rest, room = body, limit
    while True:
        decoder = zlib.decompressobj(wbits)
        try:
            pieces.append(decoder.decompress(rest, room))
        except zlib.error as error:
            raise HttpError(f"its content encoding is damaged: {error}") from error
        rest, room = decoder.unused_data, room - len(pieces[-1])
        if not decoder.eof or room <= 0 or not rest.startswith(_MEMBER) or len(pieces) >= _MAX_MEMBERS:
            return b"".join(pieces), decoder.eof, len(rest)


def _brotli(body: bytes, limit: int) -> _Unpacked:
    try:
        brotli = importlib.import_module("brotli")
    except ImportError:
        raise HttpError("its content encoding is br, and the package brotli is not installed") from None
    decoder = brotli.Decompressor()
    try:
        out = decoder.process(body, output_buffer_limit=limit)
    except brotli.error as error:
        if _looks_like_text(body):
            raise _NotPackedError from error
        raise HttpError(f"its content encoding br is damaged: {error}") from error
    return out, decoder.is_finished(), 0


def _zstd(body: bytes, limit: int) -> _Unpacked:
    if not body.startswith(ZSTD_MAGIC):
        raise _NotPackedError
    import zstandard

    pieces: list[bytes] = []
    view, at, room = memoryview(body), 0, limit
    decompressor = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW_BYTES)
    while room > 0 and len(pieces) < _MAX_MEMBERS and (end := zstd_frame_end(view, at)) > at:
        if body.startswith(ZSTD_MAGIC, at):
            try:
                with decompressor.stream_reader(view[at:end]) as stream:
                    pieces.append(stream.read(room))
            except zstandard.ZstdError as error:
                raise HttpError(f"its content encoding zstd is damaged: {error}") from error
            room -= len(pieces[-1])
        at = end
    return b"".join(pieces), at <= len(body), max(len(body) - at, 0)


def _looks_like_text(body: bytes) -> bool:
    return not re.search(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]", body[:512])


_MEMBER = b"\x1f\x8b\x08"
_MAX_MEMBERS = 1000
"""Each costs a copy of the rest or a buffer: hostile ones would take minutes. What is behind them is not read."""
_DECODERS = {"gzip": _gzip, "x-gzip": _gzip, "deflate": _deflate, "br": _brotli, "zstd": _zstd}
