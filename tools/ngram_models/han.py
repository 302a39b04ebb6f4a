"""Chinese in both forms: what a source has in simplified characters, in traditional ones too, and the other way round.

Characters and words are those of OpenCC's tables, by the package opencc-python-reimplemented (Apache-2.0).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tools.ngram_models.sources import Text

__all__ = ["in_both_forms"]

CHINESE = "zho"
SOURCES = frozenset({"laws", "stories", "ntrex", "common-voice", "tatoeba"})
"""Those that are not manuals: these come in both forms, or are more than enough."""


def in_both_forms(texts: Iterable[Text]) -> Iterator[Text]:
    """The texts, and after each Chinese one of these sources the same in the other form."""
    from opencc import OpenCC  # type: ignore[import-not-found]

    simplify, complicate = OpenCC("t2s").convert, OpenCC("s2t").convert
    for text in texts:
        yield text
        if text.language == CHINESE and text.source in SOURCES:
            simple = simplify(text.text)
            yield text._replace(text=simple if simple != text.text else complicate(text.text))
