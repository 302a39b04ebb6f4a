"""The numbers of a change-impact sheet: plain dataclasses, computed by `curation.impact.counting.figures`, printed by many.

Three measures of everything: documents, characters, tokens. A number stands twice where the sample was drawn by strata: as
counted in the sample, and weighted as in the corpus it was drawn from; of any other sample both are the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = [
    "MEASURES",
    "OTHERS",
    "Corpus",
    "Cost",
    "CostLine",
    "Estimate",
    "Extrapolation",
    "Figures",
    "FilterMoves",
    "Group",
    "LabelledChange",
    "Moves",
    "Part",
    "ReasonLine",
    "RuleNote",
    "Rules",
    "Scaled",
]

MEASURES = ("documents", "characters", "tokens")
OTHERS = "(others)"
"""Name of the group of all sources but the largest."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with its 95 % interval: `low <= value <= high`."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Part:
    """Some of the sample, in one measure."""

    count: int
    """In the sample: documents, characters or tokens."""
    amount: float
    """The same by weights: in the corpus that the sample was drawn from. Equal to `count` of a sample that was not drawn."""
    share: Estimate | None
    """By weights, of what the field that holds this says; None of nothing."""


@dataclass(frozen=True, slots=True)
class Moves:
    """What a change moves, in one measure, of all documents or of a group."""

    before: Part
    """Kept by the base; share of all in the group."""
    leaves: Part
    """Kept by the base alone; share of what the base keeps in the group, as of the next."""
    comes_in: Part
    """Kept by the new side alone; the share may be above 1."""
    after: Part
    """Kept by the new side; share of all in the group."""
    moved: Estimate | None
    """Leaves and comes in together, of what the base keeps: what bounds are about."""
    net: Estimate | None
    """Comes in less leaves, of what the base keeps: negative if the corpus gets smaller."""


@dataclass(frozen=True, slots=True)
class Group:
    """All documents, or those of one language, source, length class or label."""

    name: str
    sample: int
    """Documents of it in the sample, kept or not."""
    documents: Moves
    characters: Moves
    tokens: Moves
    changes_reason: Part
    """Documents dropped on both sides, but by another step or for another reason; share of all in the group."""

    def moves(self, measure: str) -> Moves:
        """Of one of MEASURES."""
        found: Moves = getattr(self, measure)
        return found


@dataclass(frozen=True, slots=True)
class FilterMoves:
    """What one step drops on each side, and what becomes of what it drops on one side only."""

    name: str
    on_base: bool
    on_new: bool
    """Whether the side has this step at all."""
    changed: bool
    """Whether its settings, version, models or code differ, or one side lacks it. What the steps before let through may
    change the verdicts of any other."""
    drops_before: Part
    """Documents; share of all in the sample, as of the next."""
    drops_after: Part
    leaves: Mapping[str, Part]
    """By measure: kept by the base, now dropped by this step; share of what the base keeps."""
    comes_in: Mapping[str, Part]
    """By measure: dropped by this step on the base, now kept; share of what the base keeps."""
    taken_from: Mapping[str, Part]
    """Documents that another step dropped on the base, by its name, and this one drops now; share of all in the sample."""
    given_to: Mapping[str, Part]
    """Documents that this step dropped on the base, and another one drops now, by its name."""


@dataclass(frozen=True, slots=True)
class ReasonLine:
    """One reason of either side."""

    reason: str
    """`step.why`"""
    step: str
    sentence: str
    """What it means, of the new side if it has it."""
    state: str
    """`both`; `new` and `gone`: only the new side has it, only the base; `switched on` and `switched off`: both have it, but
    the settings of one side never give it."""
    before: Part
    """Documents that it dropped; share of all in the sample, as of the next."""
    after: Part
    difference: Estimate | None
    """Share after less share before, of all in the sample."""
    hits_before: int | None
    """Documents in the sample that break the rule, whatever other rules say; None of a step that does not count them."""
    hits_after: int | None


