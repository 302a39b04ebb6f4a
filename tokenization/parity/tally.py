"""Counts of a comparison: over all documents, by language, and the documents that are worst.

Memory: 40 bytes a document, and a few excerpts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tokenization.parity.ids import Ids

if TYPE_CHECKING:
    from tokenization.tokenizer import Encoded

__all__ = ["Tally", "Text"]

UNNAMED = ""
"""Key of documents whose language is not known."""
MOST_SAMPLES, MOST_WORST = 5, 5
EXCERPT = 40
SURE = 3.0
"""Standard errors by which a share must lie over its limit in a sample."""


@dataclass(frozen=True, slots=True)
class Text:
    """A text with a name."""

    where: str
    """`document d17`."""
    text: str
    language: str | None


@dataclass
class _Sums:
    documents: int = 0
    tokens: int = 0
    unknown: int = 0
    characters: int = 0
    bytes: int = 0
    lost: int = 0
    documents_with_loss: int = 0
    different: int = 0

    def shares(self) -> dict[str, Any]:
        return {
            **vars(self),
            "unk_share": self.unknown / max(self.tokens, 1),
            "lost_share": self.lost / max(self.characters, 1),
            "tokens_per_character": self.tokens / max(self.characters, 1),
            "tokens_per_byte": self.tokens / max(self.bytes, 1),
        }


@dataclass
class Tally:
    """Adds up documents as they are compared."""

    max_id: int
    """The largest id seen, probes and special tokens included."""
    all: _Sums = field(default_factory=_Sums)
    languages: dict[str, _Sums] = field(default_factory=dict)
    samples: list[dict[str, str]] = field(default_factory=list)
    """Documents that decoding does not give back: where, the text, and what came back, around the first difference."""
    worst: list[tuple[float, str]] = field(default_factory=list)
    """Documents with the greatest shares of unknown tokens."""
    _pairs: dict[str, list[tuple[int, int]]] = field(default_factory=lambda: {"unknown": [], "lost": []})

    def add(
        self,
        batch: Sequence[Text],
        encoded: Encoded,
        ids: Sequence[Ids],
        equal: Sequence[bool],
        decode: Callable[[list[int]], str],
    ) -> None:
        """Count a batch of documents."""
        self.max_id = max(self.max_id, int(encoded.ids.max(initial=0)))
        rows = zip(
            *(column.tolist() for column in (encoded.lengths, encoded.unknown, encoded.characters, encoded.lost)),
            strict=True,
        )
        for text, (tokens, unknown, characters, lost), same, own in zip(batch, rows, equal, ids, strict=True):
            n_bytes = len(text.text.encode())
            for sums in (self.all, self.languages.setdefault(text.language or UNNAMED, _Sums())):
                sums.documents += 1
                sums.tokens += tokens
                sums.unknown += unknown
                sums.characters += characters
                sums.bytes += n_bytes
                sums.lost += lost
                sums.documents_with_loss += lost > 0
                sums.different += not same
            self._pairs["unknown"].append((unknown, tokens))
            self._pairs["lost"].append((lost, characters))
            if unknown:
                self.worst = sorted([*self.worst, (unknown / tokens, text.where)], reverse=True)[:MOST_WORST]
            if lost and len(self.samples) < MOST_SAMPLES:
                self.samples.append(_sample(text, decode(list(own))))

    def totals(self) -> dict[str, Any]:
        """Sums and shares over all documents, and which are worst."""
        return {
            **self.all.shares(),
            "most_unknown": [{"where": where, "unk_share": share} for share, where in self.worst],
            "not_given_back": self.samples,
        }

    def by_language(self) -> dict[str, dict[str, Any]]:
        """The same by language, most documents first."""
        order = sorted(self.languages, key=lambda name: (-self.languages[name].documents, name))
        return {name: self.languages[name].shares() for name in order}

    def is_over(self, what: str, limit: float, *, complete: bool) -> bool:
        """Whether the share of `unknown` tokens or `lost` characters is over a limit; of a sample, beyond doubt.

        Documents are drawn whole, so the error is that of a ratio over documents: W. G. Cochran, Sampling Techniques, 6.3.
        """
        pairs = self._pairs[what]
        whole = sum(total for _, total in pairs)
        if not whole:
            return False
        share = sum(part for part, _ in pairs) / whole
        if complete or len(pairs) < 2 or share <= limit:
            return share > limit
        squares = sum((part - share * total) ** 2 for part, total in pairs)
        error = math.sqrt(len(pairs) / (len(pairs) - 1) * squares) / whole
        return share - SURE * error > limit


def _sample(text: Text, back: str) -> dict[str, str]:
    place = next(
        (i for i, (a, b) in enumerate(zip(text.text, back, strict=False)) if a != b), min(len(text.text), len(back))
    )
    start = max(0, place - EXCERPT // 2)
    return {
        "where": text.where,
        "text": text.text[start : start + EXCERPT],
        "decoded": back[start : start + EXCERPT],
    }
