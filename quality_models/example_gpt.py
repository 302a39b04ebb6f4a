"""A checkpoint of the example trainer (examples/train_gpt.py) as a folder in transformers' format.

    write_folder(Path("out/step-00000100.pt"), Path("model"))       # config.json, model.safetensors

The trainer's network is pre-norm RMSNorm, rotary positions, fused query, key and value, a feed-forward network of
two layers with the exact GELU, no bias, and one matrix for reading and writing. Transformers knows that network as
`arcee` (AFM-4.5B; huggingface.co/docs/transformers/model_doc/arcee) with another activation: so nothing of the
trainer is imported, and every engine that reads such a folder reads this model. The logits are equal to rounding
(tests/unit/quality_models/test_example_gpt.py).

What the weights do not tell (heads, positions) the checkpoint says itself under `settings`. A checkpoint is a pickle: it
is read with `weights_only`, which runs no code of it. Costs one read of the weights; the optimizer's are only mapped.
"""

from __future__ import annotations

import errno
import json
import pickle
import re
import struct
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from quality_models.lm_folder import library_version

__all__ = ["damage_in", "write_folder"]

THETA = 10_000.0
EPSILON = 2.0**-23
"""What torch's RMSNorm takes for numbers of 32 bits where none is given."""
BLOCK = re.compile(r"blocks\.(\d+)\.(.+)")
_ODD_ZIP = (NotImplementedError, RuntimeError, EOFError, ValueError, OverflowError, struct.error)
"""What the standard library's zipfile raises where numbers of a table of contents make no sense."""
_ODD_PICKLE = (
    *(RuntimeError, EOFError, ValueError, TypeError, LookupError, AttributeError, ArithmeticError, AssertionError),
    *(struct.error, pickle.UnpicklingError),
)
"""What torch raises where a pickle is damaged, or builds what no tensor can be."""
NAMES = {
    "norm1.weight": "input_layernorm.weight",
    "norm2.weight": "post_attention_layernorm.weight",
    "out.weight": "self_attn.o_proj.weight",
    "up.weight": "mlp.up_proj.weight",
    "down.weight": "mlp.down_proj.weight",
}
"""Of a block, here and in transformers; `qkv.weight` is three matrices there."""


def damage_in(path: Path) -> str:
    """Why a file is no whole checkpoint, in a few words; empty if it is. Reads all of it.

    torch writes a zip file, whose table of contents comes last and holds a CRC-32 of each part.

    Raises:
        OSError: it cannot be read.
    """
    with path.open("rb") as stream:
        try:
            with zipfile.ZipFile(stream) as archive:
                # torch neither packs nor encrypts: such a part is damage, or foreign, and is not unpacked.
                odd = [one.filename for one in archive.infolist() if one.compress_type or one.flag_bits & 1]
                broken = odd[0] if odd else archive.testzip()
        except (zipfile.BadZipFile, *_ODD_ZIP):
            return "no whole zip file, as torch.save writes one"
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            return "no whole zip file, as torch.save writes one"  # its table points before the file's begin
    return f"{broken!r:.80} in it is damaged" if broken is not None else ""


def write_folder(path: Path, folder: Path) -> None:
    """Write config.json and model.safetensors into a folder that exists; the tokenizer is the caller's.

    Raises:
        ValueError: it is no checkpoint of this trainer, or a package is missing.
    """
    library_version("torch")
    from safetensors.torch import save_file

    state = _read(path)
    weights = state["model"]
    config = _config(weights, state["settings"], path)
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n", encoding="utf-8")
    save_file(_renamed(weights), folder / "model.safetensors", metadata={"format": "pt"})


def _read(path: Path) -> Mapping[str, Any]:
    import torch

    try:
        state: Any = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    except _ODD_PICKLE as error:
        what = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        raise ValueError(f"{path}: expected a checkpoint of examples/train_gpt.py, found {what}") from error
    for name in ("model", "settings"):
        if not isinstance(state, dict) or not isinstance(state.get(name), dict):
            raise ValueError(
                f"{path}: expected a checkpoint of examples/train_gpt.py with {name!r}, found none; write it with the "
                "example as it is now, or save your model in transformers' format (save_pretrained)"
            )
    found: Mapping[str, Any] = state
    return found


