"""Real and hand-made broken parquet, Arrow and WARC files: exact counts, and why each is right."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest

from curation.ingest.columnar import read_columnar
from curation.ingest.config import IngestConfig
from curation.ingest.record import Damage, Document, Slice, SliceReport
from curation.ingest.warc import read_warc


class Expected(NamedTuple):
    """What a file must give."""

    documents: int
    damages: dict[str, int]
    """Quarantined records, and damages of the file, by reason."""
    why: str
    damaged: tuple[str, ...] = ()
    """Reasons for which the file itself is marked."""
    notes: dict[str, int] | None = None


PARQUET = {
    "all_null_column": Expected(30, {}, "a column of type null is no obstacle: it has no values for meta"),
    "string_meta_column": Expected(
        30, {}, "its partner, with strings there: meta is JSON text in both, so that schemas unify"
    ),
    "binary_text": Expected(30, {}, "bytes that are UTF-8 are text; int64 ids become digits"),
    "dictionary_text": Expected(30, {}, "a dictionary is a way to store strings"),
    "large_string": Expected(30, {}, "64-bit offsets are a way to store strings"),
    "empty_rows": Expected(0, {}, "zero rows are no damage"),
    "null_texts": Expected(20, {"null_text": 10}, "every third text is null: each is named with its row"),
    "nested_text": Expected(
        0,
        {"wrong_text_type": 1},
        "a struct is no text: one damage, not thirty",
        ("wrong_text_type",),
        {"rows_lost": 30},
    ),
    "other_column_name": Expected(
        0,
        {"unknown_column": 1},
        "one damage that names the columns and the option",
        ("unknown_column",),
        {"rows_lost": 30},
    ),
    "truncated": Expected(
        0, {"bad_file": 1}, "without its footer nothing says where the columns lie", ("bad_file",), {}
    ),
    "zeroed_block": Expected(
        3000,
        {"bad_row_group": 1},
        "the zeros hit ids of group 2: all texts stay, 500 ids are lost",
        ("bad_row_group",),
        {},
    ),
}

PAGE = "Example Domain\nThis domain is "
WARC = {
    "7_broken/warcio_example-trunc.warc": Expected(
        0,
        {"bad_warc_record": 1},
        "the one response is two bytes longer than it says: its packed page is cut, the request behind it is found",
        (),
        {"warcinfo": 2, "request": 1},
    ),
    "7_broken/warcio_example-bad.warc.gz.bad": Expected(
        1,
        {"http_error": 1},
        "packed as a whole and not by record: nothing is lost by it",
        (),
        {"warcinfo": 1, "request": 2, "revisit": 1},
    ),
    "7_broken/warcio_example-bad-non-chunked.warc.gz": Expected(
        1, {}, "the same; other readers stop at the second record", (), {"warcinfo": 2, "request": 2, "revisit": 1}
    ),
    "7_broken/warcio_example-wrong-chunks.warc.gz": Expected(
        1, {}, "gzip members cut across records: the records decide", (), {"request": 1, "body_truncated": 1}
    ),
    "7_broken/warcio_example-wget-bad-target-uri.warc.gz": Expected(
        1,
        {},
        "the URL loses its angle brackets; wget's logs are no pages",
        (),
        {"warcinfo": 1, "request": 1, "metadata": 3},
    ),
    "7_broken/warcio_example-space-in-target-uri.warc.gz": Expected(
        0, {}, "a picture with blanks in its URL: read, and no page", (), {"warcinfo": 1, "resource_no_text": 1}
    ),
    "1_web/samples/iipc_20130729-heritrix-original.warc.gz": Expected(1, {}, "a page of 68 kB", (), {}),
    "1_web/samples/iipc_20130729-heritrix-revisit-with-http-headers.warc.gz": Expected(
        0, {}, "a revisit has no page", (), {"revisit": 1}
    ),
    "1_web/samples/iipc_hello-world.warc.gz": Expected(
        1, {}, "plain text of 13 bytes; WARC 1.1 metadata are counted", (), {"warcinfo": 1, "request": 1, "metadata": 3}
    ),
    "1_web/samples/warcio_example-digest.warc": Expected(0, {}, "requests alone", (), {"request": 4}),
    "1_web/samples/warcio_example-iana.org-chunked.warc": Expected(
        1, {}, "transfer encoding undone", (), {"warcinfo": 1, "request": 1}
    ),
    "1_web/samples/warcio_example-resource.warc.gz": Expected(
        1, {}, "a page saved as a resource, without HTTP head", (), {"warcinfo": 2}
    ),
    "1_web/samples/warcio_example.arc.gz": Expected(
        0, {"bad_file": 1}, "ARC, the format before WARC: named as such", ("bad_file",), {}
    ),
    "1_web/samples/warcio_example.warc": Expected(
        1, {}, "a page packed with gzip inside a plain archive", (), {"warcinfo": 2, "request": 2, "revisit": 1}
    ),
    "1_web/samples/warcio_example.warc.gz": Expected(
        1, {}, "the same, packed by record", (), {"warcinfo": 2, "request": 2, "revisit": 1}
    ),
    "1_web/samples/warcio_post-test.warc.gz": Expected(
        0, {"not_html": 3}, "answers in JSON are data for programs", (), {"request": 3}
    ),
}


def read(reader: Any, kind: str, path: Path) -> tuple[list[Document], list[Damage], SliceReport]:
    size = path.stat().st_size
    report = SliceReport()
    found = list(reader(Slice(str(path), kind, 0, size, size), IngestConfig(), report))
    documents = [one for one in found if isinstance(one, Document)]
    damages = [one for one in found if isinstance(one, Damage)]
    assert report.records == len(documents) + sum(not damage.whole_file for damage in damages)
    return documents, damages, report


def check(expected: Expected, documents: list[Document], damages: list[Damage], report: SliceReport) -> None:
    reasons = [damage.reason for damage in damages]
    assert len(documents) == expected.documents
    assert {reason: reasons.count(reason) for reason in reasons} == expected.damages
    assert report.damaged == list(expected.damaged)
    assert report.notes == (expected.notes or {})


@pytest.mark.parametrize("name", PARQUET)
def test_broken_parquet(test_data: Path, name: str) -> None:
    """Every parquet file of the collection gives what its manifest asks for."""
    path = test_data / "7_broken" / f"{name}.parquet"
    documents, damages, report = read(read_columnar, "parquet", path)
    check(PARQUET[name], documents, damages, report)
    assert all(document.text.strip() for document in documents)


@pytest.mark.parametrize("name", WARC)
def test_broken_and_foreign_archives(test_data: Path, name: str) -> None:
    """Every archive of the collections gives what its manifest asks for."""
    documents, damages, report = read(read_warc, "warc", test_data / name)
    check(WARC[name], documents, damages, report)
    for document in documents:
        assert document.url is None or not document.url.startswith("<")
        if "example.com" in (document.url or ""):
            assert document.text.startswith(PAGE)


def test_the_tables_name_every_file(test_data: Path) -> None:
    """A file added to the collections needs a line here."""
    assert {path.stem for path in (test_data / "7_broken").glob("*.parquet")} == set(PARQUET)
    archives = [*(test_data / "7_broken").glob("*warc*"), *(test_data / "1_web/samples").iterdir()]
    assert {str(path.relative_to(test_data)) for path in archives} == set(WARC)
