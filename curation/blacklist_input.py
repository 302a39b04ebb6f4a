"""What a person names on the command line or in a file, as entries of the blacklist.

A row of a JSON Lines file names what it is about by one of `text`, `text_id` (32 hex digits), `url` or `domain`, and holds
columns of the entries under their names (`reason`, `score`, `expires` ...). `blacklist export` writes such lines.
Arrow and Parquet files hold the columns of the entries themselves, signatures included.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from curation.blacklist.entries import KINDS, SCHEMA, SIGNING, address_key, normal_address
from curation.errors import ConfigError, InputError, nearest
from curation.ids import text_id

__all__ = ["entry_table", "json_line", "key_of", "meant", "read_entries", "text_of", "time_of"]

_HEX = re.compile(r"[0-9a-fA-F]{32}")
_FILE_NAME = re.compile(r"(?!.*://)(?:[./~][!-~]*|[!-~]*/[!-~]*|[!-~]+\.[A-Za-z][A-Za-z0-9]{0,4})")
"""ASCII, no blank, and a slash or an ending: no document that anybody would take out is written so."""
_DAYS = re.compile(r"([0-9]{1,5})d")
_NAMES = ("text", "text_id", "url", "domain")
_PLAIN = tuple(name for name in SCHEMA.names if name not in ("kind", "key", "shown", "signature"))


def meant(word: str) -> list[tuple[str, str]]:
    """What a word on the command line may name: pairs of one of text, text_id, url, domain, and its value."""
    if _is_file(word):
        return [("text", text_of(word))]
    if _HEX.fullmatch(word):
        return [("text_id", word)]
    if "://" in word:
        return [("url", word)]
    if "." in word and not re.search(r"[\s/]", word):
        try:
            normal_address("domain", word)
        except InputError:
            return [("text", word)]
        return [("domain", word), ("text", word)]
    return [("text", word)]


def text_of(word: str) -> str:
    """A text that is given as itself, or as a file that holds it.

    Raises:
        ConfigError: it looks like a file's name, and there is no such file.
    """
    if _is_file(word):
        return read_text(Path(word))
    if _FILE_NAME.fullmatch(word):
        raise ConfigError(
            f"blacklist: --text {word} looks like a file's name, and there is no such file. Check the name; a text of this "
            "form can be given by --from FILE.jsonl."
        )
    return word


def _is_file(word: str) -> bool:
    try:
        return Path(word).is_file()
    except (OSError, ValueError):  # too long for a name, or with a NUL: a text
        return False


def read_text(path: Path) -> str:
    """A file as one text.

    Raises:
        InputError: it cannot be read, or is not UTF-8.
    """
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read as a text in UTF-8: {error}.") from error


def key_of(name: str, value: str) -> tuple[str, bytes, str]:
    """Kind, key and `shown` of what is named.

    Raises:
        InputError: it cannot be.
    """
    if name == "text":
        try:
            return "text", text_id(value), ""
        except UnicodeEncodeError as error:
            raise InputError(f"blacklist: a text is not Unicode: {error.reason}.") from error
    if name == "text_id":
        if not _HEX.fullmatch(value):
            raise InputError(f"blacklist: expected a text_id of 32 hex digits, found {value[:80]!r}.")
        return "text", bytes.fromhex(value), ""
    normal = normal_address(name, value)
    return name, address_key(name, normal), normal


def entry_table(rows: Sequence[tuple[str, str, Mapping[str, Any]]]) -> pa.Table:
    """Entries from what is named, its value, and further columns; texts are signed.

    Raises:
        InputError: a value cannot be.
    """
    made: list[dict[str, Any]] = []
    texts: list[str] = []
    for name, value, columns in rows:
        kind, key, shown = key_of(name, value)
        made.append({**columns, "kind": kind, "key": key, "shown": shown})
        if name == "text":
            texts.append(value)
    names = [name for name in SCHEMA.names if any(name in row for row in made)]
    try:
        schema = pa.schema([pa.field(name, SCHEMA.field(name).type) for name in names])
        table = pa.Table.from_pylist(made, schema=schema)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise InputError(
            f"blacklist: a value of the entries is of the wrong type: {_wrong(made, schema)}{error}."
        ) from error
    return _signed(table, [name == "text" for name, _, _ in rows], texts) if texts else table


def _wrong(made: Sequence[Mapping[str, Any]], schema: pa.Schema) -> str:
    """Which entry has a value that its column does not take: Arrow does not say."""
    for number, row in enumerate(made, start=1):
        for field in schema:
            try:
                pa.scalar(row.get(field.name), field.type)
            except (pa.ArrowException, TypeError, ValueError, OverflowError):
                return f"{field.name} of entry {number}, {str(row[field.name])[:60]!r}: "
    return ""


def _signed(table: pa.Table, is_text: Sequence[bool], texts: Sequence[str]) -> pa.Table:
    from curation.blacklist.signature import sign_texts, signing_text

    signed = iter(sign_texts(texts).to_pylist())
    column = pa.array([next(signed) if one else None for one in is_text], pa.binary())
    return table.append_column("signature", column).replace_schema_metadata({SIGNING: signing_text()})


def read_entries(path: Path, fill: Mapping[str, Any]) -> pa.Table:
    """Entries of a file: JSON Lines, Arrow or Parquet.

    Args:
        fill: values for columns where the file has none.

    Raises:
        ConfigError: the name tells no format.
        InputError: it cannot be read, or a row names nothing, or two things; with the line.
    """
    if path.suffix in (".arrow", ".parquet"):
        try:
            table = pa.ipc.open_file(path.read_bytes()).read_all() if path.suffix == ".arrow" else pq.read_table(path)
        except (pa.ArrowException, OSError) as error:
            raise InputError(f"{path} cannot be read: {error}.") from error
        for name, value in fill.items():
            if name not in table.column_names:
                metadata = table.schema.metadata
                column = pa.repeat(pa.scalar(value, SCHEMA.field(name).type), table.num_rows)
                table = table.append_column(name, column).replace_schema_metadata(metadata)
        return table
    if path.suffix != ".jsonl":
        raise ConfigError(f"{path}: expected a file that ends in .jsonl, .arrow or .parquet.")
    return entry_table(list(_lines(path, fill)))


def _lines(path: Path, fill: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise InputError(f"{where} is not JSON: {error}.") from error
        if not isinstance(row, dict):
            raise InputError(f"{where}: expected an object, found {type(row).__name__}.")
        named = [name for name in _NAMES if row.get(name) is not None]
        if len(named) != 1 or not isinstance(row[named[0]], str):
            raise InputError(
                f"{where}: expected exactly one of {', '.join(_NAMES)}, a string; found {named or 'none'}."
            )
        for name in row:
            if name not in (*_NAMES, *_PLAIN, "kind"):
                raise InputError(f"{where}: no column {name!r}{nearest(name, _PLAIN)} in entries.")
        columns = {**fill, **{name: row[name] for name in _PLAIN if row.get(name) is not None}}
        for name in ("time", "expires"):
            if isinstance(columns.get(name), str):
                columns[name] = time_of(columns[name], where)
        yield named[0], row[named[0]], columns


def time_of(text: str, where: str) -> datetime:
    """A date or time (ISO 8601, UTC if it names no zone), or `30d`: so many days from now.

    Raises:
        ConfigError: it is none.
    """
    days = _DAYS.fullmatch(text)
    try:
        if days:
            return datetime.now(timezone.utc) + timedelta(days=int(days[1]))
        found = datetime.fromisoformat(text)
        return (found if found.tzinfo else found.replace(tzinfo=timezone.utc)).astimezone(timezone.utc)
    except (ValueError, OverflowError):
        raise ConfigError(f"{where}: expected a date, as 2027-01-31, or days, as 30d; found {text[:60]!r}.") from None


def json_line(entry: Mapping[str, Any]) -> dict[str, Any]:
    """An entry as `read_entries` takes it; columns without a value and the signature are left out."""
    assert entry["kind"] in KINDS
    name = {"text": "text_id"}.get(entry["kind"], entry["kind"])
    # A shown URL has no scheme: `//host/path` is one that any scheme fits.
    shown = {"text": entry["key"].hex(), "url": f"//{entry['shown']}"}.get(entry["kind"], entry["shown"])
    line: dict[str, Any] = {name: shown}
    for column in _PLAIN:
        value = entry.get(column)
        if value is not None and value is not False:
            line[column] = value.isoformat() if isinstance(value, datetime) else value
    return line
