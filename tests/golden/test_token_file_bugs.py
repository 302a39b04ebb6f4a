"""Bugs that other tools had with packed token files (../shared/notes/bug-log.md), each as a law that ours keeps."""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from curation.pack import PackConfig, assemble, encode_shard
from tests.fakes import shard_table
from tests.token_files import (
    CARD,
    RecklessWriter,
    bos_header,
    small_block,
    small_header,
    write_documents,
    write_small_file,
)
from tokenization.errors import TokenFileError
from tokenization.interchange import read_stream_copy, write_stream_copy
from tokenization.layout import Block, Header, block_schema
from tokenization.reader import TokenFile, verify
from tokenization.seal import read_seal
from tokenization.token_file import TokenFileWriter

REPO = Path(__file__).resolve().parents[2]


def test_b148_the_width_of_ids_is_in_the_file(tmp_path: Path) -> None:
    """B148: written with 32 bits and read with 16 is plausible garbage. The width is in the schema, and no reader is told."""
    card = dataclasses.replace(CARD, max_id=70_000, vocab_size=70_001)
    header = small_header(tokenizer=card)
    path = tmp_path / "t.arrow"
    with TokenFileWriter(path, header) as writer:
        for number in range(header.n_blocks):
            block = small_block(header, number)
            block.tokens[0, 0] = 70_000
            writer.write(block)
    file = TokenFile(path, verify="all")
    assert (file[0].dtype, int(file[0][0])) == (np.uint32, 70_000)
    raw = np.memmap(path, file.metadata.dtype, "r", offset=read_seal(path).bodies[0].start, shape=(16, 16))
    assert np.array_equal(raw[3], file[3]), "who maps the file by himself takes the width from the metadata"
    narrow = small_header().to_json()
    with pytest.raises(TokenFileError, match="the columns are not those of the header"):
        Header.from_schema(block_schema(header).with_metadata({b"corpusmill": narrow}), "here")
    with pytest.raises(TokenFileError, match=r"expected .*uint32.*found .*uint16"), TokenFileWriter(path, header) as w:
        w.write(small_block(small_header(), 0))


def test_b155_borders_are_stored(tmp_path: Path) -> None:
    """B155: nothing says where documents end, so attention crosses them. Lengths are in the file: no scan for EOS."""
    file = TokenFile(write_small_file(tmp_path / "t.arrow"))
    assert file.borders(3).tolist() == [0, 5, 12]
    batch = file.batch([3, 4])
    assert batch.cu_seqlens.tolist() == [0, 5, 12, 16, 21, 28, 32]
    assert batch.position_ids[0].tolist() == [*range(5), *range(7), *range(4)]
    assert pq.read_table(write_documents(tmp_path / "d.parquet", small_header())).column("offset").to_pylist()[:2] == [
        0,
        5,
    ]


def test_b157_nothing_kept_is_a_valid_file(tmp_path: Path) -> None:
    """B157: everything filtered gave a file of 0 bytes, and the trainer's memory map raised. Ours opens, with 0 rows."""
    table = shard_table(["all of this", "is dropped"], 0)
    with pa.ipc.new_file(str(tmp_path / "shard.arrow"), table.schema) as writer:
        writer.write_table(table)
    config = PackConfig(seq_len=64)
    encode_shard(tmp_path / "shard.arrow", [False, False], tmp_path / "part.arrow", config)
    assemble([tmp_path / "part.arrow"], pack_folder=tmp_path / "pack", config=config, run_id="run", config_digest="0")
    path = tmp_path / "pack/tokens.arrow"
    assert path.stat().st_size > 1_000
    assert (len(TokenFile(path, verify="all")), verify(path).documents_checked) == (0, True)
    assert pa.ipc.open_file(pa.memory_map(str(path))).read_all().num_rows == 0


def _compress(path: Path, codec: str) -> None:
    table = pa.ipc.open_file(pa.BufferReader(path.read_bytes())).read_all()
    with pa.ipc.new_file(str(path), table.schema, options=pa.ipc.IpcWriteOptions(compression=codec)) as writer:
        writer.write_table(table, max_chunksize=16)


@pytest.mark.parametrize("codec", ["lz4", "zstd"])
def test_b159_a_compressed_file_is_refused(codec: str, tmp_path: Path) -> None:
    """B159: a compressed file maps without a word and is copied whole into every process. Refused; ours allocates nothing."""
    path = write_small_file(tmp_path / "t.arrow", small_header(4_000, block_sequences=500))
    before = pa.total_allocated_bytes()
    file = TokenFile(path)
    assert sum(int(file[i][0]) for i in range(0, 4_000, 100)) > 0
    assert pa.total_allocated_bytes() == before
    _compress(path, codec)
    with pytest.raises(TokenFileError, match="written again by another program"):
        TokenFile(path)
    assert not verify(path).ok


