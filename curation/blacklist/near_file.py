"""The file of a near index: band keys, entries and signatures of a version, as they are mapped.

    near-000017.bin     keys        uint64[bands, n]   of each band, sorted: 32 bits of the band's key, then the row
                        entries     uint64[n]          version << 32 | row in that segment, ascending
                        texts       uint8[n, 16]       text_id
                        sums        uint32[blocks]     CRC-32 of each block of 128 signatures
                        signatures  uint32[n, 128]     little-endian
    near-000017.json    shape, digest of version 17, how was signed, SHA-256 of all before the signatures; written last

All that was not taken back is in it, what expired too, since the time is asked for when it is looked up. Opening reads
all but the signatures once, for the SHA-256 (170 bytes an entry); signatures are checked by the block when they are
looked at. Writing reads the segments twice and sorts one band at a time: 16 bytes of memory an entry, and one batch.
"""

from __future__ import annotations

import hashlib
import json
import logging
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from curation.blacklist.blacklist import Blacklist
from curation.blacklist.files import Files
from curation.blacklist.history import read_version, stem
from curation.blacklist.signature import signature_places, signing_text
from curation.dedup.minhash import Bands, band_keys, choose_bands
from curation.errors import RunError

__all__ = ["SHAPE", "Signed", "keys_of_rows", "read_near", "signed_in_memory", "write_near"]

log = logging.getLogger("corpusmill")

FORMAT = 1
SHAPE: Bands = choose_bands(0.85, signature_places(), 0.999)
"""18 bands of 7: a pair at Jaccard 0.9 shares one with probability 0.99999, at 0.85 with 0.999, at 0.8 with 0.986."""
BLOCK = 128
"""Signatures that are checked together."""
_BEFORE_ALL = datetime(1, 1, 1, tzinfo=timezone.utc)
_PIECE = 1 << 24

Keys = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class Signed:
    """Signed entries of a list, in the order of its history; see the module for shapes."""

    keys: Keys
    entries: npt.NDArray[np.uint64]
    texts: npt.NDArray[np.uint8]
    signatures: npt.NDArray[np.uint32]
    others: int
    """Entries that were signed in another way, and are not here."""
    sums: npt.NDArray[np.uint32] | None = None
    """None: nothing to check, they were never on disk."""
    where: str = ""
    _seen: set[int] = field(default_factory=set)

    def __len__(self) -> int:
        return len(self.entries)

    def signatures_of(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.uint32]:
        """Signatures of some rows, checked: uint32[n, num_perm].

        Raises:
            RunError: they are damaged.
        """
        for block in np.unique(rows // BLOCK).tolist() if self.sums is not None else ():
            if block not in self._seen:
                self._check(block)
        found: npt.NDArray[np.uint32] = self.signatures[rows]
        return found

    def _check(self, block: int) -> None:
        assert self.sums is not None
        if zlib.crc32(self.signatures[block * BLOCK : (block + 1) * BLOCK].data) != int(self.sums[block]):
            raise RunError(
                f"{self.where} is damaged in its signatures. Delete it: it is made anew by `corpusmill blacklist compact`, "
                "or by the next run."
            )
        self._seen.add(block)


def keys_of_rows(signatures: npt.NDArray[np.uint32]) -> Keys:
    """32 bits of the key of each band: uint64[n, bands]."""
    return band_keys(signatures, *SHAPE) >> np.uint64(32)


# ---------------------------------------------------------------- what is signed


def _batches(
    blacklist: Blacklist, rows: npt.NDArray[np.int64], others: list[int]
) -> Iterator[tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint8], npt.NDArray[np.uint32]]]:
    """Entries, text_ids and signatures of those rows that were signed as this program signs; the rest is counted."""
    width, here = 4 * signature_places(), signing_text()
    others[:] = [0]
    for signing, entries, batch in blacklist.signed(rows):
        fits = pc.equal(pc.binary_length(batch.column("signature")), width)
        if signing != here or not pc.all(fits).as_py():
            others[0] += batch.num_rows
            continue
        texts = _bytes_of(batch.column("key").cast(pa.binary()), 16)
        yield entries, texts, _bytes_of(batch.column("signature"), width).view("<u4")


def _bytes_of(column: pa.Array, width: int) -> npt.NDArray[np.uint8]:
    """Values of one length without nulls: uint8[n, width]."""
    n = len(column)
    if not n:
        return np.zeros((0, width), np.uint8)
    offsets = np.frombuffer(column.buffers()[1], np.int32)
    begin = int(offsets[column.offset])
    return np.frombuffer(column.buffers()[2], np.uint8)[begin : begin + n * width].reshape(n, width)


def signed_in_memory(blacklist: Blacklist, after: int) -> Signed:
    """What holds and was said after a version, in memory: 700 bytes an entry."""
    others: list[int] = []
    found = list(_batches(blacklist, blacklist.rows(after), others))
    entries = np.concatenate([np.zeros(0, np.uint64), *(one[0] for one in found)])
    texts = np.concatenate([np.zeros((0, 16), np.uint8), *(one[1] for one in found)])
    signatures = np.concatenate([np.zeros((0, signature_places()), np.uint32), *(one[2] for one in found)])
    places = np.arange(len(entries), dtype=np.uint64)
    keys = np.sort((keys_of_rows(signatures).T << np.uint64(32)) | places, axis=1)
    return Signed(keys, entries, texts, signatures, others[0])


