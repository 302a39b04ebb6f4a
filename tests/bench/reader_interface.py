"""What the reader bench asks of a way to store and read tokens: write, open, a row, a batch, a loader, a state.

Also the tokens themselves, and what all formats share. Runs in the interpreters of other tools: NumPy is all it imports.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

__all__ = [
    "PIECES",
    "SEED",
    "SOURCE",
    "VOCABULARY",
    "Format",
    "Int64Batches",
    "Integers",
    "Opened",
    "Rows",
    "from_numpy",
    "ids",
    "make_tokens",
    "opened_rows",
    "torch_loader",
]

Rows = npt.NDArray[np.uint16]
Integers = npt.NDArray[np.int64]

SOURCE = "tokens.bin"
PIECES = 4
"""Documents in each sequence of the made tokens: token 0 ends each, and stands nowhere else."""
VOCABULARY = 50257
SEED = 7


def make_tokens(n: int, seq_len: int, seed: int = 5) -> Rows:
    """Random tokens, uint16[n, seq_len], each sequence full of whole documents."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(1, VOCABULARY, (n, seq_len), dtype=np.uint16)
    quarter = seq_len // PIECES
    ends = rng.integers(0, quarter, (n, PIECES)) + np.arange(PIECES) * quarter
    ends[:, -1] = seq_len - 1
    rows[np.arange(n)[:, None], ends] = 0
    return rows


@dataclass(frozen=True)
class Opened:
    """An open file of n sequences."""

    n: int
    get: Callable[[int], Any]
    """A sequence as the tool gives it."""
    batch: Callable[[Integers], Integers]
    """Sequences as int64[len(indices), seq_len], as they go into an embedding."""
    iterate: Callable[[], Iterator[Any]]
    dataset: Any = None


def opened_rows(n: int, seq_len: int, get: Callable[[int], Any], dataset: Any = None) -> Opened:
    """What can be had row by row: a batch is copied into one array, row by row."""

    def batch(indices: Integers) -> Integers:
        out = np.empty((len(indices), seq_len), np.int64)
        for place, index in enumerate(indices.tolist()):
            out[place] = get(index)
        return out

    return Opened(n, get, batch, lambda: map(get, range(n)), dataset)


class Int64Rows:
    """A torch Dataset by rows: what a trainer writes around a map."""

    def __init__(self, opened: Opened) -> None:
        self.opened = opened

    def __len__(self) -> int:
        return self.opened.n

    def __getitem__(self, index: int) -> Integers:
        return np.asarray(self.opened.get(index)).astype(np.int64)


class Int64Batches(Int64Rows):
    """The same by batches, which torch asks for where there is `__getitems__`."""

    def __getitems__(self, indices: list[int]) -> Integers:
        return self.opened.batch(np.array(indices))


def torch_loader(dataset: Any, batch: int, workers: int, **settings: Any) -> Iterable[Any]:
    """torch's DataLoader, shuffled; `shuffle=None` where the data set does that itself."""
    from torch.utils.data import DataLoader

    defaults = {"batch_size": batch, "shuffle": True, "num_workers": workers, "drop_last": True}
    batches: Iterable[Any] = DataLoader(dataset, **{**defaults, **settings})
    return batches


def from_numpy(array: Any) -> Any:
    """A tensor over the same memory."""
    return importlib.import_module("torch").from_numpy(array)


def ids(batches: Iterable[Any], key: str = "input_ids") -> Iterator[Any]:
    """The tokens of batches that are dictionaries."""
    return (batch[key] for batch in batches)


class Format:
    """One way to store and read. Loaders give tensors of [batch, seq_len]; a state is what JSON can hold."""

    name: ClassVar[str]
    store: ClassVar[str]
    """What it reads: several formats may share it."""
    package: ClassVar[str] = "numpy"
    """Module without which it cannot run."""
    distribution: ClassVar[str] = "numpy"
    parts: ClassVar[frozenset[str]] = frozenset({"life", "rates", "loader", "resume", "flip"})
    loaders: ClassVar[Mapping[str, str]] = {"by rows": "rows_loader"}
    """Ways of loading by torch: method of each."""
    once: ClassVar[bool] = False
    """Whether a process can load only once: a second loader hangs."""

    def load(self) -> None:
        """Import what is needed."""
        importlib.import_module(self.package)

    def prepare_to_write(self) -> None:
        """Import what this bench needs beyond the tool itself; not measured."""

    def write(self, rows: Rows, folder: Path) -> None:
        raise NotImplementedError

    def open(self, folder: Path, seq_len: int) -> Opened:
        raise NotImplementedError

    def rows_loader(self, folder: Path, opened: Opened, batch: int, workers: int) -> Iterable[Any]:
        return torch_loader(Int64Rows(opened), batch, workers)

    def run_to(self, folder: Path, seq_len: int, batch: int, steps: int) -> tuple[Any, Integers]:
        """State after some batches of a shuffled epoch, and the batch that comes next."""
        raise NotImplementedError

    def resume(self, folder: Path, seq_len: int, batch: int, state: Any) -> Integers:
        """The batch after a state, from nothing: opens the file."""
        raise NotImplementedError
