"""The demo input: the same bytes every time, and exactly what it says it holds."""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import subprocess
import sys
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import zstandard

from curation.ids import normalise, text_id
from curation.ingest.config import IngestConfig
from curation.ingest.jsonl import read_jsonl
from curation.ingest.record import DAMAGE, Damage, Document, Slice, SliceReport
from demo.broken_lines import BAD_LINES, ODD_LINES
from demo.copies import APART, NEAR, jaccards
from demo.crawl_pages import CHARSETS
from demo.hand_written import FOLDER, KINDS, read_hand_written

REPO = Path(__file__).resolve().parents[3]
LINE_FILES = ("broken.jsonl", "crawl-2.jsonl.gz", "crawl.jsonl.zst", "cut.jsonl.gz", "docs.jsonl")
Planted = dict[str, Any]


@pytest.fixture(scope="module")
def twice(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The input made by two processes that order their sets differently."""
    folders = (tmp_path_factory.mktemp("first"), tmp_path_factory.mktemp("second"))
    runs = [
        subprocess.Popen(
            [sys.executable, str(REPO / "demo" / "make_input.py"), str(folder)],
            env={**os.environ, "PYTHONHASHSEED": str(seed)},
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for seed, folder in enumerate(folders, start=1)
    ]
    for run in runs:
        said, _ = run.communicate(timeout=240)
        assert run.returncode == 0, said
    return folders


@pytest.fixture(scope="module")
def made(twice: tuple[Path, Path]) -> Path:
    return twice[0]


@pytest.fixture(scope="module")
def expected(made: Path) -> Planted:
    facts: Planted = json.loads((made / "expected.json").read_text(encoding="utf-8"))
    return facts


# -- independent readers: standard library and zstandard only -------------------------------------------


def stored_text(path: Path) -> bytes:
    """The decompressed bytes, as far as they go."""
    content = path.read_bytes()
    if path.suffix == ".zst":
        decoder = zstandard.ZstdDecompressor().stream_reader(io.BytesIO(content), read_across_frames=True)
        return bytes(decoder.read())
    return b"".join(members(content)) if path.suffix == ".gz" else content


def members(content: bytes) -> Iterator[bytes]:
    while content:
        decoder = zlib.decompressobj(31)
        yield decoder.decompress(content)
        content = decoder.unused_data


def judge(line: bytes, whole: bool) -> str:
    """`good`, or why a line is bad, found in another way than ingest finds it."""
    if b"\0" in line:
        return "nul_byte"
    try:
        text = line.decode("utf-8").lstrip("\ufeff")
    except UnicodeDecodeError:
        return "bad_utf8" if whole else "truncated_line"
    pairs: list[list[tuple[str, Any]]] = []

    def remember(found: list[tuple[str, Any]]) -> dict[str, Any]:
        pairs.append(found)
        return dict(found)

    def refuse(constant: str) -> None:
        raise ValueError(constant)

    try:
        value, end = json.JSONDecoder(object_pairs_hook=remember, parse_constant=refuse).raw_decode(text.strip())
    except ValueError:
        return "bad_json" if whole else "truncated_line"
    if rest := text.strip()[end:].strip():
        return "two_objects" if rest[0] in '{["' else "bad_json"
    if not isinstance(value, dict):
        return "not_an_object"
    return judge_record(value, [key for key, _ in pairs[-1]])


def judge_record(record: dict[str, Any], keys: list[str]) -> str:
    if keys.count("text") > 1 or keys.count("id") > 1:
        return "duplicate_key"
    if "text" not in record:
        return "missing_text"
    text = record["text"]
    if not isinstance(text, str):
        return "null_text" if text is None else "wrong_text_type"
    if any("\ud800" <= character <= "\udfff" for character in text):
        return "lone_surrogate"
    return "good" if text.strip() else "empty_text"


def records_of(path: Path) -> Iterator[dict[str, Any]]:
    for line in stored_text(path).split(b"\n"):
        if line.strip() and judge(line, whole=True) == "good":
            yield json.loads(line.decode("utf-8-sig"))


# -- the files -----------------------------------------------------------------------------------------


def test_same_bytes_every_time(twice: tuple[Path, Path]) -> None:
    """Two processes with different hash seeds write the same files, byte for byte."""
    names = [sorted(path.name for path in folder.iterdir()) for folder in twice]
    assert names[0] == names[1] == sorted([*LINE_FILES, "pages.warc.gz", "expected.json"])
    assert [name for name in names[0] if (twice[0] / name).read_bytes() != (twice[1] / name).read_bytes()] == []


def test_size_of_the_whole(made: Path, expected: Planted) -> None:
    """10 to 20 MB and 4,000 to 8,000 documents; few enough bad records for the demo's config to go on."""
    size = sum(len(stored_text(made / name)) for name in (*LINE_FILES, "pages.warc.gz"))
    assert 10e6 < size < 20e6
    assert 4_000 <= expected["documents"] <= 8_000
    assert expected["quarantined"] < 0.05 * expected["documents"]


@pytest.mark.parametrize("name", LINE_FILES)
def test_expected_counts_of_line_files(made: Path, expected: Planted, name: str) -> None:
    """Another reader finds as many good lines, blank lines and bad lines for each reason as expected.json says."""
    *lines, rest = stored_text(made / name).split(b"\n")
    found = Counter(judge(line, whole=True) for line in lines if line.strip())
    found.update([judge(rest, whole=False)] if rest.strip() else [])
    facts = expected["files"][name]
    assert found.pop("good") == facts["good"]
    assert dict(found) == facts["bad"]
    assert sum(not line.strip() for line in lines) == facts["blank_lines"]


@pytest.mark.parametrize("name", LINE_FILES)
def test_ingest_finds_what_was_planted(made: Path, expected: Planted, name: str) -> None:
    """The pipeline's own reader agrees, down to the marks of a damaged file."""
    size = (made / name).stat().st_size
    report = SliceReport()
    found = list(read_jsonl(Slice(str(made / name), "jsonl", 0, size, size), IngestConfig(), report))
    facts = expected["files"][name]
    assert sum(isinstance(record, Document) for record in found) == facts["good"]
    bad = Counter(record.reason for record in found if isinstance(record, Damage) and not record.whole_file)
    assert dict(bad) == facts["bad"]
    assert report.damaged == facts["damaged"]


def test_ids_are_unique(made: Path) -> None:
    """No id stands twice in the whole input."""
    ids = [record["id"] for name in LINE_FILES for record in records_of(made / name) if "id" in record]
    assert [id_ for id_, count in Counter(ids).items() if count > 1] == []


def test_records_carry_three_fields(made: Path) -> None:
    """Our labels stay in the source files: the crawl has id, url and text."""
    for name in ("crawl.jsonl.zst", "crawl-2.jsonl.gz", "docs.jsonl"):
        assert {tuple(sorted(record)) for record in records_of(made / name)} == {("id", "text", "url")}


def test_every_kind_of_bad_line() -> None:
    """Every reason that a line can have is planted, but for the one that would need a line of 32 MB."""
    not_lines = {
        *("too_long", "truncated_stream", "corrupt_stream", "trailing_garbage", "bad_file", "wrong_encoding"),
        *("unknown_column", "bad_row_group", "bad_warc_record", "bad_http", "not_html", "http_error"),
        *("no_main_text", "undecodable", "extract_timeout", "extract_failed", "truncated_line"),
    }
    assert {reason for reason, _ in BAD_LINES} == set(DAMAGE) - not_lines
    assert [judge(line, whole=True) for line in ODD_LINES] == ["good"] * len(ODD_LINES)


# -- copies --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def texts(made: Path) -> dict[str, str]:
    names = ("crawl.jsonl.zst", "crawl-2.jsonl.gz")
    return {record["id"]: record["text"] for name in names for record in records_of(made / name)}


def test_exact_copies_have_the_text_id_of_their_original(expected: Planted, texts: dict[str, str]) -> None:
    """Whatever was done to an exact copy, identity does not see it; each way of copying occurs."""
    for copy in expected["exact_copies"]:
        assert text_id(texts[copy["id"]]) == text_id(texts[copy["of"]]), copy["id"]
        assert (texts[copy["id"]] == texts[copy["of"]]) == (copy["how"] == "bytes"), copy["id"]
    assert {copy["how"] for copy in expected["exact_copies"]} == {"bytes", "crlf", "nfd", "blanks", "all"}


def test_edited_copies_are_as_similar_as_stated(expected: Planted, texts: dict[str, str]) -> None:
    """Near copies are near and distant ones apart by both definitions of a shingle; none is an exact copy."""
    for group in ("near_copies", "apart_copies"):
        for copy in expected[group]:
            found = jaccards(texts[copy["of"]], texts[copy["id"]])
            assert found == pytest.approx((copy["jaccard_characters"], copy["jaccard_words"]), abs=1e-4)
            assert min(found) >= NEAR if group == "near_copies" else max(found) <= APART
            assert text_id(texts[copy["id"]]) != text_id(texts[copy["of"]])


@pytest.mark.parametrize(
    ("one", "other", "characters", "words"),
    [
        ("abcdef", "abcdef", 1, 1),
        ("abcdef", "abcdeg", 1 / 3, 0),  # {abcde, bcdef} and {abcde, bcdeg}
        ("天气真好啊吧", "天气真好啊呢", 1 / 3, 1 / 3),  # each character is a word
        ("a b c d e f", "a b c d e g", 6 / 8, 1 / 3),
        ("", "", 1, 1),
    ],
)
def test_jaccards(one: str, other: str, characters: float, words: float) -> None:
    """Counted by hand."""
    assert jaccards(one, other) == pytest.approx((characters, words))


# -- pages ---------------------------------------------------------------------------------------------


def warc_records(path: Path) -> Iterator[tuple[dict[str, str], bytes]]:
    """Heads and blocks of a WARC file, one gzip member each."""
    for member in members(path.read_bytes()):
        head, _, block = member.partition(b"\r\n\r\n")
        yield dict(line.split(": ", 1) for line in head.decode().split("\r\n")[1:]), block


def unpacked(head: str, body: bytes) -> bytes:
    if "Content-Encoding: gzip" in head:
        return gzip.decompress(body)
    if "Transfer-Encoding: chunked" not in head:
        return body
    whole = b""
    while True:
        length, _, body = body.partition(b"\r\n")
        if not int(length, 16):
            return whole
        whole, body = whole + body[: int(length, 16)], body[int(length, 16) + 2 :]


def judge_response(head: dict[str, str], block: bytes) -> str:
    if len(block) != int(head["Content-Length"]) + 4:
        return "bad_warc_record"
    if not block.startswith(b"HTTP/1.1 "):
        return "bad_http"
    if not block.startswith(b"HTTP/1.1 200 "):
        return "http_error"
    if b"Content-Type: text/html" not in block.partition(b"\r\n\r\n")[0]:
        return "not_html"
    return "no_main_text" if b"<body></body>" in block else "good"


def test_expected_counts_of_pages(made: Path, expected: Planted) -> None:
    """Another reader finds as many pages, other records and bad responses as expected.json says."""
    kinds: Counter[str] = Counter()
    found: Counter[str] = Counter()
    for head, block in warc_records(made / "pages.warc.gz"):
        kinds[head["WARC-Type"]] += 1
        if head["WARC-Type"] == "response":
            found[judge_response(head, block)] += 1
    facts = expected["files"]["pages.warc.gz"]
    assert found.pop("good") == facts["good"] == len(expected["pages"])
    assert dict(found) == facts["bad"]
    assert kinds.pop("response") == facts["good"] + sum(facts["bad"].values())
    assert dict(kinds) == facts["other_records"]


def test_pages_hold_what_is_stated(made: Path, expected: Planted) -> None:
    """Each page, decoded with its charset, holds its text, and names the charset where it is said to."""
    codecs = {name.lower(): codec for charsets in CHARSETS.values() for name, codec in charsets}
    records = [record for record in warc_records(made / "pages.warc.gz") if record[0]["WARC-Type"] == "response"]
    blocks = {head["WARC-Target-URI"]: block for head, block in records}
    for page in expected["pages"]:
        head, _, body = blocks[page["url"]].removesuffix(b"\r\n\r\n").partition(b"\r\n\r\n")
        text = unpacked(head.decode(), body).decode(codecs[page["charset"].lower()])
        assert page["contains"] in text, page["url"]
        in_http = f"charset={page['charset']}" in head.decode()
        in_meta = (
            re.search(r'<meta [^>]*charset="?' + re.escape(page["charset"]), text[:400], re.IGNORECASE) is not None
        )
        assert (in_http, in_meta) == (page["declared"] in ("http", "both"), page["declared"] in ("meta", "both")), page


def test_pages_come_in_many_charsets(expected: Planted) -> None:
    """Every charset of the table is in use, and some pages of the old ones name theirs nowhere."""
    used = {page["charset"] for page in expected["pages"]}
    assert used == {name for charsets in CHARSETS.values() for name, _ in charsets}
    assert len({page["charset"] for page in expected["pages"] if page["declared"] == "nowhere"} - {"utf-8"}) >= 3
    assert {page["coding"] for page in expected["pages"]} == {"", "gzip", "chunked"}


@pytest.mark.slow
def test_ingest_reads_the_pages(made: Path, expected: Planted) -> None:
    """The pipeline's WARC reader finds every page with its text, and every planted fault, and nothing else."""
    from curation.ingest.warc import read_warc

    size = (made / "pages.warc.gz").stat().st_size
    part = Slice(str(made / "pages.warc.gz"), "warc", 0, size, size)
    found = list(read_warc(part, IngestConfig(), SliceReport()))
    documents = {record.url: " ".join(record.text.split()) for record in found if isinstance(record, Document)}
    assert set(documents) == {page["url"] for page in expected["pages"]}
    missing = [page for page in expected["pages"] if " ".join(page["contains"].split()) not in documents[page["url"]]]
    assert missing == []
    bad = Counter(record.reason for record in found if isinstance(record, Damage))
    assert dict(bad) == expected["files"]["pages.warc.gz"]["bad"]


# -- the hand-written documents -------------------------------------------------------------------------


def test_hand_written_documents_obey_their_schema() -> None:
    """Known fields only, a known kind, a reason to be there, an id that names its file; small in all."""
    rows = read_hand_written()
    assert len(rows) > 400
    assert [row.id for row in rows if row.kind not in KINDS or not row.why or not row.genre or not row.text] == []
    assert [id_ for id_, count in Counter(row.id for row in rows).items() if count > 1] == []
    assert {row.kind for row in rows} == set(KINDS)
    files = {path.stem for path in FOLDER.glob("*.jsonl")}
    assert [row.id for row in rows if row.id.rpartition("-")[0] not in files] == []
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 700_000


def test_no_text_twice_unless_marked() -> None:
    """Two rows with the same text say so."""
    seen: dict[str, str] = {}
    for row in read_hand_written():
        text = normalise(row.text)
        assert (text in seen) == (row.copy_of is not None), (row.id, seen.get(text))
        assert row.copy_of in (None, seen.get(text))
        seen.setdefault(text, row.id)


def test_hand_written_documents_name_nobody() -> None:
    """No phone numbers, no addresses but those of example.org, no contact but demo000."""
    for row in read_hand_written():
        bare = re.sub(r"[\s.\-]", "", row.text)
        assert not re.search(r"(?<!\d)1[3-9]\d{9}(?!\d)", bare) or row.kind in ("table", "code"), row.id
        hosts = re.findall(r"(?:https?:)?//([\w.-]+\.\w+)", row.text)
        assert [host for host in hosts if not host.endswith("example.org")] == [], row.id
        assert [name for name in re.findall(r"[\w.]+@([\w-]+\.[\w.]+)", row.text) if name != "example.org"] == [], (
            row.id
        )
