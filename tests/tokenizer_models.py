"""Small tokenizers of other kinds: SentencePiece models, which its library trains, and a list of ranks."""

from __future__ import annotations

import base64
import io
import json
import random
from functools import cache
from pathlib import Path
from typing import Any

import sentencepiece

from tokenization.trials import trial_texts

__all__ = ["MODELS", "PATTERN", "RANKS", "RECIPE", "model", "train", "write_ranks"]

MODELS: dict[str, dict[str, Any]] = {
    "bpe with bytes": {"model_type": "bpe", "normalization_rule_name": "identity", "byte_fallback": True},
    "bpe without bytes": {"model_type": "bpe", "normalization_rule_name": "identity"},
    "bpe that keeps blanks": {
        "model_type": "bpe",
        "normalization_rule_name": "identity",
        "remove_extra_whitespaces": False,
        "byte_fallback": True,
    },
    "bpe without a blank before": {
        "model_type": "bpe",
        "normalization_rule_name": "identity",
        "add_dummy_prefix": False,
        "byte_fallback": True,
    },
    "bpe with symbols": {
        "model_type": "bpe",
        "normalization_rule_name": "identity",
        "user_defined_symbols": ["<tool>", "[X]"],
        "byte_fallback": True,
    },
    "bpe with rules": {"model_type": "bpe", "normalization_rule_name": "nmt_nfkc", "byte_fallback": True},
    "bpe with rules that keeps blanks": {
        "model_type": "bpe",
        "normalization_rule_name": "nmt_nfkc",
        "remove_extra_whitespaces": False,
        "byte_fallback": True,
    },
    "unigram with bytes": {"model_type": "unigram", "normalization_rule_name": "identity", "byte_fallback": True},
    "unigram with symbols": {
        "model_type": "unigram",
        "normalization_rule_name": "identity",
        "user_defined_symbols": ["<tool>", "[X]"],
    },
    "unigram with rules": {"model_type": "unigram", "normalization_rule_name": "nmt_nfkc"},
    "unigram with rules for case": {"model_type": "unigram", "normalization_rule_name": "nmt_nfkc_cf"},
}


PATTERN = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"


@cache
def model(name: str) -> bytes:
    """One of them; made once."""
    return train(**MODELS[name])


def train(**choices: Any) -> bytes:
    """A model of 900 pieces, made in a quarter of a second by the library itself."""
    written = io.BytesIO()
    lines = [line for text in trial_texts([])[:460] for line in text.splitlines() if line.strip() and "\0" not in line]
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=written,
        vocab_size=900,
        character_coverage=0.98,
        minloglevel=2,
        hard_vocab_limit=False,
        num_threads=1,
        **choices,
    )
    return written.getvalue()


def _ranks() -> dict[bytes, int]:
    """All bytes, and 600 strings of which each is two others: pieces of the trial texts, drawn by lot."""
    dice = random.Random(4)
    data = "".join(trial_texts([])[:460]).encode()
    ranks = {bytes([byte]): number for number, byte in enumerate(dice.sample(range(256), 256))}
    while len(ranks) < 856:
        start = dice.randrange(len(data) - 8)
        piece = data[start : start + dice.choice([2, 2, 3, 4, 6])]
        if any(piece[:cut] in ranks and piece[cut:] in ranks for cut in range(1, len(piece))):
            ranks.setdefault(piece, len(ranks))
    return ranks


RANKS = _ranks()
RECIPE = {"pattern": PATTERN, "special_tokens": {"<|end|>": 856, "<|begin|>": 857}, "eos": "<|end|>"}


def write_ranks(file: Path, ranks: dict[bytes, int], recipe: Any = RECIPE) -> Path:
    """A tiktoken file, and beside it what it does not say; None: nothing."""
    lines = [base64.b64encode(token) + b" %d\n" % rank for token, rank in ranks.items()]
    file.write_bytes(b"".join(lines))
    if recipe is not None:
        file.with_name(file.name + ".json").write_text(json.dumps(recipe), encoding="utf-8")
    return file
