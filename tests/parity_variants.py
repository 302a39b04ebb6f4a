"""A small tokenizer and its faulty twins: what a trainer's tokenizer may have that the pipeline's has not."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.token_files import small_bpe
from tokenization.tokenizer import Tokenizer, load_tokenizer

__all__ = ["EOS", "PAD", "TWINS", "save", "small", "twin"]

EOS, PAD = "<|endoftext|>", "<|pad|>"
Data = dict[str, Any]


def save(folder: Path, data: Mapping[str, Any], config: Mapping[str, Any] | None = None) -> Path:
    """tokenizer.json in a folder, with an end of text beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tokenizer.json").write_text(json.dumps(data), encoding="utf-8")
    said = {"eos_token": EOS} if config is None else config
    (folder / "tokenizer_config.json").write_text(json.dumps(said), encoding="utf-8")
    return folder / "tokenizer.json"


def small(folder: Path) -> tuple[Path, Tokenizer]:
    """The small tokenizer in a folder, and as the pipeline loads it."""
    path = save(folder, json.loads(small_bpe()))
    return path, load_tokenizer(path, eos=EOS, fast=False)


def twin(folder: Path, name: str) -> Path:
    """tokenizer.json of a faulty twin."""
    data = json.loads(small_bpe())
    TWINS[name](data)
    return save(folder / name, data)


def template(before: int, behind: int = 0) -> Data:
    """A post-processor that puts PAD so often before a text, and EOS behind it."""
    text: list[Data] = [{"Sequence": {"id": "A", "type_id": 0}}]
    lead: list[Data] = [{"SpecialToken": {"id": PAD, "type_id": 0}}] * before
    tail: list[Data] = [{"SpecialToken": {"id": EOS, "type_id": 0}}] * behind
    tokens = {name: {"id": name, "ids": [index], "tokens": [name]} for name, index in ((EOS, 0), (PAD, 1))}
    pair = [*text, {"Sequence": {"id": "B", "type_id": 1}}]
    return {"type": "TemplateProcessing", "single": [*lead, *text, *tail], "pair": pair, "special_tokens": tokens}


def _setting(key: str, value: Any) -> Callable[[Data], None]:
    return lambda data: data.__setitem__(key, copy.deepcopy(value))


def _prefix(data: Any) -> None:
    if isinstance(data, dict):
        if data.get("type") == "ByteLevel":
            data["add_prefix_space"] = True
        for value in data.values():
            _prefix(value)
    elif isinstance(data, list):
        for value in data:
            _prefix(value)


def _without_a_merge(data: Data) -> None:
    del data["model"]["merges"][40]


def _shifted(data: Data) -> None:
    data["model"]["vocab"] = {token: index + 3 * (index > 1) for token, index in data["model"]["vocab"].items()}


def _swapped(data: Data) -> None:
    vocab = data["model"]["vocab"]
    one, other = [token for token, index in vocab.items() if index in (301, 302)]
    vocab[one], vocab[other] = vocab[other], vocab[one]


def _added(data: Data) -> None:
    token = {"id": 600, "content": "<tool>", "special": False, "normalized": False}
    data["added_tokens"].append({**token, "single_word": False, "lstrip": False, "rstrip": False})


TWINS: Mapping[str, Callable[[Data], None]] = {
    "lower_case": _setting("normalizer", {"type": "Lowercase"}),
    "nfc": _setting("normalizer", {"type": "NFC"}),
    "nfkc": _setting("normalizer", {"type": "NFKC"}),
    "strip": _setting("normalizer", {"type": "Strip", "strip_left": True, "strip_right": True}),
    "truncation": _setting(
        "truncation", {"direction": "Right", "max_length": 40, "strategy": "LongestFirst", "stride": 0}
    ),
    "padding": _setting(
        "padding",
        {
            "strategy": "BatchLongest",
            "direction": "Right",
            "pad_to_multiple_of": None,
            "pad_id": 1,
            "pad_type_id": 0,
            "pad_token": PAD,
        },
    ),
    "prefix_space": _prefix,
    "merges": _without_a_merge,
    "shifted": _shifted,
    "renumbered": _swapped,
    "added": _added,
    "bos": _setting("post_processor", template(1)),
    "double_bos": _setting("post_processor", template(2)),
    "eos": _setting("post_processor", template(0, 1)),
    "double_eos": _setting("post_processor", template(0, 2)),
}
"""Name -> what is changed in the small tokenizer's tokenizer.json."""
