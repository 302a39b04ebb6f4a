"""From arguments to input files: folders, globs and URLs opened up, what is no data named and left out.

Costs one stat a file. Sources are absolute paths or URLs; a path that is not valid UTF-8 becomes a `file://` URL
with percent escapes, since sources stand in JSON and in Arrow strings.
"""

from __future__ import annotations

import difflib
import fnmatch
import glob
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from curation.errors import InputError
from curation.ingest.stored import local_path

__all__ = ["Found", "find_inputs", "why_no_data"]

_NOTES = ("readme", "license", "licence", "changelog", "notice", "copying", "citation")
_NO_DATA = (
    ("a hidden file", (".*", "_*")),
    ("an unfinished file", ("*.tmp", "*.part", "*.partial", "*.crdownload", "*.swp", "*~")),
    (
        "a checksum",
        ("*.sha256", "*.sha1", "*.sha512", "*.md5", "*.crc", "*.crc32", "sha*sums*", "md5sum*", "checksums*"),
    ),
    ("a list of files", ("manifest", "manifest.*", "*.manifest", "*.index", "*.idx", "*.cdx", "*.cdxj", "*.paths")),
    ("a note", ("*.md", "*.rst", "*.log", *(f"{name}{end}" for name in _NOTES for end in ("", ".txt", ".html")))),
    ("code or settings", ("*.py", "*.sh", "*.yaml", "*.yml", "*.toml", "*.ini", "*.cfg", "makefile", "dockerfile")),
)
"""What a folder may hold beside data, by name. A file that is named on the command line is always read."""


@dataclass(frozen=True, slots=True)
class Found:
    """One input file."""

    source: str
    size: int
    mtime: str


Listed = tuple[Found, str | None, str]
"""A file, why it is left out, and what is equal for two names of one file."""


def why_no_data(name: str) -> str | None:
    """Why a file of this name is not read when it is found in a folder; None if it is read."""
    lower = name.lower()
    for what, patterns in _NO_DATA:
        for pattern in patterns:
            if fnmatch.fnmatchcase(lower, pattern):
                return f"{what}, by its name ({pattern})"
    return None


def find_inputs(inputs: Sequence[str]) -> tuple[list[Found], list[tuple[str, str]]]:
    """All files that the arguments name, sorted by source, each once; and what was left out, with the reason.

    Raises:
        InputError: an argument names nothing.
    """
    found: dict[str, Found] = {}
    identities: dict[str, str] = {}
    ignored: dict[str, str] = {}
    listed = [one for argument in inputs for one in _looked_up(argument)]
    # What is named outright wins over the same file left out of a folder; then by name, so that order never matters.
    for one, why, identity in sorted(listed, key=lambda item: (item[1] is not None, item[0].source)):
        if one.source in found:
            continue
        if why is not None:
            ignored[one.source] = why
        elif identity in identities:
            ignored[one.source] = f"the same file as {identities[identity]}"
        else:
            found[one.source] = one
            identities[identity] = one.source
    return [found[source] for source in sorted(found)], sorted(ignored.items())


def _looked_up(argument: str) -> list[Listed]:
    try:
        return list(_open_up(argument))
    except OSError as error:
        raise InputError(f"{argument} cannot be looked at: {error.strerror}: {error.filename}.") from error


def _open_up(argument: str) -> Iterator[Listed]:
    path = local_path(argument)
    if path is None:
        yield from _remote(argument)
    elif path.is_dir():
        yield from _folder(path)
    elif path.is_file():
        yield _listed(path, None)
    elif path.exists():
        raise InputError(f"{argument} is neither a file nor a folder. Write its content to a file first.")
    elif glob.has_magic(str(path)):
        names = sorted(glob.glob(str(path), recursive=True))  # noqa: PTH207  Path.glob refuses absolute patterns
        if not names:
            raise InputError(f"{argument}: no file matches this pattern. {_nearest(path)}")
        for name in names:
            if Path(name).is_dir():
                yield from _folder(Path(name))
            elif Path(name).is_file():
                yield _listed(Path(name), why_no_data(Path(name).name))
    else:
        raise InputError(f"{argument} does not exist. {_nearest(path)}")


