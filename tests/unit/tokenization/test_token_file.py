"""What lies on disk: a plain Arrow file that other readers map without a copy, the same bytes each time."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tests.token_files import CARD, SEQ_LEN, small_block, small_header, write_small_file
from tokenization.errors import TokenFileError
from tokenization.layout import Block
from tokenization.seal import read_seal
from tokenization.token_file import TokenFileWriter


def test_pyarrow_maps_it_without_a_copy(tmp_path: Path) -> None:
    """Three record batches of fixed-size lists, no compression, nothing allocated, aligned to a page."""
    path = write_small_file(tmp_path / "t.arrow")
    before = pa.total_allocated_bytes()
    reader = pa.ipc.open_file(pa.memory_map(str(path)))
    batches = [reader.get_batch(i) for i in range(reader.num_record_batches)]
    values = [batch.column("tokens").values.to_numpy(zero_copy_only=True) for batch in batches]
    assert pa.total_allocated_bytes() == before
    assert [batch.num_rows for batch in batches] == [16, 16, 8]
    assert [v.ctypes.data % 4096 for v in values] == [0, 0, 0]
    assert reader.schema.field("tokens").type == pa.list_(pa.field("token", pa.uint16(), nullable=False), SEQ_LEN)
    expected = np.concatenate([small_block(small_header(), i).tokens.reshape(-1) for i in range(3)])
    assert np.array_equal(np.concatenate(values), expected)
    assert all(batch.validate(full=True) is None for batch in batches)


def test_a_table_reads_as_any_arrow_file(tmp_path: Path) -> None:
    """read_all sees rows, lists and metadata; the seal is in nobody's way."""
    table = pa.ipc.open_file(pa.memory_map(str(write_small_file(tmp_path / "t.arrow")))).read_all()
    assert (table.num_rows, table.column_names) == (40, ["tokens", "doc_lengths", "doc_rows"])
    assert table.column("doc_lengths")[17].as_py() == [5, 7]
    assert table.column("doc_rows")[17].as_py() == [34, 35]


def test_the_bytes_are_a_function_of_the_content(tmp_path: Path) -> None:
    """Written twice, the files are equal; another run id makes another file."""
    first, second = write_small_file(tmp_path / "a"), write_small_file(tmp_path / "b")
    other = write_small_file(tmp_path / "c", small_header(run_id="other"))
    assert first.read_bytes() == second.read_bytes() != other.read_bytes()


def test_no_sequences_make_a_valid_file(tmp_path: Path) -> None:
    """Everything filtered away: a file with a schema, a seal and no blocks, never a file of 0 bytes."""
    path = write_small_file(tmp_path / "t.arrow", small_header(0))
    reader = pa.ipc.open_file(pa.memory_map(str(path)))
    assert (reader.num_record_batches, reader.read_all().num_rows) == (0, 0)
    assert read_seal(path).heads == ()


@pytest.mark.parametrize("seq_len", [2, 3, 7, 31, 32, 100, 2048])
@pytest.mark.parametrize("max_id", [99, 70_000])
def test_every_shape_is_aligned(seq_len: int, max_id: int, tmp_path: Path) -> None:
    """Whatever the length and width, the tokens of each block begin at a multiple of 4,096 bytes."""
    n = 13
    card = dataclasses.replace(CARD, max_id=max_id)
    changes = {"seq_len": seq_len, "tokenizer": card, "block_sequences": 5, "run_id": "r" * seq_len}
    header = small_header(n, documents=n, tokens=n * seq_len, pieces=n, **changes)
    path = tmp_path / "t.arrow"
    with TokenFileWriter(path, header) as writer:
        for number in range(header.n_blocks):
            rows = header.rows_of_block(number)
            tokens = np.full((rows, seq_len), max_id, header.dtype)
            tokens[:, -1] = 0
            borders, lengths = np.arange(rows + 1, dtype=np.int32), np.full(rows, seq_len, np.int32)
            writer.write(Block(tokens, borders, lengths, np.arange(rows) + 5 * number))
    assert [body.start % 4096 for body in read_seal(path).bodies] == [0, 0, 0]
    table = pa.ipc.open_file(pa.memory_map(str(path))).read_all()
    assert table.column("tokens").to_pylist() == [[max_id] * (seq_len - 1) + [0]] * n


def _bad_id(block: Block) -> Block:
    block.tokens[0, 0] = 100
    return block


def _wide(block: Block) -> Block:
    return dataclasses.replace(block, tokens=block.tokens.astype(np.uint32))


def _short(block: Block) -> Block:
    return Block(block.tokens[:4], block.first_piece[:5], block.lengths[:8], block.rows[:8])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_bad_id, "block 0: token id 100 is outside the vocabulary"),
        (_wide, "block 0: expected .*uint16.*found .*uint32"),
        (_short, "block 0: expected .*16, 16.*found .*4, 16"),
    ],
)
def test_a_block_that_breaks_a_rule_is_not_written(change: Callable[[Block], Block], message: str, tmp_path) -> None:
    """A wrong id, another width (which would wrap without a word), a block that is not full."""
    header = small_header()
    with pytest.raises(TokenFileError, match=message), TokenFileWriter(tmp_path / "t.arrow", header) as writer:
        writer.write(change(small_block(header, 0)))


def test_a_file_that_is_not_as_promised_is_not_sealed(tmp_path: Path) -> None:
    """Blocks missing, or too many: an error with both numbers, and no seal."""
    header = small_header()
    path = tmp_path / "t.arrow"
    with (
        pytest.raises(TokenFileError, match=r"promises .*'blocks': 3.*'blocks': 1"),
        TokenFileWriter(path, header) as w,
    ):
        w.write(small_block(header, 0))
    with pytest.raises(TokenFileError, match="no seal"):
        read_seal(path)
    with pytest.raises(TokenFileError, match="block 3: expected"), TokenFileWriter(path, header) as w:
        for number in (0, 1, 2, 2):
            w.write(small_block(header, number))


def test_an_error_inside_leaves_the_file_unsealed(tmp_path: Path) -> None:
    """The error of the block of code comes through, and what lies there is no token file."""
    path = tmp_path / "t.arrow"
    with pytest.raises(KeyError, match="mine"), TokenFileWriter(path, small_header()):
        raise KeyError("mine")
    with pytest.raises(TokenFileError):
        read_seal(path)
