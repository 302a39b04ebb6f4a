"""What the pass over the verdicts finds in a step that looks for unsafe text: documents by category, places of samples.

A step is known by its scores, so that a run of another version is shown as far as it goes: `matched` is of one that looks for
terms (for each category `<c>_hits`, `_weight`, `_density`, `_peak`), `worst_begin` of a model (for each label a probability).
Costs about 1 us a document for ten categories; memory is a handful of places a category.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curation.matched_spans import MATCHED
from curation.report.samples import Keys, Place, Reservoir, Rows, salted, whole

__all__ = ["WORST", "Category", "SafetyPass", "begin_safety"]

WORST = ("worst_begin", "worst_end")
"""Scores of a model: bytes of the window that it found worst."""
N_DROPPED, N_NEAR, N_PASSED = 4, 4, 12
_NEAR_SHARE = 0.25
"""Of its limit that a probability must reach to be near it."""
_LIKELY = 0.5
"""Limit of a probability of which no limit is known."""

Mask = npt.NDArray[np.bool_]
Values = npt.NDArray[np.float64]


class Category:
    """Documents of one category."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.hit = 0
        """In which a term was found, or which the model gives at least the limit."""
        self.dropped = 0
        """For this category."""
        self.elsewhere = 0
        """Hit, and dropped for another category or reason."""
        self.kept = 0
        """Hit, and kept."""
        self.dropped_sample = Reservoir(N_DROPPED)
        self.near = Reservoir(N_NEAR)
        """Kept documents that lack least to be dropped."""


class SafetyPass:
    """All categories of a step."""

    def __init__(self, step: str, kind: str, categories: Sequence[str], card: Mapping[str, Any]) -> None:
        self.step = step
        self.kind = kind
        """terms or model."""
        self.categories = {name: Category(name) for name in categories}
        self.passed = Reservoir(N_PASSED)
        """Kept documents, by chance alone."""
        self.docs_in = 0
        self.unread = 0
        """Documents that the model did not read."""
        self.limits: dict[str, list[float]] = {
            name: sorted(float(limit) for limit in limits) for name, limits in card["thresholds"].items()
        }
        counted_in_table = [f"{c}_{what}" for c in categories for what in ("hits", "weight")] if kind == "terms" else []
        self.not_counted = {MATCHED, *WORST, *counted_in_table}
        """Scores of which no distribution is drawn."""

    @property
    def silent(self) -> set[str]:
        """Scores of categories of which nothing was found: there is nothing to draw."""
        if self.kind != "terms":
            return set()
        names = [c.name for c in self.categories.values() if not c.hit]
        return {f"{name}_{what}" for name in names for what in ("density", "peak")}

    @property
    def places(self) -> Iterator[Place]:
        """Of all samples."""
        for category in self.categories.values():
            yield from category.dropped_sample.places
            yield from category.near.places
        yield from self.passed.places

    def add(
        self, shard: int, rows: Rows, keys: Keys, keep: Mask, codes: Rows, reasons: Sequence[str], looked: pa.Table
    ) -> None:
        """Add the rows of a shard that the step looked at; all arrays are n long.

        Args:
            codes: index into `reasons`, -1 where kept.
            looked: their scores.
        """
        self.docs_in += len(rows)
        self.passed.offer(shard, rows[keep], salted(keys[keep], f"{self.step} passed"))
        if self.kind == "model" and self.categories:
            # A model of others may lack a label, which is null in all rows, read or not.
            unread = np.ones(len(rows), np.bool_)
            for name in self.categories:
                unread &= looked.column(name).is_null().to_numpy()
            self.unread += int(unread.sum())
        for category in self.categories.values():
            reason = f"{self.step}.{category.name}"
            own = codes == reasons.index(reason) if reason in reasons else np.zeros(len(rows), np.bool_)
            hit, lacking = self._hit_and_lacking(category.name, looked)
            category.hit += int((hit | own).sum())
            category.dropped += int(own.sum())
            category.elsewhere += int((hit & ~own & ~keep).sum())
            category.kept += int((hit & keep).sum())
            salt = salted(keys, reason)
            category.dropped_sample.offer(shard, rows[own], salt[own])
            near = keep & np.isfinite(lacking)
            category.near.offer(shard, rows[near], salt[near], lacking[near])

    def _hit_and_lacking(self, name: str, looked: pa.Table) -> tuple[Mask, Values]:
        """Which documents are hit, and which share of a limit they lack; nan where they are not near it."""
        if self.kind == "model":
            found = _numbers(looked, name)
            limit = self._limit(name, 0, _LIKELY)
            lacking = np.maximum(0.0, 1 - found / limit) if limit > 0 else np.zeros(len(found))
            return found >= limit, np.where(lacking <= 1 - _NEAR_SHARE, lacking, np.nan)
        hits, peak, density = (_numbers(looked, f"{name}_{what}") for what in ("hits", "peak", "density"))
        hit = hits > 0
        # Dropped is what reaches the least peak, and either the least density or the peak of a dense block.
        dense = _lacks(density, self._limit(f"{name}_density", 0, 0.0))
        block = _lacks(peak, self._limit(f"{name}_peak", 1, np.inf))
        lacking = np.maximum(_lacks(peak, self._limit(f"{name}_peak", 0, 0.0)), np.minimum(dense, block))
        return hit, np.where(hit, np.nan_to_num(lacking, nan=1.0), np.nan)

    def _limit(self, score: str, place: int, otherwise: float) -> float:
        limits = self.limits.get(score, [])
        return limits[place] if place < len(limits) else otherwise


def _numbers(looked: pa.Table, name: str) -> Values:
    """A score as float64[n], nan where undefined or missing."""
    if name not in looked.column_names:
        return np.full(looked.num_rows, np.nan)
    column = whole(looked.column(name)).cast(pa.float64(), safe=False)
    return np.asarray(column.fill_null(float("nan")).to_numpy(zero_copy_only=False), np.float64)


def _lacks(found: Values, limit: float) -> Values:
    """Share of a limit that each value lacks."""
    if limit <= 0:
        return np.zeros(len(found))
    return np.ones(len(found)) if np.isinf(limit) else np.maximum(0.0, 1 - found / limit)


def begin_safety(step: str, card: Mapping[str, Any]) -> SafetyPass | None:
    """An empty pass over a step; None if it does not look for unsafe text."""
    names = [score["name"] for score in card["scores"]]
    if MATCHED in names:
        hits = [name.removesuffix("_hits") for name in names if name.endswith("_hits")]
        return SafetyPass(step, "terms", hits, card)
    if set(WORST) <= set(names):
        return SafetyPass(step, "model", [name for name in names if f"{step}.{name}" in card["reasons"]], card)
    return None
