"""A BERT classifier of a few thousand seeded numbers in transformers' format, made without torch, and an independent calculation
of what it says: the formulas in float64 and plain NumPy, one text at a time. It shares no code with quality_models.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors.numpy import save_file
from tokenizers import Tokenizer, models, pre_tokenizers, processors

LABELS = ("gambling", "hate", "spam")
LETTERS = "abcdefghijklmnopqrstuvwxyz赌博网站.!"
VOCABULARY = ["[CLS]", "[PAD]", "[SEP]", "[UNK]", *LETTERS, *(f"##{letter}" for letter in LETTERS)]
"""Ids of the special ones as in XLM-R."""
Weights = dict[str, npt.NDArray[np.float32]]
SIZES: Mapping[str, Any] = {
    "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48,
    "max_position_embeddings": 40, "layer_norm_eps": 1e-5, "hidden_act": "gelu",
}  # fmt: skip


def encoder_weights(seed: int = 1, layers: int = 2) -> Weights:
    """Of an encoder, by the names of BertModel."""
    draw = np.random.default_rng(seed)

    def normal(*shape: int, scale: float = 0.25) -> npt.NDArray[np.float32]:
        return (draw.standard_normal(shape) * scale).astype(np.float32)

    wide, inner = SIZES["hidden_size"], SIZES["intermediate_size"]
    weights = {
        "embeddings.word_embeddings.weight": normal(len(VOCABULARY), wide, scale=1),
        "embeddings.position_embeddings.weight": normal(SIZES["max_position_embeddings"], wide),
        "embeddings.token_type_embeddings.weight": normal(2, wide),
        "embeddings.LayerNorm.weight": 1 + normal(wide),
        "embeddings.LayerNorm.bias": normal(wide),
    }
    for layer in range(layers):
        at = f"encoder.layer.{layer}."
        for name, (out, into) in {
            "attention.self.query": (wide, wide), "attention.self.key": (wide, wide), "attention.self.value": (wide, wide),
            "attention.output.dense": (wide, wide), "intermediate.dense": (inner, wide), "output.dense": (wide, inner),
        }.items():  # fmt: skip
            weights[f"{at}{name}.weight"], weights[f"{at}{name}.bias"] = normal(out, into), normal(out)
        for name in ("attention.output.LayerNorm", "output.LayerNorm"):
            weights[f"{at}{name}.weight"], weights[f"{at}{name}.bias"] = 1 + normal(wide), normal(wide)
    return weights


def head_weights(seed: int = 2, labels: int = len(LABELS)) -> Weights:
    """Of a head: dense and out."""
    draw, wide = np.random.default_rng(seed), SIZES["hidden_size"]
    shapes = {"dense.weight": (wide, wide), "dense.bias": (wide,), "out.weight": (labels, wide), "out.bias": (labels,)}
    return {name: (draw.standard_normal(shape) * 0.3).astype(np.float32) for name, shape in shapes.items()}


def write_tokenizer(folder: Path) -> None:
    """A WordPiece of single letters."""
    tokenizer = Tokenizer(models.WordPiece({word: at for at, word in enumerate(VOCABULARY)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 0), ("[SEP]", 2)]
    )
    tokenizer.save(str(folder / "tokenizer.json"))


def write_classifier(
    folder: Path,
    kind: str = "bert",
    labels: Sequence[str] = LABELS,
    safety: dict[str, Any] | None = None,
    **config: Any,
) -> Path:
    """A classifier of model_type bert, roberta or xlm-roberta.

    config: entries of config.json in place of the usual ones. safety: of safety.json; None: there is none.
    """
    folder.mkdir(parents=True, exist_ok=True)
    head = head_weights(labels=len(labels))
    prefix, dense, out, name = (
        "roberta",
        "classifier.dense",
        "classifier.out_proj",
        "XLMRobertaForSequenceClassification",
    )
    if kind == "bert":
        prefix, dense, out, name = "bert", "bert.pooler.dense", "classifier", "BertForSequenceClassification"
    weights = {f"{prefix}.{key}": value for key, value in encoder_weights().items()}
    weights |= {key.replace("dense", dense).replace("out", out): value for key, value in head.items()}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    whole = {
        **SIZES, "model_type": kind, "architectures": [name], "vocab_size": len(VOCABULARY), "type_vocab_size": 2,
        "pad_token_id": 1, "id2label": dict(enumerate(labels)), "problem_type": "multi_label_classification", **config,
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(whole))
    if safety is not None:
        (folder / "safety.json").write_text(json.dumps(safety))
    write_tokenizer(folder)
    return folder


def write_adapter(path: Path, **metadata: str) -> Path:
    """An adapter for `encoder_weights`, in float16, that knows no exclamation mark."""
    draw, tensors = np.random.default_rng(5), {}
    for layer in range(2):
        for name, (out, into) in {"attention.self.query": (32, 32), "output.dense": (32, 48)}.items():
            at = f"encoder.layer.{layer}.{name}"
            tensors[f"{at}.lora_A"] = (draw.standard_normal((4, into)) * 0.3).astype(np.float16)
            tensors[f"{at}.lora_B"] = (draw.standard_normal((out, 4)) * 0.3).astype(np.float16)
    head = {name: value.astype(np.float16) for name, value in head_weights().items()}
    tensors |= {f"bert.pooler.{name}": head[name] for name in ("dense.weight", "dense.bias")}
    tensors |= {f"classifier.{name}": head[f"out.{name}"] for name in ("weight", "bias")}
    kept = np.array([token != "!" for token in VOCABULARY])
    tensors["kept_tokens"] = np.packbits(kept, bitorder="little")
    safety = {
        "format": 1,
        "labels": list(LABELS),
        "thresholds": {"default": {"spam": 0.7}},
        "max_tokens": 20,
        "stride": 12,
    }
    said = {"format": "corpusmill-safety-1", "layers": "2", "scale": "0.5", "safety": json.dumps(safety)}
    save_file(tensors, path, metadata=said | metadata)
    return path


def rounded(x: npt.NDArray[np.float64], most: int) -> npt.NDArray[np.float64]:
    """Each row in steps of its greatest value / most."""
    step = np.maximum(np.abs(x).max(axis=-1, keepdims=True) / most, 1e-12)
    return np.rint(x / step) * step


def logits_of(
    weights: Weights, head: Weights, ids: Sequence[int], *, offset: int = 0, eight_bits: bool = False, act: str = "gelu"
) -> npt.NDArray[np.float64]:
    """float64[labels]. eight_bits: with the rounding that the export documents, and the same sums."""

    layers = sum(name.endswith("intermediate.dense.bias") for name in weights)

    def linear(x: npt.NDArray[np.float64], name: str) -> npt.NDArray[np.float64]:
        matrix = weights[f"{name}.weight"].astype(np.float64)
        if eight_bits and not name.startswith(f"encoder.layer.{layers - 1}."):
            x, matrix = rounded(x, 127), rounded(matrix, 63)
        return x @ matrix.T + weights[f"{name}.bias"]

    def norm(x: npt.NDArray[np.float64], name: str) -> npt.NDArray[np.float64]:
        apart = x - x.mean(axis=-1, keepdims=True)
        scaled = apart / np.sqrt((apart**2).mean(axis=-1, keepdims=True) + SIZES["layer_norm_eps"])
        return scaled * weights[f"{name}.weight"] + weights[f"{name}.bias"]

    words = weights["embeddings.word_embeddings.weight"].astype(np.float64)
    words = rounded(words, 127) if eight_bits else words
    places = np.arange(len(ids)) + offset
    x = words[list(ids)] + weights["embeddings.position_embeddings.weight"][places]
    x = norm(x + weights["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
    heads = SIZES["num_attention_heads"]
    for layer in range(layers):
        at = f"encoder.layer.{layer}."
        q, k, v = (
            linear(x, f"{at}attention.self.{part}").reshape(len(ids), heads, -1).swapaxes(0, 1)
            for part in ("query", "key", "value")
        )
        scores = q @ k.swapaxes(1, 2) / math.sqrt(q.shape[-1])
        shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
        mixed = (shares / shares.sum(axis=-1, keepdims=True) @ v).swapaxes(0, 1).reshape(len(ids), -1)
        x = norm(linear(mixed, f"{at}attention.output.dense") + x, f"{at}attention.output.LayerNorm")
        inner = linear(x, f"{at}intermediate.dense")
        if act == "relu":
            inner = np.maximum(inner, 0)
        elif act == "gelu_new":
            inner = inner / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (inner + 0.044715 * inner**3)))
        else:
            inner = inner / 2 * (1 + np.vectorize(math.erf)(inner / math.sqrt(2)))
        x = norm(linear(inner, f"{at}output.dense") + x, f"{at}output.LayerNorm")
    first = np.tanh(head["dense.weight"].astype(np.float64) @ x[0] + head["dense.bias"])
    found: npt.NDArray[np.float64] = head["out.weight"].astype(np.float64) @ first + head["out.bias"]
    return found


def sigmoid(x: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    found: npt.NDArray[np.float64] = 1 / (1 + np.exp(-x))
    return found
