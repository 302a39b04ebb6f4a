"""Rules that never fire, or fire far more often than usual: what the report must say aloud.

A rule that is silent on a large crawl is often broken (an attribute that was renamed, a measure that is null), one that
fires ten times its usual share is often a crawl that is broken (another extraction, another encoding). Usual shares
stand in `usual_shares.tsv` for each preset: documents that the rule drops, whatever others say, of the labelled crawl
text of the test data. They are compared for rules whose limits are those of the preset.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from curation.filters.rules.limits import read_rows

__all__ = ["alarms", "usual_shares"]

LOUD = 10
"""Times the usual share from which on a rule is named."""
LEAST_USUAL = 0.0005
"""A rule that is rarer than one in 2,000 counts as that, so that a handful of documents is no alarm."""
LEAST_HITS = 10
"""Fewer documents are never too many."""
EXPECTED = 20
"""A rule is silent if so many documents should have broken it, and none did: by chance less than 1 in 10^8."""


@cache
def usual_shares(preset: str) -> Mapping[str, float]:
    """Usual share of documents that each rule of a preset drops; empty where nothing is known of the preset."""
    return {row["rule"]: float(row["share"]) for row in read_rows("usual_shares.tsv") if row["preset"] == preset}


def alarms(hits: Mapping[str, int], n_documents: int, usual: Mapping[str, float]) -> list[str]:
    """One sentence for each rule that is silent or loud.

    Args:
        hits: documents that each rule drops, by name; rules that are off are no keys.
        n_documents: documents that were judged.
        usual: usual shares of those rules that can be compared.
    """
    found = []
    for name, n_hits in hits.items():
        if name not in usual:
            continue
        expected = usual[name] * n_documents
        if n_hits == 0 and expected >= EXPECTED:
            found.append(
                f"rules.{name} fires on none of {n_documents:,} documents, where about {expected:,.0f} are usual: "
                "look whether its measure is there."
            )
        elif n_hits >= LEAST_HITS and n_hits >= LOUD * max(usual[name], LEAST_USUAL) * n_documents:
            found.append(
                f"rules.{name} fires on {n_hits:,} of {n_documents:,} documents, {n_hits / n_documents:.1%}, where "
                f"{usual[name]:.2%} are usual: look at samples of what it drops."
            )
    return found
