"""Documents that change sides, one by one: the samples that are shown, and the file that holds all of them.

Samples are chosen by a hash of the document's identity and spread over the changes, so the same question shows the same
documents. Their shards are hashed, since what is shown must be what was written.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa

from curation.errors import ConfigError
from curation.matched_spans import MATCHED
from curation.pipeline import Pipeline
from curation.report.excerpt import Excerpt
from curation.report.samples import Place, Reservoir, read_samples
from curation.run import publish
from curation.shards import Shard, batches, open_table
from curation.steps import PlacedStep
from curation.verdicts import Filter, Step
from curation.what_if_outcomes import Outcome, Outcomes, Redecided, score_batch, verdict_table
from curation.what_if_settings import Question

__all__ = [
    "Deciding",
    "DocumentOutcome",
    "RowLimits",
    "Writer",
    "outcome_json",
    "read_documents",
    "score_of_reason",
    "spread",
]

Pair = tuple[int, int]
"""Numbers of an outcome before and one after."""

_BATCH = 1000
"""Documents that are objects at once."""
_COLUMNS = ("id", "doc_id", "source", "line", "url", "text")
_MAX_NUMBERS = 3
"""Scores with a threshold that are shown of a document whose reason is called as none of them."""
_MAX_LABELS = 2
"""Scores that are words: the first ones of a step say what it found."""


@dataclass(frozen=True, slots=True)
class Deciding:
    """A score that decides of a document, with the limits of the run and those in question."""

    step: str
    name: str
    value: Any
    unit: str
    before: tuple[float, ...]
    after: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class DocumentOutcome:
    """A document that changes."""

    id: str
    doc_id: str
    source: str
    line: int
    url: str | None
    language: str | None
    text: Excerpt
    before: Outcome
    after: Outcome
    scores: list[Deciding]


def spread(reservoirs: Mapping[Pair, Reservoir], counts: Mapping[Pair, int], limit: int) -> dict[Place, Pair]:
    """At most `limit` places, one of each change in turn, the change of most documents first."""
    order = sorted(reservoirs, key=lambda pair: (-counts[pair], pair))
    taken: dict[Pair, list[Place]] = {pair: [] for pair in order}
    held = {pair: reservoirs[pair].places for pair in order}
    for turn in range(limit):
        for pair in order:
            if turn < len(held[pair]) and sum(map(len, taken.values())) < limit:
                taken[pair].append(held[pair][turn])
    return {place: pair for pair, places in taken.items() for place in places}


def read_documents(
    pipeline: Pipeline, question: Question, places: Mapping[Place, Pair], outcomes: Outcomes
) -> list[DocumentOutcome]:
    """The documents at some places, in that order.

    Raises:
        RunError: one of their shards is damaged.
    """
    for index in sorted({index for index, _ in places}):
        shard = pipeline.shards[index]
        open_table(shard.path, shard.sha256, shard.rows)
    samples = read_samples(pipeline.shards, places)
    found: dict[Place, DocumentOutcome] = {}
    by_shard: dict[int, list[int]] = defaultdict(list)
    for index, row in places:
        by_shard[index].append(row)
    for index, listed in by_shard.items():
        rows = np.array(listed, np.int64)
        tables = [verdict_table(placed, pipeline.shards[index]) for placed in pipeline.placed]
        pairs = [
            (outcomes.all[before], outcomes.all[after]) for before, after in (places[index, row] for row in listed)
        ]
        languages = languages_of(pipeline.placed, tables, rows)
        deciding = _deciding(pipeline.placed, question.steps, tables, rows, pairs)
        for row, pair, language, scores in zip(listed, pairs, languages, deciding, strict=True):
            one = samples[index, row]
            found[index, row] = DocumentOutcome(
                one.id, one.doc_id, one.source, one.line, one.url, language, one.text, *pair, scores
            )
    return [found[place] for place in places]


def languages_of(
    placed: Sequence[PlacedStep], tables: Sequence[pa.Table], rows: npt.NDArray[np.int64]
) -> list[str | None]:
    """What the step `language` says of some rows; None where there is no such step, or it had not looked."""
    index = next((one.index for one in placed if one.name == "language"), None)
    if index is None:
        return [None] * len(rows)
    found: list[str | None] = tables[index].column("language").take(pa.array(rows)).to_pylist()
    return found


def _deciding(
    placed: Sequence[PlacedStep],
    changed: Mapping[int, Filter],
    tables: Sequence[pa.Table],
    rows: npt.NDArray[np.int64],
    pairs: Sequence[tuple[Outcome, Outcome]],
) -> list[list[Deciding]]:
    """For each row the scores of the steps in question that decide of it."""
    found: list[list[Deciding]] = [[] for _ in rows]
    for index, new in changed.items():
        old = placed[index].step
        assert isinstance(old, Filter)
        mine = [i for i, pair in enumerate(pairs) if old.name in (pair[0].step, pair[1].step)]
        if not mine:
            continue
        scores = score_batch(old, tables[index], rows[mine])
        limits = [RowLimits(step, scores) for step in (old, new)]
        units = {score.name: score.unit for score in old.score_columns}
        for place, i in enumerate(mine):
            for name in _names(old, new, pairs[i]):
                value = scores.column(name)[place].as_py()
                before, after = (one.of(name, place) for one in limits)
                found[i].append(Deciding(old.name, name, value, units[name], before, after))
    return found


def _names(old: Step, new: Step, pair: tuple[Outcome, Outcome]) -> list[str]:
    """Scores that decide of a document: those that its reasons are about, else the first with a changed threshold.

    Where a setting that is a word has changed (a policy, a preset), the scores that are words are shown, too.
    """
    known = [score.name for score in old.score_columns]
    named = {
        score_of_reason(old, outcome.reason, known) for outcome in pair if outcome.reason and outcome.step == old.name
    }
    if found := [name for name in known if name in named]:
        return found
    limits = [step.thresholds() for step in (old, new)]
    moved = [name for name in known if list(limits[0].get(name, ())) != list(limits[1].get(name, ()))]
    settings = [step.config.model_dump(mode="json") for step in (old, new)]
    by_word = any(isinstance(value, str) and settings[0].get(key) != value for key, value in settings[1].items())
    words = [score.name for score in old.score_columns if pa.types.is_string(score.type)]
    labels = [name for name in words if name != MATCHED][:_MAX_LABELS]
    numbers = moved or [name for name in known if name in limits[0]]
    return [*(labels if by_word or not moved else ()), *numbers[:_MAX_NUMBERS]]


def score_of_reason(step: Step | None, reason: str, known: Sequence[str]) -> str | None:
    """The score that a reason is about: as the step says (`score_of`), or the one that it is called as, or ends in."""
    if isinstance(step, Filter) and (told := step.score_of(reason)) in known:
        return told
    why = reason.partition(".")[2]
    return why if why in known else max((name for name in known if why.endswith(f"_{name}")), key=len, default=None)


class RowLimits:
    """Limits of scores, row by row where the step can say so (`limits_of`), else all that it applies."""

    def __init__(self, step: Filter, scores: pa.RecordBatch) -> None:
        self._thresholds = step.thresholds()
        self._by_row = step.limits_of(scores)

    def of(self, name: str, row: int) -> tuple[float, ...]:
        if name in self._by_row:
            limit = float(self._by_row[name][row])
            return () if np.isnan(limit) else (limit,)
        return tuple(float(limit) for limit in self._thresholds.get(name, ()))


def outcome_json(outcome: Outcome) -> dict[str, Any]:
    """An outcome as plain data."""
    return {
        "outcome": outcome.side,
        "step": outcome.step,
        "reason": outcome.reason,
        "route": outcome.route,
        "not_judged_by": list(outcome.waiting),
    }


class Writer:
    """Writes every document that changes as one line of JSON, with its text."""

    def __init__(self, stream: IO[bytes], pipeline: Pipeline, question: Question) -> None:
        self._stream = stream
        self._placed = pipeline.placed
        self._question = question
        self.count = 0

    @classmethod
    @contextmanager
    def to(cls, output: Path, pipeline: Pipeline, question: Question) -> Iterator[Writer]:
        """A writer to a file that appears whole, or not at all.

        Raises:
            ConfigError: it is no .jsonl file, or would lie in the run.
        """
        if output.suffix != ".jsonl":
            raise ConfigError(f"--output {output}: expected a name that ends in .jsonl.")
        if output.resolve().is_relative_to(pipeline.run.folder.resolve()):
            raise ConfigError(f"--output {output} lies in the run, which is not touched. Give a place outside of it.")
        with publish(output) as temporary, temporary.open("wb") as stream:
            yield cls(stream, pipeline, question)

    def add(self, shard: Shard, rows: npt.NDArray[np.int64], found: Redecided, outcomes: Outcomes) -> None:
        """Write the documents at some rows of a shard, ascending."""
        for start, batch in batches(shard, _COLUMNS):
            here = rows[(rows >= start) & (rows < start + batch.num_rows)]
            for first in range(0, len(here), _BATCH):
                self._add(
                    batch.take(pa.array(here[first : first + _BATCH] - start)),
                    here[first : first + _BATCH],
                    found,
                    outcomes,
                )

    def _add(
        self, documents: pa.RecordBatch, rows: npt.NDArray[np.int64], found: Redecided, outcomes: Outcomes
    ) -> None:
        pairs = [(outcomes.all[found.before[row]], outcomes.all[found.after[row]]) for row in rows]
        languages = languages_of(self._placed, found.tables, rows)
        deciding = _deciding(self._placed, self._question.steps, found.tables, rows, pairs)
        for document, (before, after), language, scores in zip(
            documents.to_pylist(), pairs, languages, deciding, strict=True
        ):
            text = document.pop("text")
            document["doc_id"] = document["doc_id"].hex()
            told = {
                "language": language,
                "before": outcome_json(before),
                "after": outcome_json(after),
                "scores": deciding_json(scores),
            }
            self._stream.write(orjson.dumps({**document, **told, "text": text}, option=orjson.OPT_APPEND_NEWLINE))
            self.count += 1


def deciding_json(scores: Sequence[Deciding]) -> list[dict[str, Any]]:
    """Deciding scores as plain data."""
    return [
        {
            "step": one.step,
            "name": one.name,
            "value": one.value,
            "limits_before": list(one.before),
            "limits_after": list(one.after),
        }
        for one in scores
    ]
