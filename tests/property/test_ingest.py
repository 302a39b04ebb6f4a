"""However bytes are cut, into slices, blocks or streams, the same documents come out; and any bytes are survived."""

from __future__ import annotations

import gzip
import itertools
import json
import tempfile
from pathlib import Path
from typing import Any

import orjson
import zstandard
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from curation.ingest.config import IngestConfig
from curation.ingest.forms import Form, encoding_of, form_of
from curation.ingest.jsonl import read_jsonl
from curation.ingest.lines import LineBlock, cut_lines
from curation.ingest.record import Damage, Document, Slice, SliceReport

CONFIG = IngestConfig(max_record_mb=200 / 2**20, quarantine_raw_kb=1)
"""A limit that generated lines can reach."""
quick = settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])

TEXTS = st.text(st.characters(exclude_categories=("Cs",)), max_size=20)
RECORDS = st.fixed_dictionaries(
    {"text": TEXTS}, optional={"id": TEXTS | st.integers(), "n": st.floats(allow_nan=False)}
)
GOOD_LINES = st.builds(lambda record, ascii: json.dumps(record, ensure_ascii=ascii).encode(), RECORDS, st.booleans())
LONG_LINES = (b"x" * 199, b"x" * 200, b"x" * 201, b" " * 300, b'{"text":"' + b"y" * 400 + b'"}')
BAD_LINES = st.sampled_from(
    [
        *(b"", b" ", b"\t\r", b"{", b"\0", b'{"text":"\xff"}', b'{"text":"\\ud800"}', "{\u2028}".encode()),
        *(b'{"text":"a"}{"text":"b"}', b'{"text":"a","text":"b"}'),
        *LONG_LINES,
    ]
)
LINE_ENDS = st.sampled_from([b"\n", b"\n", b"\r\n"])
BEGINS = st.sampled_from([b"", b"", b"", b"\xef\xbb\xbf"])
FILES = st.builds(
    lambda lines, cut: b"".join(begin + line + end for begin, line, end in lines)[: cut or None],
    st.lists(st.tuples(BEGINS, GOOD_LINES | BAD_LINES, LINE_ENDS), max_size=12),
    st.sampled_from([0, 0, -1, -2]),
)


def read(path: Path, start: int, end: int, first_line: int = 1) -> tuple[list[Document | Damage], SliceReport]:
    size = path.stat().st_size
    report = SliceReport()
    found = list(read_jsonl(Slice(str(path), "jsonl", start, end, size, first_line), CONFIG, report))
    assert report.records == sum(not (isinstance(item, Damage) and item.whole_file) for item in found)
    return found, report


def first_line(content: bytes, start: int) -> int:
    """Number of the first line that starts in a slice, as the plan counts it."""
    inside = start and content[start - 1 : start] != b"\n"
    return content.count(b"\n", 0, start) + (2 if inside else 1)


@quick
@given(FILES, st.lists(st.integers(0, 600), max_size=6), st.integers(1, 40))
def test_any_slices_give_the_documents_of_the_whole(content: bytes, cuts: list[int], step: int) -> None:
    """Slices at any bytes, even one for each few bytes, give every record once, with the same place."""
    assume(form_of(content, whole=True) is Form.LINES and encoding_of(content) == "utf-8")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.jsonl"
        path.write_bytes(content)
        whole, expected = read(path, 0, len(content))
        for places in ({cut for cut in cuts if 0 < cut < len(content)}, set(range(step, len(content), step))):
            borders = [0, *sorted(places), len(content)]
            found: list[Document | Damage] = []
            total = SliceReport()
            for start, end in itertools.pairwise(borders):
                items, report = read(path, start, end, first_line(content, start))
                found += items
                total.records += report.records
                total.blank_lines += report.blank_lines
                for note, count in report.notes.items():
                    total.notes[note] = total.notes.get(note, 0) + count
            assert found == whole
            assert (total.records, total.blank_lines) == (expected.records, expected.blank_lines)
            expected.notes.pop("empty_file", None)
            assert total.notes == expected.notes or not content


