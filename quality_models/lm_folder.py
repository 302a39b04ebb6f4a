"""A language model's folder in transformers' format: where it is, what is in it, and its checksums.

Needed files: config.json, *.safetensors and a tokenizer (tokenizer.json; without it transformers must know how to make
one from the others). Pickled weights (.bin) are not read: a pickle can run code.

Costs: checksums read every byte of the weights once a process (1 to 2 GB a second).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

__all__ = ["bos_name", "digest", "find_folder", "library_version", "read_json", "tokenizer_files", "weight_files"]

TOKENIZER_FILES = (
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "merges.txt",
    "vocab.txt",
    "tokenizer.model",
    "sentencepiece.bpe.model",
)
EXTRA = "pip install 'corpusmill[torch]'"


def library_version(name: str) -> str:
    """Version of an installed package, without its build (`2.13.0`, not `2.13.0+cpu`). It is not imported.

    Raises ValueError, naming what to install, where it is missing.
    """
    try:
        return version(name).partition("+")[0]
    except PackageNotFoundError:
        raise ValueError(f"package {name}: expected it for neural perplexity, found it missing; {EXTRA}") from None


def find_folder(model: str) -> Path:
    """The folder of a model that is given as a folder, or by its name on the Hugging Face hub (`openai-community/gpt2`).

    A name is looked up in the hub's cache on this machine and else downloaded into it. Raises ValueError.
    """
    folder = Path(model).expanduser()
    if folder.is_dir():
        return folder
    if folder.is_absolute() or model.startswith((".", "~")) or model.count("/") > 1 or folder.exists():
        found = "a file" if folder.exists() else "nothing"
        raise ValueError(
            f"{model}: expected the folder of a language model, found {found}; give the folder that holds config.json"
        )
    library_version("huggingface_hub")
    return _from_hub(model)


@cache
def _from_hub(name: str) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    wanted = ["config.json", "*.safetensors", "*.safetensors.index.json", "safety.json", *TOKENIZER_FILES]
    try:
        return Path(snapshot_download(name, allow_patterns=wanted))
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OSError) as error:
        raise ValueError(
            f"{name}: expected a folder, or the name of a model on the Hugging Face hub, found neither "
            f"({type(error).__name__}: {' '.join(str(error).split())[:200]}); give the folder, or download the model first"
        ) from error


def read_json(path: Path) -> dict[str, Any]:
    """An object of JSON. Raises ValueError for a missing or damaged file."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ValueError(
            f"{path}: expected it in the folder of a language model, found nothing; give the folder that holds it"
        ) from None
    except (ValueError, OSError) as error:
        raise ValueError(f"{path}: expected JSON, found {error}; copy the model again") from error
    if not isinstance(found, dict):
        raise ValueError(f"{path}: expected an object, found {type(found).__name__}; copy the model again")
    return found


def weight_files(folder: Path) -> list[Path]:
    """config.json and the weights. Raises ValueError where either is missing."""
    config = folder / "config.json"
    read_json(config)
    weights = sorted(folder.glob("*.safetensors"))
    if not weights:
        others = ", ".join(sorted(path.name for path in folder.glob("*.bin"))) or "no weights"
        raise ValueError(
            f"{folder}: expected weights as *.safetensors, found {others}; "
            "save the model with save_pretrained of a current transformers"
        )
    return [config, *weights]


def tokenizer_files(folder: Path) -> list[Path]:
    """The files that make the tokenizer."""
    return [folder / name for name in TOKENIZER_FILES if (folder / name).is_file()]


def digest(files: Iterable[Path]) -> str:
    """SHA-256, in hex, of the names and bytes of files. Kept for the life of the process while size and time stay."""
    whole = hashlib.sha256()
    for path in files:
        stat = path.stat()
        whole.update(path.name.encode() + b"\0" + _file_digest(path, stat.st_size, stat.st_mtime_ns))
    return whole.hexdigest()


@cache
def _file_digest(path: Path, size: int, time: int) -> bytes:
    """SHA-256 of a file; size and time are there to notice another file of its name."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()


def bos_name(folder: Path, id_to_token: Any) -> str:
    """The token that stands before text: the tokenizer's BOS, or the config's, else likewise the EOS; empty if none is named.

    id_to_token: of the tokenizer.
    """
    configs: Sequence[dict[str, Any]] = [
        read_json(folder / name)
        for name in ("tokenizer_config.json", "special_tokens_map.json", "config.json")
        if (folder / name).is_file()
    ]
    for kind in ("bos", "eos"):
        for config in configs:
            named = config.get(f"{kind}_token")
            if isinstance(named, dict):
                named = named.get("content")
            if isinstance(named, str) and named:
                return named
        for config in configs:
            number = config.get(f"{kind}_token_id")
            number = number[0] if isinstance(number, list) and number else number
            if isinstance(number, int) and (token := id_to_token(number)):
                return str(token)
    return ""
