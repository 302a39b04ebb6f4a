"""Bytes of a web page into text: the declared charset where it is believable, else the one that fits best.

Nine pages in ten are valid UTF-8 and cost one strict decode. For the rest every candidate decodes a sample
of the page's text around its non-ASCII bytes and is scored by how much of it looks like writing; what the
page declares and what resiliparse detects start with a bonus. About 5 ms for such a page.

"Looks like writing" needs no table of languages. The double-byte standards put their everyday characters
first (GB 2312 and JIS X 0208 level 1, Big5 level 1, KS X 1001 hangul): text read with the right codec lies
almost wholly there, misread text does not. In alphabets a misread word shows symbols between letters, capitals
after small letters, two scripts in a word, or hardly any plain letter.
Labels follow the WHATWG Encoding Standard: a page that says iso-8859-1 means windows-1252.
"""

from __future__ import annotations

import codecs
import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

__all__ = ["Decoded", "UndecodableError", "codec_of", "declared_in", "decode"]


class Decoded(NamedTuple):
    """Text, the codec that read it, and how many places it could not read (each a U+FFFD in the text)."""

    text: str
    charset: str
    replaced: int = 0


class UndecodableError(ValueError):
    """No candidate gives anything that looks like writing."""


MAX_REPLACED = 2
"""Places that may be unreadable in any page."""
MAX_REPLACED_SHARE = 0.05
"""Of the non-ASCII characters at most this share may be unreadable: real pages paste in a line of another
charset now and then (der-erfolg-gibt-recht.de: 3 broken sequences beside 100 good ones)."""
MAX_REPLACED_OF_ALL = 0.002
MAX_STRAY = 10
MAX_STRAY_SHARE = 0.0005
"""A page of plain ASCII may hold so many stray bytes of no charset at all."""
MIN_SCORE = 0.5
"""Below this share of plausible characters nothing is believed."""
DECLARED_BONUS = 0.12
DETECTED_BONUS = 0.06
FEW = 8
"""With so few non-ASCII characters the declaration's bonus is doubled: they are too few to judge by."""
MIN_TO_GUESS = 3
"""With fewer, the usual charsets and the declared one come first."""
MANY = 50
DEFAULT_BONUS = 0.04
"""iso-8859-1 is what servers say who do not know; with MANY characters to judge by, detection beats it."""
SAMPLE_BYTES = 6_000

_CODECS = frozenset(
    "utf-8 utf-16-le utf-16-be utf-32-le utf-32-be gb18030 hz big5hkscs cp932 euc_jp iso2022_jp iso2022_kr cp949 "
    "cp866 cp874 cp1250 cp1251 cp1252 cp1253 cp1254 cp1255 cp1256 cp1257 cp1258 koi8-r koi8-u mac-roman mac-cyrillic "
    "iso8859-2 iso8859-3 iso8859-4 iso8859-5 iso8859-6 iso8859-7 iso8859-8 iso8859-10 iso8859-13 iso8859-14 "
    "iso8859-15 iso8859-16".split()
)
"""Python codecs of the standard's encodings, and hz, iso2022_kr and utf-32, which it gave up for browsers' safety."""
_WIDER = {
    "ascii": "cp1252", "iso8859-1": "cp1252", "iso8859-9": "cp1254", "iso8859-11": "cp874", "tis-620": "cp874",
    "gb2312": "gb18030", "gbk": "gb18030", "big5": "big5hkscs", "cp950": "big5hkscs", "shift_jis": "cp932",
    "euc_kr": "cp949", "euc_jis_2004": "euc_jp", "euc_jisx0213": "euc_jp", "shift_jis_2004": "cp932",
    "utf-16": "utf-16-le", "utf-32": "utf-32-le", "utf-8-sig": "utf-8", "iso2022_jp_1": "iso2022_jp", "johab": "cp949",
}  # fmt: skip
_ALIASES = {
    "x-sjis": "cp932", "ms_kanji": "cp932", "windows-31j": "cp932", "x-gbk": "gb18030", "gb_2312-80": "gb18030",
    "csgb2312": "gb18030", "cn-big5": "big5hkscs", "x-x-big5": "big5hkscs", "big5-hkscs": "big5hkscs", "x-euc-jp": "euc_jp",
    "ks_c_5601-1987": "cp949", "ksc5601": "cp949", "ksc_5601": "cp949", "windows-949": "cp949", "x-cp1252": "cp1252",
    "unicode-1-1-utf-8": "utf-8", "x-mac-roman": "mac-roman", "macintosh": "mac-roman", "x-mac-cyrillic": "mac-cyrillic",
    "windows-874": "cp874", "dos-874": "cp874", "iso-8859-8-i": "iso8859-8", "logical": "iso8859-8",
    "visual": "iso8859-8", "hz-gb-2312": "hz", "unicode": "utf-16-le", "x-cp1251": "cp1251", "x-cp1250": "cp1250",
    "koi": "koi8-r", "koi8": "koi8-r", "koi8-ru": "koi8-u",
}  # fmt: skip


