"""The definition of a tokenizer: what its files say, what of it changes ids, and which token ends a document.

A definition is made safe before use: BPE dropout is off, and in models that look up whole words (Unigram,
WordLevel, WordPiece) special tokens are renamed so that no text can spell them. Their ids stay.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenization.errors import TokenizerError

# Set before the library is first used, and only if the user has not chosen: its thread pool does not survive a fork.
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

from tokenizers import Tokenizer as Backend

__all__ = ["Definition"]

POLICY = {"special_tokens_added": False, "special_text": "ordinary", "dropout": False, "bos": None, "eos": "last"}
"""What we do with any tokenizer; part of the fingerprint."""
KNOWN_ENDS = (
    "<|endoftext|>",
    "<|end_of_text|>",
    "</s>",
    "<eos>",
    "<｜end▁of▁sentence｜>",
    "<|im_end|>",
    "[EOS]",
    "[SEP]",
)


@dataclass(frozen=True, slots=True)
class Definition:
    """A tokenizer.json as data, with its end-of-document and padding tokens found."""

    library: Backend
    """The tokenizer as the file has it."""
    data: Mapping[str, Any]
    """Its definition as the library writes it, every default filled in."""
    eos: str
    eos_id: int
    pad: str
    pad_id: int
    unk_id: int | None
    vocab_size: int
    max_id: int

    @classmethod
    def read(cls, path: Path, eos: str | None) -> Definition:
        """Read a tokenizer.json or the folder around it.

        Raises:
            TokenizerError: missing, unreadable, or without an end-of-document token.
        """
        file = _tokenizer_json(path)
        try:
            backend = Backend.from_str(file.read_text(encoding="utf-8"))
        except Exception as error:  # the library raises plain Exception for any fault of the file
            raise TokenizerError(f"{file} cannot be read as a Hugging Face tokenizer.json: {error}.") from error
        data = json.loads(backend.to_str())
        vocabulary: dict[str, int] = backend.get_vocab(with_added_tokens=True)
        special = _special_names(file.parent)
        end = _find_eos(file, eos, special.get("eos_token"), vocabulary, data["added_tokens"])
        pad = special.get("pad_token")
        pad = pad if pad in vocabulary else end
        return cls(
            library=backend,
            data=data,
            eos=end,
            eos_id=vocabulary[end],
            pad=pad,
            pad_id=vocabulary[pad],
            unk_id=_unk_id(data["model"], vocabulary),
            vocab_size=len(vocabulary),
            max_id=max(vocabulary.values()),
        )

    def backend(self) -> Backend:
        """The library's tokenizer, made safe; its own object where nothing had to be changed."""
        data = {
            **self.data,
            "model": dict(self.data["model"]),
            "added_tokens": [dict(token) for token in self.data["added_tokens"]],
        }
        for token in data["added_tokens"]:
            token["special"] = token["special"] or token["content"] in (self.eos, self.pad)
        if data["model"].get("dropout"):
            data["model"]["dropout"] = None
        _hide_special_words(data)
        backend = self.library if data == self.data else Backend.from_str(json.dumps(data))
        backend.no_truncation()
        backend.no_padding()
        backend.encode_special_tokens = True
        return backend

    def fingerprint(self) -> str:
        """SHA-256 in hex over what changes ids: model, normaliser, pre-tokeniser, added tokens, special ids, policy."""
        model = dict(self.data["model"])
        model["merges"] = [m.split(" ", 1) if isinstance(m, str) else m for m in model.get("merges", [])]
        decisive = {
            "model": model,
            "normalizer": self.data["normalizer"],
            "pre_tokenizer": self.data["pre_tokenizer"],
            "added_tokens": sorted(self.data["added_tokens"], key=lambda token: token["id"]),
            "special": {"eos": self.eos_id, "pad": self.pad_id, "unk": self.unk_id},
            "policy": POLICY,
        }
        text = json.dumps(_without_trifles(decisive), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode("ascii")).hexdigest()


def _tokenizer_json(path: Path) -> Path:
    if path.is_file():
        return path
    if (path / "tokenizer.json").is_file():
        return path / "tokenizer.json"
    if path.is_dir():
        found = sorted(p.name for p in path.iterdir())[:8]
        raise TokenizerError(
            f"{path} holds no tokenizer.json (found {', '.join(found) or 'nothing'}). Other kinds are converted first: "
            "AutoTokenizer.from_pretrained(folder).save_pretrained(new_folder) writes one."
        )
    raise TokenizerError(
        f"no tokenizer {str(path)!r}: expected `default`, the path of a tokenizer.json, or a folder that holds one. "
        "Names on a model hub are not downloaded."
    )


def _special_names(folder: Path) -> dict[str, str]:
    """`eos_token`, `pad_token` .. as the files beside tokenizer.json name them."""
    names: dict[str, str] = {}
    for file in (folder / "special_tokens_map.json", folder / "tokenizer_config.json"):
        if not file.is_file():
            continue
        try:
            data = json.loads(file.read_text(encoding="utf-8"))
        except ValueError as error:
            raise TokenizerError(f"{file} is not valid JSON: {error}.") from error
        for key in ("eos_token", "pad_token"):
            value = data.get(key) if isinstance(data, dict) else None
            value = value.get("content") if isinstance(value, dict) else value
            if isinstance(value, str):
                names[key] = value
    return names


def _find_eos(
    file: Path, asked: str | None, stated: str | None, vocabulary: Mapping[str, int], added: list[dict[str, Any]]
) -> str:
    name = asked or stated
    if name is not None and name in vocabulary:
        return name
    special = [str(token["content"]) for token in added if token["special"]]
    candidates = list(dict.fromkeys([*(end for end in KNOWN_ENDS if end in vocabulary), *special]))[:8]
    choice = f"Set eos to one of: {', '.join(candidates)}." if candidates else "It has no special token: add one."
    if name is None:
        raise TokenizerError(
            f"{file}: nothing says which token ends a document (no eos, no tokenizer_config.json). {choice}"
        )
    whence = "eos" if asked else "tokenizer_config.json"
    raise TokenizerError(
        f"{file}: {whence} names {name!r} as the end of a document, but there is no such token. {choice}"
    )


def _unk_id(model: Mapping[str, Any], vocabulary: Mapping[str, int]) -> int | None:
    if model.get("unk_id") is not None:
        return int(model["unk_id"])
    return vocabulary.get(model.get("unk_token") or "")


def _hide_special_words(data: dict[str, Any]) -> None:
    """Rename special tokens in models that find whole words in their vocabulary."""
    model = data["model"]
    if model["type"] not in ("Unigram", "WordLevel", "WordPiece"):
        return
    unknown = model.get("unk_token")
    hidden = {
        token["content"]: f"\ufdd0{token['id']}\ufdd0"
        for token in data["added_tokens"]
        if token["special"] and token["content"] != unknown
    }
    for token in data["added_tokens"]:
        token["content"] = hidden.get(token["content"], token["content"])
    if model["type"] == "Unigram":
        model["vocab"] = [[hidden.get(word, word), score] for word, score in model["vocab"]]
    else:
        model["vocab"] = {hidden.get(word, word): index for word, index in model["vocab"].items()}


def _without_trifles(value: Any) -> Any:
    """Without what changes no id: absent settings, and how offsets are trimmed."""
    if isinstance(value, dict):
        return {k: _without_trifles(v) for k, v in value.items() if v is not None and k != "trim_offsets"}
    return [_without_trifles(item) for item in value] if isinstance(value, list) else value
