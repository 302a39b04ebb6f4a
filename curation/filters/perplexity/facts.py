"""What the filter `perplexity` says of a whole run: how languages lie, what could not be judged, what the cascade did.

One pass over its verdict files, shard by shard; memory is a histogram a language.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from curation.filters.perplexity.histogram import BitsHistogram
from curation.wilson import wilson

if TYPE_CHECKING:
    from curation.filters.perplexity.step import Perplexity

__all__ = ["SIGMAS", "facts_of"]

Mask = npt.NDArray[np.bool_]

SIGMAS = 1.96
"""Half the width of the intervals: 95 %."""
MOST_LANGUAGES = 60
"""Languages of which a line is written, most documents first."""
SHOWN = (1, 5, 50, 95, 99)
UNJUDGED = ("too short", "no model", "not finite")
ALARM_SHARE = 0.25
"""Share of documents that could not be judged from which on a reader must see it."""
ALARM_FROM = 100
"""Documents below which no share raises an alarm."""


class _Language:
    """One language's line."""

    def __init__(self) -> None:
        self.bits = BitsHistogram()
        self.counts: Counter[str] = Counter()

    def line(self, label: str) -> dict[str, Any]:
        found: dict[str, Any] = {"language": label, **self.counts}
        if self.bits.documents:
            found |= {f"p{p}": value for p, value in zip(SHOWN, self.bits.percentiles(SHOWN), strict=True)}
        return found


