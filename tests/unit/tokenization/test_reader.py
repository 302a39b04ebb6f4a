"""Sequences are views of the mapped file; opening is cheap, and what is damaged is refused by name."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.token_files import small_block, small_header, write_small_file
from tokenization.errors import TokenFileError
from tokenization.reader import Read, TokenFile
from tokenization.seal import read_seal


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write_small_file(tmp_path / "tokens.arrow")


def test_every_sequence_is_the_one_that_was_written(path: Path) -> None:
    """By index from both ends, by iteration, with NumPy integers."""
    file = TokenFile(path)
    expected = np.concatenate([small_block(small_header(), i).tokens for i in range(3)])
    assert len(file) == 40
    assert all(np.array_equal(file[i], expected[i]) for i in range(40))
    assert all(np.array_equal(file[i - 40], expected[i]) for i in range(40))
    assert np.array_equal(np.stack(list(file)), expected)
    assert np.array_equal(file[np.int64(39)], expected[39])


@pytest.mark.parametrize("index", [40, -41, 2**70])
def test_indices_outside_are_named(index: int, path: Path) -> None:
    """An IndexError with the index and the length."""
    with pytest.raises(IndexError, match=rf"sequence {index} of .*it has 40"):
        TokenFile(path)[index]


def test_other_indices(path: Path) -> None:
    """Only whole numbers and slices of them are indices."""
    file = TokenFile(path)
    for index in (0.0, "1", None, [1, 2]):
        with pytest.raises(TypeError):
            file[index]  # type: ignore[call-overload]
    file.__getitems__(range(40))
    for indices in ([0.5], [[1, 2]], 3, ["a"], [True], None):
        with pytest.raises(TypeError, match="must be a list of whole numbers"):
            file.__getitems__(indices)  # type: ignore[arg-type]


READ = pytest.mark.parametrize("read", ["map", "copy"])


@READ
@pytest.mark.parametrize(
    "indices",
    [
        [],
        [3],
        [39, 0, 16, 15],
        [5, 5, 5],
        [-1, -40],
        list(range(40)),
        np.arange(7, 33),
        np.array([3, 1], np.uint8),
        (1, 2),
    ],
    ids=str,
)
def test_batches_of_indices(indices: Any, read: Read, path: Path) -> None:
    """One new int64 array in the order asked, across blocks, from any list of whole numbers; the list stays as it was."""
    file = TokenFile(path, read=read)
    before = list(indices)
    found = file.__getitems__(indices)
    assert (found.dtype, found.shape, found.flags.writeable) == (np.int64, (len(indices), 16), True)
    assert all(np.array_equal(row, file[i]) for row, i in zip(found, indices, strict=True))
    assert len(list(file)) == 40  # every block is ready now
    again = file.__getitems__(indices)
    assert (again.dtype, again.shape, again.flags.writeable) == (np.int64, (len(indices), 16), True)
    assert np.array_equal(again, found)
    assert not np.shares_memory(again, found)
    assert list(indices) == before


@READ
def test_large_batches_are_read_in_parts(read: Read, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts end where they must: any size of part gives the same."""
    file = TokenFile(write_small_file(tmp_path / "t.arrow"), read=read)
    indices = np.random.default_rng(1).integers(0, 40, 101)
    expected = file.batch(indices)
    for tokens_at_once in (1, 16, 48, 1600, 1616):
        monkeypatch.setattr("tokenization.batch.TOKENS_AT_ONCE", tokens_at_once)
        monkeypatch.setattr("tokenization.reader.TOKENS_AT_ONCE", tokens_at_once)
        assert np.array_equal(file.__getitems__(indices), expected.tokens)
        for one, other in zip(file.batch(indices), expected, strict=True):
            assert np.array_equal(one, other)


@READ
@pytest.mark.parametrize("index", [slice(0, 0), slice(14, 18), slice(None), slice(-3, None), slice(39, 3, -7)], ids=str)
def test_slices(index: slice, read: Read, path: Path) -> None:
    """A new array of the file's own type."""
    file = TokenFile(path, read=read)
    found = file[index]
    assert (found.dtype, found.flags.writeable) == (np.uint16, True)
    assert np.array_equal(found, np.concatenate([small_block(small_header(), i).tokens for i in range(3)])[index])


@READ
@pytest.mark.parametrize("index", [40, -41, 2**62])
def test_batches_with_indices_outside(index: int, read: Read, path: Path) -> None:
    """Named, like single ones; nothing is read; the same when every block is ready."""
    file, ready = TokenFile(path, read=read), TokenFile(path, read=read)
    ready.__getitems__(range(40))
    for ask in (file.__getitems__, file.batch, ready.__getitems__, ready.batch):
        with pytest.raises(IndexError, match=rf"sequence {index} of .*it has 40"):
            ask([1, index])


