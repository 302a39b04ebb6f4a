"""Whatever file a tokenizer comes in, read as the equal tokenizer.json.

What is taken: a tokenizer.json; a SentencePiece model (BPE or unigram); a tiktoken file of ranks, where we know its
vocabulary or a file beside it says the rest; Mistral's tekken.json; GPT-2's vocab.json and merges.txt; or a folder that
holds one of these, in this order. Kinds are told by content, not by name: Llama 3 calls its tiktoken file tokenizer.model.

Special tokens come from the file itself, and from `tokenizer_config.json`, `special_tokens_map.json` and
`added_tokens.json` beside it, which go first. Nothing is downloaded.

Costs: nothing for a tokenizer.json; 0.3 to 2 s for the others, once a process: the last four results are kept.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from tokenization.errors import TokenizerError
from tokenization.formats.known import CLASSES, KNOWN, Recipe
from tokenization.formats.sentencepiece import convert as convert_sentencepiece
from tokenization.formats.sentencepiece import is_sentencepiece
from tokenization.formats.tiktoken import (
    convert_merges,
    convert_ranks,
    convert_tekken,
    is_ranks,
    read_recipe,
    recipe_for,
)

__all__ = ["Source", "read_source", "recipe_beside"]

VOCABULARIES = {"vocab.json": "merges.txt", "encoder.json": "vocab.bpe"}
"""GPT-2's two files, under the names that they have."""
GLOBS = ("tokenizer.json", "tokenizer.model", "*.model", *VOCABULARIES, "*.tiktoken", "tekken*.json")
"""Which file of a folder is the tokenizer: the first of these that is there once."""
KINDS = "a tokenizer.json, a SentencePiece .model, a tiktoken file, a tekken.json, or vocab.json with merges.txt"
KEYS = ("eos_token", "pad_token", "bos_token")
_ID = re.compile("[0-9]{1,10}")


@dataclass(frozen=True, slots=True)
class Source:
    """A tokenizer as tokenizer.json, and what is said beside it."""

    file: Path
    kind: str
    """`tokenizer.json`, or what it was made from: `SentencePiece`, `tiktoken`, `tekken`, `vocab.json`."""
    text: str
    """The tokenizer.json."""
    names: Mapping[str, str]
    """`eos_token`, `pad_token`, `bos_token`, as far as they are said."""
    added: Mapping[str, int]
    """Added tokens and the ids that the file gives them."""


def read_source(path: Path) -> Source:
    """Read whatever lies there.

    Raises:
        TokenizerError: it is missing, ambiguous, damaged, or of no kind that is known.
    """
    file = _find(path)
    try:
        raw = file.read_bytes()
    except OSError as error:
        raise TokenizerError(f"{file} cannot be read: {error.strerror or error}.") from error
    beside = _names_beside(file.parent)
    made = _read(file, raw)
    if made.kind != "tokenizer.json" and (extra := _added_beside(file.parent)):
        made = _with_added(made, extra)
    return replace(made, names={**made.names, **beside})


def _find(path: Path) -> Path:
    if path.is_file():
        return path
    if not path.is_dir():
        raise TokenizerError(
            f"no tokenizer {str(path)!r}: expected `default`, the path of {KINDS}, or a folder that holds one. "
            "Names on a model hub are not downloaded."
        )
    for pattern in GLOBS:
        found = sorted(file for file in path.glob(pattern) if file.is_file())
        found = [file for file in found if file.name not in VOCABULARIES or (path / VOCABULARIES[file.name]).is_file()]
        if len(found) == 1:
            return found[0]
        if found:
            raise TokenizerError(
                f"{path} holds several tokenizers ({', '.join(file.name for file in found[:8])}): give the path of one."
            )
    held = sorted(file.name for file in path.iterdir())[:8]
    raise TokenizerError(f"{path} holds no tokenizer (found {', '.join(held) or 'nothing'}): expected {KINDS}.")


def _read(file: Path, raw: bytes) -> Source:
    """A file by its content, whatever lies beside it."""
    if is_ranks(raw):
        return _converted(raw, convert_ranks, recipe_beside(file) or recipe_for(raw, str(file)), file, "tiktoken")
    if is_sentencepiece(raw):
        return _converted(raw, _sentencepiece, None, file, "SentencePiece")
    try:
        text = raw.decode()
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise TokenizerError(f"{file} cannot be read as a tokenizer: it is none of {KINDS}: {error}.") from error
    data = data if isinstance(data, dict) else {}
    if isinstance(data.get("model"), dict):  # in a vocab.json, "model" is a word with an id
        return Source(file, "tokenizer.json", text, {}, _added_ids(data))
    if isinstance(data.get("vocab"), list) and isinstance(data.get("config"), dict):
        return _converted(raw, _tekken, None, file, "tekken")
    merges = file.parent / VOCABULARIES.get(file.name, ".")
    if merges.is_file():
        recipe = _recipe_of_class(file, raw)
        both = raw + b"\0" + merges.read_bytes()
        return _converted(both, _vocab_and_merges, recipe, file, "vocab.json")
    raise TokenizerError(f"{file} cannot be read as a tokenizer: JSON, but none of {KINDS}.")


Convert = Callable[[bytes, Any, str], tuple[dict[str, Any], dict[str, str]]]


