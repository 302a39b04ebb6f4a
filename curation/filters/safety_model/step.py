"""The filter `safety_model`: from the windows that a classifier reads to scores and verdicts of documents.

Costs what `quality_models.safety_engines` says for each document that is read, and 20 ns a character for the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from curation.errors import ConfigError
from curation.filters.labels import lookup_keys, working_labels
from curation.filters.safety_model.config import COLUMN_NAMES, OTHER, SafetyModelConfig
from curation.filters.safety_model.facts import facts_of
from curation.filters.safety_model.linear import suspicion
from curation.filters.safety_model.model import Thresholds, open_linear_model, open_model, thresholds_of
from curation.records import ScoreColumn
from curation.text import buffers, hash_spans
from curation.verdicts import Decision, Filter, StepConfig, decide_by_rules
from quality_models.safety_labels import CATEGORIES

__all__ = ["SafetyModel"]

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

AUDIT_SEED = 0x736D61
"""Of the hash that chooses the sample: another one than those of other steps, so that the choices have nothing in common."""
MEAN = "_mean"

FIRST_COLUMNS = (
    ScoreColumn("language", pa.string(), "label", "by which thresholds are chosen: language and script"),
    ScoreColumn("asked", pa.string(), "why", "why the model read it: terms, linear, audit, all; or no: it did not"),
    ScoreColumn("windows", pa.int32(), "windows", "that the model read; 0: none"),
    ScoreColumn("share_read", pa.float32(), "share", "of its tokens; less than 1 where windows were chosen"),
)
LAST_COLUMNS = (
    ScoreColumn(
        "worst_begin", pa.int64(), "bytes", "where the window begins that is furthest above the model's threshold"
    ),
    ScoreColumn("worst_end", pa.int64(), "bytes", "where that window ends"),
    ScoreColumn("worst_label", pa.string(), "category", "for which it is that"),
)


class SafetyModel(Filter):
    """Drops what a classifier finds unsafe."""

    name: ClassVar[str] = "safety_model"
    version: ClassVar[int] = 1
    stage: ClassVar[str] = "safety"
    summary: ClassVar[str] = "Drops what a classifier that reads whole texts finds unsafe: adverts, hate, coded hooks."
    needs: ClassVar[tuple[str, ...]] = ("text", "language.language", "safety_terms.hits")
    reasons: ClassVar[Mapping[str, str]] = {
        **{f"safety_model.{name}": f"the model finds in it {what}" for name, what in CATEGORIES.items()},
        f"safety_model.{OTHER}": "the model finds in it something unwanted that is none of the categories",
    }
    Config: ClassVar[type[StepConfig]] = SafetyModelConfig
    config: SafetyModelConfig

    @property
    def score_columns(self) -> Sequence[ScoreColumn]:
        categories = []
        for name in COLUMN_NAMES:
            what = CATEGORIES.get(name, "labels that are no category of ours")
            categories.append(ScoreColumn(name, pa.float32(), "probability", f"greatest of its windows: {what}"))
            categories.append(
                ScoreColumn(f"{name}{MEAN}", pa.float32(), "probability", "mean of its windows by their length")
            )
        return (*FIRST_COLUMNS, *categories, *LAST_COLUMNS)

    def thresholds(self) -> Mapping[str, Sequence[float]]:
        """Those for all languages; of windows those of short and of long documents."""
        found = {}
        for name, usual, long in zip(COLUMN_NAMES, self._limits.usual, self._limits.long, strict=True):
            if np.isfinite(usual):
                found[name] = sorted({float(value) for value in (usual, max(usual, long)) if np.isfinite(value)})
                found[f"{name}{MEAN}"] = [float(usual)]
        return found

    def off_reasons(self) -> set[str]:
        """Categories that the model does not know, or that the settings switch off."""
        off = np.isinf(np.stack([self._limits.usual, *self._limits.languages.values()])).all(axis=0)
        return {f"{self.name}.{COLUMN_NAMES[column]}" for column in np.flatnonzero(off)}

    def score_of(self, reason: str) -> str | None:
        return reason.partition(".")[2]

    def score_config(self) -> Mapping[str, Any]:
        """Which documents are read and what labels mean; model and windows are among the checksums."""
        config = self.config
        found: dict[str, Any] = {
            "shipped": config.model == "corpusmill",
            "engine": config.engine,
            "scope": config.scope,
        }
        found |= {"base": config.base is not None, "labels": dict(config.labels)}
        found["windows"] = [config.window, config.stride, config.max_windows]
        found["cascade"] = config.cascade.model_dump(mode="json") if config.scope == "cascade" else None
        return found

    def model_checksums(self) -> Mapping[str, str]:
        found = dict(open_model(self.config).model.identity)
        if self.config.scope == "cascade":
            found["linear model"] = open_linear_model().identity
        return found

    def ready(self) -> None:
        """Makes the file that the engine reads, too, where it is not there yet: all workers then find it."""
        self.model_checksums()
        thresholds_of(self.config)
        try:
            open_model(self.config).model.prepare()
        except ValueError as error:
            raise ConfigError(f"step safety_model: {error}") from error

    # -- scores --------------------------------------------------------------------------------

    def score(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        asked = self._asked(batch)
        rows = np.flatnonzero(asked != "no")
        read = self._read(batch.column("text").take(pa.array(rows)))
        place = np.full(batch.num_rows, -1)
        place[rows] = np.arange(len(rows))
        spread = pa.array(place, mask=place < 0, type=pa.int64())
        values = [column.take(spread) for column in read]
        values[0] = pc.fill_null(values[0], 0)
        columns = [working_labels(batch), pa.array(asked.astype(object), pa.string()), *values]
        return pa.RecordBatch.from_arrays(columns, names=[score.name for score in self.score_columns])

    def _asked(self, batch: pa.RecordBatch) -> npt.NDArray[np.str_]:
        """Why the model reads each document: str[n]."""
        if self.config.scope == "all":
            return np.full(batch.num_rows, "all")
        texts, cascade = batch.column("text"), self.config.cascade
        hits = pc.fill_null(batch.column("safety_terms.hits").cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
        suspicious = suspicion(texts, open_linear_model()) >= np.float32(cascade.suspicious)
        drawn = hash_spans(*buffers(texts), seed=AUDIT_SEED) / 2.0**64 < cascade.audit_share
        return np.where(hits > 0, "terms", np.where(suspicious, "linear", np.where(drawn, "audit", "no")))

    def _read(self, texts: pa.Array) -> list[pa.Array]:
        """Score columns from `windows` on, of documents that are read."""
        opened, n = open_model(self.config), len(texts)
        try:
            said = opened.model.probabilities(texts.to_pylist())
        except ValueError as error:
            raise ConfigError(f"step safety_model: {error}") from error
        if not np.isfinite(said.probabilities).all():
            raise ConfigError(
                f"step safety_model: expected probabilities of {self.config.model}, found nan for a text of this batch; "
                "its weights are damaged: copy the model again"
            )
        categories = opened.by_category(said.probabilities)
        windows = np.bincount(said.text, minlength=n)
        has = windows > 0
        begins = np.concatenate([[0], np.cumsum(windows[has])[:-1]]).astype(np.int64)
        most, mean, worst = (np.zeros((n, len(COLUMN_NAMES)), np.float32) for _ in range(3))
        worst_row, worst_column = np.zeros(n, np.int64), np.zeros(n, np.int64)
        if has.any():
            most[has] = np.maximum.reduceat(categories, begins)
            weights = said.tokens[:, None].astype(np.float64)
            sums = np.add.reduceat(categories * weights, begins) / np.add.reduceat(weights, begins)
            mean[has] = np.minimum(sums.astype(np.float32), most[has])
            excess = np.where(opened.known, categories - opened.own.usual.astype(np.float32), -np.inf)
            worst[has] = np.maximum.reduceat(excess, begins)
            worst_column = worst.argmax(axis=1)
            by_window = excess[np.arange(len(said.text)), worst_column[said.text]]
            first = np.flatnonzero(by_window == worst[said.text, worst_column[said.text]])
            # Backwards, so that of several windows the first stays.
            worst_row[said.text[first[::-1]]] = first[::-1]
        return self._columns(has, windows, said.share_read, most, mean, (said, worst_row, worst_column))

    def _columns(
        self, has: Mask, windows: npt.NDArray[np.int64], share: Floats, most: Floats, mean: Floats, worst: Any
    ) -> list[pa.Array]:
        none, known = ~has, open_model(self.config).known
        columns = [pa.array(windows, pa.int32()), pa.array(share, mask=none)]
        for column in range(len(COLUMN_NAMES)):
            mask = none if known[column] else np.ones_like(none)
            columns += [pa.array(most[:, column], mask=mask), pa.array(mean[:, column], mask=mask)]
        said, rows, labels = worst
        for places in (said.begin, said.end):
            found = places[rows] if len(places) else np.zeros(len(has), np.int64)
            columns.append(pa.array(found, mask=none, type=pa.int64()))
        columns.append(pa.array(np.array(COLUMN_NAMES, object)[labels], pa.string(), mask=none))
        return columns

    # -- verdicts ------------------------------------------------------------------------------

    def decide(self, scores: pa.RecordBatch) -> Decision:
        hits = {}
        limits = self.limits_of(scores)
        for name in COLUMN_NAMES:
            hit = np.zeros(scores.num_rows, np.bool_)
            for column in (name, f"{name}{MEAN}"):
                values = scores.column(column).to_numpy(zero_copy_only=False).astype(np.float32)
                # What is not read has no number, and what has no limit has none either: neither is greater.
                with np.errstate(invalid="ignore"):
                    hit |= values >= limits[column].astype(np.float32)
            hits[f"{self.name}.{name}"] = hit
        return decide_by_rules(scores.num_rows, list(self.reasons), hits)

    def limits_of(self, scores: pa.RecordBatch) -> Mapping[str, Doubles]:
        """The threshold of each document's windows, and that of their mean where there are several; nan where none is."""
        usual, long = self._rows(scores.column("language"))
        several = (pc.fill_null(scores.column("windows"), 0).to_numpy(zero_copy_only=False) > 1)[:, None]
        windows, means = np.where(several, long, usual), np.where(several, usual, np.nan)
        found = {}
        for column, name in enumerate(COLUMN_NAMES):
            for key, values in ((name, windows), (f"{name}{MEAN}", means)):
                found[key] = np.where(np.isfinite(values[:, column]), values[:, column], np.nan)
        return found

    def _rows(self, labels: pa.StringArray) -> tuple[Doubles, Doubles]:
        """Usual and long thresholds of each document: float64[n, n_categories] each."""
        encoded = labels.dictionary_encode()
        limits = self._limits
        usual = np.tile(limits.usual, (len(encoded.dictionary) + 1, 1))
        for place, label in enumerate(encoded.dictionary.to_pylist()):
            key = next((key for key in lookup_keys(label) if key in limits.languages), None)
            if key is not None:
                usual[place] = limits.languages[key]
        long = np.maximum(usual, limits.long)
        index = pc.fill_null(encoded.indices, len(encoded.dictionary)).to_numpy(zero_copy_only=False)
        return usual[index], long[index]

    @cached_property
    def _limits(self) -> Thresholds:
        return thresholds_of(self.config)

    def facts(self, tables: Iterator[pa.Table]) -> dict[str, Any]:
        """What the report says of it; see `facts.facts_of`."""
        return facts_of(self.config.scope, tables)
