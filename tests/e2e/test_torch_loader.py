"""Token files and streams as they stand in torch's DataLoader and in Grain: no adapter, any number of workers."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.token_files import small_header, write_small_file
from tokenization.reader import TokenFile
from tokenization.stream import TokenStream

torch: Any = pytest.importorskip("torch")
from torch.utils.data import DataLoader, IterableDataset  # noqa: E402

from tokenization.tensors import to_tensors  # noqa: E402

REPO = Path(__file__).resolve().parents[2]
WORKERS = pytest.mark.parametrize(
    ("workers", "method"), [(0, None), (2, "fork"), pytest.param(2, "spawn", marks=pytest.mark.slow)]
)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_small_file(tmp_path_factory.mktemp("torch") / "tokens.arrow", small_header(100))


@WORKERS
@pytest.mark.parametrize("shuffle", [True, False])
def test_a_file_is_a_map_style_data_set(workers: int, method: str | None, shuffle: bool, path: Path) -> None:
    """Batches are int64 tensors; every sequence comes once."""
    file = TokenFile(path)
    loader = DataLoader(
        file, batch_size=8, shuffle=shuffle, num_workers=workers, multiprocessing_context=method,
        generator=torch.Generator().manual_seed(1),
    )  # fmt: skip
    batches = list(loader)
    assert (len(loader), len(batches), {batch.dtype for batch in batches}) == (13, 13, {torch.int64})
    rows = torch.cat(batches).numpy()
    expected = file[:].astype(np.int64)
    if shuffle:
        assert not np.array_equal(rows, expected)
        rows, expected = (array[np.lexsort(array.T)] for array in (rows, expected))
    assert np.array_equal(rows, expected)


def test_tensors_without_a_copy(path: Path) -> None:
    """`collate_fn=torch.from_numpy` takes the whole batch as it was read."""
    file = TokenFile(path)
    batches = list(DataLoader(file, batch_size=50, collate_fn=torch.from_numpy))
    assert np.array_equal(torch.cat(batches).numpy(), file[:])


@WORKERS
def test_a_stream_is_an_iterable_data_set(workers: int, method: str | None, path: Path) -> None:
    """Steps come in exact order, none twice, from the current one on: tensors in a Batch."""
    stream = TokenStream(path, batch_size=6, seed=3, epochs=2)
    assert isinstance(stream, IterableDataset)
    stream.seek(4)
    loader = DataLoader(stream, batch_size=None, num_workers=workers, multiprocessing_context=method)
    steps = []
    for batch in loader:
        expected = stream[batch.step]
        assert (batch.tokens.dtype, batch.cu_seqlens.dtype, batch.real.dtype) == (torch.int64, torch.int32, torch.bool)
        assert all(np.array_equal(one, other) for one, other in zip(batch, expected, strict=True))
        steps.append(batch.step)
    assert steps == list(range(4, 33))


@WORKERS
@pytest.mark.parametrize("fields", ["all", "tokens"])
def test_tensors_in_one_piece(fields: Any, workers: int, method: str | None, path: Path) -> None:
    """`to_tensors` gives what torch's own conversion gives; from a worker in one piece of memory, aligned, empty ones too."""
    stream = TokenStream(path, batch_size=7, seed=3, fields=fields, drop_last=False, rank=5, world=6)
    settings: dict[str, Any] = {"batch_size": None, "num_workers": workers, "multiprocessing_context": method}
    expected = list(DataLoader(stream, **settings))
    stream.seek(0)
    found = list(DataLoader(stream, **settings, collate_fn=to_tensors))
    assert [batch.step for batch in found] == list(range(15))
    for one, other in zip(found, expected, strict=True):
        for name, value, wanted in zip(one._fields, one, other, strict=True):
            assert type(value) is type(wanted), name
            if isinstance(value, torch.Tensor):
                assert (value.dtype, value.shape) == (wanted.dtype, wanted.shape)
                assert torch.equal(value, wanted)
        pieces = {value.untyped_storage().data_ptr() for value in one if isinstance(value, torch.Tensor)}
        assert len(pieces) == 1 if workers else len(pieces) > 1


