"""A file of more than 2^31 tokens: written, opened, verified and read at its end. Takes 4.3 GB of disk for a minute."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tests.token_files import CARD, small_header
from tokenization.layout import Block, Header
from tokenization.reader import TokenFile, verify
from tokenization.token_file import TokenFileWriter

SEQ_LEN, PER_BLOCK = 2048, 4096
SEQUENCES = 2**31 // SEQ_LEN + 5
"""Five sequences beyond: the last block holds them alone."""
NEEDED = 10 * 2**30


def _header() -> Header:
    counts = {"documents": SEQUENCES, "pieces": SEQUENCES, "tokens": SEQUENCES * SEQ_LEN}
    card = dataclasses.replace(CARD, max_id=32_767, vocab_size=32_768)
    return small_header(SEQUENCES, seq_len=SEQ_LEN, block_sequences=PER_BLOCK, tokenizer=card, **counts)


def _tokens(first: int, rows: int, block: np.ndarray) -> np.ndarray:
    """Each sequence begins with its number, as two ids; the rest is the same everywhere."""
    number = np.arange(first, first + rows)
    block[:rows, 0], block[:rows, 1] = number % 30_000 + 2, number // 30_000 + 2
    return block[:rows]


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("large")
    if shutil.disk_usage(folder).free < NEEDED:
        pytest.skip(f"a file of 4.3 GB needs 10 GB of free disk at {folder}")
    path, header = folder / "tokens.arrow", _header()
    block = np.random.default_rng(0).integers(2, 32_768, (PER_BLOCK, SEQ_LEN), np.uint16)
    block[:, -1] = 0
    with TokenFileWriter(path, header) as writer:
        for number in range(header.n_blocks):
            rows, first = header.rows_of_block(number), number * PER_BLOCK
            ones, borders = np.full(rows, SEQ_LEN, np.int32), np.arange(rows + 1, dtype=np.int32)
            writer.write(Block(_tokens(first, rows, block), borders, ones, np.arange(first, first + rows)))
    yield path
    path.unlink()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_more_than_two_thousand_million_tokens(large: Path) -> None:
    """No 32-bit number on the way: size, last rows, batches over both ends, Arrow's own table, every checksum and rule."""
    assert large.stat().st_size > 2**32
    with TokenFile(large) as file:
        assert (len(file), file.metadata.tokens) == (SEQUENCES, 2**31 + 5 * SEQ_LEN)
        numbers = [0, 1, 2**31 // SEQ_LEN - 1, SEQUENCES - 5, SEQUENCES - 1]
        rows = file.batch(numbers)
        found = (rows.tokens[:, 0] - 2) + 30_000 * (rows.tokens[:, 1] - 2)
        assert found.tolist() == numbers
        assert rows.doc_rows.tolist() == numbers
        assert file.documents(-1).rows.tolist() == [SEQUENCES - 1]
        assert file[-1][-1] == file.metadata.tokenizer.eos_id
    before = pa.total_allocated_bytes()
    table = pa.ipc.open_file(pa.memory_map(str(large))).read_all()
    assert len(table) == SEQUENCES
    assert table.column("doc_rows")[SEQUENCES - 1].as_py() == [SEQUENCES - 1]
    assert pa.total_allocated_bytes() - before < 2**20
    report = verify(large)
    assert report.ok, report
    assert report.blocks == 2**31 // SEQ_LEN // PER_BLOCK + 1
