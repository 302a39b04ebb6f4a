"""A BERT-type classifier as plain numbers: its shape out of config.json, its weights by one set of names.

Known types are `bert`, and `roberta`, `xlm-roberta` and `camembert`, which count positions from the padding's id on and have another head.
The names of the weights are those of transformers' BertModel; the head is `head.dense` (with tanh, of the first token) and `head.out`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from quality_models.lm_folder import read_json
from quality_models.safety_tensors import Array, read_folder

__all__ = ["LINEARS", "Encoder", "EncoderShape", "check_encoder", "read_encoder", "shape_of", "why_not"]

ROBERTA = ("roberta", "xlm-roberta", "camembert")
ACTIVATIONS = {"gelu": "erf", "gelu_new": "tanh", "gelu_pytorch_tanh": "tanh", "gelu_fast": "tanh", "relu": "relu"}
"""Of transformers, and how each is computed."""
LINEARS = (
    "attention.self.query",
    "attention.self.key",
    "attention.self.value",
    "attention.output.dense",
    "intermediate.dense",
    "output.dense",
)
NORMS = ("attention.output.LayerNorm", "output.LayerNorm")
_OLD_NAMES = {"gamma": "weight", "beta": "bias"}


@dataclass(frozen=True)
class EncoderShape:
    """Sizes of an encoder. `offset`: number of the first token's position."""

    hidden: int
    layers: int
    heads: int
    intermediate: int
    vocabulary: int
    positions: int
    eps: float
    activation: str = "erf"
    offset: int = 0

    @property
    def longest(self) -> int:
        """Tokens of the longest input."""
        return self.positions - self.offset


class Encoder(NamedTuple):
    """weights: float32 by the names of this module; matrices are [out, in]."""

    shape: EncoderShape
    weights: dict[str, Array]


def why_not(config: Mapping[str, Any]) -> str | None:
    """Why a config.json is not of an encoder that this module knows; None if it is."""
    kind = config.get("model_type")
    if kind not in ("bert", *ROBERTA):
        return f"model_type {kind!r}, not one of bert, {', '.join(ROBERTA)}"
    if config.get("position_embedding_type", "absolute") != "absolute":
        return f"position_embedding_type {config['position_embedding_type']!r}, not absolute"
    if config.get("is_decoder"):
        return "a decoder"
    if config.get("hidden_act", "gelu") not in ACTIVATIONS:
        return f"hidden_act {config['hidden_act']!r}, not one of {', '.join(ACTIVATIONS)}"
    return None


def shape_of(config: Mapping[str, Any], where: str) -> EncoderShape:
    """Raises ValueError for a config of another architecture, or without its sizes."""
    if (why := why_not(config)) is not None:
        raise ValueError(f"{where}: expected a BERT-type encoder, found {why}; judge with the engine torch")
    try:
        hidden, heads = int(config["hidden_size"]), int(config["num_attention_heads"])
        if hidden % heads:
            raise ValueError(f"hidden_size {hidden} for {heads} heads")
        return EncoderShape(
            hidden=hidden,
            layers=int(config["num_hidden_layers"]),
            heads=heads,
            intermediate=int(config["intermediate_size"]),
            vocabulary=int(config["vocab_size"]),
            positions=int(config["max_position_embeddings"]),
            eps=float(config.get("layer_norm_eps", 1e-12)),
            activation=ACTIVATIONS[config.get("hidden_act", "gelu")],
            offset=0 if config["model_type"] == "bert" else int(config.get("pad_token_id", 1)) + 1,
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{where}: expected the sizes of an encoder, found {error}; copy the model again") from error


def read_encoder(folder: Path) -> Encoder:
    """The classifier of a folder in transformers' format.

    Raises:
        ValueError: it is of another architecture, or not complete.
    """
    config = read_json(folder / "config.json")
    shape = shape_of(config, str(folder / "config.json"))
    weights = {_name_of(name): np.asarray(values) for name, values in read_folder(folder).items()}
    encoder = Encoder(shape, weights)
    check_encoder(encoder, str(folder))
    return encoder


def _name_of(name: str) -> str:
    """Of a tensor in a file of transformers."""
    first, dot, rest = name.partition(".")
    if dot and first in ("bert", "roberta", "model"):
        name = rest
    before, _, last = name.rpartition(".")
    if before.endswith("LayerNorm") and last in _OLD_NAMES:
        name = f"{before}.{_OLD_NAMES[last]}"
    heads = {"pooler.dense": "head.dense", "classifier.dense": "head.dense", "classifier.out_proj": "head.out"}
    heads["classifier"] = "head.out"
    before, _, last = name.rpartition(".")
    return f"{heads[before]}.{last}" if before in heads else name


def check_encoder(encoder: Encoder, where: str) -> None:
    """Raises ValueError where a weight is missing, of another shape, or not finite: 8 bits would hide it."""
    shape, weights = encoder
    hidden = shape.hidden
    wanted: dict[str, tuple[int | None, ...]] = {
        "embeddings.word_embeddings.weight": (shape.vocabulary, hidden),
        "embeddings.position_embeddings.weight": (shape.positions, hidden),
        "embeddings.token_type_embeddings.weight": (None, hidden),
        "embeddings.LayerNorm.weight": (hidden,),
        "embeddings.LayerNorm.bias": (hidden,),
        "head.dense.weight": (hidden, hidden),
        "head.dense.bias": (hidden,),
        "head.out.weight": (None, hidden),
        "head.out.bias": (None,),
    }
    for layer in range(shape.layers):
        at = f"encoder.layer.{layer}."
        for name in LINEARS:
            out = shape.intermediate if name == "intermediate.dense" else hidden
            wanted[f"{at}{name}.weight"] = (out, shape.intermediate if name == "output.dense" else hidden)
            wanted[f"{at}{name}.bias"] = (out,)
        for name in NORMS:
            wanted[f"{at}{name}.weight"] = wanted[f"{at}{name}.bias"] = (hidden,)
    for name, sizes in wanted.items():
        if name not in weights:
            raise ValueError(f"{where}: expected every weight of the classifier, found no {name}; copy the model again")
        found = weights[name]
        if len(found.shape) != len(sizes) or any(n not in (None, m) for n, m in zip(sizes, found.shape, strict=True)):
            raise ValueError(
                f"{where}: expected {name} of the shape {sizes}, found {found.shape}; copy the model again"
            )
        if not np.isfinite(found).all():
            raise ValueError(f"{where}: expected finite weights, found nan or infinity in {name}; they are damaged")
