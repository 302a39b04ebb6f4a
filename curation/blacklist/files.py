"""The folder of a blacklist, on this machine or on any store that fsspec knows.

One thing matters: `create` puts a whole file under a name that nobody has, or says that somebody has it.
On a local disk that is a hard link to a file that was written and fsynced before. S3 and Google's store are asked for
an exclusive put. Everywhere else (and on disks without links) a writer first lays down a claim, an object of its own; if
it then sees another claim it takes its own back and waits. Whoever claims later sees the earlier claim, so two never
write at once where a listing shows what was put before it; a claim whose writer died is named, never believed dead.

Local files are memory-mapped. Those of other stores are read whole into memory when they are needed.
"""

from __future__ import annotations

import contextlib
import errno
import inspect
import os
import platform
import random
import re
import secrets
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from curation.errors import InputError, RunError
from curation.run import fsync_folder, publish

__all__ = ["Files", "LocalFiles", "StoredFiles", "open_files"]

_CLAIM_SECONDS = 60.0
"""So long a writer waits for another one's claim."""
_EXCLUSIVE = frozenset({"s3", "s3a", "gs", "gcs"})
"""Protocols whose `pipe_file(mode="create")` is one request that fails if the object exists."""
_NO_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})
_OLD_SECONDS = 86_400


class Files(ABC):
    """Files of one folder, by name."""

    where: str

    @abstractmethod
    def names(self) -> set[str] | None:
        """Names of what is there; None if there is no such folder."""

    @abstractmethod
    def buffer(self, name: str) -> pa.Buffer:
        """Content of a file. Raises RunError if it is missing."""

    @abstractmethod
    def room(self) -> contextlib.AbstractContextManager[Path]:
        """A path to write a file to, which `create` or `replace` then puts in place; it is gone afterwards."""

    @abstractmethod
    def replace(self, name: str, made: Path) -> None:
        """Put a file in place, whatever was there."""

    @abstractmethod
    def _put_if_new(self, name: str, made: Path) -> bool | None:
        """Put a file in place if the name is free; None: this place cannot."""

    @abstractmethod
    def _remove(self, name: str) -> None: ...

    def path(self, name: str) -> str:
        """A file as messages name it."""
        return f"{self.where.rstrip('/')}/{name}"

    def create(self, name: str, made: Path) -> bool:
        """Put a file in place under a name that is free; false if it is taken, and then nothing was changed.

        Raises:
            RunError: it cannot be written, or another writer's claim did not go away.
        """
        done = self._put_if_new(name, made)
        return self._create_by_claim(name, made) if done is None else done

    def _create_by_claim(self, name: str, made: Path) -> bool:
        token = f"{name}.claim-{secrets.token_hex(8)}"
        give_up = time.monotonic() + _CLAIM_SECONDS
        while True:
            self._put_text(token, f"{platform.node()} {os.getpid()}\n")
            try:
                claims = {one for one in self.names() or () if one.startswith(f"{name}.claim-")} - {token}
                if not claims:
                    if name in (self.names() or ()):
                        return False
                    self.replace(name, made)
                    return True
            finally:
                self._remove(token)
            if time.monotonic() > give_up:
                raise RunError(
                    f"{self.path(name)} cannot be written: for {_CLAIM_SECONDS:.0f} s another writer has held "
                    f"{', '.join(sorted(claims))}. If that writer is dead, delete the claim, then append again."
                )
            time.sleep(random.uniform(0.01, 0.2))  # two that met must not meet again

    def _put_text(self, name: str, text: str) -> None:
        with self.room() as made:
            made.write_text(text, encoding="utf-8")
            self.replace(name, made)

    def replace_text(self, name: str, text: str) -> None:
        """Put a small file in place."""
        self._put_text(name, text)

    def create_text(self, name: str, text: str) -> bool:
        """`create` of a small file."""
        with self.room() as made:
            made.write_text(text, encoding="utf-8")
            return self.create(name, made)


