"""The file of the fast safety model: a linear classifier over hashed n-grams of characters, 8 bits a weight.

    model = open_linear()                      # the shipped one
    model = read_linear(path)

What it reads and how fast says curation/filters/safety_model/linear.py; tools/train_safety_linear.py trains it. The file is
NumPy's npz: `weights` int8[n_buckets, n_labels], `scales` and `bias` float32[n_labels], `labels`, `version`.
"""

from __future__ import annotations

import zipfile
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from quality_models.language_models import checksum

__all__ = ["LINEAR_VERSION", "SHIPPED_LINEAR", "LinearModel", "open_linear", "read_linear", "write_linear"]

LINEAR_VERSION = 1
"""Raised whenever the n-grams of a text change, so that no file is read with others than it was trained on."""

SHIPPED_LINEAR = Path(__file__).parent / "weights" / "corpusmill-safety-linear.npz"


class LinearModel(NamedTuple):
    """A linear classifier: the logit of a label is `bias + scale * mean of the weights of all n-grams`."""

    labels: tuple[str, ...]
    weights: npt.NDArray[np.int8]
    """int8[n_buckets, n_labels], n_buckets a power of two."""
    scales: npt.NDArray[np.float32]
    bias: npt.NDArray[np.float32]
    identity: str
    """Checksum of the file."""


@cache
def open_linear() -> LinearModel:
    """The shipped model, read once in a process."""
    return read_linear(SHIPPED_LINEAR)


def read_linear(path: Path) -> LinearModel:
    """Read a file.

    Raises:
        ValueError: it is none, damaged, or of another version.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            version = int(file["version"])
            labels = tuple(str(label) for label in file["labels"])
            weights, scales, bias = file["weights"], file["scales"], file["bias"]
    except (OSError, KeyError, zipfile.BadZipFile, ValueError) as error:
        raise ValueError(f"{path}: expected a linear safety model (npz), found something else: {error}") from error
    buckets = len(weights)
    if version != LINEAR_VERSION:
        raise ValueError(f"{path}: expected version {LINEAR_VERSION} of the n-grams, found {version}: train it anew")
    if weights.shape != (buckets, len(labels)) or buckets & (buckets - 1) or weights.dtype != np.int8:
        raise ValueError(f"{path}: expected int8 weights [power of two, {len(labels)}], found {weights.shape}")
    return LinearModel(labels, weights, scales.astype(np.float32), bias.astype(np.float32), checksum(path))


def write_linear(
    path: Path, labels: tuple[str, ...], weights: npt.NDArray[np.float32], bias: npt.NDArray[np.float32]
) -> None:
    """Round the weights, float32[n_buckets, n_labels], to 8 bits by label and write the file."""
    scales = np.maximum(np.abs(weights).max(axis=0), 1e-6).astype(np.float32) / 127
    rounded = np.clip(np.rint(weights / scales), -127, 127).astype(np.int8)
    np.savez_compressed(
        path,
        version=LINEAR_VERSION,
        labels=np.array(labels),
        weights=rounded,
        scales=scales,
        bias=bias.astype(np.float32),
    )
