"""Every byte of a WARC file belongs to a record, to junk or to the blank lines between; damage costs what it hit."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from warcio.archiveiterator import ArchiveIterator

from curation.ingest.record import Damage, Slice, SliceReport
from curation.ingest.streams import open_stream
from curation.ingest.warc_records import MAX_HEAD, Junk, Record, cut_records

MB = 2**20


def record(content: bytes, *, length: int | None = None, kind: str = "response", end: bytes = b"\r\n\r\n") -> bytes:
    """A record that says it has `length` bytes."""
    size = len(content) if length is None else length
    head = f"WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Record-ID: <urn:uuid:{size}>\r\nContent-Length: {size}\r\n\r\n"
    return head.encode() + content + end


def cut(data: bytes, *, block: int = 1000, max_bytes: int = MB, raw_bytes: int = MB) -> list[Record | Junk | Damage]:
    blocks: Iterator[bytes | Damage] = (data[i : i + block] for i in range(0, len(data), block))
    return list(cut_records(blocks, max_bytes, raw_bytes))


def contents(parts: list[Record | Junk | Damage]) -> list[bytes]:
    return [part.block for part in parts if isinstance(part, Record) and not part.fault]


def faults(parts: list[Record | Junk | Damage]) -> list[str]:
    return [part.fault for part in parts if isinstance(part, Record) and part.fault]


FIVE = [f"content number {i}".encode() * 9 for i in range(5)]
QUOTE = record(b"a record inside a record", kind="warcinfo")

FOUR = [FIVE[0], *FIVE[2:]]


def with_second(second: bytes) -> bytes:
    """Five records, the second of which is this one."""
    return record(FIVE[0]) + second + b"".join(map(record, FIVE[2:]))


DAMAGE = [
    # the file, sound contents, what the faults say, why
    (b"".join(map(record, FIVE)), FIVE, [], "a sound file"),
    (b"".join(record(c, end=b"\n\n") for c in FIVE), FIVE, [], "some writers end lines with LF alone"),
    (b"".join(record(c, end=b"") for c in FIVE), FIVE, [], "no line ends between records: the lengths are right"),
    (b"".join(record(c) for c in FIVE)[:-4], FIVE, [], "no line ends behind the last record"),
    (with_second(record(FIVE[1], length=164)), FOUR, ["no record begins"], "20 bytes too long (B022)"),
    (
        with_second(record(FIVE[1], length=544)),
        FOUR,
        ["no record begins"],
        "so long that it ends inside the next content",
    ),
    (
        with_second(record(FIVE[1], length=10**8)),
        FOUR,
        ["another record begins"],
        "longer than the limit: a head inside ends it",
    ),
    (with_second(record(FIVE[1], length=90_000)), FOUR, ["stream ends after"], "longer than the file"),
    (with_second(record(FIVE[1], length=3)), FOUR, ["no record begins"], "too short: what follows belongs to it"),
    (with_second(record(FIVE[1])[:60]), FOUR, ["cut short"], "a hole that begins in a head and ends before the next"),
    (with_second(b"WARC/1.0\r\nWARC-Type: response\r\n\r\nx\r\n\r\n"), FOUR, ["Length is ''"], "no length"),
    (with_second(record(FIVE[1]).replace(b"Length: ", b"Length: -")), FOUR, ["Length is '-"], "a negative length"),
    (
        with_second(record(FIVE[1]).replace(b"Length: ", "Length: ²".encode())),
        FOUR,
        ["Length is '²"],
        "a digit that is no number",
    ),
    (record(FIVE[0]) + record(FIVE[1])[:-40], [FIVE[0]], ["stream ends after"], "the file is cut in the last record"),
    (record(FIVE[0] + QUOTE) + record(FIVE[1]), [FIVE[0] + QUOTE, FIVE[1]], [], "a sound record may quote a record"),
    (record(b""), [b""], [], "an empty record"),
    (b"", [], [], "an empty file"),
    (b"\r\n\r\n", [], [], "a file of blank lines"),
]


@pytest.mark.parametrize(("data", "sound", "said", "why"), DAMAGE, ids=[row[3] for row in DAMAGE])
@pytest.mark.parametrize("block", [7, 1000])
def test_damage_costs_the_record_it_hits(
    data: bytes, sound: list[bytes], said: list[str], why: str, block: int
) -> None:
    """Sound records come out whole, however the stream is cut into blocks; the broken one is named."""
    parts = cut(data, block=block)
    assert contents(parts) == sound
    assert len(faults(parts)) == len(said)
    for fault, words in zip(faults(parts), said, strict=True):
        assert words in fault
    assert not [part for part in parts if isinstance(part, Junk)]


def test_junk_is_named_with_its_place() -> None:
    """Bytes between records that no record explains are neither dropped in silence nor taken for a record."""
    first = record(FIVE[0])
    parts = cut(b"not a WARC record\r\n" + first + b"\r\n")
    assert isinstance(parts[0], Junk)
    assert (parts[0].offset, parts[0].n_bytes, parts[0].raw) == (0, 19, b"not a WARC record\r\n")
    assert contents(parts) == [FIVE[0]]


def test_a_head_without_end_is_given_up() -> None:
    """A head may not fill the memory: beyond 256 KB it is broken, and the next record is found."""
    data = b"WARC/1.0\r\nWARC-Type: response\r\nX: " + b"y" * (2 * MAX_HEAD) + record(FIVE[0])
    parts = cut(data, block=65_536)
    assert faults(parts) == [f"its head does not end within {MAX_HEAD} bytes"]
    assert contents(parts) == [FIVE[0]]


def test_a_record_beyond_the_limit_is_skipped_without_being_held() -> None:
    """Too long is no damage: its length is believed, its first bytes are kept, the next record is read."""
    parts = cut(record(b"z" * 5 * MB) + record(FIVE[0]), block=65_536, raw_bytes=100)
    assert isinstance(parts[0], Record)
    assert parts[0].too_long
    assert len(parts[0].head + parts[0].block) == 100
    assert parts[0].n_bytes > 5 * MB
    assert contents(parts) == [FIVE[0]]


def test_a_break_of_the_stream_is_no_place_to_go_on() -> None:
    """After damage the record in work is broken, and nothing is glued to what comes next."""
    damage = Damage("corrupt_stream", None, 5, b"", whole_file=True)
    first, second = record(FIVE[0]), record(FIVE[1])
    parts = list(cut_records(iter([first[:-50], damage, second]), MB, MB))
    assert [type(part) for part in parts] == [Record, Damage, Record]
    assert faults(parts)
    assert contents(parts) == [FIVE[1]]


def test_header_fields_are_read_liberally() -> None:
    """Names in any case, folded lines, the first of two equal names; UTF-8 values."""
    lines = [
        "WARC/1.1",
        "warc-type:response",
        "X-A: one",
        " two",
        "x-a: three",
        "no colon",
        "URI: http://x/é",
        "content-length: 2",
    ]
    [found] = cut("\r\n".join(lines).encode() + b"\r\n\r\nok\r\n\r\n")
    assert isinstance(found, Record)
    assert found.fields == {"warc-type": "response", "x-a": "one two", "uri": "http://x/é", "content-length": "2"}


def test_records_are_those_that_warcio_reads(test_data: Path) -> None:
    """On sound files of several writers: same records, same order, same bytes as warcio."""
    for name in (
        "pages-01.warc.gz",
        "samples/warcio_example.warc",
        "samples/iipc_hello-world.warc.gz",
        "samples/warcio_post-test.warc.gz",
    ):
        path = test_data / "1_web" / name
        size = path.stat().st_size
        blocks = open_stream(Slice(str(path), "warc", 0, size, size), SliceReport())
        ours = [part for part in cut_records(blocks, 64 * MB, 1000) if isinstance(part, Record)]
        with path.open("rb") as stream:
            theirs = [
                (one.rec_headers.get_header("WARC-Record-ID"), one.raw_stream.read())
                for one in ArchiveIterator(stream, no_record_parse=True)
            ]
        assert [(one.fields["warc-record-id"], one.block) for one in ours] == theirs
        assert [one.number for one in ours] == list(range(1, len(ours) + 1))


PIECES = st.sampled_from(
    [
        record(FIVE[0]),
        record(FIVE[1], length=50),
        record(FIVE[2], length=9_000),
        record(b"", length=10**7),
        QUOTE,
        b"WARC/1.0\r\n",
    ]
)


@given(st.lists(PIECES | st.binary(max_size=30), max_size=6), st.integers(0, 2**32), st.integers(1, 300))
@settings(max_examples=200)
def test_every_byte_is_accounted_for(pieces: list[bytes], seed: int, block: int) -> None:
    """Records and junk follow each other in the file and leave only line ends between them; any cut into blocks agrees."""
    data = bytearray(b"".join(pieces))
    rng = random.Random(seed)
    for _ in range(rng.randrange(3)):
        if data:
            data[rng.randrange(len(data))] = rng.randrange(256)
    parts = cut(bytes(data), block=block, max_bytes=500)
    place = 0
    for part in parts:
        assert isinstance(part, (Record, Junk))
        assert not bytes(data[place : part.offset]).strip(b"\r\n")
        place = part.offset + part.n_bytes
    assert not bytes(data[place:]).strip(b"\r\n")
    assert parts == cut(bytes(data), block=10_000, max_bytes=500)
