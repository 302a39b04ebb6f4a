"""Tensors out of *.safetensors files without torch or its package: NumPy arrays, floats as float32.

The format: 8 bytes with the length of a header, the header in JSON (name -> dtype, shape, place; `__metadata__` -> strings), the
numbers. Costs: what the disk takes; arrays of float32 are views of the mapped file.
"""

from __future__ import annotations

import json
import math
import mmap
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = ["Array", "Tensors", "read_folder", "read_metadata", "read_tensors"]

Array: TypeAlias = npt.NDArray[Any]

_TYPES = {
    "F32": "<f4",
    "F16": "<f2",
    "F64": "<f8",
    "BF16": "<u2",
    "U8": "u1",
    "I8": "i1",
    "I64": "<i8",
    "I32": "<i4",
    "BOOL": "?",
}
MAX_HEADER = 100_000_000
"""The format's own limit."""


class Tensors(NamedTuple):
    """What a file holds."""

    values: dict[str, Array]
    metadata: dict[str, str]


def read_tensors(path: Path) -> Tensors:
    """All tensors of a file.

    Raises:
        ValueError: it is not there, no such file, or cut short.
    """
    try:
        with path.open("rb") as file:
            header, start = _header(file, path)
            size = path.stat().st_size
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        metadata = header.pop("__metadata__", {})
        return Tensors({name: _array(data, start, size, entry) for name, entry in header.items()}, metadata)
    except (OSError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise ValueError(
            f"{path}: expected weights as safetensors, found {_why(error)}; copy the file again"
        ) from error


def read_metadata(path: Path) -> dict[str, str]:
    """The strings that a file says about itself; no tensor is read. Raises ValueError as `read_tensors` does."""
    try:
        with path.open("rb") as file:
            found: dict[str, str] = _header(file, path)[0].get("__metadata__", {})
            return found
    except (OSError, ValueError, AttributeError) as error:
        raise ValueError(
            f"{path}: expected weights as safetensors, found {_why(error)}; copy the file again"
        ) from error


def read_folder(folder: Path) -> dict[str, Array]:
    """The tensors of every *.safetensors of a folder. Raises ValueError where there is none."""
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        raise ValueError(
            f"{folder}: expected weights as *.safetensors, found none; save the model with save_pretrained"
        )
    found: dict[str, Array] = {}
    for path in files:
        found |= read_tensors(path).values
    return found


def _why(error: Exception) -> str:
    return error.strerror or str(error) if isinstance(error, OSError) else str(error)


def _header(file: Any, path: Path) -> tuple[dict[str, Any], int]:
    """The header, and where the numbers begin."""
    first = file.read(8)
    if len(first) < 8:
        raise ValueError(f"{len(first)} bytes")
    (length,) = struct.unpack("<Q", first)
    if length > min(MAX_HEADER, path.stat().st_size - 8):
        raise ValueError("no header")
    header = json.loads(file.read(length))
    if not isinstance(header, dict):
        raise ValueError("a header that is no object")
    return header, 8 + length


def _array(data: mmap.mmap, start: int, size: int, entry: Mapping[str, Any]) -> Array:
    """float32 for any floating numbers, else as stored."""
    if entry["dtype"] not in _TYPES:
        raise ValueError(f"numbers of the kind {entry['dtype']}")
    kind, shape = np.dtype(_TYPES[entry["dtype"]]), tuple(int(n) for n in entry["shape"])
    begin, end = (start + int(place) for place in entry["data_offsets"])
    count = math.prod(shape)
    if not start <= begin <= end <= size or count * kind.itemsize != end - begin:
        raise ValueError("less than its header says")
    values: Array = np.frombuffer(data, kind, count, begin).reshape(shape)
    if entry["dtype"] == "BF16":
        return (values.astype(np.uint32) << 16).view(np.float32)
    return values.astype(np.float32) if entry["dtype"] in ("F16", "F64") else values