class LocalFiles(Files):
    """A folder on this machine, or on a disk that several share."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.where = str(folder)

    def names(self) -> set[str] | None:
        try:
            return {entry.name for entry in self.folder.iterdir()}
        except FileNotFoundError:
            return None
        except OSError as error:
            raise InputError(f"{self.folder} is no folder that can be read: {error.strerror}.") from error

    def buffer(self, name: str) -> pa.Buffer:
        path = self.folder / name
        try:
            if not path.stat().st_size:
                return pa.py_buffer(b"")
            with pa.memory_map(str(path)) as mapped:
                return mapped.read_buffer()
        except FileNotFoundError:
            raise RunError(f"{path} is missing: the blacklist is damaged. Put the file back from a copy.") from None
        except OSError as error:
            raise RunError(f"{path} cannot be read: {error}.") from error

    @contextlib.contextmanager
    def room(self) -> Iterator[Path]:
        made = self.folder / f".{platform.node() or 'host'}.{os.getpid()}.{secrets.token_hex(4)}.tmp"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._sweep()
            yield made
        except OSError as error:
            raise RunError(
                f"{self.folder} could not be written: {error.strerror or error}. Check its space and its rights."
            ) from error
        finally:
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                made.unlink()

    def _sweep(self) -> None:
        for path in self.folder.glob(".*.tmp"):
            with contextlib.suppress(FileNotFoundError):
                if time.time() - path.stat().st_mtime > _OLD_SECONDS:  # of a writer that was killed
                    path.unlink()

    def replace(self, name: str, made: Path) -> None:
        with publish(self.folder / name) as temporary:
            made.replace(temporary)

    def _put_if_new(self, name: str, made: Path) -> bool | None:
        with made.open("rb+") as stream:
            os.fsync(stream.fileno())
        try:
            os.link(made, self.folder / name)
        except FileExistsError:
            # On a network disk a request that was sent twice may have met itself.
            return made.samefile(self.folder / name)
        except OSError as error:
            if error.errno in _NO_LINKS:
                return None
            raise
        fsync_folder(self.folder)
        return True

    def _remove(self, name: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            (self.folder / name).unlink()


class StoredFiles(Files):
    """A folder on a store, through fsspec."""

    def __init__(self, url: str) -> None:
        import fsspec

        self.where = url
        with self._told():
            self._store, self._folder = fsspec.core.url_to_fs(url)
        protocol = self._store.protocol
        known = bool(_EXCLUSIVE & {protocol, *(protocol if isinstance(protocol, tuple) else ())})
        put = getattr(self._store, "_pipe_file", self._store.pipe_file)
        # Older releases of these packages pass over what they do not know, and would overwrite.
        self._exclusive = known and "mode" in inspect.signature(put).parameters

    def names(self) -> set[str] | None:
        with self._told():
            self._store.invalidate_cache()
            try:
                found: list[Any] = self._store.ls(self._folder, detail=False)
            except FileNotFoundError:
                return None
        return {re.split(r"[/\\]", str(one).rstrip("/"))[-1] for one in found}

    def buffer(self, name: str) -> pa.Buffer:
        with self._told():
            try:
                return pa.py_buffer(self._store.cat_file(self._at(name)))
            except FileNotFoundError:
                raise RunError(
                    f"{self.path(name)} is missing: the blacklist is damaged. Put the file back from a copy."
                ) from None

    @contextlib.contextmanager
    def room(self) -> Iterator[Path]:
        with tempfile.TemporaryDirectory(prefix="corpusmill-blacklist-") as folder:
            yield Path(folder) / "made"

    def replace(self, name: str, made: Path) -> None:
        with self._told():
            self._store.makedirs(self._folder, exist_ok=True)
            self._store.pipe_file(self._at(name), made.read_bytes())

    def _put_if_new(self, name: str, made: Path) -> bool | None:
        if not self._exclusive:
            return None
        content = made.read_bytes()
        with self._told():
            try:
                self._store.pipe_file(self._at(name), content, mode="create")
            except Exception:  # what a store raises for a name that is taken differs
                self._store.invalidate_cache()
                if not self._store.exists(self._at(name)):
                    raise
                # A request that was sent twice may have met itself.
                return bool(self._store.cat_file(self._at(name)) == content)
        return True

    def _remove(self, name: str) -> None:
        with self._told(), contextlib.suppress(FileNotFoundError):
            self._store.rm_file(self._at(name))

    def _at(self, name: str) -> str:
        return f"{self._folder.rstrip('/')}/{name}"

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except (RunError, InputError):
            raise
        except Exception as error:  # stores raise what they like
            raise InputError(
                f"{self.where} cannot be used: {type(error).__name__}: {error}. Check the address, the rights, and that "
                "the package for this kind of URL is installed."
            ) from error


def open_files(path: str | os.PathLike[str]) -> Files:
    """The folder at a local path, `file://` included, or at any URL that fsspec knows."""
    text = os.fspath(path)
    if "://" not in text and "::" not in text:
        return LocalFiles(Path(text))
    if text.startswith("file://"):
        import fsspec

        return LocalFiles(Path(fsspec.core.url_to_fs(text)[1]))
    return StoredFiles(text)
