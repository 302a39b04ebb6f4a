"""How kernels are compiled, and where the machine code is kept.

`@kernel` is `numba.njit(nogil=True)` with a cache on disk. Nothing is compiled at import: a kernel is
compiled on its first call (0.2 to 2 s), and read from the cache ever after (4 ms). `python -m curation.text`
compiles them all at once, for images.

numba alone would go wrong in two ways. It stamps a cached kernel with its own source file only, so a
change in a function that the kernel inlines from another module, or in a table, would go unnoticed;
and where neither the installed package nor a home directory can be written, as in many containers,
it raises at import. Here the cache folder's name holds a digest of every source and table of this
package, and of the folder of the kernel's own module; and the folder is the first of these that can
be written: numba's own setting (NUMBA_CACHE_DIR), `__pycache__` beside the module, the user's cache
folder, a private folder in the temporary directory. If none can, kernels are compiled in every process.
"""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

__all__ = ["cache_folder", "inlined", "kernel"]

Function = TypeVar("Function", bound=Callable[..., Any])

FOLDER = Path(__file__).resolve().parent


@cache
def _digest(folder: Path) -> str:
    """Digest of every Python source and table in a folder."""
    digest = hashlib.blake2b(digest_size=6)
    for path in sorted((*folder.glob("*.py"), *folder.glob("*.tsv"))):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def _is_private(folder: Path) -> bool:
    """Whether nobody else can put files there: cached kernels are machine code that will be run."""
    about = folder.lstat()
    return stat.S_ISDIR(about.st_mode) and about.st_uid == os.getuid() and not about.st_mode & 0o077


def _candidates(folder: Path) -> Iterator[Path]:
    """Where the cache of kernels in `folder` could be, best first; private ones are made on the way."""
    if numba.config.CACHE_DIR:
        yield Path(numba.config.CACHE_DIR)
    yield folder / "__pycache__"
    with contextlib.suppress(RuntimeError):  # an account without a home directory
        yield Path.home() / ".cache" / "corpusmill"
    private = Path(tempfile.gettempdir()) / f"corpusmill-{os.getuid()}"
    try:
        private.mkdir(mode=0o700, exist_ok=True)
        if _is_private(private):
            yield private
    except OSError:
        return  # no temporary directory either: no cache


@cache
def cache_folder(folder: Path = FOLDER) -> str | None:
    """Where kernels of the modules in `folder` are kept: the first candidate that can be written, or None."""
    name = f"kernels-{_digest(FOLDER)}" + (f"-{_digest(folder)}" if folder != FOLDER else "")
    for candidate in _candidates(folder):
        try:
            (candidate / name).mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=candidate / name).close()
        except OSError:
            continue  # read-only or foreign: try the next
        return str(candidate / name)
    return None


def kernel(function: Function) -> Function:
    """Compile on first call, without the GIL, and keep the machine code."""
    compiled = numba.njit(nogil=True, error_model="numpy")(function)
    where = cache_folder(Path(inspect.getfile(function)).resolve().parent)
    if where is not None:
        before = numba.config.CACHE_DIR
        numba.config.CACHE_DIR = where
        try:
            compiled.enable_caching()
        finally:
            numba.config.CACHE_DIR = before
    return cast(Function, compiled)


def inlined(function: Function) -> Function:
    """A function for use inside kernels: compiled into them, not by itself, so without a cache of its own."""
    return cast(Function, numba.njit(nogil=True, error_model="numpy")(function))
