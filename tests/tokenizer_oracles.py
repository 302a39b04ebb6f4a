"""Ids of known tokenizers by their makers' own libraries: what ours are held to.

SentencePiece's package for its models, tiktoken for lists of ranks, and the Hugging Face library for files that are its own.
Special text is ordinary text everywhere, as it must be in a corpus.
"""

from __future__ import annotations

import base64
import json
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path

import sentencepiece
import tiktoken
import zstandard
from tiktoken.load import data_gym_to_mergeable_bpe_ranks, load_tiktoken_bpe
from tokenizers import Tokenizer

from tests.known_tokenizers import known
from tokenization.tokenizer import DEFAULT

__all__ = ["oracle", "real_texts"]

Encode = Callable[[str], list[int]]

GPT2 = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"
ENDINGS, BLANKS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)", r"\s*[\r\n]+|\s+(?!\S)|\s+"
LLAMA3 = ENDINGS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|" + BLANKS
QWEN = LLAMA3.replace("{1,3}", "")
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
LLAMA4 = (
    rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}*{LOWER}+{ENDINGS}?|[^\r\n\p{{L}}\p{{N}}]?{UPPER}+{LOWER}*{ENDINGS}?"
    rf"|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{BLANKS}"
)
"""As the models' own code has them, written down apart from ours."""


def oracle(name: str) -> Encode:
    """Encodes one text, without BOS and EOS, as the tokenizer's own library does; skips where its files are absent."""
    if name == "default":
        return _hugging_face(DEFAULT / "tokenizer.json")
    path = known(name)
    if name == "deepseek":
        return _hugging_face(path)
    if name.startswith("mistral"):
        return sentencepiece.SentencePieceProcessor(model_file=str(path)).encode
    if name == "gpt2":
        ranks = data_gym_to_mergeable_bpe_ranks(str(path / "vocab.bpe"), str(path / "encoder.json"))
        return _tiktoken(name, GPT2, ranks)
    if name.startswith("tekken"):
        data = json.loads(path.read_text(encoding="utf-8"))
        config = data["config"]
        first = config["default_num_special_tokens"]
        words = data["vocab"][: config["default_vocab_size"] - first]
        encode = _tiktoken(name, config["pattern"], {base64.b64decode(w["token_bytes"]): w["rank"] for w in words})
        return lambda text: [index + first for index in encode(text)]
    encode = _tiktoken(name, {"llama3": LLAMA3, "llama4": LLAMA4, "qwen": QWEN}[name], load_tiktoken_bpe(str(path)))
    if name == "qwen":
        return lambda text: encode(unicodedata.normalize("NFC", text))
    return encode


def _hugging_face(path: Path) -> Encode:
    backend = Tokenizer.from_file(str(path))
    backend.encode_special_tokens = True
    return lambda text: list(backend.encode(text, add_special_tokens=False).ids)


def _tiktoken(name: str, pattern: str, ranks: dict[bytes, int]) -> Encode:
    return tiktoken.Encoding(name, pat_str=pattern, mergeable_ranks=ranks, special_tokens={}).encode_ordinary


def real_texts(test_data: Path) -> Iterator[tuple[str, str]]:
    """File name and text of every document of the crawls and the sentences of known language."""
    for folder in ("2_text", "4_langid"):
        for file in sorted((test_data / folder).glob("*.jsonl.zst")):
            with file.open("rb") as stream:
                raw = zstandard.ZstdDecompressor(max_window_size=2**27).stream_reader(stream).read()
            for line in raw.splitlines():
                text = json.loads(line).get("text")
                if isinstance(text, str):
                    yield file.name, text
