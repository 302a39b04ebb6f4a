"""Which n-grams a model of a given size keeps, and their probabilities: pruned, interpolated Kneser-Ney.

Kept are those that change most: an n-gram's weight is how often it occurs, times how far its probability lies from
that of its suffix (in nats), as in Seymore and Rosenfeld, "Scalable backoff language models" (1996). What a kept
n-gram begins and ends with is kept too, so that a look-up may stop at the first that is missing.

Probabilities are those of modified Kneser-Ney smoothing (Chen and Goodman, 1998), with one change for pruning
(Siivola, Hirsimäki and Virpioja, "On growing and pruning Kneser-Ney smoothed n-gram models", 2007): a shorter n-gram
counts once for each kept n-gram that ends with it, and as often as it occurs for those that are not kept, since
these are what it will be asked for. Where nothing is pruned, this is Kneser-Ney smoothing itself.

    p(w | h) = max(c(hw) - D, 0) / c(h) + g(h) p(w | h'),     g(h) = 1 - sum of the first term over kept hw

h' is h without its first character; D depends on whether c(hw) is 1, 2 or more; for the empty h, p(w | h') is the
same for each listed character and for "any other". The probabilities after any h sum to 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from quality_models.ngram_counts import Counted, Level

__all__ = ["Estimated", "Grams", "chosen", "discounts", "estimate", "weights"]

Int64s: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float64]
Bools: TypeAlias = npt.NDArray[np.bool_]

FALLBACK = (0.5, 1.0, 1.5)
"""Discounts where the text is too small or too even to estimate them."""
ROUNDS = 40


class Grams(NamedTuple):
    """The kept n-grams of one order.

    prefix, suffix: int64[n], rows of the order below. last: int64[n], numbers of characters. log_p: float64[n],
    ln p(last | prefix). log_backoff: float64[n], ln g of the n-gram as context; 0 where nothing kept follows it.
    """

    prefix: Int64s
    suffix: Int64s
    last: Int64s
    log_p: Floats
    log_backoff: Floats


class Estimated(NamedTuple):
    """A model before it is packed. characters: uint32[V - 1], number 1 first. grams: order 1 first, V of them."""

    characters: npt.NDArray[np.uint32]
    grams: list[Grams]

    @property
    def order(self) -> int:
        return len(self.grams)


def weights(levels: Sequence[Level]) -> list[Floats]:
    """What each n-gram of each order says that its suffix does not: float64[n], nats over the whole text."""
    found: list[Floats] = [np.full(len(levels[0].last), np.inf)]
    shares = (levels[0].counts + 0.5) / (levels[0].counts.sum() + 0.5 * len(levels[0].counts))
    for level in levels[1:]:
        own = level.counts / level.followed[level.prefix]
        found.append((level.counts - 0.5) * np.abs(np.log(own / shares[level.suffix])))
        shares = own
    return found


def chosen(levels: Sequence[Level], said: Sequence[Floats], least: float) -> list[Bools]:
    """Which n-grams are kept: those with a weight of `least`, and what they begin and end with."""
    kept = [one >= least for one in said]
    for n in range(len(levels) - 1, 0, -1):
        kept[n - 1][levels[n].prefix[kept[n]]] = True
        kept[n - 1][levels[n].suffix[kept[n]]] = True
    kept[0][:] = True
    return kept


def fitting(levels: Sequence[Level], costs: Sequence[float], room: float) -> list[Bools]:
    """The n-grams with the most weight whose cost (a number for each order) is `room` or less in sum."""

    def cost(kept: Sequence[Bools]) -> float:
        return sum(each * int(which.sum()) for each, which in zip(costs, kept, strict=True))

    said = weights(levels)
    everything = chosen(levels, said, 0.0)
    if cost(everything) <= room:
        return everything
    low, high = -10.0, 30.0  # e^high nats: more than any text has
    for _ in range(ROUNDS):
        middle = (low + high) / 2
        if cost(chosen(levels, said, float(np.exp(middle)))) <= room:
            high = middle
        else:
            low = middle
    return chosen(levels, said, float(np.exp(high)))


def discounts(counts: Int64s, rare: int) -> tuple[float, float, float]:
    """What is taken off counts of 1, of 2, and of 3 and more. rare: how many counts of 1 are not in `counts`."""
    n1, n2, n3, n4 = (int((counts == k).sum()) + (rare if k == 1 else 0) for k in (1, 2, 3, 4))
    if min(n1, n2, n3, n4) == 0:
        return FALLBACK
    y = n1 / (n1 + 2 * n2)
    found = (1 - 2 * y * n2 / n1, 2 - 3 * y * n3 / n2, 3 - 4 * y * n4 / n3)
    if not all(0 < found[k] < k + 1 for k in range(3)):
        return FALLBACK
    return found


def _adjusted(counted: Sequence[Level], kept: Sequence[Bools], n: int) -> tuple[Int64s, Int64s]:
    """Counts of the n-grams of row n (order n + 1), and of their prefixes as contexts, as the module's text has it."""
    level = counted[n]
    counts, followed = level.counts.copy(), level.followed.copy()
    if n + 1 < len(counted):
        longer, which = counted[n + 1], kept[n + 1]
        suffix, again = longer.suffix[which], longer.counts[which] - 1
        np.subtract.at(counts, suffix, again)
        np.subtract.at(followed, level.prefix[suffix] if n else np.zeros_like(suffix), again)
    return counts, followed


def estimate(counted: Counted, kept: Sequence[Bools]) -> Estimated:
    """The model of the kept n-grams (bool[n] for each order). The first level, the characters, is kept whole."""
    levels = counted.levels
    grams: list[Grams] = []
    below: Floats = np.full(len(levels[0].last), 1 / len(levels[0].last))
    for n, level in enumerate(levels):
        counts, followed = _adjusted(levels, kept, n)
        off = np.array([0.0, *discounts(counts, level.rare)])
        which = np.flatnonzero(kept[n])
        rows = np.cumsum(kept[n - 1]) - 1 if n else np.zeros(1, np.int64)
        prefix = level.prefix[which] if n else np.zeros(len(which), np.int64)
        share = np.maximum(counts[which] - off[np.minimum(counts[which], 3)], 0) / followed[prefix]
        taken = np.bincount(prefix, share, minlength=len(followed))
        left = np.maximum(1 - taken, 1e-9)
        suffix = rows[level.suffix[which]] if n else prefix
        p = share + left[prefix] * (below[suffix] if n else below)
        if n:
            parents = np.flatnonzero(kept[n - 1])
            has_children = np.bincount(rows[prefix], minlength=len(parents)) > 0
            backoff = np.where(has_children, np.log(left[parents]), 0.0)
            grams[-1] = grams[-1]._replace(log_backoff=backoff)
        grams.append(Grams(rows[prefix] if n else prefix, suffix, level.last[which], np.log(p), np.zeros(len(which))))
        below = p
    return Estimated(counted.characters, grams)
