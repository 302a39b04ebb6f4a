"""Every damaged line file of the test data gives the counts that its table names: nothing lost, nothing hidden."""

from __future__ import annotations

import json
import subprocess
import sys
import zlib
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from curation.ingest.close import close_ingest
from curation.ingest.config import IngestConfig
from curation.ingest.part import ingest_part
from curation.ingest.plan import plan_inputs


@dataclass
class Read:
    """What a run made of one input."""

    rows: list[dict[str, Any]]
    done: dict[str, Any]
    input: dict[str, Any]
    quarantine: list[dict[str, Any]]


def run(path: Path, folder: Path, **settings: Any) -> Read:
    """Plan, ingest and close one file as a run does; the law is checked by each of them."""
    config = IngestConfig(max_quarantine_share=1, max_damaged_share=1, **settings)
    plan = plan_inputs([str(path)], config)
    rows = []
    for part in plan.parts:
        marker = ingest_part(part, shards=folder / "shards", quarantine=folder / "quarantine", config=config)
        for shard in marker["shards"]:
            rows += pa.ipc.open_file(folder / f"shards/{shard['name']}.arrow").read_all().to_pylist()
    inputs = folder / "inputs.json"
    done = close_ingest(
        shards=folder / "shards", quarantine=folder / "quarantine", inputs_path=inputs, plan=plan, config=config
    )
    entries = [
        json.loads(line) for file in sorted(folder.glob("quarantine/*")) for line in file.read_bytes().splitlines()
    ]
    return Read(rows, done, json.loads(inputs.read_text("utf-8"))[0], entries)


@dataclass(frozen=True)
class Case:
    """Counts of one file. `why` tells where the data's own table leaves them open."""

    good: int
    bad: dict[str, int] = field(default_factory=dict)
    damaged: tuple[str, ...] = ()
    notes: dict[str, int] = field(default_factory=dict)
    why: str = ""


CASES = {
    "truncated_line.jsonl": Case(39, {"bad_json": 1}),
    "truncated_last_line.jsonl": Case(39, {"truncated_line": 1}),
    "no_final_newline.jsonl": Case(40),
    "invalid_utf8.jsonl": Case(38, {"bad_utf8": 2}),
    "nul_bytes.jsonl": Case(38, {"nul_byte": 2}),
    "escaped_nul.jsonl": Case(40),
    "lone_surrogates.jsonl": Case(38, {"lone_surrogate": 2}),
    "nan_infinity.jsonl": Case(
        38, {"bad_json": 2}, why="NaN is no JSON; refused, since a parser that accepts it is rare"
    ),
    "duplicate_keys.jsonl": Case(
        38, {"duplicate_key": 2}, why="which text is meant cannot be known, so neither is taken"
    ),
    "missing_or_wrong_text.jsonl": Case(12, {"missing_text": 1, "null_text": 1, "empty_text": 2, "wrong_text_type": 4}),
    "not_objects.jsonl": Case(10, {"not_an_object": 4, "missing_text": 1, "two_objects": 1, "bad_json": 5}),
    "pretty_printed.json": Case(
        0, damaged=("bad_file",), why="one clear entry for the file; an array reader would invite arrays of any size"
    ),
    "bom.jsonl": Case(12, notes={"bom_removed": 1}),
    "utf16.jsonl": Case(
        12,
        notes={"bom_removed": 1, "decoded_utf_16_le": 1},
        why="the byte order mark leaves no doubt, so it is decoded",
    ),
    "crlf.jsonl": Case(12, notes={"crlf": 12}),
    "cr_only.jsonl": Case(
        12,
        notes={"cr_line_ends": 1},
        why="a CR between objects can be nothing but a line end: no valid line is changed",
    ),
    "unicode_line_separators.jsonl": Case(12),
    "mixed_encodings.jsonl": Case(6, {"bad_utf8": 4}),
    "truncated.jsonl.gz": Case(
        264,
        {"truncated_line": 1},
        ("truncated_stream",),
        why="264 whole lines lie before the cut",
    ),
    "bitflip.jsonl.gz": Case(
        197,
        {"bad_json": 203, "truncated_line": 1},
        ("corrupt_stream",),
        {"skipped_bytes": 5},
        why="the flip spoils what follows in one long member; 197 lines before it are right, the CRC marks the file",
    ),
    "multi_member.jsonl.gz": Case(45),
    "trailing_garbage.jsonl.gz": Case(40, damaged=("trailing_garbage",), notes={"trailing_bytes": 516}),
    "not_gzip.jsonl.gz": Case(10, why="the bytes are plain text, whatever the name says"),
    "truncated.jsonl.zst": Case(
        0,
        damaged=("truncated_stream",),
        notes={"skipped_bytes": 14345},
        why="the cut lies in the first block of 128 KiB, and a zstd block can be decoded only as a whole",
    ),
    "bitflip.jsonl.zst": Case(
        0,
        damaged=("corrupt_stream",),
        notes={"skipped_bytes": 28699},
        why="the flip lies in the first block, and all that follows in the frame needs that block",
    ),
    "two_frames.jsonl.zst": Case(20),
    "empty.jsonl": Case(0, notes={"empty_file": 1}),
    "empty.jsonl.gz": Case(0),
    "zero_bytes.jsonl.gz": Case(
        0,
        damaged=("truncated_stream",),
        notes={"empty_file": 1},
        why="zero bytes are no gzip: a failed upload, so marked",
    ),
    "blank_lines.jsonl": Case(2),
    "deep_nesting.jsonl": Case(5, {"bad_json": 1}),
    "huge_number.jsonl": Case(5, {"bad_json": 1}),
    "control_chars.jsonl": Case(8),
    "null_then_string.jsonl": Case(440),
}


