"""Where in a document stands what a step judged it by: bytes of the text, for an excerpt around them with marks in it.

What a step found is taken from its scores where they tell places (`safety_terms.matched`, `safety_model.worst_begin`,
`language.spans`), and looked for again where they are shares of a kind of text that can be pointed at (markup, repeated
lines, links). It is looked for with this code: what only the code of an older revision finds has no marks. A length, a
perplexity or a mean is about a whole text and has no place. Looks at `LOOKED_BYTES` of a text at most; under 1 ms a document.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from curation.impact.shown.evidence_of_rules import spans_of_measure
from curation.matched_spans import MATCHED, MatchedSpan, read_spans
from curation.report.excerpt import EXCERPT_CHARS

__all__ = ["LOOKED_BYTES", "Evidence", "evidence_of"]

LOOKED_BYTES = 200_000
"""Bytes of a text in which something is looked for again."""
MAX_SPANS = 2_000
_WORDS_OF_KIND = {
    "BARE_TAG": "tag", "PAGE_TAG": "tag of a page", "SCRIPT": "script", "ENTITY": "character reference", "CSS": "style sheet",
    "TEMPLATE": "mark of a template",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Evidence:
    """What to show of a document."""

    begin: int = 0
    """Byte around which the excerpt should be."""
    spans: tuple[MatchedSpan, ...] = ()
    """In the order of the text."""
    note: str = ""
    """What stands there, where no marks say it."""


def evidence_of(step: str, score: str | None, reason: str | None, row: Mapping[str, Any], text: memoryview) -> Evidence:
    """What a step judged a document by.

    Args:
        score: the score that decided, if one can be named.
        reason: why the step dropped it; None if it did not.
        row: its verdict row, as it lies on disk.
        text: UTF-8.
    """
    looked = bytes(text[:LOOKED_BYTES])
    spans: Sequence[MatchedSpan] = ()
    if step == "safety_terms":
        spans = _terms(row, reason, score, len(text))
    elif step == "safety_model":
        return _window(row, len(text))
    elif step == "language":
        spans = _other_languages(row, looked)
    elif step == "html_noise":
        spans = _markup(looked)
    elif step == "rules" and score is not None:
        spans = spans_of_measure(score, looked)
    ordered = tuple(sorted(spans, key=lambda span: (span.begin, span.end))[:MAX_SPANS])
    return Evidence(_densest(ordered, len(text)), ordered)


def _terms(row: Mapping[str, Any], reason: str | None, score: str | None, n_bytes: int) -> list[MatchedSpan]:
    """Terms of the category that decided, or that the score is of (`drugs_density`); of all if none of it is named."""
    spans = [span for span in read_spans(row.get(MATCHED)) if span.end <= n_bytes]
    category = reason.partition(".")[2] if reason else (score or "").rpartition("_")[0]
    return [span for span in spans if span.category == category] or spans


def _window(row: Mapping[str, Any], n_bytes: int) -> Evidence:
    begin, end, label = (row.get(name) for name in ("worst_begin", "worst_end", "worst_label"))
    if not isinstance(begin, int) or not isinstance(end, int) or not 0 <= begin < end <= n_bytes:
        return Evidence()
    whole = begin == 0 and end == n_bytes
    words = "all of it was read at once" if whole else f"the part that decided: bytes {begin:,} to {end:,}"
    return Evidence(begin, (), f"{words}, for {label}" if label else words)


def _other_languages(row: Mapping[str, Any], text: bytes) -> list[MatchedSpan]:
    """Lines that are not in the main language."""
    runs = [run for run in row.get("spans") or [] if isinstance(run, Mapping)]
    main = row.get("language")
    ends = np.flatnonzero(np.frombuffer(text, np.uint8) == ord("\n"))
    starts, ends = np.append(0, ends + 1), np.append(ends, len(text))
    spans = []
    for run in runs:
        first, end, language = run.get("first"), run.get("end"), str(run.get("language"))
        if language == main or not isinstance(first, int) or not isinstance(end, int) or not 0 <= first < end:
            continue
        if first >= len(starts):
            break
        begin, last = int(starts[first]), int(ends[min(end, len(ends)) - 1])
        if begin < last:
            spans.append(MatchedSpan("another language", language, begin, last, "language.spans"))
    return spans


def _markup(text: bytes) -> list[MatchedSpan]:
    """Left-overs of HTML, a run of one kind each."""
    from curation.markup import Kind, kinds_of

    decoded = text.decode("utf-8", "ignore")
    kinds = kinds_of(decoded)
    borders = np.flatnonzero(np.diff(kinds, prepend=255, append=255))
    spans = []
    for begin, end in zip(borders[:-1].tolist(), borders[1:].tolist(), strict=True):
        name = Kind(int(kinds[begin])).name
        if name in _WORDS_OF_KIND:
            spans.append(MatchedSpan("markup", _WORDS_OF_KIND[name], begin, end, "html_noise"))
    return spans


def _densest(spans: Sequence[MatchedSpan], n_bytes: int) -> int:
    """The span from which on an excerpt holds most of all that is marked; 0 if the beginning holds as much."""
    if not spans:
        return 0
    begins = np.array([span.begin for span in spans], np.int64)
    ends = np.array([span.end for span in spans], np.int64)
    room = min(EXCERPT_CHARS, n_bytes)
    starts = np.append(0, begins)
    covered = np.zeros(len(starts), np.int64)
    sums = np.append(0, np.cumsum(ends - begins))
    for place, start in enumerate(starts.tolist()):
        first, last = np.searchsorted(begins, start), np.searchsorted(begins, start + room)
        inside = int(sums[last] - sums[first])
        covered[place] = inside - max(0, int(ends[last - 1]) - start - room if last > first else 0)
    return int(starts[int(covered.argmax())])
