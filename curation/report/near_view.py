"""What the report says of near-deduplication: how candidates were found, and what each signature found of them.

The facts are those of `curation.dedup.facts`. Reads nothing else, and imports none of the kernels.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from markupsafe import Markup

from curation.report.curve import Point, draw_curve
from curation.report.numbers import NBSP, count, noun, value
from curation.report.step_facts import Count, Fact, FactsView, number

__all__ = ["POLICIES", "near_view"]

POLICIES: Mapping[str, str] = {
    "longest": "the longest text",
    "shortest": "the shortest text",
    "first": "the one that stood first in the input",
    "newest": "the newest by its date",
    "oldest": "the oldest by its date",
    "source_rank": "the one of the best source by the config's list",
    "highest": "the one with the highest",
    "lowest": "the one with the lowest",
}
"""For each criterion of `keep` (curation.dedup.priority) what it prefers; the last two are followed by a score."""

MAX_SHINGLE = 1000
"""Words; of longer shingles no sentence is made (the config of `near` allows far fewer)."""

_FOUND_BY = {
    "both": "they share a band of MinHash, and their SimHash differs in few bits",
    "minhash": "they share a band of MinHash; their SimHash differs in too many bits, or one is too short for it",
    "simhash": "their SimHash differs in few bits; they share no band of MinHash",
    "neither": "they share no signature themselves: other documents join them into one cluster, and in a cluster every "
    "document is compared with every kept one",
}


def near_view(facts: Mapping[str, Any]) -> FactsView:
    """The block *How candidates were found*."""
    found = facts.get("found_by")
    found_by = found if isinstance(found, Mapping) else {}
    counts = [
        Count(name, int(n), note) for name, note in _FOUND_BY.items() if (n := number(found_by, name)) is not None
    ]
    figure, note = _curve(facts)
    return FactsView(
        title="How candidates were found",
        facts=list(_facts(facts)),
        figure=figure,
        figure_title="candidates by MinHash",
        figure_note=note,
        counts_caption="Dropped documents by the signatures that they share with the document kept instead",
        counts_head="found by",
        counts=counts,
        replaces=frozenset({"found_by"}) if counts else frozenset(),
    )


def _facts(facts: Mapping[str, Any]) -> Iterator[Fact]:
    threshold, shingle = number(facts, "threshold"), number(facts, "shingle")
    if shingle is not None:
        of_text = "word" if shingle == 1 else f"{shingle:.0f} words"
        of_dense = "character" if shingle == 1 else f"{shingle:.0f} characters"
        scripts = facts.get("by_character")
        dense = f"{of_dense} in scripts written without blanks. " if scripts != [] else ""
        yield Fact("shingle", of_text, f"{dense}{_one_change(int(shingle), threshold)}".strip())
        if isinstance(scripts, list) and scripts:
            names = ", ".join(str(script).replace("_", " ") for script in scripts)
            yield Fact("by characters", noun(len(scripts), "script"), names)
    if threshold is not None:
        what = "share of common shingles among all shingles of two documents, counted exactly"
        yield Fact("near-duplicate", f"Jaccard > {threshold:g}", what)
    bands, rows, num_perm = (number(facts, name) for name in ("bands", "rows", "num_perm"))
    if bands is not None and rows is not None:
        of = f", of {num_perm:.0f} permutations" if num_perm is not None else ""
        yield Fact(
            "MinHash", f"{bands:.0f} bands x {rows:.0f} rows{of}", "two documents that agree in one band are candidates"
        )
    if "simhash_distance" in facts:
        distance = number(facts, "simhash_distance")
        used = f"at most {distance:.0f} of 64 bits differ" if distance is not None else "not used"
        yield Fact("SimHash", used, "two such documents are candidates, too" if distance is not None else "")
    yield from _policy(facts)
    yield from _compared(facts)
    yield from _proposed(facts)


def _one_change(shingle: int, threshold: float | None) -> str:
    """How long a page must be so that one changed word does not make it another one."""
    if threshold is None or not 0 < threshold < 1 or not 1 <= shingle <= MAX_SHINGLE:
        return ""
    changed = math.floor(shingle * (1 + threshold) / (1 - threshold) + 1e-9) + 1
    return (
        f"One changed word changes {noun(shingle, 'shingle')}: pages that differ in one word are near-duplicates "
        f"from about {count(changed + shingle - 1)} words on, shorter ones are not"
    )


def _policy(facts: Mapping[str, Any]) -> Iterator[Fact]:
    keep = facts.get("keep")
    if not isinstance(keep, list):
        return
    names = []
    for criterion in map(str, keep):
        kind, _, score = criterion.partition(":")
        names.append(f"{POLICIES.get(kind, criterion)} {score}".strip())
    yield Fact("which copy stays", ", then ".join([*names, "the smaller text_id"]), "and then the smaller doc_id")


def _compared(facts: Mapping[str, Any]) -> Iterator[Fact]:
    documents, without, earlier = (number(facts, n) for n in ("documents", "without_shingles", "earlier_documents"))
    if documents is not None:
        note = (
            f"of which {count(without)} without any word, hence without a shingle: matching nothing" if without else ""
        )
        yield Fact("compared", noun(int(documents), "document"), note)
    if earlier:
        yield Fact(
            "and with",
            noun(int(earlier), "document"),
            "that earlier runs kept: these outrank every document of this run",
        )


def _proposed(facts: Mapping[str, Any]) -> Iterator[Fact]:
    links = facts.get("links")
    if isinstance(links, Mapping) and links:
        kinds = ", ".join(f"{count(n)} by {name}" for name in links if (n := number(links, name)) is not None)
        yield Fact("links", kinds, "between documents with an equal band or a close SimHash")
    clusters, largest = number(facts, "clusters"), number(facts, "largest_cluster")
    if clusters is not None:
        most = f"the largest holds {noun(int(largest), 'document')}; " if largest else ""
        yield Fact(
            "clusters", count(clusters), f"{most}what joins a cluster is only a proposal, the exact comparison decides"
        )


def _curve(facts: Mapping[str, Any]) -> tuple[Markup | None, str]:
    """The probability that a pair becomes a candidate, and what it is at the threshold."""
    points = _points(facts.get("curve"))
    threshold = number(facts, "threshold")
    if len(points) < 2:
        return None, ""
    bands, rows = number(facts, "bands"), number(facts, "rows")
    line = points
    if bands is not None and rows is not None and bands > 0 and rows > 0:
        line = [Point(x / 100, 1 - (1 - (x / 100) ** rows) ** bands) for x in range(101)]
    at = next((point.y for point in points if point.x == threshold), None)
    note = "probability that two documents become candidates, by their Jaccard"
    if at is not None:
        note += f"; exactly at the threshold {_missed(1 - at)}"
    name = f"Probability of becoming a candidate, {noun(int(bands or 0), 'band')} of {noun(int(rows or 0), 'row')}"
    return draw_curve(line, points, threshold, name), note


def _points(curve: Any) -> list[Point]:
    if not isinstance(curve, list):
        return []
    pairs = [pair for pair in curve if isinstance(pair, list) and len(pair) == 2]
    numbers = [(x, y) for x, y in pairs if isinstance(x, int | float) and isinstance(y, int | float)]
    return sorted(Point(float(x), float(y)) for x, y in numbers if 0 <= x <= 1 and 0 <= y <= 1)


def _missed(probability: float) -> str:
    if probability < 1e-9:
        return "none is missed"
    percent = 100 * probability
    shown = f"{percent:.2g}" if percent < 1 else value(percent)
    return f"{shown}{NBSP}% are missed, unless SimHash or other documents join them"
