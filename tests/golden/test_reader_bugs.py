"""Bugs that other loaders had (../shared/notes/bug-log.md, B163 to B175), each as a law that this reader keeps."""

from __future__ import annotations

import itertools
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tests.token_files import SEQ_LEN, small_block, small_header, write_small_file
from tokenization.errors import TokenFileError
from tokenization.layout import Header, block_schema
from tokenization.reader import TokenFile, verify
from tokenization.seal import add_seal, hash_block
from tokenization.stream import TokenStream

REPO = Path(__file__).resolve().parents[2]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write_small_file(tmp_path / "tokens.arrow", small_header(100))


@pytest.mark.parametrize("skipped", [0, 8])
def test_b163_raw_files_of_another_byte_order_are_refused(skipped: int, tmp_path: Path) -> None:
    """No array without a header is taken for a token file, whatever its byte order."""
    path = tmp_path / "raw.bin"
    path.write_bytes(b"\0" * skipped + np.arange(4096, dtype=">u2").tobytes())
    with pytest.raises(TokenFileError, match="does not begin with ARROW1"):
        TokenFile(path)
    stated = verify(path)
    assert not stated.ok


MEMORY = """
    import resource, sys
    from pathlib import Path
    import numpy as np
    from tokenization.reader import TokenFile

    def memory():
        lines = Path("/proc/self/smaps_rollup").read_text().splitlines()[1:]
        kb = {line.split(":")[0]: int(line.split()[1]) for line in lines}
        return kb["Anonymous"], kb["Rss"]

    file = TokenFile(sys.argv[1], read=sys.argv[2])
    rng = np.random.default_rng(1)
    file.batch(rng.integers(0, len(file), 8))
    before = memory()
    for _ in range(len(file) // 8 * 2):
        file.batch(rng.integers(0, len(file), 8))
        file[int(rng.integers(len(file)))].sum()
    after = memory()
    file.release()
    released = memory()
    print(after[0] - before[0], after[1] - before[1], released[1] - before[1])
"""


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """32 MB of tokens."""
    header = small_header(2048, seq_len=8192, block_sequences=512)
    path = tmp_path_factory.mktemp("large") / "tokens.arrow"
    from tokenization.token_file import TokenFileWriter

    with TokenFileWriter(path, header) as writer:
        for number in range(header.n_blocks):
            block = small_block(header, number)
            tokens = np.ones((len(block.tokens), 8192), np.uint16)
            tokens[:, :SEQ_LEN] = block.tokens
            writer.write(replace(block, tokens=tokens))
    return path


@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="needs Linux's count of pages")
@pytest.mark.parametrize("read", ["map", "copy"])
def test_b164_memory_is_flat(read: str, large: Path) -> None:
    """Reading all of a file at random: private memory stays; resident pages of the map go when asked."""
    command = [sys.executable, "-c", textwrap.dedent(MEMORY), str(large), read]
    done = subprocess.run(command, cwd=REPO, check=True, capture_output=True, text=True, timeout=120)
    private, resident, released = (int(word) for word in done.stdout.split())
    assert private < 4_000, "kB of private memory for 32 MB read twice"
    assert released < 8_000
    assert read == "map" or resident < 8_000


def promised(path: Path, header: Header, written: Header) -> Path:
    """A sealed file whose header is `header` and whose blocks are those of `written`."""
    schema = block_schema(header)
    ends = []
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
        for number in range(written.n_blocks):
            writer.write_batch(small_block(written, number).to_batch(schema))
            ends.append(sink.tell())
    with path.open("rb") as stream:
        starts = [8 + len(schema.serialize()), *ends]
        blocks = [hash_block(stream.fileno(), a, b) for a, b in itertools.pairwise(starts)]
    add_seal(path, blocks, ends[-1])
    return path


@pytest.mark.parametrize(("stated", "there"), [(1000, 900), (33, 32), (40, 41), (48, 40)])
def test_b165_fewer_rows_than_the_index_says(stated: int, there: int, tmp_path: Path) -> None:
    """Found when opening, with both numbers, though every checksum fits."""
    path = promised(tmp_path / "t.arrow", small_header(stated), small_header(there))
    with pytest.raises(
        TokenFileError, match=rf"promises {stated:,} sequences .* there are {there:,} in".replace(",", ",?")
    ):
        TokenFile(path)


