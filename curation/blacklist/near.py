"""Near copies of blacklisted texts: of each document the blacklisted text whose signature agrees most with its own.

    copies = NearCopies.open(blacklist)
    ids, agreement = copies.closest(*sign_rows(texts))        # uint8[n, 16], float64[n]; nan where none is near

A pair is looked at if it shares a band (`near_file.SHAPE`), and told if at least `LEAST` of the places of both signatures
agree. The share that agrees estimates the Jaccard of the shingles with a standard deviation of sqrt(J (1 - J) / 128): 0.026
at 0.9. Only entries that hold are looked at; of a band that more than `MOST_A_BAND` of them share the first in the history.
So version and time decide the answer: not the batch, not which index or snapshot there is.

The index is mapped from where `compact` put it. Without one, some ten thousand entries are signed into memory, more
are written to a folder of this machine's own once for a version (`cache_folders`). 20 us a document among a million.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import logging
import os
import re
import stat
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

import numpy as np
import numpy.typing as npt

from curation.blacklist.blacklist import Blacklist
from curation.blacklist.files import Files, LocalFiles
from curation.blacklist.history import read_version
from curation.blacklist.near_file import Signed, keys_of_rows, read_near, signed_in_memory, write_near
from curation.errors import RunError

__all__ = ["LEAST", "NearCopies", "cache_folders"]

log = logging.getLogger("corpusmill")

LEAST = 0.8
"""Agreement below which nothing is told."""
MOST_A_BAND = 128
"""Entries of one band that are looked at for a document: thousands of copies of one text need not all be."""
IN_MEMORY = 100_000
"""Entries behind the index that are signed into the memory of each worker (70 MB); more are written to disk."""
OLD_SECONDS = 14 * 86_400
"""After so long without being opened an index in the cache is deleted, when another one is written there."""
_PAIRS = 8192
_ROW = np.uint64(0xFFFFFFFF)
_NAME = re.compile(r"near-([0-9]{6,12})\.json")

Int64s = npt.NDArray[np.int64]
UInt64s = npt.NDArray[np.uint64]


class NearCopies:
    """The signatures of an open list that hold."""

    def __init__(self, parts: Sequence[Signed], holds: Sequence[npt.NDArray[np.bool_]]) -> None:
        """See `open`."""
        self._parts = list(zip(parts, holds, strict=True))
        self.others = sum(part.others for part in parts)
        """Entries that were signed in another way than this program signs: near copies of them are not found."""

    def __len__(self) -> int:
        return sum(int(np.count_nonzero(holds)) for _, holds in self._parts)

    @classmethod
    def open(cls, blacklist: Blacklist) -> NearCopies:
        """Open the signatures of a list.

        Raises:
            RunError: a segment is damaged, or an index that is needed cannot be written.
        """
        parts: list[Signed] = []
        after = 0
        for number, part in _indexes(blacklist):
            parts, after = [part], number
            break
        if after < blacklist.version and _texts_after(blacklist, after) > IN_MEMORY:
            parts, after = [_cached(blacklist)], blacklist.version
        holds = [blacklist.holding(part.entries) for part in parts]
        if after < blacklist.version:
            parts.append(signed_in_memory(blacklist, after))
            holds.append(np.ones(len(parts[-1]), np.bool_))
        return cls(parts, holds)

    def closest(
        self, signatures: npt.NDArray[np.uint32], signed: npt.NDArray[np.bool_]
    ) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.float64]]:
        """The text that agrees most with each document; of equals the one that came first.

        Args:
            signatures: uint32[n, num_perm].
            signed: bool[n], false where a document has no shingle: there is nothing to compare.

        Returns:
            text_ids uint8[n, 16], and the share of places that agree, float64[n], nan where it is less than `LEAST`.
        """
        n = len(signatures)
        texts, share = np.zeros((n, 16), np.uint8), np.full(n, np.nan)
        keys = keys_of_rows(signatures)
        room = np.full(keys.shape, MOST_A_BAND, np.int64)
        room[~signed] = 0
        found = [_agreeing(part, holds, signatures, keys, room) for part, holds in self._parts if len(part)]
        if not found:
            return texts, share
        documents, alike, entries, named = (np.concatenate(column) for column in zip(*found, strict=True))
        order = np.lexsort((entries, -alike, documents))
        documents, first = np.unique(documents[order], return_index=True)
        best = order[first]
        texts[documents] = named[best]
        share[documents] = alike[best] / signatures.shape[1]
        return texts, share


# ---------------------------------------------------------------- candidates


def _agreeing(
    part: Signed, holds: npt.NDArray[np.bool_], signatures: npt.NDArray[np.uint32], keys: UInt64s, room: Int64s
) -> tuple[Int64s, Int64s, UInt64s, npt.NDArray[np.uint8]]:
    """Documents and the entries of a part that agree with them: documents, places that agree, entries, text_ids.

    Args:
        room: int64[n, bands], how many more entries a document may look at in a band; what is looked at is taken off.
    """
    pairs = np.unique(np.concatenate([_pairs(part, holds, band, keys, room) for band in range(keys.shape[1])]))
    documents, rows = (pairs >> np.uint64(32)).astype(np.int64), (pairs & _ROW).astype(np.int64)
    alike = np.empty(len(pairs), np.int64)
    for start in range(0, len(pairs), _PAIRS):
        some = slice(start, start + _PAIRS)
        alike[some] = (part.signatures_of(rows[some]) == signatures[documents[some]]).sum(axis=1)
    near = alike >= LEAST * signatures.shape[1]
    documents, rows = documents[near], rows[near]
    return documents, alike[near], part.entries[rows], part.texts[rows]


def _pairs(part: Signed, holds: npt.NDArray[np.bool_], band: int, keys: UInt64s, room: Int64s) -> UInt64s:
    """Documents that share a band with entries that hold: document << 32 | row, at most `room` rows a document."""
    column, asked = part.keys[band], np.flatnonzero(room[:, band])
    wanted = keys[asked, band] << np.uint64(32)
    first = np.searchsorted(column, wanted)
    inside = first < len(column)
    hit = np.flatnonzero(inside)[column[first[inside]] | _ROW == wanted[inside] | _ROW]
    runs, of = np.unique(first[hit], return_inverse=True)
    if not len(runs):
        return np.zeros(0, np.uint64)
    ends = np.searchsorted(column, column[runs] | _ROW, side="right")
    members, starts = _members(column, holds, runs, ends)
    counts = np.minimum(np.diff(starts)[of], room[asked[hit], band])
    room[asked[hit], band] -= counts
    within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    rows = members[np.repeat(starts[of], counts) + within]
    documents = np.repeat(asked[hit], counts).astype(np.uint64)
    found: UInt64s = (documents << np.uint64(32)) | rows
    return found


def _members(column: UInt64s, holds: npt.NDArray[np.bool_], begins: Int64s, ends: Int64s) -> tuple[UInt64s, Int64s]:
    """The first rows that hold of some runs of a column, at most `MOST_A_BAND` each: all of them, and where each run's begin."""
    short = ends - begins <= MOST_A_BAND
    lengths = np.where(short, ends - begins, 0)
    within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    rows = column[np.repeat(begins, lengths) + within] & _ROW
    run = np.repeat(np.arange(len(begins)), lengths)
    kept = holds[rows]
    rows, run = rows[kept], run[kept]
    for one in np.flatnonzero(~short).tolist():
        some = _first_that_hold(column[begins[one] : ends[one]], holds)
        rows, run = np.concatenate([rows, some]), np.concatenate([run, np.full(len(some), one)])
    order = np.argsort(run, kind="stable")
    return rows[order], np.searchsorted(run[order], np.arange(len(begins) + 1))


