"""Settings of the filter `perplexity`."""

from __future__ import annotations

import re
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import Field, ValidatorFunctionWrapHandler, WrapValidator, field_validator, model_validator

from curation.filters.labels import each_language_once, lookup_keys
from curation.filters.language.config import LanguageName, Policy
from curation.filters.perplexity.buckets import Calibration, read_calibration
from curation.verdicts import StepConfig
from quality_models.windows import BosRule, WindowRule

__all__ = ["OFF", "Cascade", "EngineName", "LimitKey", "Limits", "LimitsByLanguage", "PerplexityConfig", "Reading"]

OFF: Literal["off"] = "off"
"""In place of a number: no such limit, not even the one that ships."""

EngineName = Literal["ngram", "gpt2", "ctranslate2"]
NeuralName = Literal["gpt2", "ctranslate2"]
SCRIPT_LABEL = re.compile(r"und_[A-Z][a-z]{3}")


def _or_script(value: Any, check: ValidatorFunctionWrapHandler) -> Any:
    return value if isinstance(value, str) and SCRIPT_LABEL.fullmatch(value) else check(value)


LimitKey: TypeAlias = Annotated[LanguageName, WrapValidator(_or_script)]
"""zho, zho_Hant, en; or und_Latn for every language written in a script."""

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Limit: TypeAlias = Positive | Literal["off"] | None
Share = Annotated[float, Field(ge=0, le=1)]
Percent = Annotated[float, Field(gt=0, lt=100)]


class Limits(StepConfig):
    """Fixed limits. null: what is said for all languages, or else the limit that ships with the shipped models; off: none."""

    max_perplexity: Limit = None
    """Dropped above: perplexity, which depends on the model's tokens, window and stride."""
    max_bits_per_character: Limit = None
    """Dropped above."""
    min_bits_per_character: Limit = None
    """Dropped below: text that repeats itself, or that everybody copies."""

    @model_validator(mode="after")
    def _rising(self) -> Limits:
        low, high = self.min_bits_per_character, self.max_bits_per_character
        if isinstance(low, float) and isinstance(high, float) and low > high:
            raise ValueError(
                f"min_bits_per_character ({low:g}) must not be more than max_bits_per_character ({high:g})"
            )
        return self


class LimitsByLanguage(Limits):
    """Fixed limits for all languages, and for single ones."""

    languages: dict[LimitKey, Limits] = Field(default_factory=dict, examples=[{"eng": {"max_perplexity": 35}}])
    """Limits for single languages or scripts, in place of those for all: `{zho: {max_bits_per_character: 9}}`."""

    _each_language_once = field_validator("languages", mode="wrap")(each_language_once)

    def limit(self, name: str, label: str) -> Limit:
        """A limit of a label: what is said of the label, its language, its script, or of all; None if nothing is."""
        places = [self.languages[key] for key in lookup_keys(label) if key in self.languages]
        said = [getattr(place, name) for place in (*places, self)]
        return next((found for found in said if found is not None), None)


class Reading(StepConfig):
    """A model and how it reads."""

    engine: EngineName = "ngram"
    """ngram: characters, one model a language, ships with the pipeline; gpt2: a causal language model in the format of
    transformers; ctranslate2: one in that of CTranslate2. Neural ones need `model`."""
    model: str | dict[LimitKey, str] | None = None
    """Folder of a model; of n-gram models, a folder or file, or a file for each language. Left out: those that ship."""
    window: int = Field(default=1024, ge=2, le=1_000_000)
    """Tokens that a neural model is given at once. The same text has another perplexity with another window."""
    stride: int = Field(default=768, ge=1)
    """Tokens that each window but the first scores; those before them are its context, and each is scored once."""
    bos: BosRule = "every_window"
    """Where a neural model is given the token that stands before text: every_window, document (the first window), none."""
    max_windows: int = Field(default=8, ge=1)
    """Windows by which a neural model judges a long text, at even steps."""
    bos_token: str = ""
    """Name of that token; left out: the tokenizer's own for the beginning, or else for the end of text."""
    dtype: Literal["auto", "bfloat16", "float32", "int8"] = "auto"
    """Numbers in which a neural model computes. auto: bfloat16 for gpt2, int8 for ctranslate2."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where gpt2 computes; auto: on a GPU if there is one."""

    def reading(self) -> dict[str, Any]:
        """The settings that decide what the model says, as plain data; which model it is, its checksum says."""
        if self.engine == "ngram":
            return {"engine": "ngram"}
        return self.model_dump(mode="json", include=set(Reading.model_fields) - {"model"})

    @model_validator(mode="after")
    def _reads(self) -> Reading:
        WindowRule(self.window, self.stride, self.bos, self.max_windows)
        if (self.engine, self.dtype) in (("gpt2", "int8"), ("ctranslate2", "bfloat16")):
            raise ValueError(f"dtype: engine {self.engine} does not compute in {self.dtype}")
        if self.engine != "ngram" and isinstance(self.model, dict):
            raise ValueError(f"model: engine {self.engine} has one model for all languages: expected its folder")
        return self


