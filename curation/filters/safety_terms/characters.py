"""What each character is in the view that terms are looked for in.

The view of a text holds its letters and digits, and between them separators, after these steps:

1. NFKC and simple case folding of each character.
2. Controls, default-ignorable characters and variation selectors vanish.
3. A combining mark of Latin, Cyrillic, Greek, Arabic, Hebrew or kana joins the character before it where Unicode has a
   character for both (in either order of two marks), and vanishes elsewhere. So has a Hangul jamo. Marks of other scripts
   (Thai, Indic) are letters.
4. Letters that look like a Latin letter become it (`homoglyphs.tsv`); the character keeps from which script it came, so
   that no word that is all Cyrillic is taken for an English one. A letter with an accent follows its base: Greek
   alpha with tonos becomes Latin a with acute.
5. Traditional Han characters become the Simplified one, where there is one for a single character (from OpenCC).
6. Everything else is a separator: a blank, a newline, a sign that ends or cuts a sentence, or another sign. A few signs may
   also stand for letters (@ for a).

One int64 a code point holds all that, see the constants. Made from lists in 0.2 s, once a process.
"""

from __future__ import annotations

import unicodedata
from functools import cache
from importlib.resources import files
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from curation.text.normal import COUNT_AT, FORM_BLOCKS, FORM_INDEX, POOL, SEVERAL, VALUE_AT
from curation.text.tables import KIND_BLOCKS, KIND_INDEX, N_CODE_POINTS, CharClass, Role, Script, two_level

__all__ = [
    "ANY_SCRIPT",
    "BLANK",
    "CODE",
    "DIGIT",
    "GATE_AT",
    "GATE_BITS",
    "GATE_ODD",
    "JAMO",
    "KIND_AT",
    "LETTER",
    "MANY_FORMS",
    "MARK",
    "NEWLINE",
    "NONE",
    "SCRIPT_AT",
    "SENTENCE",
    "SEPARATOR",
    "SIGN",
    "SOLID",
    "STAND_INS",
    "TYPE_AT",
    "UNSPACED",
    "WIDE",
    "Characters",
    "characters",
    "composites",
    "gate_of",
    "homoglyphs",
    "simplified",
]

CODE = (1 << 21) - 1
"""Bits of the code point in the view."""
KIND_AT = 21
LETTER, UNSPACED, DIGIT, SIGN = range(4)
"""What a solid is: a letter of a script with blanks between words, one of a script without (or Hangul), a digit, a sign that
may stand for a letter."""
SCRIPT_AT = 23
LATIN, CYRILLIC, GREEK, OTHER_SCRIPT = 1, 2, 4, 8
ANY_SCRIPT = LATIN | CYRILLIC | GREEK | OTHER_SCRIPT
WIDE = 1 << 27
"""A Han, kana or Hangul character: one unit; any other letter or digit is a third."""
SENTENCE, NEWLINE, BLANK = 1 << 28, 1 << 29, 1 << 30
"""Of separators and SIGNs: it ends or cuts a sentence; it is a line break; it is a blank or line break."""
GATE_AT, GATE_BITS = 40, 20
"""Of solids: a hash of the letter, the same for a digit or sign that may stand for it; see `gate_of`."""
TYPE_AT = 32
NONE, SOLID, SEPARATOR, MARK, JAMO, MANY_FORMS = range(6)
"""Vanishes; letter, digit or SIGN; separator; mark that may join; Hangul vowel or final that may join; several, in the pool."""

STAND_INS: dict[str, str] = {
    "0": "o",
    "1": "il",
    "3": "e",
    "4": "a",
    "5": "s",
    "7": "t",
    "@": "a",
    "$": "s",
    "!": "i",
    "|": "l",
    "+": "t",
    "\u20ac": "e",
    "\u00a3": "l",
    "\u00a5": "y",
}
"""Digits and signs, and the letters for which they may stand."""

GATE_ODD = 0x9E3B1
SENTENCE_SIGNS = "!,:;?\u3001\u3002\u060c\u061b\u061f\u0964\u0965\u1362\u104a\u104b"
NOT_SEEN = (0x34F, 0x115F, 0x1160, 0x17B4, 0x17B5, *range(0x180B, 0x1810), 0x200B, 0x3164, 0xFFA0)
JOINING_MARKS = (
    (0x300, 0x36F),
    (0x483, 0x489),
    (0x591, 0x5C7),
    (0x610, 0x61A),
    (0x64B, 0x65F),
    (0x670, 0x670),
    (0x6D6, 0x6ED),
    (0x8D3, 0x8FF),
    (0x1AB0, 0x1AFF),
    (0x1DC0, 0x1DFF),
    (0x20D0, 0x20FF),
    (0x302A, 0x302D),
    (0x3099, 0x309A),
    (0xFE20, 0xFE2F),
)
UNSPACED_MARKS = (
    (0xE30, 0xEFF),
    (0x1000, 0x109F),
    (0x1780, 0x17FF),
    (0x1A20, 0x1AAF),
    (0x1B00, 0x1B7F),
    (0xA980, 0xAA7F),
)
WIDE_SCRIPTS = (Script.HAN, Script.HIRAGANA, Script.KATAKANA, Script.HANGUL, Script.BOPOMOFO)

