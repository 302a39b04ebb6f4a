"""Reads and writes Corpusmill's n-gram language models: one small file, read into memory whole.

| part | content |
| --- | --- |
| magic | 8 bytes, `CMNGRAM` and 0 |
| sizes | uint32 version of the format, uint32 bytes of the head |
| head | JSON: language, order, normalisation, facts (what it was trained on), checksum of the arrays, and where each of them lies |
| arrays | each at a multiple of 64 bytes, little-endian |

An n-gram of order 2 to order - 1 takes three bytes: 10 bits of fingerprint, 7 of its probability, 7 of its back-off
weight; one of the highest order takes two: 9 and 7. Both lie in hash tables without gaps (ngram_table.py). The 7 bits
are steps of an even scale between the least and greatest ln of its order, so a value is off by half a step at most
(`Packed.step`). Of characters that are not listed, all of Unicode's others, each has its part of the probability that
the model gives to any of them: every text has a finite, proper probability.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, TypeAlias

import numpy as np
import numpy.typing as npt

from quality_models.ngram_smoothing import Estimated
from quality_models.ngram_table import KEYS_PER_BUCKET, LOADS, extended, mixed, place

__all__ = [
    "BACKOFF_BITS",
    "COSTS",
    "INNER_BITS",
    "P_BITS",
    "TOP_BITS",
    "UNICODE",
    "NgramModel",
    "pack",
    "quantised",
    "read_ngram",
    "write_ngram",
]

MAGIC = b"CMNGRAM\0"
FORMAT = 1
INNER_BITS, TOP_BITS = 10, 9
"""Bits of fingerprint."""
P_BITS, BACKOFF_BITS = 7, 7
STEPS = 1 << P_BITS
COSTS = (3 / LOADS[0] + 2 / KEYS_PER_BUCKET, 2 / LOADS[0] + 2 / KEYS_PER_BUCKET)
"""Bytes of an n-gram below the highest order, and of one of the highest."""
UNICODE = 0x110000 - 0x800
"""Characters there can be: all code points but surrogates."""
ALIGNED = 64
HEAD_LIMIT = 1 << 20
ORDERS = (2, 8)

UInt64s: TypeAlias = npt.NDArray[np.uint64]
Array: TypeAlias = npt.NDArray[Any]


class NgramModel(NamedTuple):
    """A model as arrays, which may be read-only and memory of the file.

    checksum: SHA-256 of the whole file, its head too: what the facts say of scripts and labels decides what is scored.
    characters: uint32[V - 1], ascending; number i + 1 is characters[i], number 0 any other. single: float32[V, 2],
    ln p and ln back-off of each number; p of 0 is that of all UNICODE - (V - 1) other characters together.
    levels: float32[order + 1, 2, 128]: `levels[n, 0]` the values of ln p for order n, `levels[n, 1]` of ln back-off.
    inner: uint8[3 n_inner + 1], slots of orders 2 to order - 1; bits from the lowest: ln p, back-off, fingerprint.
    top: uint16[n_top], slots of the highest order: ln p, fingerprint. inner_pilots, top_pilots: uint16[...].
    """

    language: str
    order: int
    normalisation: int
    checksum: str
    facts: Mapping[str, Any]
    characters: npt.NDArray[np.uint32]
    single: npt.NDArray[np.float32]
    levels: npt.NDArray[np.float32]
    inner: npt.NDArray[np.uint8]
    inner_pilots: npt.NDArray[np.uint16]
    top: npt.NDArray[np.uint16]
    top_pilots: npt.NDArray[np.uint16]

    @property
    def n_inner(self) -> int:
        return (len(self.inner) - 1) // 3

    @property
    def step(self) -> float:
        """The largest step between values of ln p or ln back-off."""
        return float(np.diff(self.levels, axis=2).max())


ARRAYS: Mapping[str, tuple[str, int]] = {
    "characters": ("<u4", 1),
    "single": ("<f4", 2),
    "levels": ("<f4", 3),
    "inner": ("|u1", 1),
    "inner_pilots": ("<u2", 1),
    "top": ("<u2", 1),
    "top_pilots": ("<u2", 1),
}
"""Type and dimensions of each array."""


def _scale(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
    """float32[128], evenly from the least to the greatest value."""
    if not len(values):
        return np.zeros(STEPS, np.float32)
    return np.linspace(values.min(), values.max(), STEPS).astype(np.float32)


def _nearest(values: npt.NDArray[np.float64], scale: npt.NDArray[np.float32]) -> npt.NDArray[np.int64]:
    """The step of a scale that is nearest to each value."""
    low, high = float(scale[0]), float(scale[-1])
    if high <= low:
        return np.zeros(len(values), np.int64)
    return np.clip(np.rint((values - low) / (high - low) * (STEPS - 1)), 0, STEPS - 1).astype(np.int64)


def _scales(model: Estimated) -> npt.NDArray[np.float32]:
    levels = np.zeros((model.order + 1, 2, STEPS), np.float32)
    for n in range(2, model.order + 1):
        grams = model.grams[n - 1]
        levels[n] = _scale(grams.log_p), _scale(np.append(grams.log_backoff, 0.0))
    return levels


def quantised(model: Estimated) -> Estimated:
    """The model with the values that its file will have: what a test may compare with."""
    levels = _scales(model)
    grams = [model.grams[0]]
    for n in range(2, model.order + 1):
        one = model.grams[n - 1]
        p, backoff = (
            levels[n, k][_nearest(v, levels[n, k])].astype(np.float64)
            for k, v in enumerate((one.log_p, one.log_backoff))
        )
        grams.append(one._replace(log_p=p, log_backoff=backoff))
    return model._replace(grams=grams)


def pack(model: Estimated, language: str, normalisation: int, facts: Mapping[str, Any]) -> NgramModel:
    """The model as it stands in a file; `checksum` is empty until it is written. Raises ValueError for another order."""
    if not ORDERS[0] <= model.order <= ORDERS[1]:
        raise ValueError(f"expected an order from {ORDERS[0]} to {ORDERS[1]}, found {model.order}")
    levels = _scales(model)
    first = model.grams[0]
    single = np.stack([first.log_p, first.log_backoff], axis=1).astype(np.float32)
    hashes: UInt64s = first.last.astype(np.uint64) + np.uint64(1)
    keys: list[UInt64s] = []
    slots: list[npt.NDArray[np.uint64]] = []
    for n in range(2, model.order + 1):
        grams = model.grams[n - 1]
        hashes = extended(hashes[grams.prefix], grams.last)
        keys.append(mixed(hashes))
        p = _nearest(grams.log_p, levels[n, 0])
        backoff = _nearest(grams.log_backoff, levels[n, 1]) if n < model.order else np.zeros_like(p)
        slots.append((p | backoff << P_BITS).astype(np.uint64))
    inner, inner_pilots = _table(keys[:-1], slots[:-1], P_BITS + BACKOFF_BITS, INNER_BITS)
    top, top_pilots = _table(keys[-1:], slots[-1:], P_BITS, TOP_BITS)
    triples = np.append(inner.astype("<u4").view(np.uint8).reshape(-1, 4)[:, :3].reshape(-1), np.uint8(0))
    return NgramModel(
        language, model.order, normalisation, "", dict(facts), model.characters.astype(np.uint32), single, levels,
        triples, inner_pilots, top.astype(np.uint16), top_pilots,
    )  # fmt: skip


def _table(
    keys: list[UInt64s], values: list[UInt64s], value_bits: int, bits: int
) -> tuple[UInt64s, npt.NDArray[np.uint16]]:
    """Slots with values and, above them, fingerprints; and pilots."""
    all_keys = np.concatenate([*keys, np.zeros(0, np.uint64)])
    all_values = np.concatenate([*values, np.zeros(0, np.uint64)])
    placed = place(all_keys)
    slots = np.zeros(placed.n_slots, np.uint64)
    slots[placed.slots] = all_values | (all_keys & np.uint64((1 << bits) - 1)) << np.uint64(value_bits)
    return slots, placed.pilots


def write_ngram(model: NgramModel, path: Path) -> NgramModel:
    """Write the file, in one step; returns the model with its checksum."""
    at, where, pieces = 0, {}, []
    for name, (kind, _) in ARRAYS.items():
        array = np.ascontiguousarray(getattr(model, name), kind)
        where[name] = {"at": at, "shape": list(array.shape)}
        raw = array.tobytes()
        pieces.append(raw + b"\0" * (-len(raw) % ALIGNED))
        at += len(pieces[-1])
    body = b"".join(pieces)
    head = {
        "language": model.language,
        "order": model.order,
        "normalisation": model.normalisation,
        "facts": dict(model.facts),
        "checksum": hashlib.sha256(body).hexdigest(),
        "arrays": where,
    }
    text = json.dumps(head, ensure_ascii=False, sort_keys=True).encode()
    text += b" " * (-(len(MAGIC) + 8 + len(text)) % ALIGNED)
    whole = MAGIC + struct.pack("<2I", FORMAT, len(text)) + text + body
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with partial.open("wb") as file:
            file.write(whole)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    return model._replace(checksum=hashlib.sha256(whole).hexdigest())


def read_ngram(path: Path) -> NgramModel:
    """The model in a file, read into memory whole.

    Raises ValueError for a file that is none, of another format, cut off or damaged; OSError if it cannot be read.
    """
    start = len(MAGIC) + 8
    memory = path.read_bytes()  # not mapped: a file that is overwritten while a run works would change its numbers
    size = len(memory)
    if size < start:
        _fail(path, f"expected an n-gram model, found a file of {size} bytes")
    if memory[: len(MAGIC)] != MAGIC:
        _fail(
            path,
            f"expected an n-gram model, which begins with {MAGIC!r}, found {memory[: len(MAGIC)]!r}",
            "give a file that `corpusmill train-ngram` wrote; it takes a model of KenLM as ARPA, with --from-arpa",
        )
    version, n_head = struct.unpack("<2I", memory[len(MAGIC) : start])
    if version != FORMAT:
        _fail(
            path, f"expected format {FORMAT}, found {version}", "train the model again with this version of Corpusmill"
        )
    if n_head > min(HEAD_LIMIT, size - start):
        _fail(
            path,
            f"expected a head of {n_head:,} bytes, found {size - start:,} until the end of the file; it is cut off",
        )
    head = _head(path, memory[start : start + n_head])
    body = np.frombuffer(memory, np.uint8, size - start - n_head, start + n_head)
    arrays = {name: _array(path, name, body, head["arrays"].get(name)) for name in ARRAYS}
    if hashlib.sha256(memoryview(memory)[start + n_head :]).hexdigest() != head["checksum"]:
        _fail(path, f"expected content with the checksum {head['checksum'][:12]}..., found another; it is damaged")
    head["checksum"] = hashlib.sha256(memory).hexdigest()
    plain = (head[key] for key in ("language", "order", "normalisation", "checksum", "facts"))
    model = NgramModel(*plain, *(arrays[name] for name in ARRAYS))
    _check(path, model)
    return model


def _fail(path: Path, problem: str, hint: str = "copy or train the model again") -> NoReturn:
    raise ValueError(f"{path}: {problem}: {hint}")


def _head(path: Path, raw: bytes) -> dict[str, Any]:
    kinds = {"language": str, "order": int, "normalisation": int, "facts": dict, "checksum": str, "arrays": dict}
    try:
        head = json.loads(raw)
    except ValueError as error:
        _fail(path, f"expected a head in JSON, found none ({error}); it is damaged")
    for key, kind in kinds.items():
        if not isinstance(head, dict) or not isinstance(head.get(key), kind):
            _fail(path, f"expected {key} ({kind.__name__}) in the head, found {str(head)[:60]!r}; it is damaged")
    return dict(head)


def _array(path: Path, name: str, body: npt.NDArray[np.uint8], where: Any) -> Array:
    kind, dimensions = ARRAYS[name]
    numbers = [where.get("at"), *(where.get("shape") or [])] if isinstance(where, dict) else []
    if len(numbers) != dimensions + 1 or not all(isinstance(n, int) and n >= 0 for n in numbers):
        _fail(path, f"expected place and shape of {name} in the head, found {where!r}; it is damaged")
    at, *shape = numbers
    n_bytes = int(np.prod(shape, dtype=object)) * np.dtype(kind).itemsize
    if at + n_bytes > len(body):
        _fail(path, f"expected {name} of {n_bytes:,} bytes, found {max(len(body) - at, 0):,}; it is cut off")
    return body[at : at + n_bytes].view(kind).reshape(shape)


def _check(path: Path, model: NgramModel) -> None:
    """That no look-up can leave the arrays: what a file with a right checksum, written by another program, might do."""
    n = len(model.characters)
    if not ORDERS[0] <= model.order <= ORDERS[1]:
        _fail(path, f"expected an order from {ORDERS[0]} to {ORDERS[1]}, found {model.order}")
    if n >= 0xFFFF or (
        n and ((np.diff(model.characters.astype(np.int64)) <= 0).any() or model.characters[-1] > 0x10FFFF)
    ):
        _fail(path, f"expected up to 65,534 characters of Unicode in rising order, found {n:,} or others")
    scripts, labels = model.facts.get("scripts", {}), model.facts.get("labels", [])
    if not isinstance(scripts, dict) or not all(isinstance(share, int | float) for share in scripts.values()):
        _fail(path, f"expected a share for each script in its facts, found {str(scripts)[:60]!r}")
    if not isinstance(labels, list) or not all(isinstance(label, str) for label in labels):
        _fail(path, f"expected a list of labels in its facts, found {str(labels)[:60]!r}")
    if model.single.shape != (n + 1, 2) or model.levels.shape != (model.order + 1, 2, STEPS):
        _fail(path, f"expected values of {n + 1:,} characters and {model.order} orders, found {model.single.shape}")
    if (
        len(model.inner) % 3 != 1
        or min(model.n_inner, *map(len, (model.inner_pilots, model.top, model.top_pilots))) < 1
    ):
        _fail(path, "expected tables with at least one slot, found an empty one")
    if not (np.isfinite(model.single).all() and np.isfinite(model.levels).all()):
        _fail(path, "expected finite logarithms, found others")
