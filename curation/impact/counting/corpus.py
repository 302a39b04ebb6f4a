"""A corpus of a given size, and what a change would mean there: `2.5T tokens`, `3Bdocuments`."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from curation.errors import ConfigError
from curation.impact.counting.figure_types import MEASURES, Corpus, Estimate, Extrapolation, Scaled
from curation.impact.counting.intervals import Ratios

__all__ = ["corpus_of", "extrapolation_of"]

Mask = npt.NDArray[np.bool_]

MAX_LANGUAGES = 20
_TIMES = {"": 1.0, "k": 1e3, "m": 1e6, "b": 1e9, "g": 1e9, "t": 1e12}
_SIZE = re.compile(
    r"(?P<number>(?:\d{1,3}(?:[,_]\d{3})+|\d+)(?:\.\d+)?(?:e\+?\d{1,3})?)\s*(?P<times>[kmbgt]?)\s*"
    r"(?P<measure>tokens?|documents?|docs?)",
    re.IGNORECASE | re.ASCII,
)


def corpus_of(words: str) -> Corpus:
    """A corpus by its size in words: a number, k, M, B or T if need be, and `tokens` or `documents`.

    Raises:
        ConfigError: they say something else, or nothing.
    """
    found = _SIZE.fullmatch(words.strip())
    size = 0.0
    if found is not None:
        size = float(re.sub("[,_]", "", found["number"])) * _TIMES[found["times"].lower()]
    if found is None or not (0 < size < math.inf):
        raise ConfigError(
            f"corpus size {words[:60]!r}: expected a number above 0, k, M, B or T, and `tokens` or `documents`, such as "
            "2.5Ttokens, 300Mdocuments or 1e9tokens: what the base keeps of the corpus."
        )
    return Corpus(size, "tokens" if found["measure"].lower().startswith("token") else "documents")


def extrapolation_of(ratios: Ratios, corpus: Corpus | None, *, drawn: bool) -> Extrapolation | None:
    """What the change would mean on a corpus of this size, or else on the one that the sample was drawn from.

    Each measure is estimated by the corpus's own one: documents of a corpus of so many tokens are as uncertain as its mean
    length is. None if there is no corpus, or the base keeps nothing of it.

    Args:
        drawn: the sample was drawn from a corpus by its weights.
    """
    cells = ratios.cells
    kept = cells.kept("before")
    if corpus is None and drawn and kept.any():
        corpus, asked = Corpus(float(cells.amounts[0][kept].sum()), "documents"), False
    else:
        asked = True
    if corpus is None or not cells.amounts[MEASURES.index(corpus.measure)][kept].sum() > 0:
        return None
    scaled = {measure: _scaled(ratios, corpus, cells.all, measure) for measure in MEASURES}
    return Extrapolation(corpus, not asked, scaled, _languages(ratios, corpus))


def _languages(ratios: Ratios, corpus: Corpus) -> Mapping[str, Scaled]:
    """The languages that move, those that move most first."""
    cells = ratios.cells
    moved = cells.kept("before") != cells.kept("after")
    names = [name for name in cells.names["language"] if (cells.where("language", name) & moved).any()]
    found = {name: _scaled(ratios, corpus, cells.where("language", name), corpus.measure) for name in names}
    largest = sorted(found, key=lambda name: (-(found[name].leaves.value + found[name].comes_in.value), name))
    return {name: found[name] for name in largest[:MAX_LANGUAGES]}


def _scaled(ratios: Ratios, corpus: Corpus, rows: Mask, measure: str) -> Scaled:
    """One measure of some of the corpus."""
    kept, now = ratios.cells.kept("before"), ratios.cells.kept("after")
    before, leaves, comes_in = rows & kept, rows & kept & ~now, rows & now & ~kept
    if measure != corpus.measure:

        def rate(top: Mask, could: Mask) -> Estimate:
            return _times(ratios.rate(top, kept, measure, of=corpus.measure, could=could), corpus.size)

        return Scaled(rate(before, rows), rate(leaves, before), rate(comes_in, rows & ~kept), rate(rows & now, rows))
    share = ratios.share(before, kept, measure)
    net = ratios.difference(comes_in, leaves, kept, measure, could=rows & ~kept)
    assert share is not None  # the base keeps something
    assert net is not None
    if (before == kept).all():
        after: Estimate | None = Estimate(1 + net.value, max(0.0, 1 + net.low), 1 + net.high)
    else:
        after = ratios.rate(rows & now, kept, measure, could=rows)
    return Scaled(
        before=_times(share if (before != kept).any() else Estimate(1.0, 1.0, 1.0), corpus.size),
        leaves=_times(ratios.share(leaves, kept, measure), corpus.size),
        comes_in=_times(ratios.rate(comes_in, kept, measure, could=rows & ~kept), corpus.size),
        after=_times(after, corpus.size),
    )


def _times(estimate: Estimate | None, size: float) -> Estimate:
    assert estimate is not None  # the base keeps something
    return Estimate(estimate.value * size, estimate.low * size, estimate.high * size)
