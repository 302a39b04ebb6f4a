"""Lists of terms: one row a term, with weight, way of matching and context, as `terms/*.tsv` and users' own files have them.

    # language: zh
    # licence: CC0-1.0
    # source: written for this project
    # version: 1
    @contact<TAB>0<TAB>sub<TAB>加 | 微信 | 群
    gambling<TAB>4<TAB>sub<TAB>赌场开户 | 线上赌场
    spam<TAB>1<TAB>sub<TAB>上车<TAB>@contact, 老司机<TAB>上车点, 公交
    fraud<TAB>2<TAB>regex<TAB>加微 | 加v =~ 加(微|v)\\s?[a-z0-9]{6,20}

| cell | holds |
| --- | --- |
| category | a name of `quality_models.safety_labels.CATEGORIES` |
| weight | 1 weak, 2 medium, 4 strong; any whole number from 1 to 8 |
| mode | `word`: not inside of a longer word; `sub`: anywhere; `regex`. In scripts without blanks `word` is `sub` |
| term | spellings with ` | ` between; of a regex literals, one of which is in each match, then ` =~ ` and an RE2 expression |
| near | words or @groups with commas between them: one must stand within 40 letters and digits before or after |
| unless | the same: none may |

Near and unless may be missing. A word in them is matched as mode `word` does; the sign @ alone is one too, which all names of
accounts and addresses have; a group, a row `@name`, has a mode of its own, weight
0, and holds for its file, wherever it stands there; the groups of `groups.tsv` may be named in every list, and one of the same
name in the list itself counts instead. Blank lines, byte order marks, carriage returns and lines with `#` are
skipped; such lines before the first row may hold `key: value`.

A term is matched in its view (see `characters`): case, width, look-alike letters, Traditional and Simplified, signs and blanks
inside do not matter, so one spelling is enough. A blank or sign inside of a term may be any or none in the text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple, NoReturn

from curation.errors import ConfigError, nearest
from curation.filters.safety_terms.spelling import HANDLE, MOST_SOLIDS, spelled
from quality_models.safety_labels import CATEGORY_NAMES

__all__ = ["GROUPS", "MODES", "ContextWord", "Term", "TermList", "read_terms"]

GROUPS = Path(__file__).resolve().with_name("groups.tsv")
"""Groups that every list may name; `@group` rows only."""
MODES = ("word", "sub", "regex")
BETWEEN = re.compile(r"(?:^|\s+)\|(?:\s+|$)")
NAMES_REGEX = " =~ "
MOST_WEIGHT = 8


class ContextWord(NamedTuple):
    """A word of near or unless."""

    word: str
    mode: str
    """word or sub."""


_Contexts = dict[str, tuple[ContextWord, ...]]


class Term(NamedTuple):
    """A row of a list."""

    category: str
    weight: int
    mode: str
    """word, sub or regex."""
    spellings: tuple[str, ...]
    """Of a regex its literals."""
    regex: str
    """Empty for the other modes."""
    near: tuple[ContextWord, ...]
    """Empty: needs none."""
    unless: tuple[ContextWord, ...]
    file: str
    """Name of the file."""
    line: int
    """From 1."""

    @property
    def rule(self) -> str:
        """How reports name it: file:line."""
        return f"{self.file}:{self.line}"


class TermList(NamedTuple):
    """A file of terms."""

    file: str
    header: Mapping[str, str]
    """language, licence, source, version and whatever else stands in lines `# key: value` before the first row."""
    terms: tuple[Term, ...]


class _Row(NamedTuple):
    """A line that is not skipped, and where it stands."""

    path: Path
    line: int
    cells: list[str]

    def fail(self, expected: str, found: str) -> NoReturn:
        raise ConfigError(f"{self.path}:{self.line}: expected {expected}, found {found}")


def read_terms(path: Path) -> TermList:
    """Read a list.

    Raises:
        ConfigError: the file is missing, not UTF-8, or a row is not as described above; it names file and line.
    """
    header, rows = _rows(path)
    groups = {**_shared_groups(), **_groups(rows)}
    terms, seen = [], set()
    known: _Contexts = {}
    for row in rows:
        if not row.cells[0].startswith("@"):
            term = _term(row, groups, known)
            for spelling in term.spellings:
                key = (term.category, spelling, term.regex, term.mode, *row.cells[4:])
                if key in seen:
                    row.fail("each term once in a category", f"{spelling!r} again")
                seen.add(key)
            terms.append(term)
    return TermList(path.name, header, tuple(terms))


def _rows(path: Path) -> tuple[dict[str, str], list[_Row]]:
    """Header and rows of a file."""
    try:
        text = path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        raise ConfigError(f"{path}: expected a file of terms, found none: correct `files`") from None
    except OSError as error:
        raise ConfigError(f"{path}: expected a file of terms that can be read, found: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"{path}: expected UTF-8, found other bytes at byte {error.start:,}: save it as UTF-8"
        ) from error
    header: dict[str, str] = {}
    rows: list[_Row] = []
    lines = text.replace("\ufeff", "").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    for number, line in enumerate(lines, 1):
        if line.startswith("#"):
            key, colon, value = line[1:].partition(":")
            if colon and not rows and key.strip().isidentifier():
                header[key.strip()] = value.strip()
        elif line.strip():
            rows.append(_Row(path, number, [cell.strip(" ") for cell in line.split("\t")]))
    return header, rows


@cache
def _shared_groups() -> dict[str, tuple[ContextWord, ...]]:
    """The groups of GROUPS."""
    _, rows = _rows(GROUPS)
    for row in rows:
        if not row.cells[0].startswith("@"):
            row.fail("groups, whose names begin with @", repr(row.cells[0]))
    return _groups(rows)


def _groups(rows: Sequence[_Row]) -> dict[str, tuple[ContextWord, ...]]:
    """The groups of a file."""
    groups: dict[str, tuple[ContextWord, ...]] = {}
    for row in rows:
        if row.cells[0].startswith("@"):
            if row.cells[0] in groups:
                row.fail("each group once in a file", f"a second row for {row.cells[0]}")
            groups[row.cells[0]] = _group(row)
    return groups


def _group(row: _Row) -> tuple[ContextWord, ...]:
    if len(row.cells) != 4 or row.cells[1] != "0" or row.cells[2] not in ("word", "sub") or len(row.cells[0]) < 2:
        row.fail("@name, 0, word or sub, and words, with tabs between them", repr("\t".join(row.cells))[:80])
    return tuple(ContextWord(_checked_context(row, word), row.cells[2]) for word in BETWEEN.split(row.cells[3]))


def _checked(row: _Row, spelling: str) -> str:
    """A spelling with something to look for in it."""
    solids = len(spelled(spelling))
    if not solids:
        row.fail("a term with a letter or digit", repr(spelling))
    if solids > MOST_SOLIDS:
        row.fail(f"at most {MOST_SOLIDS} letters and digits", f"{solids} in {spelling[:40]!r}")
    return spelling.strip()


def _checked_context(row: _Row, word: str) -> str:
    return HANDLE if word.strip() == HANDLE else _checked(row, word)


def _context(
    row: _Row, place: int, groups: Mapping[str, tuple[ContextWord, ...]], known: _Contexts
) -> tuple[ContextWord, ...]:
    """The words of near or unless. `known`: those of cells before, since lists have hundreds of the same."""
    cell = row.cells[place] if len(row.cells) > place else ""
    if cell in known:
        return known[cell]
    found: list[ContextWord] = []
    for word in filter(None, (one.strip() for one in cell.split(","))):
        if word == HANDLE or not word.startswith("@"):
            found.append(ContextWord(_checked_context(row, word), "word"))
        elif word in groups:
            found += groups[word]
        else:
            hint = nearest(word, groups)
            row.fail("a group that this file or groups.tsv has", f"{word}{hint if hint else ''}")
    return known.setdefault(cell, tuple(dict.fromkeys(found)))


def _term(row: _Row, groups: Mapping[str, tuple[ContextWord, ...]], known: _Contexts) -> Term:
    cells = row.cells
    if not 4 <= len(cells) <= 6:
        row.fail("category, weight, mode, term, near, unless with tabs between them", f"{len(cells)} cells")
    category, weight, mode, spelling = cells[:4]
    if category not in CATEGORY_NAMES:
        row.fail(f"a category of {', '.join(CATEGORY_NAMES)}", repr(category))
    if not (weight.isascii() and weight.isdigit() and 1 <= int(weight) <= MOST_WEIGHT):
        row.fail(f"a weight from 1 to {MOST_WEIGHT}", repr(weight))
    if mode not in MODES:
        row.fail(f"a mode of {', '.join(MODES)}", repr(mode))
    regex = ""
    if mode == "regex":
        spelling, _, regex = spelling.partition(NAMES_REGEX)
        _check_regex(row, regex.strip())
    near, unless = _context(row, 4, groups, known), _context(row, 5, groups, known)
    spellings = tuple(_checked(row, one) for one in BETWEEN.split(spelling))
    for one in spellings if mode != "regex" else ():
        _check_length(row, one, mode, near)
    return Term(category, int(weight), mode, spellings, regex.strip(), near, unless, row.path.name, row.line)


def _check_length(row: _Row, spelling: str, mode: str, near: Sequence[ContextWord]) -> None:
    """A term of one character needs context, and one of a script with blanks must not be looked for inside of words."""
    solids = spelled(spelling)
    if len(solids) == 1 and (not near or (mode == "sub" and not solids[0].unspaced)):
        row.fail(
            "a term of two characters or more, or near words (and mode word, in a script with blanks)", repr(spelling)
        )


def _check_regex(row: _Row, regex: str) -> None:
    import re2

    if not regex:
        row.fail(f"literals,{NAMES_REGEX}and an expression", repr(row.cells[3]))
    options = re2.Options()
    options.log_errors = False
    try:
        matches_nothing = re2.compile(regex, options).search("")
    except re2.error as error:
        message = error.args[0]
        row.fail(
            "an expression that RE2 takes", f"{regex!r}: {message.decode() if isinstance(message, bytes) else message}"
        )
    if matches_nothing:
        row.fail("an expression that matches no empty text", repr(regex))
