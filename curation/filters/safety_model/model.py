"""The model of a config, opened once a process, and what its labels mean to the filter."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from pydantic import TypeAdapter, ValidationError

from curation.errors import ConfigError
from curation.filters.language.config import LanguageName
from curation.filters.safety_model.config import COLUMN_NAMES, OFF, SAFE, Limit, SafetyModelConfig
from curation.ids import canonical_json
from quality_models.safety_linear import LinearModel, open_linear
from quality_models.safety_model import SafetyModel, open_safety_model
from quality_models.safety_settings import SafetySettings

__all__ = ["OpenedModel", "Thresholds", "open_linear_model", "open_model", "thresholds_of"]

DEFAULT_THRESHOLD = 0.5
LANGUAGE: TypeAdapter[str] = TypeAdapter(LanguageName)
_SETTINGS = ("model", "engine", "base", "window", "stride", "max_windows", "labels")


class Thresholds(NamedTuple):
    """By category, in the order of COLUMN_NAMES: float64[n_categories], inf where it is off or the model has no such label.

    usual: of documents of one window, and of the mean. long: of the greatest of several, where it is more than the usual one.
    languages: usual ones of single languages.
    """

    usual: npt.NDArray[np.float64]
    long: npt.NDArray[np.float64]
    languages: Mapping[str, npt.NDArray[np.float64]]


class OpenedModel(NamedTuple):
    """columns: int64[n_labels], place in COLUMN_NAMES of each label, -1 for safe ones. own: the model's own thresholds."""

    model: SafetyModel
    columns: npt.NDArray[np.int64]
    own: Thresholds

    def by_category(self, probabilities: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """float32[n, n_categories] of float32[n, n_labels]: the greatest of a category's labels, 0 where it has none."""
        found = np.zeros((len(probabilities), len(COLUMN_NAMES)), np.float32)
        for label, column in enumerate(self.columns):
            if column >= 0:
                np.maximum(found[:, column], probabilities[:, label], out=found[:, column])
        return found

    @property
    def known(self) -> npt.NDArray[np.bool_]:
        """bool[n_categories]: which categories the model has a label for."""
        return np.isin(np.arange(len(COLUMN_NAMES)), self.columns)


def open_model(config: SafetyModelConfig) -> OpenedModel:
    """The model of a config; its weights are read with the first text.

    Raises:
        ConfigError: it or a package is missing, or a label of it means nothing to the filter.
    """
    return _open(canonical_json(config.model_dump(mode="json", include=set(_SETTINGS))))


@cache
def _open(settings: str) -> OpenedModel:
    config = SafetyModelConfig.model_validate_json(settings)
    try:
        model = open_safety_model(config.model, config.engine, base=config.base)
        model = model.with_windows(config.window, config.stride, config.max_windows)
        columns = _columns(model.labels, config)
        return OpenedModel(model, columns, _own_thresholds(model.settings, columns))
    except ValidationError as error:
        raise ConfigError(
            f"step safety_model: {config.model}: thresholds.languages: {error.errors()[0]['msg']}"
        ) from error
    except (ValueError, OSError) as error:
        raise ConfigError(f"step safety_model: {error}") from error


def open_linear_model() -> LinearModel:
    """The fast model of the cascade. Raises ConfigError where it is missing."""
    try:
        return open_linear()
    except ValueError as error:
        raise ConfigError(f"step safety_model: {error}; set scope to all, or install corpusmill anew") from error


def _columns(labels: tuple[str, ...], config: SafetyModelConfig) -> npt.NDArray[np.int64]:
    meanings = {label: label.lower() for label in labels if label.lower() in (*COLUMN_NAMES, SAFE)} | config.labels
    if unknown := [label for label in config.labels if label not in labels]:
        raise ValueError(f"labels: expected labels of {config.model} ({', '.join(labels)}), found {', '.join(unknown)}")
    if missing := [label for label in labels if label not in meanings]:
        raise ValueError(
            f"labels: expected what each label of {config.model} means, found nothing for {', '.join(missing)}; write for each "
            f"{', '.join(COLUMN_NAMES)} or safe, such as `labels: {{{missing[0]}: safe}}`"
        )
    found = [COLUMN_NAMES.index(meaning) if (meaning := meanings[label]) != SAFE else -1 for label in labels]
    return np.array(found, np.int64)


def _own_thresholds(settings: SafetySettings, columns: npt.NDArray[np.int64]) -> Thresholds:
    """The model's own; of several labels of a category the lowest."""
    usual, long = (np.full(len(COLUMN_NAMES), np.inf) for _ in range(2))
    names = {key: LANGUAGE.validate_python(key) for key in settings.languages}
    languages = {name: np.full(len(COLUMN_NAMES), np.nan) for name in names.values()}
    for label, column in zip(settings.labels, columns, strict=True):
        if column < 0:
            continue
        one = settings.default.get(label, DEFAULT_THRESHOLD)
        usual[column] = min(usual[column], one)
        long[column] = min(long[column], max(one, settings.long.get(label, (1 + one) / 2)))
        for key, said in settings.languages.items():
            if label in said:
                mine = languages[names[key]]
                mine[column] = np.fmin(mine[column], said[label])
    return Thresholds(usual, long, languages)


def thresholds_of(config: SafetyModelConfig) -> Thresholds:
    """Those that apply: the config's, where it says something, else the model's. Raises ConfigError as `open_model` does."""
    opened = open_model(config)
    own = opened.own
    usual = _with(own.usual, config.thresholds)
    long = _with(own.long, config.long_thresholds)
    languages = {}
    for key in (*own.languages, *(key for key in config.languages if key not in own.languages)):
        said = np.where(np.isnan(own.languages[key]), usual, own.languages[key]) if key in own.languages else usual
        # What a config says for all languages is said of those, too, of which the model has its own.
        found = _with(_with(said, config.thresholds), config.languages.get(key, {}))
        languages[key] = np.where(opened.known, found, np.inf)
    return Thresholds(np.where(opened.known, usual, np.inf), long, languages)


def _with(values: npt.NDArray[np.float64], said: Mapping[str, Limit]) -> npt.NDArray[np.float64]:
    found = values.copy()
    for name, limit in said.items():
        found[COLUMN_NAMES.index(name)] = np.inf if limit == OFF else limit
    return found
