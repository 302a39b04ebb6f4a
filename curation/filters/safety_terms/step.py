"""The filter `safety_terms`: from hits to score columns and verdicts.

Costs what the search costs (`find`), and some 10 us for a document with hits.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curation.errors import ConfigError
from curation.filters.safety_terms.characters import characters
from curation.filters.safety_terms.config import SafetyTermsConfig
from curation.filters.safety_terms.expressions import confirmed
from curation.filters.safety_terms.find import Hits, find
from curation.filters.safety_terms.harmless import absurd_terms
from curation.filters.safety_terms.tables import Tables, checksums_of, files_of, tables_for
from curation.filters.safety_terms.terms import GROUPS
from curation.filters.safety_terms.weigh import STRETCH, in_order, weigh
from curation.records import ScoreColumn
from curation.text import buffers
from curation.text.spans import bounds
from curation.verdicts import Decision, Filter, StepConfig, decide_by_rules
from quality_models.safety_labels import CATEGORIES, CATEGORY_NAMES

__all__ = ["SafetyTerms", "hits_of"]

MOST_SHOWN = 32
"""Hits of a document that are kept for the report: the heaviest."""


def hits_of(texts: pa.Array, tables: Tables) -> Hits:
    """All hits of all texts, by document and place."""
    checked = bounds(*buffers(texts))
    signs = characters()
    found = find(*checked, signs, tables.tries, tables.rows)
    return in_order(confirmed(found, *checked, signs, tables))


class SafetyTerms(Filter):
    """Drops adverts, hate and filler by lists of terms."""

    name: ClassVar[str] = "safety_terms"
    version: ClassVar[int] = 1
    stage: ClassVar[str] = "safety"
    summary: ClassVar[str] = (
        "Drops texts dense with terms of gambling, sex, drugs, fraud, hate and other junk, however spelled."
    )
    needs: ClassVar[tuple[str, ...]] = ("text",)
    reasons: ClassVar[Mapping[str, str]] = {
        f"safety_terms.{name}": f"terms stand too dense in it of: {what}" for name, what in CATEGORIES.items()
    }
    Config: ClassVar[type[StepConfig]] = SafetyTermsConfig
    config: SafetyTermsConfig

    @property
    def score_columns(self) -> Sequence[ScoreColumn]:
        found = []
        for name in CATEGORY_NAMES:
            found += [
                ScoreColumn(f"{name}_hits", pa.int32(), "hits", f"hits of terms of {name}"),
                ScoreColumn(f"{name}_weight", pa.float32(), "weight", f"weight of its hits of {name}"),
                ScoreColumn(
                    f"{name}_density", pa.float32(), "weight", f"weight of {name} for {STRETCH} units of the text"
                ),
                ScoreColumn(
                    f"{name}_peak", pa.float32(), "weight", f"greatest weight of {name} within {STRETCH} units"
                ),
            ]
        return (
            *found,
            ScoreColumn("hits", pa.int32(), "hits", "hits of all terms"),
            ScoreColumn(
                "units", pa.int32(), "units", "its length: Han, kana or Hangul characters, or three other letters"
            ),
            ScoreColumn("matched", pa.string(), "JSON", "the heaviest hits: category, term, first byte, end, rule"),
        )

    def thresholds(self) -> Mapping[str, Sequence[float]]:
        found: dict[str, Sequence[float]] = {}
        for name in CATEGORY_NAMES:
            limits = self.config.limits_of(name)
            if limits.drop:
                found[f"{name}_peak"] = sorted({limits.min_peak, limits.dense_peak})
                found[f"{name}_density"] = [limits.min_density]
        return found

    def off_reasons(self) -> Collection[str]:
        """Categories that are only scored."""
        return {f"{self.name}.{name}" for name in CATEGORY_NAMES if not self.config.limits_of(name).drop}

    def score_of(self, reason: str) -> str | None:
        return f"{reason.partition('.')[2]}_peak"

    def score_config(self) -> Mapping[str, Any]:
        """Which terms are off; which lists are read, checksums say."""
        settings = self.config
        return {
            "off": sorted(set(settings.off)),
            "shipped": settings.shipped,
            "files": [path.name for path in settings.files],
        }

    def model_checksums(self) -> Mapping[str, str]:
        return checksums_of([GROUPS, *files_of(self.config.files, shipped=self.config.shipped)])

    def ready(self) -> None:
        """Raises ConfigError for a list that cannot be read, and for terms that ordinary sentences are full of."""
        if absurd := absurd_terms(self._tables()):
            worst = ", ".join(f"{term.spellings[0]!r} ({term.rule}: {share:.0%})" for term, share in absurd[:8])
            raise ConfigError(
                f"step {self.name}: expected terms that harmless sentences hardly ever have, found {worst}: correct the list, "
                "give them context (near), or name them in `off`"
            )

    def _tables(self) -> Tables:
        return tables_for(files_of(self.config.files, shipped=self.config.shipped), self.config.off)

    def score(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        tables = self._tables()
        hits = hits_of(batch.column("text"), tables)
        counts, weights, peaks, of_hits = weigh(hits, tables)
        density = weights * (3 * STRETCH) / np.maximum(hits.thirds, 1)[:, None]
        columns: list[pa.Array] = []
        for i in range(len(CATEGORY_NAMES)):
            columns.append(pa.array(counts[:, i].astype(np.int32)))
            columns += [pa.array(values[:, i].astype(np.float32)) for values in (weights, density, peaks)]
        columns.append(pa.array(counts.sum(axis=1).astype(np.int32)))
        columns.append(pa.array((-(-hits.thirds // 3)).astype(np.int32)))
        columns.append(_shown(hits, of_hits, tables))
        return pa.RecordBatch.from_arrays(columns, names=[score.name for score in self.score_columns])

    def decide(self, scores: pa.RecordBatch) -> Decision:
        """Of several categories that drop a text, the one with the greatest peak is named; of equals the first."""
        some = _floats(scores, "units") > 0
        hits: dict[str, npt.NDArray[np.bool_]] = {}
        greatest = np.zeros(scores.num_rows, np.float32)
        for name in CATEGORY_NAMES:
            limits = self.config.limits_of(name)
            if limits.drop:
                peak, density = _floats(scores, f"{name}_peak"), _floats(scores, f"{name}_density")
                dense = (density >= limits.min_density) | (peak >= limits.dense_peak)
                hit = some & (peak >= limits.min_peak) & dense
                first = hit & (peak > greatest)
                greatest[first] = peak[first]
                for other in hits.values():
                    other &= ~first
                hits[f"{self.name}.{name}"] = first
        return decide_by_rules(scores.num_rows, list(self.reasons), hits)


def _floats(scores: pa.RecordBatch, name: str) -> npt.NDArray[np.float32]:
    values: npt.NDArray[np.float32] = scores.column(name).to_numpy(zero_copy_only=False).astype(np.float32)
    return values


def _shown(hits: Hits, weights: npt.NDArray[np.float64], tables: Tables) -> pa.Array:
    """For each document its heaviest hits as JSON, the first of equals first; null where it has none."""
    n = len(hits.thirds)
    shown: list[str | None] = [None] * n
    order = np.lexsort((np.arange(len(weights)), -weights, hits.documents))
    offsets = np.searchsorted(hits.documents, np.arange(n + 1))
    for document in np.flatnonzero(np.diff(offsets)).tolist():
        best = order[offsets[document] : min(offsets[document] + MOST_SHOWN, offsets[document + 1])]
        columns = (hits.rows[best], hits.spellings[best], hits.starts[best], hits.ends[best])
        found = []
        for row, spelling, start, end in zip(*(column.tolist() for column in columns), strict=True):
            term = tables.terms[row]
            found.append([term.category, tables.spellings[spelling], start, end, term.rule])
        shown[document] = json.dumps(found, ensure_ascii=False, separators=(",", ":"))
    return pa.array(shown, pa.string())
