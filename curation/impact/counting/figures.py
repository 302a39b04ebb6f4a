"""The numbers of a change-impact sheet: what leaves, what comes in, by which filter, of which language, and how sure it is.

    figures(judge_change("web", "main", sample=None, root=root), Corpus(2.5e12, "tokens"))

All shares are by weights, all intervals 95 % (`curation.impact.counting.intervals`). Costs some 50 us an interval, of which there are
about 20 for each language, source, length class, label, filter and reason: 0.2 s for two thousand documents.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from curation.impact.counting.cells import Cells, cells_of
from curation.impact.counting.corpus import extrapolation_of
from curation.impact.counting.figure_types import (
    MEASURES,
    OTHERS,
    Corpus,
    Cost,
    CostLine,
    Figures,
    FilterMoves,
    Group,
    LabelledChange,
    Moves,
    Part,
)
from curation.impact.counting.intervals import Ratios
from curation.impact.counting.reasons import reason_lines
from curation.impact.counting.rules import rules_of
from curation.impact.facts import Comparison, StepFacts

__all__ = ["GOOD", "figures", "steps_of_both"]

Mask = npt.NDArray[np.bool_]

GOOD = "good"
"""The label of a document that should be kept; every other label is junk."""
MAX_SOURCES = 20
LEAST_SCORED = 20
"""Documents on each side from which on times are compared."""


def figures(comparison: Comparison, corpus: Corpus | None = None) -> Figures:
    """All numbers of a comparison.

    Args:
        corpus: the size of the corpus that the change is told for as well, as the base keeps it.

    Raises:
        InputError: a document of the sample has a weight that is no positive number.
    """
    cells = cells_of(comparison.documents, comparison.outcomes)
    ratios = Ratios(cells)
    labels, steps = _groups(cells, "label"), steps_of_both(comparison)
    return Figures(
        weighted=cells.weighted,
        totals=_group(cells, "all"),
        filters=tuple(_filter_moves(comparison, ratios, name) for name in steps),
        languages=_groups(cells, "language"),
        sources=_sources(cells),
        labels=labels,
        lengths=_by_length(cells),
        labelled=_labelled(ratios) if labels else None,
        reasons=reason_lines(comparison, ratios, steps),
        rules=rules_of(comparison, ratios),
        costs=tuple(_cost_line(comparison, name) for name in steps),
        extrapolation=extrapolation_of(ratios, corpus, drawn=comparison.sample.population is not None),
    )


def steps_of_both(comparison: Comparison) -> list[str]:
    """Names of the steps of either side: in the order of the new one, those that it lacks behind what stood before them."""
    names = [step.name for step in comparison.new.steps]
    before = [step.name for step in comparison.base.steps]
    for place, name in enumerate(before):
        if name not in names:
            names.insert(names.index(before[place - 1]) + 1 if place else 0, name)
    return names


def _group(cells: Cells, name: str) -> Group:
    """The moves among these cells."""
    ratios = Ratios(cells)
    everything, before, after = cells.all, cells.kept("before"), cells.kept("after")
    moves = {measure: _moves(ratios, before, after, measure) for measure in MEASURES}
    elsewhere = ~before & ~after & (cells.keys["before"] != cells.keys["after"])
    return Group(
        name=name,
        sample=int(cells.counts[0].sum()),
        documents=moves["documents"],
        characters=moves["characters"],
        tokens=moves["tokens"],
        changes_reason=ratios.part(elsewhere, everything),
    )


def _moves(ratios: Ratios, before: Mask, after: Mask, measure: str) -> Moves:
    everything, leaves, comes_in, could = ratios.cells.all, before & ~after, after & ~before, ~before
    return Moves(
        before=ratios.part(before, everything, measure),
        leaves=ratios.part(leaves, before, measure),
        comes_in=ratios.part(comes_in, before, measure, could=could),
        after=ratios.part(after, everything, measure),
        moved=ratios.rate(leaves | comes_in, before, measure, could=(before, could)),
        net=ratios.difference(comes_in, leaves, before, measure, could=could),
    )


def _groups(cells: Cells, key: str) -> tuple[Group, ...]:
    """A group for each name of a key that stands in the sample: what moves most first."""
    found = [_group(cells.only(cells.where(key, name)), name) for name in cells.names[key]]
    return tuple(sorted(found, key=_largest_move))


def _largest_move(group: Group) -> tuple[float, int, str]:
    return -(group.documents.leaves.amount + group.documents.comes_in.amount), -group.sample, group.name


def _sources(cells: Cells) -> tuple[Group, ...]:
    """The largest sources, and all others together."""
    sizes = {name: int(cells.counts[0][cells.where("source", name)].sum()) for name in cells.names["source"]}
    names = sorted(sizes, key=lambda name: (-sizes[name], name))
    largest = [_group(cells.only(cells.where("source", name)), name) for name in names[:MAX_SOURCES]]
    found = sorted(largest, key=_largest_move)
    if len(names) > MAX_SOURCES:
        rest = ~np.logical_or.reduce([cells.where("source", name) for name in names[:MAX_SOURCES]])
        found.append(_group(cells.only(rest), OTHERS))
    return tuple(found)


def _by_length(cells: Cells) -> tuple[Group, ...]:
    """The classes of length, shortest first: they do not overlap, so their means are in their order."""

    def mean(group: Group) -> float:
        documents, characters, _ = cells.counts[:, cells.where("length", group.name)].sum(axis=1)
        return float(characters / documents)

    return tuple(sorted(_groups(cells, "length"), key=mean))


def _filter_moves(comparison: Comparison, ratios: Ratios, name: str) -> FilterMoves:
    cells = ratios.cells
    drops, drops_now = cells.dropped_by("before", name), cells.dropped_by("after", name)
    kept, kept_now = cells.kept("before"), cells.kept("after")
    base, new = comparison.base.step(name), comparison.new.step(name)
    others = [one for one in steps_of_both(comparison) if one != name]
    return FilterMoves(
        name=name,
        on_base=base is not None,
        on_new=new is not None,
        changed=_decides(base) != _decides(new),
        drops_before=ratios.part(drops, cells.all),
        drops_after=ratios.part(drops_now, cells.all),
        leaves={one: ratios.part(kept & drops_now, kept, one) for one in MEASURES},
        comes_in={one: ratios.part(drops & kept_now, kept, one, could=drops) for one in MEASURES},
        taken_from=_shifted(ratios, {one: cells.dropped_by("before", one) & drops_now for one in others}),
        given_to=_shifted(ratios, {one: drops & cells.dropped_by("after", one) for one in others}),
    )


def _shifted(ratios: Ratios, rows: Mapping[str, Mask]) -> dict[str, Part]:
    """Documents that go from one step to another, by the other's name, where there are any: most first."""
    found = {name: ratios.part(mask, ratios.cells.all) for name, mask in rows.items() if mask.any()}
    return dict(sorted(found.items(), key=lambda item: (-item[1].amount, item[0])))


