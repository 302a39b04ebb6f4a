"""The history of a blacklist: numbered segments, each chained to the one before, appended and never rewritten.

    <folder>/
      000017.arrow         entries added at version 17: an Arrow IPC file, its metadata says who, when and why
      000017.json          version, digest of version 16, checksum of the segment, counts, facts; written last
      index-000017.arrow   snapshot (`snapshot`), with index-000017.json
      latest.json          a hint for people; nothing here reads it
      once.json            versions by their `once`, up to some version; made anew if it is gone or does not fit

The digest of a version is the SHA-256 of its json, which holds the digest of the version before: it names the whole
history. A writer takes a number by creating its segment exclusively; who loses takes the next one. All that stands in
the json follows from the segment and the version before, so a segment whose writer was killed before the json is
completed by the next writer, with the same bytes, and nothing is lost; a reader sees a version only with its json.

Appending costs the new entries and a listing of the folder, whatever the size of the list. With `once` also the reading
of at most 64 of the small json files and of `once.json`, so that a store is asked no more often in a long history.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from curation.blacklist.entries import KINDS, SCHEMA, checked_entries
from curation.blacklist.files import Files, open_files
from curation.blacklist.sealed import FORMAT, checked_told, sealed
from curation.errors import ConfigError, RunError
from curation.ids import canonical_json

__all__ = ["Version", "append", "damages", "latest_number", "read_version", "segment", "versions"]

log = logging.getLogger("corpusmill")
Told = TypeVar("Told", str, int, dict[str, Any])

ROWS_A_BATCH = 1 << 16
_FACTS = b"corpusmill-blacklist"
_ONCE = "once.json"
_TAIL = 64
"""So many versions may stand behind the last one that `once.json` knows."""
_LONGEST_ONCE = 1000
_NUMBER = re.compile(r"([0-9]{6,12})\.(arrow|json)")


@dataclass(frozen=True, slots=True)
class Version:
    """One version, as its json says."""

    number: int
    digest: str
    """SHA-256 of its json, in hex."""
    previous: str
    """Digest of the version before; empty for the first one."""
    sha256: str
    """Of its segment."""
    rows: int
    counts: Mapping[str, int]
    """Entries of each kind, and `removed`: those that take back."""
    when: str
    facts: Mapping[str, Any]
    """`who`, `why`, and whatever else the writer told."""


def stem(number: int) -> str:
    """Names of a version's files begin with it."""
    return f"{number:06d}"


def append(path: str | os.PathLike[str], table: pa.Table, facts: Mapping[str, Any], *, once: str | None = None) -> int:
    """Append entries as a new version; when this returns they are on disk, and in every later version.

    Any number of processes may append at once. The order of versions decides which entry of a key is the newest.

    Args:
        path: the folder, local or an fsspec URL; made if it is not there.
        table: entries, see `entries.checked_entries`.
        facts: `who` and `why`, not empty, and more, as JSON has it; but not `once`.
        once: names what is appended, such as `my-gpt/20000000000`. If a version of the history has this name, nothing
            is appended, whatever the entries are, and its number is returned: who does not know whether an append came
            through, or who does the same beside another process, appends again. Kept in the facts of the version.

    Raises:
        ConfigError, InputError: the entries or facts cannot be.
        RunError: the list is damaged or cannot be written.
    """
    when = datetime.now(timezone.utc)
    facts = _checked_facts(facts, once)
    made = checked_entries(table, when)
    if not made.num_rows:
        raise ConfigError("blacklist: there are no entries to append.")
    files = open_files(path)
    with files.room() as segment_file:
        while True:
            number = _complete(files)
            # A number is taken only behind a history that was looked through to its end.
            if once is not None and (stands := _number_of(files, once, number)):
                return stands
            if not segment_file.exists():
                _write_segment(made, facts, when, segment_file)
            if files.create(f"{stem(number + 1)}.arrow", segment_file):
                break
    number += 1
    version = _seal(files, number)
    # Only a hint: two writers may leave the older one here.
    files.replace_text("latest.json", json.dumps({"version": number, "digest": version.digest}) + "\n")
    return number


def _checked_facts(facts: Mapping[str, Any], once: str | None) -> dict[str, Any]:
    for name in ("who", "why"):
        if not isinstance(facts.get(name), str) or not facts[name].strip():
            raise ConfigError(f"blacklist: facts must say {name}, found {facts.get(name)!r}.")
    if "once" in facts:
        raise ConfigError("blacklist: facts may not hold `once`: give it as an argument of its own.")
    if once is None:
        return dict(facts)
    if not isinstance(once, str) or not 0 < len(once) <= _LONGEST_ONCE or not once.isprintable():
        raise ConfigError(
            f"blacklist: once: expected a printable text of 1 to {_LONGEST_ONCE} characters, found {once!r:.80}."
        )
    return {**facts, "once": once}


