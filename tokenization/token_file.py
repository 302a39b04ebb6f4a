"""Writes a token file: an uncompressed Arrow IPC file in blocks of 16 MB, sealed block by block.

Costs the memory of one block, whatever the size of the file. Every block is checked against the header
before it is written, and read back from the file for its checksum. Bytes are a function of the header
and the blocks alone.
"""

from __future__ import annotations

import os
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType

import numpy as np
import pyarrow as pa

from tokenization.errors import TokenFileError
from tokenization.layout import Block, Header, block_schema
from tokenization.rules import Checked, check_block, header_faults
from tokenization.seal import Region, Seal, add_seal, hash_block

__all__ = ["TokenFileWriter"]

ALIGNMENT = 4096
"""The tokens of every block begin at a multiple of this many bytes, a page of memory: a row of 4 kB then lies in one page and
not across two, which is worth a tenth in reading at random. Costs 2 kB of 16 MB."""


class TokenFileWriter:
    """Writes the blocks of one token file in order; a context manager that seals the file when it ends well.

    Every block must hold `header.block_sequences` sequences, the last one what is left.
    """

    def __init__(self, path: Path, header: Header, *, threads: int = 1) -> None:
        """
        Args:
            threads: more than 1: checksums are counted in a second thread, beside the writing of the next blocks.
        """
        self.path = path
        self.header = header
        self.seal: Seal | None = None
        faults = header_faults(header)
        if faults:
            raise TokenFileError(f"{path}: the header cannot be true: {'; '.join(faults)}.")
        self._schema = block_schema(header)
        self._sink = pa.OSFile(str(path), "wb")
        self._writer = pa.ipc.new_file(self._sink, self._schema)
        self._descriptor = os.open(path, os.O_RDONLY)
        self._hashing = ThreadPoolExecutor(1, thread_name_prefix="hash") if threads > 1 else None
        self._blocks: list[Future[tuple[Region, Region]]] = []
        # Arrow writes the magic and the schema with the first block.
        self._position = 8 + len(self._schema.serialize())
        self._head_bytes = _head_bytes(self._schema, header)
        self._tokens = self._pieces = self._ends = self._begins = 0

    def __enter__(self) -> TokenFileWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._writer.close()
            self._sink.close()
            if kind is None:
                self._finish()
        finally:
            if self._hashing is not None:
                self._hashing.shutdown(cancel_futures=True)
            os.close(self._descriptor)

    def write(self, block: Block) -> None:
        """Write the next block.

        Raises:
            TokenFileError: the block breaks a rule of the file; nothing of it is written.
        """
        number = len(self._blocks)
        where = f"{self.path}, block {number}"
        rows = self.header.rows_of_block(number)
        expected = (self.header.dtype, (rows, self.header.seq_len))
        if rows < 1 or (block.tokens.dtype, block.tokens.shape) != expected:
            raise TokenFileError(f"{where}: expected {expected}, found {(block.tokens.dtype, block.tokens.shape)}.")
        checked = self._checked(block, where)
        start = self._position
        self._writer.write_batch(block.to_batch(self._schema), custom_metadata=self._block_metadata(number, start))
        self._position = self._sink.tell()
        self._blocks.append(self._hash(start, self._position))
        self._tokens += int(block.lengths.sum(dtype=np.int64))
        self._pieces += len(block.lengths)
        self._ends += int(np.count_nonzero(checked.ends))
        self._begins += 0 if checked.begins is None else int(np.count_nonzero(checked.begins))

    def _hash(self, start: int, end: int) -> Future[tuple[Region, Region]]:
        """Checksums of what was just written, as it can be read back; at most two blocks wait for theirs."""
        if self._hashing is None:
            done: Future[tuple[Region, Region]] = Future()
            done.set_result(hash_block(self._descriptor, start, end))
            return done
        if len(self._blocks) > 1:
            self._blocks[-2].result()
        return self._hashing.submit(hash_block, self._descriptor, start, end)

    def _checked(self, block: Block, where: str) -> Checked:
        checked = check_block(block, self.header)
        if checked.faults:
            raise TokenFileError(f"{where}: {'; '.join(checked.faults)}.")
        return checked

    def _block_metadata(self, number: int, start: int) -> dict[str, str]:
        """Custom metadata of a block: its number, and blanks that bring its tokens to an aligned byte."""
        return _metadata(number, -(start + self._head_bytes) % ALIGNMENT)

    def _finish(self) -> None:
        header = self.header
        found = {"blocks": len(self._blocks), "tokens": self._tokens, "pieces": self._pieces, "EOS": self._ends}
        stated = {"blocks": header.n_blocks, "tokens": header.tokens, "pieces": header.pieces, "EOS": header.documents}
        if header.tokenizer.bos_id is not None:
            found["BOS"], stated["BOS"] = self._begins, header.documents
        if found != stated:
            raise TokenFileError(f"{self.path}: the header promises {stated}, but {found} were written.")
        self.seal = add_seal(self.path, [block.result() for block in self._blocks], self._position)


def _metadata(number: int, blanks: int) -> dict[str, str]:
    return {"block": f"{number:010d}", "alignment": " " * blanks}


def _head_bytes(schema: pa.Schema, header: Header) -> int:
    """Bytes of a block's message before its body, with no blanks: measured on a block of one sequence."""
    one = Block(
        np.zeros((1, header.seq_len), header.dtype),
        np.array([0, 1], np.int32),
        np.ones(1, np.int32),
        np.ones(1, np.int64),
    )
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, schema) as writer:
        writer.write_batch(one.to_batch(schema), custom_metadata=_metadata(0, 0))
    start = 8 + len(schema.serialize())
    return 8 + int.from_bytes(sink.getvalue()[start + 4 : start + 8].to_pybytes(), "little")
