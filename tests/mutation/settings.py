"""Faults in numbers that are data: defaults of settings, and lines of the tables that hold limits by language."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

from pydantic import BaseModel

from curation.steps import step_class
from tests.mutation.mutant import Mutant, replaced

__all__ = ["moved", "setting_mutants", "table_mutants"]

PART = 0.2
"""How far a threshold is moved, up and down."""


def moved(value: float, *, share: bool) -> list[float]:
    """A number a fifth larger and a fifth smaller; a whole one by 1 at least.

    A share that would leave 1 goes half of the way there.
    """
    if isinstance(value, int):
        by = max(1, round(value * PART))
        return [value + by, value - by] if value else [1]
    up = value * (1 + PART)
    if share and value <= 1 < up:
        up = (1 + value) / 2
    return [one for one in (up, value * (1 - PART)) if one != value]


def setting_mutants(step: str) -> Iterator[Mutant]:
    """Every number among the defaults of a step's settings, those in settings within it too, moved both ways."""
    yield from _defaults(step, step_class(step).Config, "")


def _defaults(step: str, config: type[BaseModel], prefix: str) -> Iterator[Mutant]:
    for name, field in config.model_fields.items():
        value = field.get_default(call_default_factory=False)
        if isinstance(value, BaseModel):
            for inner in type(value).model_fields:
                number = getattr(value, inner)
                for new in _numbers(number):
                    what = f"{prefix}{name}.{inner} {number:g} -> {new:g}"
                    yield _setting(step, config, name, value.model_copy(update={inner: new}), what)
        for new in _numbers(value):
            yield _setting(step, config, name, new, f"{prefix}{name} {value:g} -> {new:g}")


def _numbers(value: Any) -> list[float]:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return []
    return moved(value, share=isinstance(value, float) and value <= 1)


def _setting(step: str, config: type[BaseModel], name: str, value: Any, what: str) -> Mutant:
    @contextmanager
    def apply() -> Iterator[None]:
        try:
            with replaced(config.model_fields[name], "default", value):
                config.model_rebuild(force=True)
                yield
        finally:
            config.model_rebuild(force=True)

    return Mutant(step, "threshold", what, apply, scores=_changes_scores(step, name, value))


def _changes_scores(step: str, name: str, value: Any) -> bool:
    """Whether a setting is among those that scores depend on, as the step says."""
    kind = step_class(step)
    try:
        usual = kind(kind.Config())
        other = kind(kind.Config().model_copy(update={name: value}))
        return dict(usual.score_config()) != dict(other.score_config()) or dict(usual.model_checksums()) != dict(
            other.model_checksums()
        )
    except Exception:
        return True


# -- tables --------------------------------------------------------------------------------


def table_mutants(step: str) -> Iterator[Mutant]:
    """Every number of the step's tables of limits, moved both ways."""
    make = {"rules": _rules, "perplexity": _perplexity, "safety_model": _safety_model}.get(step)
    if make is not None:
        yield from make()


FILES = {"massive": "limits.tsv", "fineweb2": "fineweb2.tsv"}
"""Presets that stand in tables; the others stand in code."""


def _rules() -> Iterator[Mutant]:
    from curation.filters.rules import config, presets
    from curation.filters.rules.limits import read_wide
    from curation.filters.rules.rule import BY_NAME

    usual: Callable[[str], Mapping[str, Mapping[str, float | None]]] = presets.preset_limits
    gopher, wide = usual("gopher"), read_wide("fineweb2.tsv")
    for preset in ("massive", "gopher", "c4", "fineweb", "fineweb2"):
        for rule, by_key in usual(preset).items():
            for key, limit in by_key.items():
                if preset == "fineweb" and gopher.get(rule, {}).get(key, -1) == limit:
                    continue  # the same number, which stands in the code once
                if preset == "fineweb2" and key not in wide.get(rule, {}):
                    continue  # that of Gopher, or of FineWeb
                for new in _limits(limit, share=BY_NAME[rule].unit == "share", whole=BY_NAME[rule].unit in WHOLE):

                    def apply(preset: str = preset, rule: str = rule, key: str = key, new: float | None = new) -> Any:
                        def limits(name: str) -> Any:
                            found = usual(name)
                            return {**found, rule: {**found[rule], key: new}} if name == preset else found

                        return replaced(config, "preset_limits", limits)

                    yield Mutant(
                        "rules",
                        "table",
                        f"{preset}: {rule} [{key or 'all'}] {_told(limit)} -> {_told(new)}",
                        apply,
                        concerns=partial(_has_preset, preset=preset),
                        table=f"curation/filters/rules/{FILES[preset]}" if preset in FILES else None,
                    )


WHOLE = ("places", "words", "sentences")
"""Units of what is counted: the next limit is one more or less."""


def _has_preset(settings: Mapping[str, Any], preset: str) -> bool:
    return bool(settings.get("preset", "massive") == preset)


def _limits(limit: float | None, *, share: bool, whole: bool) -> list[float | None]:
    """Other limits; of one that is off there is no 20 %."""
    if limit is None:
        return []
    if limit == 0:
        return [0.05 if share else 1.0]
    return [float(new) for new in moved(int(limit) if whole else limit, share=share)]


def _told(value: float | None) -> str:
    return "off" if value is None else f"{value:g}"


def _perplexity() -> Iterator[Mutant]:
    from curation.filters.perplexity import limits

    usual = limits.shipped_limits()
    for key, limit in usual.items():
        for name in ("min_bits_per_character", "max_bits_per_character"):
            value = getattr(limit, name)
            for new in moved(value, share=False):
                table = {**usual, key: replace(limit, **{name: new})}

                def apply(table: Any = table) -> Any:
                    return replaced(limits, "shipped_limits", lambda: table)

                what = f"{name} [{key or 'all'}] {value:g} -> {new:g}"
                yield Mutant(
                    "perplexity", "table", what, apply, table="curation/filters/perplexity/perplexity_limits.tsv"
                )


SAFETY_MODEL = "quality_models/weights/corpusmill-safety.safetensors"
"""The thresholds stand in its metadata."""


def _safety_model() -> Iterator[Mutant]:
    """The thresholds that ship with the model; what a config or a case says otherwise stays."""
    from curation.filters.safety_model import model
    from curation.filters.safety_model.config import COLUMN_NAMES, SafetyModelConfig

    usual = model.open_model
    own = usual(SafetyModelConfig()).own
    rows = {"usual": own.usual, "long": own.long, **own.languages}
    for row, values in rows.items():
        for column, value in enumerate(values):
            for new in moved(float(value), share=True) if math.isfinite(value) else []:

                def apply(row: str = row, column: int = column, new: float = new) -> Any:
                    def opened(settings: Any) -> Any:
                        found = usual(settings)
                        if settings.model != "corpusmill":
                            return found
                        held = {"usual": found.own.usual, "long": found.own.long, **found.own.languages}[row].copy()
                        held[column] = new
                        if row == "usual":
                            return found._replace(own=found.own._replace(usual=held))
                        if row == "long":
                            return found._replace(own=found.own._replace(long=held))
                        return found._replace(own=found.own._replace(languages={**found.own.languages, row: held}))

                    return replaced(model, "open_model", opened)

                what = f"{row}: {COLUMN_NAMES[column]} {value:g} -> {new:g}"
                yield Mutant("safety_model", "table", what, apply, table=SAFETY_MODEL)