def _write_segment(table: pa.Table, facts: Mapping[str, Any], when: datetime, path: Path) -> None:
    counts = {kind: int(pc.sum(pc.equal(table.column("kind"), kind)).as_py() or 0) for kind in KINDS}
    counts["removed"] = int(pc.sum(table.column("removed")).as_py() or 0)
    told = {
        "format": FORMAT,
        "rows": table.num_rows,
        "counts": counts,
        "nonce": secrets.token_hex(8),  # no two segments are alike, so a writer knows its own
        "when": when.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "facts": dict(facts),
    }
    schema = SCHEMA.with_metadata({**(table.schema.metadata or {}), _FACTS: checked_told(told)})
    with pa.ipc.new_file(str(path), schema) as writer:
        writer.write_table(table.replace_schema_metadata(schema.metadata), max_chunksize=ROWS_A_BATCH)


def _complete(files: Files) -> int:
    """Number of the newest version, after the json of a killed or slower writer has been written for it."""
    while True:
        names = files.names() or set()
        number = _latest(files, names)
        if f"{stem(number + 1)}.arrow" not in names:
            return number
        _seal(files, number + 1)


def _seal(files: Files, number: int) -> Version:
    """Write the json of a segment that stands; the same bytes whoever does it."""
    name = f"{stem(number)}.json"
    made = _json_of(files, number)
    if not files.create_text(name, made.decode()) and files.buffer(name).to_pybytes() != made:
        raise RunError(
            f"{files.path(name)} does not describe {stem(number)}.arrow: one of the two is damaged. Put both back from a copy."
        )
    return read_version(files, number)


def _json_of(files: Files, number: int) -> bytes:
    """The json of a segment, as it follows from it and the version before.

    Raises:
        RunError: the segment is none, or no json can be made of it: nobody can append behind it.
    """
    name = f"{stem(number)}.arrow"
    content = files.buffer(name)
    told = _told(files, name, content)
    previous = read_version(files, number - 1).digest if number > 1 else ""
    try:
        return sealed(number, previous, name, content, told)
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise RunError(
            f"{files.path(name)} blocks the blacklist: it belongs to no version yet, and its json, which each writer must "
            f"write before it can append, cannot be written ({type(error).__name__}: {error}). Move it away, then append "
            "its entries again with other facts."
        ) from error


