"""Closing ingest adds up what the parts say, checks the law, and stops a run whose input is too damaged."""

from __future__ import annotations

import gzip
import hashlib
import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from curation.errors import InputError, LawError, RunError
from curation.ingest.close import close_ingest
from curation.ingest.config import IngestConfig
from curation.ingest.part import ingest_part, marker_path
from curation.ingest.plan import Plan, plan_inputs


def ingest(
    folder: Path, inputs: dict[str, bytes], *, close: bool = True, **settings: Any
) -> tuple[Plan, dict[str, Any]]:
    """Write the inputs, read them as a run does, and close."""
    (folder / "in").mkdir(exist_ok=True)
    for name, content in inputs.items():
        (folder / "in" / name).write_bytes(content)
    config = IngestConfig(**settings)
    plan = plan_inputs([str(folder / "in")], config)
    for part in plan.parts:
        ingest_part(part, shards=folder / "shards", quarantine=folder / "quarantine", config=config)
    return plan, closed(folder, plan, config) if close else {}


def closed(folder: Path, plan: Plan, config: IngestConfig) -> dict[str, Any]:
    return close_ingest(
        shards=folder / "shards",
        quarantine=folder / "quarantine",
        inputs_path=folder / "inputs.json",
        plan=plan,
        config=config,
    )


GOOD = b"".join(b'{"text":"line %d"}\n' % i for i in range(100))


def test_totals_are_those_of_the_files(tmp_path: Path) -> None:
    """Files, bytes, lines, documents, quarantine, shards and inputs.json agree with what was given."""
    big = b"".join(b'{"text":"%s"}\n' % (b"x" * 5000) for _ in range(500))
    inputs = {
        "a.jsonl": GOOD + b"\n\n",
        "big.jsonl": big + b'{"text":""}\n' + big,
        "c.bin": b"\x93noise",
        "d.jsonl": GOOD + b"broken\n" + b'{"text":5}\n',
        "e.tmp": b"left out",
    }
    plan, done = ingest(tmp_path, inputs, slice_mb=1, shard_mb=1)
    assert done == json.loads((tmp_path / "shards/_done.json").read_text())
    assert (done["files"], done["bytes"]) == (4, sum(len(inputs[name]) for name in inputs if name != "e.tmp"))
    assert (done["lines"], done["documents"]) == (1203, 1200)
    assert done["quarantined"] == {"empty_text": 1, "bad_json": 1, "wrong_text_type": 1}
    assert (done["blank_lines"], done["damaged_files"], done["ignored_files"]) == (2, 1, 1)
    assert done["parts"] == len(plan.parts) > 4
    assert sum(shard["rows"] for shard in done["shards"]) == 1200
    assert [shard["name"] for shard in done["shards"]] == sorted(
        path.stem for path in (tmp_path / "shards").glob("*.arrow")
    )
    listed = json.loads((tmp_path / "inputs.json").read_text())
    assert [(Path(one["source"]).name, one["lines_good"], one["lines_bad"], one["damaged"]) for one in listed] == [
        ("a.jsonl", 100, 0, []),
        ("big.jsonl", 1000, 1, []),
        ("c.bin", 0, 0, ["bad_file"]),
        ("d.jsonl", 100, 2, []),
    ]
    for one in listed:
        assert one["sha256"] == hashlib.sha256(inputs[Path(one["source"]).name]).hexdigest()
    assert listed[1]["example"]["line"] == 501
    assert listed[3]["bad"] == {"bad_json": 1, "wrong_text_type": 1}


def test_nothing_to_read_closes(tmp_path: Path) -> None:
    """A run over an empty folder is a run of zeros."""
    _, done = ingest(tmp_path, {})
    assert (done["files"], done["lines"], done["documents"], done["shards"]) == (0, 0, 0, [])
    assert json.loads((tmp_path / "inputs.json").read_text()) == []


def test_missing_parts_are_named(tmp_path: Path) -> None:
    """Closing waits for every part, and a part made with other settings does not count."""
    plan, _ = ingest(tmp_path, {f"{i}.jsonl": GOOD * 300 for i in range(4)}, close=False, slice_mb=1, shard_mb=1)
    marker_path(tmp_path / "shards", 1).unlink()
    with pytest.raises(RunError, match=r"of 2 parts, 1 are not done \(1\)"):
        closed(tmp_path, plan, IngestConfig(slice_mb=1, shard_mb=1))
    with pytest.raises(RunError, match=r"of 2 parts, 2 are not done \(0, 1\)"):
        closed(tmp_path, plan, IngestConfig(slice_mb=1, shard_mb=2))
    assert not (tmp_path / "shards/_done.json").exists()


def test_too_much_damage_stops_the_run_and_says_where(tmp_path: Path) -> None:
    """The worst files are named with an example; what was read stays for a look; a higher share lets it pass."""
    bad = {f"bad{i}.jsonl": GOOD + b'{"text":5}\n' * i + b"broken\n" * (i * 2) for i in range(1, 9)}
    inputs = {"good.jsonl": GOOD, **bad}
    with pytest.raises(InputError) as error:
        ingest(tmp_path, inputs)
    message = str(error.value)
    assert message.startswith("108 of 1,008 records (10.7%) could not be read; ingest.max_quarantine_share allows 5.0%")
    assert (
        f"{tmp_path}/in/bad8.jsonl: 24 of 124, mostly bad_json, for example {tmp_path}/in/bad8.jsonl:101: wrong_text_type"
        in message
    )
    assert "bad4.jsonl" in message
    assert "bad3.jsonl" not in message
    assert "3 more files" in message
    assert str(tmp_path / "quarantine") in message
    assert "raise ingest.max_quarantine_share" in message
    assert (tmp_path / "quarantine/00000.jsonl").exists()
    assert len(json.loads((tmp_path / "inputs.json").read_text())) == 9
    assert not (tmp_path / "shards/_done.json").exists(), "a retry must not pass by"
    _, done = ingest(tmp_path, inputs, max_quarantine_share=0.11)
    assert (done["documents"], done["quarantined"]) == (900, {"bad_json": 72, "wrong_text_type": 36})


