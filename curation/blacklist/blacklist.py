"""A blacklist at one version and one time: what holds, found by text_id, URL or domain.

    blacklist = Blacklist.open("out/blacklist", version=17)
    rows = blacklist.lookup(batch.column("text_id"))          # int64, -1 where nothing is said
    blacklist.take(rows[rows >= 0])                           # the entries: reason, score, model ...

What holds: of each (kind, key) the newest entry, which is that of the highest version, if it does not take back and has
not expired. An entry that expires gives way to none before it. Version and time decide the answer, nothing else does.

With a snapshot opening reads 29 bytes a key for its checksum and the segments after it; without, all segments. The
segments behind a snapshot are checked when entries are taken from them. Local files are memory-mapped.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from datetime import datetime, timezone
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curation.blacklist.addresses import host_of, normal_url, parents
from curation.blacklist.entries import KINDS, SCHEMA, SIGNING, address_key
from curation.blacklist.files import Files, open_files
from curation.blacklist.history import read_version, segment
from curation.blacklist.layer import Keys, Layer, keys_of
from curation.blacklist.snapshot import sum_at, wanted_number
from curation.errors import ConfigError, InputError

__all__ = ["Blacklist"]

_TEXT, _URL, _DOMAIN = range(len(KINDS))


class Blacklist:
    """An open blacklist. Rows number the known keys of this version, those that do not hold included."""

    def __init__(self, files: Files, number: int, digest: str, at: datetime, layers: tuple[Layer, Layer]) -> None:
        """See `open`."""
        self.version = number
        self.digest = digest
        """Of the version; empty for version 0, which holds nothing."""
        self.at = at
        self._files = files
        self._at = int(at.timestamp()) * 1_000_000 + at.microsecond
        self._base, self._later = layers
        self._segments: dict[int, pa.ipc.RecordBatchFileReader] = {}

    @classmethod
    def open(cls, path: str | os.PathLike[str], version: int | None = None, *, at: datetime | None = None) -> Blacklist:
        """Open a version.

        Args:
            path: the folder, local or an fsspec URL.
            version: default: the latest. 0 holds nothing.
            at: the time that decides what has expired, with a time zone; default: now.

        Raises:
            ConfigError: there is no such folder or version.
            RunError: a file of the history is missing or damaged; all damaged segments are named.
        """
        at = at or datetime.now(timezone.utc)
        if at.tzinfo is None:
            raise ConfigError(f"blacklist: the time {at} has no time zone.")
        files = open_files(path)
        number = wanted_number(files, version)
        base, later, read = sum_at(files, number)
        return cls(files, number, read[-1].digest if read else "", at.astimezone(timezone.utc), (base, later))

    def __len__(self) -> int:
        """Number of entries that hold."""
        return int(np.count_nonzero(self._holding()))

    # ------------------------------------------------------------ looking up

    def lookup(self, text_ids: pa.Array | pa.ChunkedArray | npt.NDArray[np.uint8]) -> npt.NDArray[np.int64]:
        """Rows of the entries that hold for texts, -1 where none does: int64[n].

        Args:
            text_ids: binary of 16 bytes, nulls are nowhere; or uint8[n, 16].
        """
        if isinstance(text_ids, pa.Array | pa.ChunkedArray):
            valid = text_ids.is_valid().to_numpy(zero_copy_only=False) if text_ids.null_count else None
            if valid is not None:
                rows = np.full(len(text_ids), -1, np.int64)
                rows[valid] = self.lookup(text_ids.drop_null())
                return rows
        elif text_ids.ndim != 2 or text_ids.shape[1] != 16:
            raise InputError(f"blacklist: expected text_ids of 16 bytes, uint8[n, 16], found {text_ids.shape}.")
        return self._find(_TEXT, keys_of(text_ids))

    def holds(self, kind: str, key: bytes) -> bool:
        """Whether an entry holds for exactly this key of 16 bytes."""
        return bool(self._find(KINDS.index(kind), keys_of(np.frombuffer(key, np.uint8).reshape(1, 16)))[0] >= 0)

    def lookup_urls(self, urls: Sequence[str | None] | pa.Array | pa.ChunkedArray) -> npt.NDArray[np.int64]:
        """Rows of the entries that hold for pages: of the URL itself, else of the closest domain; -1: int64[n]."""
        found = np.full(len(urls), -1, np.int64)
        known = set(np.unique(np.concatenate([self._base.kind, self._later.kind])).tolist())
        if not known & {_URL, _DOMAIN}:
            return found
        texts = urls.to_pylist() if isinstance(urls, pa.Array | pa.ChunkedArray) else urls
        asked = [(row, url) for row, url in enumerate(texts) if url]
        if _DOMAIN in known:
            self._find_hosts(asked, found)
        if _URL in known:
            normal = [(row, one) for row, url in asked if (one := normal_url(url)) is not None]
            rows = self._find_words("url", [one for _, one in normal])
            places = np.array([row for row, _ in normal], np.int64)
            found[places[rows >= 0]] = rows[rows >= 0]
        return found

    def _find_hosts(self, asked: list[tuple[int, str]], found: npt.NDArray[np.int64]) -> None:
        hosts: dict[str, list[int]] = {}
        for row, url in asked:
            host = host_of(url)
            if host is not None:
                hosts.setdefault(host, []).append(row)
        domains = sorted({domain for host in hosts for domain in parents(host)})
        rows = dict(zip(domains, self._find_words("domain", domains).tolist(), strict=True))
        for host, places in hosts.items():
            found[places] = next((rows[domain] for domain in parents(host) if rows[domain] >= 0), -1)

    def _find_words(self, kind: str, words: Sequence[str]) -> npt.NDArray[np.int64]:
        keys = np.frombuffer(b"".join(address_key(kind, word) for word in words), np.uint8).reshape(-1, 16)
        return self._find(KINDS.index(kind), keys_of(keys))

    def _find(self, kind: int, keys: Keys) -> npt.NDArray[np.int64]:
        rows = self._base.find(kind, keys)
        rows[rows >= 0] = np.where(self._base.expires[rows[rows >= 0]] > self._at, rows[rows >= 0], -1)
        later = self._later.find(kind, keys)
        hit = later >= 0
        at = later[hit]
        holds = (self._later.expires[at] > self._at) & ~self._later.removed[at]
        rows[hit] = np.where(holds, at + len(self._base), -1)
        return rows

    # ------------------------------------------------------------ entries

    def _holding(self) -> npt.NDArray[np.bool_]:
        """Which rows hold: bool[known keys]."""
        base = self._base.expires > self._at
        for kind in range(len(KINDS)):
            mine = self._later.kind == kind
            over = self._base.find(kind, (self._later.high[mine], self._later.low[mine]))
            base[over[over >= 0]] = False
        return np.concatenate([base, (self._later.expires > self._at) & ~self._later.removed])

    def rows(self) -> npt.NDArray[np.int64]:
        """Rows of all entries that hold, in the order of the history: int64[n]."""
        held = np.flatnonzero(self._holding())
        versions, places = self._place(held)
        return held[np.lexsort((places, versions))]

    def missing_in(self, other: Blacklist) -> npt.NDArray[np.int64]:
        """Rows whose keys hold here and not in the other: int64[n], in the order of the history."""
        rows = self.rows()
        there = np.zeros(len(rows), np.bool_)
        for first, layer in ((0, self._base), (len(self._base), self._later)):
            mine = np.flatnonzero((rows >= first) & (rows < first + len(layer)))
            asked = layer.taken(rows[mine] - first)
            for kind in range(len(KINDS)):
                some = asked.kind == kind
                there[mine[some]] = other._find(kind, (asked.high[some], asked.low[some])) >= 0
        return rows[~there]

    def entries(self, columns: Sequence[str] | None = None) -> pa.Table:
        """All entries that hold, in the order of the history. For many, see `batches`."""
        return pa.Table.from_batches(list(self.batches(columns)), schema=_schema(columns))

    def batches(self, columns: Sequence[str] | None = None, rows: npt.NDArray[np.int64] | None = None) -> Iterator[Any]:
        """The same, or `rows` in the order of the history, at most 65,536 entries at a time.

        Raises:
            RunError: a segment is damaged.
        """
        wanted = self.rows() if rows is None else rows
        versions, places = self._place(wanted)
        schema = _schema(columns)
        for number in np.unique(versions).tolist():
            mine = np.sort(places[versions == number]).astype(np.int64)
            reader, start = self._segment(number), 0
            for index in range(reader.num_record_batches):
                batch = reader.get_batch(index)
                first, last = np.searchsorted(mine, [start, start + batch.num_rows])
                if first < last:
                    part = batch.select(schema.names).take(pa.array(mine[first:last] - start))
                    yield part.replace_schema_metadata(None)
                start += batch.num_rows

    def take(self, rows: npt.NDArray[np.int64], columns: Sequence[str] | None = None) -> pa.Table:
        """The entries of some rows, in that order: meant for some thousands."""
        some, inverse = np.unique(rows, return_inverse=True)
        versions, places = self._place(some)
        order = np.lexsort((places, versions))
        table = pa.Table.from_batches(list(self.batches(columns, some)), schema=_schema(columns))
        back = np.empty(len(some), np.int64)
        back[order] = np.arange(len(some))
        return table.take(pa.array(back[inverse]))

    def signatures(self) -> Iterator[tuple[bytes, pa.RecordBatch]]:
        """Signatures of the entries that hold: how they were made, and batches of `key` and `signature`, none of them null."""
        rows = self.rows()
        versions, _ = self._place(rows)
        for number in np.unique(versions).tolist():
            signing = (self._segment(number).schema.metadata or {}).get(SIGNING)
            if signing is not None:
                for batch in self.batches(["key", "signature"], rows[versions == number]):
                    yield signing, batch.filter(batch.column("signature").is_valid())

    def _place(self, rows: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32]]:
        """Version and row in its segment: uint32[n] twice."""
        n = len(self._base)
        if len(rows) and not 0 <= int(rows.min()) <= int(rows.max()) < n + len(self._later):
            raise InputError(f"blacklist: expected rows of 0 to {n + len(self._later) - 1}, as `lookup` gives them.")
        later = rows >= n
        versions, places = np.empty(len(rows), np.uint32), np.empty(len(rows), np.uint32)
        for layer, mask, first in ((self._base, ~later, 0), (self._later, later, n)):
            versions[mask], places[mask] = layer.version[rows[mask] - first], layer.row[rows[mask] - first]
        return versions, places

    def _segment(self, number: int) -> pa.ipc.RecordBatchFileReader:
        if number not in self._segments:
            self._segments[number] = segment(self._files, read_version(self._files, number))
        return self._segments[number]


def _schema(columns: Sequence[str] | None) -> pa.Schema:
    return SCHEMA if columns is None else pa.schema([SCHEMA.field(name) for name in columns])
