"""A checkpoint of a training: whether it is whole, its checksum, and a copy that cannot change while it judges.

    found = wait_for(path, entry.checkpoint_sha256, seconds=600)
    model = pin(found, folder, tokenizer=GivenTokenizer("default"), fingerprint=entry.tokenizer)

Two kinds: a folder in transformers' format, and a file of the example trainer, which becomes such a folder. A trainer may
be writing one at this moment, and may delete it while it is used. So it is refused until it is whole and fits the
checksum that the trainer gave; where none was given, until no byte of it has changed for some seconds. What judges
is then a folder of our own: links to the weights where the file system has them, which outlast their deletion.

What may mend itself is a `RunError`, so that Airflow tries again; what never will is a `ConfigError`.
Costs: every byte is read twice (1 to 2 GB a second), for its completeness and for its checksum.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import orjson

from curation.errors import ConfigError, RunError
from curation.run import file_sha256, read_json, write_json
from quality_models.example_gpt import damage_in, write_folder
from quality_models.lm_folder import bos_name, digest, tokenizer_files, weight_files
from quality_models.lm_folder import read_json as read_model_json
from quality_models.windows import BosRule

__all__ = ["SETTLED_S", "Checkpoint", "GivenTokenizer", "Kind", "Pinned", "age", "held", "look", "pin", "wait_for"]

Kind: TypeAlias = Literal["transformers", "example"]

SETTLED_S = 10.0
"""Seconds for which a checkpoint without a known checksum must not have changed. A writer is seldom silent for longer."""
PINNED = "pinned.json"
_ONE_OF = re.compile(r".*-(\d+)-of-(\d+)\.safetensors")
_MOST_HEADER = 100_000_000
"""Bytes of the header of a safetensors file: what its own library reads at most."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint that was whole when it was looked at."""

    path: Path
    kind: Kind
    sha256: str
    """Of the file; of a folder, of the names and bytes of config.json, the weights, and the tokenizer's files."""


@dataclass(frozen=True, slots=True)
class GivenTokenizer:
    """A tokenizer as `pack.tokenizer`, `pack.eos` and `pack.bos` of a config name it."""

    name: str
    eos: str | None = None
    bos: str | None = None


@dataclass(frozen=True, slots=True)
class Pinned:
    """The folder in transformers' format that judges in place of a checkpoint."""

    folder: Path
    kind: Kind
    sha256: str
    """Of the checkpoint."""
    bos: BosRule
    """How its training put documents before it, as far as is known: `none` where no token began them."""
    positions: int | None
    """The longest window that it has learned to read, where it says so."""


# -- is it whole -------------------------------------------------------------------------------


def look(path: Path, sha256: str | None = None, *, settled_s: float = SETTLED_S) -> Checkpoint:
    """The checkpoint at a path.

    Args:
        sha256: what the trainer says its checksum is.
        settled_s: see SETTLED_S; counts only where no checksum is given.

    Raises:
        RunError: it is not there, not whole, not the one of that checksum, or was changed just now: worth waiting for.
        ConfigError: it is of no kind that can be read.
    """
    if not path.exists():
        raise RunError(
            f"checkpoint {path}: expected a file or folder, found nothing. Wait until the trainer has written it."
        )
    kind: Kind = "transformers" if path.is_dir() else "example"
    if kind == "example":
        _refuse_other_files(path)
    before = _stamps(path)
    if sha256 is None and (seconds := age(path)) < settled_s:
        raise RunError(
            f"checkpoint {path} was changed {max(seconds, 0):.0f} s ago and has no checksum: expected {settled_s:g} s of rest. "
            "Wait, or let the trainer give its SHA-256."
        )
    if why := (_folder_damage(path) if kind == "transformers" else damage_in(path)):
        raise RunError(
            f"checkpoint {path} is not whole: {why}. The trainer may still be writing it; wait, or write it again."
        )
    found = _sha256(path)
    if sha256 is not None and found != sha256:
        raise RunError(
            f"checkpoint {path} is not the one that was reported: expected SHA-256 {sha256[:16]}..., found {found[:16]}.... "
            "It is half written, damaged, or was overwritten by another."
        )
    if _stamps(path) != before:
        raise RunError(f"checkpoint {path} was changed while it was read. Wait until the trainer has written it.")
    return Checkpoint(path, kind, found)


