"""Sources that are texts of programs and shops: what stands on buttons, in dialogues and mails, in many languages.

Prices, carts, coupons and "register now" are here, and are no adverts. Twenty to 25 texts make a document.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from tools.language_model.sources import _pak_strings as pak_strings
from tools.safety_negatives.clones import read, tree
from tools.safety_negatives.texts import Text, messages, of_locale, without_tags

__all__ = ["read_bitcoin", "read_chromium", "read_oscar", "read_spree"]

SHOP_TEXTS, PROGRAM_TEXTS = 25, 20
LEAST_OF_PO = 275_000
"""Bytes of a PO file of Oscar: what is smaller is hardly translated."""
LEAST_OF_PAGE = 60
MARKUP_OR_CODE = re.compile(r"[{}<>]|function|\bvar\b")


def _leaves(data: Any) -> Iterator[str]:
    """The texts of a YAML file, in its order."""
    if isinstance(data, Mapping):
        for value in data.values():
            yield from _leaves(value)
    elif isinstance(data, str):
        yield data


def _locale_files(clone: Path, under: str) -> Iterator[tuple[str, Any]]:
    for path, data in read(clone, [blob for blob in tree(clone, under) if blob.path.endswith(".yml")]):
        yield Path(path).stem, yaml.safe_load(data.decode("utf-8"))


def _documents(texts: list[str], size: int) -> Iterator[tuple[int, str]]:
    for at in range(0, len(texts), size):
        yield at, "\n".join(texts[at : at + size])


def read_spree(clone: Path) -> Iterator[Text]:
    """Texts of a web shop."""
    filled = {"number": "R123456", "name": "Anna"}
    for locale, data in _locale_files(clone, "config/locales/"):
        if locale.startswith(("en-", "es-")):
            continue
        long = [leaf for leaf in _leaves(data) if len(leaf) > 7]
        texts = [
            re.sub(r"%\{(\w+)\}", lambda match: filled.get(match[1], "…"), without_tags(leaf)).strip() for leaf in long
        ]
        for at, text in _documents(texts, SHOP_TEXTS):
            yield Text(of_locale(locale), "shop", "spree_i18n", "BSD-3-Clause", f"{at}", "menu", text)


def read_oscar(clone: Path) -> Iterator[Text]:
    """Texts of another web shop."""
    filled = {"name": "Anna", "number": "100042"}
    files = [b for b in tree(clone, "src/oscar/locale/") if b.path.endswith(".po") and b.size > LEAST_OF_PO]
    for path, data in read(clone, files):
        locale = path.split("/")[3]
        lang = of_locale(locale)
        lang = lang.split("_")[0] if lang == locale else lang
        texts = []
        for message in messages(data.decode("utf-8", "replace")):
            text = re.sub(r"%\((\w+)\)[sd]", lambda match: filled.get(match[1], "12"), without_tags(message))
            texts.append(re.sub(r"\{%.*?%\}|\{\{.*?\}\}", "", text).strip())
        for at, text in _documents([one for one in texts if len(one) > 5], SHOP_TEXTS):
            yield Text(lang, "shop", "django-oscar", "BSD-3-Clause", f"{at}", "menu", text)


def read_bitcoin(clone: Path) -> Iterator[Text]:
    """Pages about a currency that fraudsters write of, too."""
    for locale, data in _locale_files(clone, "_translations/"):
        for page, texts in next(iter(data.values())).items():
            lines = [without_tags(leaf).strip() for leaf in _leaves(texts)]
            if sum(map(len, lines)) > LEAST_OF_PAGE:
                yield Text(of_locale(locale), "crypto", "bitcoin.org", "MIT", str(page), "prose", "\n".join(lines))


def read_chromium(folder: Path) -> Iterator[Text]:
    """<locale>.pak of Debian's package chromium-l10n."""
    for path in sorted(folder.glob("*.pak")):
        if "_" in path.stem:
            continue
        lang = of_locale(path.stem)
        texts = [text for _, text in pak_strings(path) if 8 < len(text) < 600 and not MARKUP_OR_CODE.search(text)]
        texts = [text for text in texts if lang == "en" or not text.isascii()]
        for at, text in _documents(texts, PROGRAM_TEXTS):
            document = f"{at // PROGRAM_TEXTS % 200}"
            yield Text(lang, "menu", "chromium", "BSD-3-Clause", document, "menu", text)