def _first_that_hold(run: UInt64s, holds: npt.NDArray[np.bool_]) -> UInt64s:
    found, n = [np.zeros(0, np.uint64)], 0
    for start in range(0, len(run), _PAIRS):
        rows = run[start : start + _PAIRS] & _ROW
        found.append(rows[holds[rows]])
        n += len(found[-1])
        if n >= MOST_A_BAND:
            break
    return np.concatenate(found)[:MOST_A_BAND]


# ---------------------------------------------------------------- where indexes lie


def _indexes(blacklist: Blacklist) -> Iterator[tuple[int, Signed]]:
    """Good indexes beside the list and in the cache, the newest at or below its version first, each opened when asked for."""
    places: list[Files] = [blacklist.files] if isinstance(blacklist.files, LocalFiles) else []
    places += [LocalFiles(folder) for folder in cache_folders(blacklist.files) if folder.is_dir()]
    known = [
        (int(match[1]), -i)
        for i, files in enumerate(places)
        for match in map(_NAME.fullmatch, files.names() or ())
        if match
    ]
    for number, i in sorted(known, reverse=True):
        if 0 < number <= blacklist.version:
            part = read_near(places[-i], number, read_version(blacklist.files, number).digest)
            if part is not None:
                with contextlib.suppress(OSError):
                    os.utime(places[-i].path(f"near-{number:06d}.json"))
                yield number, part


