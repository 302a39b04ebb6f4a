"""The label by which a filter chooses its limits: the language that was named before it, or else the main script.

    labels = working_labels(batch)          # "eng_Latn", "zho_Hans", ..., "und_Hani", "und_Latn", ..., "und"
    limits.get(key) for key in lookup_keys("zho_Hans")      # "zho_Hans", "zho", "und_Hani", ""

Costs nothing where every document has a language; elsewhere one visit that counts letters by script (1 GB/s
for ASCII, 300 MB/s for Chinese).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from curation.filters.language.scripts import SCRIPT_CODES
from curation.text import Script, buffers, script_counts

__all__ = [
    "LANGUAGE_COLUMN",
    "SCRIPT_LABELS",
    "UNDETERMINED",
    "each_language_once",
    "letters_of_script",
    "lookup_keys",
    "working_labels",
]

LANGUAGE_COLUMN = "language.language"
"""The score of the step `language` that filters ask for: null where no such step stands before them."""
UNDETERMINED = "und"

KANA_SHARE = 0.1
"""Kana among Han and kana letters from which on a text is Japanese: Chinese that quotes a name has less, and Japanese
prose has more than half."""

HAN, JAPANESE, KOREAN = "Hani", "Jpan", "Kore"
WRITTEN_IN = {"Hans": HAN, "Hant": HAN, "Bopo": HAN, "Hira": JAPANESE, "Kana": JAPANESE, "Hang": KOREAN}
"""Script codes that are forms or parts of another one."""

_CHINESE = (Script.HAN, Script.BOPOMOFO)
_KANA = (Script.HIRAGANA, Script.KATAKANA)

_CODES = (HAN, JAPANESE, KOREAN, *SCRIPT_CODES.values())
SCRIPT_LABELS = (*(f"{UNDETERMINED}_{code}" for code in _CODES), UNDETERMINED)
"""Every label that a text without a language can get."""

_GROUPS = np.zeros((len(Script), len(_CODES)), np.int32)
"""int32[n_scripts, n_codes]: which letters count for which code. Those of Chinese and Japanese count as one until the
main script is known."""
for _script in (*_CHINESE, *_KANA):
    _GROUPS[_script, 0] = 1
_GROUPS[Script.HANGUL, _CODES.index(KOREAN)] = 1
for _script, _code in SCRIPT_CODES.items():
    _GROUPS[_script, _CODES.index(_code)] = 1


def working_labels(batch: pa.RecordBatch, letters: npt.NDArray[np.int32] | None = None) -> pa.StringArray:
    """The label of each document of a batch with the columns `text` and `language.language`: string[n], no nulls.

    A label of the language step (`eng_Latn`) is taken as it is. Where it is null or `und`, the main script by letters
    is named instead: `und_Latn`, `und_Cyrl`, ...; `und_Jpan` where a tenth or more of the Han and kana letters are
    kana, `und_Hani` where less are; `und_Kore` for Hangul. Of scripts with as many letters the first in `SCRIPT_LABELS`
    counts. `und` is left where no letter, or none of a known script, is.

    `letters`: `script_counts` of the texts, int32[n, n_scripts], where the caller has them anyway.
    """
    known = batch.column(LANGUAGE_COLUMN).cast(pa.string())
    named = pc.fill_null(pc.not_equal(known, UNDETERMINED), False)
    if pc.all(named, min_count=0).as_py():
        return known
    unnamed = pc.invert(named)
    if letters is None:
        letters = script_counts(*buffers(batch.column("text").filter(unnamed)))
    else:
        letters = letters[unnamed.to_numpy(zero_copy_only=False)]
    found = pa.array(SCRIPT_LABELS, pa.string()).take(pa.array(_main_script(letters)))
    return pc.replace_with_mask(known, unnamed, found)


def _main_script(letters: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    """Place in `SCRIPT_LABELS` of each row of `script_counts`: int64[n]."""
    by_code = letters @ _GROUPS
    main: npt.NDArray[np.int64] = by_code.argmax(axis=1) if len(letters) else np.zeros(0, np.int64)
    kana = letters[:, _KANA].sum(axis=1)
    main[(main == 0) & (kana >= KANA_SHARE * by_code[:, 0])] = _CODES.index(JAPANESE)
    main[by_code.sum(axis=1) == 0] = len(SCRIPT_LABELS) - 1
    return main


def letters_of_script(letters: npt.NDArray[np.int32], labels: pa.StringArray) -> npt.NDArray[np.int32]:
    """How many letters of each document are of the script that its label names: int32[n], from `script_counts`.

    Han and kana count for Chinese as for Japanese; 0 for a script that is not known, or none.
    """
    encoded = labels.dictionary_encode()
    codes = [_written_in(name.partition("_")[2]) for name in encoded.dictionary.to_pylist()]
    columns = [_CODES.index(HAN if code == JAPANESE else code) if code in _CODES else len(_CODES) for code in codes]
    by_code = np.concatenate([letters @ _GROUPS, np.zeros((len(letters), 1), np.int32)], axis=1)
    chosen = np.array(columns, np.int64)[encoded.indices.to_numpy(zero_copy_only=False)]
    found: npt.NDArray[np.int32] = by_code[np.arange(len(letters)), chosen]
    return found


def _written_in(code: str) -> str:
    return WRITTEN_IN.get(code, code)


@cache
def lookup_keys(label: str) -> tuple[str, ...]:
    """Where a label's settings stand, the most telling first: the label, its language, its script, the default ("").

    `zho_Hant` asks for `zho_Hant`, `zho`, `und_Hani`, ``; `und_Latn` for `und_Latn`, ``; `und` for ``.
    """
    language, _, code = label.partition("_")
    keys = [label] if code else []
    if language != UNDETERMINED:
        keys.append(language)
    if code:
        keys.append(f"{UNDETERMINED}_{_written_in(code)}")
    return (*dict.fromkeys(keys), "")


def each_language_once(value: Any, check: Callable[[Any], Any]) -> Any:
    """For pydantic: settings by language whose keys, once normalised, are still as many.

    Raises:
        ValueError: two keys name one language, and one of them would be lost without a word.
    """
    checked = check(value)
    if len(checked) < len(value):
        raise ValueError(f"a language stands twice: {', '.join(map(repr, value))} name {', '.join(checked)}")
    return checked
