"""What a script says about the language of its letters, where it says enough.

ISO 15924 codes of scripts, the language of each script that one language writes, and the scripts that
several share: only about those are models asked.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from curation.filters.language.parts import CJK_SCRIPTS
from curation.text import Script

__all__ = ["CHARACTERS_PER_LETTER", "DECIDED", "SCRIPT_CODES", "SHARED"]

SCRIPT_CODES: Mapping[Script, str] = {
    Script.LATIN: "Latn",
    Script.GREEK: "Grek",
    Script.CYRILLIC: "Cyrl",
    Script.ARMENIAN: "Armn",
    Script.HEBREW: "Hebr",
    Script.ARABIC: "Arab",
    Script.SYRIAC: "Syrc",
    Script.THAANA: "Thaa",
    Script.NKO: "Nkoo",
    Script.DEVANAGARI: "Deva",
    Script.BENGALI: "Beng",
    Script.GURMUKHI: "Guru",
    Script.GUJARATI: "Gujr",
    Script.ORIYA: "Orya",
    Script.TAMIL: "Taml",
    Script.TELUGU: "Telu",
    Script.KANNADA: "Knda",
    Script.MALAYALAM: "Mlym",
    Script.SINHALA: "Sinh",
    Script.THAI: "Thai",
    Script.LAO: "Laoo",
    Script.TIBETAN: "Tibt",
    Script.MYANMAR: "Mymr",
    Script.GEORGIAN: "Geor",
    Script.ETHIOPIC: "Ethi",
    Script.CHEROKEE: "Cher",
    Script.CANADIAN_ABORIGINAL: "Cans",
    Script.KHMER: "Khmr",
    Script.MONGOLIAN: "Mong",
    Script.YI: "Yiii",
    Script.TAI_LE: "Tale",
    Script.NEW_TAI_LUE: "Talu",
    Script.TAI_THAM: "Lana",
    Script.TAI_VIET: "Tavt",
    Script.BALINESE: "Bali",
    Script.JAVANESE: "Java",
    Script.SUNDANESE: "Sund",
    Script.CHAM: "Cham",
    Script.OL_CHIKI: "Olck",
    Script.TIFINAGH: "Tfng",
    Script.VAI: "Vaii",
    Script.MEETEI_MAYEK: "Mtei",
    Script.ADLAM: "Adlm",
    Script.LISU: "Lisu",
    Script.CHAKMA: "Cakm",
}
"""ISO 15924 codes, but for the scripts of Chinese, Japanese and Korean, whose labels `cjk` gives."""

SHARED = (
    Script.LATIN,
    Script.CYRILLIC,
    Script.ARABIC,
    Script.DEVANAGARI,
    Script.BENGALI,
    Script.HEBREW,
    Script.ETHIOPIC,
)
"""Scripts of several languages that the models know apart."""

DECIDED: Mapping[Script, str] = {
    Script.GREEK: "ell_Grek",
    Script.ARMENIAN: "hye_Armn",
    Script.SYRIAC: "syr_Syrc",
    Script.THAANA: "div_Thaa",
    Script.NKO: "nqo_Nkoo",
    Script.GURMUKHI: "pan_Guru",
    Script.GUJARATI: "guj_Gujr",
    Script.ORIYA: "ori_Orya",
    Script.TAMIL: "tam_Taml",
    Script.TELUGU: "tel_Telu",
    Script.KANNADA: "kan_Knda",
    Script.MALAYALAM: "mal_Mlym",
    Script.SINHALA: "sin_Sinh",
    Script.THAI: "tha_Thai",
    Script.LAO: "lao_Laoo",
    Script.TIBETAN: "bod_Tibt",
    Script.MYANMAR: "mya_Mymr",
    Script.GEORGIAN: "kat_Geor",
    Script.CHEROKEE: "chr_Cher",
    Script.KHMER: "khm_Khmr",
    Script.MONGOLIAN: "mon_Mong",
    Script.YI: "iii_Yiii",
    Script.JAVANESE: "jav_Java",
    Script.SUNDANESE: "sun_Sund",
    Script.BALINESE: "ban_Bali",
    Script.OL_CHIKI: "sat_Olck",
    Script.TIFINAGH: "zgh_Tfng",
    Script.VAI: "vai_Vaii",
    Script.MEETEI_MAYEK: "mni_Mtei",
    Script.ADLAM: "ful_Adlm",
    Script.LISU: "lis_Lisu",
    Script.CHAKMA: "ccp_Cakm",
}
"""Scripts of one language, or of one that writes nearly all of their text: Burmese, Tibetan, Georgian, ..."""

CHARACTERS_PER_LETTER = np.ones(len(Script))
"""float64[len(Script)]: letters with their vowel signs and other marks, for each letter: measured on the Universal
Declaration of Human Rights. Without it a page in Tamil would weigh 40 % less than one in English."""
for _script, _characters in {
    Script.DEVANAGARI: 1.61,
    Script.BENGALI: 1.59,
    Script.GURMUKHI: 1.64,
    Script.GUJARATI: 1.62,
    Script.ORIYA: 1.64,
    Script.TAMIL: 1.71,
    Script.TELUGU: 1.75,
    Script.KANNADA: 1.68,
    Script.MALAYALAM: 1.71,
    Script.SINHALA: 1.5,
    Script.THAI: 1.27,
    Script.LAO: 1.32,
    Script.TIBETAN: 1.43,
    Script.MYANMAR: 2.27,
    Script.KHMER: 1.64,
    Script.TAI_THAM: 1.57,
    Script.JAVANESE: 1.75,
    Script.CHAKMA: 1.78,
    Script.THAANA: 1.99,
    Script.ADLAM: 1.13,
}.items():
    CHARACTERS_PER_LETTER[_script] = _characters

assert not set(SHARED) & set(DECIDED)
assert not set(CJK_SCRIPTS) & set(SCRIPT_CODES)
