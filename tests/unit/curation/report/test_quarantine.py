"""Quarantine samples: few, always the same, safe whatever the bytes are."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

from curation.report.quarantine import EACH, sample_quarantine


def entry(line: int | None, reason: str = "bad_json", **more: Any) -> dict[str, Any]:
    return {
        "file": "/in.jsonl",
        "line": line,
        "byte_offset": line,
        "reason": reason,
        "detail": "why",
        "raw": f"raw {line}",
        **more,
    }


def write(folder: Path, name: str, entries: list[dict[str, Any]]) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text("".join(json.dumps(one) + "\n" for one in entries), encoding="utf-8")


def test_a_few_of_each_reason_whatever_the_order(tmp_path: Path) -> None:
    """The choice comes from the places of the records, not from the order of files or lines."""
    entries = [entry(i, reason) for reason in ("bad_json", "bad_utf8") for i in range(50)]
    write(tmp_path / "a", "00000.jsonl", entries)
    write(tmp_path / "b", "00000.jsonl", entries[::-1][:60])
    write(tmp_path / "b", "00001.jsonl", entries[::-1][60:])
    first, second = sample_quarantine(tmp_path / "a"), sample_quarantine(tmp_path / "b")
    assert first == second
    assert {reason: len(found) for reason, found in first[0].items()} == {"bad_json": EACH, "bad_utf8": EACH}


def test_bytes_that_are_no_text_are_dumped(tmp_path: Path) -> None:
    raw = b"\x00\xff" * 100
    write(tmp_path, "0.jsonl", [entry(1, raw=None, raw_base64=base64.b64encode(raw).decode(), raw_length=5000)])
    found = sample_quarantine(tmp_path)[0]["bad_json"][0]
    assert found.is_hex
    assert found.cut
    assert found.text.startswith("0000  00 ff 00 ff")
    assert found.n_bytes == 5000


def test_damage_of_a_whole_file_has_no_line(tmp_path: Path) -> None:
    write(tmp_path, "0.jsonl", [entry(None, "bad_file", raw="")])
    found = sample_quarantine(tmp_path)[0]["bad_file"][0]
    assert (found.line, found.byte_offset, found.text) == (None, None, "")


def test_a_damaged_quarantine_file_is_told(tmp_path: Path) -> None:
    """What can be read is shown, the rest is named."""
    (tmp_path / "0.jsonl").write_text(json.dumps(entry(1)) + '\n{"half', encoding="utf-8")
    found, problems = sample_quarantine(tmp_path)
    assert len(found["bad_json"]) == 1
    assert "0.jsonl, line 2" in problems[0]


def test_no_quarantine(tmp_path: Path) -> None:
    assert sample_quarantine(tmp_path / "absent") == ({}, [])
