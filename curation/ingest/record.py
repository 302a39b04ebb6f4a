"""What readers yield, the kinds of damage they can name, and the slice of input that they read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

__all__ = ["DAMAGE", "HARMLESS", "USUAL", "Damage", "Document", "Slice", "SliceReport", "printable"]


@dataclass(slots=True)
class Document:
    """One good record: text is valid Unicode without lone surrogates."""

    text: str
    line: int
    """1-based line, row or WARC record in the input file."""
    byte_offset: int | None
    """Where the record starts in the (decompressed) input; None where rows have no offset."""
    id: str | None = None
    url: str | None = None
    meta: str | None = None
    """Other fields as one JSON object, None if there are none."""
    row: int = 0
    """Number of the record where `byte_offset` is None (parquet, Arrow), else 0."""


@dataclass(slots=True)
class Damage:
    """One record that could not be read: goes to the quarantine, never lost and never hidden."""

    reason: str
    """A key of DAMAGE."""
    line: int | None
    byte_offset: int | None
    raw: bytes
    """The record's own bytes, at most `quarantine_raw_kb` of them."""
    detail: str = ""
    """What the parser said, for a person."""
    raw_length: int | None = None
    """Length of the whole record where `raw` holds only its beginning."""
    whole_file: bool = False
    """The damage speaks about the file or stream, not one record: it counts as damage of the file,
    and not as a line."""

    def __post_init__(self) -> None:
        self.detail = printable(self.detail)


def printable(words: str) -> str:
    """Words that may hold pieces of the input, with control signs escaped: they end on terminals and in logs."""
    if words.isprintable():
        return words
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in words)


DAMAGE: Mapping[str, str] = MappingProxyType(
    {
        "bad_json": "the line is not valid JSON",
        "bad_utf8": "the line is not valid UTF-8",
        "nul_byte": "the line holds raw NUL bytes (often a lost disk block)",
        "lone_surrogate": "an escape names half of a surrogate pair: no valid text",
        "two_objects": "more than one JSON value on the line",
        "not_an_object": "the line is JSON, but not an object",
        "missing_text": "there is no text field",
        "null_text": "the text field is null",
        "wrong_text_type": "the text field is not a string",
        "empty_text": "the text is empty or blank",
        "duplicate_key": "the text or id field stands twice in the object",
        "too_long": "the record is longer than max_record_mb",
        "truncated_line": "the last line ends without a newline and is not whole",
        "truncated_stream": "the compressed stream ends too early; what came before is kept",
        "corrupt_stream": "the compressed stream is damaged; what came before is kept",
        "trailing_garbage": "bytes after the end of the compressed stream are no stream",
        "bad_file": "the file cannot be read as its kind",
        "wrong_encoding": "the file is not UTF-8",
        "unknown_column": "the file has no column of the configured name",
        "bad_row_group": "a block of rows is damaged; the other blocks are kept",
        "bad_warc_record": "the WARC record is broken or shorter than it says",
        "bad_http": "the HTTP head of the response is broken",
        "not_html": "the response is neither HTML nor plain text",
        "http_error": "the response is an HTTP error or a redirect",
        "no_main_text": "the page has no main text",
        "undecodable": "the page's bytes do not fit the charset it declares, nor any that was detected",
        "extract_timeout": "the page took longer than html_timeout_s",
        "extract_failed": "the extractor failed on the page",
    }
)
"""Reasons of quarantine: a closed list, each with one sentence."""

USUAL = frozenset({"http_error", "not_html", "no_main_text"})
"""What every sound crawl holds: redirects, error pages, images, pages without a text. Kept in the quarantine and counted
in the law like the rest, but no sign of damage, so `max_quarantine_share` does not weigh it."""

HARMLESS = frozenset({"trailing_garbage"})
"""Marks of a file that cost no record: all of it was read. Every other mark counts for `max_damaged_share`."""


@dataclass(frozen=True, slots=True)
class Slice:
    """A byte range of one input: the records that start in [start, end) belong to it.

    Compressed, columnar and WARC inputs are one slice [0, size).
    """

    source: str
    """Absolute path or fsspec URL."""
    kind: str
    """jsonl, parquet, arrow or warc."""
    start: int
    end: int
    size: int
    """Bytes of the whole input."""
    first_line: int = 1
    """Number of the first line that starts in the slice."""


@dataclass(slots=True)
class SliceReport:
    """What a reader says of its slice beside the records, filled while it reads."""

    records: int = 0
    """Records seen, counted where they are cut apart and not where they are judged: every one of
    them must come out as a Document or a Damage."""
    blank_lines: int = 0
    sha256: str = ""
    """Of the slice's stored (compressed) bytes."""
    damaged: list[str] = field(default_factory=list)
    """Reasons for which the file itself is marked."""
    notes: dict[str, int] = field(default_factory=dict)
    """Counts of harmless repairs, e.g. `bom_removed`, `crlf`."""
