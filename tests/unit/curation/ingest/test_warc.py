"""Every response ends as a document or in the quarantine with the right reason; encodings of all kinds are undone."""

from __future__ import annotations

import gzip
import random
import zlib
from pathlib import Path
from typing import Any

import brotli
import orjson
import pytest
import zstandard

from curation.ingest.config import IngestConfig
from curation.ingest.record import DAMAGE, Damage, Document, Slice, SliceReport
from curation.ingest.warc import read_warc
from curation.ingest.warc_http import HttpError, TooLongError, parse_response, type_and_charset

WORDS = "The council met on Tuesday and agreed to repair the old bridge."
HTML = f"<html><head><title>Bridges</title></head><body><p>{WORDS}</p></body></html>".encode()


def warc(path: Path, *records: dict[str, Any], gz: bool = False) -> Path:
    """Write records: each may name kind, type, url, further WARC fields, HTTP status and fields, and the body."""
    with path.open("wb") as out:
        for number, one in enumerate(records):
            content, kind = one.get("body", HTML), one.get("kind", "response")
            media = one.get("type", "application/http")
            if kind == "response" and media == "application/http":
                lines = [f"HTTP/1.1 {one.get('status', '200 OK')}", *(f"{k}: {v}" for k, v in one.get("fields", []))]
                content = "\r\n".join([*lines, "", ""]).encode() + content
            fields = {
                "WARC-Type": kind,
                "WARC-Target-URI": one.get("url", f"http://example.org/{number}"),
                "WARC-Record-ID": f"<urn:uuid:{number}>",
                "Content-Type": media,
                "Content-Length": len(content),
                **one.get("warc", {}),
            }
            head = "\r\n".join(["WARC/1.0", *(f"{k}: {v}" for k, v in fields.items()), "", ""]).encode()
            out.write(gzip.compress(head + content + b"\r\n\r\n") if gz else head + content + b"\r\n\r\n")
    return path


def read(path: Path, **settings: Any) -> tuple[list[Document], list[Damage], SliceReport]:
    """Read a file and hold its counts against each other."""
    size = path.stat().st_size
    report = SliceReport()
    found = list(read_warc(Slice(str(path), "warc", 0, size, size), IngestConfig(**settings), report))
    documents = [one for one in found if isinstance(one, Document)]
    damages = [one for one in found if isinstance(one, Damage)]
    assert report.records == len(documents) + sum(not damage.whole_file for damage in damages)
    assert all(damage.reason in DAMAGE for damage in damages)
    assert len(report.sha256) == 64
    return documents, damages, report


# -- judging --------------------------------------------------------------------------------------

TYPE = "Content-Type"
JUDGED = [
    # record, reason or None, in the text or the detail, why
    ({"fields": [(TYPE, "text/html")]}, None, WORDS, "an HTML page"),
    ({"fields": [(TYPE, "TEXT/HTML; Charset=UTF-8")]}, None, WORDS, "media types have no case"),
    ({"fields": [(TYPE, "application/xhtml+xml")]}, None, WORDS, "XHTML is HTML"),
    ({"fields": [(TYPE, "text/xml")], "body": b"<?xml version='1.0'?>\n<!doctype html>" + HTML}, None, WORDS, "XML that is XHTML"),
    ({"fields": []}, None, WORDS, "no type, but it begins like HTML"),
    ({"fields": [(TYPE, "text/plain")], "body": b"Words.\r\nMore.\r\n"}, None, "Words.\nMore.", "plain text as it stands"),
    ({"fields": [(TYPE, "text/plain")]}, None, WORDS, "HTML that a server calls plain text"),
    ({"fields": [], "body": b"\x00\x01\x02"}, "not_html", "no content type", "no type and nothing known"),
    ({"fields": [(TYPE, "image/png")], "body": b"\x89PNG\r\n"}, "not_html", "begins with", "a picture"),
    ({"fields": [(TYPE, "application/pdf")], "body": b"%PDF-1.4"}, "not_html", "begins with", "a PDF file"),
    ({"fields": [(TYPE, "text/html")], "body": b"%PDF-1.4 ..."}, "not_html", "begins with", "a PDF file that a server calls HTML"),
    ({"fields": [(TYPE, "application/json")], "body": b"{}"}, "not_html", "application/json", "data for programs"),
    ({"fields": [(TYPE, "text/css")], "body": b"p {}"}, "not_html", "text/css", "not every text is prose"),
    ({"status": "404 Not Found", "fields": [(TYPE, "text/html")]}, "http_error", "404", "an error page has words, but not the page's"),
    ({"status": "301 Moved", "fields": [(TYPE, "text/html")]}, "http_error", "301", "a redirect"),
    ({"fields": [(TYPE, "text/html")], "body": b"<html><body></body></html>"}, "no_main_text", "26 bytes", "a page without words"),
    ({"fields": [(TYPE, "text/html")], "body": b""}, "no_main_text", "0 bytes", "an empty answer"),
    ({"fields": [(TYPE, "text/plain")], "body": b" \r\n"}, "empty_text", "text/plain", "a blank text"),
    ({"fields": [(TYPE, "text/plain")], "body": bytes(random.Random(1).choices(range(1, 256), k=900))}, "undecodable", "tried", "noise"),
    ({"kind": "resource", "type": "text/html"}, None, WORDS, "a saved page"),
    ({"kind": "resource", "type": "text/plain", "body": b"Words."}, None, "Words.", "a saved text"),
    ({"kind": "conversion", "type": "text/plain", "body": "Wörter.".encode()}, None, "Wörter.", "WET"),
    ({"kind": "response", "type": "text/html"}, None, WORDS, "a response without HTTP head"),
]  # fmt: skip


