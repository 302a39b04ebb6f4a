"""Sentences in which no term should stand, to find lists that would drop everything: a blank or everyday word as a term.

`harmless.tsv`: ten sentences in each of a dozen languages, ours. A term that hits more than one in twenty of them is absurd.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

import numpy as np
import pyarrow as pa

from curation.filters.safety_terms.characters import characters
from curation.filters.safety_terms.expressions import confirmed
from curation.filters.safety_terms.find import find
from curation.filters.safety_terms.tables import Tables
from curation.filters.safety_terms.terms import Term
from curation.text import buffers
from curation.text.spans import bounds

__all__ = ["MOST_SHARE", "absurd_terms", "harmless_sentences"]

MOST_SHARE = 0.05


@cache
def harmless_sentences() -> tuple[str, ...]:
    """The sentences, in all languages."""
    lines = files(__package__).joinpath("harmless.tsv").read_text("utf-8").splitlines()
    return tuple(line.partition("\t")[2] for line in lines if not line.startswith("#"))


def absurd_terms(tables: Tables) -> list[tuple[Term, float]]:
    """Terms that hit more than MOST_SHARE of the sentences, with their share, worst first."""
    checked = bounds(*buffers(pa.array(harmless_sentences(), pa.large_string())))
    hits = confirmed(find(*checked, characters(), tables.tries, tables.rows), *checked, characters(), tables)
    pairs = np.unique(np.stack([hits.rows, hits.documents]), axis=1)
    shares = np.bincount(pairs[0], minlength=len(tables.terms)) / len(harmless_sentences())
    worst = np.argsort(-shares, kind="stable")
    return [(tables.terms[row], float(shares[row])) for row in worst.tolist() if shares[row] > MOST_SHARE]
