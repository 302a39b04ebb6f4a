"""WARC and WET files into documents: HTML responses become main text, plain texts stay as they are.

Records of ours, each of which ends as a Document or a Damage: `response`, `conversion` (WET), and `resource` with a
text. The rest (warcinfo, request, metadata, revisit, dns, pictures saved as resources ...) holds no page and is
counted in `notes` by its kind. A broken record is a damage whatever its kind.

A 404 page or a picture is no damaged data, but a response must not vanish: it is quarantined as `http_error` or
`not_html` with its heads as raw bytes, since the record itself is whole and its place is known.

Costs beside extraction: 0.15 ms a response, 60 us a WET record. Memory: one record, at most `max_record_mb`, in three
or four forms (packed, unpacked, decoded).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import orjson

from curation.ingest.charset import MAX_REPLACED, UndecodableError, decode
from curation.ingest.config import IngestConfig
from curation.ingest.extractor import ExtractionError, Extractor
from curation.ingest.record import Damage, Document, Slice, SliceReport
from curation.ingest.streams import open_stream
from curation.ingest.warc_http import HttpError, TooLongError, parse_response, type_and_charset
from curation.ingest.warc_records import Junk, Record, cut_records

__all__ = ["read_warc"]

HTML_TYPES = ("text/html", "application/xhtml+xml")
TEXT_TYPES = ("text/plain", "text/markdown")
UNSURE_TYPES = ("", "application/octet-stream", "application/xml", "text/xml", "unknown/unknown", "*/*")
"""What servers say who do not know: HTML if it begins like HTML."""
MAX_UNREADABLE_SHARE = 0.005
"""Of the main text's characters, counted only where decoding had to replace some: one in a paragraph."""
NO_PAGE = ("warcinfo", "request", "metadata", "revisit", "continuation")
"""Kinds of records that hold no page (ISO 28500, section 6)."""


@dataclass(slots=True)
class _Page:
    """What a record holds, before it is judged."""

    content_type: str
    charset: str
    body: bytes
    status: int | None
    heads: bytes
    """WARC and HTTP head: enough to find a sound record again."""
    repairs: list[str] = field(default_factory=list)


class _NotAPageError(Exception):
    """A record of ours that gives no document: `reason` is a key of DAMAGE."""

    def __init__(self, reason: str, detail: str, raw: bytes) -> None:
        super().__init__(detail)
        self.reason = reason
        self.raw = raw


def read_warc(slice_: Slice, config: IngestConfig, report: SliceReport) -> Iterator[Document | Damage]:
    """Read a WARC or WET file: plain, gzip or zstd, one record a member or not.

    A record's `line` is its number among all records of the file, `byte_offset` counts decompressed bytes. `id` is
    its WARC-Record-ID without the URN, `meta` holds content_type, charset, status, date, title and any WARC-X-* field.
    A page whose body ends too early is kept with what came: `truncated` in its meta, `body_truncated` in the notes.

    Raises:
        InputError: the file is gone, may not be read, or has another size than planned.
        RunError: the store failed; a retry may help.
    """
    max_bytes = int(config.max_record_mb * 2**20)
    raw_bytes = config.quarantine_raw_kb << 10
    n_found = 0
    junk: Junk | None = None
    with Extractor(config.html, config.html_timeout_s) as extractor:
        for part in cut_records(open_stream(slice_, report), max_bytes, raw_bytes):
            if junk is not None:
                yield _junk(junk, report)
                junk = None
            if isinstance(part, Damage):
                yield part
            elif isinstance(part, Junk):
                junk = part
            else:
                n_found += 1
                found = _one(part, extractor, config, report)
                if found is not None:
                    yield found
    if junk is not None:
        yield _junk(junk, report) if n_found else _no_warc(junk, report)


def _mark(report: SliceReport, reason: str) -> None:
    if reason not in report.damaged:
        report.damaged.append(reason)


def _note(report: SliceReport, key: str) -> None:
    report.notes[key] = report.notes.get(key, 0) + 1


def _junk(junk: Junk, report: SliceReport) -> Damage:
    _mark(report, "bad_warc_record")
    detail = f"{junk.n_bytes} bytes belong to no record"
    return Damage("bad_warc_record", None, junk.offset, junk.raw, detail, junk.n_bytes, whole_file=True)


def _no_warc(junk: Junk, report: SliceReport) -> Damage:
    _mark(report, "bad_file")
    detail = f"no WARC record in the file, which begins with {junk.raw[:40]!r}"
    if junk.raw.startswith(b"filedesc:"):
        detail = "an ARC file, the format before WARC: convert it (`warcio recompress`) and ingest the result"
    return Damage("bad_file", None, None, b"", detail, whole_file=True)


def _one(record: Record, extractor: Extractor, config: IngestConfig, report: SliceReport) -> Document | Damage | None:
    """The document or damage that a record gives; None if it is not of ours."""
    kind = _kind(record)
    is_ours = kind in ("response", "resource", "conversion")
    if not is_ours and (record.too_long or not record.fault):
        _note(report, kind)
        return None
    report.records += 1
    if record.fault:
        raw = (record.head + record.block)[: config.quarantine_raw_kb << 10]
        reason = "too_long" if record.too_long else "bad_warc_record"
        return Damage(reason, record.number, record.offset, raw, record.fault, record.n_bytes)
    try:
        return _document(record, _page(record, kind, config), extractor, report)
    except _NotAPageError as why:
        raw = why.raw[: config.quarantine_raw_kb << 10]
        return Damage(why.reason, record.number, record.offset, raw, f"{_url(record)}: {why}", record.n_bytes)