@pytest.mark.parametrize(("record", "reason", "words", "why"), JUDGED, ids=[row[3] for row in JUDGED])
def test_records_are_judged(record: dict[str, Any], reason: str | None, words: str, why: str, tmp_path: Path) -> None:
    """One record in, one document or damage out."""
    documents, damages, report = read(warc(tmp_path / "x.warc", record))
    assert report.records == 1
    if reason is None:
        assert [document.text for document in documents] == [words]
        assert documents[0].line == 1
        assert documents[0].byte_offset == 0
    else:
        assert [damage.reason for damage in damages] == [reason]
        assert words in damages[0].detail
        assert "http://example.org/0" in damages[0].detail
        assert damages[0].raw.startswith(b"WARC/1.")


NOT_OURS = [
    ({"kind": "warcinfo", "type": "application/warc-fields", "body": b"a: b"}, "warcinfo"),
    ({"kind": "request", "type": "application/http", "body": b"GET / HTTP/1.1\r\n\r\n"}, "request"),
    ({"kind": "metadata", "type": "application/warc-fields", "body": b"a: b"}, "metadata"),
    ({"kind": "revisit", "type": "application/http", "body": b"HTTP/1.1 200 OK\r\n\r\n"}, "revisit"),
    (
        {"kind": "response", "type": "text/dns", "body": b"20240101\nexample.org A 1.2.3.4", "url": "dns:example.org"},
        "dns",
    ),
    ({"kind": "resource", "type": "image/png", "body": b"\x89PNG"}, "resource_no_text"),
    ({"kind": "conversion", "type": "application/pdf", "body": b"%PDF"}, "conversion_no_text"),
    ({"kind": "resource", "type": "text/plain", "body": b"wget log", "url": "metadata://gnu.org/wget.log"}, "metadata"),
    ({"kind": "my-own-kind", "type": "text/plain", "body": b"x"}, "unknown_kind"),
]


@pytest.mark.parametrize(("record", "note"), NOT_OURS, ids=[row[1] for row in NOT_OURS])
def test_records_without_a_page_are_counted_and_no_damage(record: dict[str, Any], note: str, tmp_path: Path) -> None:
    """They are neither documents nor quarantined; the notes say how many of each kind there were."""
    documents, damages, report = read(warc(tmp_path / "x.warc", record, {"fields": [(TYPE, "text/html")]}))
    assert [document.line for document in documents] == [2]
    assert damages == []
    assert report.notes == {note: 1}


def test_what_a_document_says_of_its_page(tmp_path: Path) -> None:
    """id, url and meta come from the record; an URL loses the angle brackets of wget and keeps its blanks."""
    body = "<title>Brücken</title><p>Der Stadtrat beschloss, die alte Brücke zu reparieren, bevor es friert.</p>"
    record = {
        "url": "<http://example.org/a b>",
        "fields": [(TYPE, "text/html; charset=iso-8859-1")],
        "body": body.encode("latin-1"),
        "warc": {
            "WARC-X-Fixture-Id": "page:1",
            "WARC-Record-ID": "<urn:uuid:1234>",
            "WARC-Date": "2024-05-06T07:08:09Z",
        },
    }
    [document], _, _ = read(warc(tmp_path / "x.warc.gz", record, gz=True))
    assert document.id == "1234"
    assert document.url == "http://example.org/a b"
    assert orjson.loads(document.meta or "") == {
        "content_type": "text/html",
        "charset": "cp1252",
        "status": 200,
        "date": "2024-05-06T07:08:09Z",
        "title": "Brücken",
        "WARC-X-Fixture-Id": "page:1",
    }


