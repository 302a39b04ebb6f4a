"""Labelled rows for the training of a safety model: read from JSON lines, and cut into a training and a development part.

A row: {"text": ..., "labels": ["gambling", "spam"]}; no labels: harmless. It may also have `lang`, `pattern` or `group` (rows
that came from one sentence pattern, one thread, one source), `split` (train, dev, test), `weight` (1) and `licence`. Files
may be compressed (.gz, .zst). A row that cannot be used is refused with its file and line, never left out in silence.

The split keeps groups together, else the development part measures memory and not understanding; rows of equal text are
one group whatever they say. It holds about the wanted share of each pair of language and label (after Sechidis et al., On
the Stratification of Multi-label Data, 2011: rarest stratum first). It depends on the rows and the seed only.

Costs: 100,000 rows/s to read, some 200,000 to split.
"""

from __future__ import annotations

import difflib
import gzip
import hashlib
import io
import json
import math
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

__all__ = ["HARMLESS", "Row", "file_sha256", "labels_in", "read_rows", "split_rows"]

HARMLESS = ""
"""Stands for "no label" among the strata."""

SPLITS = {"train": "train", "dev": "dev", "validation": "dev", "valid": "dev", "test": "test"}
MOST_SHOWN = 10
FURTHER = 2.0
"""A group may overshoot what its stratum still wants by this factor: whole groups seldom fit."""


class Row(NamedTuple):
    """One labelled text."""

    text: str
    labels: tuple[str, ...] = ()
    lang: str = "und"
    group: str = ""
    split: str = ""
    weight: float = 1.0
    licence: str = ""
    where: str = ""
    """File:line."""


def file_sha256(path: Path) -> str:
    """Of the bytes as stored."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_rows(paths: Sequence[Path], labels: Sequence[str] = (), *, harmless: bool = False) -> list[Row]:
    """All rows, in the order of files and lines; `labels` are those that may occur (none given: any).

    `harmless`: rows are whole documents without labels; the field may be missing.

    Raises:
        ValueError: rows that cannot be used, ten of them with file, line and reason; or a file that is no JSON lines.
        OSError: a file is not there.
    """
    rows: list[Row] = []
    bad: list[str] = []
    for path in paths:
        before = len(rows) + len(bad)
        for number, line in enumerate(_lines(path), 1):
            if not line.strip():
                continue
            where = f"{path.name}:{number}"
            try:
                rows.append(_row(line, where, labels, harmless))
            except ValueError as error:
                bad.append(f"{where}: {error}")
        if len(rows) + len(bad) == before:
            bad.append(f"{path.name}: expected rows, found none")
    if bad:
        more = f"\n  ... and {len(bad) - MOST_SHOWN:,} more" if len(bad) > MOST_SHOWN else ""
        raise ValueError(
            f"{len(bad):,} rows cannot be used; mend or remove them:\n  " + "\n  ".join(bad[:MOST_SHOWN]) + more
        )
    return rows


def _lines(path: Path) -> Iterator[str]:
    with path.open("rb") as raw:
        name = path.name.lower()
        stream: BinaryIO = raw
        if name.endswith(".gz"):
            stream = cast(BinaryIO, gzip.GzipFile(fileobj=raw))
        elif name.endswith((".zst", ".zstd")):
            import zstandard

            stream = cast(BinaryIO, zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True))
        try:
            with io.TextIOWrapper(stream, encoding="utf-8-sig", newline="\n") as text:
                yield from text
        except (OSError, EOFError, UnicodeDecodeError) as error:
            raise ValueError(f"{path}: expected JSON lines in UTF-8, found damaged data ({error})") from error
        except Exception as error:
            if type(error).__name__ != "ZstdError":
                raise
            raise ValueError(f"{path}: expected a zstd stream, found damaged data ({error})") from error


def _row(line: str, where: str, known: Sequence[str], harmless: bool) -> Row:
    try:
        fields = json.loads(line)
    except (json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"expected a JSON object, found something else ({error})") from None
    if not isinstance(fields, dict):
        raise ValueError(f"expected a JSON object, found {type(fields).__name__}")
    text = fields.get("text")
    if not isinstance(text, str) or not text.strip():
        raise ValueError(f"text: expected a string with something in it, found {_shown(text)}")
    weight = fields.get("weight", 1.0)
    if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 < weight <= 1000:  # nan fails too
        raise ValueError(f"weight: expected a number over 0 and up to 1000, found {_shown(weight)}")
    split = fields.get("split") or ""
    if split and split not in SPLITS:
        raise ValueError(f"split: expected one of {', '.join(SPLITS)}, found {_shown(split)}")
    group = fields.get("pattern") or fields.get("group") or ""
    lang, licence = fields.get("lang") or "und", fields.get("licence") or ""
    for name, value in (("pattern", group), ("lang", lang), ("licence", licence)):
        if not isinstance(value, str):
            raise ValueError(f"{name}: expected a string, found {_shown(value)}")
    labels = _labels(fields.get("labels", [] if harmless else None), known)
    if harmless and labels:
        raise ValueError(f"labels: expected none in a file of harmless documents, found {', '.join(labels)}")
    return Row(_writable(text), labels, lang, group, SPLITS.get(split, ""), float(weight), licence, where)


def _writable(text: str) -> str:
    """Lone surrogates, which JSON may hold and UTF-8 may not, as the replacement character."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _labels(found: Any, known: Sequence[str]) -> tuple[str, ...]:
    if not isinstance(found, list):
        raise ValueError(f"labels: expected a list ([] for a harmless text), found {_shown(found)}")
    for label in found:
        if not isinstance(label, str) or not label.strip():
            raise ValueError(f"labels: expected names, found {_shown(label)}; a harmless text has the empty list")
        if known and label not in known:
            close = difflib.get_close_matches(label, list(known), n=1, cutoff=0.5)
            guess = f" (did you mean {close[0]!r}?)" if close else ""
            raise ValueError(f"labels: {label!r} is unknown{guess}; known are {', '.join(known)}")
    return tuple(sorted(set(found)))


