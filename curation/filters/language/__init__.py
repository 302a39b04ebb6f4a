"""The language of each document, line by line: two models, their script, further voters where they disagree.

fastText's lid.176 and langdetect are both asked about each line in a script that several languages share,
and scripts of one language answer for themselves (`parts`, `cjk`): whole pages are what models get wrong.
At 29 % Japanese characters fastText calls half of all Chinese pages Japanese and langdetect 84 %, at 38 % they
agree on that; and langdetect calls Traditional Chinese Korean. See docs/decisions for the method, and
docs/how-to/split-by-language.md for routing. Speed and accuracy: bench/results/language.md.
"""

from __future__ import annotations

from curation.filters.language.config import LanguageConfig
from curation.filters.language.step import Language

__all__ = ["Language", "LanguageConfig"]
