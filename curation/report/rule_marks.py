"""What a step's section says of how often its rules fire: never, more or less than usual, or not
at all because they are off."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from curation.records import EARLIER_SUFFIX

__all__ = ["RuleMarks", "rule_marks"]

LOOKED_ENOUGH = 1000
"""Documents after which a rule that never fired is worth naming."""
_WORDS = {"never": "never fired", "often": "more than usual", "seldom": "less than usual"}


@dataclass(frozen=True)
class RuleMarks:
    """Marks of the rules of one step."""

    silent: list[str]
    """Reasons that never fired although the step saw enough documents, and of which nobody knows what is usual."""
    alarms: list[str] = field(default_factory=list)
    words: dict[str, str] = field(default_factory=dict)
    """By reason, of those that have a mark."""
    off: list[str] = field(default_factory=list)
    """Reasons that the settings never give."""
    hits: dict[str, int] = field(default_factory=dict)
    """By reason documents that break the rule, whatever other rules say; empty of a step that does not count them."""


def rule_marks(
    counts: Mapping[str, int], documents: int, usual: Mapping[str, Any], hits: Mapping[str, int] | None = None
) -> RuleMarks:
    """The marks of a step.

    Args:
        counts: dropped documents by reason, 0 for those that did not fire.
        documents: that the step looked at.
        usual: what `curation.report.usual` found of it; empty while a run is not done, and of runs before there was such.
        hits: documents that break each rule, by reason; see `curation.report.usual_sources.hits_of`.
    """
    alarms = list(usual.get("alarms", []))
    if usual:
        silent = list(usual.get("silent", []))
    else:
        # Most runs have no earlier one, so that its copies are missing says nothing.
        silent = [reason for reason, n in counts.items() if not n and not reason.endswith(EARLIER_SUFFIX)]
        silent = silent if documents >= LOOKED_ENOUGH else []
    words = dict.fromkeys(silent, _WORDS["never"])
    words |= {reason: _WORDS[one["kind"]] for one in alarms for reason in one["reasons"]}
    off = [reason for reason in counts if reason in usual.get("off", []) and not counts[reason]]
    return RuleMarks(silent, [one["text"] for one in alarms], words, off, dict(hits or {}))
