"""Token files of this project beside a bare NumPy map and Megatron's layout, and the list of all formats.

numpy        a bare file of tokens, np.memmap: `numpy` as it is, `numpy view` without the subclass, the least there can be
megatron     flat .bin and .idx (MMIDIDX, version 1), written here and read as Megatron reads it: np.frombuffer on a map
ours         TokenFile and TokenStream, with verify none, lazy and all

Other tools: reader_peers.py.
"""

from __future__ import annotations

import importlib
import itertools
import struct
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from tests.bench.reader_interface import (
    PIECES,
    SEED,
    SOURCE,
    VOCABULARY,
    Format,
    Int64Batches,
    Integers,
    Opened,
    Rows,
    from_numpy,
    opened_rows,
    torch_loader,
)
from tests.bench.reader_peers import Datasets, DatasetsArrow, DatasetsUint16, Litdata, Mds, MdsHashed

__all__ = ["FORMATS"]


class NumPy(Format):
    """np.memmap as it comes."""

    name, store = "numpy", "numpy"
    loaders: ClassVar[Mapping[str, str]] = {"by rows": "rows_loader", "by batches": "batch_loader"}

    def load(self) -> None:
        importlib.import_module("numpy.random")

    def write(self, rows: Rows, folder: Path) -> None:
        with (folder / SOURCE).open("wb") as file:
            rows.tofile(file)

    def rows(self, folder: Path, seq_len: int) -> Rows:
        return np.memmap(folder / SOURCE, np.uint16, mode="r").reshape(-1, seq_len)

    def open(self, folder: Path, seq_len: int) -> Opened:
        rows = self.rows(folder, seq_len)
        return Opened(len(rows), rows.__getitem__, lambda indices: rows[indices].astype(np.int64), lambda: iter(rows))

    def batch_loader(self, folder: Path, opened: Opened, batch: int, workers: int) -> Iterable[Any]:
        return torch_loader(Int64Batches(opened), batch, workers, collate_fn=from_numpy)

    def run_to(self, folder: Path, seq_len: int, batch: int, steps: int) -> tuple[Any, Integers]:
        return steps, self.resume(folder, seq_len, batch, steps)

    def resume(self, folder: Path, seq_len: int, batch: int, state: Any) -> Integers:
        """By hand, as a trainer without a library does: an array of all numbers, shuffled by a seed."""
        opened = self.open(folder, seq_len)
        order = np.random.default_rng(SEED).permutation(opened.n)
        return opened.batch(order[state * batch : (state + 1) * batch])


class NumPyView(NumPy):
    """The same map as a plain array: the subclass costs at every index."""

    name = "numpy view"
    parts = frozenset({"rates"})
    loaders: ClassVar[Mapping[str, str]] = {}

    def rows(self, folder: Path, seq_len: int) -> Rows:
        return super().rows(folder, seq_len).view(np.ndarray)


class Megatron(Format):
    """The layout alone; Megatron adds a cache of tuples and torch on top."""

    name, store = "megatron layout", "megatron"
    parts = Format.parts - {"resume"}

    def write(self, rows: Rows, folder: Path) -> None:
        n, seq_len = rows.shape
        with (folder / "tokens.bin").open("wb") as file:
            rows.tofile(file)
        with (folder / "tokens.idx").open("wb") as file:
            file.write(b"MMIDIDX\x00\x00" + struct.pack("<QBQQ", 1, 8, n, n + 1))  # 8: uint16
            np.full(n, seq_len, np.int32).tofile(file)
            (np.arange(n, dtype=np.int64) * (seq_len * 2)).tofile(file)
            np.arange(n + 1, dtype=np.int64).tofile(file)

    def open(self, folder: Path, seq_len: int) -> Opened:
        index = memoryview(np.memmap(folder / "tokens.idx", mode="r"))  # type: ignore[arg-type]
        magic, _, code, n, _ = struct.unpack("<9sQBQQ", index[:34])
        if magic != b"MMIDIDX\x00\x00" or code != 8:
            raise ValueError("no index of uint16 in Megatron's layout")
        lengths = np.frombuffer(index, np.int32, n, 34)
        pointers = np.frombuffer(index, np.int64, n, 34 + lengths.nbytes)
        data = memoryview(np.memmap(folder / "tokens.bin", mode="r"))  # type: ignore[arg-type]
        return opened_rows(n, seq_len, lambda i: np.frombuffer(data, np.uint16, int(lengths[i]), int(pointers[i])))