class _Cascade:
    """What the second model was asked, and how it answered."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.first_tokens: Counter[tuple[str, bool]] = Counter()
        """Tokens of the first model by language and whether the second was asked."""
        self.second_tokens: Counter[str] = Counter()

    def add(self, step: Perplexity, scores: pa.RecordBatch, labels: npt.NDArray[np.object_]) -> None:
        asked = scores.column("asked").to_numpy(zero_copy_only=False)
        tokens = _whole_numbers(scores.column("neural_tokens"))
        finite = scores.column("neural_perplexity").is_valid().to_numpy(zero_copy_only=False)
        answered = finite & (tokens >= step.config.min_tokens)
        first, second = (np.logical_or(*step.outside(scores, prefix)) for prefix in ("", "neural_"))
        for why in ("band", "sample", "no"):
            self.counts[why] += int((asked == why).sum())
        for why in ("band", "sample"):
            mine = answered & (asked == why)
            self.counts[f"{why} answered"] += int(mine.sum())
            self.counts[f"{why} kept by the first alone"] += int((mine & second & ~first).sum())
            self.counts[f"{why} dropped by the first alone"] += int((mine & first & ~second).sum())
        own = _whole_numbers(scores.column("tokens"))
        for label in np.unique(labels):
            rows = labels == label
            for is_asked in (False, True):
                self.first_tokens[label, is_asked] += int(own[rows & ((asked != "no") == is_asked)].sum())
            self.second_tokens[label] += int(tokens[rows].sum())

    def facts(self) -> dict[str, Any]:
        found: dict[str, Any] = {"asked": self.counts["band"] + self.counts["sample"], "not_asked": self.counts["no"]}
        for why in ("band", "sample"):
            n, differ = self.counts[f"{why} answered"], 0
            found[why] = {"documents": self.counts[why], "answered": n}
            for side in ("kept by the first alone", "dropped by the first alone"):
                found[why][side.replace(" ", "_")] = self.counts[f"{why} {side}"]
                differ += self.counts[f"{why} {side}"]
            found[why] |= {"differ": differ, "interval": [round(edge, 6) for edge in wilson(differ, n, SIGMAS)]}
        read = sum(self.second_tokens.values())
        return found | {"tokens_read": read, "tokens_saved": round(self._saved())}

    def _saved(self) -> float:
        """Tokens that the second model did not have to read: those of the first, at the rate of what it did read.

        The rate is that of the language, where it read any of it.
        """
        asked = {label: n for (label, is_asked), n in self.first_tokens.items() if is_asked}
        overall = sum(self.second_tokens.values()) / max(sum(asked.values()), 1)
        saved = 0.0
        for (label, is_asked), n in self.first_tokens.items():
            if not is_asked:
                mine = asked.get(label, 0)
                saved += n * (self.second_tokens[label] / mine if mine else overall)
        return saved


def facts_of(step: Perplexity, tables: Iterator[pa.Table]) -> dict[str, Any]:
    """Plain data for the report.

    Args:
        tables: the step's verdict files, each as one table; rows that it did not look at are left out here.
    """
    languages: dict[str, _Language] = defaultdict(_Language)
    unjudged: Counter[str] = Counter(dict.fromkeys(UNJUDGED, 0))
    models: Counter[str] = Counter()
    cascade = _Cascade()
    documents = 0
    names = [score.name for score in step.score_columns]
    for table in tables:
        looked_at = table.filter(table.column("keep").is_valid()).combine_chunks()
        for batch in looked_at.select(names).to_batches():
            labels = batch.column("language").to_numpy(zero_copy_only=False)
            kinds = _kinds(batch, step.config.min_tokens)
            _add_languages(languages, step, batch, labels, kinds == "judged")
            unjudged.update({name: int((kinds == name).sum()) for name in UNJUDGED})
            models.update(one for one in batch.column("model").drop_null().to_pylist())
            if step.config.cascade is not None:
                cascade.add(step, batch, labels)
            documents += batch.num_rows
    lines = sorted(
        (one.line(label) for label, one in languages.items()), key=lambda line: (-line["documents"], line["language"])
    )
    judged = documents - sum(unjudged.values())
    found: dict[str, Any] = {"documents": documents, "judged": judged, "not_judged": dict(unjudged)}
    found |= {"models": dict(models.most_common()), "languages": lines[:MOST_LANGUAGES]}
    if step.config.cascade is not None:
        found["cascade"] = cascade.facts()
    if alarms := _alarms(documents, unjudged):
        found["alarms"] = alarms
    return found


def _kinds(batch: pa.RecordBatch, min_tokens: int) -> npt.NDArray[np.object_]:
    """`judged`, or why not, as `decide` sees it: object[n]."""
    tokens = _whole_numbers(batch.column("tokens"))
    finite = batch.column("perplexity").is_valid().to_numpy(zero_copy_only=False)
    unnamed = pc.equal(batch.column("language"), "und").to_numpy(zero_copy_only=False).astype(np.bool_)
    unknown = batch.column("model").is_null().to_numpy(zero_copy_only=False) & ~unnamed
    kinds = np.full(batch.num_rows, "judged", object)
    kinds[tokens < min_tokens] = "too short"
    kinds[unknown] = "no model"
    kinds[~finite & (tokens > 0)] = "not finite"
    return kinds


def _add_languages(
    languages: dict[str, _Language],
    step: Perplexity,
    batch: pa.RecordBatch,
    labels: npt.NDArray[np.object_],
    judged: Mask,
) -> None:
    bits = batch.column("bits_per_character").to_numpy(zero_copy_only=False).astype(np.float64)
    low, high = step.outside(batch)
    for label in np.unique(labels.astype(str)):
        mine = labels == label
        one = languages[str(label)]
        one.bits.add(bits[mine & judged])
        counts = {"documents": mine, "judged": mine & judged, "too_low": mine & low, "too_high": mine & high}
        one.counts.update({name: int(rows.sum()) for name, rows in counts.items()})


def _alarms(documents: int, unjudged: Counter[str]) -> list[str]:
    share = sum(unjudged.values()) / max(documents, 1)
    if documents < ALARM_FROM or share < ALARM_SHARE:
        return []
    parts = ", ".join(f"{name} {n:,}" for name, n in unjudged.items() if n)
    return [f"{share:.0%} of {documents:,} documents could not be judged ({parts}): their policies decided instead."]


def _whole_numbers(column: pa.Array) -> npt.NDArray[np.int64]:
    """int64[n] of a column, 0 where null."""
    found: npt.NDArray[np.int64] = pc.fill_null(column, 0).to_numpy(zero_copy_only=False)
    return found