def _told(files: Files, name: str, content: pa.Buffer) -> dict[str, Any]:
    try:
        schema = pa.ipc.open_file(content).schema
        told: dict[str, Any] = json.loads((schema.metadata or {})[_FACTS])
        if told["format"] != FORMAT or schema.remove_metadata() != SCHEMA:
            raise RunError(f"{files.path(name)} is a segment of format {told['format']}; this version reads {FORMAT}.")
    except (pa.ArrowException, OSError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise RunError(
            f"{files.path(name)} is no segment of a blacklist, or was left half written ({error}). It belongs to no "
            "version yet: if no writer is at work, move it away, then append again."
        ) from error
    return told


def _number_of(files: Files, once: str, latest: int) -> int:
    """Number of the version up to `latest` that has this `once`; 0 if there is none."""
    last, digest, known = _known_once(files, latest)
    later = versions(files, max(1, last), latest)
    if last and later[0].digest != digest:  # of another history: files were put back from somewhere
        known, later = {}, versions(files, 1, latest)
    for version in later:
        if isinstance(name := version.facts.get("once"), str):
            known.setdefault(name, version.number)
    if len(later) > _TAIL:
        told = {"format": FORMAT, "version": latest, "digest": later[-1].digest, "numbers": known}
        files.replace_text(_ONCE, json.dumps({**told, "sha256": _sum_of(told)}, indent=1) + "\n")
    return known.get(once, 0)


def _known_once(files: Files, latest: int) -> tuple[int, str, dict[str, int]]:
    """What `once.json` says: up to which version it knows, the digest of that one, numbers; nothing if it does not fit."""
    if latest <= _TAIL or _ONCE not in (files.names() or ()):
        return 0, "", {}
    try:
        told = json.loads(files.buffer(_ONCE).to_pybytes())
        sha256 = told.pop("sha256")
        if told["format"] == FORMAT and sha256 == _sum_of(told) and told["version"] <= latest:
            return told["version"], told["digest"], told["numbers"]
        what = "it does not fit"
    except (ValueError, KeyError, TypeError, AttributeError, RunError) as error:
        what = str(error)
    log.warning("%s is of no use (%s): all versions are read, and it is made anew.", files.path(_ONCE), what)
    return 0, "", {}


def _sum_of(told: Mapping[str, Any]) -> str:
    return hashlib.sha256(canonical_json(dict(told)).encode()).hexdigest()


# ---------------------------------------------------------------- reading


def latest_number(files: Files) -> int:
    """Number of the newest version; 0 if there is none.

    Raises:
        ConfigError: there is no such folder.
    """
    names = files.names()
    if names is None:
        raise ConfigError(f"no blacklist at {files.where}: the folder does not exist. Check the path, or add an entry.")
    return _latest(files, names)


def _latest(files: Files, names: set[str]) -> int:
    """Number of the newest version in a listing.

    A listing is not of one moment: beside writers it may show a file and not an older one that came while it was made
    (seen on ext4). What was there before it began it shows, so a second one decides what is missing.
    """
    numbers = {int(match[1]) for name in names if (match := _NUMBER.fullmatch(name)) and match[2] == "json"}
    latest = max(numbers, default=0)
    lost = {f"{stem(number)}.json" for number in range(1, latest) if number not in numbers}
    lost |= {f"{stem(number)}.arrow" for number in range(1, latest + 1)} - names
    if lost:
        lost -= files.names() or set()
    if lost:
        raise RunError(
            f"the blacklist {files.where} is damaged: {', '.join(sorted(lost)[:20])} missing. Put the files back from a copy."
        )
    return latest


def read_version(files: Files, number: int) -> Version:
    """What the json of a version says.

    Raises:
        RunError: it is missing, damaged, or of another format.
    """
    name = f"{stem(number)}.json"
    content = files.buffer(name).to_pybytes()
    try:
        found = json.loads(content)
        if found["format"] != FORMAT:
            raise RunError(f"{files.path(name)} has format {found['format']!r}; this version reads {FORMAT}.")
        if found["version"] != number:
            raise ValueError(f"it speaks of version {found['version']!r}")
        when, counts = _of(found, "when", str), _of(found, "counts", dict)
        if datetime.fromisoformat(when).tzinfo is None:
            raise ValueError(f"its time {when!r} has no time zone")
        return Version(
            number,
            hashlib.sha256(content).hexdigest(),
            _of(found, "previous", str),
            _of(_of(found, "segment", dict), "sha256", str),
            _of(found, "rows", int),
            {kind: _of(counts, kind, int) for kind in counts},
            when,
            _of(found, "facts", dict),
        )
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise RunError(f"{files.path(name)} is damaged ({error}). Put it back from a copy.") from error


def _of(found: Mapping[str, Any], name: str, kind: type[Told]) -> Told:
    if type(value := found[name]) is not kind:  # true is no number
        raise TypeError(f"{name!r} is {value!r:.80}, expected {kind.__name__}")
    return value


def versions(files: Files, first: int, last: int) -> list[Version]:
    """Versions first to last, each held against the one before.

    Raises:
        RunError: one is missing or damaged, or the chain is broken; the message names where.
    """
    found: list[Version] = []
    for number in range(first, last + 1):
        one = read_version(files, number)
        before = found[-1].digest if found else ("" if number == 1 else one.previous)
        if one.previous != before:
            raise RunError(
                f"{files.path(stem(number - 1))}.json is not the one that {stem(number)}.json follows: one of the two was "
                "changed. Put both back from a copy."
            )
        found.append(one)
    return found


def segment(files: Files, version: Version, *, check: bool = True) -> pa.ipc.RecordBatchFileReader:
    """The segment of a version, opened; with `check` its whole content is held against its checksum.

    Raises:
        RunError: it is missing or damaged.
    """
    name = f"{stem(version.number)}.arrow"
    content = files.buffer(name)
    found = hashlib.sha256(content).hexdigest() if check else version.sha256
    if found != version.sha256:
        raise RunError(
            f"{files.path(name)} is damaged: its SHA-256 is {found[:16]}, {stem(version.number)}.json says "
            f"{version.sha256[:16]}. Put it back from a copy."
        )
    return pa.ipc.open_file(content)


def damages(path: str | os.PathLike[str]) -> Iterator[str]:
    """One sentence for each file of the history that is missing, damaged, or in the way of all writers; reads all of it."""
    files = open_files(path)
    try:
        latest = latest_number(files)
    except RunError as error:
        yield str(error)
        return
    before = ""
    for number in range(1, latest + 1):
        try:
            version = read_version(files, number)
            if version.previous != before:
                yield f"{files.path(stem(number))}.json does not follow the version before as it is: one was changed."
            before = version.digest
            segment(files, version)
        except RunError as error:
            yield str(error)
    try:
        if f"{stem(latest + 1)}.arrow" in (files.names() or ()):  # of a writer at work, or a killed one
            _json_of(files, latest + 1)
    except RunError as error:
        yield str(error)
