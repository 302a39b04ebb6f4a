"""The filter `perplexity`: from what the models read to scores and verdicts of documents.

Costs what the engine costs; beside it about 1 us a document.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from curation.errors import ConfigError
from curation.filters.labels import UNDETERMINED, working_labels
from curation.filters.perplexity.buckets import Calibration, edges_of
from curation.filters.perplexity.config import Cascade, LimitsByLanguage, PerplexityConfig
from curation.filters.perplexity.engines import (
    LIMITS_NAME,
    SECOND_PREFIX,
    Judged,
    identity_of,
    open_engine,
)
from curation.filters.perplexity.facts import facts_of
from curation.filters.perplexity.limits import SHIPPED_LIMITS, row_limits, shipped_limits
from curation.records import ScoreColumn
from curation.text import buffers, hash_spans
from curation.verdicts import Decision, Filter, StepConfig, decide_by_rules
from quality_models.language_models import checksum

__all__ = ["Perplexity"]

Mask = npt.NDArray[np.bool_]
Doubles = npt.NDArray[np.float64]
Rules = list[tuple[str, str, Mask]]

SAMPLE_SEED = 0x70706C
"""Of the hash that chooses the sample: another one than those of other steps, so that the choices have nothing in common."""

READ_COLUMNS = (
    ScoreColumn("model", pa.string(), "model", "the model that read it; null: none knows its language"),
    ScoreColumn("perplexity", pa.float64(), "perplexity", "for each token of the model; null: not read, or not finite"),
    ScoreColumn("bits_per_character", pa.float32(), "bits", "surprise for each character, comparable between models"),
    ScoreColumn("bits_per_byte", pa.float32(), "bits", "surprise for each byte of UTF-8"),
    ScoreColumn("tokens", pa.int64(), "tokens", "tokens scored; 0: not read"),
    ScoreColumn("share_scored", pa.float32(), "share", "of its bytes; less than 1 where windows were chosen"),
)
NEURAL_COLUMNS = tuple(
    ScoreColumn(f"neural_{one.name}", one.type, one.unit, f"{one.what} (second model)") for one in READ_COLUMNS
)


@dataclass(frozen=True)
class _Read:
    """What one model said, as `decide` needs it."""

    perplexity: Doubles
    """float64[n], nan where null."""
    bits: Doubles
    tokens: npt.NDArray[np.int64]
    """int64[n], 0 where null."""

    @classmethod
    def of(cls, scores: pa.RecordBatch, prefix: str = "") -> _Read:
        tokens = pc.fill_null(scores.column(f"{prefix}tokens"), 0).to_numpy(zero_copy_only=False)
        bits = scores.column(f"{prefix}bits_per_character").to_numpy(zero_copy_only=False)
        return cls(_floats(scores.column(f"{prefix}perplexity")), bits.astype(np.float64), tokens)

    @property
    def broken(self) -> Mask:
        return np.isnan(self.perplexity) & (self.tokens > 0)

    def whole(self, min_tokens: int) -> Mask:
        """Where there is enough to judge by."""
        return np.isfinite(self.perplexity) & (self.tokens >= min_tokens)


class Perplexity(Filter):
    """Drops what surprises a language model too much, or hardly at all."""

    name: ClassVar[str] = "perplexity"
    version: ClassVar[int] = 1
    stage: ClassVar[str] = "quality"
    summary: ClassVar[str] = "Drops texts that surprise a language model of their language too much, or hardly at all."
    needs: ClassVar[tuple[str, ...]] = ("text", "language.language")
    reasons: ClassVar[Mapping[str, str]] = {
        "perplexity.routed": "it is set aside for a named output, as the policies for such documents say",
        "perplexity.not_finite": "the model gave a part of it no probability, or no number, so nothing can be said",
        "perplexity.no_model": "no model knows its language",
        "perplexity.too_short": "fewer than min_tokens tokens of it could be scored",
        "perplexity.too_low": "it hardly surprises the model: it repeats itself, or says what everybody copies",
        "perplexity.too_high": "it surprises the model more than text of its language does",
        "perplexity.uncalibrated": "the calibration holds too few documents of its language",
        "perplexity.head": "it is among the least surprising of its language, by the calibration",
        "perplexity.middle": "it is between head and tail of its language, by the calibration",
        "perplexity.tail": "it is among the most surprising of its language, by the calibration",
    }
    Config: ClassVar[type[StepConfig]] = PerplexityConfig
    config: PerplexityConfig

    @property
    def score_columns(self) -> Sequence[ScoreColumn]:
        label = ScoreColumn("language", pa.string(), "label", "by which limits are chosen: language and script")
        if self.config.cascade is None:
            return (label, *READ_COLUMNS)
        asked = ScoreColumn("asked", pa.string(), "why", "why the second model was asked: band, sample; or no")
        return (label, *READ_COLUMNS, asked, *NEURAL_COLUMNS)

    def thresholds(self) -> Mapping[str, Sequence[float]]:
        """Those of the config; of the shipped ones, which differ by language, those for languages without their own."""
        found: dict[str, set[float]] = {"bits_per_character": set(), "perplexity": set()}
        for limits in (self.config, *self.config.languages.values()):
            for name in ("max_perplexity", "max_bits_per_character", "min_bits_per_character"):
                value = getattr(limits, name)
                if isinstance(value, float):
                    found[name.partition("_")[2]].add(value)
        if self._shipped and (default := shipped_limits().get("")):
            if self.config.max_bits_per_character is None:
                found["bits_per_character"].add(default.max_bits_per_character)
            if self.config.min_bits_per_character is None:
                found["bits_per_character"].add(default.min_bits_per_character)
        found["tokens"] = {float(self.config.min_tokens)}
        return {name: sorted(values) for name, values in found.items() if values}

    def off_reasons(self) -> set[str]:
        """Reasons that these settings never give: that they are silent says nothing."""
        settings = self.config
        policies = {"no_model": settings.no_model, "too_short": settings.short}
        for bucket in ("uncalibrated", "head", "middle", "tail"):
            policies[bucket] = getattr(settings, bucket) if settings.calibration is not None else "keep"
        models = [settings, *([settings.cascade] if settings.cascade is not None else [])]
        limits = [limit for model in models for limit in (model, *model.languages.values())]
        high, low = ("max_perplexity", "max_bits_per_character"), ("min_bits_per_character",)
        for why, names in (("too_high", high), ("too_low", low)):
            has = self._shipped or any(isinstance(getattr(limit, name), float) for limit in limits for name in names)
            policies[why] = "drop" if has else "keep"
        return {f"{self.name}.{why}" for why, policy in policies.items() if policy != "drop"}

    @property
    def _shipped(self) -> bool:
        """Whether the shipped models read, for which the shipped limits hold."""
        return self.config.engine == "ngram" and self.config.model is None

    def score_config(self) -> Mapping[str, Any]:
        """How models read, and which documents the second one is asked about; which models they are, checksums say."""
        settings = self.config
        found: dict[str, Any] = {"reading": settings.reading(), "shipped": self._shipped}
        if (cascade := settings.cascade) is not None:
            band = cascade.model_dump(mode="json", include={"low", "high", "unit", "sample_share"})
            found["cascade"] = {**band, "reading": cascade.reading(), "min_tokens": settings.min_tokens}
            if cascade.unit == "percentile" and settings.calibration is not None:
                # Not of which run they are: the same percentiles ask about the same documents.
                found["cascade"]["percentiles"] = settings.calibration.model_dump(mode="json", include={"languages"})
                found["cascade"]["min_calibrated"] = settings.min_calibrated
        return found

    def model_checksums(self) -> Mapping[str, str]:
        found = dict(identity_of(self.config))
        if self._shipped:
            found[LIMITS_NAME] = checksum(SHIPPED_LIMITS)
        if self.config.cascade is not None:
            found |= {f"{SECOND_PREFIX}{name}": value for name, value in identity_of(self.config.cascade).items()}
        return found

    def ready(self) -> None:
        for reading in (self.config, self.config.cascade):
            if reading is not None:
                open_engine(reading)
        calibration = self.config.calibration
        if calibration is not None and dict(calibration.engine) != (mine := dict(identity_of(self.config))):
            raise ConfigError(
                f"step perplexity: calibration was made by {dict(calibration.engine) or 'models that it does not name'}, but "
                f"this config reads with {mine}: their bits per character cannot be compared. Make one with "
                "`corpusmill calibrate` from a run of this config."
            )

    # -- scores --------------------------------------------------------------------------------

    def score(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        texts, labels = batch.column("text"), working_labels(batch)
        sizes = pc.binary_length(texts).to_numpy(zero_copy_only=False)
        columns = [labels, *_columns(open_engine(self.config).judge(texts, labels), sizes)]
        if self.config.cascade is not None:
            read = pa.RecordBatch.from_arrays(columns, names=["language", *(one.name for one in READ_COLUMNS)])
            columns += self._second(self.config.cascade, batch, read, sizes)
        return pa.RecordBatch.from_arrays(columns, names=[score.name for score in self.score_columns])

    def _second(
        self, cascade: Cascade, batch: pa.RecordBatch, read: pa.RecordBatch, sizes: npt.NDArray[np.int64]
    ) -> list[pa.Array]:
        """Why the second model is asked about each document, and what it says of those."""
        texts, labels = batch.column("text"), read.column("language")
        first = _Read.of(read)
        edges = np.array([[cascade.low, cascade.high]])
        if cascade.unit == "percentile" and self.config.calibration is not None:
            edges = edges_of(self.config.calibration, labels, (cascade.low, cascade.high), self.config.min_calibrated)
        low, high = edges.astype(np.float32).T
        whole = first.whole(self.config.min_tokens)
        band = whole & (first.bits >= low) & (first.bits <= high)
        drawn = hash_spans(*buffers(texts), seed=SAMPLE_SEED) / 2.0**64 < cascade.sample_share
        asked = np.where(band, "band", np.where(whole & drawn, "sample", "no"))
        rows = np.flatnonzero(asked != "no")
        answers = [pa.array([], column.type) for column in READ_COLUMNS]
        if len(rows):
            answers = _columns(
                open_engine(cascade).judge(texts.take(pa.array(rows)), labels.take(pa.array(rows))), sizes[rows]
            )
        place = np.full(batch.num_rows, -1)
        place[rows] = np.arange(len(rows))
        spread = pa.array(place, mask=place < 0, type=pa.int64())
        return [pa.array(asked.astype(object), pa.string()), *(answer.take(spread) for answer in answers)]

    # -- verdicts ------------------------------------------------------------------------------

    def decide(self, scores: pa.RecordBatch) -> Decision:
        rules, decisive = self._decisive(scores)
        hits = {reason: np.zeros(scores.num_rows, np.bool_) for reason in self.reasons}
        for place, (reason, policy, _) in enumerate(rules):
            hits[reason if policy == "drop" else "perplexity.routed"] |= decisive == place
        return decide_by_rules(scores.num_rows, list(self.reasons), hits)

    def route_of(self, scores: pa.RecordBatch) -> list[str | None]:
        rules, decisive = self._decisive(scores)
        names = [policy.removeprefix("route:") if policy.startswith("route:") else None for _, policy, _ in rules]
        return [names[place] if place >= 0 else None for place in decisive]

    def facts(self, tables: Iterator[pa.Table]) -> dict[str, Any]:
        """What the report says of it; see `facts.facts_of`."""
        return facts_of(self, tables)

    def limits_of(self, scores: pa.RecordBatch) -> Mapping[str, Doubles]:
        """The limit that each document's score is held against: the nearest one, where there are several; nan where none is.

        Of the first model the edges of the calibration's buckets are limits, too.
        """
        found = {}
        for prefix, settings in self._readings(scores):
            limits = row_limits(settings, scores.column("language"), shipped=not prefix and self._shipped)
            bits = _Read.of(scores, prefix).bits
            edges = [limits.max_bits_per_character, limits.min_bits_per_character]
            if not prefix and self.config.calibration is not None:
                edges += [*self._bucket_edges(scores, self.config.calibration)]
            all_of_them = np.stack(edges)
            apart = np.abs(bits - all_of_them)
            nearest = all_of_them[np.where(np.isnan(apart), np.inf, apart).argmin(axis=0), np.arange(len(bits))]
            found[f"{prefix}bits_per_character"] = np.where(np.isfinite(nearest), nearest, np.nan)
            found[f"{prefix}perplexity"] = np.where(np.isfinite(limits.max_perplexity), limits.max_perplexity, np.nan)
        return found

    def _readings(self, scores: pa.RecordBatch) -> list[tuple[str, LimitsByLanguage]]:
        second = self.config.cascade
        return [("", self.config)] + ([("neural_", second)] if second is not None else [])

    def outside(self, scores: pa.RecordBatch, prefix: str = "") -> tuple[Mask, Mask]:
        """Which documents the limits of a model find too low, and too high, whoever is asked: bool[n] each."""
        settings = dict(self._readings(scores))[prefix]
        limits = row_limits(settings, scores.column("language"), shipped=not prefix and self._shipped)
        read = _Read.of(scores, prefix)
        whole = read.whole(self.config.min_tokens)
        high = (read.bits > limits.max_bits_per_character.astype(np.float32)) | (
            read.perplexity > limits.max_perplexity
        )
        return whole & (read.bits < limits.min_bits_per_character.astype(np.float32)), whole & high

    def _decisive(self, scores: pa.RecordBatch) -> tuple[Rules, npt.NDArray[np.int64]]:
        """The rules that drop (reason, policy, to which rows it applies), and which decides each row: int64[n], -1: none."""
        rules = self._rules(scores)
        decisive = np.full(scores.num_rows, -1)
        for number, (_, _, applies) in enumerate(rules):
            decisive[applies & (decisive < 0)] = number
        return rules, decisive

    def _rules(self, scores: pa.RecordBatch) -> Rules:
        settings, read = self.config, _Read.of(scores)
        n = scores.num_rows
        low, high = self.outside(scores)
        by_second, broken = np.zeros(n, np.bool_), read.broken
        if settings.cascade is not None:
            second = _Read.of(scores, "neural_")
            asked = pc.equal(scores.column("asked"), "band").to_numpy(zero_copy_only=False).astype(np.bool_)
            by_second = asked & second.whole(settings.min_tokens)
            broken = broken | (asked & second.broken)
            second_low, second_high = self.outside(scores, "neural_")
            low, high = np.where(by_second, second_low, low), np.where(by_second, second_high, high)
        named = pc.not_equal(scores.column("language"), UNDETERMINED).to_numpy(zero_copy_only=False).astype(np.bool_)
        unknown = scores.column("model").is_null().to_numpy(zero_copy_only=False) & named
        rules = [
            ("perplexity.not_finite", "drop", broken),
            ("perplexity.no_model", settings.no_model, unknown),
            ("perplexity.too_short", settings.short, (read.tokens < settings.min_tokens) & ~unknown),
            ("perplexity.too_low", "drop", low),
            ("perplexity.too_high", "drop", high),
            *self._bucket_rules(scores, read, read.whole(settings.min_tokens) & ~by_second),
        ]
        return [rule for rule in rules if rule[1] != "keep"]

    def _bucket_rules(self, scores: pa.RecordBatch, read: _Read, judged: Mask) -> Rules:
        settings = self.config
        if settings.calibration is None:
            return []
        head, middle = self._bucket_edges(scores, settings.calibration).astype(np.float32)
        return [
            ("perplexity.uncalibrated", settings.uncalibrated, judged & np.isnan(head)),
            ("perplexity.head", settings.head, judged & (read.bits <= head)),
            ("perplexity.middle", settings.middle, judged & (read.bits > head) & (read.bits <= middle)),
            ("perplexity.tail", settings.tail, judged & (read.bits > middle)),
        ]

    def _bucket_edges(self, scores: pa.RecordBatch, calibration: Calibration) -> Doubles:
        """Where head and middle of each document's language end: float64[2, n], nan without calibration."""
        percentiles = (self.config.head_until, self.config.middle_until)
        return edges_of(calibration, scores.column("language"), percentiles, self.config.min_calibrated).T


def _columns(judged: Judged, sizes: npt.NDArray[np.int64]) -> list[pa.Array]:
    """The columns of READ_COLUMNS: null where nothing was read, and where a number is not finite."""
    read = judged.tokens > 0
    with np.errstate(over="ignore", invalid="ignore"):
        perplexity = np.exp(judged.nats / np.maximum(judged.tokens, 1))
        bits = judged.nats / np.log(2)
        by_character = (bits / np.maximum(judged.characters, 1)).astype(np.float32)
        by_byte = (bits / np.maximum(judged.bytes, 1)).astype(np.float32)
    finite = read & np.isfinite(perplexity) & np.isfinite(by_character) & np.isfinite(by_byte)
    share = np.minimum(judged.bytes / np.maximum(sizes, 1), 1).astype(np.float32)
    return [
        pa.array(judged.model, pa.string()),
        pa.array(perplexity, mask=~finite),
        pa.array(by_character, mask=~finite),
        pa.array(by_byte, mask=~finite),
        pa.array(judged.tokens),
        pa.array(share, mask=~read),
    ]


def _floats(column: pa.Array) -> Doubles:
    """float64[n] of a column, nan where null."""
    found: Doubles = column.to_numpy(zero_copy_only=False).astype(np.float64)
    return found
