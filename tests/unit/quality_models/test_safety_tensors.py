"""Files of tensors are read as their own package writes them, and refused when damaged."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from quality_models.safety_tensors import read_folder, read_metadata, read_tensors


def test_numbers_are_those_that_were_written(tmp_path: Path) -> None:
    """float32, float16, bytes and bfloat16, with the metadata."""
    values = {
        "single": np.arange(6, dtype=np.float32).reshape(2, 3),
        "half": np.array([1.5, -2], np.float16),
        "bytes": np.arange(3, dtype=np.uint8),
        "empty": np.zeros((0, 4), np.float32),
    }
    save_file(values, tmp_path / "a.safetensors", metadata={"said": "yes"})

    found = read_tensors(tmp_path / "a.safetensors")

    assert found.metadata == read_metadata(tmp_path / "a.safetensors") == {"said": "yes"}
    for name, expected in values.items():
        np.testing.assert_array_equal(found.values[name], expected)
    assert found.values["half"].dtype == np.float32


def test_bfloat16(tmp_path: Path) -> None:
    """The upper half of a float32."""
    header = b'{"x":{"dtype":"BF16","shape":[2],"data_offsets":[0,4]}}'
    (tmp_path / "b.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + b"\x80\x3f\x00\xc0")

    assert read_folder(tmp_path)["x"].tolist() == [1.0, -2.0]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"1234567",
        struct.pack("<Q", 2**60) + b"{}",
        struct.pack("<Q", 4) + b"nope",
        struct.pack("<Q", 2) + b"[]",
        struct.pack("<Q", 54) + b'{"x":{"dtype":"F32","shape":[9],"data_offsets":[0,36]}}'[:54] + b"1234",
        struct.pack("<Q", 55) + b'{"x":{"dtype":"F32","shape":[9],"data_offsets":[0,36]}}' + b"1234",
        struct.pack("<Q", 54) + b'{"x":{"dtype":"F3","shape":[1],"data_offsets":[0,4]}}\n' + b"1234",
    ],
)
def test_a_damaged_file_is_refused(tmp_path: Path, data: bytes) -> None:
    """With its name, whatever is wrong."""
    path = tmp_path / "c.safetensors"
    path.write_bytes(data)

    with pytest.raises(ValueError, match=r"c\.safetensors: expected weights as safetensors"):
        read_tensors(path)