def _folder(folder: Path) -> Iterator[Listed]:
    """Every file below a folder. Linked folders are entered, each real folder once."""
    visited = {os.path.realpath(folder)}
    for name, below, files in os.walk(folder, followlinks=True, onerror=_refuse):
        entered = []
        for sub in sorted(below):
            real = os.path.realpath(Path(name) / sub)
            if why_no_data(sub) and sub.startswith((".", "_")):
                yield Found(_source(Path(name) / sub), 0, ""), "a hidden folder, by its name", real
            elif real in visited:
                yield Found(_source(Path(name) / sub), 0, ""), "a link to a folder that is read already", real
            else:
                visited.add(real)
                entered.append(sub)
        below[:] = entered
        for file in sorted(files):
            path = Path(name) / file
            if path.is_file():
                yield _listed(path, why_no_data(file))
            else:
                yield Found(_source(path), 0, ""), "no regular file, or a link to nothing", str(path)


def _refuse(error: OSError) -> None:
    raise InputError(f"{error.filename} cannot be listed: {error.strerror}. Change its rights, or leave it out.")


def _listed(path: Path, why: str | None) -> Listed:
    status = path.stat()
    return Found(_source(path), status.st_size, str(status.st_mtime_ns)), why, os.path.realpath(path)


def _source(path: Path) -> str:
    absolute = os.path.abspath(path)  # noqa: PTH100  Path.absolute keeps "..", resolve follows links
    try:
        absolute.encode()
    except UnicodeEncodeError:
        return Path(absolute).as_uri()
    return absolute


def _nearest(path: Path) -> str:
    """What there is instead: the nearest names in the nearest folder that exists."""
    wanted, folder = path.name, path.absolute().parent
    while not folder.is_dir():
        wanted, folder = folder.name, folder.parent
    names = sorted(entry.name for entry in folder.iterdir())
    close = difflib.get_close_matches(wanted, names, n=3, cutoff=0.5) or names[:3]
    return f"In {folder} there are: {', '.join(close)}." if close else f"{folder} is empty."


# -- other stores -----------------------------------------------------------------------------------


def _remote(url: str) -> Iterator[Listed]:
    import fsspec

    try:
        store, path = fsspec.core.url_to_fs(url)
        if glob.has_magic(path) and not store.exists(path):
            infos: Iterable[Any] = store.glob(path, detail=True).values()
            named = False
        elif store.isdir(path):
            infos, named = store.find(path, detail=True).values(), False
        elif store.exists(path):
            infos, named = [store.info(path)], True
        else:
            infos, named = [], True
        files = [info for info in infos if info["type"] == "file"]
        exists = bool(files) or store.isdir(path)
    except Exception as error:  # stores raise what they like
        raise InputError(
            f"{url} cannot be looked up: {type(error).__name__}: {error}. Check the address, the rights, and that "
            "the package for this kind of URL is installed."
        ) from error
    if not exists:
        raise InputError(f"{url}: nothing is there. Check the address.")
    for info in sorted(files, key=lambda info: str(info["name"])):
        source = store.unstrip_protocol(info["name"])
        changed = next((info[key] for key in ("mtime", "LastModified", "created", "ETag") if info.get(key)), "")
        why = None if named else _why_no_remote_data(str(info["name"]), path)
        yield Found(source, int(info["size"]), str(changed)), why, source


def _why_no_remote_data(name: str, root: str) -> str | None:
    below = PurePosixPath(name.removeprefix(root)).parts
    hidden = any(part.startswith((".", "_")) for part in below[:-1] if part != "/")
    return "in a hidden folder, by its name" if hidden else why_no_data(PurePosixPath(name).name)