def _config(weights: Mapping[str, Any], settings: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """config.json, from the shapes of the weights and what the checkpoint says."""
    numbers = {match[1] for name in weights if (match := BLOCK.fullmatch(str(name)))}
    blocks = {f"blocks.{number}.{name}" for number in range(len(numbers)) for name in ("qkv.weight", *NAMES)}
    expected = {"embedding.weight", "norm.weight", *blocks}
    if not numbers or set(weights) != expected:
        odd = sorted(map(str, set(weights) ^ expected))[:3]
        raise ValueError(f"{path}: expected the weights of examples/train_gpt.py, found other names: {', '.join(odd)}")
    vocabulary, width, inner = _shapes(weights, path)
    heads, positions = (settings.get(name) for name in ("heads", "positions"))
    if type(heads) is not int or type(positions) is not int or heads < 1 or width % heads or positions < 2:
        raise ValueError(
            f"{path}: expected settings.heads that divide the width {width}, and settings.positions, found {heads!r} and "
            f"{positions!r}"
        )
    return {
        "architectures": ["ArceeForCausalLM"],
        "model_type": "arcee",
        "vocab_size": vocabulary,
        "hidden_size": width,
        "intermediate_size": inner,
        "num_hidden_layers": len(numbers),
        "num_attention_heads": heads,
        "num_key_value_heads": heads,
        "hidden_act": "gelu",
        "max_position_embeddings": positions,
        "rms_norm_eps": EPSILON,
        "rope_parameters": {"rope_type": "default", "rope_theta": THETA},
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": True,
        "bos_token_id": None,
        "eos_token_id": None,
        "dtype": "float32",
    }


def _shapes(weights: Mapping[str, Any], path: Path) -> tuple[int, int, int]:
    """Vocabulary, width and inner width, with which every weight agrees.

    Raises:
        ValueError: one is no tensor of numbers that is all there, or has another shape.
    """
    import torch

    for name, weight in weights.items():
        whole = isinstance(weight, torch.Tensor) and weight.layout == torch.strided and weight.is_floating_point()
        # A stride of 0 would make any size of a few bytes.
        if not whole or weight.numel() * weight.element_size() > weight.untyped_storage().nbytes():
            kind = f"a tensor of {weight.dtype}" if isinstance(weight, torch.Tensor) else type(weight).__name__
            raise ValueError(f"{path}: expected {name} to be a dense tensor of floating point numbers, found {kind}")
    sizes = [tuple(weights[name].shape) for name in ("embedding.weight", "blocks.0.up.weight")]
    if any(len(size) != 2 or 0 in size for size in sizes):
        raise ValueError(f"{path}: expected weights of two dimensions, found {sizes[0]} and {sizes[1]}")
    (vocabulary, width), (inner, _) = sizes
    of_block = {
        "qkv.weight": (3 * width, width),
        "out.weight": (width, width),
        "up.weight": (inner, width),
        "down.weight": (width, inner),
    }
    for name, weight in weights.items():
        match = BLOCK.fullmatch(name)
        expected = of_block.get(match[2] if match else name, (width,))
        if name != "embedding.weight" and tuple(weight.shape) != expected:
            raise ValueError(f"{path}: expected {name} of shape {expected}, found {tuple(weight.shape)}")
    return vocabulary, width, inner


def _renamed(weights: Mapping[str, Any]) -> dict[str, Any]:
    """The weights under transformers' names, in float32."""
    found = {"model.embed_tokens.weight": weights["embedding.weight"], "model.norm.weight": weights["norm.weight"]}
    for name, weight in weights.items():
        if match := BLOCK.fullmatch(name):
            at = f"model.layers.{match[1]}."
            if match[2] == "qkv.weight":
                for part, third in zip("qkv", weight.chunk(3), strict=True):
                    found[f"{at}self_attn.{part}_proj.weight"] = third
            else:
                found[at + NAMES[match[2]]] = weight
    return {name: weight.float().contiguous().clone() for name, weight in found.items()}