def test_sound_records_leave_their_heads_in_the_quarantine_and_damaged_ones_their_bytes(tmp_path: Path) -> None:
    """A picture is found again by its place; a page that cannot be decoded is needed to see why."""
    picture = {"fields": [(TYPE, "image/jpeg")], "body": b"\xff\xd8\xff" + bytes(5000)}
    noise = {"fields": [(TYPE, "text/plain")], "body": bytes(random.Random(1).choices(range(1, 256), k=900))}
    _, damages, _ = read(warc(tmp_path / "x.warc", picture, noise))
    assert damages[0].raw.endswith(b"\r\n\r\n")
    assert damages[0].raw_length is not None
    assert damages[0].raw_length > 5000
    assert damages[1].raw.endswith(noise["body"])


def test_pages_that_hang_are_named_and_the_rest_is_read(tmp_path: Path) -> None:
    """One page over the time limit costs itself."""
    fields = [(TYPE, "text/html")]
    slow = b"<div " + b" ".join(b"a%d=x" % i for i in range(120_000)) + b">"
    path = warc(tmp_path / "x.warc", {"fields": fields}, {"fields": fields, "body": slow}, {"fields": fields})
    documents, damages, _ = read(path, html_timeout_s=0.2)
    assert [document.line for document in documents] == [1, 3]
    assert [(damage.reason, damage.line) for damage in damages] == [("extract_timeout", 2)]


def test_quality_mode_reads_the_same_records(tmp_path: Path) -> None:
    """The mode changes the text, not what is accounted for."""
    page = {
        "fields": [(TYPE, "text/html")],
        "body": b"<main>" + b"".join(b"<p>%s</p>" % WORDS.encode() for _ in range(9)) + b"</main>",
    }
    [document], _, _ = read(warc(tmp_path / "x.warc", page), html="quality")
    assert WORDS in document.text


def test_a_record_longer_than_the_limit_is_too_long(tmp_path: Path) -> None:
    """Stored or only when unpacked: the limit holds for both, and the next record is read."""
    fields = [(TYPE, "text/plain")]
    bomb = {"fields": [*fields, ("Content-Encoding", "gzip")], "body": gzip.compress(b"x" * 3_000_000)}
    path = warc(
        tmp_path / "x.warc", {"fields": fields, "body": b"y" * 2_000_000}, bomb, {"fields": fields, "body": b"Words."}
    )
    documents, damages, report = read(path, max_record_mb=1)
    assert [document.text for document in documents] == ["Words."]
    assert [damage.reason for damage in damages] == ["too_long", "too_long"]
    assert report.records == 3


def test_what_is_no_warc_file_is_named_once(tmp_path: Path) -> None:
    """A file of another kind is one damage of the file and no records."""
    path = tmp_path / "x.warc"
    path.write_bytes(b"<html>a page, not an archive</html>\n" * 1000)
    documents, damages, report = read(path)
    assert (documents, report.records, report.damaged) == ([], 0, ["bad_file"])
    assert [(damage.reason, damage.whole_file) for damage in damages] == [("bad_file", True)]
    path.write_bytes(b"")
    assert read(path)[:2] == ([], [])


def test_zstd_archives(tmp_path: Path) -> None:
    """Compression is found by its magic: a .warc.zst is read as well."""
    plain = warc(tmp_path / "x.warc", {"fields": [(TYPE, "text/html")]})
    packed = tmp_path / "x.warc.zst"
    packed.write_bytes(zstandard.compress(plain.read_bytes()))
    assert [document.text for document in read(packed)[0]] == [WORDS]


def test_three_hundred_damaged_archives(tmp_path: Path) -> None:
    """Random cuts and flips, packed and plain: no exception, every record found is accounted for, and damage is named."""
    records = [{"fields": [(TYPE, "text/plain")], "body": f"Text {i}. {WORDS}".encode()} for i in range(6)]
    for gz in (False, True):
        path = warc(tmp_path / "x.warc", *records, gz=gz)
        sound = path.read_bytes()
        for seed in range(150):
            rng = random.Random(seed)
            data = bytearray(sound)
            for _ in range(rng.choice((1, 1, 3, 10))):
                data[rng.randrange(len(data))] = rng.randrange(256)
            if rng.random() < 0.4:
                del data[rng.randrange(1, len(data)) :]
            if rng.random() < 0.2:
                start = rng.randrange(len(data))
                del data[start : start + rng.randrange(200)]
            path.write_bytes(data)
            documents, damages, report = read(path)
            assert len(documents) <= 6
            assert bool(report.damaged) <= bool(damages)
            if len(documents) < 6 and len(data) < 0.9 * len(sound) and gz:
                assert damages or report.notes