def wait_for(
    path: Path,
    sha256: str | None = None,
    *,
    seconds: float,
    every: float = 5.0,
    settled_s: float = SETTLED_S,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> Checkpoint:
    """`look`, again and again until it is whole.

    Raises:
        RunError: it was not within so many seconds; the message is that of the last look.
        ConfigError: it is of no kind that can be read.
    """
    give_up = clock() + seconds
    while True:
        try:
            return look(path, sha256, settled_s=settled_s)
        except RunError as error:
            if (left := give_up - clock()) <= 0:
                raise RunError(f"{error} It was waited for {seconds:.0f} s.") from error
            sleep(min(every, left))


def _refuse_other_files(path: Path) -> None:
    """A file that begins as no zip file does will not become one: torch.save writes from the beginning on."""
    with path.open("rb") as stream:
        begin = stream.read(4)
    if begin.strip(b"\0") and not b"PK\x03\x04".startswith(begin):
        raise ConfigError(
            f"checkpoint {path}: expected a folder in transformers' format, or a file of the example trainer (torch.save), "
            "found another kind of file. Give the folder that holds config.json."
        )


def _stamps(path: Path) -> dict[str, tuple[int, float]]:
    """Size and time of change of each file of a checkpoint."""
    files = [path] if path.is_file() else [one for one in path.iterdir() if one.is_file()]
    found = {}
    for one in files:
        with suppress(FileNotFoundError):  # a temporary file of the writer
            status = one.stat()
            found[one.name] = (status.st_size, status.st_mtime)
    return found


def age(path: Path) -> float:
    """Seconds since any file of a checkpoint was changed; of a folder without any, since that was."""
    changed = [moment for _, moment in _stamps(path).values()]
    return time.time() - max(changed, default=path.stat().st_mtime)


def _sha256(path: Path) -> str:
    if path.is_file():
        return file_sha256(path)
    try:
        return digest([*weight_files(path), *tokenizer_files(path)])
    except ValueError as error:
        raise RunError(f"checkpoint {path} was changed while it was read: {error}.") from error


def _folder_damage(folder: Path) -> str:
    """Why a folder is no whole model, in a few words; empty if it is.

    Raises:
        ConfigError: it holds pickled weights only.
    """
    weights = sorted(folder.glob("*.safetensors"))
    if not weights and (pickled := sorted(folder.glob("*.bin"))):
        raise ConfigError(
            f"checkpoint {folder}: expected weights as *.safetensors, found {pickled[0].name}, a pickle, which can run code. "
            "Save it with save_pretrained of a current transformers."
        )
    try:
        weight_files(folder)
        wanted: set[str] = set()
        for index in folder.glob("*.safetensors.index.json"):
            wanted |= set(read_model_json(index).get("weight_map", {}).values())
    except ValueError as error:
        return str(error)
    for one in weights:
        if match := _ONE_OF.fullmatch(one.name):
            number = len(match[1])
            wanted |= {one.name.replace(f"{match[1]}-of", f"{n:0{number}d}-of") for n in range(1, int(match[2]) + 1)}
    if missing := sorted(wanted - {one.name for one in weights}):
        return f"{missing[0]} is missing"
    return next((f"{one.name} {why}" for one in weights if (why := _cut(one))), "")


def _cut(path: Path) -> str:
    """What is wrong with the size of a safetensors file; its header says where each weight ends."""
    size = path.stat().st_size
    with path.open("rb") as stream:
        length = int.from_bytes(stream.read(8), "little")
        if size < 8 or not 2 <= length <= min(size - 8, _MOST_HEADER):
            return "ends within its header"
        try:
            header: dict[str, Any] = orjson.loads(stream.read(length))
            ends = [int(one["data_offsets"][1]) for name, one in header.items() if name != "__metadata__"]
        except (ValueError, KeyError, TypeError, IndexError, AttributeError):
            return "has a header that is not JSON of safetensors"
    expected = 8 + length + max(ends, default=0)
    return "" if size == expected else f"has {size:,} bytes where its header says {expected:,}"


# -- hold it -----------------------------------------------------------------------------------


def pin(
    checkpoint: Checkpoint, folder: Path, *, tokenizer: GivenTokenizer | None = None, fingerprint: str | None = None
) -> Pinned:
    """Hold a checkpoint in a folder of our own; one that holds it already is taken as it is.

    Args:
        tokenizer: of a checkpoint that brings none.
        fingerprint: what that tokenizer's must be: the one of the token file that was trained from.

    Raises:
        RunError: it changed since it was looked at, or the folder holds another one.
        ConfigError: there is no tokenizer, another one than it was trained with, or no model that can be read.
    """
    wanted = {"sha256": checkpoint.sha256, "kind": checkpoint.kind, "tokenizer": fingerprint}
    if not (folder / PINNED).exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        made = folder.with_name(f".{folder.name}.{os.getpid()}.{secrets.token_hex(4)}.tmp")
        made.mkdir()
        try:
            facts = _fill(checkpoint, made, tokenizer, fingerprint)
            write_json(made / PINNED, {**wanted, **facts})
            with suppress(OSError):  # another try was first: what it made is looked at below
                made.rename(folder)
        finally:
            shutil.rmtree(made, ignore_errors=True)
    found = read_json(folder / PINNED)
    if differing := sorted(name for name, value in wanted.items() if found.get(name) != value):
        raise RunError(
            f"{folder} holds another checkpoint: its {differing[0]} is {found.get(differing[0])!r}, expected "
            f"{wanted[differing[0]]!r}. Delete that folder to score anew, or give the checkpoint that was scored with."
        )
    return held(folder)


def held(folder: Path) -> Pinned:
    """The checkpoint that a folder holds since it was pinned, whatever has become of the trainer's own.

    Raises:
        RunError: it holds none, or its files are not what they were.
    """
    found = read_json(folder / PINNED)
    try:
        now = digest([*weight_files(folder), *tokenizer_files(folder)])
    except (ValueError, FileNotFoundError):
        now = ""
    if now != found["folder_sha256"]:
        raise RunError(
            f"{folder} is not what was held there: the trainer has overwritten its checkpoint in place, or it is damaged. "
            "Delete the folder, and let each checkpoint have a name of its own."
        )
    return Pinned(folder, found["kind"], found["sha256"], found["bos"], found["positions"])


def _fill(
    checkpoint: Checkpoint, folder: Path, tokenizer: GivenTokenizer | None, fingerprint: str | None
) -> dict[str, Any]:
    """Weights, config and tokenizer; returns what `pinned.json` says of them beside the checkpoint's own."""
    try:
        if checkpoint.kind == "example":
            write_folder(checkpoint.path, folder)
        else:
            for one in [*weight_files(checkpoint.path), *tokenizer_files(checkpoint.path)]:
                _link(one, folder / one.name)
        if _sha256(folder if checkpoint.kind == "transformers" else checkpoint.path) != checkpoint.sha256:
            raise RunError(f"checkpoint {checkpoint.path} changed since it was looked at. Try again.")
        own = bool(tokenizer_files(folder))
        begins = _put_tokenizer(folder, tokenizer, fingerprint, checkpoint) if not own else _names_bos(folder)
        config = read_model_json(folder / "config.json")
        return {
            "bos": "every_window" if begins else "none",
            "positions": next(
                (
                    config[name]
                    for name in ("max_position_embeddings", "n_positions")
                    if isinstance(config.get(name), int)
                ),
                None,
            ),
            "folder_sha256": digest([*weight_files(folder), *tokenizer_files(folder)]),
            "checkpoint": str(checkpoint.path),
        }
    except FileNotFoundError as error:
        raise RunError(
            f"checkpoint {checkpoint.path}: {error.filename} is gone. The trainer has deleted it."
        ) from error
    except ValueError as error:
        raise ConfigError(f"checkpoint {checkpoint.path}: {error}.") from error


def _link(source: Path, target: Path) -> None:
    """A second name for a file, or a copy where there can be none."""
    try:
        os.link(source.resolve(), target)
    except FileNotFoundError:
        raise
    except OSError:
        shutil.copy2(source, target)


def _names_bos(folder: Path) -> bool:
    """Whether a folder with its own tokenizer names a token that stands before text."""
    from quality_models.causal_lm import tokenizer_of

    return bool(bos_name(folder, tokenizer_of(folder).id_to_token))


def _put_tokenizer(folder: Path, given: GivenTokenizer | None, fingerprint: str | None, checkpoint: Checkpoint) -> bool:
    """Write the tokenizer that a checkpoint was trained with; returns whether it puts a token before documents."""
    from tokenization.errors import TokenizerError
    from tokenization.tokenizer import load_tokenizer

    if given is None:
        raise ConfigError(
            f"checkpoint {checkpoint.path} brings no tokenizer: give the one that its token file was made with "
            "(`pack.tokenizer` of the run), or save it beside the weights."
        )
    try:
        tokenizer = load_tokenizer(given.name, eos=given.eos, bos=given.bos)
    except TokenizerError as error:
        raise ConfigError(f"checkpoint {checkpoint.path}: {error}") from error
    if fingerprint is not None and tokenizer.fingerprint() != fingerprint:
        raise ConfigError(
            f"checkpoint {checkpoint.path} was trained with the tokenizer {fingerprint[:16]}..., but {given.name} is "
            f"{tokenizer.fingerprint()[:16]}...: its ids mean other tokens. Give the one of the token file."
        )
    tokenizer.save(folder)
    return tokenizer.bos is not None