def test_both_ways_of_reading_are_the_same(path: Path) -> None:
    """A map and positioned reads: equal rows, pieces and batches, after a pickle too."""
    one, other = TokenFile(path), pickle.loads(pickle.dumps(TokenFile(path, read="copy")))
    assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))
    assert all(
        np.array_equal(a, b) for i in range(40) for a, b in zip(one.documents(i), other.documents(i), strict=True)
    )
    indices = [39, 2, 2, 17]
    assert all(np.array_equal(a, b) for a, b in zip(one.batch(indices), other.batch(indices), strict=True))
    assert not other[3].flags.writeable


def test_a_file_that_is_cut_while_it_is_read(path: Path) -> None:
    """With `copy` an error that says so; a map could only be killed."""
    file = TokenFile(path, read="copy")
    assert file[39].any()
    os.truncate(path, read_seal(path).bodies[2].start + 10)
    with pytest.raises(TokenFileError, match="it was cut while it was open"):
        file[39]
    with pytest.raises(TokenFileError, match="it was cut while it was open"):
        file.__getitems__([32, 39])


def test_threads(path: Path) -> None:
    """Eight threads that look up blocks at the same time read the same."""
    expected = TokenFile(path)[:]
    for _ in range(20):
        file = TokenFile(path, verify="lazy")
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(lambda i, file=file: (file[i], file.batch([i])), range(40)))
        assert all(np.array_equal(row, expected[i]) for i, (row, _) in enumerate(found))
        assert all(np.array_equal(batch.tokens[0], expected[i]) for i, (_, batch) in enumerate(found))


@READ
def test_views_outlive_release_and_close(read: Read, path: Path) -> None:
    """Pages that were given back come back; a closed file reads nothing new."""
    with TokenFile(path, read=read) as file:
        row = file[20]
        before = row.copy()
        file.release()
        assert np.array_equal(row, before)
        assert np.array_equal(file[20], before)
    assert np.array_equal(row, before)
    with pytest.raises(OSError, match="Bad file descriptor"):
        TokenFile.__getitem__(file, 39)


def test_sequences_are_read_only_views(path: Path) -> None:
    """Nothing is allocated, and nothing can be written."""
    before = pa.total_allocated_bytes()
    file = TokenFile(path)
    row = file[20]
    assert pa.total_allocated_bytes() == before
    assert (row.dtype, row.shape, row.flags.owndata, row.flags.writeable) == (np.uint16, (16,), False, False)
    assert np.shares_memory(row, file[20])
    with pytest.raises(ValueError, match="read-only"):
        row[0] = 1


def test_borders_of_documents(path: Path) -> None:
    """Lengths and rows of the pieces in a sequence, and where each begins."""
    file = TokenFile(path)
    pieces = file.documents(17)
    assert (pieces.lengths.tolist(), pieces.rows.tolist()) == ([5, 7], [34, 35])
    assert file.borders(17).tolist() == [0, 5, 12]
    assert file.borders(-1).dtype == np.int32


def test_the_metadata_is_the_header(path: Path) -> None:
    """Counts, tokenizer and provenance are there without reading a block."""
    file = TokenFile(path)
    assert file.metadata == small_header()
    assert repr(file).endswith("40 sequences of 16 uint16, 80 documents, tokenizer 'small')")
    assert file.seal == read_seal(path).sha256


def test_an_empty_file_opens(tmp_path: Path) -> None:
    """No sequences: length 0, no error."""
    file = TokenFile(write_small_file(tmp_path / "t.arrow", small_header(0)), verify="all")
    assert (len(file), list(file)) == (0, [])


def test_it_pickles_by_path(path: Path) -> None:
    """A few hundred bytes, whatever the file holds; the copy reads the same."""
    file = TokenFile(path)
    data = pickle.dumps(file)
    assert len(data) < 1_000
    assert np.array_equal(pickle.loads(data)[39], file[39])


def test_a_pickle_of_another_file_is_refused(path: Path) -> None:
    """A file that was replaced between pickling and loading is named, not read."""
    data = pickle.dumps(TokenFile(path))
    write_small_file(path, small_header(run_id="another"))
    with pytest.raises(TokenFileError, match="replaced by another one"):
        pickle.loads(data)