@pytest.mark.parametrize("stop", [7, 30])
def test_exact_resume_with_other_workers(stop: int, path: Path) -> None:
    """Stopped within an epoch, or in the second one, with 4 workers that read ahead; resumed with 0 and with 2."""
    arguments: dict[str, Any] = {"batch_size": 4, "seed": 3, "epochs": 2}
    whole = TokenStream(path, **arguments)
    first = TokenStream(path, **arguments)
    iterator = iter(DataLoader(first, batch_size=None, num_workers=2, prefetch_factor=4))
    step = [next(iterator).step for _ in range(stop)][-1]
    del iterator
    state = first.state_dict(after=step)
    for workers in (0, 2):
        second = TokenStream(path, **arguments)
        second.load_state_dict(state)
        rest = list(DataLoader(second, batch_size=None, num_workers=workers))
        assert [batch.step for batch in rest] == list(range(stop, 50))
        assert all(np.array_equal(batch.tokens, whole[batch.step].tokens) for batch in rest)


def test_ranks_and_workers_together(path: Path) -> None:
    """Two ranks with two workers each read what one process reads."""
    whole = TokenStream(path, batch_size=6, seed=3)
    ranks = [TokenStream(path, batch_size=6, seed=3, rank=rank, world=2) for rank in range(2)]
    loaders = [DataLoader(rank, batch_size=None, num_workers=2) for rank in ranks]
    steps = 0
    for parts in zip(*loaders, strict=True):
        assert np.array_equal(torch.cat([part.tokens for part in parts]).numpy(), whole[steps].tokens)
        steps += 1
    assert steps == len(whole)


def test_attention_inside_documents(path: Path) -> None:
    """cu_seqlens and position_ids of a batch agree with a mask that is made from document rows."""
    batch = TokenFile(path).batch(range(4))
    lengths = torch.from_numpy(np.diff(batch.cu_seqlens))
    piece = torch.repeat_interleave(torch.arange(len(lengths)), lengths)
    rows = torch.repeat_interleave(torch.from_numpy(batch.doc_rows), lengths)
    assert torch.equal(rows >= 0, torch.from_numpy(batch.real).reshape(-1))
    starts = torch.from_numpy(batch.cu_seqlens[:-1]).long()[piece]
    assert torch.equal(torch.arange(len(piece)) - starts, torch.from_numpy(batch.position_ids).reshape(-1))


GRAIN = """
    import sys
    import grain
    import grain.python as gp
    import numpy as np
    from tokenization.reader import TokenFile
    from tokenization.stream import TokenStream

    if __name__ == "__main__":
        file, stream = TokenFile(sys.argv[1]), TokenStream(sys.argv[1], batch_size=6, seed=3)
        assert isinstance(file, gp.RandomAccessDataSource)
        assert isinstance(stream, gp.RandomAccessDataSource)
        batches = list(grain.MapDataset.source(file).batch(8))
        assert np.array_equal(np.concatenate(batches), file[:])
        shuffled = grain.MapDataset.source(file).shuffle(seed=1).batch(50)
        assert sorted(map(bytes, np.concatenate([shuffled[0], shuffled[1]]))) == sorted(map(bytes, file))
        steps = grain.MapDataset.source(stream)
        assert [step.step for step in steps] == list(range(len(stream)))
        assert np.array_equal(steps[3].tokens, stream[3].tokens)
        sampler = gp.IndexSampler(num_records=100, shard_options=gp.NoSharding(), shuffle=True, num_epochs=1, seed=1)
        for workers in (0, 2):
            loader = gp.DataLoader(
                data_source=file, sampler=sampler, operations=[gp.Batch(10)], worker_count=workers
            )
            rows = np.concatenate(list(loader))
            assert sorted(map(bytes, rows)) == sorted(map(bytes, file)), workers
        print("as they should be")
"""


@pytest.mark.slow
def test_grain(path: Path, tmp_path: Path) -> None:
    """File and stream are Grain's random-access sources, in MapDataset and in its DataLoader with workers."""
    pytest.importorskip("grain")
    script = tmp_path / "read.py"
    script.write_text(textwrap.dedent(GRAIN), encoding="utf-8")
    environment = {"PYTHONPATH": str(REPO), "PATH": ""}
    command = [sys.executable, str(script), str(path)]
    done = subprocess.run(command, env=environment, check=False, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "as they should be" in done.stdout
