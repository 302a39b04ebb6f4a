"""Other programs read the same values out of a token file, and nothing that is cut or damaged passes as whole."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.feather as feather
import pytest

from tests.token_files import SEQ_LEN, small_block, small_header, write_small_file
from tokenization.errors import TokenFileError
from tokenization.interchange import read_stream_copy, table_of, to_hf, write_stream_copy
from tokenization.seal import read_seal

datasets = pytest.importorskip("datasets")

TOKENS = np.concatenate([small_block(small_header(), i).tokens for i in range(3)])
ROWS = [[2 * i, 2 * i + 1] for i in range(40)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write_small_file(tmp_path / "tokens.arrow")


def _same(table: pa.Table) -> bool:
    """Whether an Arrow table holds what was written, with the width that it was written in."""
    tokens = table.column("tokens").combine_chunks()
    values = tokens.flatten().to_numpy()
    return bool(
        values.dtype == np.uint16
        and np.array_equal(values.reshape(-1, SEQ_LEN), TOKENS)
        and table.column("doc_lengths").to_pylist() == [[5, 7]] * 40
        and table.column("doc_rows").to_pylist() == ROWS
    )


def test_pyarrow_reads_it(path: Path) -> None:
    """As a file, as a stream of batches behind the magic, as a data set, and as feather."""
    assert _same(pa.ipc.open_file(pa.memory_map(str(path))).read_all())
    assert _same(pads.dataset(path, format="ipc").to_table())
    assert _same(feather.read_table(path))
    assert pads.dataset(path, format="ipc").to_table(columns=["doc_rows"]).num_rows == 40


def test_polars_reads_it(path: Path) -> None:
    """Eagerly and lazily; ids stay 16 bits wide."""
    for frame in (pl.read_ipc(path), pl.scan_ipc(path).collect()):
        assert frame.schema["tokens"] == pl.Array(pl.UInt16, SEQ_LEN)
        assert np.array_equal(frame["tokens"].to_numpy(), TOKENS)
        assert frame["doc_rows"].to_list() == ROWS
    assert pl.scan_ipc(path).slice(17, 1).collect()["doc_rows"].to_list() == [[34, 35]]


def test_duckdb_reads_it_through_pyarrow(path: Path) -> None:
    """A mapped table by its name in a query."""
    tokens = table_of(path)
    assert len(tokens) == 40
    kind, largest = duckdb.sql(
        "select typeof(tokens) as t, max(list_max(tokens)) as m from tokens group by t"
    ).fetchall()[0]
    assert (kind, largest) == (f"USMALLINT[{SEQ_LEN}]", int(TOKENS.max()))
    found = duckdb.sql("select tokens from tokens where list_contains(doc_rows, 35)").fetchall()
    assert np.array_equal(np.array(found[0][0]), TOKENS[17])


def test_hugging_face_reads_it(path: Path) -> None:
    """`to_hf`, `load_dataset` (which writes it again) and `Dataset.from_file` on a stream copy."""
    made = to_hf(path)
    loaded = datasets.load_dataset("arrow", data_files=str(path), split="train", cache_dir=str(path.parent / "cache"))
    write_stream_copy(path, path.with_name("stream.arrow"))
    streamed = datasets.Dataset.from_file(str(path.with_name("stream.arrow")))
    for data in (made, loaded, streamed):
        assert data.features["tokens"].feature.dtype == "uint16"
        assert _same(data.with_format("arrow")[:])
        assert data[17]["doc_rows"] == [34, 35]
    row = made.with_format("numpy", dtype=np.uint16)[17]["tokens"]
    assert row.dtype == np.uint16
    assert np.array_equal(row, TOKENS[17])


def test_to_hf_copies_nothing(tmp_path: Path) -> None:
    """Memory does not grow with the file; nor does a pickle."""
    header = small_header(4_000, block_sequences=500)
    path = write_small_file(tmp_path / "t.arrow", header)
    before = pa.total_allocated_bytes()
    data = to_hf(path)
    assert pa.total_allocated_bytes() - before < 2_000
    assert len(pickle.dumps(data)) < 4_000


def _first_rows(data: Any) -> list[list[int]]:
    return [data[i]["doc_rows"] for i in range(3)]


def test_it_pickles_as_its_path_whatever_was_done_to_it(path: Path) -> None:
    """Also selected, renamed, shuffled, joined and copied."""
    data = to_hf(path)
    changed = [
        data,
        data.select(range(3, 20)),
        data.remove_columns(["doc_lengths"]).rename_column("tokens", "input_ids"),
        data.select_columns(["doc_rows"]),
        data.shuffle(seed=1),
        data.train_test_split(test_size=0.25, seed=1)["test"],
        datasets.concatenate_datasets([data, data]),
        copy.deepcopy(data),
        data.with_format("numpy"),
    ]
    for one in changed:
        text = pickle.dumps(one)
        assert len(text) < 5_000
        assert _first_rows(pickle.loads(text).with_format(None)) == _first_rows(one.with_format(None))


@pytest.mark.slow
def test_spawned_workers_read_a_hugging_face_dataset(path: Path) -> None:
    """From its pickle, in a process that knows nothing."""
    data = to_hf(path)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.map(_first_rows, [data, data.select(range(3, 20))]) == [ROWS[:3], ROWS[3:6]]


def test_a_pickle_of_another_file_is_refused(path: Path) -> None:
    """A file that was replaced is named when the pickle is loaded."""
    text = pickle.dumps(to_hf(path))
    write_small_file(path, small_header(run_id="another"))
    with pytest.raises(TokenFileError, match="was replaced by another one"):
        pickle.loads(text)


def test_an_empty_file(tmp_path: Path) -> None:
    """No sequences: tables with no rows, in every way."""
    path = write_small_file(tmp_path / "t.arrow", small_header(0))
    write_stream_copy(path, tmp_path / "s.arrow")
    lengths = [
        len(table_of(path)),
        len(to_hf(path)),
        len(read_stream_copy(tmp_path / "s.arrow")),
        len(pl.read_ipc(path)),
    ]
    assert lengths == [0, 0, 0, 0]


def test_a_stream_copy_is_the_same_table(path: Path, tmp_path: Path) -> None:
    """Any stream reader reads it, and nothing else is left in the folder."""
    out = tmp_path / "out" / "stream.arrow"
    out.parent.mkdir()
    assert write_stream_copy(path, out) == small_header()
    assert _same(read_stream_copy(out))
    assert _same(pa.ipc.open_stream(pa.memory_map(str(out))).read_all())
    assert np.array_equal(pl.read_ipc_stream(out)["tokens"].to_numpy(), TOKENS)
    assert [p.name for p in out.parent.iterdir()] == ["stream.arrow"]


def test_a_stream_that_is_cut_is_refused(path: Path, tmp_path: Path) -> None:
    """Anywhere: also behind a block, where Arrow itself sees nothing, and just before the end mark."""
    seal = read_seal(path)
    whole = tmp_path / "whole.arrow"
    write_stream_copy(path, whole)
    data, cut = whole.read_bytes(), tmp_path / "cut.arrow"
    borders = [body.end - 8 for body in seal.bodies]
    cut.write_bytes(data[: borders[0]])
    assert pa.ipc.open_stream(pa.memory_map(str(cut))).read_all().num_rows == 16
    for end in sorted({*borders, *(b + 4 for b in borders), *range(0, len(data), 97), len(data) - 1}):
        cut.write_bytes(data[:end])
        with pytest.raises(TokenFileError, match=r"cut|cannot be read"):
            read_stream_copy(cut)
    cut.write_bytes(data[: borders[1]] + data[-8:])
    with pytest.raises(TokenFileError, match="32 sequences where the header promises 40: it is cut"):
        read_stream_copy(cut)


def test_a_damaged_file_is_not_copied(path: Path, tmp_path: Path) -> None:
    """The block is named, and neither the copy nor its beginning is left."""
    body = read_seal(path).bodies[1]
    data = bytearray(path.read_bytes())
    data[body.start + 5] ^= 1
    path.write_bytes(data)
    with pytest.raises(TokenFileError, match=r"block 1: bytes .*SHA-256 differs"):
        write_stream_copy(path, tmp_path / "s.arrow")
    assert [p.name for p in tmp_path.iterdir()] == [path.name]
    assert len(to_hf(path)) == 40


def test_damage_where_arrow_parses_is_refused(path: Path) -> None:
    """Heads of all blocks are checked before a table is made of them."""
    head = read_seal(path).heads[2]
    data = bytearray(path.read_bytes())
    data[head.start + 30] ^= 1
    path.write_bytes(data)
    for make in (table_of, to_hf):
        with pytest.raises(TokenFileError, match=r"block 2 \(head\)"):
            make(path)


def test_what_is_no_token_file_is_named(tmp_path: Path) -> None:
    """Another program's stream, and a missing file."""
    with pa.ipc.new_stream(str(tmp_path / "s"), pa.schema([("a", pa.int32())])) as writer:
        writer.write_batch(pa.record_batch({"a": pa.array([1], pa.int32())}))
    with pytest.raises(TokenFileError, match="no token file of corpusmill"):
        read_stream_copy(tmp_path / "s")
    with pytest.raises(FileNotFoundError):
        to_hf(tmp_path / "missing")


def test_the_stream_copy_needs_pyarrow_and_numpy_only() -> None:
    """`datasets` is imported by `to_hf` alone."""
    code = "import sys, tokenization.interchange; print('datasets' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60)
    assert done.stdout == "False\n"
