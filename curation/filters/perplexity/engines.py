"""What judges texts for the filter `perplexity`, behind one contract: an engine gives sums, never verdicts.

An engine knows no threshold and no document but the one it reads: what it says of a text depends on that text and its
label alone, whatever stands beside it in the batch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curation.errors import ConfigError
from curation.filters.perplexity.config import Reading
from curation.ids import canonical_json

__all__ = ["LIMITS_NAME", "SECOND_PREFIX", "Engine", "Judged", "identity_in", "identity_of", "open_engine"]

LIMITS_NAME = "perplexity_limits.tsv"
"""Among a step's checksums that of the shipped limits, which are no part of an engine."""
SECOND_PREFIX = "second model: "
"""Begins the names of the second model's checksums."""

Doubles = npt.NDArray[np.float64]
Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Judged:
    """What a model reads in each of n texts. A row with 0 tokens could not be judged.

    Perplexity is exp(nats / tokens); bits per character are nats / ln 2 / characters; bits per byte likewise.
    """

    model: npt.NDArray[np.object_]
    """object[n] of str or None: which model judged; None where none fits the label."""
    nats: Doubles
    """float64[n]: sum of -ln p over the scored tokens. May be inf or nan where a model fails: the filter has a reason for it."""
    tokens: Int64s
    """int64[n]: scored tokens. Each token is scored at most once."""
    characters: Int64s
    """int64[n]: characters that the scored tokens spell, as the model reads them (after its normalisation)."""
    bytes: Int64s
    """int64[n]: bytes of UTF-8, of the text as it is given, that the scored tokens stand for; at most the text's."""

    def __post_init__(self) -> None:
        n = len(self.model)
        sizes = {name: len(getattr(self, name)) for name in ("nats", "tokens", "characters", "bytes")}
        assert set(sizes.values()) == {n}, f"{n} models, but {sizes}"


class Engine(Protocol):
    """A family of models that judges texts."""

    def identity(self) -> Mapping[str, Any]:
        """Plain data that decides its numbers: checksums of models, window, stride, BOS rule, normalisation, dtype."""
        ...

    def judge(self, texts: pa.LargeStringArray, labels: pa.StringArray) -> Judged:
        """Judge n texts (no nulls; a slice may be given) under n labels (`eng_Latn`, `und_Hani`, `und`; no nulls)."""
        ...


def identity_in(models: Mapping[str, str]) -> dict[str, str]:
    """What the first model's identity was, from the checksums of a step."""
    return {name: value for name, value in models.items() if name != LIMITS_NAME and not name.startswith(SECOND_PREFIX)}


def identity_of(reading: Reading) -> Mapping[str, str]:
    """What decides the numbers of a config's engine. Loads no neural model.

    Raises:
        ConfigError: a model is not there, or none.
    """
    return open_engine(reading).identity()


def open_engine(reading: Reading) -> Engine:
    """The engine of a config, opened once a process.

    N-gram models are read into memory (some 20 MB a process), so that a file replaced meanwhile changes nothing; a neural model is
    loaded with the first text.

    Raises:
        ConfigError: a model is not there, or none.
    """
    return _open(canonical_json(reading.model_dump(mode="json", include=set(Reading.model_fields))))


@cache
def _open(settings: str) -> Engine:
    reading = Reading.model_validate_json(settings)
    try:
        if reading.engine == "ngram":
            from curation.filters.perplexity.ngrams import open_ngrams

            return open_ngrams(reading.model)
        from curation.filters.perplexity.neural import open_neural

        return open_neural(reading)
    except FileNotFoundError as error:
        raise ConfigError(
            f"perplexity.model: there is no file or folder {error.filename}. A relative path begins at the config file's "
            "folder, with --set at the current one; leave `model` out for the n-gram models that ship."
        ) from error
    except (OSError, ValueError) as error:
        raise ConfigError(f"step perplexity: {error}") from error