@dataclass(frozen=True, slots=True)
class LabelledChange:
    """What labels say of a change. Good is what is labelled `good`, junk is what has any other label."""

    labelled: int
    """Documents of the sample that have a label."""
    leaves_good: Part
    """Documents; share of all labelled ones that leave, as of the next."""
    leaves_junk: Part
    """Its share is the precision of what the change drops."""
    comes_in_good: Part
    """Share of all labelled ones that come in, as of the next. Its share is the precision of what the change lets in."""
    comes_in_junk: Part


@dataclass(frozen=True, slots=True)
class Corpus:
    """A corpus by its size, as the base keeps it."""

    size: float
    measure: str
    """One of MEASURES, `documents` or `tokens`."""


@dataclass(frozen=True, slots=True)
class Scaled:
    """One measure of the corpus; all numbers in documents, characters or tokens."""

    before: Estimate
    """Exact (low = high) in the measure that the size is given in."""
    leaves: Estimate
    comes_in: Estimate
    after: Estimate


@dataclass(frozen=True, slots=True)
class Extrapolation:
    """What the change would mean on a corpus of a given size, if it is as the sample is."""

    corpus: Corpus
    drawn: bool
    """The size is that of the corpus that the sample was drawn from; false: it was asked for."""
    scaled: Mapping[str, Scaled]
    """By measure."""
    languages: Mapping[str, Scaled]
    """By language, in the corpus's own measure: the 20 that move most, largest first."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What a step cost on one side, over the whole sample."""

    documents: int
    """That reached it."""
    scored: int | None
    """Of these, how many scores were computed; the rest was taken over from an earlier run. None: the version does not say."""
    seconds: float
    """By the clock."""
    ms_per_document: float | None
    """Milliseconds per document scored; None where all scores were saved ones, or none was. Of the processor where both sides
    tell that: it depends little on what else the machine does. Else by the clock."""
    peak_rss_mb: float

    @property
    def from_saved_scores(self) -> bool:
        """Nothing was scored, so `seconds` says nothing of what the step costs."""
        return self.scored == 0 and self.documents > 0


@dataclass(frozen=True, slots=True)
class CostLine:
    """One step; None where a side lacks it."""

    name: str
    before: Cost | None
    after: Cost | None
    times: float | None
    """Milliseconds per document, after by before; None where one side measured none, does not tell how many it scored, or scored
    fewer than 20 documents."""


@dataclass(frozen=True, slots=True)
class RuleNote:
    """A rule that is dead or wild after the change."""

    kind: str
    """`dead`: it fired and does no more; `often`, `seldom`: its share moved more than tenfold."""
    reason: str
    before: int
    """Documents in the sample on which it fired: those that break it, if its step counts them, else those it dropped."""
    after: int
    expected: float
    """Documents on which it would fire now if it fired as before, among those that still reach it."""
    times: Estimate | None
    """How many times as often as before; `high` is infinite where chance may explain that it never fired before. None: dead."""
    text: str
    """A sentence with the numbers and what to look at."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What is to be said of single rules."""

    notes: tuple[RuleNote, ...]
    """Dead ones first, then by name."""
    silent: tuple[str, ...]
    """Reasons that fired on neither side although they are on: the sample says nothing of them."""
    off: tuple[str, ...]
    """Reasons that the new side's settings never give."""


@dataclass(frozen=True, slots=True)
class Figures:
    """All numbers of a sheet."""

    weighted: bool
    """Whether the sample was drawn by strata, so that `Part.amount` is not `Part.count`."""
    totals: Group
    filters: tuple[FilterMoves, ...]
    """In the order of the new side; what only the base has stands where it stood there."""
    languages: tuple[Group, ...]
    """All of them; largest sum of what moves first, then by size, then by name. So are the next two."""
    sources: tuple[Group, ...]
    """The 20 largest, and OTHERS."""
    labels: tuple[Group, ...]
    lengths: tuple[Group, ...]
    """Shortest class first."""
    labelled: LabelledChange | None
    """None: no document has a label."""
    reasons: tuple[ReasonLine, ...]
    """In the order of steps and of their reasons."""
    rules: Rules
    costs: tuple[CostLine, ...]
    extrapolation: Extrapolation | None
    """None: neither was a size asked for, nor was the sample drawn from a corpus."""
