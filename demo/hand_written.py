"""The documents in `demo/documents`, written for this project (CC0), each with what it is and why it is there.

A row is `{"id", "lang", "kind", "genre", "why", "text"}`, with `copy_of` where the text deliberately equals another's.
Only id, url and text reach the demo input; the rest stays here as our own label. Reading costs a few milliseconds.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

__all__ = ["FOLDER", "KINDS", "HandWritten", "read_hand_written"]

FOLDER = Path(__file__).resolve().parent / "documents"

KINDS = {
    "good": "readable text of its language",
    "kanji_only": "Japanese with whole lines of kanji: must not be taken for Chinese",
    "mixed_zh_ja": "Chinese and Japanese in one document: no single language is right",
    "mixed_zh_en": "Chinese prose with English terms: Chinese",
    "mixed_ja_en": "Japanese prose with English terms: Japanese",
    "mixed_ko_en": "Korean prose with English terms: Korean",
    "mixed_de_en": "German with English loan words: German",
    "forum_useful": "a thread or reply in short lines that teaches something: good",
    "forum_filler": "a thread or reply that says nothing",
    "advert": "an advertisement or spam",
    "euphemism": "an offer of something unlawful behind harmless words",
    "literal": "the words of a euphemism in their plain sense: good",
    "html_residue": "scripts, styles, tags, entities or template marks that should have been removed",
    "html_tutorial": "legitimate text about such marks: good",
    "navigation": "menus, lists of links, footers, banners",
    "seo": "text for search engines, not for readers",
    "mojibake": "text that was decoded with the wrong charset",
    "too_short": "too little to judge",
    "repeated": "the same line, phrase or paragraph over and over",
    "table": "numbers without sentences",
    "lorem": "placeholder text",
    "code": "source code or a terminal's output",
    "control": "control, zero-width or combining characters in places where they disturb",
}
"""Closed list of kinds, each with one sentence."""


@dataclass(frozen=True, slots=True)
class HandWritten:
    """One hand-written document with its label."""

    id: str
    lang: str
    """BCP 47 tag; `und` for no language, `zh+ja` where two are mixed in equal parts."""
    kind: str
    """A key of KINDS."""
    genre: str
    why: str
    text: str
    copy_of: str | None = None
    """The id of the document that has the same text, where that is on purpose."""

    @property
    def url(self) -> str:
        """An address of its own under example.org."""
        group, _, number = self.id.rpartition("-")
        return f"https://{group}.example.org/{self.kind.replace('_', '-')}/{number}"


def read_hand_written(folder: Path = FOLDER) -> list[HandWritten]:
    """All hand-written documents, by file name and line.

    Raises:
        TypeError: a row has a field that is not known, or lacks one.
    """
    return [
        HandWritten(**json.loads(line))
        for path in sorted(folder.glob("*.jsonl"))
        for line in path.read_bytes().splitlines()  # of bytes: a string would be cut at U+2028 and U+0085, too
    ]
