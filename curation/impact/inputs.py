"""The sample that both sides judge: its files, copied under the name of their content.

Copies in `<root>/impact/samples/<digest>/` make a judged sample immune to what happens to the files it came from, give each
document one place and so one identity wherever the sample lay, and let a later command, on another checkout, find what was
judged. Costs a read and, the first time, a copy of the files.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote

from curation.errors import InputError, RunError
from curation.impact.locks import hold, waiting_lock
from curation.ingest.find import find_inputs
from curation.ingest.stored import open_source

__all__ = ["CARD", "SHIPPED_SAMPLE", "Sample", "take_sample"]

SHIPPED_SAMPLE = Path(__file__).resolve().parent / "sample"
CARD = "sample.json"
"""What a drawn sample says about itself; read here, and no document."""
_TIME_NS = 10**18
"""Every copy's time of change, so that the same content is the same input."""
_BLOCK = 2**20


@dataclass(frozen=True)
class Sample:
    """A sample, copied."""

    sha256: str
    """Over names and contents of its files."""
    folder: Path
    """Where the copies lie."""
    files: tuple[str, ...]
    """The copies, in order."""
    card: Mapping[str, Any] = field(default_factory=dict)
    """What `sample.json` says; empty without one."""
    given: str = ""
    """As it was asked for."""
    bytes: int = 0

    @property
    def name(self) -> str:
        """Its own name, or the path."""
        return str(self.card.get("name") or self.given)

    @property
    def about(self) -> str:
        return str(self.card.get("about") or f"{len(self.files)} files at {self.given}")

    @property
    def population(self) -> int | None:
        """Documents of the corpus that it was drawn from."""
        told = self.card.get("population")
        return int(told) if isinstance(told, int | float) else None


def take_sample(sample: Path | str | Sequence[Path | str] | None, root: Path) -> Sample:
    """Find the files of a sample and copy them, unless that was done before.

    Args:
        sample: a file, a folder, a glob, a URL, or several of them; None: the sample that ships.
        root: folder of all that `impact` keeps.

    Raises:
        InputError: there is no such file, or it holds nothing that is read.
        RunError: the copies cannot be written.
    """
    several = isinstance(sample, Sequence) and not isinstance(sample, str)
    asked = [str(one) for one in (sample if several else [sample if sample is not None else SHIPPED_SAMPLE])]  # type: ignore[union-attr]
    sources = [one.source for one in find_inputs(asked)[0] if _name_of(one.source) != CARD]
    given = "the sample that ships" if sample is None else ", ".join(asked)
    if not sources:
        raise InputError(
            f"the sample {given} holds no files that are read. Give a folder of JSON lines, parquet, Arrow or WARC."
        )
    card = _card(asked)
    hashes = [_sha256(source) for source in sources]
    names = [f"{place:04d}/{_name_of(source)}" for place, source in enumerate(sources)]
    told = "".join(f"{name}\0{digest}\n" for name, (digest, _) in zip(names, hashes, strict=True))
    sha256 = hashlib.sha256(told.encode("utf-8", "surrogateescape")).hexdigest()
    folder = root.resolve() / "samples" / sha256[:16]
    files = [folder / name for name in names]
    hold(root.resolve(), "samples", folder.name)
    if not _is_whole(folder, names, hashes):
        _copy(sources, names, folder, hashes)
    os.utime(folder)
    total = sum(n_bytes for _, n_bytes in hashes)
    return Sample(sha256, folder, tuple(str(file) for file in files), card, given, total)


def _name_of(source: str) -> str:
    name = PurePosixPath(unquote(source) if "://" in source else source).name
    return name.encode("utf-8", "replace").decode().replace("?", "_") if "://" in source else name


def _card(asked: Sequence[str]) -> dict[str, Any]:
    """`sample.json` of the first folder that has one."""
    path = next((Path(one) / CARD for one in asked if (Path(one) / CARD).is_file()), None)
    if path is None:
        return {}
    try:
        card = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read: {error}. Draw the sample again, or leave the file out.") from None
    if not isinstance(card, dict):
        raise InputError(f"{path}: expected one JSON object such as `corpusmill sample` writes.")
    return card


def _sha256(source: str) -> tuple[str, int]:
    """SHA-256 and bytes of an input."""
    digest, n_bytes = hashlib.sha256(), 0
    try:
        with open_source(source) as stream:
            while block := stream.read(_BLOCK):
                digest.update(block)
                n_bytes += len(block)
    except OSError as error:
        raise InputError(f"{source} cannot be read: {error.strerror or error}.") from error
    return digest.hexdigest(), n_bytes


def _has_size(path: Path, n_bytes: int) -> bool:
    try:
        return path.stat().st_size == n_bytes
    except OSError:
        return False


def _copy(sources: Sequence[str], names: Sequence[str], folder: Path, hashes: Sequence[tuple[str, int]]) -> None:
    """Publish the copies as a whole, by one rename."""
    temporary = folder.with_name(f".{folder.name}.{os.getpid()}.{secrets.token_hex(4)}.tmp")
    try:
        for source, name, (expected, _) in zip(sources, names, hashes, strict=True):
            target = temporary / name
            target.parent.mkdir(parents=True, exist_ok=True)
            with open_source(source) as stream, target.open("wb") as sink:
                shutil.copyfileobj(stream, sink, _BLOCK)
            if _sha256(str(target))[0] != expected:
                raise InputError(f"{source} was changed while it was read. Wait until the sample is complete.")
            os.utime(target, ns=(_TIME_NS, _TIME_NS))
        with waiting_lock(folder.parents[1], f"sample-{folder.name}"):
            if not _is_whole(folder, names, hashes):  # else another command was faster, with the same
                shutil.rmtree(folder, ignore_errors=True)
                temporary.rename(folder)
    except OSError as error:
        raise RunError(
            f"the sample could not be copied to {folder}: {error.strerror or error}. Free some space."
        ) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _is_whole(folder: Path, names: Sequence[str], hashes: Sequence[tuple[str, int]]) -> bool:
    return all(_has_size(folder / name, n_bytes) for name, (_, n_bytes) in zip(names, hashes, strict=True))
