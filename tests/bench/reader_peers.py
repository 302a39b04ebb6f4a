"""Token files of other tools, each as its own documentation shows: litdata, MDS, Hugging Face datasets.

litdata      TokensLoader, StreamingDataset, StreamingDataLoader
mds          mosaicml-streaming: MDSWriter, StreamingDataset, StreamingDataLoader; `mds, hashed` with its optional hashes
datasets     save_to_disk, load_from_disk; formats numpy (int64), numpy with dtype uint16, arrow
"""

from __future__ import annotations

import importlib
import importlib.machinery
import itertools
import sys
import types
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from tests.bench.reader_interface import SEED, Format, Integers, Opened, Rows, ids, opened_rows, torch_loader

__all__ = ["Datasets", "DatasetsArrow", "DatasetsUint16", "Litdata", "Mds", "MdsHashed"]


class Litdata(Format):
    name, store, package, distribution = "litdata", "litdata", "litdata", "litdata"
    loaders: ClassVar[Mapping[str, str]] = {"its own": "own_loader"}

    def write(self, rows: Rows, folder: Path) -> None:
        loader = importlib.import_module("litdata").TokensLoader(block_size=rows.shape[1])
        cache = importlib.import_module("litdata.streaming.cache").Cache(
            str(folder), chunk_bytes="64MB", item_loader=loader
        )
        for number, row in enumerate(rows):
            cache[number] = row
        cache.done()
        cache.merge()

    def dataset(self, folder: Path, seq_len: int, shuffle: bool) -> Any:
        litdata = importlib.import_module("litdata")
        loader = litdata.TokensLoader(block_size=seq_len)
        return litdata.StreamingDataset(str(folder), item_loader=loader, shuffle=shuffle, drop_last=False, seed=SEED)

    def open(self, folder: Path, seq_len: int) -> Opened:
        dataset = self.dataset(folder, seq_len, shuffle=False)
        opened = opened_rows(len(dataset), seq_len, dataset.__getitem__, dataset)
        return Opened(opened.n, opened.get, opened.batch, lambda: iter(dataset), dataset)

    def loader(self, folder: Path, seq_len: int, batch: int, workers: int) -> Any:
        dataset = self.dataset(folder, seq_len, shuffle=True)
        return importlib.import_module("litdata").StreamingDataLoader(dataset, batch_size=batch, num_workers=workers)

    def own_loader(self, folder: Path, opened: Opened, batch: int, workers: int) -> Iterable[Any]:
        batches: Iterable[Any] = self.loader(folder, len(opened.get(0)), batch, workers)
        return batches

    def run_to(self, folder: Path, seq_len: int, batch: int, steps: int) -> tuple[Any, Integers]:
        loader = self.loader(folder, seq_len, batch, 0)
        batches = iter(loader)
        for _ in itertools.islice(batches, steps):
            pass
        return loader.state_dict(), np.asarray(next(batches))

    def resume(self, folder: Path, seq_len: int, batch: int, state: Any) -> Integers:
        loader = self.loader(folder, seq_len, batch, 0)
        loader.load_state_dict(state)
        return np.asarray(next(iter(loader)))


def stand_in(name: str, **attributes: Any) -> None:
    """An empty module where a package wants one that is not needed for tokens."""
    module = types.ModuleType(name)
    module.__path__ = []
    module.__spec__ = importlib.machinery.ModuleSpec(name, None, is_package=True)
    for key, value in attributes.items():
        setattr(module, key, value)
    sys.modules[name] = module