@pytest.mark.parametrize("name", CASES)
def test_damaged_files_give_the_expected_counts(name: str, test_data: Path, tmp_path: Path) -> None:
    """Good rows, bad rows by reason, damage of the file and repairs are those of the table."""
    case = CASES[name]
    found = run(test_data / "7_broken" / name, tmp_path)
    assert (len(found.rows), found.done["quarantined"]) == (case.good, dict(Counter(case.bad).most_common()))
    assert tuple(found.input["damaged"]) == case.damaged
    assert found.input["notes"] == case.notes
    by_record = Counter(entry["reason"] for entry in found.quarantine if not entry["whole_file"])
    assert by_record == case.bad
    by_file = [entry["reason"] for entry in found.quarantine if entry["whole_file"]]
    assert by_file == list(case.damaged)
    assert all(entry["detail"] for entry in found.quarantine)


def test_no_line_file_of_the_data_is_forgotten(test_data: Path) -> None:
    """Each file of a kind that is read here has its row in the table."""
    kinds = (".jsonl", ".json", ".jsonl.gz", ".jsonl.zst")
    there = {path.name for path in (test_data / "7_broken").iterdir() if path.name.endswith(kinds)}
    assert there == set(CASES)


def test_the_counts_are_those_of_the_manifest(test_data: Path) -> None:
    """Where the data's own table gives good and bad rows, ours says the same."""
    stated = 0
    for line in (test_data / "7_broken/MANIFEST.md").read_text("utf-8").splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) > 7 and cells[1] in CASES:
            case = CASES[cells[1]]
            assert cells[5] in ("", str(case.good)), cells[1]
            assert cells[6] in ("", str(sum(case.bad.values()))), cells[1]
            stated += bool(cells[5])
            assert case.why or cells[5], f"{cells[1]}: open in the manifest, so say why"
    assert stated > 20


def test_rows_before_a_flipped_bit_are_right(test_data: Path, tmp_path: Path) -> None:
    """What is kept of the damaged gzip file stands in the stream before the fault, in order, without a gap."""
    found = run(test_data / "7_broken/bitflip.jsonl.gz", tmp_path)
    assert [row["id"] for row in found.rows] == [f"r{i:04d}" for i in range(197)]


def test_repairs_leave_the_text_alone(test_data: Path, tmp_path: Path) -> None:
    """UTF-16, CR, CRLF and BOM files hold the same twelve texts; no line end stays in a value."""
    texts = [
        [row["text"] for row in run(test_data / "7_broken" / f"{name}.jsonl", tmp_path / name).rows]
        for name in ("utf16", "cr_only", "crlf", "bom")
    ]
    assert all(len(one) == 12 and not any("\r" in text or "\ufeff" in text for text in one) for one in texts)
    nul = run(test_data / "7_broken/escaped_nul.jsonl", tmp_path / "nul").rows
    assert any("\0" in row["text"] for row in nul)


def test_surrogates_may_be_replaced(test_data: Path, tmp_path: Path) -> None:
    """With `lone_surrogates: replace` all forty rows are kept, and the replacements counted."""
    found = run(test_data / "7_broken/lone_surrogates.jsonl", tmp_path, lone_surrogates="replace")
    assert (len(found.rows), found.input["notes"]) == (40, {"lone_surrogates_replaced": 3})
    assert found.rows[1]["text"] == "half a pair \ufffd end"


