"""What a safety classifier says beside its weights: labels, thresholds, calibration, windows. Out of safety.json, or config.json.

    {"format": 1, "labels": ["gambling", ...], "thresholds": {"default": {label: p}, "long": {label: p},
     "languages": {"zho": {label: p}}}, "temperature": {label: [a, b]}, "max_tokens": 128, "stride": 96, "normalised": true}

`temperature` is Platt's scaling: the probability is that of a * logit + b (Platt, Probabilistic Outputs for Support Vector
Machines, 1999). All but `format` and `labels` may be left out. Without the file labels are those of config.json's id2label.

`unions`: {name: [label, ...]} adds labels that no logit stands for: that at least one of some labels holds, taken as
independent (1 - product of 1 - p). An advert that might be of three trades is of none for sure, and an advert for sure.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = ["FORMAT", "MAX_TOKENS", "STRIDE", "SafetySettings", "read_settings"]

FORMAT = 1
MAX_TOKENS, STRIDE = 128, 96
"""Of windows, where a model does not say: tokens with the special ones, and from one window's begin to the next."""

ByLabel: TypeAlias = Mapping[str, float]


@dataclass(frozen=True)
class SafetySettings:
    """labels: in the order of the logits. multi: each label has its own probability; else they sum to 1.

    languages: thresholds in place of the default ones, by language. slopes: a and b of each label.
    unions: behind the labels of logits, in `labels` too: the labels of which one at least must hold.
    normalised: texts are read as `safety_text.readable` gives them.
    """

    labels: tuple[str, ...]
    multi: bool = True
    default: ByLabel = field(default_factory=dict)
    long: ByLabel = field(default_factory=dict)
    languages: Mapping[str, ByLabel] = field(default_factory=dict)
    slopes: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    max_tokens: int = MAX_TOKENS
    stride: int = STRIDE
    normalised: bool = False
    unions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def learned(self) -> tuple[str, ...]:
        """The labels of logits."""
        return self.labels[: len(self.labels) - len(self.unions)]

    def probabilities(self, logits: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """float32[n, labels] of float32[n, labels but unions]."""
        learned = self.learned
        a, b = np.array([self.slopes.get(label, (1.0, 0.0)) for label in learned], np.float64).T
        scaled = a * logits.astype(np.float64) + b
        if self.multi:
            both = 0.5 + 0.5 * np.tanh(scaled / 2)
            others = [
                1 - np.prod(1 - both[:, [learned.index(of) for of in some]], axis=1) for some in self.unions.values()
            ]
            whole: npt.NDArray[np.float32] = np.column_stack([both, *others]).astype(np.float32)
            return whole
        powers = np.exp(scaled - scaled.max(axis=1, keepdims=True, initial=-np.inf))
        found: npt.NDArray[np.float32] = (powers / powers.sum(axis=1, keepdims=True)).astype(np.float32)
        return found


def read_settings(data: Mapping[str, Any] | None, config: Mapping[str, Any], where: str) -> SafetySettings:
    """Out of safety.json (None: there is none) and config.json.

    Raises:
        ValueError: a value is not what this module's docstring says.
    """
    if data is None:
        labels = _labels_of(config)
        return SafetySettings(labels, _is_multi(config, len(labels)))
    try:
        if data.get("format") != FORMAT:
            raise ValueError(f"format {data.get('format')!r}, expected {FORMAT}")
        labels = tuple(str(label) for label in data["labels"])
        if not labels or len(set(labels)) < len(labels):
            raise ValueError("no labels, or one that stands twice")
        unions = _unions(data.get("unions", {}), labels)
        labels = (*labels, *unions)
        said = data.get("thresholds", {})
        default, long = (_shares(said.get(name, {}), labels, name) for name in ("default", "long"))
        languages = {str(key): _shares(one, labels, key) for key, one in said.get("languages", {}).items()}
        slopes = {str(key): (float(a), float(b)) for key, (a, b) in data.get("temperature", {}).items()}
        if not all(math.isfinite(value) for pair in slopes.values() for value in pair):
            raise ValueError("a temperature that is not finite")
        max_tokens = int(data.get("max_tokens", MAX_TOKENS))
        stride = int(data.get("stride", max(1, max_tokens * STRIDE // MAX_TOKENS)))
        multi = _is_multi(config, len(labels)) if config else True
        normalised = bool(data.get("normalised", False))
        if unions and not multi:
            raise ValueError("unions of labels whose probabilities sum to 1")
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        what = f"no {error}" if isinstance(error, KeyError) else error
        raise ValueError(f"{where}: expected what safety_settings describes, found {what}; write it anew") from error
    return SafetySettings(labels, multi, default, long, languages, slopes, max_tokens, stride, normalised, unions)


def _unions(data: Mapping[str, Any], labels: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    found = {str(name): tuple(str(label) for label in some) for name, some in data.items()}
    for name, some in found.items():
        if name in labels or not some or not set(some) <= set(labels):
            raise ValueError(
                f"union {name!r} of {', '.join(some) or 'nothing'}, expected a new name for some of its labels"
            )
    return found


def _shares(data: Mapping[str, Any], labels: tuple[str, ...], name: str) -> dict[str, float]:
    found = {str(label): float(value) for label, value in data.items()}
    for label, value in found.items():
        if label not in labels or not 0 <= value <= 1:
            raise ValueError(f"{value!r} for {label!r} in thresholds.{name}, expected a share for one of its labels")
    return found


def _labels_of(config: Mapping[str, Any]) -> tuple[str, ...]:
    named = config.get("id2label")
    if isinstance(named, dict) and named:
        return tuple(str(named[key]) for key in sorted(named, key=int))
    return tuple(f"LABEL_{number}" for number in range(int(config.get("num_labels", 2))))


def _is_multi(config: Mapping[str, Any], n_labels: int) -> bool:
    """As transformers' own pipeline decides it."""
    return config.get("problem_type") == "multi_label_classification" or n_labels == 1
