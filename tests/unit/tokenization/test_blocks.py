"""Arrays of a file by map and by positioned reads: the same, also where counts and bytes exceed 32 bits."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tests.token_files import small_block, small_header, write_small_file
from tokenization.blocks import Copied, Mapped, place_of_block
from tokenization.errors import TokenFileError
from tokenization.layout import block_schema
from tokenization.reader import TokenFile
from tokenization.seal import Region, add_seal, read_seal
from tokenization.stream import TokenStream

UINT16, INT32, INT64 = np.dtype(np.uint16), np.dtype(np.int32), np.dtype(np.int64)


@pytest.mark.parametrize("dtype", [UINT16, INT32, INT64])
@pytest.mark.parametrize("kind", ["map", "copy"])
def test_items_behind_the_fourth_billion(kind: str, dtype: np.dtype[np.generic], tmp_path: Path) -> None:
    """A sparse file of 9 thousand million items: single arrays, rows in any order and runs find what was written there."""
    far = 9_000_000_000
    path = tmp_path / "sparse"
    content = np.arange(1, 101).astype(dtype)
    with path.open("wb") as stream:
        stream.truncate((far + 1000) * dtype.itemsize)
        stream.seek(far * dtype.itemsize)
        stream.write(content.tobytes())
    descriptor = os.open(path, os.O_RDONLY)
    try:
        size = path.stat().st_size
        source = Mapped(descriptor, size) if kind == "map" else Copied(descriptor, path)
        assert source.array(dtype, far + 3, 4).tolist() == [4, 5, 6, 7]
        starts = np.array([far, 2**31, far + 10, far + 12, 7, far + 990])
        rows = source.rows(dtype, starts, 2)
        assert rows.tolist() == [[1, 2], [0, 0], [11, 12], [13, 14], [0, 0], [0, 0]]
        assert (rows.dtype, rows.flags.writeable) == (dtype, True)
        runs = source.runs(dtype, np.array([far + 98, 2**32, far]), np.array([3, 1, 2]))
        assert runs.tolist() == [99, 100, 0, 0, 1, 2]
        assert source.rows(dtype, np.zeros(0, np.int64), 5).shape == (0, 5)
        source.release()
    finally:
        os.close(descriptor)


def sparse_token_file(path: Path, blocks: int) -> Path:
    """A file of `blocks` blocks of 16 MB whose tokens and borders are holes; heads, seal and footer are real."""
    header = small_header(blocks * 4096, seq_len=2048, block_sequences=4096)
    schema = block_schema(header)
    template = path.with_name("template")
    one = small_header(4096, seq_len=2048, block_sequences=4096)
    small = small_block(small_header(4096, block_sequences=4096), 0)
    tokens = np.zeros((4096, 2048), one.dtype)
    batch = type(small)(tokens, small.first_piece, small.lengths, small.rows).to_batch(schema)
    with pa.OSFile(str(template), "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
        writer.write_batch(batch)
        end = sink.tell()
    data = template.read_bytes()
    start = 8 + len(schema.serialize())
    message = data[start:end]
    head = message[: 8 + int.from_bytes(message[4:8], "little")]
    regions = []
    with path.open("wb") as stream:
        stream.write(data[:start])
        for number in range(blocks):
            at = start + number * len(message)
            stream.seek(at)
            stream.write(head)
            body = at + len(head)
            digest = hashlib.sha256(head).hexdigest()
            regions.append((Region("head", at, body, digest), Region("body", body, at + len(message), "0" * 64)))
        stream.seek(start + blocks * len(message))
        stream.write(data[end:])
    add_seal(path, regions, start + blocks * len(message))
    return path


@pytest.mark.parametrize("read", ["map", "copy"])
def test_a_file_of_more_than_2_31_tokens(read: str, tmp_path: Path) -> None:
    """2.5 thousand million tokens in a sparse file: rows, batches and streams reach the last block."""
    path = sparse_token_file(tmp_path / "t.arrow", 300)
    last = read_seal(path).bodies[-1].start
    with path.open("rb+") as stream:
        stream.seek(last + 4095 * 4096)  # the last sequence
        stream.write(np.arange(2048, dtype=np.uint16).tobytes())
        stream.seek(last + 4096 * 4096 + 4095 * 4)  # its borders: pieces 0 and 1 of the block
        stream.write(np.array([0, 2], np.int32).tobytes())
        stream.seek(last + 4096 * 4096 + 4097 * 4 + 4)
        stream.write(np.array([100, 1948], np.int32).tobytes())
    file = TokenFile(path, read=read)  # type: ignore[arg-type]
    assert len(file) * 2048 > 2**31
    assert file[-1].tolist() == list(range(2048))
    assert file.__getitems__([0, len(file) - 1])[:, 5].tolist() == [0, 5]
    batch = file.batch([len(file) - 1])
    assert (batch.lengths.tolist(), batch.position_ids[0, 100:102].tolist()) == ([100, 1948], [0, 1])
    stream = TokenStream(file, batch_size=1, seed=1, fields="tokens")
    steps = [step for step in range(0, len(stream), 997) if stream.places(step)[1][0] > 2**20]
    assert all(not stream[step].tokens.any() for step in steps[:20])


def test_a_block_whose_arrays_are_not_in_it(tmp_path: Path) -> None:
    """Compressed, or with an array that its head makes longer than it is: refused by name."""
    path = write_small_file(tmp_path / "t.arrow")
    seal, schema = read_seal(path), block_schema(small_header())
    batch = small_block(small_header(), 0).to_batch(schema)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_batch(batch)
    data = sink.getvalue().to_pybytes()[len(schema.serialize()) :]
    length = 8 + int.from_bytes(data[4:8], "little")
    head, body = Region("head", 0, length, ""), Region("block 0", length, len(data) - 8, "")
    with pytest.raises(TokenFileError, match=r"block 0: (its arrays .* compressed|an array is shorter)"):
        place_of_block(lambda *_: pa.py_buffer(data[:-8]), head, body, schema)
    assert place_of_block(
        lambda head, body: pa.py_buffer(path.read_bytes()[head.start : body.end]), seal.heads[2], seal.bodies[2], schema
    )[4:] == (16, 8)
