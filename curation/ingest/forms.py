"""What a file is, judged by its first bytes: its compression, its kind, the form of its lines.

Costs one read of `HEAD_BYTES` a file. Magic numbers: gzip RFC 1952, zstd RFC 8878, parquet and Arrow
from their format pages; the encoding rule is that of RFC 4627, section 3, plus byte order marks.
A name is believed only where the bytes say nothing.
"""

from __future__ import annotations

import re
import zlib
from enum import Enum
from pathlib import PurePosixPath

import orjson
import zstandard

__all__ = [
    "BOM",
    "GZIP_MAGIC",
    "HEAD_BYTES",
    "MAX_WINDOW_BYTES",
    "ZSTD_MAGIC",
    "Form",
    "compression_of",
    "encoding_of",
    "form_of",
    "kind_of",
]

HEAD_BYTES = 65_536
"""Enough for a judgement: a record or two, several gzip members' heads, a WARC header."""
BOM = b"\xef\xbb\xbf"
GZIP_MAGIC = b"\x1f\x8b\x08"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
MAX_WINDOW_BYTES = 2**31
"""Largest zstd window that is decoded: the format's own limit with `--long=31`. A frame may need that much
memory; most need 8 MB or less."""

_SKIPPABLE = re.compile(rb"[\x50-\x5f]\x2a\x4d\x18")
_COMPRESSED_SUFFIXES = {".gz": "gzip", ".gzip": "gzip", ".zst": "zstd", ".zstd": "zstd"}
_KIND_SUFFIXES = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".jsonlines": "jsonl",
    ".jl": "jsonl",
    ".json": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".arrows": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".warc": "warc",
    ".wet": "warc",
    ".wat": "warc",
}
_FOREIGN = (
    (b"BZh", "bzip2"),
    (b"\xfd7zXZ\x00", "xz"),
    (b"\x04\x22\x4d\x18", "lz4"),
    (b"PK\x03\x04", "a zip archive"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"\xff\x06\x00\x00sNaPpY", "snappy"),
    (b"Obj\x01", "Avro"),
    (b"ORC", "ORC"),
)
_JSON_BLANKS = b" \t\r\n"
_CR_BETWEEN_OBJECTS = re.compile(rb"\}[ \t]*\r\s*\{")
_ARRAY_OF_OBJECTS = re.compile(rb"\[\s*\{")


class Form(Enum):
    """How the text of a line file is laid out."""

    LINES = "JSON lines, ended by a newline"
    CR_LINES = "JSON lines, ended by a carriage return alone"
    DOCUMENT = "one JSON document over several lines"


def compression_of(head: bytes, name: str) -> str:
    """`gzip`, `zstd` or `none`, by magic bytes.

    The name decides only for a file that is shorter than its magic, or holds NUL bytes where that should be: a
    damaged stream. A text that is merely named `.gz` is plain.
    """
    if head.startswith(GZIP_MAGIC):
        return "gzip"
    if head.startswith(ZSTD_MAGIC) or _SKIPPABLE.match(head):
        return "zstd"
    begins_stream = 0 < len(head) < 4 and (GZIP_MAGIC.startswith(head) or ZSTD_MAGIC.startswith(head))
    if begins_stream or (b"\0" in head and encoding_of(head) == "utf-8"):
        return named_compression(name)
    return "none"


def named_compression(name: str) -> str:
    """The compression that the file's name promises."""
    return _COMPRESSED_SUFFIXES.get(PurePosixPath(name).suffix.lower(), "none")


def kind_of(head: bytes, name: str) -> tuple[str, str]:
    """Kind of a file by its first bytes, then by its name.

    Returns:
        `jsonl`, `parquet`, `arrow`, `warc` or `unknown`, and, for `unknown`, what was found instead.
    """
    content = _decompressed_head(head)
    if content.startswith(b"PAR1"):
        return "parquet", ""
    if content.startswith(b"ARROW1"):
        return "arrow", ""
    if content.startswith(b"WARC/"):
        return "warc", ""
    for magic, what in _FOREIGN:
        if content.startswith(magic):
            return "unknown", f"it is {what}"
    if content[257:262] == b"ustar":
        return "unknown", "it is a tar archive"
    named = _named_kind(name)
    if named:
        return named, ""
    text = content.decode(encoding_of(content), "replace").lstrip("\ufeff \t\r\n")
    return ("jsonl", "") if text.startswith("{") else ("unknown", _describe(content))


