"""Our own quality chain over lists of texts: scores once, verdicts for as many settings as are asked for.

Scores know no threshold, so each step scores every document once, with the label that the step `language` gives it or with that
of the gold, and each preset only decides anew. A chain's verdict is the reason of the first of its steps that drops a document,
as in a run, where later steps would not see it.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curation.filters.language import Language, LanguageConfig
from curation.steps import STEPS, step_class
from curation.verdicts import Filter
from tests.fakes import batch_for

__all__ = ["CHAIN", "PRESETS", "Judge", "broken_rules", "named_languages", "registered", "violations"]

CHAIN = ("html_noise", "length", "rules", "perplexity")
PRESETS = ("gopher", "c4", "fineweb", "fineweb2", "massive")
BATCH_ROWS = 512


def registered(name: str) -> bool:
    return name in STEPS


def make(name: str, config: Mapping[str, Any]) -> Filter:
    """A filter of a name with settings as a YAML file has them."""
    found = step_class(name)
    made = found(found.Config.model_validate(dict(config)))
    assert isinstance(made, Filter)
    made.ready()
    return made


def named_languages(texts: Sequence[str]) -> list[str | None]:
    """What the step `language` says of texts, as the steps behind it are told."""
    made = Language(LanguageConfig())
    labels: list[str | None] = []
    for at in range(0, len(texts), BATCH_ROWS):
        labels += made.score(batch_for(made, texts[at : at + BATCH_ROWS])).column("language").to_pylist()
    return labels


@dataclass
class Judge:
    """Texts with labels, and the scores of each step that was asked for.

    seconds: processor time of scoring by step, its first batch left out, which loads models and kernels.
    """

    texts: Sequence[str]
    labels: Sequence[str | None]
    scores: dict[str, pa.RecordBatch] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    def scored(self, name: str, config: Mapping[str, Any]) -> pa.RecordBatch:
        """Scores of all texts; kept for every config of the step that gives the same scores."""
        made = make(name, config)
        key = f"{name} {sorted(made.score_config().items())!r}"
        if key not in self.scores:
            made.score(self._batch(made, 0))
            begin = time.process_time()
            parts = [made.score(self._batch(made, at)) for at in range(0, len(self.texts), BATCH_ROWS)]
            self.seconds[name] = time.process_time() - begin
            self.scores[key] = pa.Table.from_batches(parts).combine_chunks().to_batches()[0]
        return self.scores[key]

    def _batch(self, made: Filter, at: int) -> pa.RecordBatch:
        return batch_for(made, self.texts[at : at + BATCH_ROWS], self.labels[at : at + BATCH_ROWS])

    def reasons(self, name: str, config: Mapping[str, Any]) -> list[str | None]:
        """Why a step by itself drops each text; None where it keeps it."""
        made = make(name, config)
        found: list[str | None] = made.decide(self.scored(name, config)).reason_array(list(made.reasons)).to_pylist()
        return found

    def verdicts(self, steps: Iterable[tuple[str, Mapping[str, Any]]]) -> list[str | None]:
        """The first reason of several steps in their order."""
        found: list[str | None] = [None] * len(self.texts)
        for name, config in steps:
            found = [one or other for one, other in zip(found, self.reasons(name, config), strict=True)]
        return found


def broken_rules(judge: Judge, config: Mapping[str, Any]) -> dict[str, npt.NDArray[np.bool_]]:
    """Which texts break each rule that a config of `rules` has on: bool[texts], by reason."""
    made: Any = make("rules", config)
    found: dict[str, npt.NDArray[np.bool_]] = made.hits(judge.scored("rules", config))
    return found


def violations(judge: Judge, config: Mapping[str, Any]) -> list[int]:
    """How many of the rules that a config has on each text breaks."""
    return [int(one) for one in np.sum(list(broken_rules(judge, config).values()), axis=0)]