class Mds(Format):
    name, store, package, distribution = "mds", "mds", "streaming", "mosaicml-streaming"
    loaders: ClassVar[Mapping[str, str]] = {"its own": "own_loader"}
    hashes: ClassVar[list[str]] = []
    once = True
    batch = 64

    def load(self) -> None:
        # mosaicml-streaming imports these for images and text.
        stand_in("torchvision")
        stand_in("torchvision.datasets", VisionDataset=type("VisionDataset", (), {}))
        stand_in("torchvision.transforms")
        stand_in("torchvision.transforms.functional", to_tensor=None)
        stand_in("transformers", AutoTokenizer=None)
        stand_in("transformers.feature_extraction_utils", BatchFeature=type("BatchFeature", (dict,), {}))
        stand_in("transformers.tokenization_utils_base", BatchEncoding=type("BatchEncoding", (dict,), {}))
        stand_in("transformers.models")
        stand_in("transformers.models.auto")
        stand_in("transformers.models.auto.tokenization_auto", AutoTokenizer=None)
        importlib.import_module("streaming.base.util").clean_stale_shared_memory()

    def write(self, rows: Rows, folder: Path) -> None:
        columns = {"input_ids": f"ndarray:uint16:{rows.shape[1]}"}
        writer_class = importlib.import_module("streaming").MDSWriter
        settings = {"columns": columns, "compression": None, "hashes": self.hashes or None}
        with writer_class(out=str(folder), **settings) as writer:
            for row in rows:
                writer.write({"input_ids": row})

    def dataset(self, folder: Path) -> Any:
        check = self.hashes[0] if self.hashes else None
        return importlib.import_module("streaming").StreamingDataset(
            local=str(folder), shuffle=True, shuffle_seed=SEED, batch_size=self.batch, validate_hash=check
        )

    def open(self, folder: Path, seq_len: int) -> Opened:
        dataset = self.dataset(folder)
        return opened_rows(len(dataset), seq_len, lambda i: dataset[i]["input_ids"], dataset)

    def loader(self, dataset: Any, batch: int, workers: int) -> Any:
        return importlib.import_module("streaming").StreamingDataLoader(dataset, batch_size=batch, num_workers=workers)

    def own_loader(self, folder: Path, opened: Opened, batch: int, workers: int) -> Iterable[Any]:
        return ids(self.loader(opened.dataset, batch, workers))

    def run_to(self, folder: Path, seq_len: int, batch: int, steps: int) -> tuple[Any, Integers]:
        loader = self.loader(self.dataset(folder), batch, 0)
        batches = iter(loader)
        for _ in itertools.islice(batches, steps):
            pass
        return loader.state_dict(), np.asarray(next(batches)["input_ids"])

    def resume(self, folder: Path, seq_len: int, batch: int, state: Any) -> Integers:
        loader = self.loader(self.dataset(folder), batch, 0)
        loader.load_state_dict(state)
        return np.asarray(next(iter(loader))["input_ids"])


class MdsHashed(Mds):
    """With the hashes that it can write, and the check of them asked for."""

    name, store, hashes = "mds, hashed", "mds hashed", ["sha1"]
    parts = frozenset({"flip"})


class Datasets(Format):
    name, store, package, distribution = "datasets, numpy", "datasets", "datasets", "datasets"
    loaders: ClassVar[Mapping[str, str]] = {"format torch": "torch_rows"}
    setting: ClassVar[tuple[str, Mapping[str, Any]]] = ("numpy", {})

    def load(self) -> None:
        importlib.import_module("datasets").disable_progress_bars()

    def write(self, rows: Rows, folder: Path) -> None:
        import pyarrow as pa

        datasets = importlib.import_module("datasets")
        column = pa.FixedSizeListArray.from_arrays(pa.array(rows.reshape(-1)), rows.shape[1])
        datasets.Dataset(pa.table({"input_ids": column})).save_to_disk(str(folder))

    def open(self, folder: Path, seq_len: int) -> Opened:
        dataset = importlib.import_module("datasets").load_from_disk(str(folder))
        name, settings = self.setting
        rows = dataset.with_format(name, **settings)

        def batch(indices: Integers) -> Integers:
            return np.asarray(rows[indices.tolist()]["input_ids"]).astype(np.int64)

        return Opened(len(rows), lambda i: rows[i]["input_ids"], batch, lambda: ids(rows), dataset)

    def torch_rows(self, folder: Path, opened: Opened, batch: int, workers: int) -> Iterable[Any]:
        return ids(torch_loader(opened.dataset.with_format("torch"), batch, workers))

    def stream(self, folder: Path) -> Any:
        """Shuffled through a mapping of numbers, and then a stream, which has a state."""
        dataset = importlib.import_module("datasets").load_from_disk(str(folder))
        return dataset.shuffle(seed=SEED).to_iterable_dataset().with_format("numpy")

    def run_to(self, folder: Path, seq_len: int, batch: int, steps: int) -> tuple[Any, Integers]:
        stream = self.stream(folder)
        rows = ids(stream)
        for _ in itertools.islice(rows, steps * batch):
            pass
        return stream.state_dict(), np.stack(list(itertools.islice(rows, batch)))

    def resume(self, folder: Path, seq_len: int, batch: int, state: Any) -> Integers:
        stream = self.stream(folder)
        stream.load_state_dict(state)
        return np.stack(list(itertools.islice(ids(stream), batch)))


class DatasetsUint16(Datasets):
    name, setting, parts = "datasets, numpy uint16", ("numpy", {"dtype": np.uint16}), frozenset({"rates"})


class DatasetsArrow(Datasets):
    name, setting, parts = "datasets, arrow", ("arrow", {}), frozenset({"rates", "loader"})
    loaders: ClassVar[Mapping[str, str]] = {"by rows": "rows_loader"}

    def open(self, folder: Path, seq_len: int) -> Opened:
        rows = super().open(folder, seq_len).dataset.with_format("arrow")

        def get(index: int) -> Any:
            return rows[index]["input_ids"].chunk(0).flatten().to_numpy(zero_copy_only=True)

        return opened_rows(len(rows), seq_len, get)
