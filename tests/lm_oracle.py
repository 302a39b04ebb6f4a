"""Language models for tests, small and made of seeded numbers, and an independent calculation of what GPT-2 says.

The calculation is GPT-2's formulas in float64 and plain NumPy, one token at a time: for each scored token its context is
worked out from the rule's words, put through the whole network, and only the last position's distribution is used. It
shares no code with quality_models.
"""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors.numpy import load_file, save_file

REPO = Path(__file__).resolve().parents[1]
TOKENIZER = REPO / "tokenization" / "data" / "default"
VOCABULARY = 32_768
BOS = 0
"""`<|endoftext|>` of the default tokenizer."""

Weights = dict[str, npt.NDArray[np.float32]]


def write_gpt2(folder: Path, *, width: int = 32, layers: int = 2, positions: int = 64, seed: int = 1) -> Path:
    """A GPT-2 of seeded normal numbers, large enough that its predictions depend on the context."""
    draw = np.random.default_rng(seed)

    def normal(*shape: int, scale: float = 0.2) -> npt.NDArray[np.float32]:
        return (draw.standard_normal(shape) * scale).astype(np.float32)

    weights = {
        "transformer.wte.weight": normal(VOCABULARY, width, scale=0.5),
        "transformer.wpe.weight": normal(positions, width),
    }
    for layer in range(layers):
        at = f"transformer.h.{layer}."
        weights |= {
            f"{at}ln_1.weight": 1 + normal(width),
            f"{at}ln_1.bias": normal(width),
            f"{at}attn.c_attn.weight": normal(width, 3 * width),
            f"{at}attn.c_attn.bias": normal(3 * width),
            f"{at}attn.c_proj.weight": normal(width, width),
            f"{at}attn.c_proj.bias": normal(width),
            f"{at}ln_2.weight": 1 + normal(width),
            f"{at}ln_2.bias": normal(width),
            f"{at}mlp.c_fc.weight": normal(width, 4 * width),
            f"{at}mlp.c_fc.bias": normal(4 * width),
            f"{at}mlp.c_proj.weight": normal(4 * width, width),
            f"{at}mlp.c_proj.bias": normal(width),
        }
    weights |= {"transformer.ln_f.weight": 1 + normal(width), "transformer.ln_f.bias": normal(width)}
    config = {
        "architectures": ["GPT2LMHeadModel"],
        "model_type": "gpt2",
        "vocab_size": VOCABULARY,
        "n_embd": width,
        "n_layer": layers,
        "n_head": 4,
        "n_positions": positions,
        "activation_function": "gelu_new",
        "layer_norm_epsilon": 1e-5,
        "bos_token_id": BOS,
        "eos_token_id": BOS,
        "tie_word_embeddings": True,
    }
    return write_model(folder, config, weights)


