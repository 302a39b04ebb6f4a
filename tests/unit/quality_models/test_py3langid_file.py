"""py3langid's model file: what is in it, and damaged files."""

from __future__ import annotations

import io
import lzma
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from quality_models.py3langid_file import read_py3langid

Arrays = dict[str, np.ndarray]


def small() -> Arrays:
    """A model with two classes, two states and one feature."""
    moves = np.zeros(256, np.uint16)
    moves[ord("a")] = 1
    return {
        "ptc": np.array([[-1, -2]], np.float16),
        "pc": np.array([-0.5, -0.5], np.float32),
        "classes": np.array(["de", "en"]),
        "nextmove": moves,
        "nextmove_row": np.zeros(2, np.uint16),
        "out_feat": np.array([-1, 0], np.int32),
    }


def write(path: Path, arrays: Arrays) -> Path:
    packed = io.BytesIO()
    np.savez(packed, **arrays)
    path.write_bytes(lzma.compress(packed.getvalue()))
    return path


def test_the_model_of_the_package() -> None:
    """The same arrays as the package's own reader gives."""
    from py3langid import modelio
    from py3langid.langid import MODEL_DIR, MODEL_FILE

    ours = read_py3langid()
    weights, priors, classes, moves, rows, features = modelio.load_model(MODEL_DIR / MODEL_FILE)
    assert ours.classes == tuple(classes)
    for found, expected in (
        (ours.weights, weights),
        (ours.priors, priors),
        (ours.moves.reshape(-1), np.frombuffer(moves, np.uint32)),
        (ours.rows, np.frombuffer(rows, np.uint16)),
        (ours.features, np.array(features)),
    ):
        assert (found == expected).all()


def test_a_model_of_ones_own(tmp_path: Path) -> None:
    """Any model that the package's trainer writes: narrow numbers become wide ones."""
    model = read_py3langid(write(tmp_path / "model.npz.xz", small()))
    assert model.classes == ("de", "en")
    assert (model.moves.shape, model.moves.dtype, model.rows.dtype) == ((1, 256), np.uint32, np.uint32)


def test_the_package_is_not_imported() -> None:
    """Reading its file runs none of its code."""
    program = "import sys; from quality_models.py3langid_file import read_py3langid as r; r(); print('py3langid' in sys.modules)"
    assert (
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "False\n"
    )


def without(name: str) -> Callable[[Arrays], Arrays]:
    return lambda arrays: {key: array for key, array in arrays.items() if key != name}


def with_array(name: str, array: np.ndarray) -> Callable[[Arrays], Arrays]:
    return lambda arrays: arrays | {name: array}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (without("out_feat"), "KeyError"),
        (with_array("ptc", np.zeros((1, 3), np.float16)), "found shapes"),
        (with_array("ptc", np.array([[np.nan, 0]], np.float16)), "finite"),
        (with_array("ptc", np.zeros((1, 2), np.int64)), "kinds"),
        (with_array("classes", np.array([], "U2")), "0 classes"),
        (with_array("nextmove", np.zeros(255, np.uint16)), "256"),
        (with_array("nextmove", np.full(256, 2, np.uint16)), "nextmove below 2"),
        (with_array("nextmove_row", np.array([0, 1], np.uint16)), "nextmove_row below 1"),
        (with_array("nextmove_row", np.zeros(0, np.uint16)), "0 states"),
        (with_array("out_feat", np.array([-1, 1], np.int32)), "out_feat below 1"),
        (with_array("out_feat", np.array([-2, 0], np.int32)), "from -2"),
        (with_array("out_feat", np.array([0], np.int32)), "2 states"),
    ],
)
def test_models_that_are_wrong_inside_are_refused(
    tmp_path: Path, change: Callable[[Arrays], Arrays], message: str
) -> None:
    """Whatever would make the kernel read outside of its tables: ValueError with the file and what was found."""
    path = write(tmp_path / "model.npz.xz", change(small()))
    with pytest.raises(ValueError, match=message) as error:
        read_py3langid(path)
    assert str(path) in str(error.value)


@pytest.mark.parametrize("cut", [0, 1, 100, -20])
def test_cut_files_are_refused(tmp_path: Path, cut: int) -> None:
    """Empty, or cut anywhere."""
    path = write(tmp_path / "model.npz.xz", small())
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(ValueError, match=r"expected a model of py3langid"):
        read_py3langid(path)


def lone_array() -> bytes:
    packed = io.BytesIO()
    np.save(packed, np.zeros(3))
    return packed.getvalue()


FOREIGN = [b"no model", *map(lzma.compress, (lone_array(), b"no zip", b"PK\x03\x04" + bytes(60)))]


@pytest.mark.parametrize("content", FOREIGN, ids=range(len(FOREIGN)))
def test_foreign_files_are_refused(tmp_path: Path, content: bytes) -> None:
    """Neither LZMA, nor a zip in it."""
    path = tmp_path / "model.npz.xz"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"expected a model of py3langid"):
        read_py3langid(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    """FileNotFoundError with the path."""
    with pytest.raises(FileNotFoundError, match="absent"):
        read_py3langid(tmp_path / "absent.npz.xz")
