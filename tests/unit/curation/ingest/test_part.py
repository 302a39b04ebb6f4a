"""A part becomes shards, quarantine and a marker: whole or not at all, the same bytes every time, and the law holds."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from curation.errors import InputError, LawError, RunError
from curation.ids import doc_id, text_id
from curation.ingest import outputs
from curation.ingest import part as part_module
from curation.ingest.config import IngestConfig
from curation.ingest.part import ingest_part, marker_path
from curation.ingest.plan import Part, plan_inputs
from curation.ingest.record import Damage, Document, Slice, SliceReport
from curation.records import SHARD_SCHEMA

REPO = Path(__file__).resolve().parents[4]


def write(path: Path, *records: Any) -> Path:
    """A line file; bytes are written as they are, other values as JSON."""
    lines = [
        record if isinstance(record, bytes) else json.dumps(record, ensure_ascii=False).encode() for record in records
    ]
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    return path


def ingest(folder: Path, *inputs: Path, **settings: Any) -> list[dict[str, Any]]:
    """Plan and ingest everything into `folder`."""
    config = IngestConfig(**settings)
    plan = plan_inputs([str(one) for one in inputs], config)
    return [
        ingest_part(part, shards=folder / "shards", quarantine=folder / "quarantine", config=config)
        for part in plan.parts
    ]


def tables(folder: Path) -> dict[str, pa.Table]:
    found = {}
    for path in sorted((folder / "shards").glob("*.arrow")):
        found[path.stem] = pa.ipc.open_file(path).read_all()
        found[path.stem].validate(full=True)
    return found


def files(folder: Path) -> dict[str, bytes]:
    """Everything but the markers, which hold times."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "_items" not in path.parts
    }


def test_a_shard_holds_each_document_as_it_was(tmp_path: Path) -> None:
    """Schema, texts, ids, places and meta are those of the input; only what has no id is given one."""
    first = write(tmp_path / "a.jsonl", {"id": 7, "text": "eins\r\n"}, {"text": "zwei", "url": "http://x", "n": [1]})
    second = write(tmp_path / "b.jsonl", {"id": "x", "text": "三"})
    (marker,) = ingest(tmp_path / "run", first, second)
    (table,) = tables(tmp_path / "run").values()
    assert table.schema.equals(SHARD_SCHEMA)
    assert table.schema.metadata == {b"part": b"0", b"shard": b"00000-000"}
    rows = table.to_pylist()
    assert [(row["text"], row["source"], row["url"], row["line"], row["byte_offset"], row["meta"]) for row in rows] == [
        ("eins\r\n", str(first), None, 1, 0, None),
        ("zwei", str(first), "http://x", 2, 30, '{"n":[1]}'),
        ("三", str(second), None, 1, 0, None),
    ]
    for row in rows:
        assert row["text_id"] == text_id(row["text"])
        assert row["doc_id"] == doc_id(row["source"], row["byte_offset"], 0, row["text_id"])
    assert [row["id"] for row in rows] == ["7", rows[1]["doc_id"].hex(), "x"]
    (shard,) = marker["shards"]
    path = tmp_path / "run/shards/00000-000.arrow"
    assert shard == {
        "name": "00000-000",
        "rows": 3,
        "text_bytes": 13,
        "file_bytes": path.stat().st_size,
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
    }
    assert not (tmp_path / "run/quarantine").exists(), "no damage, no file"
    assert json.loads(marker_path(tmp_path / "run/shards", 0).read_text()) == marker


def test_the_quarantine_holds_what_could_not_be_read(tmp_path: Path) -> None:
    """Each entry has its place, reason and raw bytes: as text where they are text, else in base64."""
    bad = [b'{"text": "ok\xe4\xb8\xad', b'{"text": "\xff"}', b'{"text":"' + "中".encode() * 700 + b"\t"]
    path = write(tmp_path / "a.jsonl", {"text": "good"}, *bad)
    (marker,) = ingest(tmp_path / "run", path, quarantine_raw_kb=1)
    entries = [json.loads(line) for line in (tmp_path / "run/quarantine/00000.jsonl").read_text("utf-8").splitlines()]
    assert [entry["reason"] for entry in entries] == ["bad_json", "bad_utf8", "bad_json"]
    assert [(entry["file"], entry["line"]) for entry in entries] == [(str(path), 2), (str(path), 3), (str(path), 4)]
    assert entries[0]["raw"].encode() == bad[0]
    assert base64.b64decode(entries[1]["raw_base64"]) == bad[1]
    assert entries[2]["raw"] == '{"text":"' + "中" * 338, "cut between characters"
    assert [entry["raw_length"] for entry in entries] == [len(line) for line in bad]
    for entry, line in zip(entries, bad, strict=True):
        content = path.read_bytes()
        assert content[entry["byte_offset"] : entry["byte_offset"] + len(line)] == line
    (one,) = marker["inputs"]
    assert (one["records"], one["documents"], one["quarantined"]) == (4, 1, {"bad_json": 2, "bad_utf8": 1})
    assert (one["example"]["line"], one["example"]["reason"]) == (2, "bad_json")