class Ours(Format):
    """This project's token file."""

    name, store, package, distribution = "ours", "ours", "tokenization.reader", "pyarrow"
    verify: ClassVar[str] = "none"
    loaders: ClassVar[Mapping[str, str]] = {
        "as it is": "file_loader",
        "torch.from_numpy": "joined_loader",
        "TokenStream": "stream_loader",
    }

    def load(self) -> None:
        super().load()
        importlib.import_module("tokenization.stream")

    def prepare_to_write(self) -> None:
        importlib.import_module("tests.token_files")

    def write(self, rows: Rows, folder: Path) -> None:
        from dataclasses import replace

        from tests.token_files import CARD, small_header
        from tokenization.layout import BLOCK_BYTES, Block
        from tokenization.token_file import TokenFileWriter

        n, seq_len = rows.shape
        header = small_header(
            n,
            seq_len=seq_len,
            tokenizer=replace(CARD, vocab_size=VOCABULARY, max_id=VOCABULARY - 1),
            documents=PIECES * n,
            pieces=PIECES * n,
            tokens=n * seq_len,
            block_sequences=BLOCK_BYTES // (2 * seq_len),
        )
        with TokenFileWriter(folder / "tokens.arrow", header) as writer:
            for start in range(0, n, header.block_sequences):
                part = rows[start : start + header.block_sequences]
                ends = np.nonzero(part == 0)[1].reshape(-1, PIECES) + 1
                lengths = np.diff(ends, prepend=0, axis=1).astype(np.int32).reshape(-1)
                borders = np.arange(0, len(lengths) + 1, PIECES, dtype=np.int32)
                numbers = np.arange(len(lengths), dtype=np.int64) + PIECES * start
                writer.write(Block(part, borders, lengths, numbers))

    def file(self, folder: Path) -> Any:
        return importlib.import_module(self.package).TokenFile(folder / "tokens.arrow", verify=self.verify)

    def open(self, folder: Path, seq_len: int) -> Opened:
        file = self.file(folder)
        return Opened(len(file), file.__getitem__, file.__getitems__, lambda: iter(file), file)

    def file_loader(self, folder: Path, opened: Opened, batch: int, workers: int) -> Iterable[Any]:
        return torch_loader(opened.dataset, batch, workers)

    def joined_loader(self, folder: Path, opened: Opened, batch: int, workers: int) -> Iterable[Any]:
        """Without torch's own way to make a batch of rows, which copies: the rows are a batch already."""
        return torch_loader(opened.dataset, batch, workers, collate_fn=from_numpy)

    def stream(self, folder: Path, batch: int) -> Any:
        from tokenization.stream import TokenStream

        return TokenStream([self.file(folder)], batch_size=batch, seed=SEED)

    def stream_loader(self, folder: Path, opened: Opened, batch: int, workers: int) -> Iterable[Any]:
        """With positions and borders of documents, too."""
        from tokenization.tensors import to_tensors

        stream = self.stream(folder, batch)
        settings = {"batch_size": None, "shuffle": None, "drop_last": False, "collate_fn": to_tensors}
        loader = torch_loader(stream, batch, workers, **settings)
        return (one.tokens for one in loader)

    def run_to(self, folder: Path, seq_len: int, batch: int, steps: int) -> tuple[Any, Integers]:
        stream = self.stream(folder, batch)
        batches = iter(stream)
        for _ in itertools.islice(batches, steps):
            pass
        return stream.state_dict(), next(batches).tokens

    def resume(self, folder: Path, seq_len: int, batch: int, state: Any) -> Integers:
        stream = self.stream(folder, batch)
        stream.load_state_dict(state)
        tokens: Integers = next(iter(stream)).tokens
        return tokens


class OursLazy(Ours):
    """Each block is verified when it is first touched."""

    name, verify = "ours, verify lazy", "lazy"
    parts = frozenset({"life", "rates", "flip"})


class OursAll(Ours):
    """The whole file is verified when it is opened."""

    name, verify = "ours, verify all", "all"
    parts = frozenset({"life", "flip"})


FORMATS: Mapping[str, Format] = {
    one.name: one()
    for one in (
        NumPyView,
        NumPy,
        Ours,
        OursLazy,
        OursAll,
        Megatron,
        Litdata,
        Mds,
        MdsHashed,
        DatasetsArrow,
        Datasets,
        DatasetsUint16,
    )
}
