"""Crawled text made fit for a page: cut, masked, every invisible character shown, HTML-escaped.

Costs microseconds per excerpt: nothing looks at more than a few thousand characters, whatever the
length of the document. Every string that reaches the page passes `shown`; the template engine calls it for
each expression, so a template cannot forget it.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from markupsafe import Markup, escape

from curation.report.masking import MASK, mask

__all__ = [
    "EXCERPT_CHARS",
    "MARGIN_CHARS",
    "Excerpt",
    "cut",
    "hex_dump",
    "mask",
    "plain",
    "quantity_of_bytes",
    "shown",
    "take",
]

EXCERPT_CHARS = 420
"""Characters of a document that a sample shows."""

EXCERPT_LINES = 12
"""Lines that a sample shows at most; runs of blank lines count as two."""

MARGIN_CHARS = 120
"""Characters beyond the cut that masking looks at, so that an address at the cut is still an address."""

_BREAKS = re.compile(r"\n(?:[ \t\u00A0\u3000]*\n){2,}")
_LINE = re.compile(r"[^\n]+(?:\s*\n)?|\n\s*")
_BLANKS = re.compile(r"[ \t\u00A0\u3000]{8,}")

# What a reader cannot see, or what would change how the text around it is read.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b\u200e\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\uffff\ud800-\udfff\ue000-\uf8ff\U000e0000-\U000e0fff\U000f0000-\U0010ffff]"
    "|(?<![\u0100-\U0010ffff])[\u200c\u200d]|[\u200c\u200d](?![\u0100-\U0010ffff])"  # joiners outside scripts and emoji
)


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A piece of a document, most often its beginning."""

    text: str
    """Cut and masked, not yet escaped: at most `EXCERPT_CHARS` characters."""
    cut: bool
    """Something follows it."""
    n_bytes: int
    """Of the whole document, UTF-8."""
    begin: int = 0
    """Byte of the document at which it begins."""


def take(data: memoryview | bytes, limit: int = EXCERPT_CHARS, *, begin: int = 0) -> Excerpt:
    """The `limit` characters of a UTF-8 text from byte `begin` on, masked. Nothing else of `data` is decoded.

    Args:
        begin: the first byte of a character.
    """
    head = bytes(data[begin : begin + 4 * (limit + MARGIN_CHARS)])
    text = head.decode("utf-8", "ignore" if begin + len(head) < len(data) else "replace").replace("\r\n", "\n")
    before = bytes(data[max(0, begin - 4 * MARGIN_CHARS) : begin]).decode("utf-8", "ignore")[-MARGIN_CHARS:]
    masked = mask(before + text[: limit + MARGIN_CHARS])[len(before) :][:limit]
    end = _end_of_lines(masked)
    return Excerpt(masked[:end].rstrip(), end < len(text) or begin + len(head) < len(data), len(data), begin)


def _end_of_lines(text: str) -> int:
    """Where the last line that is shown ends."""
    end, lines = 0, 0
    for match in _LINE.finditer(text):
        end = match.end()
        lines += min(match.group().count("\n"), 2)
        if lines >= EXCERPT_LINES:
            break
    return end


def cut(text: str, limit: int) -> str:
    """The text, or its beginning with a word on how much is left out."""
    return text if len(text) <= limit else f"{text[:limit]} ... cut, {len(text) - limit:,} more characters"


def shown(text: str) -> Markup:
    """Text as HTML: escaped, with every invisible or direction-changing character named in its place."""
    parts: list[str] = []
    end = 0
    for match in _INVISIBLE.finditer(text):
        parts += [_visible(text[end : match.start()]), _named(match.group())]
        end = match.end()
    parts.append(_visible(text[end:]))
    return Markup("".join(parts))


def plain(text: str) -> str:
    """Text for an attribute, where no element can stand: invisible characters become U+FFFD. Not yet escaped."""
    return _INVISIBLE.sub("\N{REPLACEMENT CHARACTER}", text)


def _visible(text: str) -> str:
    """Escaped; long runs of blank lines and blanks are counted and not drawn."""
    escaped = str(escape(text))
    escaped = _BREAKS.sub(lambda m: f'\n<i class="ctl">{m.group().count(chr(10))} line breaks</i>\n', escaped)
    return _BLANKS.sub(lambda m: f' <i class="ctl">{len(m.group())} blanks</i> ', escaped)


def _named(char: str) -> str:
    code = ord(char)
    if code < 0x20:
        label = chr(0x2400 + code)
    elif code == 0x7F:
        label = "\u2421"
    else:
        label = f"{code:04X}"
    name = unicodedata.name(char, "private use or no character" if code > 0x9F else "control character")
    return f'<i class="ctl" title="U+{code:04X} {name}">{label}</i>'


def hex_dump(data: bytes, limit: int = 64) -> str:
    """The first `limit` bytes, 16 a line: offset, hex, printable ASCII. Addresses and numbers are masked."""
    shown_bytes = data[:limit]
    text = mask("".join(chr(b) if 0x20 <= b < 0x7F else "." for b in shown_bytes))
    hidden = [c == MASK for c in text]
    lines = []
    for start in range(0, len(shown_bytes), 16):
        cells = [
            MASK * 2 if hidden[i] else f"{shown_bytes[i]:02x}" for i in range(start, min(start + 16, len(shown_bytes)))
        ]
        lines.append(f"{start:04x}  {' '.join(cells):<47}  {text[start : start + 16]}")
    return "\n".join(lines)


def quantity_of_bytes(n_bytes: float) -> str:
    """`812 bytes`, `12.3 kB`, `4.1 MB` ...: powers of 1,000, three digits."""
    if n_bytes < 1000:
        return f"{n_bytes:.0f} byte" + ("" if n_bytes == 1 else "s")
    value = float(n_bytes)
    for unit in ("kB", "MB", "GB", "TB"):
        value /= 1000
        if value < 999.5 or unit == "TB":
            break
    return f"{value:.{2 if value < 9.995 else 1 if value < 99.95 else 0}f} {unit}"