def _shown(value: Any) -> str:
    return "nothing" if value is None else repr(value)[:60]


def labels_in(rows: Iterable[Row], order: Sequence[str] = ()) -> tuple[str, ...]:
    """The labels that occur: those of `order` first, in its order, others by name."""
    found = {label for row in rows for label in row.labels}
    return (*(label for label in order if label in found), *sorted(found - set(order)))


def strata(row: Row) -> tuple[tuple[str, str], ...]:
    """The pairs of language and label that a row counts for."""
    return tuple((row.lang, label) for label in row.labels or (HARMLESS,))


def split_rows(rows: Sequence[Row], share: float = 0.1, seed: int = 0) -> dict[str, list[int]]:
    """Places of rows by part: train, dev and test.

    A row's own `split` is obeyed: test rows stay apart, and where any row says dev, just those are the development
    part. Else about `share` of the others go there. Other rows of a group that holds one of test or dev are in no part: to
    learn from them would be to learn what is asked.
    """
    groups = _groups(rows)
    parts: dict[str, list[int]] = {"train": [], "dev": [], "test": []}
    free: list[list[int]] = []
    for members in groups:
        said = {rows[i].split for i in members}
        if "test" in said:
            parts["test"] += [i for i in members if rows[i].split == "test"]
        if "dev" in said:
            parts["dev"] += [i for i in members if rows[i].split == "dev"]
        if not said & {"test", "dev"}:
            free.append(members)
    chosen = set() if parts["dev"] else _development(rows, free, share, seed)
    for at, members in enumerate(free):
        parts["dev" if at in chosen else "train"] += members
    return {name: sorted(places) for name, places in parts.items()}


def _groups(rows: Sequence[Row]) -> list[list[int]]:
    """Rows that must stay together: of one group, or of one text but for case, width, blanks and signs."""
    parent = list(range(len(rows)))

    def root(i: int) -> int:
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    first: dict[tuple[str, str], int] = {}
    for i, row in enumerate(rows):
        keys = [("text", _bare(row.text))] + ([("group", row.group)] if row.group else [])
        for key in keys:
            parent[root(i)] = root(first.setdefault(key, i))
    groups: dict[int, list[int]] = defaultdict(list)
    for i in range(len(rows)):
        groups[root(i)].append(i)
    return sorted(groups.values())


def _bare(text: str) -> str:
    """Letters and digits of a text; of one without any, all of it."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return "".join(character for character in folded if character.isalnum()) or text


def _development(rows: Sequence[Row], groups: Sequence[list[int]], share: float, seed: int) -> set[int]:
    """Which groups make the development part."""
    contents = [Counter(key for i in members for key in strata(rows[i])) for members in groups]
    totals: Counter[tuple[str, str]] = Counter()
    holders: dict[tuple[str, str], list[int]] = defaultdict(list)
    for at, content in enumerate(contents):
        totals.update(content)
        for key in content:
            holders[key].append(at)
    chosen: set[int] = set()
    have: Counter[tuple[str, str]] = Counter()
    for key in sorted(totals, key=lambda key: (len(holders[key]), key)):
        want = share * totals[key]
        for at in sorted(holders[key], key=lambda at: _chance(seed, rows[groups[at][0]], key)):
            missing = want - have[key]
            if missing < 0.5:
                break
            over = contents[at][key] > FURTHER * math.ceil(missing)
            if at in chosen or over or _too_much(contents[at], have, totals, share):
                continue
            chosen.add(at)
            have.update(contents[at])
    return chosen


def _too_much(
    content: Counter[tuple[str, str]], have: Counter[tuple[str, str]], totals: Counter[tuple[str, str]], share: float
) -> bool:
    """Whether a group would take too much of any stratum away from training."""
    return any(have[key] + n > max(FURTHER * share, 0.5) * totals[key] for key, n in content.items())


def _chance(seed: int, row: Row, key: tuple[str, str]) -> bytes:
    return hashlib.blake2b(f"{seed}\0{key}\0{row.group}\0{row.text}".encode(), digest_size=8).digest()