def codec_of(label: str | None) -> str | None:
    """The Python codec that a label of the web means, None if it means none."""
    name = (label or "").strip(" \t\r\n\f\"'").lower()
    if name in _ALIASES:
        return _ALIASES[name]
    try:
        found = codecs.lookup(name).name if name else ""
    except (LookupError, ValueError):
        return None
    found = _WIDER.get(found, found)
    return found if found in _CODECS else None


_META = re.compile(rb"<meta\b[^<>]{0,1000}?charset\s*=\s*[\"']?\s*([\w.:-]{2,40})", re.I)
_XML = re.compile(rb"^\s*<\?xml\b[^<>]{0,200}?encoding\s*=\s*[\"']([\w.:-]{2,40})", re.I)


def declared_in(raw: bytes) -> list[str]:
    """Labels that the page itself declares, wherever they stand: XML declaration and meta elements."""
    found = [match.group(1) for match in (_XML.match(raw), _META.search(raw)) if match]
    return [label.decode("ascii", "replace") for label in found]


def decode(raw: bytes, declared: str | None = None, *, markup: bool = True) -> Decoded:
    """Decode a page or a plain text.

    Args:
        raw: the payload, transfer and content encodings undone.
        declared: charset of the HTTP head.
        markup: whether declarations inside the page count.

    Raises:
        UndecodableError: nothing fits; says what was tried.
    """
    marked = _by_mark(raw)
    if marked:
        return marked
    labels = [declared or "", *(declared_in(raw) if markup else ())]
    said = list(dict.fromkeys(codec for codec in map(codec_of, labels) if codec))
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        return _best(raw, said)
    if text.isascii():
        return _seven_bit(raw, text)
    doubtful = said and said[0] != "utf-8" and sum(not char.isascii() for char in text[:2000]) <= 4
    return _best(raw, said) if doubtful and len(text.encode()) - len(text) <= FEW else Decoded(text, "utf-8")


def _by_mark(raw: bytes) -> Decoded | None:
    """A byte order mark settles it; so does the rhythm of NUL bytes in unmarked UTF-16."""
    for mark, codec in (
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF32_LE, "utf-32-le"),
        (codecs.BOM_UTF32_BE, "utf-32-be"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
    ):
        if raw.startswith(mark):
            return _bounded(raw[len(mark) :], codec)
    head = raw[:4096]
    even, odd = head[::2].count(0), head[1::2].count(0)
    for codec, zeros, others in (("utf-16-le", odd, even), ("utf-16-be", even, odd)):
        if zeros > max(4, 0.05 * len(head)) and others < 0.2 * zeros:
            return _bounded(raw, codec)
    return None


def _seven_bit(raw: bytes, text: str) -> Decoded:
    """ASCII, or one of the codes that hide in it behind escapes."""
    for escape, codec in ((b"\x1b$)C", "iso2022_kr"), (b"\x1b$", "iso2022_jp"), (b"~{", "hz")):
        if escape in raw:
            try:
                found = raw.decode(codec)
            except UnicodeDecodeError:
                continue
            if _score(found, codec) >= MIN_SCORE:
                return Decoded(found, codec)
    return Decoded(text, "ascii")


def _bounded(raw: bytes, codec: str) -> Decoded:
    """Decode with U+FFFD at unreadable places, as long as they are few."""
    text = raw.decode(codec, "replace")
    if "\ufffd" not in text:
        return Decoded(text, codec)
    genuine = raw.count("\ufffd".encode(codec)) if codec.startswith(("utf", "gb18030")) else 0
    replaced = text.count("\ufffd") - genuine
    foreign = len(_NON_ASCII.findall(text))
    foreign_limit = min(MAX_REPLACED_SHARE * foreign, MAX_REPLACED_OF_ALL * len(text))
    if replaced > max(MAX_REPLACED, foreign_limit, min(MAX_STRAY, MAX_STRAY_SHARE * len(text))):
        raise UndecodableError(f"{replaced} of {foreign} non-ASCII characters are unreadable as {codec}")
    return Decoded(text, codec, max(0, replaced))


