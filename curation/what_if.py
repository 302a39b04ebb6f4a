"""`corpusmill what-if`: a finished run decided again with other settings, from its saved scores; the run is not touched.

One pass over the verdict files, shard after shard, and for samples a look at a few texts. Costs the hash of the verdict
files (about 1 s for each GB), and about 0.5 us a document and step; memory is one shard's verdicts and what
`what_if_inputs` needs.

What scores cannot say is counted and named, never guessed: documents that would pass a step and were not judged by those
behind it, and data-set steps (`exact`, `near`) that would look at other documents than they did.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from curation.pipeline import Pipeline
from curation.report.samples import Reservoir, priorities, salted, whole
from curation.shards import Shard
from curation.what_if_inputs import ChangedInput, InputWatch, doc_ids
from curation.what_if_outcomes import Outcome, Outcomes, Redecided, redecide
from curation.what_if_samples import DocumentOutcome, Pair, Writer, deciding_json, outcome_json, read_documents, spread
from curation.what_if_settings import Question, ask

__all__ = ["Change", "LanguageChange", "WhatIf", "what_if"]

UNJUDGED = "not judged"
"""Stands for the language of documents that a step before `language` had dropped."""
_SHIFT = 20
"""Bits for the number of an outcome; there are as many as reasons and routes, some hundreds."""


@dataclass(frozen=True, slots=True)
class Change:
    """Documents that fare alike before and after."""

    before: Outcome
    after: Outcome
    documents: int


@dataclass
class LanguageChange:
    """What changes in one language, as the run's step `language` named it."""

    language: str
    kept: int = 0
    """In the run."""
    leave: int = 0
    come_in: int = 0
    waiting: int = 0
    other: int = 0
    """Dropped or set aside before and after, but for another reason or output."""

    @property
    def changes(self) -> int:
        return self.leave + self.come_in + self.waiting + self.other

    def add(self, before: Outcome, after: Outcome, documents: int) -> None:
        """Count documents that change."""
        if before.side == "kept":
            self.leave += documents
        elif after.side == "kept":
            self.come_in += documents
        elif after.side == "waiting":
            self.waiting += documents
        else:
            self.other += documents


@dataclass
class WhatIf:
    """The answer."""

    run_id: str
    question: Question
    documents: int
    total: LanguageChange
    """Of all languages together."""
    changes: list[Change]
    """Most documents first."""
    languages: list[LanguageChange]
    """Most changes first; empty where the run has no step `language`."""
    inputs: list[ChangedInput]
    """Data-set steps that only a run can answer for."""
    samples: list[DocumentOutcome]
    written: int | None = None
    """Lines of the output file."""

    @property
    def kept_after(self) -> int:
        """As far as saved scores say it: without those that wait."""
        return self.total.kept - self.total.leave + self.total.come_in

    def to_json(self) -> dict[str, Any]:
        """The answer as plain data."""
        total = self.total
        return {
            "run_id": self.run_id,
            "settings": [
                {"key": one.key, "before": one.before, "after": one.after, "decides": one.decides}
                for one in self.question.settings
            ],
            "documents": self.documents,
            "kept_before": total.kept,
            "kept_after": self.kept_after,
            "leave": total.leave,
            "come_in": total.come_in,
            "not_judged_yet": total.waiting,
            "other_reason": total.other,
            "changes": [
                {"before": outcome_json(one.before), "after": outcome_json(one.after), "documents": one.documents}
                for one in self.changes
            ],
            "languages": [
                {
                    "language": one.language,
                    "kept_before": one.kept,
                    "kept_after": one.kept - one.leave + one.come_in,
                    "leave": one.leave,
                    "come_in": one.come_in,
                    "not_judged_yet": one.waiting,
                    "other_reason": one.other,
                }
                for one in self.languages
            ],
            "data_set_steps": [
                {
                    "step": one.step,
                    "leave": one.leave,
                    "enter": one.enter,
                    "may_enter": one.may_enter,
                    "lose_kept_document": one.orphans,
                }
                for one in self.inputs
            ],
            "samples": [_sample_json(one) for one in self.samples],
            "command": self.question.command,
        }


def _sample_json(one: DocumentOutcome) -> dict[str, Any]:
    return {
        "id": one.id,
        "doc_id": one.doc_id,
        "source": one.source,
        "line": one.line,
        "url": one.url,
        "language": one.language,
        "before": outcome_json(one.before),
        "after": outcome_json(one.after),
        "scores": deciding_json(one.scores),
        "excerpt": one.text.text,
        "cut": one.text.cut,
    }


