"""What a training leaves: a folder in transformers' format, and the adapter alone, a few MB.

The folder: config.json with id2label, model.safetensors, tokenizer.json, safety.json (thresholds and where all comes from).
adapter.safetensors: float16; `encoder.layer.{i}.{linear}.lora_A` [rank, in] and `.lora_B` [out, rank], to be merged as
W + scale * B @ A; `bert.pooler.dense.*`; `classifier.*`. Its metadata: scale, rank, layers, base (JSON), and safety.json.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from quality_models.safety_lora import lora_tensors, merge, round_to_half
from quality_models.safety_training_base import Base
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

ADAPTER, FACTS = "adapter.safetensors", "safety.json"


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
        base.model.save_pretrained(beside)
        shutil.copyfile(base.tokenizer, beside / "tokenizer.json")
        for path in sorted(beside.iterdir()):
            path.replace(folder / path.name)
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def write_adapter(
    tensors: dict[str, Any], path: Path, base: Base, settings: TrainingSettings, facts: dict[str, Any]
) -> None:
    """The adapter file, under another name first."""
    metadata = {
        "format": "corpusmill-safety-adapter-1",
        "scale": repr(settings.scale),
        "rank": str(settings.adapter),
        "layers": str(base.facts["layers"]),
        "base": json.dumps(base.facts),
        "safety": json.dumps(facts, ensure_ascii=False),
    }
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        save_file(tensors, beside, metadata)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def write_json(value: Any, path: Path) -> None:
    """Readable, and complete or not there."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    beside.write_text(json.dumps(value, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    beside.replace(path)


def versions() -> str:
    """Of what worked the numbers out."""
    import transformers

    return f"torch {torch.__version__}, transformers {transformers.__version__}"
