"""Reports name what is wrong and where; a good file is good."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.token_files import (
    SEQ_LEN,
    RecklessWriter,
    bos_header,
    small_block,
    small_header,
    write_documents,
    write_recklessly,
    write_small_file,
)
from tokenization.layout import Block, Header
from tokenization.reader import verify
from tokenization.seal import read_seal
from tokenization.shuffle import Permutation
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


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"tokens": 481}, "480 tokens, but the header says 481"),
        ({"pieces": 81}, "80 pieces, but the header says 81"),
        ({"documents": 90, "pieces": 90}, "80 end-of-document tokens, but the header says 90 documents"),
        (
            {"documents": 90, "pieces": 90},
            "80 documents have an end-of-document token, but the header says 90: row 80 has none",
        ),
    ],
)
def test_counts_that_do_not_add_up(changes: dict[str, int], fault: str, tmp_path: Path) -> None:
    """The header's counts are compared with the content."""
    report = verify(write_recklessly(tmp_path / "t.arrow", small_header(**changes)))
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
        (_two_of_one, "counts", "79 documents have an end-of-document token, but the header says 80: row 35 has none"),
    ],
)
def test_content_that_breaks_the_rules(change: Any, where: str, fault: str, tmp_path: Path) -> None:
    """Checksums that fit do not make a wrong block right."""
    report = verify(write_recklessly(tmp_path / "t.arrow", small_header(), change))
    assert [problem.where for problem in report.problems] == [where]
    assert fault in report.problems[0].what


def _manifest(path: Path, **files: Any) -> None:
    text = json.dumps({"files": {"t.arrow": {"seal": read_seal(path).sha256}, **files}})
    path.with_name("manifest.json").write_text(text, encoding="utf-8")


def test_the_manifest_beside_it(tmp_path: Path) -> None:
    """It must speak about this file, say its counts, and the document table must be the one that it names."""
    path = write_small_file(tmp_path / "t.arrow")
    table = write_documents(tmp_path / "documents.parquet", small_header())
    _manifest(
        path,
        **{"documents.parquet": {"sha256": hashlib.sha256(table.read_bytes()).hexdigest()}, "gone": {"sha256": "0"}},
    )
    assert verify(path).ok
    write_documents(table, small_header(), id=["x"] * 80)
    assert [problem.where for problem in verify(path).problems] == ["documents.parquet"]
    table.unlink()
    write_small_file(path, small_header(run_id="another"))
    assert [problem.where for problem in verify(path).problems] == ["manifest.json"]


def test_the_manifest_says_the_same_counts(tmp_path: Path) -> None:
    """A count that differs is named with both numbers."""
    path = write_small_file(tmp_path / "t.arrow")
    manifest = {"files": {"t.arrow": {"seal": read_seal(path).sha256}}, "tokens": 481, "documents": 80}
    path.with_name("manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    assert [(p.where, p.what) for p in verify(path).problems] == [("manifest.json", "says 481 tokens, the file 480")]


@pytest.mark.parametrize("header", [small_header(), bos_header()])
def test_every_piece_lies_where_the_table_says(header: Header, tmp_path: Path) -> None:
    """A table beside the file is compared with it piece by piece, also of documents that were cut."""
    path = write_small_file(tmp_path / "t.arrow", header)
    assert not verify(path).documents_checked
    write_documents(tmp_path / "documents.parquet", header)
    report = verify(path)
    assert report.ok, report
    assert report.documents_checked
    assert str(report).splitlines()[-1].endswith("every piece lies where documents.parquet says")


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"offset": (3, 1)}, "row 3 has places that do not hold its n_tokens"),
        ({"offset": (4, 4)}, "row 4: the table says 12 tokens in sequence 2 at 4"),
        (
            {"n_tokens": (3, 4)},
            "row 3: the table says 4 tokens in sequence 2 at 0; the token file holds 5 tokens in sequence 2 at 0",
        ),
        ({"sequence": (5, 40)}, r"row 5 has a sequence outside 0 .. 39"),
        ({"last_offset": (5, 16)}, r"row 5 has a last_offset outside 0 .. 15"),
        (
            {"sequence": (5, 7), "last_sequence": (5, 7)},
            "row 5: the table says 4 tokens in sequence 7 at 8; .*sequence 3 at 8",
        ),
        ({"pieces": (4, 1)}, "row 4 has places that do not hold its n_tokens"),
        ({"pieces": (4, 3)}, "row 4 has places that do not hold its n_tokens"),
        ({"pieces": (4, 0)}, r"row 4 has a pieces outside 1 .. 40"),
        ({"n_tokens": (4, 18)}, "row 4: the table says 7 tokens in sequence 3 at 0; the token file holds 8 tokens"),
        ({"row": (7, 8)}, "row 7 is not numbered as its place in the table"),
    ],
)
def test_a_table_that_is_wrong_is_named_by_row(changes: dict[str, Any], fault: str, tmp_path: Path) -> None:
    """Every column that says where a document lies is held to the file."""
    header = bos_header()
    path = write_small_file(tmp_path / "t.arrow", header)
    write_documents(tmp_path / "documents.parquet", header, **changes)
    problems = verify(path).problems
    assert [problem.where for problem in problems] == ["documents.parquet"]
    assert re.search(fault, problems[0].what), problems[0].what


