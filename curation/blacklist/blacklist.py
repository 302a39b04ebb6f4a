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
from datetime import datetime, timedelta, timezone
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curation.blacklist.addresses import host_of, normal_url, parents
from curation.blacklist.entries import KINDS, SCHEMA, SIGNING, address_key
from curation.blacklist.files import Files, LocalFiles, open_files
from curation.blacklist.history import read_version, segment
from curation.blacklist.layer import Keys, Layer, keys_of
from curation.blacklist.snapshot import sum_at, wanted_number
from curation.errors import ConfigError, InputError

__all__ = ["Blacklist"]

_TEXT, _URL, _DOMAIN = range(len(KINDS))
_AT_ONCE = 1 << 20
_BEGIN = datetime(1970, 1, 1, tzinfo=timezone.utc)


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

    @property
    def files(self) -> Files:
        """Where it lies."""
        return self._files

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
        places, rows = self.lookup_domains(urls)
        found[places[::-1]] = rows[::-1]  # the closest one last
        pages = self.lookup_pages(urls)
        return np.where(pages >= 0, pages, found)

    def lookup_pages(self, urls: Sequence[str | None] | pa.Array | pa.ChunkedArray) -> npt.NDArray[np.int64]:
        """Rows of the entries that hold for exactly these URLs, -1 where none does: int64[n]."""
        found = np.full(len(urls), -1, np.int64)
        if self._knows(_URL):
            normal = [(place, one) for place, url in _told(urls) if (one := normal_url(url)) is not None]
            places = np.array([place for place, _ in normal], np.int64)
            found[places] = self._find_words("url", [one for _, one in normal])
        return found

    def lookup_domains(
        self, urls: Sequence[str | None] | pa.Array | pa.ChunkedArray
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """All entries that hold for the domains of pages: places in `urls`, ascending, and rows, those of the closest
        domain of a page first: int64[m] twice."""
        hosts: dict[str, list[int]] = {}
        for place, url in _told(urls) if self._knows(_DOMAIN) else ():
            host = host_of(url)
            if host is not None:
                hosts.setdefault(host, []).append(place)
        domains = sorted({domain for host in hosts for domain in parents(host)})
        rows = dict(zip(domains, self._find_words("domain", domains).tolist(), strict=True))
        pairs = [
            (place, rows[domain])
            for host, places in hosts.items()
            for domain in parents(host)
            if rows[domain] >= 0
            for place in places
        ]
        pairs.sort(key=lambda pair: pair[0])
        found = np.array(pairs, np.int64).reshape(-1, 2)
        return found[:, 0], found[:, 1]

    def _knows(self, kind: int) -> bool:
        return any(first < last for first, last in (self._base.bounds(kind), self._later.bounds(kind)))

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

    def _standing(self) -> npt.NDArray[np.bool_]:
        """Of which keys of the base nothing is said after it: bool[keys of the base]."""
        standing = np.ones(len(self._base), np.bool_)
        for kind in range(len(KINDS)):
            mine = self._later.kind == kind
            over = self._base.find(kind, (self._later.high[mine], self._later.low[mine]))
            standing[over[over >= 0]] = False
        return standing

    def _holding(self) -> npt.NDArray[np.bool_]:
        """Which rows hold: bool[known keys]."""
        base = (self._base.expires > self._at) & self._standing()
        return np.concatenate([base, (self._later.expires > self._at) & ~self._later.removed])

    def rows(self, after: int = 0) -> npt.NDArray[np.int64]:
        """Rows of all entries that hold, in the order of the history: int64[n].

        Args:
            after: leave out what this version and those before it said.
        """
        held = np.flatnonzero(self._holding())
        versions, places = self._place(held)
        if after:
            newer = versions > after
            held, versions, places = held[newer], versions[newer], places[newer]
        return held[np.lexsort((places, versions))]

    def holding(self, entries: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
        """Which of some entries of texts hold: bool[n].

        Args:
            entries: `entry_numbers` of them, ascending.
        """
        found = np.zeros(len(entries), np.bool_)
        held = np.flatnonzero(self._holding())
        for start in range(0, len(held), _AT_ONCE) if len(entries) else ():
            asked = np.sort(self.entry_numbers(held[start : start + _AT_ONCE]))
            place = np.minimum(np.searchsorted(entries, asked), len(entries) - 1)
            found[place[entries[place] == asked]] = True
        return found

    def entry_numbers(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
        """What names an entry for ever: its version * 2^32 + its row in that segment: uint64[n]."""
        versions, places = self._place(rows)
        return (versions.astype(np.uint64) << np.uint64(32)) | places

    def settled(self) -> datetime:
        """The earliest time at which the same entries of this version hold as do at its time.

        Time of the version, or the last expiry before now if that is later: the same whenever it is asked until the
        next entry expires, and whatever snapshots there are.
        """
        if not self.version:
            return _BEGIN
        wrote = datetime.fromisoformat(read_version(self._files, self.version).when)
        times = np.concatenate([self._base.expires[self._standing()], self._later.expires[~self._later.removed]])
        past = times[times <= self._at]
        last = _BEGIN + timedelta(microseconds=int(past.max())) if len(past) else _BEGIN
        return max(wrote, last)

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
        names = _schema(columns).names
        for _, _, batch in self._parts(names, self.rows() if rows is None else rows):
            yield batch.replace_schema_metadata(None)

    def _parts(
        self, names: Sequence[str], rows: npt.NDArray[np.int64]
    ) -> Iterator[tuple[int, npt.NDArray[np.int64], pa.RecordBatch]]:
        """Entries of some rows in the order of the history: their version, their rows in its segment, their columns."""
        versions, places = self._place(rows)
        for number in np.unique(versions).tolist():
            mine = np.sort(places[versions == number]).astype(np.int64)
            reader, start = self._segment(number), 0
            for index in range(reader.num_record_batches):
                batch = reader.get_batch(index)
                first, last = np.searchsorted(mine, [start, start + batch.num_rows])
                if first < last:
                    yield number, mine[first:last], batch.select(names).take(pa.array(mine[first:last] - start))
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
        for signing, _, batch in self.signed(self.rows()):
            yield signing, batch

    def signed(self, rows: npt.NDArray[np.int64]) -> Iterator[tuple[bytes, npt.NDArray[np.uint64], pa.RecordBatch]]:
        """Signatures of some rows in the order of the history, as `signatures`, with the numbers of their entries."""
        versions, _ = self._place(rows)
        for number in np.unique(versions).tolist():
            signing: bytes = (self._segment(number).schema.metadata or {}).get(SIGNING, b"")
            for _, places, batch in self._parts(["key", "signature"], rows[versions == number]) if signing else ():
                valid = batch.column("signature").is_valid()
                there = np.uint64(number << 32) | places.astype(np.uint64)
                yield signing, there[valid.to_numpy(zero_copy_only=False)], batch.filter(valid)
            if not isinstance(self._files, LocalFiles):
                self._segments.pop(number)  # it lies in memory as a whole

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


def _told(urls: Sequence[str | None] | pa.Array | pa.ChunkedArray) -> list[tuple[int, str]]:
    """Those that are there, with their places."""
    texts = urls.to_pylist() if isinstance(urls, pa.Array | pa.ChunkedArray) else urls
    return [(place, url) for place, url in enumerate(texts) if url]
