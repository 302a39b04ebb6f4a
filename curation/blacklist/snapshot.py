"""Snapshots: the sorted keys of a version in one file, so that opening a long history reads none of its segments.

`index-000017.arrow` holds the columns of `Layer` but `removed` (what was taken back is left out; what expired stays, since
the time is asked for when it is looked up). `index-000017.json`, written last, holds its checksum and the digest of
version 17. A snapshot is never needed: one that is damaged or foreign is passed over with a warning, and made anew by
`compact`. 29 bytes a key on disk; opening reads it once for its checksum.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from curation.blacklist.files import Files, LocalFiles, open_files
from curation.blacklist.history import Version, latest_number, read_version, segment, stem, versions
from curation.blacklist.layer import Layer, layer_of_batch, merged, numbers_of
from curation.errors import ConfigError, RunError

__all__ = ["compact", "sum_at"]

log = logging.getLogger("corpusmill")

FORMAT = 1
_NAME = re.compile(r"index-([0-9]{6,12})\.json")
_COLUMNS = {
    "kind": pa.uint8(),
    "high": pa.uint64(),
    "low": pa.uint64(),
    "expires": pa.int64(),
    "version": pa.uint32(),
    "row": pa.uint32(),
}


def compact(path: str | os.PathLike[str], version: int | None = None) -> str:
    """Write the snapshot of a version (default: the latest) and, on this machine's disks, its near index (`near_file`).

    Good ones that are there are left alone.

    Returns:
        Where the snapshot lies.

    Raises:
        ConfigError: there is no such version.
        RunError: a segment is missing or damaged, or the files cannot be written.
    """
    files = open_files(path)
    number = wanted_number(files, version)
    if not number:
        raise ConfigError(f"the blacklist {files.where} has no entries yet: there is nothing to compact.")
    state = read_version(files, number)
    if _read(files, number, state.digest) is None:
        _write(files, number, state.digest)
    if isinstance(files, LocalFiles):  # elsewhere each machine would fetch it whole, as it fetches the segments
        from curation.blacklist.near_file import write_near

        write_near(files, number, files)
    return files.path(f"index-{stem(number)}.arrow")


def _write(files: Files, number: int, digest: str) -> None:
    name = f"index-{stem(number)}"
    base, later, _ = sum_at(files, number)
    whole = merged([base, later])
    whole = whole.taken(~whole.removed)
    batch = pa.record_batch([pa.array(getattr(whole, column)) for column in _COLUMNS], names=list(_COLUMNS))
    with files.room() as made:
        with pa.ipc.new_file(str(made), batch.schema) as writer:
            writer.write_batch(batch)
        with made.open("rb") as stream:
            sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
        files.replace(f"{name}.arrow", made)
    told = {"format": FORMAT, "version": number, "digest": digest, "keys": len(whole), "sha256": sha256}
    files.replace_text(f"{name}.json", json.dumps(told, indent=1) + "\n")


def wanted_number(files: Files, version: int | None) -> int:
    """The version that was asked for, or the latest.

    Raises:
        ConfigError: there is no such version, or no such folder.
    """
    latest = latest_number(files)
    if version is not None and not 0 <= version <= latest:
        raise ConfigError(f"the blacklist {files.where} has no version {version}: the latest is {latest}.")
    return latest if version is None else version


def sum_at(files: Files, number: int) -> tuple[Layer, Layer, list[Version]]:
    """The newest good snapshot at or below a version, the sum of the segments after it, and the versions that were read.

    Raises:
        RunError: segments are missing or damaged; all of them are named.
    """
    start, base = 0, Layer.empty()
    names = files.names() or set()
    known = sorted((int(match[1]) for name in names if (match := _NAME.fullmatch(name))), reverse=True)
    for at in (one for one in known if 0 < one <= number):
        found = _read(files, at, read_version(files, at).digest)
        if found is not None:
            start, base = at, found
            break
    read = versions(files, max(start, 1), number)
    later: list[Layer] = []
    damaged: list[str] = []
    for version in read:
        if version.number > start:
            try:
                later += _layers(files, version)
            except RunError as error:
                damaged.append(str(error))
    if damaged:
        raise RunError("\n".join(damaged))
    return base, merged(later), read


def _layers(files: Files, version: Version) -> Iterator[Layer]:
    reader = segment(files, version)
    row = 0
    for number in range(reader.num_record_batches):
        batch = reader.get_batch(number)
        yield layer_of_batch(batch, version.number, row)
        row += batch.num_rows


def _read(files: Files, number: int, digest: str) -> Layer | None:
    """The snapshot of a version; None if there is none, or none that can be trusted."""
    name = f"index-{stem(number)}"
    if not {f"{name}.json", f"{name}.arrow"} <= (files.names() or set()):
        return None
    try:
        told = json.loads(files.buffer(f"{name}.json").to_pybytes())
        if told["format"] != FORMAT or told["digest"] != digest:
            log.warning("%s.json is of another history or format: it is passed over", files.path(name))
            return None
        content = files.buffer(f"{name}.arrow")
        if hashlib.sha256(content).hexdigest() != told["sha256"]:
            log.warning(
                "%s.arrow is damaged: it is passed over; `corpusmill blacklist compact` makes it anew", files.path(name)
            )
            return None
        batch = pa.ipc.open_file(content).get_batch(0)
    except (pa.ArrowException, OSError, RunError, ValueError, KeyError, TypeError) as error:
        log.warning("%s cannot be read (%s): it is passed over", files.path(name), error)
        return None
    columns = {name: numbers_of(batch.column(name), kind.to_pandas_dtype()) for name, kind in _COLUMNS.items()}
    return Layer(removed=np.zeros(batch.num_rows, np.bool_), **columns)
