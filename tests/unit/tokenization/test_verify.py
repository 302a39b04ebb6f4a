"""Reports name what is wrong and where; a good file is good."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.token_files import SEQ_LEN, small_block, small_header, write_small_file
from tokenization import token_file
from tokenization.layout import Block, Header
from tokenization.reader import verify
from tokenization.seal import read_seal
from tokenization.token_file import TokenFileWriter


def test_a_good_file(tmp_path: Path) -> None:
    """True, with counts and provenance to read."""
    path = write_small_file(tmp_path / "t.arrow")
    report = verify(path)
    assert report.ok
    assert bool(report)
    assert (report.blocks, report.n_bytes, report.header) == (3, path.stat().st_size, small_header())
    assert str(report).splitlines()[:2] == [
        f"{path}: OK",
        "  80 documents, 480 tokens in 40 sequences of 16",
    ]
    report.raise_if_bad()


def test_an_empty_file_is_good(tmp_path: Path) -> None:
    """No sequences is a valid result."""
    assert verify(write_small_file(tmp_path / "t.arrow", small_header(0))).ok


def test_two_damaged_blocks_are_both_named(tmp_path: Path) -> None:
    """The first damage does not hide the second."""
    path = write_small_file(tmp_path / "t.arrow")
    seal = read_seal(path)
    data = bytearray(path.read_bytes())
    data[seal.bodies[0].start] ^= 1
    data[seal.heads[2].start + 30] ^= 1
    path.write_bytes(data)
    report = verify(path)
    assert [problem.where for problem in report.problems] == ["block 0", "block 2 (head)"]
    assert "DAMAGED" in str(report)


def test_a_missing_file_is_a_problem(tmp_path: Path) -> None:
    """Not an exception."""
    report = verify(tmp_path / "none.arrow")
    assert [problem.where for problem in report.problems] == ["file"]


class _Reckless(TokenFileWriter):
    """Seals whatever it is given: a writer with a fault."""

    def _finish(self) -> None:
        self._tokens, self._pieces, self._eos = self.header.tokens, self.header.pieces, self.header.documents
        super()._finish()


def _write_recklessly(path: Path, header: Header, monkeypatch: pytest.MonkeyPatch, change: Any = None) -> Path:
    monkeypatch.setattr(token_file, "check_block", lambda block, header: ([], 0))
    with _Reckless(path, header) as writer:
        for number in range(header.n_blocks):
            block = small_block(header, number)
            writer.write(change(block) if change and number == 1 else block)
    return path


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"tokens": 481}, "480 tokens, but the header says 481"),
        ({"pieces": 81}, "80 pieces, but the header says 81"),
        ({"documents": 90}, "80 end-of-document tokens, but the header says 90"),
    ],
)
def test_counts_that_do_not_add_up(changes: dict[str, int], fault: str, tmp_path: Path, monkeypatch) -> None:
    """The header's counts are compared with the content."""
    report = verify(_write_recklessly(tmp_path / "t.arrow", small_header(**changes), monkeypatch))
    assert fault in [problem.what for problem in report.problems if problem.where == "counts"]


def _false_border(block: Block) -> Block:
    block.tokens[3, 2] = 0
    return block


def _two_of_one(block: Block) -> Block:
    return dataclasses.replace(block, rows=np.where(block.rows == 35, 34, block.rows))


@pytest.mark.parametrize(
    ("change", "where", "fault"),
    [
        (_false_border, "block 1", "inside a document"),
        (_two_of_one, "counts", "79 documents, but the header says 80"),
    ],
)
def test_content_that_breaks_the_rules(change: Any, where: str, fault: str, tmp_path: Path, monkeypatch) -> None:
    """Checksums that fit do not make a wrong block right."""
    report = verify(_write_recklessly(tmp_path / "t.arrow", small_header(), monkeypatch, change))
    assert [problem.where for problem in report.problems] == [where]
    assert fault in report.problems[0].what


def _manifest(path: Path, **files: Any) -> None:
    text = json.dumps({"files": {"t.arrow": {"seal": read_seal(path).sha256}, **files}})
    path.with_name("manifest.json").write_text(text, encoding="utf-8")


def test_the_manifest_beside_it(tmp_path: Path) -> None:
    """It must speak about this file, and the document table must be the one that it names."""
    path = write_small_file(tmp_path / "t.arrow")
    table = tmp_path / "documents.parquet"
    table.write_bytes(b"table")
    _manifest(path, **{"documents.parquet": {"sha256": hashlib.sha256(b"table").hexdigest()}, "gone": {"sha256": "0"}})
    assert verify(path).ok
    table.write_bytes(b"another")
    assert [problem.where for problem in verify(path).problems] == ["documents.parquet"]
    table.unlink()
    write_small_file(path, small_header(run_id="another"))
    assert [problem.where for problem in verify(path).problems] == ["manifest.json"]


@pytest.mark.parametrize("text", ["[]", "{}", '{"files": []}', '{"files": {"t.arrow": 3}}', '{"files": {"u": {}}}'])
def test_manifests_of_others_are_left_alone(text: str, tmp_path: Path) -> None:
    """manifest.json is a common name: only one that names this file counts."""
    path = write_small_file(tmp_path / "t.arrow")
    path.with_name("manifest.json").write_text(text, encoding="utf-8")
    assert verify(path).ok


def test_a_broken_manifest_is_a_problem(tmp_path: Path) -> None:
    """It cannot be read, so nothing can be said: that is named."""
    path = write_small_file(tmp_path / "t.arrow")
    path.with_name("manifest.json").write_bytes(b"{\xff")
    assert [problem.where for problem in verify(path).problems] == ["manifest.json"]


def test_long_reports_are_cut(tmp_path: Path) -> None:
    """Fifty problems are enough to read; all are in the list."""
    n = 120
    header = small_header(n, block_sequences=1)
    path = write_small_file(tmp_path / "t.arrow", header)
    data = bytearray(path.read_bytes())
    for body in read_seal(path).bodies:
        data[body.start + SEQ_LEN] ^= 1
    path.write_bytes(data)
    report = verify(path)
    assert len(report.problems) == n
    assert str(report).splitlines()[-1] == "  and 70 more"
