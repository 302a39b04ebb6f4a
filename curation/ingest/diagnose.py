"""Why a line was refused, and what orjson does not tell: repeated keys and the exact bytes of a value.

Runs on the few lines that need it; costs about 10 us a 2 kB line. Nothing here recurses or builds big
numbers, so neither deep nesting nor long digits can break it. The scanner trusts that the line is valid JSON
where the docstring says so; elsewhere orjson has the last word on each piece.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass, field

import orjson

__all__ = ["Fields", "diagnose", "exact_id", "exact_meta", "repeated_keys", "replace_surrogates"]

# Possessive, and a string that never ends matches to the end of the line: so a broken line of many
# quotes costs linear time, and a long string no stack.
_STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)'
_TOKEN = re.compile(_STRING + rb"|[{}\[\]:,]", re.DOTALL)
_SCALAR = re.compile(rb"\s*(" + _STRING + rb'|[^\s{}\[\]",:]+)', re.DOTALL)
# A pair, a lone half, or any other escape: each match eats one escape whole, so a backslash that is itself
# escaped is never taken for the beginning of one.
_ESCAPE = re.compile(
    rb"\\(?:(u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL
)


def _spelled_with_escapes(name: str) -> set[bytes]:
    """Beginnings of every escape that can stand for a character of `name`."""
    begins = set()
    for unit in name.encode("utf-16-be").hex(" ", -2).split():
        # Hex digits may be written in either case: the beginning ends before the first letter.
        digits = re.match(r"[0-9]*", unit).group()  # type: ignore[union-attr]
        begins.add(b"\\u" + digits[:3].encode())
    begins |= {b"\\" + char.encode() for char in name if char in '"\\/'}
    return begins | ({b"\\"} if any(char < " " for char in name) else set())


@dataclass(frozen=True)
class Fields:
    """The names of the columns that are read, with what is needed to find their keys in raw bytes."""

    text: str
    id: str
    url: str
    _text_key: bytes = field(init=False, repr=False)
    _id_key: bytes = field(init=False, repr=False)
    _escapes: tuple[bytes, ...] = field(init=False, repr=False)
    _any_escape: bytes = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_text_key", orjson.dumps(self.text))
        object.__setattr__(self, "_id_key", orjson.dumps(self.id))
        escapes = _spelled_with_escapes(self.text) | _spelled_with_escapes(self.id)
        object.__setattr__(self, "_escapes", tuple(sorted(escapes)))
        shared = os.path.commonprefix(sorted(escapes))  # noqa: RUF071  byte by byte is what is wanted here
        object.__setattr__(self, "_any_escape", shared)

    def may_be_escaped(self, body: bytes) -> bool:
        """Whether a key of ours could be spelled with escapes somewhere in these bytes."""
        return self._any_escape in body and any(begin in body for begin in self._escapes)

    def may_repeat(self, line: bytes, text: str, escaped: bool) -> bool:
        """Whether the text or id key may stand twice in a valid line whose text is `text`: cheap, never misses.

        The value that counts is the last one, and in raw bytes it is at least as long as it has characters.
        So every text key lies in the line before that; and where there is one key only, no id key lies
        inside its value.
        """
        if escaped and self.may_be_escaped(line):
            return True
        key = self._text_key
        before = len(line) - len(text)
        place = line.find(key, 0, before)
        after = place + len(key)
        if place < 0 or line.find(key, after, before) >= 0:
            return True
        own = self._id_key
        return line.count(own, 0, place) + line.count(own, after + len(text)) > 1


def _members(line: bytes) -> list[tuple[bytes, int, int]]:
    """For each top-level member of a valid object: its key as spelled, start and end of its raw value."""
    found: list[tuple[bytes, int, int]] = []
    depth, key, value_start = 0, b"", -1
    for match in _TOKEN.finditer(line):
        token = match.group()
        if token in b"{[":
            depth += 1
        elif token in b"}]":
            depth -= 1
            if depth == 0 and value_start >= 0:
                found.append((key, value_start, match.start()))
                break
        elif depth == 1:
            if token == b":":
                value_start = match.end()
            elif token == b",":
                found.append((key, value_start, match.start()))
                value_start = -1
            elif value_start < 0:
                key = token
    return found


def repeated_keys(line: bytes, fields: Fields) -> list[str]:
    """Which of the text and id keys stand more than once at the top level of a valid line."""
    keys = [orjson.loads(key) for key, _, _ in _members(line)] if line.lstrip()[:1] == b"{" else []
    return [name for name in (fields.text, fields.id) if keys.count(name) > 1]


def exact_id(line: bytes, fields: Fields) -> str:
    """The id of a valid line as it is written there."""
    return next(line[a:b].strip().decode() for key, a, b in _members(line) if orjson.loads(key) == fields.id)


def exact_meta(line: bytes, names: list[str]) -> str:
    """An object of the named members of a valid line, each value byte for byte; of a repeated key the last."""
    values = {orjson.loads(key): line[a:b].strip() for key, a, b in _members(line)}
    members = (json.dumps(name, ensure_ascii=False).encode() + b":" + values[name] for name in names)
    return (b"{" + b",".join(members) + b"}").decode()


def replace_surrogates(line: bytes) -> tuple[bytes, int]:
    """The line with U+FFFD for every escape of half a surrogate pair, and how many there were."""
    n_replaced = 0

    def replacement(match: re.Match[bytes]) -> bytes:
        nonlocal n_replaced
        if match.group(2) is None:
            return match.group()
        n_replaced += 1
        return b"\\ufffd"

    return _ESCAPE.sub(replacement, line), n_replaced


def diagnose(line: bytes, error: orjson.JSONDecodeError, *, cut_off: bool) -> tuple[str, str]:
    """The reason, a key of `DAMAGE`, for which orjson refused a line, and the parser's words.

    Args:
        line: the line without byte order marks.
        error: what orjson raised.
        cut_off: whether no newline ended the line.
    """
    nul = line.find(b"\0")
    if nul >= 0:
        return "nul_byte", f"{line.count(0):,} NUL bytes, the first at byte {nul:,} of the line"
    try:
        line.decode("utf-8")
    except UnicodeDecodeError as fault:
        if cut_off and fault.reason == "unexpected end of data":
            return "truncated_line", f"the line ends inside a character, at its byte {fault.start:,}"
        shown = line[fault.start : fault.start + 4].hex(" ")
        return "bad_utf8", f"{fault.reason} at byte {fault.start:,} of the line: {shown}"
    mended, n_lone = replace_surrogates(line)
    if n_lone and _parses(mended):
        return "lone_surrogate", f"{n_lone} escapes name half of a surrogate pair: {error}"
    if (end := _first_value(mended)) is not None and _starts_value(mended[end:]):
        return "two_objects", f"a JSON value ends at byte {end:,} of the line, and another one follows: {error}"
    return ("truncated_line" if cut_off else "bad_json"), str(error)


def _parses(piece: bytes) -> bool:
    try:
        orjson.loads(piece)
    except orjson.JSONDecodeError:
        return False
    return True


def _first_value(line: bytes) -> int | None:
    """Where the first JSON value of a line ends, if it is a whole one."""
    if line.lstrip()[:1] not in (b"{", b"["):
        match = _SCALAR.match(line)
        return match.end() if match and _parses(match.group()) else None
    depth = 0
    for match in _TOKEN.finditer(line):
        token = match.group()
        if token in b"{[":
            depth += 1
        elif token in b"}]":
            depth -= 1
            if depth == 0:
                return match.end() if _parses(line[: match.end()]) else None
    return None


def _starts_value(rest: bytes) -> bool:
    """Whether a whole value, or the beginning of an object or array, follows."""
    return rest.lstrip()[:1] in (b"{", b"[") or _first_value(rest) is not None