@pytest.mark.parametrize(("share", "passes"), [(0.0, False), (0.0099, False), (0.01, True), (1.0, True)])
def test_the_share_is_a_limit_that_may_be_reached(share: float, passes: bool, tmp_path: Path) -> None:
    """One bad line in a hundred passes at exactly 1 %."""
    content = {"a.jsonl": GOOD.replace(b'{"text":"line 50"}', b"broken")}
    if passes:
        assert ingest(tmp_path, content, max_quarantine_share=share)[1]["documents"] == 99
    else:
        with pytest.raises(InputError, match=r"1 of 100 records \(1\.0%\)"):
            ingest(tmp_path, content, max_quarantine_share=share)


def test_markers_that_do_not_add_up_break_the_law(tmp_path: Path) -> None:
    """Totals are checked again over all parts."""
    plan, _ = ingest(tmp_path, {"a.jsonl": GOOD}, close=False)
    path = marker_path(tmp_path / "shards", 0)
    marker = json.loads(path.read_text())
    marker["shards"][0]["rows"] -= 1
    path.write_text(json.dumps(marker))
    with pytest.raises(LawError, match=r"100 records were read, but the shards hold 99 documents"):
        closed(tmp_path, plan, IngestConfig())


def response(status: bytes, body: bytes) -> bytes:
    http = b"HTTP/1.1 " + status + b"\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n" + body
    head = b"WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: https://example.org/\r\nWARC-Date: 2026-01-01T00:00:00Z\r\n"
    length = b"Content-Type: application/http; msgtype=response\r\nContent-Length: %d\r\n\r\n" % len(http)
    return head + b"WARC-Record-ID: <urn:uuid:1>\r\n" + length + http + b"\r\n\r\n"


def test_redirects_and_error_pages_are_counted_but_are_no_damage(tmp_path: Path) -> None:
    """A sound crawl is full of them: they are quarantined and in the law, and do not stop the run."""
    crawl = (
        response(b"200 OK", b"A page with a text.")
        + response(b"404 Not Found", b"gone") * 5
        + response(b"301 Moved", b"") * 4
    )
    _, done = ingest(tmp_path, {"a.warc": crawl}, max_quarantine_share=0)
    assert (done["lines"], done["documents"], done["quarantined"]) == (10, 1, {"http_error": 9})


def parquet_bytes(column: str, rows: int) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({column: ["a text"] * rows}), sink)
    return bytes(sink.getvalue())


@pytest.mark.parametrize(
    ("name", "content", "needles"),
    [
        (
            "bad.parquet",
            b"PAR1" + bytes(range(256)) * 40,
            ["1 damaged files hold", "bad_file", "raise ingest.max_damaged"],
        ),
        (
            "cut.gz",
            gzip.compress(b"".join(b'{"text":"%x"}\n' % random.Random(i).getrandbits(600) for i in range(90)))[:5000],
            ["truncated_stream", "max_damaged_share"],
        ),
        (
            "other.parquet",
            parquet_bytes("body", 300),
            ["300 of 400 records (75.0%)", "mostly unknown_column", "hidden"],
        ),
    ],
)
def test_damage_of_whole_files_stops_the_run(name: str, content: bytes, needles: list[str], tmp_path: Path) -> None:
    """A file that broke weighs its bytes and the rows it is known to hide; raised limits go on without a new read."""
    with pytest.raises(InputError) as error:
        ingest(tmp_path, {"good.jsonl": GOOD, name: content})
    for needle in [f"in/{name}", *needles]:
        assert needle in str(error.value)
    stamps = [path.stat().st_mtime_ns for path in sorted((tmp_path / "shards").rglob("*.*"))]
    inputs = {"max_damaged_share": 1, "max_quarantine_share": 1}
    plan = plan_inputs([str(tmp_path / "in")], IngestConfig())
    assert closed(tmp_path, plan, IngestConfig(**inputs))["documents"] >= 100
    after = [
        path.stat().st_mtime_ns for path in sorted((tmp_path / "shards").rglob("*.*")) if path.name != "_done.json"
    ]
    assert after == stamps


def test_empty_files_and_trailing_garbage_are_no_damage(tmp_path: Path) -> None:
    """Neither an empty file nor bytes behind the last stream cost a record."""
    content = {"a.gz": gzip.compress(GOOD) + b"\x00garbage", "b.gz": b"", "c.jsonl": b"", "d.parquet": b""}
    assert ingest(tmp_path, content, max_damaged_share=0)[1]["documents"] == 100


def test_nothing_of_the_input_steers_the_terminal(tmp_path: Path) -> None:
    """Control signs in addresses and names of files are escaped in the quarantine and in the message."""
    crawl = response(b"200 OK", b" ").replace(b"example.org/", b"example.org/\x1b[2J\x07")
    with pytest.raises(InputError) as error:
        ingest(tmp_path, {"a\x1b[31m.warc": crawl})
    assert str(error.value).replace("\n", "").isprintable()
    assert "\\x1b[2J\\x07" in str(error.value)
    (entry,) = map(json.loads, (tmp_path / "quarantine/00000.jsonl").read_text().splitlines())
    assert entry["detail"].isprintable()
