"""All sources in their order, and which part of the work each document may take: training, calibration, or whole as long text.

What is share-alike, and what states no licence for its texts, is never trained on.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

from tools.safety_negatives import menus, pages, sentences
from tools.safety_negatives.texts import TRADITIONAL, Text, draw

__all__ = ["SOURCES", "Document", "collect", "simplified", "traditional"]

Reader = Callable[[Path], Iterator[Text]]

SOURCES: Mapping[str, Reader] = {
    "github+opensource.guide": pages.read_guides,
    "EthicalSource+contributor_covenant": pages.read_conduct,
    "tico-19+tico-19.github.io": sentences.read_medical,
    "songys+Chatbot_data": sentences.read_chat,
    "tldr-pages+tldr": pages.read_commands,
    "spree-contrib+spree_i18n": menus.read_spree,
    "django-oscar+django-oscar": menus.read_oscar,
    "bitcoin-dot-org+Bitcoin.org": menus.read_bitcoin,
    "rust-kr+doc.rust-kr.org": pages.read_rust_korean,
    "microsoft+TypeScript-Website-Localizations": pages.read_typescript,
    "ruby+www.ruby-lang.org": pages.read_ruby,
    "Anduin2017+HowToCook": pages.read_recipes,
    "christos-c+bible-corpus": sentences.read_bible,
    "common-voice": sentences.read_common_voice,
    "chromium": menus.read_chromium,
    "ntrex": sentences.read_ntrex,
    **{
        name: partial(sentences.read_ngram_source, source=name)
        for name in ("wikipedia", "gnome", "react", "python-docs", "treebanks", "wikinews", "tanaka", "books")
    },
    "KaiserY+trpl-zh-cn": pages.read_rust_chinese,
    "pingcap+docs-cn": pages.read_tidb,
    "laws": sentences.read_laws,
    "tatoeba": sentences.read_tatoeba,
    "stories": sentences.read_stories,
    "GITenberg+The-Girl-s-Own-Paper-Vol.-VIII--No.-353-October-2-1886._18195": partial(pages.read_book, lang="en"),
    "GITenberg+Ontboezemingen_24675": partial(pages.read_book, lang="nl"),
    "GITenberg+The-Devil-s-Dictionary_972": partial(pages.read_book, lang="en"),
}
"""Folder below --sources and its reader. With OWNER+NAME: a clone; else what tools/ngram_models/sources.py reads (`chromium`:
tools/language_model/sources.py)."""

NOT_TRAINED_ON = ("ntrex", "wikipedia", "gnome", "treebanks", "tidb-docs-cn", "cmrc-stories", "ruby-lang.org")
IN_BOTH_FORMS = (
    "HowToCook", "trpl-zh", "python-docs", "react", "common-voice", "tatoeba", "books", "tidb-docs-cn", "cmrc-stories",
    "typescript-docs",
)  # fmt: skip
SHORTEST = 20


class Document(NamedTuple):
    """role: train, calibrate (cut into pieces, either) or long (kept whole, to choose thresholds by)."""

    text: Text
    role: str


@cache
def _converter(name: str) -> Callable[[str], str]:
    from opencc import OpenCC

    convert: Callable[[str], str] = OpenCC(name).convert
    return convert


def simplified(text: str) -> str:
    return _converter("t2s")(text)


def traditional(text: str) -> str:
    return _converter("s2t")(text)


def collect(folder: Path) -> Iterator[Document]:
    """Documents of all sources; one that is not there is left out, and said."""
    for name, reader in SOURCES.items():
        if not (folder / name).exists():
            print(f"{folder / name}: not there, left out", file=sys.stderr)
            continue
        for text in reader(folder / name):
            if len(text.text) >= SHORTEST:
                yield Document(_in_other_form(text), _role(text))


def _role(text: Text) -> str:
    part = draw("split", text.source, text.document)
    if text.source in NOT_TRAINED_ON:
        return "calibrate" if part < 0.4 else "long"
    return "train" if part < 0.66 else "calibrate" if part < 0.83 else "long"


def _in_other_form(text: Text) -> Text:
    """Of Chinese that comes in one form only, about half in the other one."""
    part = draw("half", text.source, text.document)
    if text.lang == "zh" and text.source in IN_BOTH_FORMS and part < 0.4:
        return text._replace(lang=TRADITIONAL, text=traditional(text.text))
    if text.lang == TRADITIONAL and text.source == "laws-tw" and part < 0.5:
        return text._replace(lang="zh", text=simplified(text.text))
    return text
