"""A mask on disk: any Arrow reader takes it, and no damage passes."""

from __future__ import annotations

import contextlib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tests.token_files import write_small_file
from tokenization.errors import TokenFileError
from tokenization.mask import Mask
from tokenization.reader import TokenFile


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> TokenFile:
    return TokenFile(write_small_file(tmp_path_factory.mktemp("mask") / "tokens.arrow"))


def test_a_round_trip(file: TokenFile, tmp_path: Path) -> None:
    """Rows, facts and columns come back; the same rows have the same digest, whatever else is told."""
    mask = Mask.of(file, [1, 5, 9], facts={"who": "mé"}, columns={"tokens": np.array([4, 5, 6], np.int32)})
    mask.write(tmp_path / "m.arrow")
    read = Mask.read(tmp_path / "m.arrow")
    assert (read.seal, read.sequences, read.rows.tolist(), read.facts) == (file.seal, 40, [1, 5, 9], {"who": "mé"})
    assert read.columns["tokens"].tolist() == [4, 5, 6]
    assert read.digest == mask.digest == Mask.of(file, [9, 5, 1, 5]).digest != Mask.of(file, [1, 5]).digest
    assert sorted([*read.others().tolist(), *read.rows.tolist()]) == list(range(40))
    with pa.ipc.open_file(tmp_path / "m.arrow") as reader:
        assert reader.read_all()["sequence"].to_pylist() == [1, 5, 9]
    assert [path.name for path in tmp_path.iterdir()] == ["m.arrow"]
    Mask.of(file, []).write(tmp_path / "m.arrow")
    assert len(Mask.read(tmp_path / "m.arrow")) == 0


def test_no_damage_passes(file: TokenFile, tmp_path: Path) -> None:
    """Of each byte a bit, and each length: refused, or what was written."""
    path = tmp_path / "m.arrow"
    mask = Mask.of(file, [1, 5, 9], facts={"why": "test"}, columns={"tokens": np.array([4, 5, 6], np.int32)})
    mask.write(path)
    data = path.read_bytes()
    for place in range(0, len(data), 9):
        for damaged in (bytes([*data[:place], data[place] ^ (1 << place % 8), *data[place + 1 :]]), data[:place]):
            path.write_bytes(damaged)
            with contextlib.suppress(TokenFileError):
                read = Mask.read(path)
                assert (read.digest, read.facts) == (mask.digest, mask.facts)
                assert read.columns["tokens"].tolist() == [4, 5, 6]


@pytest.mark.parametrize("rows", [[40], [-1], [[1]], [1.5]])
def test_rows_that_the_file_has_not(rows: list[int], file: TokenFile) -> None:
    """Refused when the mask is made."""
    with pytest.raises(ValueError, match=r"sequences 0 to 39|whole numbers"):
        Mask.of(file, rows)


@pytest.mark.parametrize("kind", ["?", "i1", "u8", "f2", "f8"])
def test_columns_of_numbers_come_back(kind: str, file: TokenFile, tmp_path: Path) -> None:
    """Every type that is taken is read again as it was written."""
    column = np.arange(3).astype(kind)
    Mask.of(file, [1, 5, 9], columns={"x": column}).write(tmp_path / "m.arrow")
    read = Mask.read(tmp_path / "m.arrow").columns["x"]
    assert (read.dtype, read.tolist()) == (column.dtype, column.tolist())


@pytest.mark.parametrize(
    "column",
    [
        np.array(["a", "b"], object),
        np.array(["a", "b"]),
        np.array([b"a", b"b"]),
        np.array([1, 2], ">i4"),
        np.array([1, 2], "M8[s]"),
    ],
)
def test_columns_that_no_digest_can_stand_for(column: np.ndarray, file: TokenFile) -> None:
    """Text and other objects are refused when the mask is made, not when it is read; so is a second `sequence`."""
    with pytest.raises(ValueError, match="column 'why' must be of numbers"):
        Mask.of(file, [1, 5], columns={"why": column})
    with pytest.raises(ValueError, match="not be named `sequence`"):
        Mask.of(file, [1, 5], columns={"sequence": np.array([2, 3])})


def test_what_is_no_mask(file: TokenFile, tmp_path: Path) -> None:
    """A token file, another version, a missing file; and what could not be written leaves the old one."""
    with pytest.raises(TokenFileError, match="is no mask"):
        Mask.read(file.path)
    with pytest.raises(FileNotFoundError):
        Mask.read(tmp_path / "none.arrow")
    Mask.of(file, [1]).write(tmp_path / "m.arrow")
    with pytest.raises(TypeError):
        Mask.of(file, [2], facts={"x": object()}).write(tmp_path / "m.arrow")
    assert Mask.read(tmp_path / "m.arrow").rows.tolist() == [1]
    with pytest.raises(ValueError, match="one a row"):
        Mask.of(file, [2], columns={"x": np.zeros(3)})