def what_if(pipeline: Pipeline, overrides: Sequence[str], *, n_samples: int = 10, output: Path | None = None) -> WhatIf:
    """Decide a finished run again with other settings.

    Args:
        overrides: `step.key=value` items.
        n_samples: documents that are shown with their text, spread over the changes.
        output: a .jsonl file for every document that changes.

    Raises:
        ConfigError: a setting is unknown or wrong, or saved scores cannot answer, or `output` will not do.
        RunError: the run is not done, damaged, or of another version of the code.
    """
    question = ask(pipeline, overrides)
    sums = _Sums(pipeline, question, n_samples)
    written = None
    if output is None:
        for _ in sums.shards():
            pass
    else:
        with Writer.to(output, pipeline, question) as writer:
            for shard, rows, found in sums.shards():
                writer.add(shard, rows, found, sums.outcomes)
            written = writer.count
    places = spread(sums.reservoirs, sums.pairs, n_samples)
    return WhatIf(
        run_id=pipeline.run.run_id,
        question=question,
        documents=sum(shard.rows for shard in pipeline.shards),
        total=sums.total(),
        changes=sums.changes(),
        languages=sums.languages(),
        inputs=list(sums.inputs.changed(pipeline.shards)),
        samples=read_documents(pipeline, question, places, sums.outcomes),
        written=written,
    )


@dataclass
class _Sums:
    """What the pass adds up."""

    pipeline: Pipeline
    question: Question
    n_samples: int
    outcomes: Outcomes = field(default_factory=Outcomes)
    kept: int = 0
    pairs: Counter[Pair] = field(default_factory=Counter)
    kept_of: Counter[str] = field(default_factory=Counter)
    pairs_of: Counter[tuple[str, Pair]] = field(default_factory=Counter)
    reservoirs: dict[Pair, Reservoir] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.inputs = InputWatch(self.pipeline.placed)
        self._language = next((one.index for one in self.pipeline.placed if one.name == "language"), None)

    def shards(self) -> Iterator[tuple[Shard, npt.NDArray[np.int64], Redecided]]:
        """Pass over the shards; yields those with documents that change, and their rows."""
        for index, shard in enumerate(self.pipeline.shards):
            found = redecide(self.pipeline.placed, self.question.steps, shard, self.outcomes)
            rows = np.flatnonzero(found.before != found.after)
            self.kept += int((found.before == 0).sum())
            pairs = found.before[rows].astype(np.int64) << _SHIFT | found.after[rows]
            if self._language is not None:
                self._count_languages(found, rows, pairs)
            self.inputs.add(shard, found, self.outcomes)
            if len(rows):
                self._offer(index, shard, rows, pairs)
                yield shard, rows, found

    def _offer(self, index: int, shard: Shard, rows: npt.NDArray[np.int64], pairs: npt.NDArray[np.int64]) -> None:
        """Count the changes, and offer their documents as samples."""
        keys = salted(priorities(doc_ids(shard, rows)), "what-if")
        for packed in np.unique(pairs).tolist():
            hit, pair = pairs == packed, _unpacked(packed)
            self.pairs[pair] += int(hit.sum())
            self.reservoirs.setdefault(pair, Reservoir(max(self.n_samples, 1))).offer(index, rows[hit], keys[hit])

    def _count_languages(self, found: Redecided, rows: npt.NDArray[np.int64], pairs: npt.NDArray[np.int64]) -> None:
        assert self._language is not None
        column = whole(found.tables[self._language].column("language")).fill_null(UNJUDGED).dictionary_encode()
        names = column.dictionary.to_pylist()
        codes = column.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        for name, n in zip(names, np.bincount(codes[found.before == 0], minlength=len(names)).tolist(), strict=True):
            self.kept_of[name] += n
        packed, counts = np.unique(codes[rows] << 2 * _SHIFT | pairs, return_counts=True)
        for one, n in zip(packed.tolist(), counts.tolist(), strict=True):
            self.pairs_of[names[one >> 2 * _SHIFT], _unpacked(one & (1 << 2 * _SHIFT) - 1)] += n

    def changes(self) -> list[Change]:
        """Most documents first; of equal ones in the order of the outcomes."""
        order = sorted(self.pairs.items(), key=lambda item: (-item[1], item[0]))
        return [Change(self.outcomes.all[before], self.outcomes.all[after], n) for (before, after), n in order]

    def total(self) -> LanguageChange:
        total = LanguageChange("all", self.kept)
        for change in self.changes():
            total.add(change.before, change.after, change.documents)
        return total

    def languages(self) -> list[LanguageChange]:
        found = {name: LanguageChange(name, n) for name, n in self.kept_of.items()}
        for (name, (before, after)), n in self.pairs_of.items():
            found[name].add(self.outcomes.all[before], self.outcomes.all[after], n)
        told = (one for one in found.values() if one.changes or one.kept)
        return sorted(told, key=lambda one: (-one.changes, -one.kept, one.language))


def _unpacked(pair: int) -> Pair:
    return pair >> _SHIFT, pair & (1 << _SHIFT) - 1