@quick
@given(FILES, st.integers(1, 50), st.sampled_from([16, 210, 1024]))
def test_any_blocks_give_the_same_lines(content: bytes, block_bytes: int, kept_bytes: int) -> None:
    """How the stream is handed over in blocks changes nothing."""

    def cut(blocks: list[bytes]) -> tuple[list[Any], SliceReport]:
        report = SliceReport()
        part = Slice("x", "jsonl", 0, len(content), len(content))
        found: list[Any] = []
        for item in cut_lines(blocks, part, report, limit=200, kept_bytes=kept_bytes):
            if isinstance(item, LineBlock):
                offset = item.offset
                for number, line in enumerate(item.lines, item.number):
                    if line.strip():
                        found.append((number, offset, line))
                    offset += len(line) + 1
            else:
                found.append(item)
        return found, report

    pieces = [content[i : i + block_bytes] for i in range(0, len(content), block_bytes)]
    one, many = cut([content]), cut(pieces)
    assert one == many


@settings(quick, max_examples=60)
@given(FILES, st.lists(st.integers(0, 600), max_size=5), st.sampled_from([gzip.compress, zstandard.compress]))
def test_any_streams_give_the_documents_of_the_plain_file(content: bytes, cuts: list[int], compress: Any) -> None:
    """Compressed, and cut into members or frames anywhere, a file holds the same documents at the same places."""
    borders = [0, *sorted(cut for cut in cuts if cut < len(content)), len(content)]
    with tempfile.TemporaryDirectory() as folder:
        plain, packed = Path(folder) / "x.jsonl", Path(folder) / "x.jsonl.gz"
        plain.write_bytes(content)
        packed.write_bytes(b"".join(compress(content[a:b]) for a, b in itertools.pairwise(borders)))
        found, report = read(packed, 0, packed.stat().st_size)
        assert found == read(plain, 0, len(content))[0]
        assert report.damaged in ([], ["bad_file"])


