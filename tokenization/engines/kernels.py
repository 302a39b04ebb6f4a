"""How kernels are compiled, and what they read memory with.

Nothing is compiled at import: a kernel is compiled on its first call (1 to 5 s), and read from the cache ever after
(10 ms). numba stamps a cached kernel with its own source file only, so a kernel stands in one file with all of its own
functions, and the cache folder's name holds a digest of this file, whose functions they share. The folder is the first
of these that can be written: numba's own setting (NUMBA_CACHE_DIR), `__pycache__` beside this file, the user's cache
folder, a private folder in the temporary directory. If none can, kernels are compiled in every process.

Kernels hold the GIL, so that two threads never write what one remembers, and start no threads, so that a fork is safe.
Nothing here checks bounds: callers do. For a search for a kernel that leaves its arrays, NUMBA_BOUNDSCHECK=1 checks
every access, of `at` and the words too; with a NUMBA_CACHE_DIR of its own, for compiled code does not say how it was.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias, TypeVar, cast

import numba
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

__all__ = ["SLACK", "Int", "at", "inlined", "kernel", "load64", "store64"]

Function = TypeVar("Function", bound=Callable[..., Any])
Int: TypeAlias = Any
"""An int64 in compiled code, for which Python's type checker has no one name."""

SLACK = 32
"""Bytes that an array needs after the last one that counts, to be read in words."""


def _candidates() -> Iterator[Path]:
    """Where the cache could be, best first."""
    if numba.config.CACHE_DIR:
        yield Path(numba.config.CACHE_DIR)
    yield Path(__file__).resolve().parent / "__pycache__"
    with contextlib.suppress(RuntimeError):  # an account without a home directory
        yield Path.home() / ".cache" / "corpusmill"
    private = Path(tempfile.gettempdir()) / f"corpusmill-{os.getuid()}"
    with contextlib.suppress(OSError):  # no temporary directory either: no cache
        private.mkdir(mode=0o700, exist_ok=True)
        about = private.lstat()
        # Cached kernels are machine code that will be run: nobody else may put files there.
        if stat.S_ISDIR(about.st_mode) and about.st_uid == os.getuid() and not about.st_mode & 0o077:
            yield private


@cache
def cache_folder() -> str | None:
    """Where machine code is kept: the first candidate that can be written, or None."""
    name = f"kernels-{hashlib.blake2b(Path(__file__).read_bytes(), digest_size=6).hexdigest()}"
    for candidate in _candidates():
        try:
            (candidate / name).mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=candidate / name).close()
        except OSError:
            continue  # read-only or foreign: try the next
        return str(candidate / name)
    return None


def kernel(function: Function) -> Function:
    """Compile on first call, and keep the machine code where that can be written."""
    compiled = inlined(function)
    where = cache_folder()
    if where is not None:
        before = numba.config.CACHE_DIR
        numba.config.CACHE_DIR = where
        try:
            cast(Any, compiled).enable_caching()
        finally:
            numba.config.CACHE_DIR = before
    return compiled


def inlined(function: Function) -> Function:
    """A function for use inside of kernels: compiled into them, so without a cache of its own."""
    return cast(Function, numba.njit(error_model="numpy")(function))


def _instruction(typing_function: Callable[..., Any]) -> Callable[..., Any]:
    """numba's `intrinsic`, with types."""
    return cast(Callable[..., Any], intrinsic(typing_function))


def _element(context: Any, builder: Any, signature: Any, args: Any, last: int = 0) -> Any:
    """Address of an element, of which so many more after it are used."""
    array = context.make_array(signature.args[0])(context, builder, args[0])
    if numba.config.BOUNDSCHECK:
        length, place = builder.extract_value(array.shape, 0), args[1]
        cgutils.do_boundscheck(context, builder, place, length)
        cgutils.do_boundscheck(context, builder, builder.add(place, place.type(last)), length)
    return builder.gep(array.data, [args[1]])


def _word(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    last = 8 // (signature.args[0].dtype.bitwidth // 8) - 1
    return builder.bitcast(_element(context, builder, signature, args, last), ir.IntType(64).as_pointer())


@_instruction
def at(typing_context: Any, array: Any, place: Any) -> Any:
    """An element of an array, which must exist: numba would ask each time whether its index is negative."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load(_element(context, builder, signature, args))

    return array.dtype(array, types.int64), generate


@_instruction
def load64(typing_context: Any, array: Any, place: Any) -> Any:
    """8 bytes of an array from any element on, little-endian: uint64."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        loaded = builder.load(_word(context, builder, signature, args))
        loaded.align = 1
        return loaded

    return types.uint64(array, types.int64), generate


@_instruction
def store64(typing_context: Any, array: Any, place: Any, value: Any) -> Any:
    """Write 8 bytes over an array from any element on."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.store(args[2], _word(context, builder, signature, args)).align = 1
        return context.get_dummy_value()

    return types.void(array, types.int64, types.uint64), generate
