"""Head, middle and tail: where a document stands among those of its language in a calibration run.

The method is CCNet's (Wenzek et al. 2020, arXiv:1911.00359): perplexities of different languages cannot be compared, so
each language is cut at percentiles of its own; the first 30 % are the head, the next 30 % the middle. A calibration holds
the percentiles and says by which models they were made; under others its numbers mean nothing. It is kept in the
resolved config whole, so that a run needs no file beside it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import yaml
from pydantic import Field, field_validator

from curation.filters.labels import UNDETERMINED
from curation.verdicts import StepConfig

__all__ = ["KIND", "PERCENTILES", "Calibration", "LanguageCalibration", "edges_of", "read_calibration"]

PERCENTILES = (1, *range(5, 100, 5), 99)
"""Those that a calibration holds; between two of them lie straight lines."""
KIND = "corpusmill perplexity calibration 1"


class LanguageCalibration(StepConfig):
    """Percentiles of one language."""

    documents: int = Field(ge=0)
    """Documents that they were taken from."""
    percentiles: dict[int, float] = Field(min_length=2)
    """Bits per character by percentile, 1 to 99."""

    @field_validator("percentiles")
    @classmethod
    def _rising(cls, value: dict[int, float]) -> dict[int, float]:
        ordered = dict(sorted(value.items()))
        if not 0 <= min(ordered) <= max(ordered) <= 100:
            raise ValueError(f"expected percentiles from 0 to 100, found {min(ordered)} to {max(ordered)}")
        bits = np.array(list(ordered.values()))
        if not np.isfinite(bits).all() or (np.diff(bits) < 0).any():
            raise ValueError("expected finite bits per character that do not fall from one percentile to the next")
        return ordered

    def at(self, percentile: float) -> float:
        """Bits per character at a percentile, by a straight line between its neighbours. 0 and 100 hold all documents."""
        if percentile <= 0 or percentile >= 100:
            return -math.inf if percentile <= 0 else math.inf
        return float(np.interp(percentile, list(self.percentiles), list(self.percentiles.values())))


class Calibration(StepConfig):
    """Percentiles of bits per character by language, and by which models they were made."""

    kind: str = KIND
    """What this file is."""
    engine: dict[str, Any] = Field(default_factory=dict)
    """Identity of the models that made it: another model's scores cannot be held against it."""
    run_id: str = ""
    """The run that it was made from."""
    languages: dict[str, LanguageCalibration] = Field(default_factory=dict)
    """By label or language code."""

    @field_validator("kind")
    @classmethod
    def _is_one(cls, value: str) -> str:
        if value != KIND:
            raise ValueError(f"expected {KIND!r}, found {value!r}")
        return value

    def of(self, label: str, min_documents: int) -> LanguageCalibration | None:
        """The percentiles of a label or of its language; None where it has none, or too few documents."""
        language = label.partition("_")[0]
        for key in (label,) if language == UNDETERMINED else (label, language):
            found = self.languages.get(key)
            if found is not None and found.documents >= min_documents:
                return found
        return None


def edges_of(
    calibration: Calibration, labels: pa.Array, percentiles: Sequence[float], min_documents: int
) -> npt.NDArray[np.float64]:
    """Bits per character at percentiles of each label's language: float64[n_labels, n_percentiles], nan without calibration."""
    encoded = labels.dictionary_encode()
    table = np.full((len(encoded.dictionary) + 1, len(percentiles)), np.nan)
    for row, label in enumerate(encoded.dictionary.to_pylist()):
        found = calibration.of(label, min_documents)
        if found is not None:
            table[row] = [found.at(percentile) for percentile in percentiles]
    rows = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    edges: npt.NDArray[np.float64] = table[rows]
    return edges


def read_calibration(path: str) -> Any:
    """What a calibration file holds, as plain data.

    Raises:
        ValueError: it is not there, or neither JSON nor YAML.
    """
    try:
        found = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(
            f"{path} cannot be read ({error.strerror or error}); `corpusmill calibrate` writes one"
        ) from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is neither JSON nor YAML: {error}") from None
    if not isinstance(found, dict):
        raise ValueError(f"{path}: expected what `corpusmill calibrate` writes, found {type(found).__name__}")
    return found