class Cascade(LimitsByLanguage, Reading):
    """A second, neural model for the documents that the first cannot decide, and a sample of the others."""

    engine: NeuralName = "gpt2"
    """gpt2: a causal language model in the format of transformers; ctranslate2: one in that of CTranslate2."""
    model: str = Field(min_length=1)
    """Folder of the model."""
    low: float = Field(ge=0, allow_inf_nan=False)
    """Where the undecided band begins, in `unit` of the first model."""
    high: float = Field(ge=0, allow_inf_nan=False)
    """Where it ends."""
    unit: Literal["bits_per_character", "percentile"] = "bits_per_character"
    """percentile: of the calibration of the document's language; without one, a document is not asked about."""
    sample_share: Share = 0.01
    """Share of the decided documents that are read all the same, chosen by their text, to show how often the two differ."""

    @model_validator(mode="after")
    def _band(self) -> Cascade:
        if self.low > self.high:
            raise ValueError(f"low ({self.low:g}) must not be more than high ({self.high:g})")
        if self.unit == "percentile" and self.high > 100:
            raise ValueError(f"high: expected a percentile of at most 100, found {self.high:g}")
        return self


class PerplexityConfig(LimitsByLanguage, Reading):
    """Which model reads, what is too much or too little surprise in a language, and what becomes of what it cannot judge.

    A policy is `keep`, `drop`, or `route:NAME`: dropped as `perplexity.routed`, and written by
    `corpusmill export --route NAME`. The first rule that applies decides, in the order of the reasons.
    """

    names_or_paths: ClassVar[frozenset[str]] = frozenset({"model", "calibration", "cascade.model"})

    min_tokens: int = Field(default=50, ge=1)
    """Scored tokens (characters, for n-grams) below which a document is too short to judge."""
    short: Policy = "keep"
    """Documents with fewer scored tokens than min_tokens."""
    no_model: Policy = "keep"
    """Documents in a language that no model knows."""
    calibration: Calibration | None = Field(
        default=None,
        examples=[{"engine": {}, "languages": {"eng": {"documents": 1, "percentiles": {"1": 1.0, "99": 2.0}}}}],
    )
    """A file that `corpusmill calibrate` wrote, or its content: percentiles of bits per character by language. With it
    documents fall into head, middle and tail."""
    head_until: Percent = 30
    """Percentile at which the head ends (CCNet: 30)."""
    middle_until: Percent = 60
    """Percentile at which the middle ends (CCNet: 60)."""
    head: Policy = "keep"
    """Documents that surprise the model as little as the calibration's first `head_until` percent."""
    middle: Policy = "keep"
    """Documents between head and tail."""
    tail: Policy = "drop"
    """Documents that surprise the model more."""
    uncalibrated: Policy = "keep"
    """Where there is a calibration: documents in a language that it has fewer than min_calibrated documents of."""
    min_calibrated: int = Field(default=100, ge=1)
    """Documents of a language from which on its percentiles are used."""
    cascade: Cascade | None = Field(default=None, examples=[{"model": "models/small", "low": 2, "high": 3}])
    """A neural model that reads only what the first one leaves undecided."""

    @field_validator("calibration", mode="before")
    @classmethod
    def _read(cls, value: Any) -> Any:
        return read_calibration(value) if isinstance(value, str) else value

    @model_validator(mode="after")
    def _fits(self) -> PerplexityConfig:
        if self.head_until > self.middle_until:
            raise ValueError(
                f"head_until ({self.head_until:g}) must not be more than middle_until ({self.middle_until:g})"
            )
        if self.cascade is not None and self.cascade.unit == "percentile" and self.calibration is None:
            raise ValueError("cascade.unit: percentile needs `calibration`, a file that `corpusmill calibrate` wrote")
        return self