def _write_shuffled(folder: Path, seed: int, stated_seed: int) -> Path:
    """Documents of up to 90 tokens in a row, cut into sequences of 16 that lie in shuffled order; with their table."""
    lengths = np.random.default_rng(1).integers(1, 90, 60)
    total = int(lengths.sum())
    n = -(-total // SEQ_LEN)
    order = Permutation(n, seed)
    stream = np.full(n * SEQ_LEN, 1, np.uint16)
    stream[:total] = 5
    ends = np.cumsum(lengths)
    stream[ends - 1] = 0
    owner = np.full(n * SEQ_LEN, -1)
    owner[:total] = np.repeat(np.arange(60), lengths)
    first, last = ends - lengths, (ends - 1) // SEQ_LEN
    pieces = last - first // SEQ_LEN + 1
    offset = first % SEQ_LEN
    columns = {
        "row": np.arange(60),
        "n_tokens": lengths,
        "sequence": order.many(first // SEQ_LEN),
        "offset": offset,
        "pieces": pieces,
        "last_sequence": order.many(last),
        "last_offset": np.where(pieces > 1, 0, offset),
    }
    pq.write_table(pa.table(columns), folder / "documents.parquet")
    planned = order.inverse_many(np.arange(n))
    counts = [np.unique(row[row >= 0], return_counts=True) for row in owner.reshape(n, SEQ_LEN)[planned]]
    borders = np.concatenate([[0], np.cumsum([len(rows) for rows, _ in counts])]).astype(np.int32)
    block = Block(
        stream.reshape(n, SEQ_LEN)[planned],
        borders,
        np.concatenate([c for _, c in counts]).astype(np.int32),
        np.concatenate([rows for rows, _ in counts]),
    )
    settings = {
        "documents": 60,
        "tokens": total,
        "pieces": int(borders[-1]),
        "block_sequences": n,
        "strategy": "concat",
    }
    with TokenFileWriter(folder / "tokens.arrow", small_header(n, shuffle_seed=stated_seed, **settings)) as writer:
        writer.write(block)
    return folder / "tokens.arrow"


def test_pieces_of_a_shuffled_file_are_found_by_its_seed(tmp_path: Path) -> None:
    """The table says where the first and the last piece lie, the seed where those between do."""
    report = verify(_write_shuffled(tmp_path, 7, 7))
    assert report.ok, report
    assert report.documents_checked
    problems = verify(_write_shuffled(tmp_path, 7, 8)).problems
    assert [problem.where for problem in problems] == ["documents.parquet"]
    assert re.match("row [0-9]+", problems[0].what)


def _cut_short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:200])


def _one_row_less(path: Path) -> None:
    table = pq.read_table(path)
    pq.write_table(table.slice(1), path)


def _no_places(path: Path) -> None:
    pq.write_table(pq.read_table(path).drop(["sequence"]), path)


