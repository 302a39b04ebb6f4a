"""Entries of the blacklist: their columns, their keys, and what is refused.

One row an entry. `key` is the text_id of a text, or 16 bytes of SHA-256 over the kind and the normalised URL or domain
(`addresses`), which `shown` holds. An entry with `removed` takes back whatever was said about its key before.
Checking costs nothing worth naming for texts, 4 us for a URL or domain, whose key is computed again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from curation.blacklist.addresses import normal_domain, normal_url
from curation.errors import ConfigError, InputError, nearest
from curation.ids import DIGEST_BYTES

__all__ = ["KINDS", "SCHEMA", "SIGNING", "address_key", "checked_entries", "kind_codes", "normal_address"]

KINDS = ("text", "url", "domain")
SIGNING = b"signing"
"""Key of the metadata that says how signatures were made (`signature.signing_text`)."""

_TIME = pa.timestamp("us", tz="UTC")
SCHEMA = pa.schema(
    [
        pa.field("kind", pa.string(), nullable=False),
        pa.field("key", pa.binary(DIGEST_BYTES), nullable=False),
        pa.field("shown", pa.string(), nullable=False),
        pa.field("signature", pa.binary()),
        pa.field("reason", pa.string(), nullable=False),
        pa.field("score", pa.float64()),
        pa.field("language", pa.string()),
        pa.field("source", pa.string()),
        pa.field("training_run", pa.string()),
        pa.field("tokens_seen", pa.int64()),
        pa.field("model", pa.string()),
        pa.field("evidence", pa.int32()),
        pa.field("time", _TIME, nullable=False),
        pa.field("expires", _TIME),
        pa.field("removed", pa.bool_(), nullable=False),
        pa.field("note", pa.string()),
    ]
)


def address_key(kind: str, normal: str) -> bytes:
    """Key of a normalised URL or domain: a URL that is only a host is another key than the domain."""
    return hashlib.sha256(f"{kind}\0{normal}".encode()).digest()[:DIGEST_BYTES]


def normal_address(kind: str, address: str) -> str:
    """A URL or domain as `shown` holds it.

    Raises:
        InputError: it is none.
    """
    normal = normal_url(address) if kind == "url" else normal_domain(address)
    if normal is None:
        wanted = "a URL with a host, as https://host/path" if kind == "url" else "a domain, as example.com"
        raise InputError(f"blacklist: expected {wanted}, found {address[:200]!r}.")
    return normal


def kind_codes(kinds: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.uint8]:
    """Places in `KINDS`; 255 for any other word or null."""
    found = pc.fill_null(pc.index_in(kinds, value_set=pa.array(KINDS)), 255).cast(pa.uint8())
    chunks = found.chunks if isinstance(found, pa.ChunkedArray) else [found]
    parts = [
        np.frombuffer(one.buffers()[1], np.uint8)[one.offset : one.offset + len(one)] for one in chunks if len(one)
    ]
    return np.concatenate(parts) if parts else np.zeros(0, np.uint8)


def checked_entries(table: pa.Table, when: datetime) -> pa.Table:
    """The entries with all columns in their order, what may be left out filled in.

    Args:
        table: some of the columns of `SCHEMA`; of these only kind, key and reason are needed. Its metadata says how
            signatures were made, if there are any.
        when: time of the entries that tell none.

    Raises:
        ConfigError: a column is unknown, missing or of another type, or signatures without their making.
        InputError: a value cannot be.
    """
    for name in table.column_names:
        if name not in SCHEMA.names:
            raise ConfigError(f"blacklist: no column {name!r}{nearest(name, SCHEMA.names)} in entries.")
    if len(set(table.column_names)) < table.num_columns:
        raise ConfigError("blacklist: a column of the entries stands twice.")
    try:
        table.validate(full=True)  # of a file from elsewhere: what is no UTF-8 could be appended, but not read again
    except pa.ArrowException as error:
        raise InputError(f"blacklist: the entries are damaged: {error}.") from error
    fill: Mapping[str, Any] = {"shown": "", "time": when, "removed": False}
    columns = [_column(table, field, fill.get(field.name)) for field in SCHEMA]
    metadata = {SIGNING: table.schema.metadata[SIGNING]} if SIGNING in (table.schema.metadata or {}) else None
    made = pa.Table.from_arrays(columns, schema=SCHEMA).replace_schema_metadata(metadata)
    _refuse_values(made)
    _refuse_signatures(made)
    return made


def _column(table: pa.Table, field: pa.Field, fill: Any) -> pa.ChunkedArray | pa.Array:
    if field.name not in table.column_names:
        if fill is None and not field.nullable:
            raise ConfigError(f"blacklist: entries need the column {field.name!r}; found {table.column_names}.")
        return pa.repeat(pa.scalar(fill, field.type), table.num_rows)
    column = table.column(field.name)
    try:
        column = column.cast(field.type)
    except pa.ArrowException as error:
        raise ConfigError(
            f"blacklist: column {field.name!r} is {column.type}, expected {field.type}: {error}"
        ) from error
    if column.null_count and fill is not None:
        column = pc.fill_null(column, pa.scalar(fill, field.type))
    if column.null_count and not field.nullable:
        row = pc.index(column.is_null(), True).as_py()
        raise InputError(f"blacklist: entry {row} has no {field.name}.")
    return column


def _refuse_values(table: pa.Table) -> None:
    codes = kind_codes(table.column("kind"))
    if np.any(codes == 255):
        row = int(np.argmax(codes == 255))
        found = table.column("kind")[row].as_py()
        raise InputError(f"blacklist: entry {row} has the kind {found!r}; expected one of {', '.join(KINDS)}.")
    empty = pc.equal(table.column("reason"), "")
    if pc.any(empty).as_py():
        raise InputError(f"blacklist: entry {pc.index(empty, True).as_py()} has an empty reason.")
    score = table.column("score").drop_null()
    if len(score) and not pc.all(pc.is_finite(score)).as_py():
        raise InputError("blacklist: a score is not finite. A score that is undefined is null.")
    _refuse_addresses(table, codes)


def _refuse_addresses(table: pa.Table, codes: npt.NDArray[np.uint8]) -> None:
    """A key that does not belong to its address would drop what nobody can see."""
    text = pc.and_(pc.equal(table.column("kind"), "text"), pc.not_equal(table.column("shown"), ""))
    if pc.any(text).as_py():
        raise InputError(f"blacklist: entry {pc.index(text, True).as_py()} is a text, so `shown` must be empty.")
    for row in np.flatnonzero(codes != 0).tolist():
        kind, shown, key = (table.column(name)[row].as_py() for name in ("kind", "shown", "key"))
        # A normalised URL has no scheme, so it is not the text that `normal_url` takes.
        normal = normal_address(kind, f"//{shown}" if kind == "url" else shown)
        if normal != shown or address_key(kind, normal) != key:
            raise InputError(
                f"blacklist: entry {row} shows the {kind} {shown[:200]!r}, but its key is not made of it. "
                "Make both with curation.blacklist.entries."
            )


def _refuse_signatures(table: pa.Table) -> None:
    signed = table.column("signature").drop_null()
    if not len(signed):
        return
    if SIGNING not in (table.schema.metadata or {}):
        raise ConfigError("blacklist: entries have signatures, but their metadata does not say how they were made.")
    lengths: Sequence[int] = pc.unique(pc.binary_length(signed)).to_pylist()
    if len(lengths) > 1 or lengths[0] % 4 or not lengths[0]:
        raise InputError(f"blacklist: signatures must be of one length, whole uint32; found {sorted(lengths)} bytes.")