# -- choosing -------------------------------------------------------------------------------------

_NON_ASCII = re.compile(r"[^\x00-\x7f]")
_PIECE = re.compile(rb"[\x80-\xff][^<>]{0,200}")
_RARE = frozenset(
    "cp866 mac-roman mac-cyrillic iso8859-3 iso8859-4 iso8859-6 iso8859-10 iso8859-13 iso8859-14 iso8859-16".split()
)
"""Charsets that pages hardly use and detectors like: believed only when declared."""
_GUESSES = ("cp949", "gb18030", "big5hkscs", "euc_jp", "cp932")
_ALPHABETS = ("cp1251", "koi8-u", "cp1252")
SURE = 0.95


def _best(raw: bytes, said: list[str]) -> Decoded:
    """The candidate whose reading of a sample looks most like writing."""
    sample = _sample(raw)
    detected = _detected(sample)
    likely = [*said, "utf-8", *((detected,) if detected not in _RARE else ())]
    candidates = list(dict.fromkeys([*likely, *_GUESSES, *_ALPHABETS, detected]))
    scores: dict[str, float] = {}
    for codec in candidates:
        sure = len(sample) > 4 * MANY and max(scores.values(), default=0) > SURE
        if sure and codec in _ALPHABETS and codec not in likely:
            continue  # that much text does not pass for Chinese, Japanese or Korean by accident
        text = sample.decode(codec, "replace")
        score, n_foreign = _score(text, codec), len(_NON_ASCII.findall(text))
        if score >= MIN_SCORE:
            scores[codec] = score + _bonus(codec, n_foreign, said, detected)
    for codec in sorted((codec for codec in scores if scores[codec] > 0), key=scores.__getitem__, reverse=True):
        try:
            return _bounded(raw, codec)
        except UndecodableError:
            continue
    try:
        return _bounded(raw, said[0] if said else "utf-8")
    except UndecodableError as error:
        tried = ", ".join(candidates)
        detail = f"declared: {', '.join(said) or 'nothing'}; detected: {detected}; tried: {tried}; {error}"
        raise UndecodableError(detail) from error


def _bonus(codec: str, n_foreign: int, said: list[str], detected: str) -> float:
    """What speaks for a charset beside the look of the text; a guess from one or two characters is hardly one."""
    if n_foreign < MIN_TO_GUESS and codec not in (*said, "utf-8", "cp1252"):
        return -1.0 if said else -0.3
    bonus = DETECTED_BONUS if codec == detected and codec not in _RARE else 0.0
    if codec not in said:
        return bonus
    if n_foreign <= FEW:
        return bonus + 2 * DECLARED_BONUS
    return bonus + (DEFAULT_BONUS if codec == "cp1252" and n_foreign >= MANY else DECLARED_BONUS)


def _sample(raw: bytes) -> bytes:
    """Text around non-ASCII bytes, up to 20 bytes before and 200 after; `<` and `>` are no second byte of any candidate."""
    pieces: list[bytes] = []
    size = end = 0
    for match in _PIECE.finditer(raw):
        before = raw[max(end, match.start() - 20) : match.start()]
        pieces.append(before[max(before.rfind(b"<"), before.rfind(b">")) + 1 :] + match.group())
        end = match.end()
        size += len(pieces[-1])
        if size >= SAMPLE_BYTES:
            break
    return b"\n".join(pieces)


def _detected(sample: bytes) -> str:
    from resiliparse.parse.encoding import detect_encoding

    found = codec_of(detect_encoding(sample)) or "cp1252"
    return "koi8-u" if found == "koi8-r" else found  # the same but for eight letters of Ukrainian


# -- what looks like writing ----------------------------------------------------------------------

_MARKS = frozenset("’‘“”„‚«»‹›–—…•·©®™°§€£¥¢¿¡½¼¾²³ªº×÷±№†‡‰′″←→↑↓■□▪●○◆◇★☆►▼▲✓\xa0\xad\u200b\u200c\u200d\u2028\ufeff")
"""Signs that stand at the edge of words on pages in any alphabet."""
_JOINERS = frozenset("’‘·–—‐‑\xad\u200b\u200c\u200d\u0640\ufeff")
"""Signs that stand inside words."""
_TOKEN = re.compile(r"[^\x00-\x26\x28-\x2c./:-@\[-`{-\x7f\s]+")
_WIDE_MARKS = re.compile("[\u2010-\u2027\u2030-\u203b\u3000-\u303f\uff01-\uff5e\uffe0-\uffe6]")


