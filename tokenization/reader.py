"""Reads a token file. Needs pyarrow and NumPy only.

    from tokenization.reader import TokenFile

    file = TokenFile("pack/tokens.arrow")
    file[7]                            # uint16[seq_len], a read-only view of the mapped file
    file.__getitems__([5, 1, 9])       # int64[3, seq_len], in one gather: what torch's DataLoader calls
    file.batch([5, 1, 9])              # with positions, borders and document rows: see `batch.Batch`
    file.documents(7)                  # lengths and rows of the pieces in sequence 7

It is a map-style data set as it stands, shuffled by whoever reads it; `stream.TokenStream` gives the batches of a whole
training in an order that can be resumed.

    torch.utils.data.DataLoader(file, batch_size=64, shuffle=True, collate_fn=torch.from_numpy)    # workers: fork or spawn
    grain.MapDataset.source(file).shuffle(seed=1).batch(64)

With `torch.from_numpy` a batch stays as it was read; without, torch takes it apart into rows and stacks them again, in
three times the time.

Opening reads the seal, the schema and the footer: about 1 ms, whatever the size. A block is looked up when it is
first touched. What Arrow must parse is checked against the seal beforehand, so damage is an error with the name of the
place, never a crash; damage in the ids themselves is found with `verify="lazy"` or `"all"`.

Costs 0.2 us for a view, and for batches what NumPy takes on a plain memory map. Pages that were read count as resident
but belong to the page cache: private memory stays flat, and `release()` gives them back.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, NamedTuple, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tokenization.batch import TOKENS_AT_ONCE, Batch, Fields, copy_tokens, lay_out
from tokenization.blocks import BlockPlace, Copied, Mapped, Source, place_of_block
from tokenization.errors import TokenFileError
from tokenization.golden import TrainerTokenizer, check_tokenizer
from tokenization.layout import Header, Tokens
from tokenization.seal import Region, read_region, read_seal, region_fault
from tokenization.verify import Problem, Report, verify

__all__ = ["Batch", "Pieces", "Problem", "Read", "Report", "TokenFile", "Verify", "verify"]

Verify = Literal["none", "lazy", "all"]
Read = Literal["map", "copy"]
Numbers = npt.NDArray[np.int64]
INT32, INT64 = np.dtype(np.int32), np.dtype(np.int64)
REMEDY = "Copy the file again, or pack again."


class Pieces(NamedTuple):
    """The documents, or parts of documents, in one sequence."""

    lengths: npt.NDArray[np.int32]
    """Tokens of each, in order, with its EOS; the rest of the sequence is padding."""
    rows: Numbers
    """Row of each document in documents.parquet."""


class TokenFile:
    """A token file: `len()` sequences, each an array. Pickles by path; safe with threads, fork and spawn."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        verify: Verify = "none",
        tokenizer: TrainerTokenizer | None = None,
        read: Read = "map",
    ) -> None:
        """Open a token file.

        Args:
            path: the file.
            verify: what is checked beyond what Arrow parses. `all`: every checksum and bound, now (1 GB/s); `lazy`: the
                checksum of a block when it is first touched (10 ms a block, once a process); `none`: nothing.
            tokenizer: the tokenizer that you train with, to be refused if it is another one: a fingerprint, an object
                with `fingerprint()`, or a function from a text to its ids, such as the `encode` of a Hugging Face
                tokenizer, a SentencePieceProcessor or a tiktoken encoding. None: you vouch for it.
            read: `map`, or `copy` to read without a memory map, as network file systems may need: the same results.

        Raises:
            TokenFileError: no token file, another version, or damaged; the message names the place.
            TokenizerError: the tokenizer is not that of the file.
            FileNotFoundError: there is no such file.
        """
        if verify not in ("none", "lazy", "all"):
            raise ValueError(f"verify must be 'none', 'lazy' or 'all', found {verify!r}")
        if read not in ("map", "copy"):
            raise ValueError(f"read must be 'map' or 'copy', found {read!r}")
        self.path = Path(path)
        if self.path.is_dir():
            raise TokenFileError(f"{self.path} is a folder. Give the file: tokens.arrow, in the folder pack of a run.")
        if verify == "all":
            _verify(self.path).raise_if_bad()
        self._lazy, self._read = verify == "lazy", read
        self._seal = read_seal(self.path)
        self._descriptor = os.open(self.path, os.O_RDONLY)
        for region in (self._seal.schema, self._seal.end, self._seal.footer):
            self._check(region)
        try:
            self._schema = pa.ipc.read_schema(pa.py_buffer(read_region(self._descriptor, 8, self._seal.schema.end)))
        except (pa.ArrowException, OSError) as error:
            raise TokenFileError(f"{self.path}, schema: cannot be read: {error}. {REMEDY}") from error
        self.metadata: Header = Header.from_schema(self._schema, str(self.path))
        """The header: tokenizer, counts, provenance."""
        if tokenizer is not None:
            check_tokenizer(self.metadata, tokenizer, str(self.path))
        self._source: Source = (
            Copied(self._descriptor, self.path) if read == "copy" else Mapped(self._descriptor, self._seal.footer.end)
        )
        self._set_up_blocks()

    def _set_up_blocks(self) -> None:
        header = self.metadata
        self._sequences, self._per_block, self._seq_len = header.sequences, header.block_sequences, header.seq_len
        self._dtype = header.dtype
        self._as_arrays = np.array(self._per_block), np.array(self._seq_len)
        """With an array of no dimension NumPy counts in half the time it needs with a number."""
        n_blocks = len(self._seal.heads)
        found = (n_blocks - 1) * self._per_block + self._parse(n_blocks - 1).n_sequences if n_blocks else 0
        if (n_blocks, found) != (header.n_blocks, header.sequences):
            raise TokenFileError(
                f"{self.path}: the header promises {header.sequences} sequences in {header.n_blocks} blocks, "
                f"but there are {found} in {n_blocks}. {REMEDY}"
            )
        self._tokens: list[Tokens | None] = [None] * n_blocks
        """Tokens of each block, [n_sequences, seq_len], where they are mapped."""
        self._ready = np.zeros(n_blocks, np.bool_)
        self._unready = n_blocks > 0
        """Whether a block may not be ready."""
        self._places = np.zeros((len(BlockPlace._fields), n_blocks), np.int64)
        """A `BlockPlace` for each block that is ready."""
        self._row_0 = np.zeros(n_blocks, np.int64)
        """Where row 0 of the file would begin, in tokens, if all rows lay as those of this block."""

    @property
    def seal(self) -> str:
        """SHA-256 that stands for the content of the whole file."""
        return self._seal.sha256

    def __len__(self) -> int:
        return self._sequences

    @overload
    def __getitem__(self, index: int) -> Tokens: ...
    @overload
    def __getitem__(self, index: slice) -> Tokens: ...
    def __getitem__(self, index: int | slice) -> Tokens:
        """Sequence `index`, padding included: a read-only view, uint16[seq_len] or uint32[seq_len].

        A slice gives a new array of the same type, [n, seq_len].
        """
        if index.__class__ is int and index >= 0:  # nothing but what is needed: this is called most
            try:
                # A block that is not there yet is None, and what lies beyond the last row is an IndexError.
                return self._tokens[index // self._per_block][index % self._per_block]  # type: ignore[index, no-any-return]
            except (IndexError, TypeError):
                pass  # the slow way finds out which, and says it
        if isinstance(index, slice):
            return self.read(np.arange(*index.indices(self._sequences), dtype=np.int64))
        return self._row(index)

    def __getitems__(self, indices: Sequence[int] | npt.NDArray[np.integer[Any]]) -> Numbers:
        """Sequences `indices`, in this order: a new array int64[n, seq_len]."""
        rows = np.asarray(indices)
        plain = rows.dtype == INT64 and rows.ndim == 1 and 0 < rows.size * self._seq_len <= TOKENS_AT_ONCE
        if self._unready or not plain or not self._are_inside(rows):
            return self._gather(indices)
        # In a straight line what `_gather` does for all, because it is called for every batch.
        per_block, seq_len = self._as_arrays
        starts = self._row_0[rows // per_block]
        starts += rows * seq_len
        return self._source.rows(self._dtype, starts, self._seq_len).astype(np.int64)

    def _gather(self, indices: Sequence[int] | npt.NDArray[np.integer[Any]]) -> Numbers:
        """The same for any indices, which may be wrong, from the end, many, or in blocks that are not ready."""
        rows = self._rows(indices)
        tokens = np.empty((len(rows), self._seq_len), np.int64)
        copy_tokens(self, rows, tokens)
        return tokens

    def __iter__(self) -> Iterator[Tokens]:
        for number in range(self.metadata.n_blocks):
            first = number * self._per_block
            row, block = self._row(first), self._tokens[number]
            if block is not None:
                yield from block
            else:
                yield row
                yield from map(self._row, range(first + 1, first + self.metadata.rows_of_block(number)))

    def batch(
        self,
        indices: Sequence[int] | npt.NDArray[np.integer[Any]],
        *,
        dtype: npt.DTypeLike = np.int64,
        fields: Fields = "all",
    ) -> Batch:
        """Sequences `indices`, in this order, with positions and borders for attention inside documents.

        Args:
            indices: any number of them, negative ones from the end; one may come twice.
            dtype: int64 or int32, of tokens and positions.
            fields: `tokens` leaves out what costs time and may not be needed.
        """
        rows = self._rows(indices)
        return lay_out([self], self._seq_len, np.zeros(len(rows), np.int64), rows, dtype=dtype, fields=fields)

    def documents(self, index: int) -> Pieces:
        """What lies in sequence `index`, in order."""
        _, lengths, rows = self.pieces(self._rows([index]))
        return Pieces(lengths, rows)

    def borders(self, index: int) -> npt.NDArray[np.int32]:
        """Where the pieces of a sequence begin, and where the last one ends: int32[pieces + 1], from 0."""
        lengths = self.documents(index).lengths
        borders = np.zeros(len(lengths) + 1, np.int32)
        np.cumsum(lengths, out=borders[1:])
        return borders

    def read(self, rows: Numbers) -> Tokens:
        """Sequences as they are in the file: a new array [n, seq_len] of uint16 or uint32.

        Args:
            rows: int64[n], each in range(len(file)).
        """
        return self._source.rows(self._dtype, self._row_0[self._blocks_of(rows)] + rows * self._seq_len, self._seq_len)

    def pieces(self, rows: Numbers) -> tuple[Numbers, npt.NDArray[np.int32], Numbers]:
        """Pieces of some sequences, one sequence behind the other.

        Args:
            rows: int64[n], each in range(len(file)).

        Returns:
            counts: int64[n], pieces of each sequence.
            lengths: int32[counts.sum()], tokens of each piece.
            doc_rows: int64[counts.sum()], its row in documents.parquet.

        Raises:
            TokenFileError: the borders of a sequence are damaged.
        """
        blocks = self._blocks_of(rows)
        _, first_piece, lengths_at, rows_at, n_pieces, _ = self._places[:, blocks]
        within = rows - blocks * self._per_block
        ranges = self._source.rows(INT32, (first_piece >> 2) + within, 2).astype(np.int64)
        first, counts = ranges[:, 0], ranges[:, 1] - ranges[:, 0]
        bad = (first < 0) | (counts < 1) | (ranges[:, 1] > n_pieces)
        if not bad.any():
            lengths = self._source.runs(INT32, (lengths_at >> 2) + first, counts)
            ends = np.cumsum(counts)
            used = np.add.reduceat(lengths, ends - counts, dtype=np.int64) if len(rows) else counts
            least = np.minimum.reduceat(lengths, ends - counts) if len(rows) else counts
            bad = (used > self._seq_len) | (least < 1)
        if bad.any():
            at = int(np.flatnonzero(bad)[0])
            raise TokenFileError(
                f"{self.path}, block {blocks[at]}: the borders of documents in sequence {rows[at]} are damaged: they "
                f"reach outside of it. {REMEDY}"
            )
        return counts, lengths, self._source.runs(INT64, (rows_at >> 3) + first, counts)

    def prefetch(self, rows: Numbers) -> None:
        """Let the system read sequences in the background, to have them in the page cache when they are asked for.

        Args:
            rows: int64[n], each in range(len(file)). Costs 0.5 us each; a cold disk then reads them side by side.
        """
        starts = (self._row_0[self._blocks_of(rows)] + rows * self._seq_len) * self._dtype.itemsize
        for start in starts.tolist():
            self._announce(start, self._seq_len * self._dtype.itemsize)

    def release(self) -> None:
        """Give back the resident pages of the map, say once in a thousand steps where memory is counted by them.

        Views stay valid, and what is still in the page cache comes back at no cost worth speaking of.
        """
        self._source.release()

    def close(self) -> None:
        """Give back the descriptor; nothing new can be read. The map lives as long as a view of it."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> TokenFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_descriptor", -1) >= 0:
            self.close()

    def __reduce__(self) -> tuple[object, tuple[str, str, Verify, Read]]:
        return _reopen, (str(self.path), self.seal, "lazy" if self._lazy else "none", self._read)

    def __repr__(self) -> str:
        header = self.metadata
        return (
            f"TokenFile({str(self.path)!r}: {header.sequences:,} sequences of {header.seq_len} {header.dtype.name}, "
            f"{header.documents:,} documents, tokenizer {header.tokenizer.name!r})"
        )

    def _row(self, index: int) -> Tokens:
        """Sequence `index`, whose block may not be ready."""
        index = operator.index(index)
        if not -self._sequences <= index < self._sequences:
            raise IndexError(f"sequence {index} of {self.path}: it has {self._sequences} sequences")
        number, row = divmod(index % self._sequences, self._per_block)
        if not self._ready[number]:
            self._look_up(number)
        start = int(self._row_0[number]) + number * self._per_block * self._seq_len
        if self._read == "copy":
            return self._source.array(self._dtype, start + row * self._seq_len, self._seq_len)
        n_rows = self.metadata.rows_of_block(number)
        block = self._source.array(self._dtype, start, n_rows * self._seq_len).reshape(n_rows, self._seq_len)
        self._tokens[number] = block
        tokens: Tokens = block[row]
        return tokens

    def _rows(self, indices: Sequence[int] | npt.NDArray[np.integer[Any]]) -> Numbers:
        """Checked indices, negative ones counted from the end."""
        given = np.asarray(indices)
        if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
            raise TypeError(f"indices must be a list of whole numbers, found {given.dtype}{list(given.shape)}")
        rows = given.astype(np.int64)
        if rows.size and not self._are_inside(rows):
            wrong = (given < -self._sequences) | (given >= self._sequences)
            if wrong.any():
                raise IndexError(f"sequence {given[wrong][0]} of {self.path}: it has {self._sequences} sequences")
            rows[rows < 0] += self._sequences
        return rows

    def _are_inside(self, rows: Numbers) -> bool:
        """Whether none is negative or beyond the end. For a batch, argmin takes a quarter of the time of min."""
        return rows.item(rows.argmin()) >= 0 and rows.item(rows.argmax()) < self._sequences

    def _blocks_of(self, rows: Numbers) -> Numbers:
        """The block of each row; all of them are ready then."""
        blocks = rows // self._per_block
        if self._unready and not self._ready[blocks].all():
            # Not np.unique: its first call imports numpy.ma, which takes longer than to open a file and resume.
            for number in sorted(set(blocks[~self._ready[blocks]].tolist())):
                self._look_up(number)
            self._unready = not self._ready.all()
        return blocks

    def _look_up(self, number: int) -> None:
        """Make a block ready."""
        place = self._parse(number)
        if place.n_sequences != self.metadata.rows_of_block(number):
            raise TokenFileError(f"{self.path}, block {number}: {place.n_sequences} sequences, not as the header says.")
        if self._lazy:
            self._check(self._seal.bodies[number])
        # Borders are a hundredth of the file and are wanted in small pieces: the system may have them at once.
        self._announce(place.first_piece, self._seal.bodies[number].end - place.first_piece)
        self._places[:, number] = place
        self._row_0[number] = place.tokens // self._dtype.itemsize - number * self._per_block * self._seq_len
        self._ready[number] = True  # last: another thread may be waiting for it

    def _announce(self, start: int, n_bytes: int) -> None:
        if hasattr(os, "posix_fadvise"):  # not everywhere; nothing but time depends on it
            os.posix_fadvise(self._descriptor, start, n_bytes, os.POSIX_FADV_WILLNEED)

    def _parse(self, number: int) -> BlockPlace:
        head, body = self._seal.heads[number], self._seal.bodies[number]
        self._check(head)
        return place_of_block(self._source.message, head, body, self._schema)

    def _check(self, region: Region) -> None:
        fault = region_fault(self._descriptor, region)
        if fault:
            raise TokenFileError(f"{self.path}, {region.name}: {fault}. {REMEDY}")


_verify = verify


def _reopen(path: str, seal: str, verify: Verify, read: Read) -> TokenFile:
    """Open the file of a pickle, and only that one."""
    file = TokenFile(path, verify=verify, read=read)
    if file.seal != seal:
        raise TokenFileError(f"{path} is not the file that was pickled: it was replaced by another one. Open it anew.")
    return file
