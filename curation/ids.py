"""Identities: of a document's place, of its text, and of a configuration.

Costs about 3 us per 2 kB document (SHA-256 with the processor's SHA instructions).
Identity is cryptographic because web text is hostile: nobody may craft a text that takes
another's place in exact deduplication or on the blacklist.
"""

from __future__ import annotations

import hashlib
import json
import struct
import unicodedata
from typing import Any

__all__ = ["DIGEST_BYTES", "canonical_json", "digest8", "doc_id", "normalise", "text_id"]

MARKED_PIECE = 500
"""Characters; see `_is_overmarked`."""

DIGEST_BYTES = 16
"""Length of `doc_id` and `text_id`. 2^64 documents before a chance collision is likely."""


def normalise(text: str) -> str:
    """The text as identity sees it: NFC, every line end as `\\n`, no outer blanks.

    Exactly this and no more: case, inner blanks and punctuation count, so that two texts with the
    same `text_id` are interchangeable for a reader. Outer blanks are those of `str.strip`. No writing has
    hundreds of marks on one letter; a text that has is left in the form it came in.
    """
    if not text.isascii() and not _is_overmarked(text) and not unicodedata.is_normalized("NFC", text):
        text = unicodedata.normalize("NFC", text)
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text.strip()


def _is_overmarked(text: str) -> bool:
    """Whether, of a text cut into pieces of 500 characters, one is all combining marks.

    NFC puts n marks in a row in order in n * n steps: 64,000 of them, made for it, take 3 s, 2 million an hour.
    """
    if not any(map(unicodedata.combining, text[::MARKED_PIECE])):
        return False
    pieces = (text[start : start + MARKED_PIECE] for start in range(0, len(text) - MARKED_PIECE + 1, MARKED_PIECE))
    return any(all(map(unicodedata.combining, piece)) for piece in pieces)


def text_id(text: str, encoded: bytes | None = None) -> bytes:
    """Identity of the content: 16 bytes of SHA-256 over the normalised text.

    Args:
        text: the document.
        encoded: the same text in UTF-8 where the caller has it; saves encoding it once more.
    """
    normal = normalise(text)
    content = encoded if encoded is not None and normal is text else normal.encode("utf-8")
    return hashlib.sha256(content).digest()[:DIGEST_BYTES]


def doc_id(source: str, byte_offset: int, row: int, content: bytes) -> bytes:
    """Identity of the occurrence: which text stood where. Equal on every rerun.

    Args:
        source: the input as the run names it (absolute path or URL).
        byte_offset: where the record starts in the (decompressed) input; 0 if it has no offset.
        row: number of the record inside that offset (parquet and Arrow rows; 0 elsewhere).
        content: the document's `text_id`.
    """
    place = source.encode("utf-8", "surrogateescape") + b"\0" + struct.pack("<qq", byte_offset, row)
    return hashlib.sha256(place + content).digest()[:DIGEST_BYTES]


def canonical_json(value: Any) -> str:
    """JSON with sorted keys and no blanks: the same text for equal values."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def digest8(value: Any) -> str:
    """First 8 hex digits of SHA-256 over the canonical JSON of `value`."""
    return hashlib.sha256(canonical_json(value).encode("utf-8")).hexdigest()[:8]