# -- HTTP -----------------------------------------------------------------------------------------

BODY = HTML * 3
RAW_DEFLATE = zlib.compressobj(wbits=-15)
SMALL_CHUNKS = b"".join(b"5;x=y\r\n%s\r\n" % BODY[i : i + 5] for i in range(0, 25, 5))
LAST_CHUNK = b"%X\n%s\n0\n\n" % (len(BODY) - 25, BODY[25:])
BROKEN_CHUNK = b"5\r\n" + BODY[:5] + b"\r\n" + BODY[5:]
ENCODED = [
    # head fields, body, repairs, why
    ("Transfer-Encoding: chunked", b"%x\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY), [], "one chunk"),
    ("Transfer-Encoding: chunked", SMALL_CHUNKS + LAST_CHUNK, [], "chunk extensions, bare line feeds"),
    ("Transfer-Encoding: chunked", BODY, ["chunks_absent"], "the archive has unchunked it and kept the field"),
    ("Transfer-Encoding: chunked", BROKEN_CHUNK, ["chunks_broken"], "from a broken head on the rest stays as it is"),
    ("Transfer-Encoding: chunked", b"%x\r\n%s" % (len(BODY) + 9, BODY), ["body_truncated"], "the last chunk is cut"),
    ("Content-Encoding: gzip", gzip.compress(BODY), [], "gzip"),
    ("Content-Encoding: x-gzip", gzip.compress(BODY), [], "its old name"),
    ("Content-Encoding: gzip", BODY, ["content_encoding_absent"], "the archive has unpacked it and kept the field"),
    ("Content-Encoding: deflate", zlib.compress(BODY), [], "deflate as the standard says"),
    ("Content-Encoding: deflate", RAW_DEFLATE.compress(BODY) + RAW_DEFLATE.flush(), [], "deflate as many servers say"),
    ("Content-Encoding: deflate", BODY, ["content_encoding_absent"], "not packed at all"),
    ("Content-Encoding: br", brotli.compress(BODY), [], "brotli"),
    ("Content-Encoding: br", BODY, ["content_encoding_absent"], "text is no brotli"),
    ("Content-Encoding: zstd", zstandard.compress(BODY), [], "zstd"),
    ("Content-Encoding: identity", BODY, [], "nothing to undo"),
    ("Content-Encoding: deflate, gzip", gzip.compress(zlib.compress(BODY)), [], "two codings, undone from the last"),
    ("content-ENCODING:gzip", gzip.compress(BODY), [], "field names have no case"),
    ("X: 1\r\n folded: 2\r\nContent-Encoding: gzip", gzip.compress(BODY), [], "a folded field is no field"),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "body", "repairs", "why"), ENCODED, ids=[row[3] for row in ENCODED])
def test_encodings_are_undone(fields: str, body: bytes, repairs: list[str], why: str) -> None:
    """The body is what a browser would see; what the head got wrong is told."""
    response = parse_response(b"HTTP/1.1 200 OK\r\n" + fields.encode() + b"\r\n\r\n" + body, 10**6)
    assert response.status == 200
    assert response.body == BODY
    assert response.repairs == repairs


def test_a_packed_body_that_ends_too_early_keeps_what_came() -> None:
    """Crawlers cut at a size limit: what came before is text."""
    noise = bytes(random.Random(0).choices(range(256), k=40_000)).hex().encode()
    response = parse_response(
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n" + gzip.compress(noise)[:20_000], 10**6
    )
    assert response.repairs == ["body_truncated"]
    assert len(response.body) > 10_000
    assert noise.startswith(response.body)


BROKEN = [
    (b"garbage\r\n\r\n", "begins with", "no status line"),
    (b"", "begins with b''", "nothing at all"),
    (b"HTTP/1.1 OK\r\n\r\n", "begins with", "no status"),
    (b"HTTP/1.1 200 OK\r\nContent-Encoding: aes128gcm\r\n\r\nx", "aes128gcm", "a coding that nobody here knows"),
    (
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n\x1f\x8b\x08\x00" + b"\xff" * 50,
        "damaged",
        "a damaged stream",
    ),
    (b"HTTP/1.1 200 OK\r\nContent-Encoding: br\r\n\r\n\x00\x01\x02" + b"\xff" * 50, "damaged", "the same for brotli"),
]


