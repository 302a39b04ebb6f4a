"""Settings of the filter `safety_terms`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field, model_validator

from curation.verdicts import StepConfig
from quality_models.safety_labels import CATEGORY_NAMES

__all__ = ["CategoryLimits", "Limits", "SafetyTermsConfig"]


class CategoryLimits(StepConfig):
    """What one category has otherwise; what is null is as for all."""

    drop: bool = True
    """False: scores only, no verdict."""
    min_peak: float | None = Field(default=None, gt=0)
    """As above."""
    min_density: float | None = Field(default=None, ge=0)
    """As above."""
    dense_peak: float | None = Field(default=None, gt=0)
    """As above."""


class Limits(StepConfig):
    """The limits that hold for a category."""

    drop: bool
    """Whether it is dropped at all."""
    min_peak: float
    """Least weight within 200 units."""
    min_density: float
    """Least weight for 200 units of the whole text."""
    dense_peak: float
    """Weight within 200 units from which the rest of the text does not matter."""


class SafetyTermsConfig(StepConfig):
    """Which lists are read, and how many hits drop a document.

    A term weighs 1 (weak), 2 or 4 (strong), at most 8; its second hit half of the first, and so on. A document is dropped for a
    category whose weight within some 200 units reaches `min_peak`, if the whole text holds `min_density`, or that stretch
    `dense_peak`. A Han, kana or Hangul character is a unit, another letter or digit a third: 200 units are some 100 words.
    """

    paths: ClassVar[frozenset[str]] = frozenset({"files"})

    shipped: bool = True
    """Whether the shipped lists are used."""
    files: tuple[Path, ...] = ()
    """Lists of your own, beside the shipped ones or instead of them."""
    off: tuple[str, ...] = ()
    """Terms that are not looked for, written as in a list (case, width and the like do not matter)."""
    min_peak: float = Field(default=4, gt=0)
    """Least weight within 200 units: one strong term, or several weaker ones."""
    min_density: float = Field(default=4, ge=0)
    """Least weight for 200 units of the whole text."""
    dense_peak: float = Field(default=12, gt=0)
    """Weight within 200 units, an advert in a long text, from which the density of the rest does not matter."""
    categories: Mapping[str, CategoryLimits] = Field(default_factory=dict, examples=[{"filler": {"min_peak": 8}}])
    """Other limits for single categories, by name."""

    @model_validator(mode="after")
    def _known(self) -> SafetyTermsConfig:
        unknown = sorted(set(self.categories) - set(CATEGORY_NAMES))
        if unknown:
            raise ValueError(f"categories: expected names of {', '.join(CATEGORY_NAMES)}, found {', '.join(unknown)}")
        return self

    def limits_of(self, category: str) -> Limits:
        """The limits that hold for a category."""
        own = self.categories.get(category, CategoryLimits())
        found: dict[str, Any] = {name: getattr(self, name) for name in ("min_peak", "min_density", "dense_peak")}
        return Limits(**found | own.model_dump(exclude_none=True))
