"""Text as a safety model reads it: what hides words from a reader of characters, but not from a person, is undone.

    readable("加 微 信")          # "加微信"
    readable("ｐ.о.r.n")          # "porn": full width, Cyrillic о, dots
    readable("赌-博")             # "赌博"

In order: control and invisible characters go, line breaks become newlines; NFKC (full width, circled, mathematical letters);
marks that it does not join to a letter go; signs that look like Latin letters become letters; signs inside of Han go; single
letters with blanks or signs between them become a word; a word of Latin letters among Cyrillic, Greek, Armenian or Cherokee
ones gets the letters of one script; a word with capitals here and there becomes small; of a chain of 60 or more letters and
digits (checksums, base64) the first 12 stay, since no model reads words in it.
It is done in training as in use. Pure and deterministic.

A line stays a line: `n`th line in, `n`th line out, so that places map back to the original by line, exactly in lines that are
unchanged and by proportion in others (`Places`).

Costs: 5 to 15 MB/s, hundreds of times what a model reads.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from itertools import accumulate

import numpy as np
import numpy.typing as npt

__all__ = ["Places", "readable"]

_BREAKS = re.compile("\r\n?|[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_INVISIBLE = re.compile(
    "[\x00-\x08\x0e-\x1b\x1f\x7f-\x84\x86-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]+"
)
"""Default-ignorable code points of Unicode, and the controls that are no break."""

_MARKS = re.compile("[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]+")
"""Combining marks of Latin letters and signs; what NFKC leaves of them strikes letters out, or heaps up."""

_SHAKEN = re.compile(r"(?<![A-Za-z0-9_])[A-Z]*(?:[a-z]+[A-Z]+){2,}[a-z]*(?![A-Za-z0-9_])")
"""`cAsInO`; JavaScript and YouTube rise once only."""
_CHAIN = re.compile(r"(?a:[\w+/=%-]){60,}")
_CHAIN_KEPT = 12

_SMALL_CAPITALS = dict(zip("ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘꞯʀꜱᴛᴜᴠᴡʏᴢɑɡ", "abcdefghijklmnopqrstuvwyzag", strict=True))
_SIGNS: Mapping[int, str] = {
    **{ord(sign): letter for sign, letter in _SMALL_CAPITALS.items()},
    **{
        start + place: chr(ord("A") + place)
        for start in (0x1F150, 0x1F170, 0x1F1E6)  # negative circled, negative squared, regional indicators
        for place in range(26)
    },
}
_ANY_SIGN = re.compile("[" + "".join(map(chr, _SIGNS)) + "]")

_CYRILLIC = dict(zip("АВСЕНІЈКМОРЅТХУаеоріјсухѕһԁԛԝ", "ABCEHIJKMOPSTXYaeopijcyxshdqw", strict=True))
_GREEK = dict(zip("ΑΒΕΖΗΙΚΜΝΟΡΤΥΧανορυι", "ABEZHIKMNOPTYXavopui", strict=True))
_ARMENIAN = dict(zip("ՕՍօոսցհզ", "OUonughq", strict=True))
_CHEROKEE = dict(zip("ᎪᏴᏟᎠᎬᎻᎥᎫᏦᏞᎷᎾᏢᎡᏚᎢᏙᏔᏃ", "AbCDEHiJKLMOPRSTVWZ", strict=True))
_TO_LATIN = str.maketrans({**_CYRILLIC, **_GREEK, **_ARMENIAN, **_CHEROKEE})
_TO_CYRILLIC = str.maketrans({latin: other for other, latin in _CYRILLIC.items()})
_TO_GREEK = str.maketrans({latin: other for other, latin in _GREEK.items()})
_ONLY_CYRILLIC = re.compile(f"[^\\W\\d_{''.join(_CYRILLIC)}]")
_LATIN = "A-Za-z\u00c0-\u024f"
_OTHERS = "\u0370-\u058f\u13a0-\u13ff\uab70-\uabbf"
_MIXED = re.compile(f"[{_LATIN}][{_OTHERS}]|[{_OTHERS}][{_LATIN}]")
_MIXED_RUN = re.compile(f"[{_LATIN}{_OTHERS}]{{2,}}")

_LETTER = r"[^\W\d_\u2e80-\u9fff\uac00-\ud7af\U00020000-\U0003ffff]"
"""Of a script that is written with blanks; ideographs and Hangul apart."""
_SIGN = r"[^\w\s'’\"“”()\[\]{}<>]{1,3}"
_GAP = rf"(?:{_SIGN}|[ \t_]|[ \t]{_SIGN}[ \t])"
"""One kind of it between two letters: `J. R.` and `e.g. i.e.` are no gaps, `p o`, `p.o` and `p - o` are."""
_SPACED = re.compile(rf"(?<![^\W_])(?<!['’]){_LETTER}(?:{_GAP}{_LETTER}){{2,}}(?![^\W_])")
_GAPS = re.compile(r"[\W_]+")
_HAN = "\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_WIDE = f"{_HAN}\u3041-\u3096\u30a1-\u30fa\uac00-\ud7af"
_SPACED_WIDE = re.compile(rf"(?<![{_WIDE}])[{_WIDE}](?:[ \t][{_WIDE}])+(?![{_WIDE}])")
_HIDDEN_GAP = re.compile(rf"(?<=[{_HAN}]) ?[-._*★☆~|/\\+=^#$¥￥%&@•●○◆◇■□♥♡※→︱—–]{{1,3}} ?(?=[{_HAN}])")


def readable(text: str) -> str:
    """The text without disguises, with as many lines."""
    if not text.isascii():
        text = _INVISIBLE.sub("", _BREAKS.sub("\n", text))
        text = _MARKS.sub("", unicodedata.normalize("NFKC", text))
        if _ANY_SIGN.search(text):
            text = text.translate(_SIGNS)
        text = _HIDDEN_GAP.sub("", text)
        text = _SPACED_WIDE.sub(_joined, text)
    elif not text.isprintable():
        text = _INVISIBLE.sub("", _BREAKS.sub("\n", text))
    text = _SHAKEN.sub(_small, _CHAIN.sub(_shortened, _SPACED.sub(_joined, text)))
    if not text.isascii() and _MIXED.search(text):
        text = _MIXED_RUN.sub(_one_script, text)
    return text


def _joined(found: re.Match[str]) -> str:
    return _GAPS.sub("", found[0])


def _small(found: re.Match[str]) -> str:
    return found[0].lower()


def _shortened(found: re.Match[str]) -> str:
    return found[0][:_CHAIN_KEPT]


def _one_script(found: re.Match[str]) -> str:
    """A word in the letters of one script: that of the letters which no other script has."""
    word = found[0]
    if not _MIXED.search(word):
        return word
    latin = word.translate(_TO_LATIN)
    rest = [character for character in latin if not character.isascii() and character > "\u024f"]
    if not rest:
        return latin
    if all("\u0400" <= character <= "\u052f" for character in rest):
        return word.translate(_TO_CYRILLIC)
    if all("\u0370" <= character <= "\u03ff" for character in rest):
        return word.translate(_TO_GREEK)
    return word


class Places:
    """Where the characters of a readable text stand in the bytes of the original, by line.

    Exact in a line that is unchanged; by proportion in others, moved to the border of a character.
    """

    def __init__(self, original: str, cleaned: str) -> None:
        self._same = original == cleaned
        self._lines = [original] if self._same else _lines(original)
        self._cleaned = [cleaned] if self._same else cleaned.split("\n")
        # NFKC or a joined word never makes or takes a line break.
        assert len(self._lines) == len(self._cleaned), "readable() changed the number of lines"
        breaks = [0] if self._same else _break_sizes(original)
        self._starts = _running([len(line) + 1 for line in self._cleaned])
        sizes = [len(line.encode()) + size for line, size in zip(self._lines, [*breaks, 0], strict=False)]
        self._bytes = _running(sizes)

    def bytes_at(self, place: int) -> int:
        """The byte of the original at which character `place` of the readable text begins."""
        line = int(np.searchsorted(self._starts, place, side="right")) - 1
        within, original, cleaned = place - int(self._starts[line]), self._lines[line], self._cleaned[line]
        if original != cleaned:
            within = round(within * len(original) / max(len(cleaned), 1))
        return int(self._bytes[line]) + len(original[:within].encode())


def _running(sizes: list[int]) -> npt.NDArray[np.int64]:
    """Where each begins: int64[n]."""
    return np.array([0, *accumulate(sizes[:-1])], np.int64)


_ANY_BREAK = re.compile("\r\n?|[\n\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")


def _lines(text: str) -> list[str]:
    return _ANY_BREAK.split(text)


def _break_sizes(text: str) -> list[int]:
    """Bytes of each line break."""
    return [len(found[0].encode()) for found in _ANY_BREAK.finditer(text)]
