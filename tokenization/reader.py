"""Reads a token file: maps it, hands out sequences as views, verifies it. Needs pyarrow and NumPy only.

    from tokenization.reader import TokenFile

    file = TokenFile("pack/tokens.arrow")
    file[7]             # uint16[seq_len], a read-only view of the mapped file
    file.documents(7)   # lengths and rows of the pieces in sequence 7

Opening reads the seal, the schema and the footer: about 1 ms, whatever the size. A block is mapped when it is
first touched. What Arrow must parse is checked against the seal beforehand, so damage is an error with the
name of the place, never a crash; damage in the ids themselves is found by `verify`.
"""

from __future__ import annotations

import operator
import os
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tokenization.errors import TokenFileError
from tokenization.layout import Block, Header, Tokens
from tokenization.seal import Region, read_seal, region_fault
from tokenization.verify import Problem, Report, verify

__all__ = ["Pieces", "Problem", "Report", "TokenFile", "verify"]


class Pieces(NamedTuple):
    """The documents, or parts of documents, in one sequence."""

    lengths: npt.NDArray[np.int32]
    """Tokens of each, in order, with its EOS; the rest of the sequence is padding."""
    rows: npt.NDArray[np.int64]
    """Row of each document in documents.parquet."""


class TokenFile:
    """A mapped token file: `len()` sequences, each an array. Pickles by path."""

    def __init__(self, path: str | os.PathLike[str], *, verify: Literal["none", "all"] = "none") -> None:
        """Map a token file.

        Args:
            path: the file.
            verify: `all` checks every checksum and bound first (1 GB/s); `none` only what Arrow parses.

        Raises:
            TokenFileError: no token file, another version, or damaged; the message names the place.
            FileNotFoundError: there is no such file.
        """
        if verify not in ("none", "all"):
            raise ValueError(f"verify must be 'none' or 'all', found {verify!r}")
        self.path = Path(path)
        if verify == "all":
            _verify(self.path).raise_if_bad()
        self._seal = read_seal(self.path)
        self._descriptor = os.open(self.path, os.O_RDONLY)
        for region in (self._seal.schema, self._seal.end, self._seal.footer):
            self._check(region)
        self._reader = pa.ipc.open_file(pa.memory_map(str(self.path)))
        self.metadata: Header = Header.from_schema(self._reader.schema, str(self.path))
        """The header: tokenizer, counts, provenance."""
        if self._reader.num_record_batches != self.metadata.n_blocks:
            raise TokenFileError(
                f"{self.path}: {self._reader.num_record_batches} blocks where the header promises {self.metadata.n_blocks}."
            )
        self._per_block = self.metadata.block_sequences
        self._blocks: list[Block | None] = [None] * self.metadata.n_blocks

    @property
    def seal(self) -> str:
        """SHA-256 that stands for the content of the whole file."""
        return self._seal.sha256

    def __len__(self) -> int:
        return self.metadata.sequences

    def __getitem__(self, index: int) -> Tokens:
        """Sequence `index`: a read-only view, uint16[seq_len] or uint32[seq_len], padding included."""
        block, row = self._find(index)
        tokens: Tokens = block.tokens[row]
        return tokens

    def documents(self, index: int) -> Pieces:
        """What lies in sequence `index`, in order. Views."""
        block, row = self._find(index)
        first, last = block.first_piece[row], block.first_piece[row + 1]
        return Pieces(block.lengths[first:last], block.rows[first:last])

    def borders(self, index: int) -> npt.NDArray[np.int32]:
        """Where the pieces of a sequence begin, and where the last one ends: int32[pieces + 1], from 0."""
        lengths = self.documents(index).lengths
        borders = np.zeros(len(lengths) + 1, np.int32)
        np.cumsum(lengths, out=borders[1:])
        return borders

    def close(self) -> None:
        """Give back the descriptor. The mapping lives as long as a view of it."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __del__(self) -> None:
        if getattr(self, "_descriptor", -1) >= 0:
            self.close()

    def __reduce__(self) -> tuple[object, tuple[str, str]]:
        return _reopen, (str(self.path), self.seal)

    def __repr__(self) -> str:
        header = self.metadata
        return (
            f"TokenFile({str(self.path)!r}: {header.sequences:,} sequences of {header.seq_len} {header.dtype.name}, "
            f"{header.documents:,} documents, tokenizer {header.tokenizer.name!r})"
        )

    def _find(self, index: int) -> tuple[Block, int]:
        index = operator.index(index)
        n_sequences = self.metadata.sequences
        if not -n_sequences <= index < n_sequences:
            raise IndexError(f"sequence {index} of {self.path}: it has {n_sequences} sequences")
        number, row = divmod(index % n_sequences, self._per_block)
        return self._blocks[number] or self._map(number), row

    def _map(self, number: int) -> Block:
        self._check(self._seal.heads[number])
        block = Block.from_batch(self._reader.get_batch(number), self.metadata.seq_len)
        if len(block.tokens) != self.metadata.rows_of_block(number):
            raise TokenFileError(f"{self.path}, block {number}: {len(block.tokens)} sequences, not as the header says.")
        self._blocks[number] = block
        return block

    def _check(self, region: Region) -> None:
        fault = region_fault(self._descriptor, region)
        if fault:
            raise TokenFileError(f"{self.path}, {region.name}: {fault}. Copy the file again, or pack again.")


_verify = verify


def _reopen(path: str, seal: str) -> TokenFile:
    """Open the file of a pickle, and only that one."""
    file = TokenFile(path)
    if file.seal != seal:
        raise TokenFileError(f"{path} is not the file that was pickled: it was replaced by another one. Open it anew.")
    return file