# ---------------------------------------------------------------- the file


def _offsets(n: int) -> dict[str, int]:
    """Where each part begins, at a border of 64 bytes; `end`: size of the file."""
    blocks = -(-n // BLOCK)
    sizes = {
        "keys": 8 * n * SHAPE.bands,
        "entries": 8 * n,
        "texts": 16 * n,
        "sums": 4 * blocks,
        "signatures": 4 * n * signature_places(),
    }
    found, at = {}, 0
    for name, size in sizes.items():
        found[name] = at
        at += -(-size // 64) * 64
    return {**found, "end": at}


def write_near(files: Files, version: int, source: Files) -> None:
    """Write the near index of a version of the list in `source`, and its json, unless a good one is there.

    Raises:
        RunError: a segment is damaged, or it cannot be written.
    """
    digest = read_version(source, version).digest
    if read_near(files, version, digest) is not None:
        return
    blacklist = Blacklist.open(source.where, version, at=_BEFORE_ALL)
    rows = blacklist.rows()
    others: list[int] = []
    n = sum(len(entries) for entries, _, _ in _batches(blacklist, rows, others))
    name = f"near-{stem(version)}"
    with files.room() as made:
        told = _write(made, n, _batches(blacklist, rows, others))
        files.replace(f"{name}.bin", made)
    facts = {"format": FORMAT, "version": version, "digest": digest, "signing": signing_text().decode()}
    facts |= {"bands": list(SHAPE), "entries": n, "others": others[0], **told}
    files.replace_text(f"{name}.json", json.dumps(facts, indent=1) + "\n")


def _write(path: Path, n: int, batches: Iterator[tuple[Any, Any, Any]]) -> dict[str, Any]:
    at = _offsets(n)
    with path.open("wb+") as stream:
        stream.truncate(at["end"])
        done = 0
        for entries, texts, signatures in batches:
            _put(stream, at["entries"] + 8 * done, entries)
            _put(stream, at["texts"] + 16 * done, texts)
            _put(stream, at["signatures"] + 4 * signature_places() * done, signatures)
            places = np.arange(done, done + len(entries), dtype=np.uint64)
            for band, keys in enumerate((keys_of_rows(signatures).T << np.uint64(32)) | places):
                _put(stream, at["keys"] + 8 * (n * band + done), keys)
            done += len(entries)
        for band in range(SHAPE.bands):
            start = at["keys"] + 8 * n * band
            stream.seek(start)
            keys = np.fromfile(stream, np.uint64, n)
            keys.sort()
            _put(stream, start, keys)
        sums = np.empty(-(-n // BLOCK), np.uint32)
        stream.seek(at["signatures"])
        for block in range(len(sums)):
            rows = min(BLOCK, n - BLOCK * block)
            sums[block] = zlib.crc32(stream.read(4 * signature_places() * rows))
        _put(stream, at["sums"], sums)
        return {"bytes": at["end"], "sha256": _head_sha256(stream, at["signatures"])}


def _put(stream: IO[bytes], start: int, values: npt.NDArray[Any]) -> None:
    stream.seek(start)
    stream.write(np.ascontiguousarray(values).data)


def _head_sha256(stream: IO[bytes], size: int) -> str:
    stream.seek(0)
    digest = hashlib.sha256()
    while size:
        piece = stream.read(min(size, _PIECE))
        digest.update(piece)
        size -= len(piece)
    return digest.hexdigest()


def read_near(files: Files, version: int, digest: str) -> Signed | None:
    """The near index of a version, mapped; None if there is none, or none that can be used, which is said."""
    name = f"near-{stem(version)}"
    if not {f"{name}.json", f"{name}.bin"} <= (files.names() or set()):
        return None
    try:
        told = json.loads(files.buffer(f"{name}.json").to_pybytes())
        foreign = told["format"] != FORMAT or told["digest"] != digest or told["bands"] != list(SHAPE)
        if foreign or told["signing"] != signing_text().decode():
            log.warning("%s.json is of another history, format or signing: it is passed over", files.path(name))
            return None
        content = files.buffer(f"{name}.bin")
        n, at = int(told["entries"]), _offsets(int(told["entries"]))
        head = at["signatures"]
        if content.size != at["end"] or hashlib.sha256(content.slice(0, head)).hexdigest() != told["sha256"]:
            log.warning("%s.bin is damaged: it is passed over, and made anew by the next one who needs it", name)
            return None
    except (OSError, RunError, ValueError, KeyError, TypeError) as error:
        log.warning("%s cannot be read (%s): it is passed over", files.path(name), error)
        return None

    def part(name: str, kind: str, *shape: int) -> npt.NDArray[Any]:
        count = int(np.prod(shape))
        if not count:
            return np.zeros(shape, kind)
        return np.frombuffer(content, kind, count, at[name]).reshape(shape)

    return Signed(
        part("keys", "<u8", SHAPE.bands, n),
        part("entries", "<u8", n),
        part("texts", "u1", n, 16),
        part("signatures", "<u4", n, signature_places()),
        int(told["others"]),
        part("sums", "<u4", -(-n // BLOCK)),
        files.path(f"{name}.bin"),
    )
