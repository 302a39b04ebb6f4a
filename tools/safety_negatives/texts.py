"""What a source gives, chance without a state, and plain text out of Markdown, PO files and markup."""

from __future__ import annotations

import hashlib
import re
from typing import NamedTuple

__all__ = ["TRADITIONAL", "Text", "draw", "markdown", "messages", "of_locale", "short_code", "without_tags"]

TRADITIONAL = "zh-Hant"


class Text(NamedTuple):
    """A document of a source.

    lang: ISO 639-1 where there is one, zh-Hant for Traditional Chinese. kind: prose, lines (sentences that stand alone) or
    menu (texts of a program). document: equal for translations of one text, so that they stay on one side of a split.
    """

    lang: str
    domain: str
    source: str
    licence: str
    document: str
    kind: str
    text: str


def draw(*parts: object) -> float:
    """A number from 0 to 1 that depends on the parts alone: the same everywhere and always."""
    return int.from_bytes(hashlib.sha256("/".join(map(str, parts)).encode()).digest()[:8], "big") / 2.0**64


_SHORT = """
afr:af amh:am ara:ar arb:ar aze:az bel:be ben:bn bod:bo bos:bs bre:br bul:bg cat:ca ces:cs cym:cy dan:da deu:de ell:el eng:en
epo:eo est:et eus:eu fas:fa fil:tl fin:fi fra:fr gle:ga glg:gl guj:gu hau:ha heb:he hin:hi hrv:hr hun:hu hye:hy ibo:ig ind:id
isl:is ita:it jpn:ja kan:kn kat:ka kaz:kk khm:km kin:rw kir:ky kmr:ku kor:ko kur:ku lao:lo lav:lv lit:lt ltz:lb mal:ml mar:mr
mkd:mk mlg:mg mlt:mt mon:mn msa:ms mya:my nep:ne nld:nl nno:nn nob:nb orm:om pan:pa pol:pl por:pt pus:ps ron:ro rus:ru sin:si
slk:sk slv:sl snd:sd som:so spa:es sqi:sq srp:sr swa:sw swe:sv tam:ta tat:tt tel:te tgk:tg tgl:tl tha:th tir:ti tuk:tk tur:tr
uig:ug ukr:uk urd:ur uzb:uz vie:vi xho:xh yor:yo zho:zh zul:zu
"""
SHORT = dict(pair.split(":") for pair in _SHORT.split())

LOCALES = {
    "zh_CN": "zh", "zh_Hans": "zh", "zh_TW": TRADITIONAL, "zh_Hant": TRADITIONAL, "zh_HK": "yue", "pt_BR": "pt", "pt_PT": "pt",
    "no": "nb", "nb_NO": "nb", "pa_IN": "pa", "sv_SE": "sv", "ne_NP": "ne", "ga_IE": "ga", "fy_NL": "fy", "kmr": "ku",
    "sl_SI": "sl", "de_CH": "de", "en_GB": "en", "es_419": "es", "es_ES": "es", "es_LA": "es", "fr_CA": "fr", "fil": "tl",
    "fa_IR": "fa", "iw": "he", "zh_Hant_HK": TRADITIONAL,
}  # fmt: skip


def short_code(language: str) -> str:
    """ISO 639-1 of ISO 639-3, where there is one."""
    return SHORT.get(language, language)


def of_locale(name: str) -> str:
    """The language of a locale as programs name them: zh_TW, pt-br, sr; an unknown one as it stands."""
    known = {key.lower(): value for key, value in LOCALES.items()}
    return known.get(name.lower().replace("-", "_"), name)


def without_tags(text: str) -> str:
    return re.sub(r"<[^>]+>", "", text)


def markdown(text: str) -> str:
    """The sentences of a page in Markdown: no head, code, comments, tags, templates, targets of links or marks."""
    text = text.replace("\r\n", "\n").lstrip("\ufeff")
    text = re.sub(r"(?ms)\A---\n.*?^---\n|^ *(```|~~~).*?^ *\1[^\n]*$", "", text)
    text = re.sub(r"(?s)<!--.*?-->", "", text)
    text = re.sub(r"\{%.*?%\}|\{\{.*?\}\}|\{:[^}]*\}", "", text)
    text = re.sub(r"!\[[^\]]*\]\([^)]*\)", "", text)
    text = re.sub(r"\[([^\]]*)\](\([^)]*\)|\[[^\]]*\])", r"\1", text)
    text = re.sub(r"(?m)^\[[^\]]+\]:.*$", "", text)
    text = re.sub(r"<[^>\n]*>", "", text)
    text = re.sub(r"(?m)^ *#+ *", "", text)
    text = re.sub(r"[*`|]{1,}", "", text)
    text = re.sub(r"\{#[\w-]+\}|\{/\*.*?\*/\}", "", text)
    text = re.sub(r"(?m)^[ >]*(?=\S)", lambda match: match.group(0).replace(">", ""), text)
    return re.sub(r"\n{3,}", "\n\n", text).strip()


def messages(text: str) -> list[str]:
    """The translations of a PO file that are not fuzzy."""
    found = []
    for entry in re.split(r"\n\s*\n", text):
        if "fuzzy" in entry.split("msgid")[0] or "#~" in entry or 'msgid ""\nmsgstr' in entry:
            continue
        for match in re.finditer(r'(?m)^msgstr(?:\[0\])? ((?:"(?:[^"\\]|\\.)*"\s*)+)', entry):
            one = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', match[1])).replace("\\n", "\n").replace('\\"', '"')
            if one.strip():
                found.append(one.strip())
    return found
