"""A token file for other programs: Hugging Face datasets without a copy, and Arrow's stream format.

pyarrow, polars and DuckDB (through pyarrow) read the file as it is. Hugging Face datasets map only Arrow *streams*,
and keep whatever else they are given in their pickles: `to_hf` gives them a table that maps the file itself and
pickles as its path. `write_stream_copy` writes a stream, for programs that read nothing else: the bytes of a token
file between its magic and its seal are one, so copying costs a read, a checksum and a write.

A stream that ends at the border of a block looks whole to every Arrow reader: `read_stream_copy` refuses it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from tokenization.errors import TokenFileError
from tokenization.layout import Header
from tokenization.seal import Region, data_fault, read_region, read_seal

if TYPE_CHECKING:
    from datasets import Dataset  # type: ignore[import-untyped, unused-ignore]

__all__ = ["read_stream_copy", "table_of", "to_hf", "write_stream_copy"]

_MAGIC_BYTES = 8
"""ARROW1 and its padding: what a file has before its stream begins."""
_END_MARK = b"\xff\xff\xff\xff\0\0\0\0"


def table_of(path: str | os.PathLike[str], *, seal: str | None = None) -> pa.Table:
    """The file as an Arrow table that maps it; no token is read.

    Args:
        seal: SHA-256 that the seal must have, where a certain file is meant.

    Raises:
        TokenFileError: no token file, damaged where Arrow must parse it, or another file than `seal` names.
        FileNotFoundError: there is no such file.
    """
    where = Path(path)
    found = read_seal(where)
    if seal is not None and found.sha256 != seal:
        raise TokenFileError(f"{where} is not the file that was meant: it was replaced by another one. Open it anew.")
    descriptor = os.open(where, os.O_RDONLY)
    try:
        for region in (found.schema, *found.heads, found.end, found.footer):
            _check(where, region, read_region(descriptor, region.start, region.end))
    finally:
        os.close(descriptor)
    try:
        table = pa.ipc.open_file(pa.memory_map(str(where))).read_all()
        table.validate()
    except (pa.ArrowException, OSError) as error:
        raise TokenFileError(f"{where} cannot be read as an Arrow file: {error}.") from error
    return _whole(table, str(where))


def to_hf(path: str | os.PathLike[str]) -> Dataset:
    """The file as a Hugging Face `datasets.Dataset` that maps it: nothing is copied, and it pickles as its path.

    Token ids stay uint16 or uint32 in `with_format("arrow")` and `with_format("numpy", dtype=..)`; the other formats
    of that library make int64 of them. For training, `tokenization.reader` is many times faster.

    Raises:
        TokenFileError: no token file, or damaged where Arrow must parse it.
        ImportError: the package `datasets` is not installed.
    """
    from datasets import Dataset

    from tokenization.hf_table import MappedTokens

    return Dataset(MappedTokens.of(path))


def write_stream_copy(path: str | os.PathLike[str], out: str | os.PathLike[str]) -> Header:
    """Write a token file's content as an Arrow stream, checking every checksum on the way.

    Args:
        out: published by rename when it is whole.

    Raises:
        TokenFileError: no token file, or damaged anywhere; nothing is left at `out`.
    """
    source, target = Path(path), Path(out)
    seal = read_seal(source)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    descriptor = os.open(source, os.O_RDONLY)
    try:
        with temporary.open("wb") as stream:
            blocks = (region for pair in zip(seal.heads, seal.bodies, strict=True) for region in pair)
            for region in (seal.schema, *blocks, seal.end):
                data = memoryview(read_region(descriptor, region.start, region.end))
                _check(source, region, data)
                stream.write(data[_MAGIC_BYTES:] if region is seal.schema else data)
            _check(source, seal.footer, read_region(descriptor, seal.footer.start, seal.footer.end))
            stream.flush()
            os.fsync(stream.fileno())
        header = Header.from_schema(read_stream_copy(temporary).schema, str(source))
        temporary.replace(target)
    finally:
        os.close(descriptor)
        temporary.unlink(missing_ok=True)
    return header


def read_stream_copy(path: str | os.PathLike[str]) -> pa.Table:
    """A stream that `write_stream_copy` wrote, mapped as a table.

    Raises:
        TokenFileError: no such stream, or a cut one: rows are missing, or the mark of its end.
    """
    where = Path(path)
    with where.open("rb") as stream:
        stream.seek(max(0, where.stat().st_size - len(_END_MARK)))
        end = stream.read()
    try:
        table = pa.ipc.open_stream(pa.memory_map(str(where))).read_all()
        table.validate()
    except (pa.ArrowException, OSError) as error:
        raise TokenFileError(f"{where} cannot be read as an Arrow stream: {error}. Copy it again.") from error
    if end != _END_MARK:
        raise TokenFileError(f"{where} has no end mark: it is cut. Copy it again.")
    return _whole(table, str(where))


def _whole(table: pa.Table, where: str) -> pa.Table:
    header = Header.from_schema(table.schema, where)
    if len(table) != header.sequences:
        raise TokenFileError(
            f"{where}: {len(table)} sequences where the header promises {header.sequences}: it is cut. Copy it again."
        )
    return table if len(table) else table.schema.empty_table()  # with a chunk, which other programs expect


def _check(path: Path, region: Region, data: bytes | memoryview) -> None:
    fault = data_fault(data, region)
    if fault:
        raise TokenFileError(f"{path}, {region.name}: {fault}. Copy the file again, or pack again.")
