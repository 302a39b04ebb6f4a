"""The character tables: fresh, well-formed, and true to Unicode's own properties."""

from __future__ import annotations

import importlib.util
import unicodedata
from functools import cache
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import regex  # type: ignore[import-untyped]

from curation.text import UNICODE_VERSION, UNSPACED_SCRIPTS, CharClass, Role, Script
from curation.text.tables import FOLD_BLOCKS, FOLD_INDEX, KIND_BLOCKS, KIND_INDEX, N_CODE_POINTS

GENERATOR = Path(__file__).resolve().parents[4] / "tools" / "make_unicode_tables.py"

CODES = np.arange(N_CODE_POINTS)
KINDS = KIND_BLOCKS[KIND_INDEX[CODES >> 6].astype(np.int64) << 6 | CODES & 63].astype(np.int64)
FOLDS = FOLD_BLOCKS[FOLD_INDEX[CODES >> 6].astype(np.int64) << 6 | CODES & 63]
CLASS, ROLE, SCRIPT = KINDS & 15, KINDS >> 4 & 15, KINDS >> 8

GIVEN_TO_A_SCRIPT = frozenset("\u0640\u3006\u303c\u3031\u3032\u3033\u3034\u3035\u30fc\uff70\uff9e\uff9f\ua9cf")
"""Letters that are Common in Unicode, given to the one writing system that uses them (or, the tatweel, to Arabic)."""


@cache
def generator() -> ModuleType:
    """The module that writes the tables."""
    spec = importlib.util.spec_from_file_location("make_unicode_tables", GENERATOR)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def assigned() -> dict[int, str]:
    """Category of every code point that the running Python knows."""
    categories = ((code, unicodedata.category(chr(code))) for code in range(N_CODE_POINTS))
    return {code: category for code, category in categories if category not in ("Cn", "Co", "Cs")}


@cache
def everything() -> str:
    """All of Unicode."""
    return "".join(chr(code) for code in range(N_CODE_POINTS) if not 0xD800 <= code < 0xE000)


def having(prop: str) -> set[int]:
    """Code points with a property, as the regex package has it."""
    return {ord(char) for char in regex.findall(rf"\p{{{prop}}}", everything())}


@pytest.mark.skipif(unicodedata.unidata_version != UNICODE_VERSION, reason="Python has another Unicode version")
def test_committed_tables_are_what_the_generator_writes() -> None:
    """Run python tools/make_unicode_tables.py after a change of it."""
    for path, content in generator().files().items():
        assert content == path.read_text("utf-8"), f"{path.name} is stale"


@pytest.mark.parametrize("script", [s for s in Script if s not in (Script.COMMON, Script.OTHER)])
def test_scripts_are_unicode_scripts(script: Script) -> None:
    """Letters have the script that Unicode's Script property gives them, but for a list of exceptions."""
    letters = set(CODES[int(script) == SCRIPT].tolist())
    expected = {code for code in having(f"Script={script.name}") if CLASS[code] == CharClass.LETTER}

    assert {chr(code) for code in (letters ^ expected) & assigned().keys()} <= GIVEN_TO_A_SCRIPT


def test_classes_are_general_categories() -> None:
    """Every class but four is a group of Unicode's general categories; the exceptions are listed in the reference."""
    groups = {"L": CharClass.LETTER, "M": CharClass.MARK, "N": CharClass.NUMBER, "P": CharClass.PUNCTUATION}
    ignorable = having("Default_Ignorable_Code_Point")
    for code in assigned().keys() - ignorable - {0x3007}:
        expected = groups.get(assigned()[code][0])
        assert expected is None or expected == CLASS[code], hex(code)
    signs = {int(CLASS[code]) for code, category in assigned().items() if category[0] == "S"}
    assert signs == {CharClass.SYMBOL, CharClass.EMOJI, CharClass.OTHER}


def test_ignorable_characters_are_default_ignorable() -> None:
    """What does not split a word is Unicode's Default_Ignorable_Code_Point, without the zero-width space."""
    assert having("Default_Ignorable_Code_Point") - {0x200B} == set(CODES[ROLE == Role.IGNORABLE].tolist())


def test_emoji_have_their_class() -> None:
    """What is shown as an emoji by default has the class, those of later versions of Unicode too."""
    assert having("Emoji_Presentation") <= set(CODES[CLASS == CharClass.EMOJI].tolist())


def test_blanks_are_white_space() -> None:
    """Spaces and the newline are Unicode's White_Space, and the zero-width space."""
    blank = set(CODES[(CLASS == CharClass.SPACE) | (CLASS == CharClass.NEWLINE)].tolist())

    assert having("White_Space") | {0x200B} == blank
    assert CODES[CLASS == CharClass.NEWLINE].tolist() == [0x0A]


def test_unspaced_letters_are_of_unspaced_scripts() -> None:
    """A letter is a word of its own exactly in the scripts written without blanks, and some that have no name here."""
    letters = CLASS == CharClass.LETTER
    unspaced = letters & np.isin(SCRIPT, UNSPACED_SCRIPTS)
    other = letters & (SCRIPT == Script.OTHER)

    assert (ROLE[unspaced] == Role.UNSPACED).all()
    assert (ROLE[letters & ~unspaced & ~other] == Role.LETTER).all()
    assert set(ROLE[other].tolist()) == {Role.LETTER, Role.UNSPACED}


def test_words_are_made_of_letters_digits_and_marks() -> None:
    """Roles follow from classes, but for joiners and a few signs that stand over letters."""
    role_of = {CharClass.MARK: Role.MARK, CharClass.NUMBER: Role.DIGIT}
    for char_class, role in role_of.items():
        assert set(ROLE[char_class == CLASS].tolist()) == {role}
    signs = {0x055B, 0x055C, 0x055E, 0x180A}
    assert set(CODES[(ROLE == Role.MARK) & (CLASS != CharClass.MARK)].tolist()) == signs
    assert (CLASS[ROLE >= Role.JOINER] == CharClass.PUNCTUATION).all()


def test_folding() -> None:
    """Folding twice is folding once, keeps the role, needs at most 3 bytes for 2, and spares U+3000 to U+9FFF."""
    changed = CODES[FOLDS != 0]
    folded = changed + FOLDS[changed]

    assert not FOLDS[folded].any()
    assert set(ROLE[changed].tolist()) <= {Role.LETTER, Role.DIGIT, Role.MARK, Role.BREAK}
    for code, to in zip(changed.tolist(), folded.tolist(), strict=True):
        assert 2 * len(chr(to).encode()) <= 3 * len(chr(code).encode())
        assert chr(code).casefold() == chr(to).casefold()
    assert not FOLDS[0x3000:0xA000].any()


def test_every_script_has_letters() -> None:
    """No column of script_counts is always empty, and the numbers are the columns."""
    assert [int(script) for script in Script] == list(range(len(Script)))
    assert set(SCRIPT[CLASS == CharClass.LETTER].tolist()) == set(range(len(Script)))
    assert (SCRIPT[CLASS != CharClass.LETTER] == Script.COMMON).all()