@pytest.mark.parametrize(("block", "words", "why"), BROKEN, ids=[row[2] for row in BROKEN])
def test_broken_responses_are_refused(block: bytes, words: str, why: str) -> None:
    """The error says what was found instead."""
    with pytest.raises(HttpError, match=words):
        parse_response(block, 10**6)


def test_packed_bombs_are_not_unpacked() -> None:
    """No more than the limit is ever unpacked, for each coding."""
    zeros = bytes(5_000_000)
    for coding, packed in (
        ("gzip", gzip.compress(zeros)),
        ("deflate", zlib.compress(zeros)),
        ("zstd", zstandard.compress(zeros)),
    ):
        with pytest.raises(TooLongError, match="more than 1000 bytes"):
            parse_response(b"HTTP/1.1 200 OK\r\nContent-Encoding: " + coding.encode() + b"\r\n\r\n" + packed, 1000)


def test_a_head_without_a_body() -> None:
    """A response may end with its head, and heads may end lines with LF alone."""
    assert parse_response(b"HTTP/1.0 204 No Content\nA: b\n\n", 10).body == b""
    assert parse_response(b"HTTP/2 200\r\nA: b", 10).status == 200


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("text/html; charset=utf-8", ("text/html", "utf-8")),
        ('Text/HTML;a=b; CHARSET = "GBK" ; c', ("text/html", "GBK")),
        ("text/html, text/html", ("text/html", "")),
        (";charset=x", ("", "x")),
        ("", ("", "")),
    ],
)
def test_content_types(value: str, expected: tuple[str, str]) -> None:
    """Media type and charset, as liberally as servers write them."""
    assert type_and_charset(value) == expected


def zstd_frames(content: bytes, *, cut: int | None = None) -> bytes:
    """Two frames with a skippable one between them."""
    pack = zstandard.ZstdCompressor(write_checksum=True).compress
    half = len(content) // 2
    return (pack(content[:half]) + b"\x50\x2a\x4d\x18\x03\x00\x00\x00abc" + pack(content[half:]))[:cut]


PAGE = b"<html>" + b"".join(b"<p>paragraph %d" % (i * i) for i in range(20_000))
HALF = len(PAGE) // 2


@pytest.mark.parametrize(
    ("fields", "body", "whole", "repairs"),
    [
        ("Content-Encoding: zstd", zstd_frames(PAGE), True, []),
        ("Content-Encoding: zstd", zstd_frames(PAGE) + b"junk", True, ["body_trailing_bytes"]),
        ("Content-Encoding: zstd", zstd_frames(PAGE, cut=-2), True, ["body_truncated"]),
        ("Content-Encoding: zstd", zstd_frames(PAGE, cut=-200), False, ["body_truncated"]),
        ("Content-Encoding: gzip", gzip.compress(PAGE[:HALF]) + gzip.compress(PAGE[HALF:]), True, []),
        ("Content-Encoding: gzip", gzip.compress(PAGE) + b"junk", True, ["body_trailing_bytes"]),
        ("Content-Encoding: gzip", (gzip.compress(PAGE) * 2)[:-200], True, ["body_truncated"]),
        (f"Content-Length: {len(PAGE)}", PAGE, True, []),
        (f"Content-Length: {len(PAGE)}", PAGE[:-1], False, ["body_truncated"]),
    ],
)
def test_no_body_is_cut_silently(fields: str, body: bytes, whole: bool, repairs: list[str]) -> None:
    """All members and frames of a body are read, and a body that ends too early says so."""
    response = parse_response(f"HTTP/1.1 200 OK\r\n{fields}\r\n\r\n".encode() + body, 2**22)
    assert response.repairs == repairs
    assert response.body.startswith(PAGE) if whole else PAGE.startswith(response.body[:HALF])


def test_a_cut_page_is_kept_with_a_flag(tmp_path: Path) -> None:
    """A page that was cut is in the notes and says so in its meta."""
    fields = [("Content-Type", "text/plain"), ("Content-Length", "99")]
    documents, _, report = read(warc(tmp_path / "a.warc", {"body": b"The beginning of a text.", "fields": fields}))
    assert (documents[0].text, report.notes["body_truncated"]) == ("The beginning of a text.", 1)
    assert orjson.loads(documents[0].meta or "")["truncated"] is True