def test_documents_are_cut_into_shards_and_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A shard has at most shard_mb of text and a batch at most BATCH_BYTES; one bigger document stands alone."""
    monkeypatch.setattr(outputs, "BATCH_BYTES", 300_000)
    texts = [chr(65 + i % 26) * 100_000 for i in range(25)] + ["big" * 600_000, "small"]
    (marker,) = ingest(tmp_path / "run", write(tmp_path / "a.jsonl", *({"text": text} for text in texts)), shard_mb=1)
    found = tables(tmp_path / "run")
    assert list(found) == [shard["name"] for shard in marker["shards"]] == [f"00000-{i:03d}" for i in range(5)]
    assert [shard["text_bytes"] for shard in marker["shards"]] == [1_000_000, 1_000_000, 500_000, 1_800_000, 5]
    assert [row for table in found.values() for row in table["text"].to_pylist()] == texts
    assert max(len(batch) for batch in found["00000-000"].to_batches()) == 3


def test_every_batch_has_the_same_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The dictionary of sources is that of the part, whichever files a batch holds: an IPC file refuses another."""
    monkeypatch.setattr(outputs, "BATCH_ROWS", 2)
    paths = [write(tmp_path / f"{i}.jsonl", {"text": "a"}, {"text": "b"}, {"text": "c"}) for i in range(3)]
    ingest(tmp_path / "run", *paths)
    (table,) = tables(tmp_path / "run").values()
    assert table["source"].num_chunks == 5
    assert {tuple(chunk.dictionary.to_pylist()) for chunk in table["source"].chunks} == {tuple(map(str, paths))}
    assert table["source"].to_pylist() == [str(path) for path in paths for _ in range(3)]


def test_a_rerun_gives_the_same_bytes(tmp_path: Path) -> None:
    """Shards and quarantine are a function of input and config."""
    path = write(tmp_path / "a.jsonl", *({"text": f"text {i}", "n": i} for i in range(1000)), b"broken")
    ingest(tmp_path / "one", path)
    ingest(tmp_path / "two", path)
    assert files(tmp_path / "one") == files(tmp_path / "two")


def test_a_finished_part_is_not_done_again(tmp_path: Path) -> None:
    """A marker whose files are whole is returned at once, and a change of the allowed share does not touch it."""
    path = write(tmp_path / "a.jsonl", {"text": "a"}, b"broken")
    (marker,) = ingest(tmp_path / "run", path)
    stamp = (tmp_path / "run/shards/00000-000.arrow").stat().st_mtime_ns
    for share in (0.05, 1.0):
        assert ingest(tmp_path / "run", path, max_quarantine_share=share) == [{**marker, "reused": True}]
    assert (tmp_path / "run/shards/00000-000.arrow").stat().st_mtime_ns == stamp


@pytest.mark.parametrize(
    "harm", ["shard gone", "shard cut", "bit flipped", "marker broken", "quarantine gone", "other config"]
)
def test_a_harmed_part_is_made_anew(harm: str, tmp_path: Path) -> None:
    """A marker is believed only as far as its files are what it says."""
    path = write(tmp_path / "a.jsonl", {"text": "a" * 3_000_000}, {"text": "b"}, b"broken")
    run, settings = tmp_path / "run", {"shard_mb": 1}
    (marker,) = ingest(run, path, **settings)
    whole = files(run)
    shard = run / "shards/00000-000.arrow"
    content = shard.read_bytes()
    if harm == "shard gone":
        shard.unlink()
    elif harm == "shard cut":
        shard.write_bytes(content[:-1])
    elif harm == "bit flipped":
        shard.write_bytes(content[:5000] + bytes([content[5000] ^ 1]) + content[5001:])
    elif harm == "marker broken":
        marker_path(run / "shards", 0).write_text('{"digest"')
    elif harm == "quarantine gone":
        (run / "quarantine/00000.jsonl").unlink()
    else:
        settings = {"shard_mb": 64}
    (again,) = ingest(run, path, **settings)
    assert "reused" not in again
    if harm == "other config":
        assert [shard["name"] for shard in again["shards"]] == list(tables(run)), "no stranger is left"
        assert len(again["shards"]) < len(marker["shards"])
    else:
        assert files(run) == whole