@lru_cache(maxsize=4)
def _converted(raw: bytes, convert: Convert, recipe: Recipe | None, file: Path, kind: str) -> Source:
    data, names = convert(raw, recipe, str(file))
    return Source(file, kind, json.dumps(data, ensure_ascii=False), names, _added_ids(data))


def _added_ids(data: Mapping[str, Any]) -> dict[str, int]:
    """As far as they can be read: the library refuses a file with others, and says why."""
    added = data.get("added_tokens")
    tokens = [token for token in (added if isinstance(added, list) else ()) if isinstance(token, dict)]
    return {str(token["content"]): token["id"] for token in tokens if "content" in token and "id" in token}


def _sentencepiece(raw: bytes, _: None, where: str) -> tuple[dict[str, Any], dict[str, str]]:
    return convert_sentencepiece(raw, where)


def _tekken(raw: bytes, _: None, where: str) -> tuple[dict[str, Any], dict[str, str]]:
    return convert_tekken(json.loads(raw), where)


def _vocab_and_merges(both: bytes, recipe: Recipe, where: str) -> tuple[dict[str, Any], dict[str, str]]:
    vocabulary, merges = both.split(b"\0", 1)
    try:
        return convert_merges(json.loads(vocabulary), merges.decode(), recipe, where)
    except UnicodeDecodeError as error:
        raise TokenizerError(f"{where}: the merges beside it are not UTF-8: {error}.") from error


def recipe_beside(file: Path) -> Recipe | None:
    """What `FILE.json` says of how a list of ranks splits text; None where there is none.

    Raises:
        TokenizerError: it is no JSON, or a key of it is missing, unknown or of a wrong type.
    """
    beside = file.with_name(file.name + ".json")
    return read_recipe(_json(beside), str(beside)) if beside.is_file() else None


def _recipe_of_class(file: Path, raw: bytes) -> Recipe:
    """How GPT-2's kind of files is to be read: as the tokenizer class beside it does, or GPT-2's own by its checksum."""
    config = _json_beside(file.parent, "tokenizer_config.json")
    name = str(config.get("tokenizer_class", "")).removesuffix("Fast")
    if name in CLASSES:
        return CLASSES[name]
    known = KNOWN.get(hashlib.sha256(raw).hexdigest())
    if known is not None and not name:
        return known
    raise TokenizerError(
        f"{file}: {'tokenizer_class ' + repr(name) if name else 'nothing'} in tokenizer_config.json says how text is split "
        f"before these merges. Name one of {', '.join(CLASSES)} there if that is what the trainer uses, or give the "
        "tokenizer.json that its own library writes."
    )


def _names_beside(folder: Path) -> dict[str, str]:
    """`eos_token`, `pad_token`, `bos_token` as the files beside a tokenizer name them."""
    names: dict[str, str] = {}
    for name in ("special_tokens_map.json", "tokenizer_config.json"):
        data = _json_beside(folder, name)
        for key in KEYS:
            value = data.get(key)
            value = value.get("content") if isinstance(value, dict) else value
            if isinstance(value, str):
                names[key] = value
    return names


def _added_beside(folder: Path) -> dict[str, dict[str, Any]]:
    """Tokens that were added to a tokenizer after its file was made: name -> added token."""
    plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    added = {
        name: {**plain, "id": index, "content": name}
        for name, index in _json_beside(folder, "added_tokens.json").items()
        if isinstance(index, int)
    }
    decoder = _json_beside(folder, "tokenizer_config.json").get("added_tokens_decoder")
    for index, token in (decoder if isinstance(decoder, dict) else {}).items():
        if isinstance(token, dict) and isinstance(token.get("content"), str) and _ID.fullmatch(index):
            flags = {key: bool(token.get(key, value)) for key, value in plain.items()}
            added[token["content"]] = {**flags, "id": int(index), "content": token["content"]}
    return added


def _with_added(source: Source, extra: Mapping[str, dict[str, Any]]) -> Source:
    """The tokenizer with further added tokens; those that it has already stay as they are."""
    data = json.loads(source.text)
    vocabulary = data["model"]["vocab"]
    words = {piece[0]: i for i, piece in enumerate(vocabulary)} if isinstance(vocabulary, list) else vocabulary
    ids: dict[str, int] = {**words, **source.added}
    for name, token in sorted(extra.items(), key=lambda item: item[1]["id"]):
        if ids.setdefault(name, token["id"]) != token["id"]:
            raise TokenizerError(
                f"{source.file}: token {name!r} has id {ids[name]}, but the files beside it say {token['id']}: they "
                "belong to different tokenizers."
            )
        if name not in source.added:
            data["added_tokens"].append(token)
    if len(set(ids.values())) < len(ids):
        raise TokenizerError(f"{source.file}: the files beside it give the id of one of its tokens to an added one.")
    return replace(source, text=json.dumps(data, ensure_ascii=False), added=_added_ids(data))


def _json_beside(folder: Path, name: str) -> dict[str, Any]:
    file = folder / name
    data = _json(file) if file.is_file() else {}
    return data if isinstance(data, dict) else {}


def _json(file: Path) -> Any:
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise TokenizerError(f"{file} is not valid JSON: {error}.") from error
    except OSError as error:
        raise TokenizerError(f"{file} cannot be read: {error.strerror or error}.") from error
