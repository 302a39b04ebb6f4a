"""The definition of a tokenizer: what its files say, what of it changes ids, and which token ends a document.

A definition is made safe before use: BPE dropout is off, and in models that look up whole words (Unigram,
WordLevel, WordPiece) special tokens are renamed so that no text can spell them. Their ids stay.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenization.errors import TokenizerError
from tokenization.formats.source import Source, read_source

# Set before the library is first used, and only if the user has not chosen: its thread pool does not survive a fork.
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

from tokenizers import Tokenizer as Backend

__all__ = ["Definition", "refuse_gaps"]

POLICY = {"special_tokens_added": False, "special_text": "ordinary", "dropout": False, "bos": None, "eos": "last"}
"""What we do with any tokenizer; part of the fingerprint."""
MOST_IDS = 1 << 22
"""Four times the largest vocabulary that is known."""
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
KNOWN_BEGINNINGS = ("<s>", "<bos>", "<|begin_of_text|>", "<｜begin▁of▁sentence｜>", "<|startoftext|>", "[BOS]", "[CLS]")


@dataclass(frozen=True, slots=True)
class Definition:
    """A tokenizer.json as data, with its end-of-document and padding tokens found."""

    library: Backend
    """The tokenizer as the file has it."""
    data: Mapping[str, Any]
    """Its definition as the library writes it, every default filled in."""
    eos: str
    eos_id: int
    bos: str | None
    """What begins every document; None: nothing does."""
    bos_id: int | None
    pad: str
    pad_id: int
    unk_id: int | None
    vocab_size: int
    max_id: int

    @classmethod
    def read(cls, path: Path, eos: str | None, bos: str | None = None) -> Definition:
        """Read a tokenizer's file, or the folder that holds it; `formats` says which kinds.

        Args:
            eos: what ends a document; None: what the files say.
            bos: what begins one; None: nothing does, whatever the files say.

        Raises:
            TokenizerError: missing, unreadable, or without such tokens.
        """
        source = read_source(path)
        try:
            backend = Backend.from_str(source.text)
        except Exception as error:  # the library raises plain Exception for any fault of the file
            raise TokenizerError(f"{source.file} cannot be read as a Hugging Face tokenizer.json: {error}.") from error
        vocabulary: dict[str, int] = backend.get_vocab(with_added_tokens=True)
        refuse_gaps(vocabulary, source.file)
        data = json.loads(backend.to_str())
        _refuse_moved_ids(source, vocabulary)
        end = _find_eos(source, eos, vocabulary, data["added_tokens"])
        if bos is not None:
            _check_bos(source, bos, end, vocabulary, data["added_tokens"])
        pad = source.names.get("pad_token")
        pad = pad if pad in vocabulary else end
        return cls(
            library=backend,
            data=data,
            eos=end,
            eos_id=vocabulary[end],
            bos=bos,
            bos_id=None if bos is None else vocabulary[bos],
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
            token["special"] = token["special"] or token["content"] in (self.eos, self.bos, self.pad)
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
        model = {key: value for key, value in self.data["model"].items() if key != "dropout"}
        model["merges"] = [m.split(" ", 1) if isinstance(m, str) else m for m in model.get("merges", [])]
        decisive = {
            "model": model,
            "normalizer": self.data["normalizer"],
            "pre_tokenizer": self.data["pre_tokenizer"],
            "added_tokens": sorted(self.data["added_tokens"], key=lambda token: token["id"]),
            "special": {"eos": self.eos_id, "bos": self.bos_id, "pad": self.pad_id, "unk": self.unk_id},
            "policy": {**POLICY, "bos": None if self.bos_id is None else "first"},
        }
        text = json.dumps(_without_trifles(decisive), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode("ascii")).hexdigest()


def refuse_gaps(vocabulary: Mapping[str, int], file: Path) -> None:
    """Writing a definition costs the library time and memory for every id that there could be, and so does any table of ids.

    Raises:
        TokenizerError: an id is so large that hardly any of those below it can be a token.
    """
    largest = max(vocabulary.values(), default=0)
    if largest >= MOST_IDS:
        raise TokenizerError(
            f"{file}: {len(vocabulary):,} tokens with ids up to {largest:,}: the largest id must be below {MOST_IDS:,}, for a "
            "model needs a row of its embedding for each. Number the tokens without such gaps."
        )


def _refuse_moved_ids(source: Source, vocabulary: Mapping[str, int]) -> None:
    """The library numbers added tokens itself: one that comes out with another id than the file says is a fault."""
    moved = next((name for name, index in source.added.items() if vocabulary.get(name) != index), None)
    if moved is not None:
        raise TokenizerError(
            f"{source.file}: it gives the added token {moved!r} the id {source.added[moved]}, but the library loads it "
            f"with {vocabulary.get(moved)}: its ids cannot be trusted."
        )


def _find_eos(source: Source, asked: str | None, vocabulary: Mapping[str, int], added: list[dict[str, Any]]) -> str:
    name = asked or source.names.get("eos_token")
    if name is not None and name in vocabulary:
        return name
    choice = _choice("eos", _candidates(KNOWN_ENDS, vocabulary, added))
    if name is None:
        raise TokenizerError(
            f"{source.file}: nothing says which token ends a document (no eos, no tokenizer_config.json). {choice}"
        )
    whence = "eos" if asked else "tokenizer_config.json"
    raise TokenizerError(
        f"{source.file}: {whence} names {name!r} as the end of a document, but there is no such token. {choice}"
    )


def _check_bos(source: Source, bos: str, eos: str, vocabulary: Mapping[str, int], added: list[dict[str, Any]]) -> None:
    if bos in vocabulary and bos != eos:
        return
    stated = source.names.get("bos_token")
    known = (*([stated] if stated else []), *KNOWN_BEGINNINGS)
    candidates = [name for name in _candidates(known, vocabulary, added) if name != eos]
    fault = "there is no such token" if bos not in vocabulary else "that token ends one"
    raise TokenizerError(
        f"{source.file}: bos names {bos!r} as the beginning of a document, but {fault}. "
        f"{_choice('bos', candidates)} Leave bos out, and documents begin with their text."
    )


def _candidates(known: Sequence[str], vocabulary: Mapping[str, int], added: list[dict[str, Any]]) -> list[str]:
    special = [str(token["content"]) for token in added if token["special"]]
    return list(dict.fromkeys([*(name for name in known if name in vocabulary), *special]))[:8]


def _choice(key: str, candidates: Sequence[str]) -> str:
    return f"Set {key} to one of: {', '.join(candidates)}." if candidates else "It has no special token: add one."


def _unk_id(model: Mapping[str, Any], vocabulary: Mapping[str, int]) -> int | None:
    if model.get("unk_id") is not None:
        return int(model["unk_id"])
    return vocabulary.get(model.get("unk_token") or "")


def _hide_special_words(data: dict[str, Any]) -> None:
    """Rename special tokens in models that find whole words in their vocabulary; drawn by lot, so that no page can guess."""
    model = data["model"]
    if model["type"] not in ("Unigram", "WordLevel", "WordPiece"):
        return
    unknown = model.get("unk_token")
    hidden = {
        token["content"]: f"\ufdd0{secrets.token_hex(16)}"
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