def _of_words(path: Path) -> None:
    table = pq.read_table(path)
    pq.write_table(table.set_column(table.column_names.index("offset"), "offset", pa.array(["0"] * len(table))), path)


def _with_nulls(path: Path) -> None:
    table = pq.read_table(path)
    pq.write_table(
        table.set_column(table.column_names.index("offset"), "offset", pa.array([None] * len(table), pa.int64())), path
    )


@pytest.mark.parametrize(
    ("harm", "fault"),
    [
        (_cut_short, "cannot be read"),
        (_one_row_less, "has 79 rows, but the file 80 documents"),
        (_no_places, "has no column sequence"),
        (_of_words, "rows 0 to 79: there are places that are no whole numbers"),
        (_with_nulls, "rows 0 to 79: there are places that are no whole numbers"),
    ],
)
def test_a_table_that_is_none_is_named(harm: Callable[[Path], None], fault: str, tmp_path: Path) -> None:
    """Cut, of another file, with other columns: a problem, no exception."""
    path = write_small_file(tmp_path / "t.arrow")
    harm(write_documents(tmp_path / "documents.parquet", small_header()))
    assert [(p.where, p.what.split(":")[0]) for p in verify(path).problems] == [
        ("documents.parquet", fault.split(":")[0])
    ]


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_threads_change_nothing(threads: int, tmp_path: Path) -> None:
    """Problems come in the order of blocks, whoever finds them first."""
    path = write_small_file(tmp_path / "t.arrow", small_header(200, block_sequences=3))
    data = bytearray(path.read_bytes())
    bodies = read_seal(path).bodies
    for number in (60, 3, 41):
        data[bodies[number].start] ^= 1
    path.write_bytes(data)
    report = verify(path, threads=threads)
    assert [problem.where for problem in report.problems] == ["block 3", "block 41", "block 60"]
    assert report.blocks == 67


def test_a_header_that_promises_more_than_the_file_can_hold(tmp_path: Path) -> None:
    """Counts of a hand-made header become no sizes in memory: they are compared with the bytes first."""
    header = small_header(documents=10**12, pieces=10**12, tokens=10**12, sequences=10**12)
    with RecklessWriter(tmp_path / "t.arrow", header) as writer:
        writer.write(small_block(small_header(), 0))
    assert "blocks and 1000000000000 pieces are promised" in str(verify(tmp_path / "t.arrow"))


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


@pytest.mark.parametrize("name", ["", ".", "a" * 300])
def test_a_manifest_may_name_anything(name: str, tmp_path: Path) -> None:
    """A name that no file can have is a problem of the manifest, and no crash."""
    path = write_small_file(tmp_path / "t.arrow")
    _manifest(path, **{name: {"sha256": "0"}})
    assert [problem.where for problem in verify(path).problems] == ["manifest.json"]


def test_a_piece_that_the_table_promises_twice(tmp_path: Path) -> None:
    """A document of two pieces at one place: as a set they are what the file holds, and still not the same."""
    header = small_header(2, documents=2, tokens=2 * SEQ_LEN, pieces=2)
    tokens = np.full((2, SEQ_LEN), 5, header.dtype)
    tokens[:, -1] = header.tokenizer.eos_id
    lengths = np.full(2, SEQ_LEN, np.int32)
    with TokenFileWriter(tmp_path / "t.arrow", header) as writer:
        writer.write(Block(tokens, np.arange(3, dtype=np.int32), lengths, np.arange(2)))
    columns = {"row": [0, 1], "n_tokens": [2 * SEQ_LEN, SEQ_LEN], "pieces": [2, 1], "offset": [0, 0]}
    places = {"sequence": [0, 1], "last_sequence": [0, 1], "last_offset": [0, 0]}
    pq.write_table(pa.table({**columns, **places}), tmp_path / "documents.parquet")
    (problem,) = verify(tmp_path / "t.arrow").problems
    assert problem.where == "documents.parquet"
    assert problem.what.startswith("row 0: the table says 16 tokens in sequence 0 at 0; ")
