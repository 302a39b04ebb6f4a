"""Read the language profiles of langdetect, and how it reads characters, without importing it.

langdetect (Apache-2.0; a port of Nakatani Shuyo's language-detection) ships one JSON file for each of its
55 languages: how often each sequence of 1 to 3 characters occurred in that language's Wikipedia of 2010.
Its `utils/messages.properties` holds classes of CJK characters that it takes for one another. Both are
read here into arrays; nothing of the package's code runs. 87,598 sequences have on average 2.1 languages
each, so they are kept sparse: 1.5 MB. Reading takes about 0.4 s.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from quality_models.language_models import installed

__all__ = ["FLOOR", "LangdetectProfiles", "pack", "read_profiles"]

FLOOR = 0.5 / 10_000
"""What langdetect adds to each probability (its ALPHA_DEFAULT / BASE_FREQ), so that none is 0."""

N_CODE_POINTS = 0x110000
BITS = 21
"""Bits of a code point in a packed sequence."""

BLANK = 0x20


class LangdetectProfiles(NamedTuple):
    """Sequences of characters and the languages in which they occur.

    labels: langdetect's name of each language, sorted. grams: uint64[n], sorted, each sequence packed by
    `pack`. offsets: int64[n + 1]; the languages of sequence i are `languages[offsets[i]:offsets[i + 1]]`
    (uint8, columns of `labels`) with `frequencies` (float64, > 0: share among the sequences of its length in
    that language). normal: int32[0x110000], the character as which each code point is read; a blank
    ends a word. composed: int32[k, 3], a letter, a combining mark, and the one letter that both are read as.
    """

    labels: tuple[str, ...]
    grams: npt.NDArray[np.uint64]
    offsets: npt.NDArray[np.int64]
    languages: npt.NDArray[np.uint8]
    frequencies: npt.NDArray[np.float64]
    normal: npt.NDArray[np.int32]
    composed: npt.NDArray[np.int32]


def pack(gram: str) -> int:
    """1 to 3 characters as one number, 21 bits each, the last one lowest."""
    packed = 0
    for char in gram:
        packed = packed << BITS | ord(char)
    return packed


def read_profiles(folder: Path | None = None) -> LangdetectProfiles:
    """The profiles of a langdetect folder (with `profiles/` and `utils/`); the installed package's by default.

    Raises FileNotFoundError where langdetect is not installed or a file is missing, ValueError for a file
    that is damaged or of another kind; both say which file, what was expected and what was found.
    """
    folder = installed("langdetect", "profiles").parent if folder is None else folder
    messages = _messages(folder / "utils" / "messages.properties")
    paths = sorted(path for path in (folder / "profiles").iterdir() if not path.name.startswith("."))
    profiles = [_profile(path) for path in paths]
    labels = [name for name, _ in profiles]
    if len(set(labels)) < len(labels) or not 2 <= len(labels) <= 255:
        raise ValueError(f"{folder / 'profiles'}: expected 2 to 255 different languages, found {labels}")
    order = np.argsort(labels)
    grams = np.concatenate([np.fromiter(map(pack, profiles[i][1]), np.uint64) for i in order])
    shares = np.concatenate([np.fromiter(profiles[i][1].values(), np.float64) for i in order])
    columns = np.repeat(np.arange(len(order), dtype=np.uint8), [len(profiles[i][1]) for i in order])
    rows = np.lexsort((columns, grams))
    unique, firsts = np.unique(grams[rows], return_index=True)
    offsets = np.append(firsts, len(rows)).astype(np.int64)
    return LangdetectProfiles(
        tuple(labels[i] for i in order),
        unique,
        offsets,
        columns[rows],
        shares[rows],
        _normal(messages),
        _composed(messages),
    )


def _profile(path: Path) -> tuple[str, dict[str, float]]:
    """Name of a language, and the share of each sequence of 1 to 3 characters among those of its length."""
    try:
        found: Any = json.loads(path.read_text("utf-8"))
        name, counts, totals = found["name"], found["freq"], found["n_words"]
        if not (isinstance(name, str) and name and isinstance(counts, dict) and len(totals) == 3):
            raise TypeError(f"name {name!r}, freq a {type(counts).__name__}, n_words {totals!r}")
        shares = {
            gram: int(count) / int(totals[len(gram) - 1]) for gram, count in counts.items() if 1 <= len(gram) <= 3
        }
    except (ValueError, TypeError, KeyError, ZeroDivisionError) as error:
        raise ValueError(
            f"{path}: expected a langdetect profile, JSON with name, freq (counts of 1 to 3 characters) and "
            f"n_words (three totals), found {type(error).__name__}: {error}"
        ) from error
    wrong = [gram for gram, share in shares.items() if not 0 < share <= 1]
    if wrong:
        raise ValueError(f"{path}: expected counts from 1 to n_words, found {counts[wrong[0]]!r} for {wrong[0]!r}")
    return name, shares


def _messages(path: Path) -> dict[str, str]:
    """Key and text of each line `key=text`; the text is in \\u escapes."""
    try:
        pairs = [line.strip().partition("=") for line in path.read_text("ascii").splitlines()]
        messages = {key: text.encode("ascii").decode("unicode_escape") for key, _, text in pairs}
    except ValueError as error:
        raise ValueError(f"{path}: expected ASCII with \\u escapes, found {error}") from error
    needed = {"NGram.LATIN1_EXCLUDE", "NGram.KANJI_1_0", "TO_NORMALIZE_VI_CHARS", "DMARK_CLASS"}
    missing = sorted(needed - messages.keys())
    if missing:
        raise ValueError(f"{path}: expected langdetect's messages, found none of the keys {missing}")
    return messages


def _normal(messages: dict[str, str]) -> npt.NDArray[np.int32]:
    """int32[0x110000]: what langdetect's NGram.normalize makes of each code point.

    Whole blocks become one character: what they are tells the language, which of them does not.
    """
    normal = np.arange(N_CODE_POINTS, dtype=np.int32)
    normal[:0x80] = BLANK
    for first, last in ((0x41, 0x5A), (0x61, 0x7A)):
        normal[first : last + 1] = np.arange(first, last + 1)
    normal[[ord(char) for char in messages["NGram.LATIN1_EXCLUDE"] if 0x80 <= ord(char) <= 0xFF]] = BLANK
    normal[0x219], normal[0x21B] = 0x15F, 0x163  # Romanian: a comma below is read as a cedilla
    normal[0x6CC] = 0x64A  # Farsi yeh as Arabic yeh
    normal[0x1EA0:0x1F00] = 0x1EC3  # Vietnamese letters
    normal[0x2000:0x2070] = BLANK  # general punctuation
    normal[0x3040:0x30A0] = 0x3042  # Hiragana
    normal[0x30A0:0x3100] = 0x30A2  # Katakana
    normal[0x3100:0x3130] = normal[0x31A0:0x31C0] = 0x3105  # Bopomofo
    for key, kanji in messages.items():
        if key.startswith("NGram.KANJI_"):
            normal[[ord(char) for char in kanji if 0x4E00 <= ord(char) <= 0x9FFF]] = ord(kanji[0])
    normal[0xAC00:0xD7B0] = 0xAC00  # Hangul syllables
    return normal


def _composed(messages: dict[str, str]) -> npt.NDArray[np.int32]:
    """int32[k, 3]: letter, combining mark, and the Vietnamese letter that both make."""
    letters, marks = messages["TO_NORMALIZE_VI_CHARS"], messages["DMARK_CLASS"]
    rows = []
    for mark in marks:
        whole = messages.get(f"NORMALIZED_VI_CHARS_{ord(mark):04X}", "")
        if len(whole) != len(letters):
            raise ValueError(
                f"messages of langdetect: expected {len(letters)} letters with U+{ord(mark):04X}, found {whole!r}"
            )
        rows += [(ord(letter), ord(mark), ord(char)) for letter, char in zip(letters, whole, strict=True)]
    return np.array(rows, np.int32)
