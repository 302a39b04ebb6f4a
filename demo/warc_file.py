"""WARC records by hand: a few lines of the format (ISO 28500), one gzip member each, the same bytes every time.

The demo must not need a WARC library that only the tests install, and a broken record cannot be had from one.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, timezone

__all__ = ["WarcFile", "http_response"]

_START = datetime(2026, 3, 2, 8, 0, tzinfo=timezone.utc)


def http_response(status: str, headers: Mapping[str, str], body: bytes, coding: str = "") -> bytes:
    """The bytes of an HTTP/1.1 response.

    Args:
        status: e.g. `200 OK`.
        coding: `gzip` compresses the body, `chunked` sends it in chunks, nothing leaves it as it is.
    """
    sent = dict(headers)
    if coding == "gzip":
        body = gzip.compress(body, 6, mtime=0)
        sent["Content-Encoding"] = "gzip"
    if coding == "chunked":
        pieces = [body[start : start + 4096] for start in range(0, len(body), 4096)]
        body = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"
        sent["Transfer-Encoding"] = "chunked"
    else:
        sent["Content-Length"] = str(len(body))
    head = "".join(f"{name}: {value}\r\n" for name, value in sent.items())
    return f"HTTP/1.1 {status}\r\n{head}\r\n".encode("latin-1") + body


class WarcFile:
    """Records of one file in memory, in the order of writing, a second of made-up time apart."""

    def __init__(self) -> None:
        self._members: list[bytes] = []

    def __len__(self) -> int:
        return len(self._members)

    def add(self, kind: str, url: str, content_type: str, block: bytes, *, lost_bytes: int = 0) -> None:
        """Add one record.

        Args:
            kind: WARC-Type.
            lost_bytes: how many bytes of the block are missing from a record that promises them all.
        """
        number = len(self._members)
        digest = base64.b32encode(hashlib.sha1(block, usedforsecurity=False).digest()).decode()
        lines: Sequence[str] = (
            "WARC/1.1",
            f"WARC-Type: {kind}",
            f"WARC-Record-ID: <urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, f'{number} {url}')}>",
            f"WARC-Date: {(_START + timedelta(seconds=number)):%Y-%m-%dT%H:%M:%SZ}",
            *([f"WARC-Target-URI: {url}"] if url else []),
            f"WARC-Block-Digest: sha1:{digest}",
            f"Content-Type: {content_type}",
            f"Content-Length: {len(block)}",
        )
        head = "\r\n".join(lines).encode() + b"\r\n\r\n"
        stored = block[:-lost_bytes] if lost_bytes else block + b"\r\n\r\n"
        self._members.append(gzip.compress(head + stored, 6, mtime=0))

    def content(self) -> bytes:
        """The whole file: a concatenation of gzip members."""
        return b"".join(self._members)