def test_b159_compressed_under_a_good_seal_is_refused_too(tmp_path: Path) -> None:
    """A writer that compresses and seals: named by verify and by the reader."""

    class Compressing(RecklessWriter):
        def __init__(self, path: Path, header: Header) -> None:
            super().__init__(path, header)
            self._writer.close()
            self._sink.close()
            self._sink = pa.OSFile(str(path), "wb")
            options = pa.ipc.IpcWriteOptions(compression="zstd")
            self._writer = pa.ipc.new_file(self._sink, self._schema, options=options)

    header = small_header(16, seq_len=4096, tokens=12 * 16)
    tokens = np.full((16, 4096), 1, np.uint16)
    tokens[:, :12] = small_block(small_header(), 0).tokens[:, :12]
    path = tmp_path / "t.arrow"
    with Compressing(path, header) as writer:
        writer.write(dataclasses.replace(small_block(small_header(), 0), tokens=tokens))
    assert [(problem.where, problem.what) for problem in verify(path).problems] == [
        ("block 0", "it is compressed, which no token file is")
    ]
    with pytest.raises(TokenFileError, match="compressed"):
        TokenFile(path)[0]


def test_b160_a_killed_writer_leaves_nothing_that_looks_whole(tmp_path: Path) -> None:
    """B160: cut at half is no file, cut behind a block looks complete as a stream. Both are refused, file and stream copy."""
    path = write_small_file(tmp_path / "t.arrow")
    write_stream_copy(path, tmp_path / "s.arrow")
    data, stream, bodies = path.read_bytes(), (tmp_path / "s.arrow").read_bytes(), read_seal(path).bodies
    for end in (len(data) // 2, bodies[0].end, bodies[1].end, bodies[2].end):
        path.write_bytes(data[:end])
        with pytest.raises(TokenFileError, match="cut"):
            TokenFile(path)
        assert not verify(path).ok
        (tmp_path / "s.arrow").write_bytes(stream[: end - 8])
        with pytest.raises(TokenFileError, match=r"cut|cannot be read"):
            read_stream_copy(tmp_path / "s.arrow")


def test_b160_a_writer_that_is_killed(tmp_path: Path) -> None:
    """The real thing: SIGKILL after one of three blocks. What lies there has no seal."""
    code = (
        "import os, sys; from pathlib import Path; from tests.token_files import *\n"
        "w = TokenFileWriter(Path(sys.argv[1]), small_header()); w.write(small_block(small_header(), 0)); os.kill(os.getpid(), 9)"
    )
    path = tmp_path / "t.arrow"
    done = subprocess.run([sys.executable, "-c", code, str(path)], cwd=REPO, check=False, timeout=120, env=os.environ)
    assert done.returncode == -signal.SIGKILL
    with pytest.raises(TokenFileError, match=r"cut|empty"):
        TokenFile(path)
    assert not verify(path).ok


def test_b163_another_byte_order_is_refused(tmp_path: Path) -> None:
    """B163: raw ids of a big-endian machine are read wrongly without a word. No header, no reading; a header says its order."""
    raw = tmp_path / "ids.bin"
    np.arange(10_000, dtype=">u2").tofile(raw)
    with pytest.raises(TokenFileError, match="does not begin with ARROW1"):
        TokenFile(raw)
    foreign = small_header().to_json().replace('"byte_order":"little"', '"byte_order":"big"')
    with pytest.raises(TokenFileError, match="byte order 'big'"):
        Header.from_schema(block_schema(small_header()).with_metadata({b"corpusmill": foreign}), "here")


def test_b165_more_rows_promised_than_there_are(tmp_path: Path) -> None:
    """B165: an index of 1,000 rows over a file of 900 fails deep in training. Found when opening, with both numbers."""
    counts = {"documents": 2_000, "pieces": 2_000, "tokens": 12_000, "block_sequences": 100}
    path = tmp_path / "t.arrow"
    whole = small_header(900, block_sequences=100)
    with RecklessWriter(path, small_header(1_000, **counts)) as writer:
        for number in range(9):
            writer.write(small_block(whole, number))
    with pytest.raises(TokenFileError, match=r"promises 1000 sequences.*900"):
        TokenFile(path)
    assert "10 blocks and 2000 pieces are promised, in 9 blocks" in str(verify(path))
    # Within the last block too, where the number of blocks is right.
    with RecklessWriter(path, small_header(900, block_sequences=100)) as writer:
        for number in range(8):
            writer.write(small_block(whole, number))
        writer.header = dataclasses.replace(writer.header, sequences=899)  # past the check of the shape
        last = small_block(whole, 8)
        writer.write(Block(last.tokens[:99], last.first_piece[:100], last.lengths[:198], last.rows[:198]))
    with pytest.raises(TokenFileError, match=r"promises 900 sequences.*899"):
        TokenFile(path)
    assert "block 8: 99 sequences where the header promises 100" in str(verify(path))


def test_b167_verify_names_file_and_row(tmp_path: Path) -> None:
    """B167: index and data disagree by one row in one shard, and the error names neither. Ours names the table and the row."""
    header = bos_header(400, block_sequences=100)
    path = write_small_file(tmp_path / "t.arrow", header)
    table = write_documents(tmp_path / "documents.parquet", header)
    assert verify(path).ok
    rows = pq.read_table(table)
    pq.write_table(pa.concat_tables([rows, rows.slice(599)]), table)
    assert "documents.parquet: has 601 rows, but the file 600 documents" in str(verify(path))
    write_documents(table, header, sequence=(350, 235), last_sequence=(350, 235))
    wrong, right = "4 tokens in sequence 235 at 8", "4 tokens in sequence 233 at 8"
    expected = f"documents.parquet: row 350: the table says {wrong}; the token file holds {right}"
    assert expected in str(verify(path))