Table = npt.NDArray[np.int64]


class Characters(NamedTuple):
    """Two-level table of the view: `blocks[places[c >> 6] << 6 | c & 63]`, and what belongs to it."""

    places: npt.NDArray[np.uint16]
    blocks: Table
    pool: Table
    """Entries of code points with MANY_FORMS, whose bits from 32 + 8 on say where, and bits 0 to 20 how many."""
    pairs: Table
    """int64[n], sorted: view character << 21 | mark."""
    joined: Table
    """int64[n]: the entry that a pair becomes."""


def gate_of(codes: Table) -> Table:
    """int64[n]: hashes of letters, GATE_BITS wide."""
    same = codes.copy()
    same[codes == ord("l")] = ord("i")  # 1 may be either, and so may what else stands for l
    for sign, letters in STAND_INS.items():
        same[codes == ord(sign)] = ord("i" if letters == "l" else letters[0])
    return same * GATE_ODD & (1 << GATE_BITS) - 1


def _flat(index: npt.NDArray[np.uint16], blocks: npt.NDArray[np.generic]) -> Table:
    return blocks.reshape(-1, 64)[index].reshape(-1).astype(np.int64)


@cache
def homoglyphs() -> dict[int, tuple[int, bool]]:
    """Code point -> the Latin letter that it looks like, and whether it may be read as a letter of any script."""
    found: dict[int, tuple[int, bool]] = {}
    for line in files(__package__).joinpath("homoglyphs.tsv").read_text("utf-8").splitlines():
        if line.startswith("#"):
            continue
        latin, reads, letters = line.split("\t")
        if latin == "a-z":
            found |= {int(letters, 16) + i: (ord("a") + i, True) for i in range(26)}
        else:
            found |= {ord(letter): (ord(latin), reads == "any") for letter in letters.split()}
    return found


@cache
def simplified() -> dict[int, int]:
    """Traditional Han character -> Simplified, where one stands for one: some 3,000."""
    from opencc import OpenCC

    kinds = _flat(KIND_INDEX, KIND_BLOCKS)
    han = np.flatnonzero(kinds >> 8 == Script.HAN).tolist()
    signs = [chr(code) for code in han]
    others = OpenCC("t2s").convert("\n".join(signs)).split("\n")
    return {ord(one): ord(other) for one, other in zip(signs, others, strict=True) if len(other) == 1 and one != other}


def _is_in(codes: Table, ranges: tuple[tuple[int, int], ...]) -> npt.NDArray[np.bool_]:
    found = np.zeros(len(codes), np.bool_)
    for first, last in ranges:
        found |= (codes >= first) & (codes <= last)
    return found


@cache
def composites() -> dict[tuple[int, int], int]:
    """Character and joining mark -> the character that Unicode has for both, in either order of two marks. Not folded."""
    marks = {mark for first, last in JOINING_MARKS for mark in range(first, last + 1)}
    pairs: dict[tuple[int, int], int] = {}
    for code in (*range(0xC0, 0x3400), 0xFB1D, *range(0xFB2A, 0xFB50)):
        parts = unicodedata.decomposition(chr(code)).split()
        if len(parts) == 2 and parts[0][0] != "<" and int(parts[1], 16) in marks:
            pairs[int(parts[0], 16), int(parts[1], 16)] = code
    of = {code: parts for parts, code in pairs.items()}
    for (base, second), code in list(pairs.items()):
        if base in of:
            letter, first = of[base]
            if (other := pairs.get((letter, second))) is not None:
                pairs.setdefault((other, first), code)
    return pairs


def _skeletons(folds: Table) -> Table:
    """int64[N_CODE_POINTS]: what each folded character becomes: look-alike letters and Traditional Han."""
    skeletons = np.arange(N_CODE_POINTS)
    alike = {int(folds[code]): latin for code, (latin, _) in homoglyphs().items()}
    for code, latin in (alike | simplified()).items():
        skeletons[code] = latin
    pairs = {(int(folds[a]), b): int(folds[c]) for (a, b), c in composites().items()}
    parts = {code: pair for pair, code in sorted(pairs.items(), key=lambda item: item[1])}

    def skeleton(code: int) -> int:
        if code not in parts or skeletons[code] != code:
            return int(skeletons[code])
        base, mark = parts[code]
        plain = skeleton(base)
        return code if plain == base else pairs.get((plain, mark), plain)

    for code in parts:
        skeletons[code] = skeleton(code)
    return skeletons


