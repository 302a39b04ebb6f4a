"""What each character is to the measures of signs and lines: one number a code point.

Made from the tables of `curation.text` and from the lists below, in about 20 ms at import. Ends of sentences are
Unicode's Sentence_Terminal (PropList.txt), the ellipses, the Greek question mark and the Tibetan shads.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np
import numpy.typing as npt

from curation.filters.length import LETTERS_PER_UNIT
from curation.text.decode import decode
from curation.text.jit import inlined
from curation.text.memory import Int
from curation.text.tables import (
    FOLD_BLOCKS,
    FOLD_INDEX,
    KIND_BLOCKS,
    KIND_INDEX,
    CharClass,
    Script,
    two_level,
)

__all__ = [
    "BRACKETS",
    "BULLET",
    "BULLETS",
    "CLOSER",
    "CLOSERS",
    "COMMON_PUNCTUATION",
    "ELLIPSES",
    "END",
    "SENTENCE_ENDS",
    "WIDE_END",
    "WIDTH",
    "WIDTHS",
    "WIDTH_UNIT",
    "Sign",
    "sign_at",
    "sign_of",
]


class Sign(IntEnum):
    """Every code point is one of these."""

    BLANK = 0
    LETTER = 1
    """A letter without case, of a script without case or of none."""
    UPPER = 2
    LOWER = 3
    MARK = 4
    NUMBER = 5
    COMMON = 6
    """Punctuation that prose has in any language."""
    OTHER = 7
    """What is left: symbols, emoji, unassigned and private characters, U+FFFD."""


BRACKET, END, WIDE_END, CLOSER, BULLET, EMOJI, WATCHED, WIDTH = 8, 16, 32, 64, 128, 256, 512, 1024
"""Bits beside the sign. WIDE_END: no blank need follow this end of a sentence. WATCHED: something else counts it.
From WIDTH on: which of `WIDTHS` it has."""

WIDTH_UNIT = 44
"""Parts of the width of an English character, so that all widths are whole."""
WORD_WIDTH = 6
"""Characters of an English word and the blank after it."""
_LETTERS = sorted(set(LETTERS_PER_UNIT.values()))
WIDTHS = np.array([WIDTH_UNIT, 0, *(round(WIDTH_UNIT * WORD_WIDTH / letters) for letters in _LETTERS)])
"""int64: what a character says, in parts of an English one: any other, a mark, a letter of each kind of unspaced script."""

COMMON_PUNCTUATION = (
    "!\"%&'(),-./:;?"  # ASCII
    "\u00a1\u00ab\u00b7\u00bb\u00bf\u2010\u2011\u2012\u2013\u2014\u2015\u2018\u2019\u201a\u201c\u201d\u201e\u2026\u2032\u2033\u2039\u203a"
    "\u3001\u3002\u3008\u3009\u300a\u300b\u300c\u300d\u300e\u300f\u3010\u3011\u3014\u3015\u301c\u30fb\u22ef"
    "\uff01\uff02\uff05\uff06\uff07\uff08\uff09\uff0c\uff0d\uff0e\uff0f\uff1a\uff1b\uff1f\uff5e\uff61\uff62\uff63\uff64\uff65"
    "\u0387\u037e\u055a\u055b\u055c\u055d\u055e\u058a\u0589\u05be\u05f3\u05f4\u060c\u061b\u061f\u066a\u066b\u066c\u06d4\u0964\u0965\u0970"
    "\u0e5a\u0e5b\u0f0b\u0f0c\u0f0d\u0f0e\u104a\u104b\u1361\u1362\u1363\u1364\u1365\u1366\u1367\u1368\u17d4\u17d5\u17d6\u17d9\u17da"
)
"""What does not count as an odd sign. Letters, marks and numbers never do."""

BRACKETS = "()[]{}\uff08\uff09\uff3b\uff3d\uff5b\uff5d\u3010\u3011\u3014\u3015\u3016\u3017"
"""Brackets, not quotation marks: the corner and angle brackets of Chinese and Japanese quote."""

_SENTENCE_TERMINAL = (
    "!.?\u0589\u061d\u061e\u061f\u06d4\u0700\u0701\u0702\u07f9\u0837\u0839\u083d\u083e\u0964\u0965\u104a\u104b\u1362\u1367\u1368"
    "\u166e\u1735\u1736\u17d4\u17d5\u1803\u1809\u1944\u1945\u1aa8\u1aa9\u1aaa\u1aab\u1b5a\u1b5b\u1b5e\u1b5f\u1b7d\u1b7e\u1c3b\u1c3c"
    "\u1c7e\u1c7f\u203c\u203d\u2047\u2048\u2049\u2e2e\u2e3c\u3002\ua4ff\ua60e\ua60f\ua6f3\ua6f7\ua876\ua877\ua8ce\ua8cf\ua92f\ua9c8"
    "\ua9c9\uaa5d\uaa5e\uaa5f\uaaf0\uaaf1\uabeb\ufe52\ufe56\ufe57\uff01\uff0e\uff1f\uff61\U00011141\U00011142\U00011143"
)
ELLIPSES = "\u2026\u22ef\ufe19"
"""Signs that are an ellipsis by themselves."""
SENTENCE_ENDS = _SENTENCE_TERMINAL + "\u2026\u22ef\u037e\u0f0d\u0f0e"
"""Sentence_Terminal of every script that the web is written in, the ellipses, the Greek question mark, the shads."""
WIDE_ENDS = "\u203c\u2047\u2048\u2049\u3002\ufe52\ufe56\ufe57\uff01\uff0e\uff1f\uff61"
"""Ends after which East Asian text goes on without a blank."""
CLOSERS = (
    "\"'`*_)]}\u00ab\u00bb\u2018\u2019\u201c\u201d\u2039\u203a\u3009\u300b\u300d\u300f\u3011"
    "\u3015\u3017\uff02\uff07\uff09\uff3d\uff5d\uff63"
)
"""Signs that may stand between the end of a sentence and the blank after it: quotation marks, brackets, Markdown."""
BULLETS = (
    "*+-\u2013\u2022\u2023\u2043\u204c\u204d\u2219\u25a0\u25a1\u25aa\u25ab\u25b2\u25b6\u25b8\u25ba\u25bb\u25bc\u25c6\u25c7\u25ca\u25cb\u25cf\u25d8"
    "\u25e6\u2605\u2606\u2192\u2610\u2611\u2612\u2660\u2713\u2714\u2716\u2717\u2718\u271a\u2726\u2727\u2756\u2794\u279c\u27a2\u27a4\u29be\u29bf"
    "\u00b7\u30fb\u203b\uff65\uf0b7\uf0a7\uf076\uf0d8"
)
"""Signs that a list item may begin with. The em dash is none: in Romance and Slavic languages it opens speech."""
SPACED_BULLETS = "*+-\u2013"
"""Bullets only where a blank follows."""


def _signs() -> npt.NDArray[np.int32]:
    """int32[n_code_points]: sign and bits of each."""
    codes = np.arange(0x110000)
    kinds = KIND_BLOCKS[KIND_INDEX[codes >> 6].astype(np.int64) << 6 | codes & 63].astype(np.int64)
    folds = FOLD_BLOCKS[FOLD_INDEX[codes >> 6].astype(np.int64) << 6 | codes & 63].astype(np.int64)
    classes = kinds & 15
    signs = np.full(len(codes), int(Sign.OTHER), np.int32)
    for char_class, sign in (
        (CharClass.SPACE, Sign.BLANK),
        (CharClass.NEWLINE, Sign.BLANK),
        (CharClass.CONTROL, Sign.BLANK),
        (CharClass.LETTER, Sign.LETTER),
        (CharClass.MARK, Sign.MARK),
        (CharClass.NUMBER, Sign.NUMBER),
    ):
        signs[classes == char_class] = sign
    # Cherokee folds small letters to capitals, and is written in capitals: it is left without case.
    cased = (classes == CharClass.LETTER) & (kinds >> 8 != Script.CHEROKEE)
    small = np.zeros(len(codes), np.bool_)
    small[[ord(letter) for letter in SMALL_THAT_FOLD]] = True
    upper = cased & (folds != 0) & ~small
    signs[upper] = Sign.UPPER
    lower = small.copy()
    lower[(codes + folds)[upper]] = True
    signs[lower & cased] = Sign.LOWER
    signs[[ord(sign) for sign in COMMON_PUNCTUATION]] = Sign.COMMON
    for bit, members in (
        (BRACKET, BRACKETS),
        (END, SENTENCE_ENDS),
        (WIDE_END, WIDE_ENDS),
        (CLOSER, CLOSERS),
        (BULLET, BULLETS),
    ):
        signs[[ord(sign) for sign in members]] |= bit
    signs[classes == CharClass.EMOJI] |= EMOJI
    signs[[ord(sign) for sign in "#{}:wW.\u3002\u30fb" + ELLIPSES]] |= WATCHED
    signs[classes == CharClass.MARK] |= WIDTH
    for script, letters in LETTERS_PER_UNIT.items():
        signs[(kinds >> 8 == script) & (classes == CharClass.LETTER)] |= WIDTH * (2 + _LETTERS.index(letters))
    return signs


SMALL_THAT_FOLD = (
    "\u00b5\u017f\u03c2\u03d0\u03d1\u03d5\u03d6\u03f0\u03f1\u03f5\u1e9b\u1fbe"
    "\u1c80\u1c81\u1c82\u1c83\u1c84\u1c85\u1c86\u1c87\u1c88"
)
"""Small letters that case folding replaces by other small letters."""

SIGN_INDEX, _blocks = two_level(_signs())
SIGN_BLOCKS: npt.NDArray[np.uint16] = _blocks.astype(np.uint16)
"""uint16[n_blocks * 64]: sign and bits of a character."""
del _blocks


@inlined
def sign_of(code: Int) -> Int:
    """Sign and bits of a code point."""
    block = np.int64(SIGN_INDEX[np.uint64(code >> 6)])
    return np.int64(SIGN_BLOCKS[np.uint64(block << 6 | code & 63)])


@inlined
def sign_at(p: Int, end: Int) -> tuple[Int, Int]:
    """Sign with bits, and bytes, of the character at address `p` < `end`."""
    code, length = decode(p, end)
    return sign_of(code), length
