"""What safety filters say of a whole run: which terms fired in most documents, and what a cascade is likely to miss.

One pass over the verdict files, a table at a time; memory is one count for each term that was found, at most
`MAX_TERMS`. Costs about 3 us for each span that was found, nothing for documents without any. Plain data, as
`Filter.facts` gives it; a filter puts it beside what else it has to say.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from curation.matched_spans import MATCHED, MatchedSpan, read_spans
from curation.wilson import wilson

__all__ = ["MOST_TERMS", "cascade_facts", "term_facts"]

MOST_TERMS = 20
"""Terms of each category that are named."""
MAX_TERMS = 200_000
"""Different terms that are counted at once, about 60 MB; beyond it the rarest half is forgotten."""
_SIGMAS = 1.96
"""Half the width of the interval: 95 %."""
_ROWS = 10_000
"""Documents that are objects at once."""

_Key = tuple[str, str, str]
"""Category, term, rule."""
_DOCUMENTS, _DROPPED, _ALONE = range(3)


class _Terms:
    """Documents by term."""

    def __init__(self) -> None:
        self.counts: dict[_Key, list[int]] = defaultdict(lambda: [0, 0, 0])
        self.forgotten = 0

    def add(self, spans: list[MatchedSpan], *, dropped: bool, reason: str | None) -> None:
        """Count one document."""
        keys = {(span.category, span.term, span.rule) for span in spans}
        own = (reason or "").partition(".")[2]
        is_alone = dropped and sum(category == own for category, _, _ in keys) == 1
        for key in keys:
            cell = self.counts[key]
            cell[_DOCUMENTS] += 1
            cell[_DROPPED] += dropped
            cell[_ALONE] += is_alone and key[0] == own
        if len(self.counts) > MAX_TERMS:
            self._forget()

    def _forget(self) -> None:
        ranked = self.ranked()
        self.forgotten += len(ranked) - MAX_TERMS // 2
        for key, _ in ranked[MAX_TERMS // 2 :]:
            del self.counts[key]

    def ranked(self) -> list[tuple[_Key, list[int]]]:
        """Most documents first, then by name."""
        return sorted(self.counts.items(), key=lambda item: (-item[1][_DOCUMENTS], item[0]))


def term_facts(tables: Iterable[pa.Table]) -> dict[str, Any]:
    """The terms that fired in most documents, by category: `terms` and `different_terms`.

    `terms`: category -> at most `MOST_TERMS` of `{"term", "rule", "documents", "dropped", "alone"}`: documents in which it
    stands, how many of them this step dropped, and how many of these it dropped for this category with no other term of it.
    A document names at most 32 spans, so that a term in a document full of heavier ones is not counted.
    `different_terms`: category -> how many there are. `forgotten_terms` only where there were more than are counted.

    Args:
        tables: verdict files of the step `safety_terms`, one table each, with `keep`, `reason` and `matched`.
    """
    found = _Terms()
    for table in tables:
        for keep, reason, cell in _documents_with_terms(table):
            found.add(read_spans(cell), dropped=keep is False, reason=reason)
    terms: dict[str, list[dict[str, Any]]] = defaultdict(list)
    different: dict[str, int] = defaultdict(int)
    for (category, term, rule), counts in found.ranked():
        different[category] += 1
        if len(terms[category]) < MOST_TERMS:
            names = ("documents", "dropped", "alone")
            terms[category].append({"term": term, "rule": rule, **dict(zip(names, counts, strict=True))})
    facts: dict[str, Any] = {"terms": dict(sorted(terms.items())), "different_terms": dict(sorted(different.items()))}
    return {**facts, "forgotten_terms": found.forgotten} if found.forgotten else facts


def _documents_with_terms(table: pa.Table) -> Iterator[tuple[bool | None, str | None, str]]:
    """keep, reason and `matched` of the documents in which a term was found."""
    with_any = table.select(["keep", "reason", MATCHED]).filter(pc.is_valid(table.column(MATCHED)))
    for batch in with_any.to_batches(max_chunksize=_ROWS):
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def cascade_facts(audited: int, audited_unsafe: int, documents_not_read: int) -> dict[str, Any]:
    """The fact `cascade`: what a random sample says of the documents that the model did not read.

    Args:
        audited: documents that were drawn at random from those the cascade would not have read, and were read.
        audited_unsafe: how many of them the model drops.
        documents_not_read: that were not drawn: what the estimate is about.
    """
    low, high = wilson(audited_unsafe, audited, _SIGMAS)
    return {
        "audited": audited,
        "audited_unsafe": audited_unsafe,
        "estimate": audited_unsafe / audited if audited else None,
        "low": low,
        "high": high,
        "documents_not_read": documents_not_read,
    }