def bugcases(test_data: Path) -> list[dict[str, Any]]:
    path = test_data.parent / "bugcases/cases.jsonl"
    if not path.exists():
        pytest.skip(f"bug cases not found at {path.parent}")
    cases = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    return [case for case in cases if case.get("input_file", "").startswith("b_")]


def test_reported_bugs_of_ingest_are_impossible(test_data: Path, tmp_path: Path) -> None:
    """Each bug that users of other tools reported ends as its case expects."""
    cases = bugcases(test_data)
    assert len(cases) == 11
    for case in cases:
        found = run(test_data.parent / "bugcases" / case["input_file"], tmp_path / case["id"])
        ids = [row["id"] for row in found.rows]
        n_bad = sum(found.done["quarantined"].values())
        expect = case["expect"]
        assert expect.get("docs", len(ids)) == len(ids), case["id"]
        assert expect.get("quarantined", n_bad) == n_bad, case["id"]
        assert set(expect.get("must_keep", [])) | set(expect.get("kept", [])) <= set(ids), case["id"]
        assert not set(expect.get("flagged", [])) & set(ids), case["id"]
        for own_id, text in expect.get("text", {}).items():
            assert next(row["text"] for row in found.rows if row["id"] == own_id) == text
        if expect.get("truncated"):
            assert found.input["damaged"] == ["truncated_stream"]
        if "joined" in expect:
            assert [entry["reason"] for entry in found.quarantine] == ["two_objects"]
        if case["input_file"] == "b_surr.jsonl":
            assert [entry["reason"] for entry in found.quarantine] == ["lone_surrogate"]
        if case["input_file"] == "b_bom.jsonl":
            assert not any("\ufeff" in row["id"] + row["text"] for row in found.rows)


def test_a_huge_line_between_good_ones(test_data: Path, tmp_path: Path) -> None:
    """A line of 64 MB is quarantined by its first bytes, or read if the limit allows; its neighbours stand."""
    path = tmp_path / "huge.jsonl"
    script = test_data / "7_broken/make_huge_line.py"
    subprocess.run([sys.executable, str(script), "64", str(path)], check=True)
    found = run(path, tmp_path / "quarantined")
    assert [row["id"] for row in found.rows] == ["before", "after"]
    assert [row["line"] for row in found.rows] == [1, 3]
    (entry,) = found.quarantine
    assert (entry["reason"], entry["line"]) == ("too_long", 2)
    assert (len(entry["raw"]), entry["raw_length"] > 64_000_000) == (2**20, True)
    read = run(path, tmp_path / "read", max_record_mb=100)
    assert [row["id"] for row in read.rows] == ["before", "huge", "after"]
    assert len(read.rows[1]["text"]) >= 64_000_000


def test_memory_is_bounded_whatever_the_line(tmp_path: Path) -> None:
    """A line of 600 MB, the NULs of a lost disk, is read over in constant memory, plain and compressed."""
    script = (
        "import resource, sys; from pathlib import Path; from curation.ingest.config import IngestConfig;"
        "from curation.ingest.part import ingest_part; from curation.ingest.plan import plan_inputs;"
        "config = IngestConfig(max_record_mb=8, slice_mb=2000); run = Path(sys.argv[2]);"
        "plan = plan_inputs([sys.argv[1]], config);"
        "base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss;"
        "marker = ingest_part(plan.parts[0], shards=run, quarantine=run, config=config);"
        "print(marker['inputs'][0]['quarantined'], (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - base) // 1024)"
    )
    compressor = zlib.compressobj(1, wbits=31)
    packed = [compressor.compress(b'{"text":"a"}\n')]
    packed += [compressor.compress(bytes(2**20)) for _ in range(200)]
    packed += [compressor.compress(b'\n{"text":"b"}\n'), compressor.flush()]
    (tmp_path / "x.jsonl.gz").write_bytes(b"".join(packed))
    with (tmp_path / "x.jsonl").open("wb") as stream:  # sparse: it takes no room
        stream.write(b'{"text":"a"}\n')
        stream.seek(600_000_000)
        stream.write(b'\n{"text":"b"}\n')
    for name in ("x.jsonl", "x.jsonl.gz"):
        command = [sys.executable, "-c", script, str(tmp_path / name), str(tmp_path / "run" / name)]
        repo = Path(__file__).resolve().parents[2]
        out = subprocess.run(command, cwd=repo, capture_output=True, text=True, check=True).stdout.split("} ")
        assert out[0] == "{'too_long': 1"
        assert int(out[1]) < 120, f"{name}: {out[1]} MB more than before"
