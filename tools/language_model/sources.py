"""Reads the texts that the language model is trained on, from three sources whose licences allow it, and the UDHR.

- Common Voice: sentences that volunteers gave or found, CC0 1.0: the folder server/data of github.com/mozilla/common-voice.
- Chromium: the texts of its menus and messages, BSD-3-Clause: the .pak files of Debian's package chromium-l10n.
- CLDR: keywords of characters, Unicode licence: the folder `common` of Debian's package unicode-cldr-core.
- UDHR: translations of the Universal Declaration of Human Rights, collected and published by the UN; the
  collection states no licence: the folder data/udhr of github.com/eric-muller/udhr.

A text has a key: texts with equal keys of one source, in whatever language, say the same or are of one place, and
are held out together. Costs: half a minute for 150 MB of files.
"""

from __future__ import annotations

import re
import struct
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from quality_models.language_codes import to_iso639_3

__all__ = ["SOURCES", "Text", "read_chromium", "read_cldr", "read_common_voice", "read_udhr"]

LARGEST_FILE = 4 << 20
"""Larger files of Common Voice are left out: nearly all are copies of Wikipedia or of parliaments, in few languages."""

UNKNOWN = "und"
MARKUP = re.compile(r"<[^>]*>|\$\w+|\{[^}]*\}|&\w+;|\b\w+://\S+")
"""Tags, place holders, entities and addresses in the texts of a program."""
PROGRAM = re.compile(r"[{}=;_<>]|function|\\n")
"""What shows that a text of Chromium is a script or a style."""
NOT_READ = re.compile(r"en_001|en_CA|en_IN|ar_SA|hi_Latn|kl|pcm|root")
"""Annotations of CLDR that repeat those of another locale: kl is Danish for nine words in ten, pcm mostly English."""
LEAST_UDHR = 2000
"""Characters of a translation: those with fewer have only titles."""
PREAMBLE = "preamble"


class Text(NamedTuple):
    """A sentence, paragraph or keyword, with single blanks and no line ends."""

    label: str
    """ISO 639-3."""
    source: str
    key: str
    text: str


def _single_blanks(text: str) -> str:
    return " ".join(text.split())


def read_common_voice(folder: Path) -> Iterator[Text]:
    """Lines of the .txt files of server/data/<language>/. A sentence is its own key.

    Raises ValueError for a folder whose name is no language, UnicodeDecodeError for a file not in UTF-8.
    """
    for path in sorted(folder.glob("*/*.txt")):
        if path.stat().st_size > LARGEST_FILE:
            continue
        label = to_iso639_3(path.parent.name)
        for line in path.read_text("utf-8-sig").splitlines():
            text = _single_blanks(line)
            if text:
                yield Text(label, "common-voice", text.casefold(), text)


def _pak_strings(path: Path) -> Iterator[tuple[int, str]]:
    """Number and text of each entry of a .pak file, version 5; entries that are not text are left out.

    Little-endian: version uint32, encoding uint8 (1: UTF-8, 2: UTF-16), 3 bytes, entries uint16, aliases uint16;
    then number uint16 and offset uint32 of each entry, and of the end.
    """
    data = path.read_bytes()
    version, encoding, n_entries = struct.unpack_from("<IB3xH", data) if len(data) >= 10 else (0, 0, 0)
    if version != 5 or encoding not in {1, 2}:
        raise ValueError(f"{path}: expected a .pak file of version 5 in UTF-8 or UTF-16, found {data[:10]!r}")
    table = list(struct.iter_unpack("<HI", data[12 : 12 + 6 * (n_entries + 1)]))
    for (number, first), (_, end) in pairwise(table):
        try:
            text = data[first:end].decode("utf-8" if encoding == 1 else "utf-16")
        except UnicodeDecodeError:
            continue  # a picture or compressed page among the texts
        yield number, _single_blanks(MARKUP.sub(" ", text))


def read_chromium(folder: Path) -> Iterator[Text]:
    """Texts of <locale>.pak, without those left in English. The number of a text is its key.

    Locales with a `_` are forms of address, nearly the same as the locale itself, and are left out.
    Raises ValueError for another format.
    """
    english = dict(_pak_strings(folder / "en-GB.pak"))
    untranslated = set(english.values())
    for path in sorted(folder.glob("*.pak")):
        if "_" in path.stem:
            continue
        label = to_iso639_3(path.stem)
        for number, text in _pak_strings(path):
            if len(text) < 3 or PROGRAM.search(text) or (label != "eng" and text in untranslated):
                continue
            yield Text(label, "chromium", str(number), text)


def _keywords(path: Path) -> list[str]:
    """The keywords of a file of annotations, each once; arrows stand for "as in the parent locale"."""
    found = (word.strip() for entry in ET.parse(path).iter("annotation") for word in (entry.text or "").split("|"))
    return [word for word in dict.fromkeys(found) if len(word) > 2 and "↑" not in word]


def read_cldr(folder: Path) -> Iterator[Text]:
    """Keywords of common/annotations, without those left in English. A keyword is its own key."""
    english = set(_keywords(folder / "annotations/en.xml"))
    for path in sorted((folder / "annotations").glob("*.xml")):
        if NOT_READ.fullmatch(path.stem):
            continue
        label = to_iso639_3(path.stem)
        for word in _keywords(path):
            if label == "eng" or word not in english:
                yield Text(label, "cldr", word.casefold(), _single_blanks(word))


def _paragraphs(root: ET.Element) -> Iterator[tuple[str, str]]:
    """Article ("preamble" outside of articles) and text of the paragraphs of a translation.

    Titles are left out: "Artikel 7" without its number is a word that dozens of small languages borrowed.
    """
    articles = {
        part: f"article {element.get('number')}"
        for element in root.iter()
        if element.tag.endswith("article")
        for part in element.iter()
    }
    for element in root.iter():
        if element.tag.endswith("para"):
            text = _single_blanks("".join(element.itertext()))
            if len(text) > 2 and "Missing" not in text:
                yield articles.get(element, PREAMBLE), text


def read_udhr(folder: Path) -> Iterator[Text]:
    """Paragraphs of udhr_*.xml, but for translations whose language is unknown. The number of the article is the key."""
    for path in sorted(folder.glob("udhr_*.xml")):
        root = ET.parse(path).getroot()
        code, script = root.get("iso639-3"), root.get("iso15924")
        paragraphs = list(_paragraphs(root))
        if code is None or code == UNKNOWN or sum(len(text) for _, text in paragraphs) < LEAST_UDHR:
            continue
        label = to_iso639_3(f"{code}_{script}")
        for article, text in paragraphs:
            yield Text(label, "udhr", article, text)


SOURCES = {
    "common-voice": read_common_voice,
    "chromium": read_chromium,
    "cldr": read_cldr,
    "udhr": read_udhr,
}
"""Reader of each source, by the name that its texts bear."""
