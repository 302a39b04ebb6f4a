"""How many of the most frequent words of its language a text has: Gopher's test of whether it is text at all.

`stop_words.tsv` holds a list for each language that has one: FineWeb-2's, and Gopher's own eight words for English
(Rae et al. 2021, section A.1.1). Counted are distinct words of the list, in any case; Gopher asks for two. Undefined
(null) where the label names no language or one without a list, and where a fifth of the letters or more are of another
script than the label's: pages of code and half-translated ones may be called after their smaller half. Costs 0.2 ns a
byte beside the parts.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.ma as ma
import pyarrow as pa

from curation.filters.labels import letters_of_script, lookup_keys
from curation.filters.rules.limits import read_rows
from curation.filters.rules.parts import Parts
from curation.filters.rules.words import WordLists, distinct_of, word_lists
from curation.records import ScoreColumn

__all__ = ["COLUMNS", "ENOUGH", "measure"]

COLUMNS = (ScoreColumn("stop_words", pa.int32(), "words", "distinct frequent words of its language, up to 8"),)

OWN_SCRIPT = 0.8
"""Share of letters in the script of the label below which the language is not believed."""
ENOUGH = 8
"""More are not counted, and no limit may ask for them."""


@cache
def _lists() -> tuple[WordLists, dict[str, int]]:
    """The lists, and the place of each by its key."""
    rows = read_rows("stop_words.tsv")
    return word_lists([row["words"].split(" ") for row in rows]), {row["label"]: i for i, row in enumerate(rows)}


def measure(parts: Parts, labels: pa.StringArray) -> dict[str, ma.MaskedArray]:
    """The column of n documents with their labels: int32[n], masked where there is no list."""
    lists, places = _lists()
    encoded = labels.dictionary_encode()
    chosen = [
        next((places[key] for key in lookup_keys(name) if key in places), -1) for name in encoded.dictionary.to_pylist()
    ]
    of_document = np.array(chosen, np.int64)[encoded.indices.to_numpy(zero_copy_only=False)]
    found = distinct_of(parts, of_document, lists, enough=ENOUGH)
    other_script = letters_of_script(parts.letters, labels) <= OWN_SCRIPT * parts.letters.sum(axis=1)
    return {"stop_words": ma.MaskedArray(found, (of_document < 0) | other_script)}
