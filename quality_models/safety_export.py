"""Writes classifiers for onnxruntime in 8 bits, without torch: of a folder in transformers' format, or of weights at hand.

    export_int8(Path("models/mine"))        # -> models/mine/model.int8.onnx

Costs: reading the weights, a second for 100 million of them; memory 6 bytes a weight.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt

from quality_models.lm_folder import digest, weight_files
from quality_models.safety_encoder import Encoder, read_encoder

__all__ = ["BUILDER", "ONNX_NAME", "SOURCE", "export_int8", "source_of", "write_int8"]

ONNX_NAME = "model.int8.onnx"
SOURCE = "source"
"""Note in the file: of which weights, and by which builder, it was made."""
BUILDER = "2"
"""Version of what `safety_graph` builds: raised whenever the same weights may give other numbers."""


def source_of(folder: Path) -> str:
    """What decides an export: checksum of config and weights, and the builder. Raises ValueError where they are missing."""
    return f"{digest(weight_files(folder))} builder {BUILDER}"


def export_int8(folder: Path, target: Path | None = None) -> Path:
    """Write `model.int8.onnx` beside a classifier of type bert, roberta, xlm-roberta or camembert, or as `target`.

    Raises:
        ValueError: the classifier is of another architecture, or not complete; or package onnx is missing.
    """
    target = target or folder / ONNX_NAME
    write_int8(read_encoder(folder), target, {SOURCE: source_of(folder)})
    return target


def write_int8(
    encoder: Encoder, target: Path, notes: Mapping[str, str], rows: npt.NDArray[np.int32] | None = None
) -> None:
    """Write an encoder; see `safety_graph.build`. The file appears complete or not at all."""
    try:
        from quality_models.safety_graph import build
    except ModuleNotFoundError as error:
        raise ValueError(
            f"package {error.name}: expected it to write {target.name}, found it missing; pip install 'corpusmill[curate]'"
        ) from None
    partial = target.with_name(f".{target.name}-{os.getpid()}.tmp")
    try:
        partial.write_bytes(build(encoder, notes, rows).SerializeToString())
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)