def _score(text: str, codec: str) -> float:
    """Share of the non-ASCII characters that stand where a writer would put them; 0 to 1."""
    foreign = len(_NON_ASCII.findall(text))
    if not foreign:
        return 0.0
    family = _FAMILY.get(codec)
    good = (
        _cjk_good(text, family)
        if family
        else float(sum(_plausible(t) for t in _TOKEN.findall(text) if not t.isascii()))
    )
    return max(0.0, good - text.count("\ufffd")) / foreign


@lru_cache(maxsize=8192)
def _plausible(token: str) -> int:
    """How many non-ASCII characters of a run without blanks are plausible where they stand."""
    n_foreign = sum(not char.isascii() for char in token)
    letters = [char for char in token if char.isalpha()]
    foreign = [char for char in letters if not char.isascii()]
    if len(letters) > 2 and len(foreign) > 0.6 * len(letters) and all(_script(char) == "latin" for char in letters):
        return 0
    bad = set()
    for i, char in enumerate(token):
        before, after = token[i - 1 : i], token[i + 1 : i + 2]
        if char.isalpha():
            if not before.isalpha() or (char.isascii() and before.isascii()):
                continue
            if before.islower() and char.isupper():
                return 0  # the sign of a Cyrillic code read as the other one
            if _script(before) != _script(char):
                bad |= {i - 1, i}
        elif not char.isascii() and not _at_home(char, inside=before.isalpha() and after.isalpha()):
            bad.add(i)
    return n_foreign - sum(not token[i].isascii() for i in bad)


def _at_home(char: str, *, inside: bool) -> bool:
    """Whether a sign that is no letter may stand here; combining marks and digits of a script always may."""
    if unicodedata.category(char)[0] in "MN" and char not in "²³¹¼½¾":
        return True
    return char in _JOINERS if inside else char in _MARKS or bool(_WIDE_MARKS.match(char))


def _script(char: str) -> str:
    code = ord(char)
    for end, script in (
        (0x250, "latin"),
        (0x400, "greek"),
        (0x530, "cyrillic"),
        (0x590, "armenian"),
        (0x600, "hebrew"),
    ):
        if code < end:
            return script
    return "latin" if 0x1E00 <= code < 0x1F00 else "other"


_FAMILY = {
    "gb18030": "zh", "hz": "zh", "big5hkscs": "zh", "cp932": "ja", "euc_jp": "ja", "iso2022_jp": "ja",
    "cp949": "ko", "iso2022_kr": "ko",
}  # fmt: skip
_KANA = re.compile("[\u3041-\u3096\u30a1-\u30fa]")
_HAN = re.compile("[\u3400-\u9fff\uf900-\ufaff]")
_HAN_IN_WORD = re.compile("(?<=[A-Za-z])[\u3400-\u9fff](?=[A-Za-z])")


def _cjk_good(text: str, family: str) -> float:
    """How many characters are among the everyday ones of a language written in Han characters or hangul."""
    everyday = _everyday(family)
    good = float(sum(map(everyday.__contains__, _NON_ASCII.findall(text))))
    good -= len(_HAN_IN_WORD.findall(text))
    if family == "ko":
        good *= 1.05  # Chinese cannot pass for Korean (half of it is no hangul), but Korean does pass for Chinese
    if family == "ja" and _HAN.search(text) and len(_KANA.findall(text)) < 0.05 * len(_HAN.findall(text)):
        good *= 0.7  # Japanese prose has kana in every sentence; what has none is Chinese in a related code
    return good


@lru_cache(maxsize=3)
def _everyday(family: str) -> frozenset[str]:
    """Everyday characters of a language, read off the order of the double-byte standards."""
    trails = range(0xA1, 0xFF)
    all_rows: dict[str, list[tuple[str, int, int, Iterable[int]]]] = {
        "zh": [("gb2312", 0xB0, 0xD7, trails), ("big5", 0xA4, 0xC5, (*range(0x40, 0x7F), *trails))],
        "ja": [("euc_jp", 0xA4, 0xA5, trails), ("euc_jp", 0xB0, 0xCF, trails)],
        "ko": [("euc_kr", 0xB0, 0xC8, trails)],
    }
    found = "".join(
        bytes((lead, trail)).decode(codec, "ignore")
        for codec, first, last, trail_range in all_rows[family]
        for lead in range(first, last + 1)
        for trail in trail_range
    )
    wide = "".join(chr(code) for code in range(0x2010, 0xFFFF) if _WIDE_MARKS.match(chr(code)))
    return frozenset(found + wide) | _MARKS