def test_b167_verify_names_the_block_that_lacks_a_row(tmp_path: Path) -> None:
    """One row too few in the third block: named with its block; the others are not accused."""
    path = promised(tmp_path / "t.arrow", small_header(41), small_header(40))
    assert any("block 2" in problem.where for problem in verify(path).problems)
    assert not any("block 1" in problem.where for problem in verify(path).problems)


def test_b169_two_epochs_without_shuffle_are_equal(path: Path) -> None:
    """In the order of the file, both times; with shuffle they differ."""
    plain = TokenStream(path, batch_size=10, seed=1, shuffle=False, epochs=2)
    sequences = np.concatenate([batch.sequences for batch in plain]).reshape(2, 100)
    assert sequences.tolist() == [list(range(100))] * 2
    mixed = TokenStream(path, batch_size=10, seed=1, epochs=2)
    one, two = np.concatenate([batch.sequences for batch in mixed]).reshape(2, 100)
    assert sorted(one) == sorted(two) == list(range(100))
    assert one.tolist() != two.tolist()


class Workers:
    """What torch's DataLoader does with an iterable data set: a copy for each worker, asked in turn."""

    def __init__(self, stream: TokenStream, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self._copies, self._count, self._patch = [stream] * count, count, monkeypatch

    def __iter__(self):  # type: ignore[no-untyped-def]
        import copy

        iterators = []
        for number, stream in enumerate(self._copies):
            self._patch.setattr("tokenization.stream._worker", lambda number=number: (number, self._count))
            iterator = iter(copy.copy(stream))
            iterators.append((iterator, next(iterator, None)))
        while any(ready is not None for _, ready in iterators):
            for number, (iterator, ready) in enumerate(iterators):
                if ready is not None:
                    yield ready
                    iterators[number] = (iterator, next(iterator, None))


@pytest.mark.parametrize("stop", [37, 37 + 50])
def test_b170_resume_with_other_workers(stop: int, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stopped after 37 batches of 4 workers, and again in epoch 2, resumed with 2: as if never interrupted."""
    arguments = {"batch_size": 2, "seed": 5, "epochs": 3}
    whole = TokenStream(path, **arguments)  # type: ignore[arg-type]
    expected = [whole[step].tokens for step in range(len(whole))]
    first = TokenStream(path, **arguments)  # type: ignore[arg-type]
    read = [batch for _, batch in zip(range(stop), Workers(first, 4, monkeypatch), strict=False)]
    state = first.state_dict(after=read[-1].step)
    second = TokenStream(path, **arguments)  # type: ignore[arg-type]
    second.load_state_dict(state)
    read += list(Workers(second, 2, monkeypatch))
    assert [batch.step for batch in read] == list(range(150))
    assert all(np.array_equal(batch.tokens, tokens) for batch, tokens in zip(read, expected, strict=True))


def test_b171_shuffling_reads_no_more_than_a_row(path: Path) -> None:
    """No index map between a row and its place: any row of any block touches that block alone."""
    file = TokenFile(path)
    file[77]
    assert np.flatnonzero(file._ready).tolist() == [77 // 16]
    stream = TokenStream(file, batch_size=1, seed=1)
    batch = stream[50]
    assert set(np.flatnonzero(file._ready).tolist()) == {77 // 16, int(batch.sequences[0]) // 16}


def test_b174_ids_come_in_types_that_embeddings_take(path: Path) -> None:
    """uint16 in the file, int64 or int32 in every batch: torch's embedding takes both."""
    torch = pytest.importorskip("torch")
    embedding = torch.nn.Embedding(100, 4)
    file = TokenFile(path)
    for tokens in (file.__getitems__([1, 2]), file.batch([1, 2]).tokens, file.batch([1, 2], dtype=np.int32).tokens):
        assert embedding(torch.from_numpy(tokens)).shape == (2, SEQ_LEN, 4)


def test_b175_reading_without_a_map(path: Path) -> None:
    """For network file systems: the same batches, and no part of the file is mapped."""
    mapped, copied = (TokenStream(path, batch_size=7, seed=1, read=read) for read in ("map", "copy"))  # type: ignore[arg-type]
    for one, other in zip(mapped, copied, strict=True):
        assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))
    code = (
        "import sys; from pathlib import Path; from tokenization.stream import TokenStream; "
        "stream = TokenStream(sys.argv[1], batch_size=7, seed=1, read='copy'); list(stream); "
        "print(sys.argv[1] in Path('/proc/self/maps').read_text())"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], cwd=REPO, check=True, capture_output=True, text=True)
    assert done.stdout == "False\n"
