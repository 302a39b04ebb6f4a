"""Small blacklists for tests: keys by number, tables of entries, and what must hold after a history."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from datetime import datetime, timezone
from typing import Any

import pyarrow as pa

from curation.blacklist import Blacklist
from curation.blacklist.entries import SCHEMA, address_key, normal_address

FACTS = {"who": "tester", "why": "a test"}
NOW = datetime(2030, 1, 1, tzinfo=timezone.utc)


def key(number: int) -> bytes:
    """The text_id of text `number`."""
    return hashlib.sha256(str(number).encode()).digest()[:16]


def texts(numbers: Iterable[int], **columns: Any) -> pa.Table:
    """Entries of kind text; each further column has one value for all, or a list."""
    keys = [key(number) for number in numbers]
    rows = {"kind": ["text"] * len(keys), "key": keys, "reason": ["test.noise"] * len(keys)}
    rows |= {name: value if isinstance(value, list) else [value] * len(keys) for name, value in columns.items()}
    return pa.table({name: pa.array(value, SCHEMA.field(name).type) for name, value in rows.items()})


def addresses(kind: str, words: Sequence[str], **columns: Any) -> pa.Table:
    """Entries of kind url or domain."""
    shown = [normal_address(kind, word) for word in words]
    keys = [address_key(kind, word) for word in shown]
    table = texts(range(len(keys)), shown=shown, **columns)
    kinds = pa.array([kind] * len(keys), pa.string())
    return table.set_column(0, "kind", kinds).set_column(1, "key", pa.array(keys, pa.binary(16)))


def held(blacklist: Blacklist) -> set[tuple[str, bytes]]:
    """Kind and key of all that holds."""
    rows = blacklist.entries(["kind", "key"]).to_pylist()
    found = {(row["kind"], row["key"]) for row in rows}
    assert len(found) == len(rows) == len(blacklist)
    return found