def _named_kind(name: str) -> str | None:
    suffixes = [suffix.lower() for suffix in PurePosixPath(name).suffixes]
    while suffixes and suffixes[-1] in _COMPRESSED_SUFFIXES:
        suffixes.pop()
    return _KIND_SUFFIXES.get(suffixes[-1]) if suffixes else None


def _describe(content: bytes) -> str:
    shown = content[:20]
    if not shown:
        return "it holds nothing that can be decompressed"
    if all(32 <= byte < 127 or byte in b"\t\r\n" for byte in shown):
        return f"it begins with {shown.decode('ascii')!r}"
    return f"it begins with the bytes {shown.hex(' ')}"


def _decompressed_head(head: bytes) -> bytes:
    """The first decompressed bytes, as far as they can be had; `head` itself if it is not compressed."""
    try:
        if head.startswith(GZIP_MAGIC):
            return zlib.decompressobj(31).decompress(head, HEAD_BYTES)
        if head.startswith(ZSTD_MAGIC) or _SKIPPABLE.match(head):
            decoder = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW_BYTES)
            return bytes(decoder.stream_reader(head, read_across_frames=True).read(HEAD_BYTES))
    except (zlib.error, zstandard.ZstdError):
        return b""
    return head


def encoding_of(head: bytes) -> str:
    """The encoding of a JSON text: `utf-8` unless a byte order mark or the place of NUL bytes says otherwise."""
    candidates = (
        ("utf-32-le", b"\xff\xfe\0\0", (1, 0, 0, 0)),
        ("utf-32-be", b"\0\0\xfe\xff", (0, 0, 0, 1)),
        ("utf-16-le", b"\xff\xfe", (1, 0, 1, 0)),
        ("utf-16-be", b"\xfe\xff", (0, 1, 0, 1)),
    )
    for name, mark, pattern in candidates:
        marked = head.startswith(mark)
        body = head[len(mark) :] if marked else head
        if not marked and tuple(int(byte != 0) for byte in body[:4]) != pattern:
            continue
        usable = body[: min(len(body), 64) // 4 * 4]
        text = usable.decode(name, "ignore").lstrip(" \t\r\n")
        if text[:1] in ("{", "[") and text[1:2] in ('"', "{", "[", " ", "\t", "\r", "\n"):
            return name
    return "utf-8"


def form_of(head: bytes, *, whole: bool) -> Form:
    """The form of a UTF-8 line file from its first bytes.

    Args:
        head: the first decompressed bytes.
        whole: whether `head` is the whole file.

    A document over several lines is told from a damaged first line by its second line: a line file's
    second line is a record of its own, a document's goes on inside the first.
    """
    text = head.removeprefix(BOM).lstrip(_JSON_BLANKS)
    if b"\n" not in text.rstrip(_JSON_BLANKS) and _CR_BETWEEN_OBJECTS.search(text):
        return Form.CR_LINES
    first, newline, rest = text.partition(b"\n")
    first, rest = first.strip(_JSON_BLANKS), rest.lstrip(_JSON_BLANKS)
    if first[:1] not in (b"[", b"{") or _parses(first):
        alone = not rest and (whole or not newline)
        return Form.DOCUMENT if alone and _ARRAY_OF_OBJECTS.match(first) else Form.LINES
    if not rest:
        return Form.DOCUMENT if not whole and not newline and _ARRAY_OF_OBJECTS.match(first) else Form.LINES
    if first[-1:] not in (b"[", b"{", b","):
        return Form.LINES
    if first[:1] == b"[" or rest[:1] in (b'"', b"}"):
        return Form.DOCUMENT
    return Form.LINES


def _parses(line: bytes) -> bool:
    try:
        orjson.loads(line)
    except orjson.JSONDecodeError:
        return False
    return True