def _decides(step: StepFacts | None) -> object:
    """What decides the verdicts of a step."""
    if step is None:
        return None
    limits = {name: list(values) for name, values in step.thresholds.items()}
    return step.version, step.code, dict(step.config), limits, step.score_digest


def _labelled(ratios: Ratios) -> LabelledChange:
    """What the labels say of what leaves and of what comes in."""
    cells = ratios.cells
    has_label, good = cells.keys["label"] >= 0, cells.where("label", GOOD)
    before, after = cells.kept("before"), cells.kept("after")
    leaves, comes_in = before & ~after & has_label, after & ~before & has_label
    return LabelledChange(
        labelled=int(cells.counts[0][has_label].sum()),
        leaves_good=ratios.part(leaves & good, leaves),
        leaves_junk=ratios.part(leaves & ~good, leaves),
        comes_in_good=ratios.part(comes_in & good, comes_in),
        comes_in_junk=ratios.part(comes_in & ~good, comes_in),
    )


def _cost_line(comparison: Comparison, name: str) -> CostLine:
    steps = [side.step(name) for side in (comparison.base, comparison.new)]
    by_processor = all(step is None or step.cpu_seconds is not None for step in steps)
    before, after = (_cost(step, by_processor) for step in steps)
    times = None
    if before and after and before.ms_per_document and after.ms_per_document is not None:
        # A version that does not say how many it scored may have taken all of them over.
        fewest = min(one.scored or 0 for one in (before, after))
        times = after.ms_per_document / before.ms_per_document if fewest >= LEAST_SCORED else None
    return CostLine(name, before, after, times)


def _cost(step: StepFacts | None, by_processor: bool) -> Cost | None:
    if step is None:
        return None
    scored = step.docs_in if step.scored is None else step.scored
    seconds = step.cpu_seconds if by_processor and step.cpu_seconds is not None else step.seconds
    per_document = 1000 * seconds / scored if scored else None
    return Cost(step.docs_in, step.scored, step.seconds, per_document, step.peak_rss_mb)