def _total(file: TokenFile) -> int:
    return sum(int(file[i].sum()) for i in range(len(file)))


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_workers_read_it(method: str, path: Path) -> None:
    """Forked with open blocks, or spawned from a pickle: the same tokens."""
    file = TokenFile(path)
    expected = _total(file)
    with multiprocessing.get_context(method).Pool(2) as pool:
        assert pool.map(_total, [file, file]) == [expected, expected]
        pool.close()  # so that the workers end by themselves
        pool.join()


def test_no_descriptor_is_left(path: Path) -> None:
    """A reader that goes away closes what it opened."""
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(20):
        TokenFile(path)[0]
    assert len(list(Path("/proc/self/fd").iterdir())) <= before + 1


def test_it_needs_pyarrow_and_numpy_only() -> None:
    """A trainer imports no tokenizer, no configuration, nothing of the pipeline."""
    code = (
        "import sys, tokenization.reader, tokenization.stream; "
        "names = {m.split('.')[0] for m in sys.modules}; "
        "print(sorted(names & {'curation', 'tokenizers', 'pydantic', 'yaml', 'numba', 'torch', 'pandas'}))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60)
    assert done.stdout == "[]\n"


def _flip(path: Path, position: int) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 0x10
    path.write_bytes(data)


@pytest.mark.parametrize("region", ["schema", "end", "footer"])
def test_damage_that_arrow_would_parse_is_refused_when_opening(region: str, path: Path) -> None:
    """Schema, end mark and footer are checked before Arrow sees them."""
    place = getattr(read_seal(path), region)
    _flip(path, place.start + (9 if region == "schema" else 3))
    with pytest.raises(TokenFileError, match=rf"{place.name}: bytes {place.start} to {place.end} are not those"):
        TokenFile(path)


def test_a_damaged_head_is_refused_at_first_touch(path: Path) -> None:
    """The other blocks stay readable."""
    _flip(path, read_seal(path).heads[1].start + 20)
    file = TokenFile(path)
    assert file[0].any()
    with pytest.raises(TokenFileError, match=r"block 1 \(head\)"):
        file[16]
    assert file[39].any()


@READ
@pytest.mark.parametrize("pickled", [False, True])
def test_lazy_checks_a_block_at_first_touch(read: Read, pickled: bool, path: Path) -> None:
    """The damaged block is named whatever is asked of it, each time; the others stay readable. Pickles stay lazy."""
    _flip(path, read_seal(path).bodies[1].start + 20)
    file = TokenFile(path, verify="lazy", read=read)
    file = pickle.loads(pickle.dumps(file)) if pickled else file
    for ask in (file.__getitem__, file.documents, lambda i: file.__getitems__([0, i]), lambda i: file.batch([i, 39])):
        with pytest.raises(TokenFileError, match=r"block 1: bytes .* are not those that were written"):
            ask(16)
    assert len(file.batch([0, 15, 32, 39]).tokens) == 4


def test_damaged_tokens_are_found_when_asked(path: Path) -> None:
    """`none` reads what is there; `all` refuses and names the block."""
    _flip(path, read_seal(path).bodies[1].start + 20)
    assert len(TokenFile(path)[16]) == 16
    with pytest.raises(TokenFileError, match="damaged: block 1: bytes"):
        TokenFile(path, verify="all")


def test_damaged_borders_are_refused(path: Path) -> None:
    """Borders are in the body, which `none` does not check: what reaches outside of a sequence is named, not read."""
    body = read_seal(path).bodies[0]
    whole = path.read_bytes()
    borders, lengths = body.start + 16 * 16 * 2, body.start + 16 * 16 * 2 + 72
    for at, value in (
        (borders, b"\xfb\xff\xff\x7f"),
        (borders, b"\xff" * 4),
        (lengths, b"\xff" * 4),
        (lengths, b"\x0a\0\0\0"),
    ):
        data = bytearray(whole)
        data[at : at + 64] = value * 16
        path.write_bytes(data)
        file = TokenFile(path)
        for ask in (file.documents, file.borders, lambda i, file=file: file.batch([i])):
            with pytest.raises(TokenFileError, match="block 0: the borders of documents in sequence 3 are damaged"):
                ask(3)
        assert file[3].any()


def test_wrong_arguments(path: Path) -> None:
    """A missing file is a FileNotFoundError; an unknown mode is named."""
    with pytest.raises(FileNotFoundError):
        TokenFile(path.with_name("missing.arrow"))
    with pytest.raises(ValueError, match="'map' or 'copy', found 'mmap'"):
        TokenFile(path, read="mmap")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="'none', 'lazy' or 'all', found 'some'"):
        TokenFile(path, verify="some")  # type: ignore[arg-type]
