"""Entries that cannot be are refused before anything is written."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path

import pyarrow as pa
import pytest

from curation.blacklist import Blacklist, append
from curation.blacklist.entries import SCHEMA, checked_entries, normal_address
from curation.errors import ConfigError, CorpusmillError, InputError
from tests.blacklists import FACTS, addresses, key, texts

WHEN = datetime(2026, 5, 20, tzinfo=timezone.utc)


def test_what_is_left_out_is_filled_in() -> None:
    """Time is that of the append, and no entry takes back unless it says so."""
    table = checked_entries(texts([1]), WHEN)
    assert table.schema.remove_metadata() == SCHEMA
    row = table.to_pylist()[0]
    assert (row["time"], row["removed"], row["shown"], row["score"]) == (WHEN, False, "", None)


@pytest.mark.parametrize(
    ("table", "error", "message"),
    [
        (texts([1], reason=""), InputError, "empty reason"),
        (texts([1], reason=None), InputError, "entry 0 has no reason"),
        (texts([1]).drop_columns("reason"), ConfigError, "need the column 'reason'"),
        (texts([1]).append_column("raeson", pa.array(["x"])), ConfigError, "did you mean 'reason'"),
        (texts([1]).append_column("reason", pa.array(["x"])), ConfigError, "stands twice"),
        (texts([1, 2]).set_column(0, "kind", pa.array(["text", "Text"])), InputError, "entry 1 has the kind 'Text'"),
        (texts([1]).set_column(1, "key", pa.array([b"short"])), ConfigError, "column 'key'"),
        (texts([1, 2]).set_column(1, "key", pa.array([key(1), None], pa.binary(16))), InputError, "entry 1 has no key"),
        (texts([1], score=float("nan")), InputError, "not finite"),
        (texts([1], score=float("inf")), InputError, "not finite"),
        (texts([1], shown="a.example"), InputError, "must be empty"),
        (texts([1], signature=b"1234"), ConfigError, "how they were made"),
        (
            texts([1, 2], signature=[b"1234", b"12345678"]).replace_schema_metadata({"signing": "{}"}),
            InputError,
            "of one length",
        ),
        (
            addresses("domain", ["a.example"]).set_column(1, "key", pa.array([key(1)], pa.binary(16))),
            InputError,
            "not made of it",
        ),
    ],
)
def test_what_cannot_be_is_refused(tmp_path: Path, table: pa.Table, error: type[CorpusmillError], message: str) -> None:
    """The message names the entry or column; nothing is left in the folder."""
    with pytest.raises(error, match=message):
        append(tmp_path, table, FACTS)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("facts", [{}, {"who": "x"}, {"who": "x", "why": " "}, {"who": 1, "why": "y"}])
def test_every_version_says_who_and_why(tmp_path: Path, facts: dict[str, object]) -> None:
    """Without them it is not written."""
    with pytest.raises(ConfigError, match="facts must say"):
        append(tmp_path, texts([1]), facts)


def test_no_entries_make_no_version(tmp_path: Path) -> None:
    """An empty table is a mistake of the caller."""
    with pytest.raises(ConfigError, match="no entries"):
        append(tmp_path, texts([]), FACTS)


def test_facts_that_are_no_json_leave_nothing(tmp_path: Path) -> None:
    """Neither a number taken nor a temporary file."""
    with pytest.raises(ConfigError, match="plain JSON"):
        append(tmp_path, texts([1]), {**FACTS, "x": object()})
    assert list(tmp_path.iterdir()) == []


def test_text_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    """Arrow believes a file what it says: such an entry could be appended, and would stop each reader."""
    bad = pa.array([b"caf\xe9"], pa.binary()).view(pa.string())
    table = texts([1]).set_column(2, "reason", bad)
    with pytest.raises(InputError, match="damaged"):
        append(tmp_path / "list", table, FACTS)
    assert not (tmp_path / "list").exists()


@pytest.mark.parametrize("url", ["http://a.example:443/a", "//a.example:443/a", "https://a.example/%%34%31"])
def test_every_url_can_be_listed_and_is_found(tmp_path: Path, url: str) -> None:
    """Also as it is shown and exported, without its scheme."""
    append(tmp_path, addresses("url", [url]), FACTS)
    shown = normal_address("url", url)
    assert (Blacklist.open(tmp_path).lookup_pages([url, f"//{shown}"]) >= 0).all()
