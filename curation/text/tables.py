"""What each character is: its class, its script, and what it does in a word.

Two committed files beside this module hold it as ranges: `characters.tsv` and `case_folding.tsv`,
written by tools/make_unicode_tables.py for the Unicode version in their first line, so that text is
judged alike whatever Python runs. They are unrolled once, at import, in about 12 ms, into two-level
tables of 64 characters a block: the blocks that ordinary text touches fit the first-level cache.

docs/reference/text.md explains every class, script and role.
"""

from __future__ import annotations

from enum import IntEnum
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt

__all__ = [
    "FOLD_BLOCKS",
    "FOLD_INDEX",
    "KIND_BLOCKS",
    "KIND_INDEX",
    "UNICODE_VERSION",
    "UNSPACED_SCRIPTS",
    "CharClass",
    "Role",
    "Script",
]


class CharClass(IntEnum):
    """Every code point has one class. Columns of `class_counts`."""

    OTHER = 0
    LETTER = 1
    MARK = 2
    NUMBER = 3
    PUNCTUATION = 4
    SYMBOL = 5
    SPACE = 6
    NEWLINE = 7
    CONTROL = 8
    EMOJI = 9


class Role(IntEnum):
    """What a character does in a word."""

    BREAK = 0
    LETTER = 1
    DIGIT = 2
    UNSPACED = 3
    MARK = 4
    IGNORABLE = 5
    JOINER = 6
    NUMBER_JOINER = 7
    HEBREW_JOINER = 8


class Script(IntEnum):
    """Scripts of letters. Columns of `script_counts`; numbers are never reused."""

    COMMON = 0
    OTHER = 1
    LATIN = 2
    GREEK = 3
    CYRILLIC = 4
    ARMENIAN = 5
    HEBREW = 6
    ARABIC = 7
    SYRIAC = 8
    THAANA = 9
    NKO = 10
    DEVANAGARI = 11
    BENGALI = 12
    GURMUKHI = 13
    GUJARATI = 14
    ORIYA = 15
    TAMIL = 16
    TELUGU = 17
    KANNADA = 18
    MALAYALAM = 19
    SINHALA = 20
    THAI = 21
    LAO = 22
    TIBETAN = 23
    MYANMAR = 24
    GEORGIAN = 25
    HANGUL = 26
    ETHIOPIC = 27
    CHEROKEE = 28
    CANADIAN_ABORIGINAL = 29
    KHMER = 30
    MONGOLIAN = 31
    HIRAGANA = 32
    KATAKANA = 33
    BOPOMOFO = 34
    HAN = 35
    YI = 36
    TAI_LE = 37
    NEW_TAI_LUE = 38
    TAI_THAM = 39
    TAI_VIET = 40
    BALINESE = 41
    JAVANESE = 42
    SUNDANESE = 43
    CHAM = 44
    OL_CHIKI = 45
    TIFINAGH = 46
    VAI = 47
    MEETEI_MAYEK = 48
    ADLAM = 49
    LISU = 50
    CHAKMA = 51


UNSPACED_SCRIPTS = (
    Script.HAN,
    Script.HIRAGANA,
    Script.KATAKANA,
    Script.BOPOMOFO,
    Script.YI,
    Script.THAI,
    Script.LAO,
    Script.KHMER,
    Script.MYANMAR,
    Script.TAI_LE,
    Script.NEW_TAI_LUE,
    Script.TAI_THAM,
    Script.TAI_VIET,
    Script.JAVANESE,
    Script.BALINESE,
)
"""Scripts written without a blank between words."""

N_CODE_POINTS = 0x110000
BLOCK = 64
FOLDER = Path(__file__).resolve().parent

Flat = npt.NDArray[np.int32]
Number = TypeVar("Number", np.int32, np.int64)


def table_rows(name: str) -> tuple[str, list[list[str]]]:
    """Unicode version and cells of a table file."""
    lines = (FOLDER / name).read_text("utf-8").splitlines()
    version = lines[0].removeprefix("# Unicode ").split(". ")[0]
    return version, [line.split("\t") for line in lines if not line.startswith("#")]


def _kinds() -> tuple[str, Flat]:
    """Unicode version and int32[N_CODE_POINTS]: class | role << 4 | script << 8."""
    classes = {name.lower(): int(value) for name, value in CharClass.__members__.items()}
    roles = {name.lower(): int(value) << 4 for name, value in Role.__members__.items()}
    scripts = {name.lower(): int(value) << 8 for name, value in Script.__members__.items()}
    kinds = np.zeros(N_CODE_POINTS, np.int32)
    version, rows = table_rows("characters.tsv")
    for first, last, char_class, script, role in rows:
        kinds[int(first, 16) : int(last, 16) + 1] = classes[char_class] | roles[role] | scripts[script.lower()]
    return version, kinds


def _folds() -> Flat:
    """int32[N_CODE_POINTS]: distance from each code point to what simple case folding makes of it."""
    folds = np.zeros(N_CODE_POINTS, np.int32)
    for first, last, step, delta in table_rows("case_folding.tsv")[1]:
        folds[int(first, 16) : int(last, 16) + 1 : int(step)] = int(delta)
    return folds


def two_level(flat: npt.NDArray[Number]) -> tuple[npt.NDArray[np.uint16], npt.NDArray[Number]]:
    """`flat[c] == blocks[index[c >> 6] << 6 | c & 63]`, equal blocks stored once."""
    blocks = flat.reshape(-1, BLOCK)
    uniform = (blocks == blocks[:, :1]).all(axis=1)
    values, index = np.unique(np.where(uniform, blocks[:, 0], 0), return_inverse=True)
    kept: list[npt.NDArray[Number]] = list(np.repeat(values, BLOCK).reshape(-1, BLOCK))
    numbers: dict[bytes, int] = {}
    for i in np.flatnonzero(~uniform):
        index[i] = numbers.setdefault(blocks[i].tobytes(), len(kept) + len(numbers))
    flat_kept = np.concatenate([*kept, np.frombuffer(b"".join(numbers), flat.dtype)])
    return index.astype(np.uint16), flat_kept


UNICODE_VERSION, _flat_kinds = _kinds()

KIND_INDEX, _kind_blocks = two_level(_flat_kinds)
KIND_BLOCKS: npt.NDArray[np.uint16] = _kind_blocks.astype(np.uint16)
"""uint16[n_blocks * 64]: class | role << 4 | script << 8 of a character."""

FOLD_INDEX, FOLD_BLOCKS = two_level(_folds())
"""int32[n_blocks * 64]: distance to the folded character."""

del _flat_kinds, _kind_blocks