def _kind(record: Record) -> str:
    """`response`, `resource` or `conversion` for records of ours, else the name under which it is counted."""
    kind = record.fields.get("warc-type", "").lower()
    media, _ = type_and_charset(record.fields.get("content-type", ""))
    if kind == "response":
        return "dns" if media == "text/dns" else "response"
    if kind in ("resource", "conversion"):
        is_text = media in HTML_TYPES + TEXT_TYPES
        if _url(record).startswith("metadata:"):
            return "metadata"  # wget's own log files
        return kind if is_text else f"{kind}_no_text"
    return kind if kind in NO_PAGE else "unknown_kind"


def _url(record: Record) -> str:
    """The target, without the angle brackets that wget put around it; inner spaces are kept."""
    return record.fields.get("warc-target-uri", "").removeprefix("<").removesuffix(">").strip()


# -- what is in it --------------------------------------------------------------------------------


def _page(record: Record, kind: str, config: IngestConfig) -> _Page:
    media, charset = type_and_charset(record.fields.get("content-type", ""))
    if kind != "response" or (media and media != "application/http"):
        return _Page(media, charset, record.block, None, record.head)
    try:
        response = parse_response(record.block, int(config.max_record_mb * 2**20))
    except TooLongError as error:
        raise _NotAPageError("too_long", str(error), record.head + record.block) from error
    except HttpError as error:
        raise _NotAPageError("bad_http", str(error), record.head + record.block) from error
    media, charset = type_and_charset(response.fields.get("content-type", ""))
    heads = record.head + response.head
    if not 200 <= response.status < 300:
        raise _NotAPageError("http_error", f"status {response.status}", heads)
    return _Page(media, charset, response.body, response.status, heads, response.repairs)


_IS_HTML = re.compile(
    rb"\s{0,99}(?:<\?xml[^>]{0,200}>\s{0,99})?(?:<!--[^>]{0,2000}-->\s{0,99})?<(?:!doctype\s{1,99}html|html|head|body)\b",
    re.I,
)
_MAGIC = (b"%PDF-", b"\x89PNG", b"GIF8", b"\xff\xd8\xff", b"PK\x03\x04", b"RIFF", b"\x1f\x8b", b"OggS", b"wOF", b"ID3")


def _is_html(page: _Page) -> bool:
    """Whether a page is HTML; else it is plain text.

    Raises:
        _NotAPageError: it is neither. What the head says counts, unless the bytes say clearly otherwise.
    """
    begins = page.body[:4096]
    if begins.startswith(_MAGIC):
        raise _NotAPageError(
            "not_html", f"declared {page.content_type or 'nothing'}, begins with {begins[:8]!r}", page.heads
        )
    if page.content_type in HTML_TYPES or _IS_HTML.match(begins):
        if page.content_type in HTML_TYPES + TEXT_TYPES + UNSURE_TYPES:
            return True
    elif page.content_type in TEXT_TYPES:
        return False
    raise _NotAPageError("not_html", page.content_type or "no content type, and no HTML", page.heads)


def _document(record: Record, page: _Page, extractor: Extractor, report: SliceReport) -> Document:
    """Decode and extract.

    Raises:
        _NotAPageError: there is no text in it.
    """
    for repair in page.repairs:
        _note(report, repair)
    is_html = _is_html(page)
    try:
        decoded = decode(page.body, page.charset, markup=is_html)
        text, title = extractor.extract(decoded.text) if is_html else (_plain(decoded.text), None)
    except UndecodableError as error:
        raise _NotAPageError("undecodable", str(error), page.heads + page.body) from error
    except ExtractionError as error:
        raise _NotAPageError(error.reason, str(error), page.heads + page.body) from error
    if not text or text.isspace():
        reason = "no_main_text" if is_html else "empty_text"
        raise _NotAPageError(reason, f"{len(page.body)} bytes of {page.content_type}", page.heads)
    if decoded.replaced:
        unreadable = text.count("\ufffd")
        if unreadable > MAX_REPLACED + MAX_UNREADABLE_SHARE * len(text):
            detail = f"{unreadable} of {len(text)} characters of its main text are unreadable as {decoded.charset}"
            raise _NotAPageError("undecodable", detail, page.heads + page.body)
        report.notes["characters_replaced"] = report.notes.get("characters_replaced", 0) + decoded.replaced
    meta = _meta(record, page, decoded.charset, title)
    return Document(text, record.number, record.offset, _id(record), _url(record) or None, meta)


def _plain(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n").strip("\n\ufeff")


def _id(record: Record) -> str | None:
    found = record.fields.get("warc-record-id", "").strip("<> ")
    return found.removeprefix("urn:uuid:") or None


_OWN_FIELDS = re.compile(rb"^(WARC-X-[A-Za-z0-9-]+)[ \t]*:[ \t]*([^\r\n]*)", re.I | re.M)


def _meta(record: Record, page: _Page, charset: str, title: str | None) -> str:
    values: dict[str, str | int | bool | None] = {
        "content_type": page.content_type,
        "charset": charset,
        "status": page.status,
        "date": record.fields.get("warc-date"),
        "title": title,
        "truncated": ("body_truncated" in page.repairs or "warc-truncated" in record.fields) or None,
        "languages": record.fields.get("warc-identified-content-language"),
    }
    own = {key.decode(): value.decode("utf-8", "replace").strip() for key, value in _OWN_FIELDS.findall(record.head)}
    return orjson.dumps({key: value for key, value in (values | own).items() if value is not None}).decode()