def _entries(folds: Table) -> Table:
    """int64[N_CODE_POINTS]: the entry of each character after NFKC and case folding."""
    kinds, codes = _flat(KIND_INDEX, KIND_BLOCKS), np.arange(N_CODE_POINTS)
    classes, roles, scripts = kinds & 15, kinds >> 4 & 15, kinds >> 8
    letter, digit, mark = classes == CharClass.LETTER, classes == CharClass.NUMBER, classes == CharClass.MARK
    unspaced = letter & ((roles == Role.UNSPACED) | (scripts == Script.HANGUL)) | mark & _is_in(codes, UNSPACED_MARKS)
    entries = np.where(letter | digit | mark, SOLID, SEPARATOR) << TYPE_AT
    entries |= np.where(digit, DIGIT, np.where(unspaced, UNSPACED, LETTER)) << KIND_AT
    for script, bit in ((Script.LATIN, LATIN), (Script.CYRILLIC, CYRILLIC), (Script.GREEK, GREEK)):
        entries[letter & (scripts == script)] |= bit << SCRIPT_AT
    entries[letter & np.isin(scripts, (Script.ARMENIAN, Script.CHEROKEE))] |= OTHER_SCRIPT << SCRIPT_AT
    entries[letter & np.isin(scripts, WIDE_SCRIPTS)] |= WIDE
    entries |= _skeletons(folds)
    for code, (latin, any_script) in homoglyphs().items():
        entry = SOLID << TYPE_AT | LETTER << KIND_AT | latin
        own = int(entries[int(folds[code])]) & ANY_SCRIPT << SCRIPT_AT
        entries[int(folds[code])] = entry | (ANY_SCRIPT << SCRIPT_AT if any_script or not own else own)
    entries[classes == CharClass.NEWLINE] |= NEWLINE | BLANK
    entries[classes == CharClass.SPACE] |= BLANK
    for sign in SENTENCE_SIGNS:
        entries[ord(sign)] |= SENTENCE
    for sign in STAND_INS:
        if not sign.isdigit():
            entries[ord(sign)] = int(entries[ord(sign)]) & SENTENCE | SOLID << TYPE_AT | SIGN << KIND_AT | ord(sign)
    joining = np.flatnonzero(_is_in(codes, JOINING_MARKS) & mark)
    entries[joining] = MARK << TYPE_AT | joining
    jamo = np.flatnonzero(_is_in(codes, ((0x1161, 0x1175), (0x11A8, 0x11C2))))
    entries[jamo] = JAMO << TYPE_AT | WIDE | UNSPACED << KIND_AT | jamo
    entries[classes == CharClass.CONTROL] = NONE
    solid = np.isin(entries >> TYPE_AT, (SOLID, JAMO))
    entries[solid] |= gate_of(entries[solid] & CODE) << GATE_AT
    return entries


@cache
def characters() -> Characters:
    """The view of every character."""
    forms, codes = _flat(FORM_INDEX, FORM_BLOCKS), np.arange(N_CODE_POINTS)
    several = forms & SEVERAL != 0
    folds = np.where(several, codes, codes + (forms >> VALUE_AT))
    of_folded = _entries(folds)
    entries = of_folded[folds]
    rows = np.flatnonzero(several)
    counts, starts = forms[rows] >> COUNT_AT & 0xFF, forms[rows] >> VALUE_AT
    entries[rows] = np.where(counts == 0, NONE, MANY_FORMS << TYPE_AT | starts << TYPE_AT + 8 | counts)
    never = [code for first, last in ((0xFE00, 0xFE0F), (0xE0000, 0xE0FFF)) for code in range(first, last + 1)]
    format_signs = [code for code in (*range(0x20000), 0xE0001) if unicodedata.category(chr(code)) == "Cf"]
    entries[[*NOT_SEEN, *never, *format_signs]] = NONE
    pairs: dict[int, int] = {}
    for (base, mark), code in composites().items():
        joined, plain = int(entries[code]), int(entries[base])
        if joined >> TYPE_AT & 0xFF == plain >> TYPE_AT & 0xFF == SOLID:
            pairs.setdefault((plain & CODE) << KIND_AT | mark, joined)
    keys = sorted(pairs)
    places, blocks = two_level(entries)
    assert places[1] == places[0] + 1, "ASCII must lie in one piece"
    joined_entries = np.array([pairs[key] for key in keys], np.int64)
    return Characters(places, blocks, of_folded[folds[POOL]], np.array(keys, np.int64), joined_entries)
