"""Sequences are views of the mapped file; opening is cheap, and what is damaged is refused by name."""

from __future__ import annotations

import multiprocessing
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tests.token_files import small_block, small_header, write_small_file
from tokenization.errors import TokenFileError
from tokenization.reader import TokenFile
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
    for indices in ([0.5], [[1, 2]], 3, ["a"]):
        with pytest.raises(TypeError, match="must be a list of whole numbers"):
            file.__getitems__(indices)  # type: ignore[arg-type]


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


def test_no_descriptor_is_left(path: Path) -> None:
    """A reader that goes away closes what it opened."""
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(20):
        TokenFile(path)[0]
    assert len(list(Path("/proc/self/fd").iterdir())) <= before + 1


def test_it_needs_pyarrow_and_numpy_only() -> None:
    """A trainer imports no tokenizer, no configuration, nothing of the pipeline."""
    code = (
        "import sys, tokenization.reader; "
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
    with pytest.raises(ValueError, match="'none', 'lazy' or 'all', found 'some'"):
        TokenFile(path, verify="some")  # type: ignore[arg-type]