def test_files_of_all_kinds_share_a_part(tmp_path: Path) -> None:
    """An unknown file is one entry in the quarantine, with its hash; the others are read."""
    write(tmp_path / "a.jsonl", {"text": "a"})
    (tmp_path / "b.bin").write_bytes(bytes(range(256)))
    (tmp_path / "c.jsonl").write_bytes(b"")
    write(tmp_path / "d.jsonl", {"text": "d"})
    (marker,) = ingest(
        tmp_path / "run", tmp_path / "a.jsonl", tmp_path / "b.bin", tmp_path / "c.jsonl", tmp_path / "d.jsonl"
    )
    (table,) = tables(tmp_path / "run").values()
    assert table["text"].to_pylist() == ["a", "d"]
    unknown = marker["inputs"][1]
    assert (unknown["kind"], unknown["records"], unknown["damaged"]) == ("unknown", 0, ["bad_file"])
    assert unknown["sha256"] == hashlib.sha256(bytes(range(256))).hexdigest()
    entry = json.loads((tmp_path / "run/quarantine/00000.jsonl").read_text("utf-8"))
    assert entry["whole_file"] is True
    assert "expected JSON lines" in entry["detail"]


def test_a_part_without_documents_is_done(tmp_path: Path) -> None:
    """Empty inputs give a marker and no shard."""
    (tmp_path / "a.jsonl").write_bytes(b"\n\n")
    (marker,) = ingest(tmp_path / "run", tmp_path / "a.jsonl")
    assert marker["shards"] == []
    assert marker["inputs"][0]["blank_lines"] == 2
    assert ingest(tmp_path / "run", tmp_path / "a.jsonl")[0]["reused"]


# -- readers that fail --------------------------------------------------------------------------------


def with_reader(folder: Path, monkeypatch: pytest.MonkeyPatch, reader: Any) -> dict[str, Any]:
    """A part of three files, the second read by `reader`."""
    paths = [write(folder / f"{name}.jsonl", {"text": name}) for name in "abc"]

    def choose(part: Slice, config: IngestConfig, report: SliceReport) -> Iterator[Document | Damage]:
        return (reader if part.source == str(paths[1]) else read)(part, config, report)

    read = part_module.READERS["jsonl"]
    monkeypatch.setitem(part_module.READERS, "jsonl", choose)
    return ingest(folder / "run", *paths)[0]


def test_a_reader_that_fails_costs_its_slice_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unexpected exception becomes an entry with its words; records that were cut and not judged are counted."""

    def failing(part: Slice, config: IngestConfig, report: SliceReport) -> Iterator[Document | Damage]:
        report.records = 5
        yield Document("one", 1, 0)
        raise RecursionError("too deep")

    marker = with_reader(tmp_path, monkeypatch, failing)
    (table,) = tables(tmp_path / "run").values()
    assert table["text"].to_pylist() == ["a", "one", "c"]
    broken = marker["inputs"][1]
    assert (broken["documents"], broken["quarantined"], broken["damaged"]) == (1, {"bad_file": 4}, ["bad_file"])
    assert "RecursionError: too deep" in broken["example"]["detail"]
    assert broken["sha256"] == hashlib.sha256((tmp_path / "b.jsonl").read_bytes()).hexdigest()


def test_a_reader_that_loses_a_record_breaks_the_law(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was cut apart must come out; nothing is published under a marker if it does not."""

    def losing(part: Slice, config: IngestConfig, report: SliceReport) -> Iterator[Document | Damage]:
        report.records = 2
        yield Document("one", 1, 0)
        yield Damage("bad_file", None, None, b"", whole_file=True)

    with pytest.raises(LawError, match=r"2 records were read, but 1 documents and 0 quarantined"):
        with_reader(tmp_path, monkeypatch, losing)
    assert not marker_path(tmp_path / "run/shards", 0).exists()


def test_errors_for_the_user_are_not_swallowed(tmp_path: Path) -> None:
    """A file that changed, or is gone, stops the part; it is no damage."""
    path = write(tmp_path / "a.jsonl", {"text": "a"})
    plan = plan_inputs([str(path)], IngestConfig())
    write(path, {"text": "abc"})
    with pytest.raises(InputError, match="has changed"):
        ingest_part(plan.parts[0], shards=tmp_path / "s", quarantine=tmp_path / "q", config=IngestConfig())
    assert files(tmp_path) == {"a.jsonl": path.read_bytes()}


