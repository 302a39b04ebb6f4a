"""What a training leaves: a folder in transformers' format, and the adapter alone, a few MB.

The folder: config.json with id2label, model.safetensors, tokenizer.json, safety.json (thresholds and where all comes from).
adapter.safetensors: float16; `encoder.layer.{i}.{linear}.lora_A` [rank, in] and `.lora_B` [out, rank], to be merged as
W + scale * B @ A; `bert.pooler.dense.*`; `classifier.*`. Its metadata: scale, rank, layers, base (JSON), and safety.json.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from quality_models.safety_lora import lora_tensors, merge, round_to_half
from quality_models.safety_training_base import Base, quietly
from quality_models.safety_training_settings import TrainingSettings

__all__ = [
    "ADAPTER",
    "FACTS",
    "adapter_tensors",
    "plain_model",
    "versions",
    "write_adapter",
    "write_json",
    "write_model",
]

log = logging.getLogger("corpusmill")

ADAPTER, FACTS, METRICS, CARD = "adapter.safetensors", "safety.json", "metrics.json", "README.md"
READABLE = 0o644
"""Package safetensors writes files that nobody else may read."""
FORMAT = "corpusmill-safety-1"
"""As `safety_shipped` reads it."""


def adapter_tensors(model: Any) -> dict[str, Any]:
    """Tensors of the adapter file, float16. The model's own are rounded likewise, so that both are the same model."""
    round_to_half(model)
    return {name: tensor.detach().cpu().half().contiguous() for name, tensor in lora_tensors(model).items()}


def plain_model(base: Base) -> Any:
    """The model as ordinary layers in float32 on the CPU."""
    merge(base.model)
    base.model.config._attn_implementation = "sdpa"
    return base.model.float().cpu().eval()


def write_model(base: Base, folder: Path) -> None:
    """config.json, model.safetensors, tokenizer.json, each complete or not there."""
    folder.mkdir(parents=True, exist_ok=True)
    beside = folder / f".new.{os.getpid()}"
    try:
        with quietly():
            base.model.save_pretrained(beside)
        shutil.copyfile(base.tokenizer, beside / "tokenizer.json")
        for path in sorted(beside.iterdir()):
            path.chmod(READABLE)
            path.replace(folder / path.name)
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def write_adapter(
    tensors: dict[str, Any], path: Path, base: Base, settings: TrainingSettings, facts: dict[str, Any]
) -> None:
    """The adapter file, under another name first."""
    metadata = {
        "format": FORMAT,
        "scale": repr(settings.scale),
        "rank": str(settings.adapter),
        "layers": str(base.facts["layers"]),
        "base": json.dumps(base.facts),
        "safety": json.dumps(facts, ensure_ascii=False),
    }
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        save_file(tensors, beside, metadata)
        beside.chmod(READABLE)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def write_json(value: Any, path: Path) -> None:
    """Readable, and complete or not there."""
    write_text(json.dumps(value, ensure_ascii=False, indent=1) + "\n", path)


def write_text(text: str, path: Path) -> None:
    """Complete or not there."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        beside.write_text(text, encoding="utf-8")
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def export_onnx(folder: Path) -> None:
    """The model in 8 bits for onnxruntime, where package onnx is there; else it is said that it is missing."""
    from importlib.util import find_spec

    if find_spec("onnx") is None:
        log.warning("package onnx: not installed, so no 8-bit model was written; pip install 'corpusmill[curate]'")
        return
    from quality_models.safety_export import export_int8

    log.info("%s", export_int8(folder))


def versions() -> str:
    """Of what worked the numbers out."""
    import transformers

    return f"torch {torch.__version__}, transformers {transformers.__version__}"