def write_llama(folder: Path, *, width: int = 32, layers: int = 2, seed: int = 2) -> Path:
    """A Llama of seeded normal numbers, with fewer key heads than query heads."""
    draw = np.random.default_rng(seed)

    def normal(*shape: int, scale: float = 0.2) -> npt.NDArray[np.float32]:
        return (draw.standard_normal(shape) * scale).astype(np.float32)

    weights = {"model.embed_tokens.weight": normal(VOCABULARY, width, scale=0.5)}
    for layer in range(layers):
        at = f"model.layers.{layer}."
        weights |= {
            f"{at}input_layernorm.weight": 1 + normal(width),
            f"{at}self_attn.q_proj.weight": normal(width, width),
            f"{at}self_attn.k_proj.weight": normal(width // 2, width),
            f"{at}self_attn.v_proj.weight": normal(width // 2, width),
            f"{at}self_attn.o_proj.weight": normal(width, width),
            f"{at}post_attention_layernorm.weight": 1 + normal(width),
            f"{at}mlp.gate_proj.weight": normal(2 * width, width),
            f"{at}mlp.up_proj.weight": normal(2 * width, width),
            f"{at}mlp.down_proj.weight": normal(width, 2 * width),
        }
    weights["model.norm.weight"] = 1 + normal(width)
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": VOCABULARY,
        "hidden_size": width,
        "intermediate_size": 2 * width,
        "num_hidden_layers": layers,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 256,
        "rms_norm_eps": 1e-5,
        "hidden_act": "silu",
        "bos_token_id": BOS,
        "eos_token_id": BOS,
        "tie_word_embeddings": True,
    }
    return write_model(folder, config, weights)


def write_model(folder: Path, config: dict[str, Any], weights: Weights) -> Path:
    """A folder in transformers' format with our own tokenizer."""
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(TOKENIZER / name, folder / name)
    return folder


def write_byte_tokenizer(folder: Path) -> None:
    """A tokenizer whose tokens are the 256 bytes, and `<|endoftext|>` as 256."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE(vocab={sign: number for number, sign in enumerate(alphabet)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(["<|endoftext|>"])
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps({"eos_token": "<|endoftext|>"}), encoding="utf-8")


def write_bigrams(folder: Path, text: str, *, positions: int = 1024) -> Path:
    """A GPT-2 over bytes that says after each byte what follows it in a text, and after `<|endoftext|>` what is frequent.

    Embeddings are one-hot, blocks add nothing, and the output layer holds ln p of each pair, as seen through the last norm.
    """
    alphabet, size, width = _byte_alphabet(), 257, 260
    ids = [alphabet[byte] for byte in text.encode()]
    counts = np.full((size, size), 0.02)
    np.add.at(counts, (ids[:-1], ids[1:]), 1)
    np.add.at(counts[256], ids, 1)
    log_p = np.log(counts / counts.sum(1, keepdims=True))
    seen = (np.eye(size, width) - 1 / width) / np.sqrt((1 - 1 / width) / width)
    head = np.linalg.lstsq(seen, log_p, rcond=None)[0].T
    blank = {
        "ln_1.weight": (width,), "ln_1.bias": (width,), "ln_2.weight": (width,), "ln_2.bias": (width,),
        "attn.c_attn.weight": (width, 3 * width), "attn.c_attn.bias": (3 * width,),
        "attn.c_proj.weight": (width, width), "attn.c_proj.bias": (width,),
        "mlp.c_fc.weight": (width, 4 * width), "mlp.c_fc.bias": (4 * width,),
        "mlp.c_proj.weight": (4 * width, width), "mlp.c_proj.bias": (width,),
    }  # fmt: skip
    weights = {f"transformer.h.0.{name}": np.zeros(shape, np.float32) for name, shape in blank.items()}
    weights |= {
        "transformer.wte.weight": np.eye(size, width, dtype=np.float32),
        "transformer.wpe.weight": np.zeros((positions, width), np.float32),
        "transformer.ln_f.weight": np.ones(width, np.float32),
        "transformer.ln_f.bias": np.zeros(width, np.float32),
        "lm_head.weight": np.ascontiguousarray(head, np.float32),
    }
    config = {
        "architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "vocab_size": size, "n_embd": width, "n_layer": 1, "n_head": 4,
        "n_positions": positions, "layer_norm_epsilon": 1e-12, "bos_token_id": 256, "eos_token_id": 256, "tie_word_embeddings": False,
    }  # fmt: skip
    write_model(folder, config, weights)
    write_byte_tokenizer(folder)
    return folder


def _byte_alphabet() -> dict[int, int]:
    """Ids of the bytes in the tokenizer over bytes: the place of the sign that stands for each."""
    from tokenizers import pre_tokenizers

    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in plain]
    signs = {byte: chr(byte) for byte in plain} | {byte: chr(256 + index) for index, byte in enumerate(others)}
    place = {sign: number for number, sign in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    return {byte: place[sign] for byte, sign in signs.items()}


class Gpt2Oracle:
    """GPT-2 (Radford et al. 2019) as formulas: pre-norm blocks, tanh GELU, output layer tied to the embeddings."""

    def __init__(self, folder: Path) -> None:
        self.config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        stored = load_file(folder / "model.safetensors")
        self.weights = {name.removeprefix("transformer."): one.astype(np.float64) for name, one in stored.items()}

    def nats(self, ids: list[int], rule: Any) -> float:
        """Sum of -ln p over the tokens that a rule scores; all of them, whatever `max_windows` says."""
        start = 0 if rule.bos != "none" else 1
        return sum(self.token_nats(context_of(ids, place, rule), ids[place]) for place in range(start, len(ids)))

    def token_nats(self, context: list[int], token: int) -> float:
        """-ln p(token | context)."""
        logits = self.last_logits(context)
        return float(np.log(np.exp(logits - logits.max()).sum()) + logits.max() - logits[token])

    def last_logits(self, ids: list[int]) -> npt.NDArray[np.float64]:
        """float64[vocabulary] after the last of some tokens."""
        w = self.weights
        x = w["wte.weight"][ids] + w["wpe.weight"][: len(ids)]
        for layer in range(self.config["n_layer"]):
            at = f"h.{layer}."
            x = x + self._attention(self._norm(x, f"{at}ln_1"), f"{at}attn.")
            hidden = self._norm(x, f"{at}ln_2") @ w[f"{at}mlp.c_fc.weight"] + w[f"{at}mlp.c_fc.bias"]
            hidden = 0.5 * hidden * (1 + np.tanh(math.sqrt(2 / math.pi) * (hidden + 0.044715 * hidden**3)))
            x = x + hidden @ w[f"{at}mlp.c_proj.weight"] + w[f"{at}mlp.c_proj.bias"]
        return np.asarray(self._norm(x, "ln_f")[-1] @ w["wte.weight"].T)

    def _norm(self, x: npt.NDArray[np.float64], name: str) -> npt.NDArray[np.float64]:
        centred = x - x.mean(1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(1, keepdims=True) + self.config["layer_norm_epsilon"])
        return scaled * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]

    def _attention(self, x: npt.NDArray[np.float64], at: str) -> npt.NDArray[np.float64]:
        w, width = self.weights, x.shape[1]
        mixed = x @ w[f"{at}c_attn.weight"] + w[f"{at}c_attn.bias"]
        size = width // self.config["n_head"]
        heads = []
        for head in range(self.config["n_head"]):
            query, key, value = (mixed[:, part * width + head * size :][:, :size] for part in range(3))
            scores = query @ key.T / math.sqrt(size)
            scores[np.triu_indices(len(x), 1)] = -np.inf
            share = np.exp(scores - scores.max(1, keepdims=True))
            heads.append(share / share.sum(1, keepdims=True) @ value)
        return np.asarray(np.concatenate(heads, 1) @ w[f"{at}c_proj.weight"] + w[f"{at}c_proj.bias"])


def context_of(ids: list[int], place: int, rule: Any) -> list[int]:
    """What the model sees before a token, by the rule's words: window, stride and BOS, for this token alone."""
    first_window = rule.window - (rule.bos != "none")
    if place < first_window:
        return [BOS] * (rule.bos != "none") + ids[:place]
    scored_from = first_window + (place - first_window) // rule.stride * rule.stride
    bos = [BOS] * (rule.bos == "every_window")
    return bos + ids[scored_from - (rule.window - rule.stride - len(bos)) : place]
