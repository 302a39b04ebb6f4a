"""What a script says about the language of its letters, where it says enough.

ISO 15924 codes of scripts, the language of each script that one language writes, and the scripts that
several share: only about those are models asked.
"""

from __future__ import annotations

from collections.abc import Mapping

from curation.filters.language.parts import CJK_SCRIPTS
from curation.text import Script

__all__ = ["DECIDED", "SCRIPT_CODES", "SHARED"]

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

assert not set(SHARED) & set(DECIDED)
assert not set(CJK_SCRIPTS) & set(SCRIPT_CODES)