def test_a_full_disk_leaves_nothing_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A write that fails is an error of the run, whoever was reading at the time, and half a shard never shows."""

    def full(writer: outputs.ShardWriter) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(outputs.ShardWriter, "_batch", full)
    with pytest.raises(RunError, match="disk is full"):
        ingest(tmp_path / "run", write(tmp_path / "a.jsonl", {"text": "a"}))
    assert files(tmp_path / "run") == {}


# -- killed -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("batches", [1, 3])
def test_a_killed_part_leaves_no_half_file(batches: int, tmp_path: Path) -> None:
    """After kill -9 in the middle, what stands under a final name is whole; a second try finishes it."""
    path = write(tmp_path / "a.jsonl", b"broken", *({"text": f"{i} " * 20_000} for i in range(60)))
    script = textwrap.dedent(f"""
        import os, signal, sys
        from pathlib import Path
        from curation.ingest import outputs
        from curation.ingest.config import IngestConfig
        from curation.ingest.part import ingest_part
        from curation.ingest.plan import plan_inputs
        outputs.BATCH_BYTES = 400_000
        write, left = outputs.ShardWriter._write_batch, [{batches}]
        def dying(self):
            write(self)
            left[0] -= 1
            if not left[0]:
                os.kill(os.getpid(), signal.SIGKILL)
        outputs.ShardWriter._write_batch = dying
        config = IngestConfig(shard_mb=1)
        run = Path({str(tmp_path / "run")!r})
        ingest_part(plan_inputs([{str(path)!r}], config).parts[0], shards=run / "shards", quarantine=run / "quarantine", config=config)
    """)
    died = subprocess.run(
        [sys.executable, "-c", script], cwd=REPO, env={**os.environ, "PYTHONPATH": str(REPO)}, check=False
    )
    assert died.returncode == -signal.SIGKILL
    left = files(tmp_path / "run")
    assert any(name.endswith(".tmp") for name in left), "it was in the middle of a shard"
    ingest(tmp_path / "expected", path, shard_mb=1)
    expected = tables(tmp_path / "expected")
    for name, table in tables(tmp_path / "run").items():
        assert table["text"].equals(expected[name]["text"]), "what stands is whole"
    assert not marker_path(tmp_path / "run/shards", 0).exists()
    (again,) = ingest(tmp_path / "run", path, shard_mb=1)
    assert "reused" not in again
    left = {name: content for name, content in files(tmp_path / "run").items() if not name.endswith(".tmp")}
    assert left == files(tmp_path / "expected")


def test_two_tries_at_once_end_alike(tmp_path: Path) -> None:
    """After a lost heartbeat two workers may do the same part at the same time; both succeed."""
    path = write(tmp_path / "a.jsonl", *({"text": f"{i} " * 5_000} for i in range(300)))
    script = (
        "import sys; from pathlib import Path; from curation.ingest.config import IngestConfig as C;"
        "from curation.ingest.part import ingest_part; from curation.ingest.plan import plan_inputs;"
        "run = Path(sys.argv[2]); config = C(shard_mb=1);"
        "ingest_part(plan_inputs([sys.argv[1]], config).parts[0], shards=run / 'shards', quarantine=run / 'q', config=config)"
    )
    command = [sys.executable, "-c", script, str(path), str(tmp_path / "run")]
    tries = [subprocess.Popen(command, cwd=REPO, env={**os.environ, "PYTHONPATH": str(REPO)}) for _ in range(2)]
    assert [one.wait(60) for one in tries] == [0, 0]
    ingest(tmp_path / "expected", path, shard_mb=1)
    assert files(tmp_path / "run") == files(tmp_path / "expected")


def test_slices_of_one_file_know_their_places(tmp_path: Path) -> None:
    """Lines and offsets of a slice count from the file's beginning, so that doc_ids are the same however it is cut."""
    path = write(tmp_path / "a.jsonl", *({"text": f"text {i}"} for i in range(200)))
    size = path.stat().st_size
    config = IngestConfig()
    lines = path.read_bytes()[: size // 2].count(b"\n")
    halves = (
        Slice(str(path), "jsonl", 0, size // 2, size),
        Slice(str(path), "jsonl", size // 2, size, size, lines + 2),
    )
    ingest_part(Part(0, halves), shards=tmp_path / "cut", quarantine=tmp_path / "q", config=config)
    ingest(tmp_path / "run", path)
    cut = pa.ipc.open_file(tmp_path / "cut/00000-000.arrow").read_all()
    (whole,) = tables(tmp_path / "run").values()
    assert cut.equals(whole)
    assert whole["line"].to_pylist() == list(range(1, 201))


def test_an_upgrade_of_the_extractor_makes_crawls_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """The digest of a part with WARC files holds the extractors' versions; other parts do not care."""
    parts = [Part(0, (Slice(f"a.{kind}", kind, 0, 5, 5),)) for kind in ("warc", "jsonl")]
    before = [part_module.part_digest(part, IngestConfig()) for part in parts]
    monkeypatch.setattr("importlib.metadata.version", lambda name: "99.0")
    after = [part_module.part_digest(part, IngestConfig()) for part in parts]
    assert [a == b for a, b in zip(before, after, strict=True)] == [False, True]