@quick
@given(st.binary(max_size=300), st.sampled_from(["x.jsonl", "x.jsonl.gz", "x.jsonl.zst"]))
def test_any_bytes_are_survived(content: bytes, name: str) -> None:
    """No content makes the reader fail or lose a record."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(content)
        read(path, 0, len(content))


@quick
@given(
    st.binary(min_size=1, max_size=40),
    st.integers(0, 2000),
    st.integers(0, 2000),
    st.sampled_from(
        [gzip.compress, zstandard.compress, lambda data: zstandard.ZstdCompressor(write_checksum=True).compress(data)]
    ),
)
def test_any_damage_to_a_stream_is_survived_and_marked(noise: bytes, place: int, gap: int, compress: Any) -> None:
    """Bytes written over a compressed file cost what they hit; the streams before it come out whole."""
    parts = [b"".join(b'{"text":"%d of %d"}\n' % (i, n) for i in range(40)) for n in range(6)]
    streams = [compress(part) for part in parts]
    content = b"".join(streams)
    place = min(place, len(content) - 1)
    spoilt = content[:place] + noise + content[place + gap :]
    assume(spoilt != content)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.jsonl.gz"
        path.write_bytes(spoilt)
        found, _ = read(path, 0, len(spoilt))
        texts = [item.text for item in found if isinstance(item, Document)]
        done, n_whole = 0, 0
        while n_whole < 6 and done + len(streams[n_whole]) <= place:
            done += len(streams[n_whole])
            n_whole += 1
        if place >= 4 and n_whole:
            assert texts[: 40 * n_whole] == [f"{i} of {n}" for n in range(n_whole) for i in range(40)]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["text", "id", "a", "é"]), inner, max_size=3)
    ),
    max_leaves=8,
)
MEMBERS = st.lists(
    st.tuples(st.sampled_from(["text", "text", "id", "url", "a", "text ", "te", 'te"xt']), JSON), max_size=5
)


def spelled(key: str, escapes: list[bool]) -> str:
    """A JSON string in which some characters are escaped."""
    plain = [json.dumps(char, ensure_ascii=False)[1:-1] for char in key]
    hexed = [f"\\u{ord(char):04x}" for char in key]
    return '"' + "".join(h if escape else p for h, p, escape in zip(hexed, plain, escapes, strict=False)) + '"'


@quick
@given(
    MEMBERS,
    st.lists(st.lists(st.booleans(), min_size=6, max_size=6), min_size=5, max_size=5),
    st.sampled_from(["", " "]),
)
def test_keys_and_values_are_those_of_a_full_parser(
    members: list[tuple[str, Any]], escapes: list[list[bool]], blank: str
) -> None:
    """Repeated keys, however spelled, are found exactly when a parser that sees all pairs finds them."""
    body = f"{blank},{blank}".join(
        f"{spelled(key, how)}{blank}:{blank}{json.dumps(value, ensure_ascii=how[0])}"
        for (key, value), how in zip(members, escapes, strict=False)
    )
    line = f"{{{body}}}".encode()
    keys = [key for key, _ in members]
    last = dict(members)
    (item,) = _read_line(line)
    if any(isinstance(item, Damage) and item.reason == reason for reason in ("bad_json", "bad_file")):
        raise AssertionError(f"refused: {line!r}: {item}")
    if max(keys.count("text"), keys.count("id")) > 1:
        assert isinstance(item, Damage)
        assert item.reason == "duplicate_key"
    elif isinstance(last.get("text"), str) and last["text"].strip():
        assert isinstance(item, Document)
        assert item.text == last.pop("text")
        own_id, url = last.pop("id", None), last.pop("url", None)
        if isinstance(own_id, str):
            assert item.id == (own_id or None)
        elif type(own_id) in (int, float):
            assert json.loads(item.id or "") == own_id
        elif own_id is not None:
            last["id"] = own_id
        if url is not None and not isinstance(url, str):
            last["url"] = url
        assert (json.loads(item.meta) if item.meta else {}) == last
    else:
        assert isinstance(item, Damage)
        assert item.reason in ("missing_text", "null_text", "wrong_text_type", "empty_text")


def _read_line(line: bytes) -> list[Document | Damage]:
    good = b'{"text":"a"}\n'
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.jsonl"
        path.write_bytes(good + line + b"\n" + good)
        report = SliceReport()
        part = Slice(str(path), "jsonl", 0, path.stat().st_size, path.stat().st_size)
        return list(read_jsonl(part, IngestConfig(), report))[1:-1]


@quick
@given(
    GOOD_LINES, st.integers(0, 200), st.integers(0, 6), st.binary(max_size=6).filter(lambda noise: b"\n" not in noise)
)
def test_what_the_parser_refuses_is_never_taken(line: bytes, place: int, length: int, noise: bytes) -> None:
    """A spoilt line becomes a document only if orjson, the one parser, takes it: no second way in."""
    spoilt = line[:place] + noise + line[place + length :]
    found = _read_line(spoilt)
    bare = spoilt
    while bare.startswith(b"\xef\xbb\xbf"):
        bare = bare[3:]
    try:
        orjson.loads(bare)
        taken = True
    except orjson.JSONDecodeError:
        taken = False
    assert len(found) == (1 if bare.strip() else 0)
    if not taken:
        assert all(isinstance(item, Damage) for item in found)


@quick
@given(FILES)
def test_the_place_of_a_damage_is_where_its_bytes_stand(content: bytes) -> None:
    """What the quarantine says of a record's place and length leads back to its bytes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.jsonl"
        path.write_bytes(content)
        assume(form_of(content, whole=True) is Form.LINES and encoding_of(content) == "utf-8")
        for item in read(path, 0, len(content))[0]:
            assert item.byte_offset is not None
            assert item.line == content.count(b"\n", 0, item.byte_offset) + 1
            if isinstance(item, Damage):
                bom = 3 if content[item.byte_offset : item.byte_offset + 3] == b"\xef\xbb\xbf" else 0
                there = content[item.byte_offset :]
                assert there.startswith(item.raw) or there[bom:].startswith(item.raw)
