"""One code for each language, whatever label a model gives it.

fastText's lid.176 speaks in Wikipedia's codes, langdetect in ISO 639-1 with `zh-cn`, py3langid in a mixture,
GlotLID and OpenLID in `eng_Latn`. Here all become ISO 639-3. Where the labels of models do not tell members of a
macrolanguage apart, the macrolanguage stands for them: zho (Mandarin, Wu, Cantonese), ara, fas, aze, kur, msa,
sqi, swa, uzb, ... Exceptions, since models or their users do tell them apart: ind beside msa, ckb and sdh beside
kur, ltg beside lav, dty beside nep; nob and nno, and no nor; hrv, srp and bos, and no hbs.

The table is language_codes.tsv beside this module, read at import in 1 ms.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

__all__ = ["LANGUAGE_SCRIPTS", "to_iso639_3"]

TAG = re.compile(r"([a-z]{2,3})(?:[-_]([a-z]{3}))?(?:[-_]([a-z]{4}))?(?:[-_][a-z0-9]{1,8})*", re.ASCII)
"""Language, extended language, script, and anything else, of a BCP 47 tag in small letters."""

TOSK = "als"
"""Alemannic in Wikipedia's codes, which stand alone; Tosk Albanian in ISO 639-3, which comes with a script."""


def _read(path: Path) -> tuple[dict[str, str], dict[str, tuple[str, ...]]]:
    """Code of each label, and scripts of each code."""
    codes: dict[str, str] = {}
    scripts: dict[str, tuple[str, ...]] = {}
    for line in path.read_text("utf-8").splitlines():
        if not line.startswith("#"):
            code, written, others = line.split("\t")
            scripts[code] = tuple(written.split())
            codes |= dict.fromkeys([code, *others.split()], code)
    return codes, scripts


_codes, _scripts = _read(Path(__file__).resolve().parent / "language_codes.tsv")

LANGUAGE_SCRIPTS: Mapping[str, tuple[str, ...]] = MappingProxyType(_scripts)
"""ISO 15924 codes of the scripts that each ISO 639-3 code is commonly written in, the usual one first."""


def to_iso639_3(label: str) -> str:
    """ISO 639-3 code of the language that a model's label or a BCP 47 tag names; its script and region do not count.

    A code of three letters that is not in the table stays as it is; so does a result of this function.

    Raises ValueError for anything else: no tag at all, or two letters that ISO 639-1 does not know.
    """
    found = TAG.fullmatch(label.lower())
    if found is None:
        raise ValueError(f"language label {label!r}: expected a code such as en, eng, eng_Latn or zh-Hant-TW")
    language, extended, script = found.groups()
    if language == "zh" and extended is not None:  # zh-yue, zh-min-nan: what follows is a language of its own
        language = "nan" if extended == "min" else extended
    if language == TOSK and script is not None:
        return "sqi"
    if len(language) == 2 and language not in _codes:
        raise ValueError(f"language label {label!r}: {language!r} is no code of ISO 639-1 that is known here")
    return _codes.get(language, language)
