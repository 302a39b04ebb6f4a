"""Read the model file of py3langid, without importing the package.

py3langid (BSD, a fork of Marco Lui's langid.py) is naive Bayes over byte sequences that an automaton finds in
one pass. Its model is an .npz in LZMA: 4.6 MB on disk, 68 MB in memory, read in 0.4 s. What is in it:

| array | what |
| --- | --- |
| ptc | float16[n_features, n_classes], log probability of a feature in a class |
| pc | float32[n_classes], log probability of a class |
| classes | name of each class; several classes may have one name |
| nextmove | uint16 or uint32[n_rows * 256], the next state for each byte |
| nextmove_row | row of each state |
| out_feat | int32[n_states], the feature that is found on arriving in a state, or -1 |
"""

from __future__ import annotations

import io
import lzma
import zipfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from quality_models.language_models import installed

__all__ = ["Py3langidModel", "read_py3langid"]

ARRAYS = {"ptc": "f", "pc": "f", "classes": "U", "nextmove": "u", "nextmove_row": "u", "out_feat": "i"}
"""Kind of each array, as in numpy.dtype.kind."""


class Py3langidModel(NamedTuple):
    """An automaton over bytes, and what its features say about each class.

    classes: name of each class, some twice. weights: float16[n_features, n_classes]. priors:
    float32[n_classes]. moves: uint32[n_rows, 256], next state; rows: uint32[n_states], the row of a state;
    features: int32[n_states], found on arriving in a state, or -1. The automaton starts in state 0.
    """

    classes: tuple[str, ...]
    weights: npt.NDArray[np.float16]
    priors: npt.NDArray[np.float32]
    moves: npt.NDArray[np.uint32]
    rows: npt.NDArray[np.uint32]
    features: npt.NDArray[np.int32]


def read_py3langid(path: Path | None = None) -> Py3langidModel:
    """The model in a file; that of the installed package by default.

    Raises FileNotFoundError where py3langid is not installed or the file is missing, ValueError for a file
    that is damaged or of another kind; both say which file, what was expected and what was found.
    """
    path = installed("py3langid", "data/model.npz.xz") if path is None else path
    try:
        with lzma.open(path) as packed, np.load(io.BytesIO(packed.read()), allow_pickle=False) as arrays:
            found = {name: arrays[name] for name in ARRAYS}
    except (lzma.LZMAError, zipfile.BadZipFile, EOFError, KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"{path}: expected a model of py3langid, an .npz in LZMA with {', '.join(ARRAYS)}, "
            f"found {type(error).__name__}: {error}"
        ) from error
    kinds = {name: array.dtype.kind for name, array in found.items()}
    if kinds != ARRAYS:
        raise ValueError(f"{path}: expected arrays of kinds {ARRAYS}, found {kinds}")
    if found["nextmove"].size % 256:
        raise ValueError(f"{path}: expected nextmove in rows of 256, found {found['nextmove'].size} numbers")
    model = Py3langidModel(
        tuple(found["classes"].ravel().tolist()),
        found["ptc"].astype(np.float16, copy=False),
        found["pc"].astype(np.float32, copy=False),
        found["nextmove"].astype(np.uint32, copy=False).reshape(-1, 256),
        found["nextmove_row"].astype(np.uint32, copy=False).ravel(),
        found["out_feat"].astype(np.int32, copy=False).ravel(),
    )
    _check(model, path)
    return model


def _check(model: Py3langidModel, path: Path) -> None:
    """Raises ValueError unless sizes agree and everything that points, points to something."""
    n_classes, n_states = len(model.classes), len(model.rows)
    if not n_classes or model.weights.shape[1:] != (n_classes,) or model.priors.shape != (n_classes,):
        raise ValueError(
            f"{path}: expected ptc and pc for the {n_classes} classes, "
            f"found shapes {model.weights.shape} and {model.priors.shape}"
        )
    if not n_states or model.features.shape != (n_states,):
        raise ValueError(f"{path}: expected out_feat for {n_states} states, found shape {model.features.shape}")
    for name, values, size in (
        ("nextmove", model.moves, n_states),
        ("nextmove_row", model.rows, len(model.moves)),
        ("out_feat", model.features, len(model.weights)),
    ):
        if values.size and (int(values.max()) >= size or int(values.min()) < -1):
            raise ValueError(f"{path}: expected {name} below {size:,}, found from {values.min():,} to {values.max():,}")
    if not (np.isfinite(model.weights).all() and np.isfinite(model.priors).all()):
        raise ValueError(f"{path}: expected finite log probabilities, found some that are not")
