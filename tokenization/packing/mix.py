"""How often a document is packed, and on which side of the holdout it lies: functions of its identity alone.

A group is what a pattern of the mixture fits: input files, or languages. A group's epochs say how often each of its
documents is packed; a fraction is decided by a hash of doc_id, the holdout by a hash of text_id. Both ids are
SHA-256, so 8 of their 16 bytes are the hash: the choice is the same in every run, a larger share chooses what a
smaller one chose and more, and one text is never on both sides.

Costs 10 ns a document. Up to four epochs: "Scaling Data-Constrained Language Models", arXiv 2305.16264.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

__all__ = ["OTHERS", "Mix", "MixError", "chosen", "copies", "epochs_of_weights", "hash_of"]

OTHERS = "*"
"""Names the group of all that no pattern of `epochs` fits: packed once, as by a pattern `*` at the end."""


class MixError(ValueError):
    """The mixture cannot be made of these documents; the message says why."""


@dataclass(frozen=True, slots=True)
class Mix:
    """Patterns in their order, each with epochs or with a weight.

    epochs: (pattern, times each document is packed, at least 0)
    weights: (pattern, share of tokens wanted, above 0); exactly one of the two has entries.
    """

    by: Literal["source", "language"]
    epochs: tuple[tuple[str, float], ...] = ()
    weights: tuple[tuple[str, float], ...] = ()
    max_epochs: float = 4.0
    _known: dict[str, int] = field(default_factory=dict, repr=False, compare=False)

    @property
    def patterns(self) -> tuple[str, ...]:
        """Names of the groups; with epochs the last one is that of the others."""
        return (*(name for name, _ in self.epochs), OTHERS) if self.epochs else tuple(name for name, _ in self.weights)

    def groups_of(self, names: Sequence[str]) -> npt.NDArray[np.int64]:
        """The group of each source or language: its number in `patterns`, int64[n].

        Raises:
            MixError: with weights, no pattern fits; the message names the source or language.
        """
        return np.array([self._group_of(name) for name in names], np.int64)

    def _group_of(self, name: str) -> int:
        if name not in self._known:
            self._known[name] = self._first_fitting(name)
        return self._known[name]

    def _first_fitting(self, name: str) -> int:
        forms = {name, name.rsplit("/", 1)[-1]} if self.by == "source" else {name}
        for number, pattern in enumerate(self.patterns):
            if any(fnmatch.fnmatchcase(form, pattern) for form in forms):
                return number
        if self.epochs:
            return len(self.epochs)
        raise MixError(
            f"no pattern of weights fits {self.by} {name!r}: what share of the tokens is it to have? "
            f"Patterns: {', '.join(map(repr, self.patterns))}. Add one for it, or '*' for all others."
        )


def epochs_of_weights(tokens: Sequence[int], mix: Mix) -> tuple[float, ...]:
    """How often each group's documents are packed, so that its tokens have the share that its weight asks for.

    As many tokens as it takes to pack every document at least once; fewer where a group would be packed more than
    `max_epochs` times.

    Args:
        tokens: of each group, every document counted once.

    Raises:
        MixError: a group has no tokens while others have: its share cannot be had.
    """
    weights = [weight for _, weight in mix.weights]
    if not any(tokens):
        return (0.0,) * len(weights)
    empty = [name for (name, _), n in zip(mix.weights, tokens, strict=True) if not n]
    if empty:
        raise MixError(
            f"weights: {', '.join(map(repr, empty))} fits no {mix.by} with documents to pack, so it cannot have its share "
            f"of the tokens. Known: {', '.join(sorted(map(repr, mix._known))[:20])}."
        )
    # With t tokens for each unit of weight, group g is packed t * weight / tokens times.
    whole = max(n / weight for n, weight in zip(tokens, weights, strict=True))
    most = min(mix.max_epochs * n / weight for n, weight in zip(tokens, weights, strict=True))
    unit = min(whole, most)
    # Rounding must not make a document that is packed once be left out by chance, or exceed the limit.
    found = (unit * weight / n for n, weight in zip(tokens, weights, strict=True))
    return tuple(min(round(epochs, 9), mix.max_epochs) for epochs in found)


def hash_of(ids: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint64]:
    """The last 8 bytes of each id as a little-endian number.

    Args:
        ids: uint8[n, 16].

    Returns:
        uint64[n], evenly spread.
    """
    return np.ascontiguousarray(ids[:, 8:]).view("<u8").reshape(-1)


def chosen(hashes: npt.NDArray[np.uint64], share: npt.NDArray[np.float64] | float) -> npt.NDArray[np.bool_]:
    """Which documents lie in a share (0 to below 1, one for all or one for each): bool[n]."""
    limit = np.asarray(np.asarray(share) * 2.0**64).astype(np.uint64)
    return np.asarray(hashes < limit, np.bool_)


def copies(hashes: npt.NDArray[np.uint64], epochs: npt.NDArray[np.float64]) -> npt.NDArray[np.uint16]:
    """How often each document is packed: uint16[n].

    Args:
        hashes: of doc_id.
        epochs: float64[n], 0 to 1000.
    """
    whole = np.floor(epochs)
    return whole.astype(np.uint16) + chosen(hashes, epochs - whole)