def _texts_after(blacklist: Blacklist, after: int) -> int:
    """Entries of texts that were added after a version, by the json of each."""
    return sum(
        read_version(blacklist.files, number).counts.get("text", 0)
        for number in range(after + 1, blacklist.version + 1)
    )


def cache_folders(files: Files) -> Iterator[Path]:
    """Where this machine may keep indexes of a list that has none of its own, best first; they need not be there."""
    where = str(files.folder.resolve()) if isinstance(files, LocalFiles) else files.where
    digest = hashlib.sha256(where.encode("utf-8", "surrogateescape")).hexdigest()[:16]
    name = "-".join([*re.findall(r"[A-Za-z0-9.]+", where)[-3:], digest])[-80:]
    with contextlib.suppress(RuntimeError, OSError):  # an account without a home directory
        if os.access(Path.home(), os.W_OK):
            yield Path.home() / ".cache" / "corpusmill" / "blacklist" / name
    private = Path(tempfile.gettempdir()) / f"corpusmill-{os.getuid()}"
    if _is_private(private, 0o077) and _is_private(private / "blacklist") and _is_private(private / "blacklist" / name):
        yield private / "blacklist" / name


def _is_private(folder: Path, others: int = 0o022) -> bool:
    """Whether nobody else can have put files there, or it is not there: an index and its checksum lie side by side."""
    try:
        about = folder.lstat()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return stat.S_ISDIR(about.st_mode) and about.st_uid == os.getuid() and not about.st_mode & others


def _lock(files: Files) -> tuple[Path, IO[str]]:
    """The first folder that can be written, and a file in it to lock.

    Raises:
        RunError: there is none.
    """
    faults: list[str] = []
    for folder in cache_folders(files):
        try:
            for one in reversed((folder, *folder.parents)):
                if not one.is_dir():
                    one.mkdir(mode=0o700, exist_ok=True)
            if folder not in cache_folders(files):  # another user was faster
                raise PermissionError(errno.EACCES, "it belongs to somebody else")
            return folder, (folder / ".lock").open("w")
        except OSError as error:
            faults.append(f"{folder}: {error.strerror}")
    raise RunError(
        f"an index of the blacklist {files.where} cannot be written on this machine: "
        f"{'; '.join(faults) or 'no home directory, and the temporary folder belongs to others'}. Run `corpusmill "
        "blacklist compact`, which puts one beside the list."
    )


def _cached(blacklist: Blacklist) -> Signed:
    """The index of exactly this version in the cache, written by whoever comes first; others wait for it."""
    folder, lock = _lock(blacklist.files)
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        files = LocalFiles(folder)
        found = read_near(files, blacklist.version, blacklist.digest)
        if found is None:
            log.warning(
                "blacklist %s has no near index at version %d: one is written to %s. `corpusmill blacklist compact` puts one "
                "beside the list, for all machines.",
                blacklist.files.where,
                blacklist.version,
                folder,
            )
            _forget_old(folder.parent)
            write_near(files, blacklist.version, blacklist.files)
            found = read_near(files, blacklist.version, blacklist.digest)
    if found is None:
        raise RunError(f"the near index in {folder} cannot be read after it was written: look at its disk.")
    return found


def _forget_old(folder: Path) -> None:
    for told in folder.glob("*/near-*.json"):
        with contextlib.suppress(FileNotFoundError):
            if time.time() - told.stat().st_mtime > OLD_SECONDS:
                told.unlink()
                told.with_suffix(".bin").unlink()
