"""Scores in words, for the command line and the report: numbers, labels, and lists of them.

A list of `{label, share}` reads `jpn_Jpan 71 %, zho_Hans 29 %`; one of half-open line ranges `{label, first, end}` reads
`lines 0-11 jpn_Jpan, 12-19 zho_Hans`, with the last line named as people do. A label and its confidence are one line.
Takes what is there: a verdict file of another version may hold more, or less.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from curation.report.numbers import NBSP, value, value_beside

__all__ = ["list_words", "score_lines"]

MAX_ITEMS = 12
_CONFIDENCE = {"language": "confidence"}
"""The score that says how sure a label is; of others it is called as they are, with `_confidence`."""
_CLASS = {"language": "class"}
"""The score that says how a label was found."""


def score_lines(
    scores: Mapping[str, Any], thresholds: Mapping[str, Sequence[float]], meanings: Mapping[str, str]
) -> Iterator[str]:
    """A line for each score that a document has.

    Args:
        scores: values by name, as they come out of a verdict file; those that are undefined are left out.
        thresholds: of the scores that decide.
        meanings: what a score says that is a word.
    """
    said_before: set[str] = set()
    for name, found in scores.items():
        if name in said_before:
            continue
        beside = [key for key in (_CONFIDENCE.get(name, f"{name}_confidence"), _CLASS.get(name, "")) if key in scores]
        if isinstance(found, str) and beside:
            said_before.update(beside)
            yield _label_line(name, scores, thresholds, beside)
        elif isinstance(found, list):
            yield f"{name} {list_words(found)}".replace(NBSP, " ")  # a terminal's line is searched and copied
        else:
            limits = thresholds.get(name, [])
            number = value_beside(found, limits) if isinstance(found, float) else found
            said = _limits(limits) or meanings.get(name, "")
            yield f"{name} = {number}" + (f"  ({said})" if said else "")


def _label_line(
    name: str, scores: Mapping[str, Any], thresholds: Mapping[str, Sequence[float]], beside: Sequence[str]
) -> str:
    """`language jpn_Jpan 0.98 (agree)`."""
    words, remarks = [name, str(scores[name])], []
    for key in beside:
        found, limits = scores[key], thresholds.get(key, [])
        if isinstance(found, float):
            words.append(value_beside(found, limits))
        else:
            remarks.append(str(found))
        if limits:
            remarks.append(_limits(limits))
    return " ".join(words) + (f" ({', '.join(remarks)})" if remarks else "")


def _limits(limits: Sequence[float]) -> str:
    return "threshold " + ", ".join(f"{limit:g}" for limit in limits) if limits else ""


def list_words(items: Sequence[Any], limit: int = MAX_ITEMS) -> str:
    """A list of a verdict file on one line, cut after `limit` items; `none` if it is empty."""
    if not items:
        return "none"
    ranges = all(isinstance(item, Mapping) and {"first", "end"} <= item.keys() for item in items)
    words = ", ".join(_item_words(item) for item in items[:limit])
    more = f" and {len(items) - limit:,} more" if len(items) > limit else ""
    return ("lines " if ranges else "") + words + more


def _item_words(item: Any) -> str:
    if not isinstance(item, Mapping):
        return "none" if item is None else value(item) if isinstance(item, float) else str(item)
    first, end = item.get("first"), item.get("end")
    words = []
    if isinstance(first, int) and isinstance(end, int):
        words.append(str(first) if end == first + 1 else f"{first}-{end - 1}" if end > first else f"none at {first}")
    for name, inner in item.items():
        if name not in ("first", "end"):
            words.append(value(inner, "share") if isinstance(inner, float) else "none" if inner is None else str(inner))
    return " ".join(words)
